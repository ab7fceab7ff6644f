//! Turns a call into a command or a Python function call, and executes commands.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Write as _},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, poll};
use savoir_sandbox::{MovedFile, Outcome, Policy, ProcessEnd, Sandbox, Stream};
use savoir_skill::skill::{Runner, Tool};
use serde_json::{Map, Value};

use super::{
    FinishedRun, RunUpdate,
    script::{self, Start},
    terminal::{self, LineEnds, ProgramTerminal, RawMode},
};
use crate::{
    approval::Program,
    cancel::Cancel,
    envelope::{Capture, Ended, Envelope, Stream as Captured, output_limit_message},
    error::RunError,
    grant,
    loaded_skill::LoadedSkill,
    record::{ErrorRecord, FileRecord, RunRecord},
    secrets::{mask, mask_json},
    structured::Fence,
};

/// The program or Python function that a call starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Action {
    /// No action; the value that is left behind when the action is moved out of a plan.
    #[default]
    None,
    /// A program with arguments. It is started directly, never by a shell.
    Command {
        program: Program,
        arguments: Vec<String>,
        /// The text on its standard input.
        input: String,
    },
    /// A function of a Python module.
    Python(PythonCall),
}

/// A call of a Python function.
#[derive(Clone, Debug, PartialEq)]
pub struct PythonCall {
    pub interpreter: Program,
    pub functions: Functions,
    pub function: String,
    pub arguments: Map<String, Value>,
}

/// The files that define Python functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Functions {
    /// The module `tools.py`.
    Module,
    /// Handlers of OpenClaw, as pairs of tool name and `path:function`.
    Handlers(Vec<(String, String)>),
}

impl Action {
    /// The programs that the action itself starts.
    pub fn programs(&self) -> &[Program] {
        match self {
            Self::None => &[],
            Self::Command { program, .. } => std::slice::from_ref(program),
            Self::Python(call) => std::slice::from_ref(&call.interpreter),
        }
    }

    /// The exact command, or the function with its arguments, as shown to the user.
    pub fn shown(&self) -> Vec<String> {
        match self {
            Self::Command { program, arguments, .. } => {
                let name = program.path.to_string_lossy().into_owned();
                std::iter::once(name).chain(arguments.iter().cloned()).collect()
            }
            Self::Python(PythonCall { function, arguments, .. }) => {
                let pairs = arguments.iter().map(|(name, value)| format!("{name}={value}"));
                std::iter::once(function.clone()).chain(pairs).collect()
            }
            Self::None => Vec::new(),
        }
    }
}

/// The action of a tool with these arguments.
pub(super) fn of(
    loaded_skill: &LoadedSkill,
    tool: &Tool,
    arguments: Map<String, Value>,
) -> Result<Action, RunError> {
    match &tool.runner {
        Runner::Command(template) => {
            let template = &template.map_texts(|word| script::fill_folder(loaded_skill, word));
            let mut filled = template.interpolate(&tool.name, &tool.parameters, &arguments)?;
            let mut written = template.args.iter().take_while(|arg| !arg.has_variables()).count();
            let program = match script::words_of_uv(&template.program, &filled, written) {
                Some(count) => {
                    filled.drain(..count);
                    written -= count;
                    "python3"
                }
                None => &template.program,
            };
            let mut start = script::start(loaded_skill, program)?;
            script::locate_script(loaded_skill, &start.program, &mut filled, written);
            start.arguments.extend(filled);
            Ok(command(start, String::new()))
        }
        Runner::Python { function } => {
            // One tool with an error blocks the whole skill.
            loaded_skill.source.as_ref().map_err(|error| {
                RunError::cannot_start("skill-blocked", error).with_hint(format!(
                    "savoir check {} shows each place",
                    loaded_skill.path().display()
                ))
            })?;
            python_call(Functions::Module, function, arguments)
        }
        Runner::Handler { path } if crate::python::host::is_python_handler(path) => {
            let handlers = loaded_skill.skill.tools.iter().filter_map(|tool| match &tool.runner {
                Runner::Handler { path } if crate::python::host::is_python_handler(path) => {
                    Some((tool.name.clone(), path.clone()))
                }
                _ => None,
            });
            python_call(Functions::Handlers(handlers.collect()), &tool.name, arguments)
        }
        // A handler in another language reads its arguments as JSON from standard input.
        Runner::Handler { path } => {
            let start = script::start(loaded_skill, &format!("./{path}"))?;
            Ok(command(start, Value::Object(arguments).to_string()))
        }
    }
}

/// The action that starts a script of the skill's folder.
pub(super) fn script(
    loaded_skill: &LoadedSkill,
    path: &str,
    words: &[String],
) -> Result<Action, RunError> {
    let mut start = script::start(loaded_skill, &format!("./{path}"))?;
    start.arguments.extend_from_slice(words);
    Ok(command(start, String::new()))
}

