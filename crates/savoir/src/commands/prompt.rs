//! `savoir run` of a skill without tools: its prompt, and its code blocks if that is asked for.

use std::process::ExitCode;

use savoir_engine::{
    Home, RunError,
    approval::Widening,
    ground::Ground,
    run::{Call, Given, plan},
    structured::{self, Answer, Fence, Host, PrepareError, fences_of},
};
use savoir_skill::version::SkillRef;
use serde_json::{Map, Value};

use super::run::Door;
use crate::{error::CommandError, load, output, target};

/// Prepares the prompt and prints it, or runs its code blocks.
pub(super) fn run(
    door: &Door<'_>,
    pairs: &[(String, String)],
    exec_fences: bool,
    ground: &Ground,
    extra: &Widening,
) -> Result<ExitCode, CommandError> {
    let skill = &door.subject.skill;
    let inputs = match structured::inputs_from_pairs(pairs) {
        Ok(inputs) => inputs,
        Err(error) => return door.fail(&RunError::call(error.code(), &error)),
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = |reference: &SkillRef| installed_version(reference, door.home());
    let host = Host { path: &path, installed: &installed, mcp_servers: None };
    let folder = door.subject.folder.as_deref().map(|folder| folder.to_string_lossy());
    let mut announce = |lines: &[String]| {
        for line in lines {
            output::note(line);
        }
    };
    let prepared = structured::prepare(skill, &inputs, folder.as_deref(), host, &mut announce);
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error @ (PrepareError::Inputs(_) | PrepareError::RepeatedInput(_))) => {
            return door.fail(&RunError::call(error.code(), &error));
        }
        Err(error) => return door.fail(&RunError::failed(error.code(), &error)),
    };
    for warning in &prepared.warnings {
        output::note(warning);
    }
    if !exec_fences {
        return door.print_prompt(&prepared.prompt);
    }
    let fences = match fences_of(&skill.body, &prepared.prompt, None) {
        Ok(fences) => fences,
        Err(error) => return door.turn_away(None, &RunError::refused(error.code(), error)),
    };
    run_fences(door, &fences, &inputs, ground, extra)
}

fn run_fences(
    door: &Door<'_>,
    fences: &[Fence],
    inputs: &Map<String, Value>,
    ground: &Ground,
    extra: &Widening,
) -> Result<ExitCode, CommandError> {
    if fences.is_empty() {
        let error = RunError::call("no-code", "the skill has no code block that can be run")
            .way_out("mark blocks as bash, sh, python or node");
        return door.fail(&error);
    }
    let declared = door.subject.skill.outputs.as_ref();
    let wants_json = declared.is_some_and(|outputs| outputs.kind == "json");
    let mut printed = String::new();
    for fence in fences {
        let call = Call {
            subject: door.subject,
            tool: fence.interpreter,
            given: Given::Code { fence: fence.clone(), inputs: inputs.clone() },
            ground,
            mode: "Global",
            extra,
        };
        let envelope = match plan(&call) {
            Ok(plan) => door.run_quietly(plan)?.envelope,
            Err(error) => return door.turn_away(Some(fence.interpreter), &error),
        };
        if !envelope.success {
            return door.print(&envelope);
        }
        // The output has both streams and may be cut; what a program answers is its standard output.
        match &envelope.parsed {
            Some(value) if wants_json => printed.push_str(&value.to_string()),
            _ => printed.push_str(&envelope.output),
        }
        printed.push('\n');
    }
    let Some(declared) = declared else { return door.print_prompt(&printed) };
    match structured::validate_output(declared, printed.trim_end()) {
        Ok(Answer::Json(value)) => door.print_answer(value),
        Ok(_) => door.print_prompt(&printed),
        Err(error) => door.fail(&RunError::failed(error.code(), &error)),
    }
}

/// The version of an installed skill.
fn installed_version(reference: &SkillRef, home: &Home) -> Option<String> {
    let mut folders = target::shelves(home).into_iter().map(|shelf| shelf.join(&reference.name));
    let folder = folders.find(|folder| folder.is_dir())?;
    let loaded = load::load(&folder, None).ok()?;
    loaded.reading.skill.version
}
