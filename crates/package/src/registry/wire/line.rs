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

/// One version of a skill, with the data that a resolver and a fetcher need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryIndexLine))]
pub struct IndexLine {
    /// The full name of the skill.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Name,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub version: Version,
    /// The integrity of the files.
    pub integrity: String,
    /// The SHA-256 of the archive, in hexadecimal digits.
    pub sha256: String,
    /// The size of the archive in bytes.
    pub size: u64,
    /// The file name of the archive.
    pub filename: String,
    /// The effective tier: the attested one, but at most the claimed one.
    #[serde(default, deserialize_with = "lenient_tier")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub tier: Tier,
    /// The tier that scan and signatures attest; not all registries state it.
    #[serde(default, deserialize_with = "maybe_tier", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub attested: Option<Tier>,
    /// The tier that the skill claims.
    #[serde(default, deserialize_with = "maybe_tier")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub claimed: Option<Tier>,
    /// Whether the version is yanked: existing installs keep working, new installs skip it.
    #[serde(default)]
    pub yanked: bool,
    /// The reason for the yank, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yanked_reason: Option<String>,
    /// The deprecation message: what to use instead.
    pub deprecated: Option<String>,
    /// The dependencies, as `name@range`.
    #[serde(default, deserialize_with = "list::<_, _, MAX_LISTED>")]
    pub dependencies: Vec<String>,
    /// The permissions that the skill requests.
    #[serde(default, deserialize_with = "list::<_, _, MAX_LISTED>")]
    pub permissions: Vec<String>,
    /// The tools that the skill provides or uses.
    #[serde(default, deserialize_with = "list::<_, _, MAX_LISTED>")]
    pub tools: Vec<String>,
    /// When it was published.
    pub published_at: Option<String>,
    pub signer: Option<String>,
    /// How many signed evaluations the registry has of it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attestations: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl IndexLine {
    /// Returns the tier as lists and publish responses show it.
    pub fn earned(&self) -> Tier {
        self.attested.unwrap_or(self.tier)
    }

    /// Parses the dependencies.
    pub fn needs(&self) -> Result<Vec<SkillRef>, String> {
        let read = |text: &String| {
            let wrong = |why| format!("it needs `{}`: {why}", text.escape_debug());
            SkillRef::parse(text).map_err(wrong)
        };
        self.dependencies.iter().map(read).collect()
    }

    /// Checks that the archive can be fetched and verified with this data.
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

/// A version that was taken down. It can no longer be installed, and users who have it must be
/// warned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryGoneLine))]
pub struct TakenDownLine {
    /// The full name of the skill.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Name,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub version: Version,
    /// Always true.
    pub withdrawn: bool,
    /// The reason, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn_reason: Option<String>,
}

impl TakenDownLine {
    /// Parses a line, which may have more fields; returns `None` for other lines. The word is
    /// searched first, because it is rare and parsing is slow.
    pub fn read(text: &str) -> Option<Self> {
        let read = || serde_json::from_str::<Self>(text).ok();
        text.contains("\"withdrawn\"").then(read).flatten().filter(|line| line.withdrawn)
    }
}

/// Whether a name has only letters, digits and some other characters, and starts with a letter or
/// digit.
fn is_file_name(name: &str) -> bool {
    let sign = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(sign)
}

/// A parsed line of an index.
pub(in crate::registry) enum ParsedLine<'a> {
    /// A version, and the text of the line.
    Version(Box<IndexLine>, &'a str),
    /// A version that was taken down, and the text of the line.
    Gone(TakenDownLine, &'a str),
    /// A version that cannot be used, and the reason.
    Unusable(String),
    /// Not JSON: the response was cut off, or is something else.
    Broken(String),
}

/// Parses an index line by line, with line numbers. Empty lines are skipped.
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
        // An array could be deserialized as a struct.
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

/// Formats an error without untrusted text of the line.
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
        // Older clients skip such lines, because required fields are missing.
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

        /// Parsing arbitrary lines terminates, and every parsed version can be fetched.
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
