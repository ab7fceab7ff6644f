//! Defines the files of a new skill.

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Path relative to the skill's folder, with `/`.
    pub path: String,
    /// The content of the file.
    pub text: String,
}

impl NewFile {
    pub(crate) fn new(path: &str, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), text: text.into() }
    }
}

/// Makes a title from a name: `web-search` becomes `Web search`.
pub(crate) fn title(name: &str) -> String {
    let words = name.replace(['-', '_'], " ");
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
