//! The shapes of the skills of NVIDIA: lists of questions with a ground truth, `cases` of them, and
//! `expects`: a series of queries with checks, and the platforms that they need.

use super::{
    Format,
    case_reader::{CaseKeys, Reader},
};
use crate::json::Node;

pub(super) const FORMAT: Format = Format {
    id: "nvidia",
    detect: |root| {
        let is_question = |case: &Node| case.get("question").is_some();
        root.get("cases").is_some()
            || root.get("expects").is_some()
            || is_question(root)
            || root.items().is_some_and(|items| items.first().is_some_and(is_question))
    },
    read,
};

const KEYS: CaseKeys = CaseKeys {
    id: &["id", "name", "case_id"],
    prompt: &["question", "prompt", "query", "task", "input"],
    expected: &["ground_truth", "expected_output", "expected"],
    assertions: &["expected_behavior", "assertions", "expectations"],
    must_not: &["must_not"],
    files: &["files"],
    expected_skill: &["expected_skill", "skills"],
};

/// The `skills` beside these cases are installed together; no query says which of them is used.
const EXPECTS_KEYS: CaseKeys = CaseKeys {
    id: &["id", "name"],
    prompt: &["query", "prompt"],
    expected: &["expected_output"],
    assertions: &["checks"],
    must_not: &[],
    files: &["files"],
    expected_skill: &[],
};

fn read(root: &Node, reader: &mut Reader<'_>) {
    reader.skill_name(root, "skill_name");
    reader.skill_name(root, "skill");
    if let Some(list) = root.get("expects") {
        let requires = required(root);
        reader.cases_that_require(list, &EXPECTS_KEYS, &requires);
    } else if let Some(list) = root.get("cases") {
        reader.cases(list, &KEYS);
    } else if root.items().is_some() {
        reader.cases(root, &KEYS);
    } else {
        reader.case(root, 0, &KEYS, &[]);
    }
}

/// The platforms on which a series of queries runs, and what the author says about them.
fn required(root: &Node) -> Vec<String> {
    let platforms = root.get("resources").and_then(|resources| resources.get("platforms"));
    let platforms = platforms.map_or(&[][..], Node::members);
    let names: Vec<&str> = platforms.iter().map(|platform| platform.key.as_str()).collect();
    let mut requires = Vec::new();
    if !names.is_empty() {
        requires.push(format!("the platform {}", names.join(" or ")));
    }
    requires.extend(root.get("env").and_then(Node::text).map(str::to_owned));
    requires
}
