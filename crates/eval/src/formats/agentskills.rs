//! The format of agentskills.io, `evals/evals.json`, with the list of checks called `assertions`,
//! or `expectations` as Anthropic's skill-creator writes it.

use super::{Format, case_reader::CaseKeys};

pub(super) const FORMAT: Format = Format {
    id: "agentskills",
    detect: |root| root.get("evals").is_some(),
    read: |root, reader| {
        reader.skill_name(root, "skill_name");
        reader.known_keys(root, &["skill_name", "evals", "version", "description", "$schema"]);
        if let Some(list) = root.get("evals") {
            reader.cases(list, &KEYS);
        }
    },
};

/// Some authors write cases of other formats into `evals`, so their keys are known, too.
const KEYS: CaseKeys = CaseKeys {
    id: &["id", "name"],
    prompt: &["prompt", "question", "query", "task", "input"],
    expected: &["expected_output", "ground_truth", "expected"],
    assertions: &["assertions", "expectations", "expected_behavior", "expects"],
    must_not: &[],
    files: &["files"],
    expected_skill: &["expected_skill"],
};
