//! Runs code nodes: Python in the sandbox, without network and with only its own files.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use savoir_engine::{cancel::Cancel, grant};
use savoir_sandbox::{
    CountedMemory, ExtraPrograms, Limits, Network, PathGrant, Policy, ProcessEnd,
    RecordOpenedFiles, Sandbox, Stream, Variable,
};
use serde_json::Value;

use super::{DISABLED, NodeContext, NodeError, NodeResult};
use crate::{
    event::{Emitter, Event},
    workflow::{graph::Code, limits, scope::text_of},
};

/// The name of the script file.
const FILE: &str = "node.py";

/// The working directory: an empty private folder.
const DIRECTORY: &str = "/tmp";

/// SIGXCPU: the CPU time limit was exceeded, which is reported as a timeout.
const SIGNAL_CPU: i32 = 24;

/// The owned data of a run, for a blocking thread.
struct Job {
    code: String,
    environment: BTreeMap<String, Variable>,
    limits: Limits,
}

/// What code printed, and whether its end is missing.
struct Printed {
    text: String,
    cut: bool,
}

pub(super) async fn run(
    code: &Code,
    context: &NodeContext<'_>,
    out: &Emitter,
) -> Result<NodeResult, NodeError> {
    if !context.host.features.code {
        return Err(NodeError::failed(DISABLED));
    }
    if code.code.trim().is_empty() {
        return Err(NodeError::failed("Code is required"));
    }
    let environment = environment(code, &context.input_text(), context.run.user).map_err(failed)?;
    let job = Job { code: code.code.clone(), environment, limits: bounds(code) };
    let slots = context.host.code.slots().clone();
    let slot = slots.acquire_owned().await.map_err(failed)?;
    let cancel = Cancel::default();
    // The code is stopped when the caller's future is dropped.
    let _guard = cancel.cancel_on_drop();
    let ran = tokio::task::spawn_blocking(move || {
        let printed = run_job(job, &cancel);
        drop(slot);
        printed
    });
    let Printed { text, cut } = ran.await.map_err(|_| failed("it could not be watched"))??;
    if cut {
        let most = limits::MAX_SHOWN_OUTPUT_BYTES >> 10;
        out.emit(Event::warning(format!("The output was cut after {most} KiB"))).await?;
    }
    Ok(Value::from(text).into())
}

fn failed(reason: impl std::fmt::Display) -> NodeError {
    NodeError::Failed(format!("Code execution failed: {reason}"))
}

/// Returns the environment variables of the code.
fn environment(
    code: &Code,
    input: &str,
    user: Option<i64>,
) -> Result<BTreeMap<String, Variable>, String> {
    if code.variables.len() > limits::MAX_VARIABLES {
        return Err(format!("there are more than {} variables", limits::MAX_VARIABLES));
    }
    let mut texts = BTreeMap::new();
    for (name, value) in &code.variables {
        let upper = name.to_uppercase();
        if !is_allowed(&upper) {
            return Err(format!("`{name}` cannot be the name of a variable"));
        }
        texts.insert(upper, text_of(value).into_owned());
    }
    texts.insert("WORKFLOW_INPUT".to_owned(), input.to_owned());
    let user = user.map_or_else(|| "anonymous".to_owned(), |id| id.to_string());
    texts.insert("USER_ID".to_owned(), user);
    if let Some((name, _)) = texts.iter().find(|(_, text)| text.len() > limits::MAX_VARIABLE_BYTES)
    {
        return Err(format!("{name} is longer than {} KiB", limits::MAX_VARIABLE_BYTES >> 10));
    }
    Ok(texts.into_iter().map(|(name, text)| (name, Variable::Plain(text))).collect())
}