fn command(start: Start, input: String) -> Action {
    let Start { program, arguments } = start;
    Action::Command { program, arguments, input }
}

/// The action that passes a code block of the skill to its interpreter.
pub(super) fn code(fence: &Fence) -> Result<Action, RunError> {
    let program = grant::resolve(fence.interpreter, None)?;
    let option = if fence.interpreter == "node" { "-e" } else { "-c" };
    let arguments = vec![option.to_owned(), fence.code.clone()];
    Ok(Action::Command { program, arguments, input: String::new() })
}

fn python_call(
    functions: Functions,
    function: &str,
    arguments: Map<String, Value>,
) -> Result<Action, RunError> {
    let interpreter = grant::resolve("python3", None)?;
    let function = function.to_owned();
    Ok(Action::Python(PythonCall { interpreter, functions, function, arguments }))
}

/// The result of a run, before it is written into the record.
pub(super) struct FinishedAction {
    pub(super) envelope: Envelope,
    pub(super) outcome: Outcome,
    pub(super) value: Option<Value>,
}

impl FinishedAction {
    /// Masks secrets in the output, the returned value and the error.
    pub(super) fn mask(&mut self, in_output: &[String], in_records: &[String]) {
        let Envelope { output, parsed, error, .. } = &mut self.envelope;
        *output = mask(in_output, std::mem::take(output));
        for value in parsed.iter_mut().chain(&mut self.value) {
            mask_json(in_output, value);
        }
        *error = error.take().map(|text| mask(in_records, text));
    }
}

/// The source of the standard input of a program.
#[derive(Clone, Copy, Debug)]
pub(super) enum CommandInput<'a> {
    Text(&'a str),
    /// The standard input of this process.
    Inherited,
    /// The terminal of this process: the program gets one of its own.
    Terminal,
}

