//! `savoir run` of a skill without tools: sends its prompt to a model or, with `--exec-fences`, runs its
//! code blocks.

use std::{
    cell::{OnceCell, RefCell},
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use savoir_engine::{
    RunError,
    approval::{ExtraGrants, shell_word},
    envelope::{Envelope, Stream},
    grant::effective_permissions,
    record::ErrorRecord,
    run::{Call, CallInput, plan, prompt_record},
    run_environment::RunEnvironment,
    structured::{
        self, Answer, Fence, HostInventory, OutputError, PrepareError, fences_of, permission_lines,
    },
};
use savoir_package::ledger::LedgerEntry;
use savoir_skill::{
    Dialect, Skill,
    dialect::skillrt::SkillrtRunError,
    name::is_unsafe_path_name,
    permission::{Domain, Level, Permission},
    skill::{InputKind, Mode},
    version::{SkillRef, parse_version},
};
use serde_json::{Map, Value};

#[cfg(feature = "server")]
use super::answer::PromptCommand;
use super::{record::Recorder, run::RunContext};
use crate::{error::CommandError, lookup::Lookup, output};

/// How a prompt is used.
#[derive(Clone, Copy)]
pub(super) enum Use<'a> {
    /// A model answers it.
    AskModel,
    /// Its code blocks are run, and what they use is recorded if there is a recorder.
    RunCode(Option<Recorder<'a>>),
}

/// The name of the code blocks in a recording.
const CODE_BLOCKS: &str = "code blocks";

/// Prepares the prompt, then sends it to a model or runs its code blocks.
pub(super) fn run(
    context: &RunContext<'_>,
    pairs: &[(String, String)],
    purpose: Use<'_>,
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
    let folder = context.loaded_skill.folder.as_deref();
    let installed = |reference: &SkillRef| {
        let lookup = lookup.get_or_init(|| Lookup::open(None).ok());
        let installed = lookup.as_ref().and_then(|lookup| installed_version(reference, lookup));
        let is_met = |version: &String| {
            parse_version(version).is_ok_and(|version| reference.range.matches(&version))
        };
        // A skill in the same folder counts, too, because repositories store skills side by side.
        let beside = || sibling_version(reference, folder?);
        installed.clone().filter(is_met).or_else(beside).or(installed)
    };
    let servers = mcp_servers(run_env);
    let host = HostInventory { path: &path, installed: &installed, mcp_servers: servers.as_ref() };
    let folder = folder.map(|folder| folder.to_string_lossy());
    // Without permissions and without code to run, only skillrt announces that there are none.
    let is_skillrt = skill.dialect == Dialect::SKILLRT && skill.mode == Mode::Structured;
    let quiet = matches!(purpose, Use::AskModel) && skill.permissions.is_empty() && !is_skillrt;
    let files = match purpose {
        Use::AskModel => Vec::new(),
        Use::RunCode(_) => passed_files(skill, &inputs),
    };
    // The user may add permissions to those that the skill declares.
    let readable = files.iter().map(|file| Permission {
        domain: Domain::Filesystem,
        level: Level::Read,
        scope: Some(file.display().to_string()),
    });
    let added = extra.permissions().into_iter().chain(readable);
    let own = match purpose {
        Use::AskModel => skill.permissions.clone(),
        // Code also has what its dialect grants without a declaration.
        Use::RunCode(_) => effective_permissions(skill, run_env),
    };
    let effective: Vec<_> = own.into_iter().chain(added).collect();
    let mut announce = |_: &[String]| {
        for line in permission_lines(&effective).iter().filter(|_| !quiet) {
            output::note(&format!("permissions: {line}"));
        }
    };
    let prepared = structured::prepare(skill, &inputs, folder.as_deref(), host, &mut announce);
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error @ (PrepareError::Inputs(_) | PrepareError::RepeatedInput(_))) => {
            let wrong = RunError::call(error.code(), &error);
            return Err(wrong.with_hint("pass an input with --input NAME=VALUE").into());
        }
        Err(error) => {
            let failed = RunError::cannot_start(error.code(), &error);
            return Err(match hint(&error) {
                Some(hint) => failed.with_hint(hint),
                None => failed,
            }
            .into());
        }
    };
    for warning in &prepared.warnings {
        output::note(warning);
    }
    let Use::RunCode(recorder) = purpose else {
        return put_to_model(context, &inputs, folder.as_deref());
    };
    let fences = match fences_of(&skill.body, &prepared.prompt, None) {
        Ok(fences) => fences,
        Err(error) => {
            let path = shell_word(&context.loaded_skill.path().display().to_string());
            let hint = format!(
                "write the variable in the code, such as \"$INPUT_NAME\"; `savoir check {path}` \
                 shows each place. A value must not begin or end a code block"
            );
            let refused = RunError::refused(error.code(), error).with_hint(hint);
            return context.refuse(None, refused);
        }
    };
    let call = CodeInput { fences: &fences, inputs: &prepared.inputs, files: &files };
    run_fences(context, call, (run_env, extra), recorder)
}

/// The files that the user passed for inputs. Defaults are not among them.
fn passed_files(skill: &Skill, inputs: &Map<String, Value>) -> Vec<PathBuf> {
    let files = skill.inputs.iter().filter(|input| input.kind == InputKind::File);
    let passed = files.filter_map(|input| inputs.get(&input.name)?.as_str());
    passed.filter(|path| !path.is_empty()).map(PathBuf::from).collect()
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
    let (skill, model, format) = (&context.loaded_skill.skill, context.model(), context.form());
    let mut record = prompt_record(context.loaded_skill);
    let started = Instant::now();
    let command =
        PromptCommand { skill, inputs, directory, model, format, failure: RefCell::default() };
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

/// The code blocks of a prompt, with what they get.
#[derive(Clone, Copy)]
struct CodeInput<'a> {
    fences: &'a [Fence],
    inputs: &'a Map<String, Value>,
    files: &'a [PathBuf],
}

