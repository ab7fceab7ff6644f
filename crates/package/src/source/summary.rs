//! Reads the name and description of a skill.

use savoir_skill::{
    Source,
    name::{MAX_NAME_CHARS, is_unsafe_path_name, slugify},
    read,
};

use crate::path;

/// A skill's name and description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) name: String,
    pub(super) description: Option<String>,
}

impl Summary {
    /// Creates a summary without a description, with a name derived from that of a folder or file.
    pub(super) fn named(place: &str) -> Self {
        DeclaredSummary::default().at(place)
    }

    /// Reads the frontmatter; a missing name is derived from that of a folder or file.
    pub(super) fn read(bytes: &[u8], place: &str) -> Self {
        DeclaredSummary::read(bytes).at(place)
    }
}

/// The name and description in a file, independent of its path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DeclaredSummary {
    name: Option<String>,
    description: Option<String>,
}

impl DeclaredSummary {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let Ok(source) = Source::from_bytes(bytes.to_vec()) else { return Self::default() };
        let reading = read(source, None);
        // A heading is not used as a name, because it changes more often than the file name.
        let is_prose = reading.document.entries().is_empty();
        let name = Some(reading.skill.name).filter(|name| !is_prose && is_name(name));
        Self { name, description: description(&reading.skill.description) }
    }

    /// Creates the summary of a file in a folder of this name.
    pub(super) fn at(self, place: &str) -> Summary {
        let from_place = || slugify(place).unwrap_or_else(|| "skill".to_owned());
        Summary { name: self.name.unwrap_or_else(from_place), description: self.description }
    }
}

/// Whether a name, which is untrusted, can be the name of a folder.
pub(super) fn is_name(name: &str) -> bool {
    let short = name.chars().count() <= MAX_NAME_CHARS;
    short && !is_unsafe_path_name(name) && path::check(name).is_ok()
}

/// Removes terminal control characters from a description; returns `None` if it is empty.
pub(super) fn description(text: &str) -> Option<String> {
    let plain = text.trim().replace(|c: char| c.is_control() && c != '\n', " ");
    Some(plain).filter(|text| !text.is_empty())
}

/// Returns the name of a file without its extension; `.tar.gz` counts as one.
pub(super) fn stem(name: &str) -> &str {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_falls_back_to_folder() {
        let own = Summary::read(b"---\nname: own\ndescription: Does.\n---\nx", "place");
        assert_eq!((own.name.as_str(), own.description.as_deref()), ("own", Some("Does.")));
        let bare = Summary::read(b"# Just prose\n", "My Notes");
        assert_eq!(bare.name, "my-notes");
        assert_eq!(Summary::read(b"\xff\xfe", "x").name, "x");
        for name in ["../up", ".ssh", "a/b", "CON", "\"a\\e[31m\""] {
            let text = format!("---\nname: {name}\ndescription: \"a\\e[31mb\"\n---\n");
            let summary = Summary::read(text.as_bytes(), "place");
            assert_eq!(summary.name, "place", "{name}");
            assert_eq!(summary.description.as_deref(), Some("a [31mb"));
        }
        assert_eq!(Summary::named("??").name, "skill");
        assert_eq!((stem("a.tar.gz"), stem("a.b.zip"), stem(".md")), ("a", "a.b", ".md"));
    }
}
