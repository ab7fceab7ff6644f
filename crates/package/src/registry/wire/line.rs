//! One version in the index of a registry.

use savoir_skill::version::SkillRef;
use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;

use super::{
    super::Name,
    bounded::{lenient_tier, list, maybe_tier},
};
use crate::{
    limits::{MAX_ARCHIVE_BYTES, MAX_LISTED, MAX_NAME_BYTES},
    manifest::is_integrity,
    trust::Tier,
};

/// One version of a skill: everything that a resolver and a fetcher need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryIndexLine))]
pub struct IndexLine {
    /// The whole name of the skill.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Name,
    /// The version.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub version: Version,
    /// What its files are: the integrity of their tree.
    pub integrity: String,
    /// The digest of its archive, in hexadecimal digits.
    pub sha256: String,
    /// The bytes of its archive.
    pub size: u64,
    /// What its archive is called.
    pub filename: String,
    /// How far the registry trusts it, and no further than it claims.
    #[serde(default, deserialize_with = "lenient_tier")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub tier: Tier,
    /// The tier that its scan and its signatures earned it; not every registry tells.
    #[serde(default, deserialize_with = "maybe_tier", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub attested: Option<Tier>,
    /// What it claims itself.
    #[serde(default, deserialize_with = "maybe_tier")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub claimed: Option<Tier>,
    /// Whether it was withdrawn: who has it keeps it, and nobody else gets it.
    #[serde(default)]
    pub yanked: bool,
    /// Why it was withdrawn, if who did it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yanked_reason: Option<String>,
    /// The deprecation message: what to use instead.
    pub deprecated: Option<String>,
    /// The skills that it needs, as `name@range`.
    #[serde(default, deserialize_with = "list::<_, _, MAX_LISTED>")]
    pub dependencies: Vec<String>,
    /// What it asks for.
    #[serde(default, deserialize_with = "list::<_, _, MAX_LISTED>")]
    pub permissions: Vec<String>,
    /// The tools that it brings or uses.
    #[serde(default, deserialize_with = "list::<_, _, MAX_LISTED>")]
    pub tools: Vec<String>,
    /// When it was published.
    pub published_at: Option<String>,
    /// Who signed it.
    pub signer: Option<String>,
}

impl IndexLine {
    /// The tier that it earned: what lists show, and who publishes is told.
    pub fn earned(&self) -> Tier {
        self.attested.unwrap_or(self.tier)
    }

    /// The skills that it needs; a sentence if one of them cannot be read.
    pub fn needs(&self) -> Result<Vec<SkillRef>, String> {
        let read = |text: &String| {
            let wrong = |why| format!("it needs `{}`: {why}", text.escape_debug());
            SkillRef::parse(text).map_err(wrong)
        };
        self.dependencies.iter().map(read).collect()
    }

    /// Whether its archive can be fetched and held to what is said here.
    fn check(&self) -> Result<(), &'static str> {
        let small_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if self.sha256.len() != 64 || !self.sha256.bytes().all(small_hex) {
            return Err("its sha256 is not 64 hexadecimal digits");
        }
        if !is_integrity(&self.integrity) {
            return Err("its integrity is none");
        }
        if self.size == 0 || self.size > MAX_ARCHIVE_BYTES {
            return Err("its archive is empty or too large");
        }
        if !is_file_name(&self.filename) {
            return Err("its archive is called what no file can be called");
        }
        Ok(())
    }
}

/// A version that was taken down: who has it must hear of it, and nobody gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryGoneLine))]
pub struct TakenDownLine {
    /// The whole name of the skill.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Name,
    /// The version.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub version: Version,
    /// Always so.
    pub withdrawn: bool,
    /// Why, if who did it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn_reason: Option<String>,
}

impl TakenDownLine {
    /// Reads a line, also if it says more; nothing if it is another one. Only few lines have the word.
    pub fn read(text: &str) -> Option<Self> {
        let read = || serde_json::from_str::<Self>(text).ok();
        text.contains("\"withdrawn\"").then(read).flatten().filter(|line| line.withdrawn)
    }
}

/// Letters, digits and a few signs, none of them at the beginning.
fn is_file_name(name: &str) -> bool {
    let sign = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(sign)
}

/// One line of an index, as it was read.
pub(in crate::registry) enum ParsedLine<'a> {
    /// A version, and its text.
    Version(Box<IndexLine>, &'a str),
    /// A version that was taken down, and its text.
    Gone(TakenDownLine, &'a str),
    /// A version that cannot be used, and why.
    Unusable(String),
    /// No JSON: what came was cut off, or is something else.
    Broken(String),
}

/// Reads an index line by line, with their numbers. Lines without anything are passed over.
pub(in crate::registry) struct Lines<'a>(std::iter::Enumerate<std::str::Lines<'a>>);

