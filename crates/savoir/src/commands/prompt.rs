//! `savoir run` of a skill without tools: sends its prompt to a model or, with `--exec-fences`, runs its
//! code blocks.

use std::{
    cell::{OnceCell, RefCell},
    process::ExitCode,
    time::{Duration, Instant},
};

use savoir_engine::{
    RunError,
    approval::ExtraGrants,
    envelope::{Envelope, Stream},
    record::ErrorRecord,
    run::{Call, CallInput, plan, prompt_record},
    run_environment::RunEnvironment,
    structured::{self, Answer, Fence, HostInventory, PrepareError, fences_of, permission_lines},
};
use savoir_skill::version::SkillRef;
use serde_json::{Map, Value};

#[cfg(feature = "server")]
use super::answer::PromptCommand;
use super::run::RunContext;
use crate::{error::CommandError, lookup::Lookup, output};

/// Prepares the prompt, then sends it to a model or runs its code blocks.
pub(super) fn run(
    context: &RunContext<'_>,
    pairs: &[(String, String)],
    exec_fences: bool,
    run_env: &RunEnvironment,
    extra: &ExtraGrants,
) -> Result<ExitCode, CommandError> {
    let skill = &context.loaded_skill.skill;
    let inputs = match structured::inputs_from_pairs(pairs) {
        Ok(inputs) => inputs,
        Err(error) => return Err(RunError::call(error.code(), &error).into()),
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let lookup = OnceCell::new();
    let installed = |reference: &SkillRef| {
        let lookup = lookup.get_or_init(|| Lookup::open(None).ok());
        installed_version(reference, lookup.as_ref()?)
    };
    let host = HostInventory { path: &path, installed: &installed, mcp_servers: None };
    let folder = context.loaded_skill.folder.as_deref().map(|folder| folder.to_string_lossy());
    // Without permissions and without code to run, there is nothing to announce.
    let quiet = !exec_fences && skill.permissions.is_empty();
    // The user may add permissions to those that the skill declares.
    let added = extra.permissions();
    let effective: Vec<_> = skill.permissions.iter().chain(&added).cloned().collect();
    let mut announce = |_: &[String]| {
        for line in permission_lines(&effective).iter().filter(|_| !quiet) {
            output::note(line);
        }
    };
    let prepared = structured::prepare(skill, &inputs, folder.as_deref(), host, &mut announce);
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error @ (PrepareError::Inputs(_) | PrepareError::RepeatedInput(_))) => {
            let wrong = RunError::call(error.code(), &error);
            return Err(wrong.with_hint("pass an input with --input NAME=VALUE").into());
        }
        Err(error) => return Err(RunError::failed(error.code(), &error).into()),
    };
    for warning in &prepared.warnings {
        output::note(warning);
    }
    if !exec_fences {
        return put_to_model(context, &inputs, folder.as_deref());
    }
    let fences = match fences_of(&skill.body, &prepared.prompt, None) {
        Ok(fences) => fences,
        Err(error) => return context.refuse(None, RunError::refused(error.code(), error)),
    };
    run_fences(context, &fences, &prepared.inputs, run_env, extra)
}

#[cfg(not(feature = "server"))]
fn put_to_model(
    _: &RunContext<'_>,
    _: &Map<String, Value>,
    _: Option<&str>,
) -> Result<ExitCode, CommandError> {
    Err(CommandError::not_built_in("asking a model"))
}

/// Sends the prompt to a model and records the run.
#[cfg(feature = "server")]
fn put_to_model(
    context: &RunContext<'_>,
    inputs: &Map<String, Value>,
    directory: Option<&str>,
) -> Result<ExitCode, CommandError> {
    context.warn_of_text();
    let (skill, model, form) = (&context.loaded_skill.skill, context.model(), context.form());
    let mut record = prompt_record(context.loaded_skill);
    let started = Instant::now();
    let command =
        PromptCommand { skill, inputs, directory, model, form, failure: RefCell::default() };
    let ended = command.run();
    record.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    record.error = command.failure.take().or_else(|| {
        let error = ended.as_ref().err()?;
        let code = error.code().unwrap_or_default().into_owned();
        Some(ErrorRecord { code, message: error.to_string() })
    });
    record.success = record.error.is_none();
    context.store_record(&mut record);
    ended
}

fn run_fences(
    context: &RunContext<'_>,
    fences: &[Fence],
    inputs: &Map<String, Value>,
    run_env: &RunEnvironment,
    extra: &ExtraGrants,
) -> Result<ExitCode, CommandError> {
    if fences.is_empty() {
        return Err(RunError::call("no-code", "the skill has no code block that can be run")
            .with_hint("mark blocks as bash, sh, python or node")
            .into());
    }
    let declared = context.loaded_skill.skill.outputs.as_ref();
    let mut printed = Vec::new();
    let mut took = Duration::ZERO;
    for fence in fences {
        let call = Call {
            loaded_skill: context.loaded_skill,
            tool: fence.interpreter,
            input: CallInput::Code { fence: fence.clone(), inputs: inputs.clone() },
            run_env,
            mode: context.mode(),
            extra,
        };
        // The answer is the whole standard output. If the skill declares outputs, it is printed only
        // after it was validated.
        let collect = |stream: Stream, bytes: &[u8]| {
            if stream == Stream::Stdout {
                printed.extend_from_slice(bytes);
            }
            if stream == Stream::Stderr || declared.is_none() {
                context.forward_output(stream, bytes);
            }
        };
        let finished = match plan(&call) {
            Ok(plan) => context.run_quietly(context.within_timeout(plan), collect)?,
            Err(error) => return context.refuse(Some(fence.interpreter), error),
        };
        took += Duration::from_millis(finished.envelope.duration_ms);
        if !finished.envelope.success {
            if declared.is_some() {
                context.forward_output(Stream::Stdout, &printed);
            }
            return context.print_failed(&finished);
        }
    }
    let printed = String::from_utf8_lossy(&printed);
    let printed = printed.trim_end();
    let answer = match declared {
        None => Answer::Text(printed.to_owned()),
        Some(declared) => structured::validate_output(declared, printed)
            .map_err(|error| RunError::failed(error.code(), &error))?,
    };
    match answer {
        Answer::Json(value) if context.is_json() => output::json(&Envelope::returned(value, took))?,
        Answer::Json(value) => output::json(&value)?,
        _ if context.is_json() => output::json(&Envelope::returned(printed.into(), took))?,
        // It was printed while the code ran.
        _ if declared.is_none() => {}
        _ => output::content(&format!("{printed}\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The version of an installed skill, preferably one that the reference allows.
fn installed_version(reference: &SkillRef, lookup: &Lookup) -> Option<String> {
    let in_range = lookup.candidates(&reference.to_string()).into_iter().next();
    let found = in_range.or_else(|| lookup.candidates(&reference.name).into_iter().next())?;
    Some(found.version.unwrap_or_else(|| "no version".to_owned()))
}
