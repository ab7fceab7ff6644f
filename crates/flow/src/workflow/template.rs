//! Inserts values into texts with placeholders: `{{path}}`.

use thiserror::Error;

use super::{limits, scope::Scope};

/// The error for a text that is too long after values are inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("Text is longer than {} MiB with its values", limits::MAX_TEXT_BYTES >> 20)]
pub struct TextTooLong;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TemplatePart<'a> {
    /// Literal text.
    Text(&'a str),
    /// `{{path}}`
    Placeholder {
        /// The placeholder with the braces.
        whole: &'a str,
        /// The path without the braces.
        path: &'a str,
    },
}

/// The number of bytes that all texts together may still take.
#[derive(Debug)]
pub(crate) struct TextBudget(usize);

impl Default for TextBudget {
    fn default() -> Self {
        Self(limits::MAX_TEXT_BYTES)
    }
}

impl TextBudget {
    /// Subtracts the length of a text; fails if there is not enough room.
    pub(crate) fn take(&mut self, text: &str) -> Result<(), TextTooLong> {
        self.0 = self.0.checked_sub(text.len()).ok_or(TextTooLong)?;
        Ok(())
    }
}

/// Inserts values. Placeholders without a value stay unchanged, and inserted values are not expanded
/// again.
pub fn fill(text: &str, scope: &Scope<'_>) -> Result<String, TextTooLong> {
    fill_within(text, scope, &mut TextBudget::default())
}

/// Inserts values into one of several texts that share a size budget.
pub(crate) fn fill_within(
    text: &str,
    scope: &Scope<'_>,
    budget: &mut TextBudget,
) -> Result<String, TextTooLong> {
    let mut filled = String::with_capacity(text.len());
    for part in parts(text) {
        let found = match part {
            TemplatePart::Text(text) => text.into(),
            TemplatePart::Placeholder { whole, path } => match scope.find(path) {
                Some(found) => found.text(),
                None => whole.into(),
            },
        };
        budget.take(&found)?;
        filled.push_str(&found);
    }
    Ok(filled)
}

/// The parts of a text, in order.
pub(crate) fn parts(text: &str) -> impl Iterator<Item = TemplatePart<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(path) = placeholder(rest) {
            let (whole, after) = rest.split_at(path.len() + 4);
            rest = after;
            return Some(TemplatePart::Placeholder { whole, path });
        }
        let (plain, after) = rest.split_at(next_placeholder(rest));
        rest = after;
        Some(TemplatePart::Text(plain))
    })
}

/// Returns the start of the next placeholder, or the end.
fn next_placeholder(text: &str) -> usize {
    let mut from = 0;
    while let Some(at) = text[from..].find("{{") {
        if placeholder(&text[from + at..]).is_some() {
            return from + at;
        }
        from += at + 1;
    }
    text.len()
}

/// Returns the path of the placeholder at the start of a text.
pub(crate) fn placeholder(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("{{")?;
    let is_end = |c: char| !(is_word(c) || c == '.');
    let (path, after) = inner.split_at(inner.find(is_end)?);
    (after.starts_with("}}") && is_path(path)).then_some(path)
}

/// Whether a text can be between the braces: words separated by single dots.
pub(crate) fn is_path(text: &str) -> bool {
    text.split('.').all(|word| !word.is_empty() && word.chars().all(is_word))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    fn filled(text: &str) -> String {
        let outputs = json!({"n-1": "{{input}}", "o": {"k": {"x": [1, "a"]}}});
        let variables = json!({"thème": "été"});
        let map = |value: &Value| value.as_object().cloned().unwrap();
        fill(text, &Scope::new("IN", &map(&outputs), &map(&variables))).unwrap()
    }

    #[test]
    fn values_are_inserted_once_and_unknown_placeholders_stay() {
        for (text, expected) in [
            ("a {{input}} b {{n-1.output}}", "a IN b {{input}}"),
            ("{{o.output.k}} {{o.output.k.x}}", r#"{"x":[1,"a"]} [1,"a"]"#),
            ("{{thème}}", "été"),
            ("{{n-1}} {{missing}} {{ input }}", "{{n-1}} {{missing}} {{ input }}"),
            ("{{{input}}}", "{IN}"),
            ("{{input}", "{{input}"),
            ("{{input..x}} {{.input}} {{}}", "{{input..x}} {{.input}} {{}}"),
            ("", ""),
        ] {
            assert_eq!(filled(text), expected, "{text}");
        }
    }

    #[test]
    fn filled_text_is_limited() {
        let (none, long) = (Map::new(), "x".repeat(1 << 20));
        let scope = Scope::new(&long, &none, &none);
        assert!(fill(&"{{input}}".repeat(4), &scope).is_ok());
        assert_eq!(fill(&"{{input}}".repeat(5), &scope), Err(TextTooLong));
    }

    proptest! {
        #[test]
        fn template_parts_join_to_the_text(text in "[{}a.é-]{0,40}|\\PC{0,40}") {
            let whole: String = parts(&text).map(|part| match part {
                TemplatePart::Text(text) => text,
                TemplatePart::Placeholder { whole, .. } => whole,
            }).collect();
            prop_assert_eq!(whole, text);
        }
    }
}
