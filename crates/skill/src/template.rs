//! Finds and replaces placeholders in the body of a skill.
//!
//! All placeholders are replaced in one pass, so a value that looks like a placeholder is not
//! replaced again.

use std::{borrow::Cow, ops::Range};

use memchr::memmem;

pub mod claude;

/// The syntax of placeholders in double braces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grammar {
    /// `\{\{([a-zA-Z0-9_-]+)\}\}`: the placeholders that Agent Flow Lite replaces.
    AgentFlow,
    /// `\{\{(\w+)\}\}` with letters of any script: the placeholders that Agent Flow Lite checks
    /// when a skill is saved.
    AgentFlowCheck,
    /// `\{\{\s*([a-zA-Z_][a-zA-Z0-9_-]*)\s*\}\}`: the placeholders of skillrt.
    Skillrt,
}

/// A placeholder in a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Placeholder {
    /// The byte range of the placeholder, including the braces.
    pub span: Range<usize>,
    /// The name inside the braces.
    pub name: String,
}

/// Finds all placeholders, from left to right.
pub fn scan(text: &str, grammar: Grammar) -> Vec<Placeholder> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = find_open(text, from) {
        if let Some((name, end)) = grammar.read(text, start + 2) {
            found.push(Placeholder { span: start..end, name: name.to_owned() });
            from = end;
        } else {
            from = start + 1;
        }
    }
    found
}

fn find_open(text: &str, from: usize) -> Option<usize> {
    memmem::find(text.as_bytes().get(from..)?, b"{{").map(|at| from + at)
}

/// Replaces each placeholder by the result of `value` for its name; `None` leaves it unchanged.
pub fn substitute<'a>(
    text: &str,
    grammar: Grammar,
    mut value: impl FnMut(&str) -> Option<Cow<'a, str>>,
) -> String {
    let mut result = String::with_capacity(text.len());
    let mut copied = 0;
    for placeholder in scan(text, grammar) {
        let Some(value) = value(&placeholder.name) else { continue };
        result.push_str(text.get(copied..placeholder.span.start).unwrap_or_default());
        result.push_str(&value);
        copied = placeholder.span.end;
    }
    result.push_str(text.get(copied..).unwrap_or_default());
    result
}

/// Replaces OpenClaw's `{baseDir}` by the directory of the skill.
pub fn substitute_base_dir(text: &str, directory: &str) -> String {
    text.replace("{baseDir}", directory)
}

impl Grammar {
    /// Parses the name and the closing braces at `at`. Returns the name and the end of the
    /// placeholder.
    fn read(self, text: &str, at: usize) -> Option<(&str, usize)> {
        let inside = text.get(at..)?;
        let before = self.skip_blanks(inside);
        let name_length = before.find(|c| !self.is_in_name(c)).unwrap_or(before.len());
        let (name, after) = before.split_at_checked(name_length)?;
        let rest = self.skip_blanks(after).strip_prefix("}}")?;
        self.is_name(name).then_some((name, text.len() - rest.len()))
    }

    fn skip_blanks(self, text: &str) -> &str {
        if self == Self::Skillrt { text.trim_start() } else { text }
    }

    fn is_in_name(self, c: char) -> bool {
        match self {
            Self::AgentFlowCheck => is_word(c),
            Self::AgentFlow | Self::Skillrt => c.is_ascii_alphanumeric() || matches!(c, '_' | '-'),
        }
    }

    fn is_name(self, name: &str) -> bool {
        match self {
            Self::AgentFlow | Self::AgentFlowCheck => !name.is_empty(),
            Self::Skillrt => name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'),
        }
    }
}

/// Whether a character matches `\w` of a Unicode regular expression.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str, grammar: Grammar) -> Vec<String> {
        scan(text, grammar).into_iter().map(|placeholder| placeholder.name).collect()
    }

    #[test]
    fn each_grammar_takes_its_own_names() {
        let text = "{{a}} {{ b }} {{c-d}} {{größe}} {{1x}} {{}} {{e.f}} {{g}";
        assert_eq!(names(text, Grammar::AgentFlow), ["a", "c-d", "1x"]);
        assert_eq!(names(text, Grammar::AgentFlowCheck), ["a", "größe", "1x"]);
        assert_eq!(names(text, Grammar::Skillrt), ["a", "b", "c-d"]);
        assert_eq!(names("{{\n\tx\u{a0}}}", Grammar::Skillrt), ["x"]);
        assert_eq!(names("{{x y}} {{ - }}", Grammar::Skillrt), [""; 0]);
    }

    #[test]
    fn braces_around_a_placeholder() {
        for text in ["{{{a}}}", "{{ {{a}}", "{{b {{a}} }}", "{{{{a}}}}"] {
            assert_eq!(names(text, Grammar::AgentFlow), ["a"], "{text}");
        }
        assert_eq!(scan("é{{a}}", Grammar::Skillrt)[0].span, 2..7);
    }

    #[test]
    fn one_pass_only() {
        let value = |name: &str| match name {
            "a" => Some(Cow::Borrowed("{{b}}")),
            "b" => Some(Cow::Borrowed("B")),
            _ => None,
        };
        assert_eq!(substitute("{{a}}{{b}}{{c}}", Grammar::AgentFlow, value), "{{b}}B{{c}}");
        assert_eq!(substitute("{{{a}}}", Grammar::AgentFlow, value), "{{{b}}}");
        assert_eq!(substitute("", Grammar::Skillrt, value), "");
        assert_eq!(substitute("ä{{ b }}ö", Grammar::Skillrt, value), "äBö");
    }

    #[test]
    fn base_dir() {
        assert_eq!(substitute_base_dir("run {baseDir}/x {other}", "/s"), "run /s/x {other}");
    }
}
