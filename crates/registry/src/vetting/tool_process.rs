//! Runs tools in the sandbox and records what they did.

use std::{
    io::{BufReader, Write as _},
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use savoir_engine::python::{
    host::{self, Serves},
    protocol::{CallError, Exception, Session},
};
use savoir_sandbox::{Outcome, Policy, Sandbox, SandboxError};
use savoir_scan::Severity;
use serde_json::{Map, Value};

use super::{
    Limits,
    decoy_environment::DecoyEnvironment,
    run_limiter::{RunLimiter, StopReason},
    sandbox_policy,
    trace_events::TracedOutput,
};

/// How long a program may take to exit after its last call.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// A tool call to make.
#[derive(Clone, Debug)]
pub(super) struct ToolCall {
    pub(super) tool: String,
    pub(super) arguments: Map<String, Value>,
}

/// The recorded actions of one process.
#[derive(Debug)]
pub(super) struct ToolProcess {
    pub(super) outcome: Outcome,
    pub(super) output: TracedOutput,
    /// Why the process was killed, and during which call.
    pub(super) stopped: Option<(StopReason, String)>,
    /// The last activity of the process.
    pub(super) during: String,
    /// Why the module could not be loaded, or a call could not be made.
    pub(super) failure: Option<ToolFailure>,
    /// Bytes of the larger of its output streams.
    pub(super) bytes: u64,
    /// Number of calls that were made.
    pub(super) made: usize,
    /// The program that the process was started with.
    pub(super) own: PathBuf,
    /// The place in the package that the process was started from.
    pub(super) place: Option<(String, Option<u32>)>,
    /// The severity of undeclared actions.
    pub(super) severity: Severity,
}

/// Why a module could not be loaded, or a call could not be made.
#[derive(Clone, Debug)]
pub(super) enum ToolFailure {
    /// The code raised an exception.
    Raised(Exception),
    /// The process ended.
    Ended(String),
}

/// A command to run.
#[derive(Clone, Debug)]
pub(super) struct ToolCommand {
    pub(super) what: String,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) input: String,
    pub(super) variables: Vec<(String, String)>,
    pub(super) place: Option<(String, Option<u32>)>,
    /// The severity of undeclared actions. Lower for a code block: it is text, which only some
    /// runtimes run, and only on request.
    pub(super) severity: Severity,
}

/// The result of a session with the host of Python tools.
struct HostSession {
    made: usize,
    during: String,
    stopped: Option<StopReason>,
    failure: Option<ToolFailure>,
}

/// Loads a module and makes calls, until one does not return.
pub(super) fn python(
    decoy_env: &DecoyEnvironment,
    limits: &Limits,
    python: &Path,
    serves: &Serves<'_>,
    calls: &[ToolCall],
    until: Instant,
) -> Result<ToolProcess, SandboxError> {
    let policy = sandbox_policy::policy(decoy_env, limits, python.to_owned(), &[]);
    let mut arguments: Vec<String> =
        ["-I", "-B", "-X", "pycache_prefix=/tmp/.bytecode"].map(str::to_owned).to_vec();
    arguments.push(decoy_env.tracer_script.to_string_lossy().into_owned());
    arguments
        .extend([decoy_env.trace_mark.clone(), decoy_env.folder.to_string_lossy().into_owned()]);
    let hosted = host::arguments(&decoy_env.host, &decoy_env.folder, serves);
    // Skip the interpreter options of the host command; they are replaced by those above.
    let hosted = hosted.iter().skip_while(|word| word.as_encoded_bytes().starts_with(b"-"));
    arguments.extend(hosted.map(|word| word.to_string_lossy().into_owned()));
    let work = |limiter: &RunLimiter, stdin, stdout| {
        run_session(limiter, limits, (stdin, stdout), calls, until)
    };
    let (session, mut process) =
        run_limited(decoy_env, limits, policy, (python, &arguments), until, work)?;
    process.made = session.made;
    process.failure = session.failure;
    let why = session.stopped.or(process.stopped.map(|(why, _)| why));
    process.stopped = why.map(|why| (why, session.during.clone()));
    process.during = session.during;
    Ok(process)
}

