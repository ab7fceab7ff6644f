//! Formats the scan findings of a registry as text.

use serde_json::Value;

use crate::output;

/// Maximum number of findings that are printed.
pub(crate) const MAX_PRINTED_FINDINGS: usize = 10;

/// A finding in one escaped line, whatever keys the registry uses: location, rule, message and fix.
pub(crate) fn line(finding: &Value) -> String {
    let [file, at, rule, message, fix] = [
        finding_text(finding, &["file", "path", "where"]),
        finding_text(finding, &["line"]),
        finding_text(finding, &["rule", "code", "id", "rule_id"]),
        finding_text(finding, &["message", "title", "description"]),
        finding_text(finding, &["fix"]),
    ];
    let place = join_non_empty([file, at], ":");
    let words = join_non_empty([place, rule, message], ": ");
    let line = match (words.is_empty(), fix.is_empty()) {
        (true, _) => finding.to_string(),
        (false, true) => words,
        (false, false) => format!("{words}; {fix}"),
    };
    output::cell(&line).into_owned()
}

/// The first findings as lines, and the number of the others.
pub(crate) fn lines(findings: &[Value], line: impl Fn(&Value) -> String) -> Vec<String> {
    let says_something = |finding: &&Value| finding.as_object().is_none_or(|keys| !keys.is_empty());
    limit_lines(findings.iter().filter(says_something).map(line).collect(), "see --json")
}

/// The first lines, and the number of the others.
pub(crate) fn limit_lines(mut lines: Vec<String>, way: &str) -> Vec<String> {
    let more = lines.len().saturating_sub(MAX_PRINTED_FINDINGS);
    lines.truncate(MAX_PRINTED_FINDINGS);
    lines.extend((more > 0).then(|| format!("and {more} more: {way}")));
    lines
}

/// The value of the first of these keys that is not empty.
pub(crate) fn finding_text(finding: &Value, keys: &[&str]) -> String {
    let text = |key: &&str| match finding.get(*key)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    keys.iter().filter_map(text).find(|text| !text.is_empty()).unwrap_or_default()
}

fn join_non_empty<const N: usize>(parts: [String; N], by: &str) -> String {
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(by)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn findings_of_any_shape() {
        let ours = json!({"rule": "r", "file": "a.py", "line": 3, "message": "It\u{1b}.", "fix": "Do not."});
        assert_eq!(line(&ours), "a.py:3: r: It\\u{1b}.; Do not.");
        let other = json!({"severity": "high", "code": "S1", "message": "It deletes files.", "path": "a.py"});
        assert_eq!(line(&other), "a.py: S1: It deletes files.");
        assert_eq!(line(&json!("plain")), "\"plain\"");
        assert_eq!(line(&json!({"line": [1], "rule": null})), "{\"line\":[1],\"rule\":null}");
    }

    #[test]
    fn many_are_counted() {
        let all = vec![json!("x"); MAX_PRINTED_FINDINGS + 2];
        let printed = lines(&all, line);
        assert_eq!(
            (printed.len(), &*printed[MAX_PRINTED_FINDINGS]),
            (MAX_PRINTED_FINDINGS + 1, "and 2 more: see --json")
        );
        assert_eq!(lines(&all[..MAX_PRINTED_FINDINGS], line).len(), MAX_PRINTED_FINDINGS);
        assert!(lines(&[json!({})], line).is_empty());
    }
}
