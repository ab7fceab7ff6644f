//! The examples in the documentation of the rules are their tests.

use super::*;

/// Rules about files that are not text; `shapes` tests them.
const RULES_WITHOUT_EXAMPLES: [&str; 2] = ["binary-program", "disguised-file"];

fn unescape(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\\u{") {
        let (hex, after) = after.split_once('}').unwrap();
        result.push_str(before);
        result.push(char::from_u32(u32::from_str_radix(hex, 16).unwrap()).unwrap());
        rest = after;
    }
    result + rest
}

/// The files of a section.
fn files(docs: &str, heading: &str) -> Vec<(String, String)> {
    let Some((_, section)) = docs.split_once(heading) else { return Vec::new() };
    let section = section.split("\n## ").next().unwrap();
    let mut files = Vec::new();
    let mut rest = section;
    while let Some((_, block)) = rest.split_once("````") {
        let (info, after) = block.split_once('\n').unwrap();
        let (text, after) = after.split_once("````").unwrap();
        let name = info.split(' ').find_map(|word| word.strip_prefix("file=")).unwrap();
        let text = if info.contains("escaped") { unescape(text) } else { text.to_owned() };
        files.push((name.to_owned(), text));
        rest = after;
    }
    files
}

fn report(docs: &str, heading: &str) -> Report {
    let files = files(docs, heading);
    assert!(!files.is_empty(), "{heading} is missing: {docs}");
    let files: Vec<(&str, &[u8])> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
    scan(&tree(&files))
}

#[test]
fn documented_examples_give_the_documented_findings() {
    for rule in all_rules().iter().filter(|rule| !RULES_WITHOUT_EXAMPLES.contains(&rule.id)) {
        let bad = report(&rule.docs(), "## Bad");
        assert!(ids(&bad).contains(&rule.id), "{}: bad example: {bad:#?}", rule.id);
        let good = report(&rule.docs(), "## Good");
        assert!(!ids(&good).contains(&rule.id), "{}: good example: {good:#?}", rule.id);
    }
}

#[test]
fn rules_are_sorted_and_documented() {
    assert!(all_rules().is_sorted_by_key(|rule| rule.id));
    for rule in all_rules() {
        assert!(!rule.why().is_empty() && !rule.fix().is_empty(), "{}", rule.id);
        assert!(super::super::rule(rule.id).is_some());
    }
    let blocking: Vec<&str> =
        all_rules().iter().filter(|rule| rule.blocks).map(|rule| rule.id).collect();
    assert_eq!(
        blocking,
        [
            "binary-program", "coin-mining", "decode-and-execute", "disguised-file",
            "download-and-execute", "exfiltration", "hidden-instructions", "hidden-text",
            "manual-payload", "reverse-shell",
        ],
        "only a short list may block"
    );
}
