//! The shapes of the skills of NVIDIA: lists of questions with a ground truth, prompts with the
//! skills and resources that they need, and `cases`.

use super::{
    Format,
    case_reader::{CaseKeys, Reader},
};
use crate::json::Node;

pub(super) const FORMAT: Format = Format {
    id: "nvidia",
    detect: |root| {
        let is_question =
            |case: &Node| case.get("question").is_some() || case.get("expects").is_some();
        root.get("cases").is_some()
            || is_question(root)
            || root.items().is_some_and(|items| items.first().is_some_and(is_question))
    },
    read,
};

const KEYS: CaseKeys = CaseKeys {
    id: &["id", "name", "case_id"],
    prompt: &["question", "prompt", "query", "task", "input"],
    expected: &["ground_truth", "expected_output", "expected"],
    assertions: &["expected_behavior", "expects", "assertions", "expectations"],
    files: &["resources", "files"],
    expected_skill: &["expected_skill", "skills"],
};

fn read(root: &Node, reader: &mut Reader<'_>) {
    reader.skill_name(root, "skill_name");
    match root.get("cases") {
        Some(list) => reader.cases(list, &KEYS),
        None if root.items().is_some() => reader.cases(root, &KEYS),
        None => reader.case(root, 0, &KEYS),
    }
}
