//! Cases without a name of their format: a list of cases, or one case per file.

use super::{
    Format,
    case_reader::{CaseKeys, Reader},
};
use crate::json::Node;

pub(super) const FORMAT: Format = Format { id: "cases", detect: is_any_case, read };

const KEYS: CaseKeys = CaseKeys {
    id: &["id", "name"],
    prompt: &["prompt", "query", "task"],
    expected: &["expected_output", "ground_truth", "expected"],
    assertions: &["assertions", "expectations", "expected_behavior", "success_criteria"],
    must_not: &[],
    files: &["files"],
    expected_skill: &["expected_skill", "skills"],
};

fn is_any_case(root: &Node) -> bool {
    let is_case = |case: &Node| {
        let has = |keys: &[&str]| keys.iter().any(|key| case.get(key).is_some());
        has(KEYS.prompt) && has(KEYS.assertions)
    };
    // An empty list has no cases, whichever format it would be.
    is_case(root) || root.items().is_some_and(|items| items.first().is_none_or(is_case))
}

fn read(root: &Node, reader: &mut Reader<'_>) {
    if root.items().is_some() {
        reader.cases(root, &KEYS);
    } else {
        reader.case(root, 0, &KEYS, &[]);
    }
}
