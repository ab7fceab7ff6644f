//! Prepares a skillrt skill in the order of its specification: inputs, permissions, programs, other
//! skills, MCP servers, then the prompt. Nothing runs before all checks pass.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fmt,
};

use savoir_skill::{
    Skill,
    dialect::skillrt::{self, SkillrtRunError},
    render::{self, RenderError},
    version::SkillRef,
};
use serde_json::{Map, Value};
use thiserror::Error;

mod dependencies;
mod fences;
mod output;
mod permissions;
mod programs;
mod schema_cost;

pub use dependencies::{UnmetDependency, find_unknown_servers, find_unmet_skills};
pub use fences::{Fence, FenceError, fences, fences_of};
pub use output::{Answer, OutputError, Violation, json_text, validate_answer, validate_output};
pub use permissions::permission_lines;
pub use programs::{find_program, missing_programs};

/// The programs, skills and servers of this machine.
#[derive(Clone, Copy)]
pub struct HostInventory<'a> {
    /// The search path for programs, as in `PATH`.
    pub path: &'a OsStr,
    /// The version of an installed skill, the best one for the reference.
    pub installed: &'a dyn Fn(&SkillRef) -> Option<String>,
    /// The MCP servers that can be reached; `None` if unknown.
    pub mcp_servers: Option<&'a BTreeSet<String>>,
}

impl fmt::Debug for HostInventory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("path", &self.path)
            .field("mcp_servers", &self.mcp_servers)
            .finish_non_exhaustive()
    }
}

/// A skill that is ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The body with the values of the inputs filled in.
    pub prompt: String,
    /// The inputs, with their defaults.
    pub inputs: Map<String, Value>,
    /// Sentences that describe the permissions of the skill.
    pub permissions: Vec<String>,
    /// Warnings that do not prevent the run.
    pub warnings: Vec<String>,
}

/// Why a skill is not ready.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PrepareError {
    /// The skill is for another runtime.
    #[error(transparent)]
    Runtime(SkillrtRunError),
    /// All inputs that are missing, unknown or of the wrong type.
    #[error("{}", sentences(.0))]
    Inputs(Vec<RenderError>),
    /// An input was given twice.
    #[error("the input `{0}` is given more than once")]
    RepeatedInput(String),
    /// The names of all programs that are not on `PATH`.
    #[error("these programs are not on PATH: {}", .0.join(", "))]
    MissingPrograms(Vec<String>),
    /// All required skills that are not installed, or not in a matching version.
    #[error("skills that it depends on are missing: {}", sentences(.0))]
    Skills(Vec<UnmetDependency>),
}

fn sentences(parts: &[impl fmt::Display]) -> String {
    parts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl PrepareError {
    /// The stable identifier of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Runtime(refusal) => refusal.code(),
            Self::Inputs(problems) => problems.first().map_or("invalid-input", RenderError::code),
            Self::RepeatedInput(_) => "invalid-input",
            Self::MissingPrograms(_) => "missing-tools",
            Self::Skills(_) => "missing-skills",
        }
    }
}

/// Parses inputs that were typed as `name=value`. Rendering converts the texts to the types of the
/// inputs.
pub fn inputs_from_pairs(pairs: &[(String, String)]) -> Result<Map<String, Value>, PrepareError> {
    let mut seen = BTreeMap::new();
    for (name, text) in pairs {
        if seen.insert(name, text).is_some() {
            return Err(PrepareError::RepeatedInput(name.clone()));
        }
    }
    Ok(pairs.iter().map(|(name, text)| (name.clone(), Value::from(text.as_str()))).collect())
}

/// Checks what a skill needs of this machine, whatever its inputs are: its runtime, and programs on
/// `path`.
pub fn check_ready(skill: &Skill, path: &OsStr) -> Result<(), PrepareError> {
    skillrt::check_runtime(skill).map_err(PrepareError::Runtime)?;
    let missing = missing_programs(&skill.requirements.programs, path);
    if missing.is_empty() { Ok(()) } else { Err(PrepareError::MissingPrograms(missing)) }
}

