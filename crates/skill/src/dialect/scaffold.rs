//! Files of a new skill.

/// A file to write, relative to the skill's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Relative path with `/`.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl NewFile {
    pub(crate) fn new(path: &str, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), text: text.into() }
    }
}

/// `web-search` becomes `Web search`.
pub(crate) fn title(name: &str) -> String {
    let words = name.replace(['-', '_'], " ");
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
