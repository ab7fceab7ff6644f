//! Runs the Python functions of one skill in a sandboxed process of their own ([`PythonTools`]).

use std::{
    fs::File,
    io::{BufReader, Read as _},
    path::{Path, PathBuf},
    sync::mpsc::{self, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use savoir_sandbox::{KillHandle, PathGrant, Policy, Process, ProcessEnd, Sandbox};
use savoir_skill::python::TOOLS_FILE;
use serde_json::{Map, Value};

use super::{
    action::{FinishedAction, Functions, TOO_MANY_PROCESSES, TOO_MUCH_MEMORY},
    check_not_cancelled, packages,
};
use crate::{
    approval::Program,
    cancel::Cancel,
    envelope::{Capture, Envelope, Stream, output_limit_message, timeout_message},
    error::RunError,
    home::Home,
    loaded_skill::LoadedSkill,
    packages::host_path::HostPath,
    python::{
        environment,
        host::{self, Serves},
        protocol::{CallError, Session},
        requirement::{DirectReferences, requirements},
        version,
    },
};

/// The time that a module may take to load; imports of large packages are slow.
const MODULE_LOAD_TIMEOUT: Duration = Duration::from_mins(1);

/// A running Python process that has loaded the functions of one skill.
#[derive(Debug)]
pub struct PythonTools {
    process: Process,
    killer: KillHandle,
    session: Session<BufReader<File>, File>,
    printed: JoinHandle<Capture>,
    /// Maximum number of bytes that the process may print.
    limit: u64,
}

/// The result of one function call, with its duration.
#[derive(Debug)]
pub enum Answer {
    Value(Value, Duration),
    /// An error code and a message.
    Error(&'static str, String, Duration),
}

impl PythonTools {
    /// Installs the packages that the skill requires, and loads the module in the sandbox.
    pub fn load(
        policy: Policy,
        loaded_skill: &LoadedSkill,
        interpreter: &Program,
        functions: &Functions,
        home: &Home,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, RunError> {
        let cancel = Cancel::default();
        Self::load_until(&cancel, policy, loaded_skill, interpreter, functions, home, progress)
    }

    /// Like [`load`](Self::load), but the caller can cancel it.
    pub(super) fn load_until(
        cancel: &Cancel,
        mut policy: Policy,
        loaded_skill: &LoadedSkill,
        interpreter: &Program,
        functions: &Functions,
        home: &Home,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, RunError> {
        let cache = packages::cache(home, "python")?;
        let failed = |error: &dyn std::fmt::Display| RunError::cannot_start("python-host", error);
        let program = host::install(&cache).map_err(|error| failed(&error))?;
        let host = HostPath::of(&policy);
        let base = base_interpreter(loaded_skill, &host, &interpreter.path)?;
        check_version(loaded_skill, &host, &base)?;
        let python = match environment(cancel, loaded_skill, (&host, &base), &cache, progress)? {
            None => base,
            Some(environment) => {
                policy.paths.push(PathGrant::read(&environment.root));
                environment.python()
            }
        };
        packages::add_node_dependencies(cancel, loaded_skill, home, &mut policy, progress)?;
        policy.paths.push(PathGrant::read(&program));
        policy.programs.retain(|path| *path != interpreter.path);
        policy.programs.push(python.clone());
        // A loaded module waits for calls; each call has its own time limit.
        policy.limits.wall = None;
        let limit = policy.limits.output;
        let arguments = arguments(loaded_skill, &program, functions);
        // Installing packages may have taken minutes, in which the skill can have changed.
        loaded_skill.refuse_changed()?;
        check_not_cancelled(cancel)?;
        let mut process = Sandbox::new(policy)?.start(&python, &arguments)?;
        cancel.set_process(process.kill_handle().map_err(|error| failed(&error))?);
        let killer = process.kill_handle().map_err(|error| failed(&error))?;
        let guard = process.kill_handle().map_err(|error| failed(&error))?;
        let on_interruption = process.kill_handle().map_err(|error| failed(&error))?;
        // This thread ends with the process.
        thread::spawn(move || on_interruption.kill_on_interruption());
        let pipes = (process.take_stdin(), process.take_stdout(), process.take_stderr());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(failed(&"the pipes are gone"));
        };
        let printed = thread::spawn(move || capture(stderr, &guard, limit));
        let limited =
            limited(&killer, MODULE_LOAD_TIMEOUT, || Session::start(BufReader::new(stdout), stdin));
        match limited {
            Ok(session) => Ok(Self { process, killer, session, printed, limit }),
            Err(error) => {
                drop(process);
                let printed = printed.join().map(|capture| capture.finish().output);
                let said = printed.ok().filter(|text| !text.is_empty());
                let said = said.map(|text| format!("\n{text}")).unwrap_or_default();
                Err(RunError::cannot_start(
                    "module-not-loaded",
                    format!("{TOOLS_FILE} cannot be loaded: {error}{said}"),
                ))
            }
        }
    }

    /// Calls a function; kills the process after `most`.
    pub fn call(&mut self, tool: &str, arguments: &Map<String, Value>, most: Duration) -> Answer {
        let started = Instant::now();
        let session = &mut self.session;
        let answer = limited(&self.killer, most, || session.call(tool, arguments));
        let duration = started.elapsed();
        match answer {
            Ok(value) => Answer::Value(value, duration),
            Err(CallError::HostEnded) if duration >= most => {
                Answer::Error("timeout", timeout_message(most.as_secs() as u32), duration)
            }
            Err(error) => Answer::Error(error.code(), error.to_string(), duration),
        }
    }

    /// Ends the process and builds the result, with the output of the module.
    pub(super) fn finish(self, answer: Answer) -> FinishedAction {
        let Self { process, session, printed, limit, .. } = self;
        // The process ends by itself when its input is closed.
        drop(session);
        let mut outcome = process.wait_timeout(Duration::from_secs(2));
        if outcome.end == ProcessEnd::TimedOut {
            outcome.end = ProcessEnd::Stopped;
        }
        let printed = printed.join().unwrap_or_default().finish();
        outcome.output_bytes = printed.total;
        let mut whole = None;
        let mut envelope = match answer {
            Answer::Value(value, duration) => {
                whole = Some(value.clone());
                Envelope::returned(value, duration)
            }
            Answer::Error("host-ended", _, duration) if printed.total > limit => {
                Envelope::failed("output-limit", output_limit_message(limit), duration)
            }
            Answer::Error("host-ended", _, duration)
                if outcome.end == ProcessEnd::TooMuchMemory =>
            {
                Envelope::failed("memory-limit", TOO_MUCH_MEMORY, duration)
            }
            Answer::Error("host-ended", _, duration)
                if outcome.end == ProcessEnd::TooManyProcesses =>
            {
                Envelope::failed("process-limit", TOO_MANY_PROCESSES, duration)
            }
            Answer::Error(code, message, duration) => Envelope::failed(code, message, duration),
        };
        if !envelope.success {
            envelope.output = printed.output;
            envelope.truncated = printed.truncated > 0;
        }
        FinishedAction { envelope, outcome, value: whole }
    }
}

fn arguments(loaded_skill: &LoadedSkill, program: &Path, functions: &Functions) -> Vec<String> {
    let pairs: Vec<(&str, &str)> = match functions {
        Functions::Module => Vec::new(),
        Functions::Handlers(list) => list.iter().map(|(name, path)| (&**name, &**path)).collect(),
    };
    let serves = match functions {
        Functions::Module => Serves::Module(TOOLS_FILE),
        Functions::Handlers(_) => Serves::Actions(&pairs),
    };
    // Bytecode beside the module might differ from its source, so it is not used.
    let own = ["-X", "pycache_prefix=/tmp/.bytecode"].map(str::to_owned);
    let arguments = host::arguments(program, loaded_skill.path(), &serves);
    own.into_iter()
        .chain(arguments.into_iter().map(|text| text.to_string_lossy().into_owned()))
        .collect()
}

/// The interpreter of the module. If the skill requires a version or packages, it is also started
/// outside of the sandbox, so it must be one that no run could have written.
fn base_interpreter(
    loaded_skill: &LoadedSkill,
    host: &HostPath,
    found: &Path,
) -> Result<PathBuf, RunError> {
    let requirements = &loaded_skill.skill.requirements;
    if requirements.python.is_none() && requirements.python_packages.is_empty() {
        return Ok(found.to_owned());
    }
    packages::host_interpreter(host, found)
}

fn check_version(
    loaded_skill: &LoadedSkill,
    host: &HostPath,
    interpreter: &Path,
) -> Result<(), RunError> {
    let Some(range) = &loaded_skill.skill.requirements.python else { return Ok(()) };
    let found = packages::python_version(host, interpreter)
        .map_err(|error| RunError::cannot_start("python-unusable", &error))?;
    match version::satisfies(range, &found) {
        Ok(true) => Ok(()),
        Ok(false) => Err(RunError::cannot_start(
            "python-version",
            format!("the skill needs Python {range}, {} is {found}", interpreter.display()),
        )
        .with_hint("install a Python that fits, first on PATH")),
        Err(error) => Err(RunError::cannot_start("python-version", &error)),
    }
}

/// The environment with the packages that the skill requires; none if it requires no packages.
fn environment(
    cancel: &Cancel,
    loaded_skill: &LoadedSkill,
    base: (&HostPath, &Path),
    cache: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Option<environment::Environment>, RunError> {
    let wanted = &loaded_skill.skill.requirements.python_packages;
    if wanted.is_empty() {
        return Ok(None);
    }
    let requirements = requirements(wanted, DirectReferences::Forbid)
        .map_err(|error| RunError::refused("requirement-refused", &error))?;
    packages::python_environment(cancel, cache, base, &requirements, progress).map(Some)
}

/// Calls `work`, which waits for the process, and kills the process after `most`.
fn limited<T>(killer: &KillHandle, most: Duration, work: impl FnOnce() -> T) -> T {
    let (done, waiting) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(most) == Err(RecvTimeoutError::Timeout) {
                killer.kill();
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// Captures the output, and kills the process when it prints more than `limit` bytes.
fn capture(mut stderr: File, killer: &KillHandle, limit: u64) -> Capture {
    let mut capture = Capture::default();
    let mut buffer = vec![0; 16 << 10];
    let mut total = 0;
    while let Ok(length @ 1..) = stderr.read(&mut buffer) {
        capture.push(Stream::Stderr, &buffer[..length]);
        total += length as u64;
        if total > limit {
            killer.kill();
        }
    }
    capture
}