/// How long to wait for input before checking whether the program still runs.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Copies the standard input of this process to the program, until the input or the program ends.
/// Calls `inspect` with each piece, and with an empty slice when no input came for a while.
fn copy_stdin(program: &File, ended: &AtomicBool, mut inspect: impl FnMut(&[u8])) {
    let stdin = io::stdin();
    let mut buffer = [0; 16 << 10];
    while !ended.load(Ordering::Relaxed) {
        let timeout = POLL_INTERVAL.try_into().ok();
        let mut waits = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut waits, timeout.as_ref()) {
            Ok(0) => {
                inspect(&[]);
                continue;
            }
            Ok(_) if !terminal::is_ahead() => {
                thread::sleep(POLL_INTERVAL);
                continue;
            }
            Ok(_) => {}
            Err(_) => return,
        }
        // Input after the end of the program may be the answer to a later question, so it is not
        // read.
        if ended.load(Ordering::Relaxed) {
            return;
        }
        // Bypasses the buffer of the standard library, because its content would be lost for a
        // later question.
        match rustix::io::read(&stdin, &mut buffer) {
            Ok(length @ 1..) => {
                inspect(&buffer[..length]);
                if write_all_polling(program, &buffer[..length], ended).is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}

/// Writes all bytes, also to a non-blocking descriptor.
fn write_all_polling(mut program: &File, mut bytes: &[u8], ended: &AtomicBool) -> io::Result<()> {
    while !bytes.is_empty() && !ended.load(Ordering::Relaxed) {
        match program.write(bytes) {
            Ok(length) => bytes = &bytes[length..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let timeout = POLL_INTERVAL.try_into().ok();
                poll(&mut [PollFd::new(program, PollFlags::OUT)], timeout.as_ref())?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Runs a program in the sandbox until it ends, a limit is reached, or the caller stops waiting.
pub(super) fn run_command(
    policy: Policy,
    (program, arguments, input): (&Program, &[String], CommandInput<'_>),
    cancel: &Cancel,
    hear: &mut dyn FnMut(RunUpdate<'_>),
) -> Result<FinishedAction, RunError> {
    let seconds = policy.limits.wall.map_or(0, |wall| wall.as_secs() as u32);
    let limit = policy.limits.output;
    let mut sandbox = Sandbox::new(policy)?;
    if matches!(input, CommandInput::Terminal) {
        sandbox = sandbox.with_terminal(terminal::size());
    }
    let mut process = sandbox.start(&program.path, arguments)?;
    let killer =
        process.kill_handle().map_err(|error| RunError::cannot_start("sandbox-failed", error))?;
    cancel.set_process(killer);
    let mut capture = Capture::default();
    let ended = Arc::new(AtomicBool::new(false));
    // If no terminal can be created, the program gets pipes.
    let mut terminal_file = process.terminal().ok().flatten().map(ProgramTerminal::new);
    let is_on_terminal = terminal_file.is_some();
    // If raw mode fails, keys arrive line by line, which is still usable.
    let raw = is_on_terminal.then(|| RawMode::enter().ok()).flatten();
    let input = match input {
        CommandInput::Text(text) => text.as_bytes(),
        CommandInput::Inherited | CommandInput::Terminal => {
            if let Some(stdin) = process.take_stdin() {
                let ended = Arc::clone(&ended);
                let inspect = move |keys: &[u8]| {
                    if let Some(file) = &mut terminal_file {
                        file.watch_keys(keys);
                    }
                };
                thread::spawn(move || copy_stdin(&stdin, &ended, inspect));
            }
            &[]
        }
    };
    let mut lines = LineEnds::default();
    let mut outcome = process.communicate(input, |stream, bytes| {
        let stream = match stream {
            Stream::Output => Captured::Stdout,
            Stream::Error => Captured::Stderr,
        };
        hear(RunUpdate::Printed(stream, bytes));
        if is_on_terminal {
            capture.push(stream, &lines.plain(bytes));
        } else {
            capture.push(stream, bytes);
        }
    });
    ended.store(true, Ordering::Relaxed);
    drop(raw);
    if cancel.is_cancelled() {
        outcome.end = ProcessEnd::Stopped;
    }
    Ok(FinishedAction {
        envelope: envelope(&outcome, capture, seconds, limit),
        outcome,
        value: None,
    })
}

/// Builds the envelope of an outcome. A limit that was reached becomes a named error.
pub(super) fn envelope(outcome: &Outcome, capture: Capture, seconds: u32, limit: u64) -> Envelope {
    let (captured, duration) = (capture.finish(), outcome.duration);
    let named = |code: &'static str, message: String| {
        let plain = Envelope::failed(code, message, duration);
        Envelope { output: captured.output.clone(), truncated: captured.truncated > 0, ..plain }
    };
    match outcome.end {
        ProcessEnd::Exited(code) => Envelope::new(Ended::Exited(code), captured, duration),
        ProcessEnd::TimedOut => Envelope::new(Ended::TimedOut(seconds), captured, duration),
        ProcessEnd::TooMuchOutput => named("output-limit", output_limit_message(limit)),
        ProcessEnd::TooMuchMemory => named("memory-limit", TOO_MUCH_MEMORY.to_owned()),
        ProcessEnd::TooManyProcesses => named("process-limit", TOO_MANY_PROCESSES.to_owned()),
        ProcessEnd::Stopped => named("stopped", STOPPED.to_owned()),
        ProcessEnd::Signalled(SIGNAL_CPU) => {
            named("cpu-limit", "Command used more processor time than allowed".to_owned())
        }
        ProcessEnd::Signalled(SIGNAL_FILE_SIZE) => {
            named("file-size-limit", "Command wrote a file larger than allowed".to_owned())
        }
        ProcessEnd::Signalled(signal) => {
            Envelope::new(Ended::Signalled(signal), captured, duration)
        }
    }
}

pub(super) const TOO_MUCH_MEMORY: &str = "Command took more memory than allowed";
pub(super) const TOO_MANY_PROCESSES: &str = "Command started more processes than allowed";
pub(super) const STOPPED: &str = "Command was stopped";
const SIGNAL_CPU: i32 = 24;
const SIGNAL_FILE_SIZE: i32 = 25;

/// A line for the record about a file that was moved aside, with its new name.
fn describe_moved(MovedFile { from, to, .. }: &MovedFile) -> String {
    let to = to.iter().map(|to| format!(": now {}", to.display()));
    std::iter::once(from.display().to_string()).chain(to).collect()
}

/// Writes the result into the record.
pub(super) fn complete(mut record: RunRecord, finished: FinishedAction) -> FinishedRun {
    let FinishedAction { envelope, outcome, value } = finished;
    let texts = |paths: &BTreeSet<PathBuf>| {
        paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
    };
    record.duration_ms = envelope.duration_ms;
    record.success = envelope.success;
    record.exit_code = envelope.exit_code;
    record.error = envelope.error.clone().map(|message| ErrorRecord {
        code: envelope.code.as_deref().unwrap_or("failed").to_owned(),
        message,
    });
    record.output_bytes = outcome.output_bytes;
    record.truncated = envelope.truncated;
    record.enforcement = serde_json::to_value(&outcome.enforcement).unwrap_or_default();
    record.hosts =
        outcome.hosts.iter().filter_map(|event| serde_json::to_value(event).ok()).collect();
    record.files = FileRecord {
        read: texts(&outcome.files.read),
        written: texts(&outcome.files.written),
        denied: texts(&outcome.files.denied),
        put_aside: outcome.moved_files.iter().map(describe_moved).collect(),
        more: outcome.files.more,
    };
    record.programs = texts(&outcome.files.executed);
    FinishedRun { envelope, record, outcome, value }
}
