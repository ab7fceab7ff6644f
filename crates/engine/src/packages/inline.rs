//! Reads the inline metadata (PEP 723) of a Python script.

use serde::Deserialize;
use thiserror::Error;

/// The metadata of a script.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct InlineMetadata {
    #[serde(default)]
    pub(crate) dependencies: Vec<String>,
    pub(crate) requires_python: Option<String>,
    #[serde(default)]
    tool: toml::Table,
}

/// Why the metadata of a script cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum InlineMetadataError {
    #[error("it has two `# /// script` blocks")]
    Twice,
    #[error("its `# /// script` block is not valid: {0}")]
    Syntax(String),
    #[error("its `# /// script` block sets `{0}`, but packages come only from your own index")]
    Source(String),
}

/// Settings of uv that name the source of packages. Such scripts are refused: if the settings were
/// ignored, the index would return other packages with the same names.
const SOURCE_KEYS: [&str; 5] = ["sources", "index", "index-url", "extra-index-url", "find-links"];

/// Reads the metadata of a script, if it has any.
pub(crate) fn read(text: &str) -> Result<Option<InlineMetadata>, InlineMetadataError> {
    let Some(block) = block(text)? else { return Ok(None) };
    let syntax = |error: toml::de::Error| InlineMetadataError::Syntax(error.message().to_owned());
    let inline: InlineMetadata = toml::from_str(&block).map_err(syntax)?;
    let uv = inline.tool.get("uv").and_then(toml::Value::as_table);
    let named = uv.and_then(|uv| SOURCE_KEYS.iter().find(|name| uv.contains_key(**name)));
    match named {
        Some(name) => Err(InlineMetadataError::Source(format!("tool.uv.{name}"))),
        None => Ok(Some(inline)),
    }
}

/// The text of the metadata block. It ends at the last `# ///` line of its comment; a comment
/// without such a line is not metadata.
fn block(text: &str) -> Result<Option<String>, InlineMetadataError> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let mut found = None;
    let mut index = 0;
    while index < lines.len() {
        if lines[index] != "# /// script" {
            index += 1;
            continue;
        }
        let is_comment = |line: &&&str| **line == "#" || line.starts_with("# ");
        let comment: Vec<&str> =
            lines[index + 1..].iter().take_while(is_comment).copied().collect();
        index += 1;
        let Some(end) = comment.iter().rposition(|line| *line == "# ///") else { continue };
        if found.is_some() {
            return Err(InlineMetadataError::Twice);
        }
        let content = comment[..end].iter().map(|line| line.get(2..).unwrap_or_default());
        found = Some(content.collect::<Vec<_>>().join("\n"));
        index += end;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_metadata() {
        let text = "#!/usr/bin/env -S uv run --script\n# /// script\n# requires-python = \">=3.9\"\n\
                    # dependencies = [\n#   \"requests<3\",\n#   \"rich\",\n# ]\n#\n# [tool.uv]\n\
                    # exclude-newer = \"2024-01-01T00:00:00Z\"\n# ///\nimport requests\n";
        for text in [text.to_owned(), text.replace('\n', "\r\n")] {
            let inline = read(&text).unwrap().unwrap();
            assert_eq!(inline.dependencies, ["requests<3", "rich"]);
            assert_eq!(inline.requires_python.as_deref(), Some(">=3.9"));
        }
    }

    #[test]
    fn scripts_without_metadata() {
        for text in [
            "",
            "print(1)\n",
            "# /// script\n# dependencies = [\"x\"]\nprint(1)\n",
            "# /// pyproject\n# [project]\n# ///\n",
            "  # /// script\n  # dependencies = [\"x\"]\n  # ///\n",
            "#/// script\n# dependencies = [\"x\"]\n# ///\n",
        ] {
            assert_eq!(read(text), Ok(None), "{text}");
        }
        let empty = read("# /// script\n# ///\n").unwrap().unwrap();
        assert_eq!(empty, InlineMetadata::default());
    }

    #[test]
    fn odd_metadata_is_refused() {
        for (text, part) in [
            ("# /// script\n# dependencies = \"x\"\n# ///\n", "not valid"),
            ("# /// script\n# dependencies = [1]\n# ///\n", "not valid"),
            ("# /// script\n# dependencies = [\n# ///\n", "not valid"),
            ("# /// script\n# ///\n\n# /// script\n# ///\n", "two"),
            ("# /// script\n# [tool.uv.sources]\n# x = {path = \"/\"}\n# ///\n", "tool.uv.sources"),
            ("# /// script\n# [[tool.uv.index]]\n# url = \"https://x\"\n# ///\n", "tool.uv.index"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        // The last closing line ends the block, so the first one becomes part of the TOML and is
        // invalid.
        assert!(read("# /// script\n# ///\n# x\n# ///\n").is_err());
    }
}