/// Whether a variable name is allowed: names with a meaning for the dynamic loader, the interpreter
/// or the API contract are not.
fn is_allowed(name: &str) -> bool {
    const RESERVED_NAMES: [&str; 3] = ["PATH", "WORKFLOW_INPUT", "USER_ID"];
    const PREFIXES: [&str; 4] = ["LD_", "PYTHON", "GLIBC_", "MALLOC_"];
    let is_word = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    !name.is_empty()
        && name.len() <= 128
        && name.chars().all(is_word)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !RESERVED_NAMES.contains(&name)
        && !PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn bounds(code: &Code) -> Limits {
    Limits {
        wall: Some(Duration::from_secs(code.seconds)),
        cpu: Some(code.seconds + 1),
        memory: code.mebibytes << 20,
        // Count the memory that is used, not the address space that libraries map.
        counted_memory: CountedMemory::Data,
        processes: limits::MAX_CODE_PROCESSES,
        open_files: limits::MAX_CODE_OPEN_FILES,
        file_size: limits::MAX_CODE_SCRATCH_BYTES,
        scratch: limits::MAX_CODE_SCRATCH_BYTES,
        output: limits::MAX_PRINTED_BYTES,
    }
}

/// Runs a job until it ends.
fn run_job(job: Job, cancel: &Cancel) -> Result<Printed, NodeError> {
    // Code in a workflow is unsigned, so both protections (mounts and Landlock) are required.
    if savoir_sandbox::lacks_landlock() {
        return Err(failed("this machine has no Landlock, and the code is unsigned"));
    }
    let python = grant::resolve("python3", None).map_err(failed)?.path;
    let folder = tempfile::tempdir().map_err(failed)?;
    let inside = folder.path().canonicalize().map_err(failed)?;
    fs::write(inside.join(FILE), &job.code).map_err(failed)?;
    let file = inside.join(FILE);
    let arguments = arguments(&file);
    let sandbox = Sandbox::new(policy(job, &python, inside)).map_err(failed)?;
    let process = sandbox.start(&python, &arguments).map_err(failed)?;
    cancel.set_process(process.kill_handle().map_err(failed)?);
    let (mut printed, mut errors, mut cut) = (Vec::new(), Vec::new(), false);
    let outcome = process.communicate(b"", |stream, bytes| {
        let kept = if stream == Stream::Output { &mut printed } else { &mut errors };
        let budget = limits::MAX_SHOWN_OUTPUT_BYTES.saturating_sub(kept.len());
        cut |= stream == Stream::Output && bytes.len() > budget;
        kept.extend_from_slice(&bytes[..bytes.len().min(budget)]);
    });
    match outcome.end {
        ProcessEnd::Exited(0) => Ok(Printed { text: text(&printed), cut }),
        ProcessEnd::TimedOut | ProcessEnd::Signalled(SIGNAL_CPU) => {
            Err(NodeError::failed("Code execution timed out"))
        }
        ProcessEnd::Exited(_) | ProcessEnd::Signalled(_) => {
            Err(NodeError::Failed(with_traceback(&text(&errors), &file)))
        }
        ProcessEnd::TooMuchOutput => Err(failed(format_args!(
            "it printed more than {} KiB",
            limits::MAX_PRINTED_BYTES >> 10
        ))),
        ProcessEnd::TooMuchMemory | ProcessEnd::TooManyProcesses => {
            Err(failed("it took too much memory"))
        }
        ProcessEnd::Stopped => Err(failed("it was stopped")),
    }
}

/// Runs Python isolated from variables and packages of the user, with UTF-8 as the encoding.
fn arguments(file: &Path) -> Vec<String> {
    let file = file.to_string_lossy().into_owned();
    ["-I", "-B", "-X", "utf8"].map(str::to_owned).into_iter().chain([file]).collect()
}

fn policy(job: Job, python: &Path, code: PathBuf) -> Policy {
    Policy {
        paths: vec![PathGrant::scratch(DIRECTORY), PathGrant::read(code)],
        programs: vec![python.to_owned()],
        mounts: Vec::new(),
        extra_programs: ExtraPrograms::None,
        network: Network::None,
        environment: job.environment,
        limits: job.limits,
        directory: DIRECTORY.into(),
        record_opened_files: RecordOpenedFiles::Off,
    }
}

/// Returns the error message of failed code, with the end of its error output. The path of the
/// temporary script is removed.
fn with_traceback(errors: &str, file: &Path) -> String {
    let status = "Code execution returned non-zero status";
    let errors = errors.replace(&*file.to_string_lossy(), FILE);
    let skipped = errors.chars().count().saturating_sub(limits::MAX_TRACEBACK_CHARS);
    let end: String = errors.chars().skip(skipped).collect();
    if end.is_empty() { status.to_owned() } else { format!("{status}\n{end}") }
}

/// Returns the output as text, without a character that the limit cut in two.
fn text(printed: &[u8]) -> String {
    let whole = match std::str::from_utf8(printed) {
        Err(error) if error.error_len().is_none() => &printed[..error.valid_up_to()],
        _ => printed,
    };
    String::from_utf8_lossy(whole).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn variables(declared: Value, input: &str) -> Result<Vec<String>, String> {
        let Value::Object(variables) = declared else { panic!("an object") };
        let code = Code { code: "x".into(), seconds: 1, mebibytes: 64, variables };
        let environment = environment(&code, input, None)?;
        let shown = environment.into_iter().map(|(name, value)| match value {
            Variable::Plain(text) => format!("{name}={text}"),
            Variable::Masked(_) => name,
        });
        Ok(shown.collect())
    }

    #[test]
    fn variables_are_upper_case_and_harmless() {
        assert_eq!(
            variables(json!({"api_key": "k", "n": 5, "none": null}), "in").unwrap(),
            ["API_KEY=k", "N=5", "NONE=", "USER_ID=anonymous", "WORKFLOW_INPUT=in"]
        );
        for name in [
            "ld_preload", "PYTHONPATH", "path", "user_id", "workflow_input", "1a", "a-b", "a=b",
            "", "é", "a b", "ß",
        ] {
            // `ß` becomes `SS`, which is a valid name.
            let mut declared = Map::new();
            declared.insert(name.to_owned(), json!("x"));
            assert_eq!(variables(declared.into(), "in").is_ok(), name == "ß", "{name}");
        }
        assert!(variables(json!({}), &"x".repeat(limits::MAX_VARIABLE_BYTES)).is_ok());
        assert_eq!(
            variables(json!({}), &"x".repeat(limits::MAX_VARIABLE_BYTES + 1)).unwrap_err(),
            "WORKFLOW_INPUT is longer than 120 KiB"
        );
    }

    #[test]
    fn a_cut_character_is_left_out() {
        assert_eq!(text("  é\n".as_bytes()), "é");
        assert_eq!(text(&"aé".as_bytes()[..2]), "a");
        assert_eq!(text(b"a\xffb"), "a\u{fffd}b");
    }
}
