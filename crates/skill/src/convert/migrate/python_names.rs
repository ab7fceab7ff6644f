//! Turns texts into valid Python names.

use crate::dialect::gaia::is_identifier;

/// Python keywords, which cannot be names.
const KEYWORDS: [&str; 36] = [
    "False", "None", "True", "__debug__", "and", "as", "assert", "async", "await", "break",
    "class", "continue", "def", "del", "elif", "else", "except", "finally", "for", "from",
    "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise",
    "return", "try", "while", "with", "yield",
];

/// Names that `tools.py` itself uses, so that no generated function may have them.
pub(super) const RESERVED_MODULE_NAMES: [&str; 11] = [
    "tool", "str", "int", "float", "bool", "list", "dict", "importlib", "os", "sys", "annotations",
];

/// Makes a valid Python name from any text that differs from the `taken` names; a valid name stays
/// unchanged. The result never begins with an underscore, because the helpers of the module do.
pub(super) fn python_name(text: &str, kind: &str, reserved: &[&str], taken: &[String]) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let word: String = text.chars().map(plain).collect();
    let mut name = word.trim_start_matches('_').to_owned();
    if !is_identifier(text) {
        name.truncate(name.trim_end_matches('_').len());
    }
    if name.is_empty() {
        kind.clone_into(&mut name);
    } else if name.starts_with(|c: char| c.is_ascii_digit()) {
        name = format!("{kind}_{name}");
    }
    if KEYWORDS.contains(&name.as_str()) || reserved.contains(&name.as_str()) {
        name.push('_');
    }
    // There is always a free number, because there are more candidates than taken names.
    let numbered = (2..taken.len() + 3).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| !taken.contains(name)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_stay_and_others_become_good() {
        let name =
            |text: &str| python_name(text, "tool", &RESERVED_MODULE_NAMES, &["search".into()]);
        for (text, expected) in [
            ("word_count", "word_count"),
            ("web-search", "web_search"),
            ("search", "search_2"),
            ("class", "class_"),
            ("tool", "tool_"),
            ("list", "list_"),
            ("2fa", "tool_2fa"),
            ("__builtins__", "builtins__"),
            ("_", "tool_"),
            ("", "tool_"),
            ("größe!", "gr__e"),
            ("x(): pass\nimport os #", "x____pass_import_os"),
            ("keep_", "keep_"),
        ] {
            assert_eq!(name(text), expected, "{text}");
            assert!(is_identifier(&name(text)));
        }
    }
}
