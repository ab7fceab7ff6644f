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

/// The description of a new skill, which the author replaces.
pub fn template_description(name: &str) -> String {
    format!("{TEMPLATE_START}{name}{TEMPLATE_END}")
}

const TEMPLATE_START: &str = "Describe what ";
const TEMPLATE_END: &str = " does. Use when the user asks for it.";

/// Sentences in the body of a new skill, which the author replaces.
const TEMPLATE_SENTENCES: [&str; 4] = [
    "Say which requests this skill is for.",
    "Say what to look at first.",
    "Say what to do with it.",
    "Say how to check the result.",
];

/// Whether a description is the one of a new skill.
pub(crate) fn is_template_description(text: &str) -> bool {
    text.starts_with(TEMPLATE_START) && text.ends_with(TEMPLATE_END)
}

/// Whether a line of a body is a sentence of a new skill.
pub(crate) fn is_template_line(line: &str) -> bool {
    let text =
        line.trim_start_matches(|c: char| c.is_ascii_digit() || " .-*".contains(c)).trim_end();
    TEMPLATE_SENTENCES.contains(&text)
}

/// Makes a title from a name: `web-search` becomes `Web search`.
pub(crate) fn title(name: &str) -> String {
    let words = name.replace(['-', '_'], " ");
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
