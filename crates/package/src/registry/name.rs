//! Names of published skills.

use std::{fmt, str::FromStr};

use savoir_skill::name::reserved_prefix;
use semver::Version;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use thiserror::Error;

/// Maximum length of a part of a name, in bytes.
const MAX_PART_BYTES: usize = 64;
/// Names that have a meaning in URLs.
const RESERVED_NAMES: [&str; 3] = ["download", "versions", "index"];
/// The namespace of texts without frontmatter and without a chosen namespace.
const ANONYMOUS_NAMESPACE: &str = "anon";

/// The name of a published skill: `pdf`, or `acme/pdf` in the namespace `acme`. It is safe in URLs
/// and as a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    namespace: Option<Box<str>>,
    last: Box<str>,
}

/// A text is not the name of a published skill.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{}` cannot be the name of a published skill: {why}; write `name` or `namespace/name` with \
     lower-case letters, digits and single hyphens", text.escape_debug()
)]
pub struct NameError {
    text: String,
    why: &'static str,
}

impl NameError {
    pub(crate) fn needed(name: &Name) -> Self {
        Self { text: name.to_string(), why: "registries need this name themselves" }
    }

    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        "invalid_name"
    }
}

impl Name {
    /// Parses `name` or `namespace/name`.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        match text.split_once('/') {
            Some((namespace, last)) => Self::new(Some(namespace), last),
            None => Self::new(None, text),
        }
    }

    /// Creates a name with an optional namespace.
    pub fn new(namespace: Option<&str>, last: &str) -> Result<Self, NameError> {
        let refused = |why| {
            let text = namespace.map_or_else(|| last.to_owned(), |first| format!("{first}/{last}"));
            // Errors show only the start of a long text.
            NameError { text: text.chars().take(2 * MAX_PART_BYTES).collect(), why }
        };
        for part in namespace.into_iter().chain([last]) {
            check(part).map_err(refused)?;
        }
        Ok(Self { namespace: namespace.map(Into::into), last: last.into() })
    }

    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The name without namespace, which is also the name of its folder.
    pub fn last(&self) -> &str {
        &self.last
    }

    /// The unit that belongs to one registry: the namespace, or the name if there is none.
    pub fn owner(&self) -> &str {
        self.namespace().unwrap_or(&self.last)
    }

    /// Whether it is in the namespace `anon`, in which the registry assigns the versions.
    pub fn is_anonymous(&self) -> bool {
        self.namespace() == Some(ANONYMOUS_NAMESPACE)
    }

    /// The reserved prefix, if the name or its namespace has one.
    pub fn reserved_prefix(&self) -> Option<&'static str> {
        reserved_prefix(self.owner())
    }

    /// The path in an index: the first two letters of the last part, and the name. If the namespace
    /// starts with the same letters, `_` is added: the skill `acme` is the file `ac/acme`, so that
    /// there can be no folder of that name.
    pub fn index_path(&self) -> String {
        let letters = first_two(&self.last);
        match self.namespace() {
            Some(namespace) if first_two(namespace) == letters => format!("{letters}_/{self}"),
            _ => format!("{letters}/{self}"),
        }
    }

    /// The file name of a version's archive.
    pub fn artifact(&self, version: &Version) -> String {
        format!("{}-{version}.zip", self.last)
    }
}

/// Returns the first two letters of a part; names are ASCII.
fn first_two(part: &str) -> &str {
    &part[..part.len().min(2)]
}

/// Checks for lower-case letters, digits and single hyphens, starting with a letter.
fn check(part: &str) -> Result<(), &'static str> {
    if part.is_empty() {
        return Err("a part of it is empty");
    }
    if part.len() > MAX_PART_BYTES {
        return Err("a part of it has more than 64 letters");
    }
    let small = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    if part.bytes().any(|b| !b.is_ascii_lowercase() && !b.is_ascii_digit() && b != b'-') {
        return Err("other characters are in it");
    }
    if !part.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err("it must start with a letter");
    }
    if !part.split('-').all(small) {
        return Err("a hyphen must be between letters or digits, and single");
    }
    if RESERVED_NAMES.contains(&part) {
        return Err("this word means something else in addresses");
    }
    Ok(())
}

/// Whether a text can be a namespace.
pub(crate) fn is_namespace(text: &str) -> bool {
    check(text).is_ok()
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.last)
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_and_index_paths() {
        for (text, namespace, owner, path) in [
            ("web-search", None, "web-search", "we/web-search"),
            ("acme/pdf", Some("acme"), "acme", "pd/acme/pdf"),
            ("a", None, "a", "a/a"),
            ("x2/b", Some("x2"), "x2", "b/x2/b"),
            ("acme", None, "acme", "ac/acme"),
            ("acme/accounts", Some("acme"), "acme", "ac_/acme/accounts"),
            ("a/a", Some("a"), "a", "a_/a/a"),
        ] {
            let name = Name::parse(text).unwrap();
            assert_eq!((name.namespace(), name.owner()), (namespace, owner));
            assert_eq!(name.index_path(), path);
            assert_eq!(name.to_string(), text);
        }
        let name = Name::parse("acme/pdf").unwrap();
        assert_eq!(name.artifact(&Version::new(1, 2, 0)), "pdf-1.2.0.zip");
        assert!(Name::parse("anon/notes").unwrap().is_anonymous());
        assert_eq!(Name::parse("gaia-x").unwrap().reserved_prefix(), Some("gaia-"));
        assert_eq!(Name::parse("gaia-x/pdf").unwrap().reserved_prefix(), Some("gaia-"));
        assert_eq!(Name::parse("acme/gaia-pdf").unwrap().reserved_prefix(), None);
    }

    #[test]
    fn invalid_names_are_rejected() {
        let long = "a".repeat(65);
        for text in [
            "", "/", "a/", "/a", "a/b/c", "..", "../a", "a/..", "A", "1a", "-a", "a-", "a--b",
            "a_b", "a b", "a.b", "ä", "a@1", "a/index", "download", "versions/a", "a\0", "a\n",
            "%2e", &long,
        ] {
            let error = Name::parse(text).unwrap_err();
            assert_eq!(error.code(), "invalid_name", "{text}");
        }
        for (text, why) in [
            ("trail-", "a hyphen must be between"),
            ("dou--ble", "a hyphen must be between"),
            ("1a", "it must start with a letter"),
            ("A", "other characters are in it"),
        ] {
            let error = Name::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(Name::parse(&"a".repeat(64)).is_ok());
        let error = Name::parse("a/../../b").unwrap_err().to_string();
        assert!(error.contains("`a/../../b`") && error.contains("namespace/name"), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The index path of a valid name stays in the index folder and can be parsed again.
        #[test]
        fn index_paths_never_contain_parent_parts(text in "[a-z./-]{1,12}|\\PC{0,12}") {
            if let Ok(name) = Name::parse(&text) {
                prop_assert_eq!(name.to_string(), text);
                let path = name.index_path();
                prop_assert!(path.split('/').all(|part| !part.is_empty() && !part.starts_with('.')));
            }
        }
    }
}