fn run_fences(
    context: &RunContext<'_>,
    CodeInput { fences, inputs, files }: CodeInput<'_>,
    (run_env, extra): (&RunEnvironment, &ExtraGrants),
    recorder: Option<Recorder<'_>>,
) -> Result<ExitCode, CommandError> {
    if fences.is_empty() {
        return Err(RunError::call("no-code", "the skill has no code block that can be run")
            .with_hint("mark blocks as bash, sh, python or node")
            .into());
    }
    let declared = context.loaded_skill.skill.outputs.as_ref();
    let mut printed = Vec::new();
    let mut took = Duration::ZERO;
    let mut used: Vec<Permission> = Vec::new();
    for fence in fences {
        let call = Call {
            loaded_skill: context.loaded_skill,
            tool: fence.interpreter,
            input: CallInput::Code {
                fence: fence.clone(),
                inputs: inputs.clone(),
                files: files.to_vec(),
            },
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
        let plan = match plan(&call) {
            Ok(plan) => context.within_timeout(plan),
            Err(error) => return context.refuse(Some(fence.interpreter), error),
        };
        let finished = match &recorder {
            None => context.run_quietly(plan, collect)?,
            Some(recorder) => {
                let (finished, more) = recorder.observe(plan, collect)?;
                used.extend(more);
                finished
            }
        };
        took += Duration::from_millis(finished.envelope.duration_ms);
        if !finished.envelope.success {
            if declared.is_some() {
                context.forward_output(Stream::Stdout, &printed);
            }
            return match &recorder {
                Some(recorder) => recorder.report_failed(&finished, &used),
                None => context.print_failed(&finished),
            };
        }
    }
    let printed = String::from_utf8_lossy(&printed);
    let printed = printed.trim_end();
    let answer = match declared {
        None => Answer::Text(printed.to_owned()),
        Some(declared) => match structured::validate_output(declared, printed) {
            Ok(answer) => answer,
            Err(error) => return report_wrong_output(context, printed, took, &error),
        },
    };
    let envelope = match &answer {
        Answer::Json(value) => Envelope::returned(value.clone(), took),
        _ => Envelope::returned(printed.into(), took),
    };
    // Every block exited with this code.
    let envelope = Envelope { exit_code: Some(0), ..envelope };
    let print_answer = || match &answer {
        Answer::Json(value) => output::json(value),
        // The output was already printed while the code ran.
        _ if declared.is_none() => Ok(()),
        _ => output::content(&format!("{printed}\n")),
    };
    match &recorder {
        Some(recorder) => {
            used.sort();
            used.dedup();
            recorder.report(CODE_BLOCKS, &used, &envelope, print_answer)
        }
        None if context.is_json() => context.print_envelope(&envelope),
        None => {
            print_answer()?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Fails because the output does not match what the skill declares. The output is shown to the
/// skill's author: with --json in the result, else on standard error, because it is not a valid
/// answer.
fn report_wrong_output(
    context: &RunContext<'_>,
    printed: &str,
    took: Duration,
    error: &OutputError,
) -> Result<ExitCode, CommandError> {
    if !context.is_json() {
        if !printed.is_empty() {
            output::note(printed);
        }
        return Err(RunError::cannot_start(error.code(), error).into());
    }
    let Envelope { output, truncated, .. } = Envelope::returned(printed.into(), took);
    let failed = Envelope::failed(error.code(), error.to_string(), took);
    context.print_envelope(&Envelope { output, truncated, ..failed })
}

/// The MCP servers in the settings of the user's agents.
#[cfg(feature = "server")]
#[expect(clippy::unnecessary_wraps, reason = "a lean build does not know them")]
fn mcp_servers(run_env: &RunEnvironment) -> Option<BTreeSet<String>> {
    Some(super::mcp::known_servers(&run_env.home, &run_env.directory))
}

#[cfg(not(feature = "server"))]
fn mcp_servers(_: &RunEnvironment) -> Option<BTreeSet<String>> {
    None
}

/// A hint for a skill that is not ready.
fn hint(error: &PrepareError) -> Option<&'static str> {
    match error {
        PrepareError::Runtime(SkillrtRunError::McpTool) => {
            Some("call it in an agent that has the server; `savoir show` shows what it says")
        }
        PrepareError::Runtime(_) => Some("`savoir show` shows what it says"),
        PrepareError::MissingPrograms(_) => Some("install them"),
        PrepareError::Skills(_) => {
            Some("install them with: savoir install SOURCE; or put them beside this skill")
        }
        PrepareError::Inputs(_) | PrepareError::RepeatedInput(_) => None,
    }
}

/// The version of a skill with this name in the parent folder of another skill.
fn sibling_version(reference: &SkillRef, folder: &Path) -> Option<String> {
    if is_unsafe_path_name(&reference.name) {
        return None;
    }
    let sibling = folder.parent()?.join(&reference.name);
    let details = LedgerEntry::lone(sibling).details().ok()?;
    let is_it = details.name.as_deref().is_none_or(|name| name == reference.name);
    is_it.then(|| details.version.unwrap_or_else(|| "no version".to_owned()))
}

/// The version of an installed skill, preferably one that the reference allows.
fn installed_version(reference: &SkillRef, lookup: &Lookup) -> Option<String> {
    let in_range = lookup.candidates(&reference.to_string()).into_iter().next();
    let found = in_range.or_else(|| lookup.candidates(&reference.name).into_iter().next())?;
    Some(found.version.unwrap_or_else(|| "no version".to_owned()))
}