impl<'a> Lines<'a> {
    pub(in crate::registry) fn of(text: &'a str) -> Self {
        Self(text.lines().enumerate())
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, ParsedLine<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (at, text) = self.0.find(|(_, text)| !text.trim().is_empty())?;
        // Values without keys could be taken for those of a line.
        if !text.trim_start().starts_with('{') {
            return Some((at + 1, ParsedLine::Broken("it is not an object".to_owned())));
        }
        if let Some(line) = TakenDownLine::read(text) {
            return Some((at + 1, ParsedLine::Gone(line, text)));
        }
        let reading = match serde_json::from_str::<IndexLine>(text) {
            Ok(line) => match line.check() {
                Ok(()) => ParsedLine::Version(Box::new(line), text),
                Err(why) => ParsedLine::Unusable(format!("{} {}: {why}", line.name, line.version)),
            },
            Err(error) if error.classify() == Category::Data => {
                ParsedLine::Unusable(error_text(&error))
            }
            Err(error) => ParsedLine::Broken(error_text(&error)),
        };
        Some((at + 1, reading))
    }
}

/// An error without what a stranger wrote in it, beyond a line.
fn error_text(error: &serde_json::Error) -> String {
    super::super::error::printable(&error.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(change: &[(&str, serde_json::Value)]) -> String {
        let mut line = serde_json::json!({
            "name": "acme/pdf", "version": "1.2.0",
            "integrity": "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
            "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "size": 10, "filename": "pdf-1.2.0.zip", "tier": "community", "later": {"a": 1},
        });
        for (key, value) in change {
            line[*key] = value.clone();
        }
        line.to_string()
    }

    fn read(text: &str) -> Vec<(usize, String)> {
        let shown = |(at, reading)| match reading {
            ParsedLine::Version(line, _) => (at, format!("{} {}", line.name, line.version)),
            ParsedLine::Gone(line, _) => (at, format!("gone: {} {}", line.name, line.version)),
            ParsedLine::Unusable(why) => (at, format!("unusable: {why}")),
            ParsedLine::Broken(why) => (at, format!("broken: {why}")),
        };
        Lines::of(text).map(shown).collect()
    }

    #[test]
    fn invalid_line_is_skipped() {
        let bad = [
            ("sha256", "E3B0".into()),
            ("sha256", "../../x".into()),
            ("integrity", "sha256-short".into()),
            ("size", 0.into()),
            ("size", (MAX_ARCHIVE_BYTES + 1).into()),
            ("size", (-1).into()),
            ("filename", "../x.zip".into()),
            ("filename", ".zip".into()),
            ("filename", "a b".into()),
            ("version", "1.2".into()),
            ("name", "../pdf".into()),
            ("yanked", "no".into()),
            ("dependencies", vec!["a"; MAX_LISTED + 1].into()),
        ];
        for (key, value) in bad {
            let text = format!("{}\n\n{}\n", line(&[(key, value)]), line(&[]));
            let found = read(&text);
            assert!(found[0].1.starts_with("unusable: "), "{key}: {found:?}");
            assert_eq!(found[1], (3, "acme/pdf 1.2.0".to_owned()));
        }
        let cut = line(&[]);
        for broken in [&cut[..cut.len() - 1], "<html>", "[]", "1", "null"] {
            let found = read(broken);
            assert!(found[0].1.starts_with("broken: "), "{found:?}");
        }
    }

    #[test]
    fn taken_down_lines_are_recognized() {
        let short = r#"{"name":"acme/pdf","version":"1.1.0","withdrawn":true,"later":1}"#;
        let whole = line(&[("withdrawn", true.into()), ("withdrawn_reason", "it steals".into())]);
        for text in [short, &whole] {
            assert!(read(text)[0].1.starts_with("gone: acme/pdf 1."), "{text}");
        }
        assert_eq!(read(&line(&[("withdrawn", false.into())]))[0].1, "acme/pdf 1.2.0");
        assert!(
            read(r#"{"name":"../x","version":"1.0.0","withdrawn":true}"#)[0].1.starts_with("un")
        );
        // Who does not know such lines passes them over.
        assert!(serde_json::from_str::<IndexLine>(short).unwrap_err().is_data());
    }

    #[test]
    fn dependencies_are_parsed_on_demand() {
        let text = line(&[("dependencies", vec!["acme/x@^1", "y"].into())]);
        let Some((_, ParsedLine::Version(good, _))) = Lines::of(&text).next() else { panic!() };
        let needs: Vec<String> = good.needs().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(needs, ["acme/x@^1", "y"]);
        let text = line(&[("dependencies", vec!["y@one||two"].into())]);
        let Some((_, ParsedLine::Version(bad, _))) = Lines::of(&text).next() else { panic!() };
        assert!(bad.needs().unwrap_err().starts_with("it needs `y@one||two`: "));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever a server sends, reading it ends, and what is read can be fetched.
        #[test]
        fn hostile_lines(start in 0..400_usize, length in 0..30_usize, new in "\\PC{0,9}") {
            let whole = line(&[]);
            let (start, end) = (start % whole.len(), (start % whole.len() + length).min(whole.len()));
            let text = format!("{}{new}{}", &whole[..start], &whole[end..]);
            for (_, reading) in Lines::of(&text) {
                if let ParsedLine::Version(line, _) = reading {
                    prop_assert!(is_file_name(&line.filename) && line.sha256.len() == 64);
                }
            }
        }
    }
}