/// Checks that a skill is ready to run, and renders its prompt.
///
/// Calls `announce` with the permissions as soon as the inputs are valid, so that the user sees
/// them even if a later check fails. `directory` is the skill's folder.
pub fn prepare(
    skill: &Skill,
    inputs: &Map<String, Value>,
    directory: Option<&str>,
    host: HostInventory<'_>,
    announce: &mut dyn FnMut(&[String]),
) -> Result<Prepared, PrepareError> {
    skillrt::check_runtime(skill).map_err(PrepareError::Runtime)?;
    let problems = render::problems(skill, inputs);
    if !problems.is_empty() {
        return Err(PrepareError::Inputs(problems));
    }
    let permissions = permission_lines(&skill.permissions);
    announce(&permissions);
    check_ready(skill, host.path)?;
    let unmet = find_unmet_skills(&skill.requirements.skills, host.installed);
    if !unmet.is_empty() {
        return Err(PrepareError::Skills(unmet));
    }
    let warnings = host.mcp_servers.map_or_else(Vec::new, |known| {
        let unknown = find_unknown_servers(&skill.requirements.mcp_servers, known);
        unknown.iter().map(|name| format!("the MCP server `{name}` is not known here")).collect()
    });
    let prompt = render::render(skill, inputs, directory)
        .map_err(|error| PrepareError::Inputs(vec![error]))?;
    let inputs = render::values(skill, inputs);
    Ok(Prepared { prompt, inputs, permissions, warnings })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use savoir_skill::Dialect;
    use serde_json::json;

    use super::*;
    use crate::testing::skill;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn text(extra: &str) -> String {
        format!(
            "---\nname: a\nversion: 1.0.0\ndescription: d\ninputs:\n  - {{name: n, type: number, required: true}}\n  \
             - {{name: u, type: url, required: true}}\n  - {{name: f, type: file}}\n{extra}---\n{{{{ n }}}} {{{{ u }}}}{{{{ f }}}}\n"
        )
    }

    fn run(text: &str, inputs: &Value) -> (Result<Prepared, PrepareError>, bool) {
        let announced = Cell::new(false);
        let installed = |wanted: &SkillRef| (wanted.name == "there").then(|| "1.4.0".to_owned());
        let servers = BTreeSet::from(["known".to_owned()]);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let host =
            HostInventory { path: &path, installed: &installed, mcp_servers: Some(&servers) };
        let skill = skill(text, Dialect::SKILLRT);
        let result = prepare(&skill, &map(inputs), None, host, &mut |_| announced.set(true));
        (result, announced.get())
    }

    #[test]
    fn all_input_problems_are_reported_first() {
        let inputs = json!({"other": 1, "n": "seven", "f": "/no/such/file"});
        let (result, announced) = run(&text("dependencies: {tools: [no-such-program]}\n"), &inputs);
        let error = result.unwrap_err();
        assert!(!announced);
        assert_eq!(
            error.to_string(),
            "the skill has no input `other`; its inputs: n, u, f; \
             the input `n` must be a number such as 3 or 0.5; \
             Missing required input: 'u'; \
             the input `f` must be the path of a file that can be read"
        );
        assert_eq!(error.code(), "unknown-input");
    }

    #[test]
    fn programs_then_skills_then_servers() {
        let good = json!({"n": 3, "u": "https://x.org"});
        let all = "dependencies:\n  tools: [sh, no-such-program, ./x]\n  skills: [gone]\n  mcp-servers: [known, far]\n";
        let (result, announced) = run(&text(all), &good);
        let error = result.unwrap_err();
        assert_eq!(
            error,
            PrepareError::MissingPrograms(vec!["no-such-program".into(), "./x".into()])
        );
        assert_eq!(error.code(), "missing-tools");
        assert!(announced);
        let skills = "dependencies: {tools: [sh], skills: [there, gone, there@^2]}\n";
        let error = run(&text(skills), &good).0.unwrap_err();
        assert_eq!(
            error.to_string(),
            "skills that it depends on are missing: gone is not installed; \
             there@^2 is needed, 1.4.0 is installed"
        );
        let servers = "dependencies: {skills: [there@^1], mcp-servers: [known, far]}\n";
        let ready = run(&text(servers), &good).0.unwrap();
        assert_eq!(ready.prompt, "3 https://x.org\n");
        assert_eq!(ready.warnings, ["the MCP server `far` is not known here"]);
    }

    #[test]
    fn a_skill_for_a_later_runtime_is_refused() {
        let error = run(&text("runtime: {min-version: 9.0.0}\n"), &json!({})).0.unwrap_err();
        assert_eq!(error.code(), "runtime-too-new");
    }

    #[test]
    fn typed_texts_are_taken_once() {
        let pairs = |names: &[&str]| {
            names.iter().map(|name| ((*name).to_owned(), "1".to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(Value::from(inputs_from_pairs(&pairs(&["a"])).unwrap()), json!({"a": "1"}));
        assert_eq!(inputs_from_pairs(&pairs(&["a", "a"])).unwrap_err().code(), "invalid-input");
    }
}