fn run_session(
    limiter: &RunLimiter,
    limits: &Limits,
    (stdin, stdout): (std::fs::File, std::fs::File),
    calls: &[ToolCall],
    until: Instant,
) -> HostSession {
    let within = || (Instant::now() + limits.call).min(until);
    limiter.set_deadline(within());
    let during = "loading its module".to_owned();
    let mut session = HostSession { made: 0, during, stopped: None, failure: None };
    let mut host = match Session::start(BufReader::new(stdout), stdin) {
        Ok(host) => host,
        Err(CallError::Raised(exception)) => {
            return HostSession { failure: Some(ToolFailure::Raised(exception)), ..session };
        }
        Err(error) => {
            return HostSession { failure: Some(ToolFailure::Ended(error.to_string())), ..session };
        }
    };
    for call in calls {
        limiter.set_deadline(within());
        session.during = format!("the tool `{}`", call.tool);
        session.made += 1;
        // The result of a call with made-up arguments is irrelevant, and so is an exception.
        match host.call(&call.tool, &call.arguments) {
            Err(CallError::Raised(exception)) if exception.kind == "MemoryError" => {
                session.stopped = Some(StopReason::Memory);
                break;
            }
            Ok(_) | Err(CallError::Raised(_)) => {}
            Err(CallError::TooLarge) => {
                session.stopped = Some(StopReason::Answer);
                break;
            }
            Err(error) => {
                session.failure = Some(ToolFailure::Ended(error.to_string()));
                break;
            }
        }
    }
    session
}

/// Runs a command to its end.
pub(super) fn command(
    decoy_env: &DecoyEnvironment,
    limits: &Limits,
    command: &ToolCommand,
    until: Instant,
) -> Result<ToolProcess, SandboxError> {
    let program = &command.program;
    let policy = sandbox_policy::policy(decoy_env, limits, program.clone(), &command.variables);
    let until = until.min(Instant::now() + limits.call);
    let work = |_: &RunLimiter, mut stdin: std::fs::File, stdout: std::fs::File| {
        // A program may ignore its input.
        let _ = stdin.write_all(command.input.as_bytes());
        drop(stdin);
        let mut bytes = 0;
        let mut buffer = vec![0; 16 << 10];
        let mut from = stdout;
        while let Ok(length @ 1..) = std::io::Read::read(&mut from, &mut buffer) {
            bytes += length as u64;
            if bytes > limits.output {
                break;
            }
        }
        bytes
    };
    let start = (program.as_path(), command.arguments.as_slice());
    let (bytes, mut process) = run_limited(decoy_env, limits, policy, start, until, work)?;
    process.bytes = process.bytes.max(bytes);
    process.stopped = process.stopped.map(|(why, _)| (why, command.what.clone()));
    process.place.clone_from(&command.place);
    process.severity = command.severity;
    Ok(process)
}

/// Starts a program, passes its pipes to a function, and waits for its end.
fn run_limited<T>(
    decoy_env: &DecoyEnvironment,
    limits: &Limits,
    policy: Policy,
    (program, arguments): (&Path, &[String]),
    until: Instant,
    work: impl FnOnce(&RunLimiter, std::fs::File, std::fs::File) -> T,
) -> Result<(T, ToolProcess), SandboxError> {
    let failed = |step, source| SandboxError::Build { step, source };
    let mut process = Sandbox::new(policy)?.start(program, arguments)?;
    let killers = (process.kill_handle(), process.kill_handle(), process.kill_handle());
    let (Ok(guarding), Ok(listening), Ok(interrupted)) = killers else {
        return Err(failed("watching a process".into(), std::io::ErrorKind::Other.into()));
    };
    // The thread ends with the process.
    thread::spawn(move || interrupted.kill_on_interruption());
    let pipes = (process.take_stdin(), process.take_stdout(), process.take_stderr());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(failed("making pipes".into(), std::io::ErrorKind::BrokenPipe.into()));
    };
    let limiter = RunLimiter::new(until, decoy_env.work(), limits.disk);
    let (over, watched) = mpsc::channel::<()>();
    let (result, output, stopped, outcome) = thread::scope(|scope| {
        let limiter = &limiter;
        scope.spawn(move || limiter.watch(&watched, &guarding));
        let output = scope.spawn(move || {
            TracedOutput::listen(stderr, &decoy_env.trace_mark, &listening, limits.output)
        });
        let result = work(limiter, stdin, stdout);
        let stopped = limiter.stop_reason();
        limiter.set_deadline(Instant::now() + STOP_TIMEOUT);
        let outcome = process.wait_timeout(STOP_TIMEOUT * 5);
        drop(over);
        (result, output.join().unwrap_or_default(), stopped, outcome)
    });
    let bytes = output.bytes;
    let stopped = stopped.map(|why| (why, String::new()));
    let own = program.to_owned();
    let (failure, made, place, during) = (None, 0, None, String::new());
    Ok((
        result,
        ToolProcess {
            severity: Severity::High,
            outcome,
            output,
            stopped,
            during,
            failure,
            bytes,
            made,
            own,
            place,
        },
    ))
}
