//! Implements the checks that skillrt makes before it runs a skill.

use serde_json::Value;
use thiserror::Error;

use super::RUNTIME_LEVEL;
use crate::{skill::Skill, version::parse_version};

/// Runtime families of the specification; the first is the one that is meant when none is named.
pub(super) const RUNTIME_TYPES: [&str; 3] = [RUNNABLE[0], RUNNABLE[1], MCP_TOOL];

/// The families whose skills can be run.
pub(super) const RUNNABLE: [&str; 2] = ["markdown-skill", ANTHROPIC_SKILL];

/// The family of skills that stand for one tool of an MCP server.
pub(super) const MCP_TOOL: &str = "mcp-tool";

/// The family of skills that follow the conventions of Anthropic's Agent SDK.
const ANTHROPIC_SKILL: &str = "anthropic-skill";

/// Whether a skill follows the conventions of Anthropic's Agent SDK.
pub(crate) fn is_anthropic_skill(skill: &Skill) -> bool {
    let runtime = skill.requirements.runtime.as_ref();
    runtime.and_then(|runtime| runtime.get("type")?.as_str()) == Some(ANTHROPIC_SKILL)
}

/// Why a skill can be read but not run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SkillrtRunError {
    /// It is for another family of runtimes.
    #[error("it is for the unknown runtime `{0}`; expected {known}", known = RUNNABLE.join(" or "))]
    UnknownRuntime(String),
    /// It is a name for one MCP tool, which only a client of that server can call.
    #[error("it stands for a tool of an MCP server, and Savoir calls no MCP servers")]
    McpTool,
    /// It is for a later runtime.
    #[error("it needs runtime {0}, this is {RUNTIME_LEVEL}")]
    RuntimeTooNew(String),
    /// Programs are not on `PATH`.
    #[error("these programs are not on PATH: {}", .0.join(", "))]
    MissingTools(Vec<String>),
}

impl SkillrtRunError {
    /// The stable identifier of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownRuntime(_) => "unknown-runtime",
            Self::McpTool => "mcp-tool",
            Self::RuntimeTooNew(_) => "runtime-too-new",
            Self::MissingTools(_) => "missing-tools",
        }
    }
}

/// Checks that this runtime can run the skill.
pub fn check_runtime(skill: &Skill) -> Result<(), SkillrtRunError> {
    let wanted = |key| skill.requirements.runtime.as_ref()?.get(key).and_then(Value::as_str);
    if let Some(family) = wanted("type").filter(|family| !RUNTIME_TYPES.contains(family)) {
        return Err(SkillrtRunError::UnknownRuntime(family.to_owned()));
    }
    if wanted("type") == Some(MCP_TOOL) {
        return Err(SkillrtRunError::McpTool);
    }
    let smallest = wanted("min-version").and_then(|text| parse_version(text).ok());
    match (smallest, parse_version(RUNTIME_LEVEL)) {
        (Some(smallest), Ok(level)) if smallest > level => {
            Err(SkillrtRunError::RuntimeTooNew(smallest.to_string()))
        }
        _ => Ok(()),
    }
}

/// Checks that every program that the skill needs is there; `is_there` looks one up.
pub fn check_tools(skill: &Skill, is_there: impl Fn(&str) -> bool) -> Result<(), SkillrtRunError> {
    let mut missing: Vec<String> = Vec::new();
    for program in &skill.requirements.programs {
        if !missing.contains(program) && !is_there(program) {
            missing.push(program.clone());
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(SkillrtRunError::MissingTools(missing)) }
}

#[cfg(test)]
mod tests {
    use crate::{
        Dialect, Source,
        check::{Options, check},
        read_as,
    };

    /// The codes of the findings of a skillrt skill with this name and these fields.
    fn codes(name: &str, fields: &str) -> Vec<(&'static str, bool)> {
        let text =
            format!("---\nname: {name}\nversion: 1.0.0\ndescription: d\n{fields}---\nDo it.\n");
        let reading = read_as(Source::new(text), Dialect::SKILLRT, None);
        reading.diagnostics.iter().map(|found| (found.code, found.is_error())).collect()
    }

    /// The codes of the findings of `check`.
    fn checked(name: &str) -> Vec<&'static str> {
        let text = format!(
            "---\nname: {name}\nversion: 1.0.0\ndescription: Does it. Use when asked to.\n---\nDo it now.\n"
        );
        let options = Options { dialect: Some(Dialect::SKILLRT), ..Options::default() };
        let found = check(Source::new(text), None, &options).diagnostics;
        found.iter().map(|found| found.code).collect()
    }

    #[test]
    fn runtimes_that_cannot_be_run_are_reported() {
        for (runtime, found) in [
            ("markdown-skill", &[][..]),
            ("anthropic-skill", &[]),
            ("mcp-tool", &[("unknown-runtime", false)]),
            ("foo", &[("unknown-runtime", false)]),
        ] {
            assert_eq!(codes("a", &format!("runtime: {{type: {runtime}}}\n")), found, "{runtime}");
        }
    }

    #[test]
    fn names_that_are_no_folder_names_can_be_read() {
        for name in ["a/b", "\"a\\\\b\"", ".hid", "../evil", "\"..\""] {
            assert_eq!(codes(name, ""), [("name-not-kebab-case", false)], "{name}");
            assert_eq!(checked(name), ["unsafe-name"], "{name}");
        }
        assert_eq!(checked("PR_Review"), ["name-not-kebab-case"]);
        assert_eq!(codes("PR_Review", ""), [("name-not-kebab-case", false)]);
    }
}
