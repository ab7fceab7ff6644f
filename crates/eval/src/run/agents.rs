//! Runs trials with agents that others wrote, without a terminal.
//!
//! The agent runs in the sandbox: it sees the folder of the trial, an empty home, its own files and
//! the programs of the system, and reaches only the server of its model. Settings and skills of the
//! user are not there, so that both arms differ in nothing but the skill. The key of the user stays
//! outside: the agent sees a placeholder.

mod claude_code;
mod codex;
mod opencode;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use savoir_agent::preamble::hosts::HostRules;
use savoir_engine::cancel::Cancel;
use savoir_sandbox::{
    Access, CountedMemory, ExtraPrograms, Host as HostName, HostGrant, HostPattern, Limits,
    MethodGroup, Network, PathGrant, Policy, ProcessEnd, RecordOpenedFiles, Sandbox, Scheme,
    Secret, Stream, TRUSTED_PATH, Variable,
};
use serde_json::Value;
use thiserror::Error;
use url::Url;

use super::host::{Disclosure, Host, HostRun, TrialSetup};
use crate::trace::{HostRecord, Role, TraceCall, TraceMessage};

/// Bytes that an agent may print. A long trial prints some megabytes.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;
/// Memory of an agent with the programs that it starts. Agents on Node reserve much.
const MEMORY_BYTES: u64 = 8 << 30;
/// Processes and threads of an agent. Node and Bun start dozens.
const MAX_PROCESSES: u64 = 1_024;
/// Characters of an error that are shown.
const MAX_ERROR_CHARS: usize = 300;

/// All agents that can run trials.
const AGENTS: [HeadlessAgent; 3] = [claude_code::AGENT, codex::AGENT, opencode::AGENT];

/// How an agent is started without a terminal, and how its output is read.
#[derive(Clone, Copy, Debug)]
struct HeadlessAgent {
    id: &'static str,
    /// The name of its program.
    program: &'static str,
    /// A program that its tool for skills needs.
    helper: Option<&'static str>,
    skills_folder: &'static str,
    /// The variable with the address of the model's server, and the usual one.
    url_variable: &'static str,
    default_url: &'static str,
    key_variable: &'static str,
    /// Whether it has a model of its own if none is named.
    has_default_model: bool,
    arguments: fn(&Invocation<'_>) -> Vec<String>,
    environment: fn(&Invocation<'_>) -> Vec<(&'static str, String)>,
    /// Reads one line of its output.
    read: fn(&Value, &mut Transcript),
}

/// What the command line of an agent depends on. The prompt is its standard input.
struct Invocation<'a> {
    model: Option<&'a str>,
    url: &'a str,
    home: &'a Path,
    max_steps: u32,
}

/// The names of all agents that can run trials.
pub fn agent_ids() -> [&'static str; 3] {
    AGENTS.map(|agent| agent.id)
}

/// Why an agent cannot run trials.
#[derive(Debug, Error)]
pub enum AgentError {
    #[error("`{program}` is not installed, or not in PATH")]
    NotInstalled { program: &'static str },
    #[error("{id} needs `{helper}` for its tool for skills, which is not installed or not in PATH")]
    NoHelper { id: &'static str, helper: &'static str },
    #[error("`{program}` does not start: {reason}")]
    DoesNotStart { program: &'static str, reason: String },
    #[error("{variable} is not set")]
    NoKey { variable: &'static str },
    #[error("{variable} is not an address: {value}")]
    BadUrl { variable: &'static str, value: String },
    #[error("{id} needs the name of a model")]
    NoModel { id: &'static str },
    #[error("`{0}` is not an agent that can run trials")]
    Unknown(String),
}

impl AgentError {
    /// What the user can do.
    pub fn hint(&self) -> String {
        match self {
            Self::NotInstalled { program } | Self::DoesNotStart { program, .. } => {
                format!("install it, so that `{program} --version` works")
            }
            Self::NoHelper { helper, .. } => {
                format!("install it, so that `{helper} --version` works")
            }
            Self::NoKey { variable } => format!("set {variable} to your key"),
            Self::BadUrl { variable, .. } => format!("set {variable} to https://HOST"),
            Self::NoModel { .. } => "name it with --model".to_owned(),
            Self::Unknown(_) => format!("use savoir, {}", agent_ids().join(", ")),
        }
    }
}

/// An installed agent.
#[derive(Debug)]
pub struct AgentHost {
    agent: HeadlessAgent,
    program: PathBuf,
    helper: Option<PathBuf>,
    version: String,
    model: Option<String>,
    url: Url,
    key: Secret,
}

impl AgentHost {
    /// Finds an agent. `variable` reads the environment.
    pub fn find(
        id: &str,
        model: Option<&str>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, AgentError> {
        let agent = AGENTS.into_iter().find(|agent| agent.id == id);
        let agent = agent.ok_or_else(|| AgentError::Unknown(id.to_owned()))?;
        if model.is_none() && !agent.has_default_model {
            return Err(AgentError::NoModel { id: agent.id });
        }
        let folders = variable("PATH").unwrap_or_default();
        let find_program = |name: &str| {
            std::env::split_paths(&folders)
                .map(|folder| folder.join(name))
                .find_map(|path| path.canonicalize().ok().filter(|path| path.is_file()))
        };
        let program = find_program(agent.program)
            .ok_or(AgentError::NotInstalled { program: agent.program })?;
        let helper = agent.helper.map(|helper| {
            find_program(helper).ok_or(AgentError::NoHelper { id: agent.id, helper })
        });
        let helper = helper.transpose()?;
        let own_url = variable(agent.url_variable).filter(|url| !url.is_empty());
        let key = variable(agent.key_variable).filter(|key| !key.is_empty());
        let key = match (key, &own_url) {
            (Some(key), _) => key,
            // A server of one's own may need no key, but agents want one.
            (None, Some(_)) => "none".to_owned(),
            (None, None) => return Err(AgentError::NoKey { variable: agent.key_variable }),
        };
        let address = own_url.unwrap_or_else(|| agent.default_url.to_owned());
        let bad = || AgentError::BadUrl { variable: agent.url_variable, value: address.clone() };
        let url = Url::parse(&address).map_err(|_| bad())?;
        if url.host_str().is_none() || !matches!(url.scheme(), "http" | "https") {
            return Err(bad());
        }
        let version = version(&agent, &program, &folders)?;
        let model = model.map(str::to_owned);
        Ok(Self { agent, program, helper, version, model, url, key: Secret::new(key) })
    }

    fn policy(
        &self,
        setup: &TrialSetup<'_>,
        home: &Path,
        environment: &Invocation<'_>,
    ) -> Result<Policy, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let host = HostName::parse(host).map_err(|error| text(&error))?;
        let grant = |methods| HostGrant {
            host: HostPattern::Exact(host.clone()),
            scheme: Some(if self.url.scheme() == "http" { Scheme::Http } else { Scheme::Https }),
            port: self.url.port(),
            path: String::new(),
            methods,
            allow_private_addresses: true,
        };
        let mut paths = vec![PathGrant::scratch("/tmp")];
        paths.push(PathGrant { path: own_files(&self.program), access: Access::Execute });
        let helper = self.helper.iter();
        paths.extend(helper.map(|path| PathGrant { path: path.clone(), access: Access::Execute }));
        paths.push(PathGrant::write(setup.workspace));
        paths.push(PathGrant::write(home));
        let programs = std::iter::once(&self.program).chain(&self.helper);
        let own = programs.filter_map(|path| Some(path.parent()?.display().to_string()));
        let search = TRUSTED_PATH.iter().map(|path| (*path).to_owned()).chain(own);
        let plain = |value: String| Variable::Plain(value);
        let mut variables = BTreeMap::from([
            ("PATH".to_owned(), plain(search.collect::<Vec<_>>().join(":"))),
            ("HOME".to_owned(), plain(home.display().to_string())),
            ("LANG".to_owned(), plain("C.UTF-8".to_owned())),
            ("TERM".to_owned(), plain("dumb".to_owned())),
            ("NO_COLOR".to_owned(), plain("1".to_owned())),
            (self.agent.url_variable.to_owned(), plain(environment.url.to_owned())),
            (self.agent.key_variable.to_owned(), Variable::Masked(self.key.clone())),
        ]);
        for (name, value) in (self.agent.environment)(environment) {
            variables.insert(name.to_owned(), plain(value));
        }
        Ok(Policy {
            paths,
            mounts: Vec::new(),
            programs: std::iter::once(&self.program).chain(&self.helper).cloned().collect(),
            extra_programs: ExtraPrograms::System,
            network: Network::Hosts(vec![grant(MethodGroup::Read), grant(MethodGroup::Write)]),
            environment: variables,
            limits: Limits {
                wall: Some(setup.time),
                memory: MEMORY_BYTES,
                counted_memory: CountedMemory::Data,
                processes: MAX_PROCESSES,
                output: MAX_OUTPUT_BYTES,
                ..Limits::default()
            },
            directory: setup.workspace.to_owned(),
            record_opened_files: RecordOpenedFiles::Off,
        })
    }

    async fn run_trial(&self, setup: TrialSetup<'_>) -> Result<HostRun, String> {
        let home = setup.scratch.join("home");
        for folder in ["", ".claude", ".codex", ".config", ".cache", ".local/share"] {
            std::fs::create_dir_all(home.join(folder)).map_err(|error| error.to_string())?;
        }
        let url = self.url.as_str().trim_end_matches('/').to_owned();
        let model = self.model.as_deref();
        let invocation = Invocation { model, url: &url, home: &home, max_steps: setup.max_steps };
        let arguments = (self.agent.arguments)(&invocation);
        let policy = self.policy(&setup, &home, &invocation)?;
        let (agent, program) = (self.agent, self.program.clone());
        let (prompt, wanted) = (setup.prompt.to_owned(), setup.until_used.map(str::to_owned));
        let seconds = setup.time.as_secs();
        let cancel = Cancel::default();
        // The agent ends when nobody waits for it any longer.
        let _guard = cancel.cancel_on_drop();
        let work = move || {
            run_agent(agent, &program, &arguments, policy, &prompt, wanted.as_deref(), &cancel)
        };
        let ran = tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())?;
        ran.and_then(|ended| ended.into_run(agent.id, seconds))
    }
}

/// The output of an agent that ended.
struct EndedAgent {
    transcript: Transcript,
    end: ProcessEnd,
    /// Whether it was ended because it used the skill.
    is_enough: bool,
    errors: String,
}

fn run_agent(
    agent: HeadlessAgent,
    program: &Path,
    arguments: &[String],
    policy: Policy,
    prompt: &str,
    wanted: Option<&str>,
    cancel: &Cancel,
) -> Result<EndedAgent, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{} does not start: {error}", agent.id);
    let sandbox = Sandbox::new(policy).map_err(|error| failed(&error))?;
    let process = sandbox.start(program, arguments).map_err(|error| failed(&error))?;
    let handle = Arc::new(process.kill_handle().map_err(|error| failed(&error))?);
    cancel.set_process(process.kill_handle().map_err(|error| failed(&error))?);
    let mut transcript = Transcript::default();
    let (mut line, mut errors, mut is_enough) = (Vec::new(), Vec::new(), false);
    let take = |transcript: &mut Transcript, line: &mut Vec<u8>| {
        if let Ok(event) = serde_json::from_slice::<Value>(line) {
            (agent.read)(&event, transcript);
        }
        line.clear();
    };
    let outcome = process.communicate(prompt.as_bytes(), |stream, bytes| {
        if stream == Stream::Error {
            errors.extend_from_slice(bytes);
            return;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                take(&mut transcript, &mut line);
            }
        }
        let is_used = wanted
            .is_some_and(|wanted| transcript.run.skills_used.iter().any(|used| used == wanted));
        if is_used && !is_enough {
            is_enough = true;
            handle.kill();
        }
    });
    take(&mut transcript, &mut line);
    let errors = String::from_utf8_lossy(&errors).into_owned();
    Ok(EndedAgent { transcript, end: outcome.end, is_enough, errors })
}

impl EndedAgent {
    /// The run, or the reason why the trial is invalid.
    fn into_run(self, id: &str, seconds: u64) -> Result<HostRun, String> {
        let Transcript { mut run, failure, is_done, .. } = self.transcript;
        run.requests = run.requests.max(1);
        if self.is_enough {
            return Ok(run);
        }
        let short = |text: &str| text.trim().chars().take(MAX_ERROR_CHARS).collect::<String>();
        if let Some(failure) = failure {
            return Err(format!("{id} failed: {}", short(&failure)));
        }
        match self.end {
            ProcessEnd::TimedOut => Err(format!("the agent did not finish within {seconds} s")),
            _ if is_done => Ok(run),
            ProcessEnd::Exited(code) => {
                let errors = self.errors.trim();
                let last = errors.char_indices().rev().nth(MAX_ERROR_CHARS).map_or(0, |(at, _)| at);
                Err(format!("{id} ended with {code} and no answer: {}", &errors[last..]))
            }
            end => Err(format!("{id} was ended: {end:?}")),
        }
    }
}

/// What an agent printed so far.
#[derive(Debug, Default)]
struct Transcript {
    run: HostRun,
    /// The calls by their identifiers, to find the one that failed.
    calls: Vec<String>,
    failure: Option<String>,
    /// Whether the last event was there.
    is_done: bool,
}

impl Transcript {
    fn says(&mut self, text: &str) {
        if !text.is_empty() {
            text.clone_into(&mut self.run.answer);
            self.run.messages.push(TraceMessage { role: Role::Assistant, text: text.to_owned() });
        }
    }

    fn calls(&mut self, id: &str, tool: &str, arguments: &Value) {
        let text = format!("{tool} {arguments}");
        self.run.messages.push(TraceMessage { role: Role::Tool, text });
        let (tool, arguments) = (tool.to_owned(), arguments.clone());
        self.run.calls.push(TraceCall { tool, arguments, failure: None });
        self.calls.push(id.to_owned());
    }

    fn answers(&mut self, id: &str, text: &str, has_failed: bool) {
        self.run.messages.push(TraceMessage { role: Role::Tool, text: text.to_owned() });
        let index = self.calls.iter().position(|known| known == id);
        if let Some(call) = index.and_then(|index| self.run.calls.get_mut(index))
            && has_failed
        {
            call.failure = Some("tool-failed".to_owned());
        }
    }

    fn uses(&mut self, skill: &str) {
        if !skill.is_empty() && !self.run.skills_used.iter().any(|used| used == skill) {
            self.run.skills_used.push(skill.to_owned());
        }
    }

    /// Notices that an agent reads the SKILL.md of a skill by itself.
    fn reads(&mut self, text: &str, skills_folder: &str) {
        let mut rest = text;
        while let Some(at) = rest.find(skills_folder) {
            rest = &rest[at + skills_folder.len()..];
            let Some(path) = rest.strip_prefix('/') else { continue };
            if let Some((name, file)) = path.split_once('/')
                && file.starts_with("SKILL.md")
            {
                self.uses(name);
            }
        }
    }
}

/// The folder with the files that a program needs beside itself: the whole installation of npm, or
/// its own folder.
fn own_files(program: &Path) -> PathBuf {
    let npm = program.ancestors().find(|folder| folder.ends_with("node_modules"));
    npm.or_else(|| program.parent()).unwrap_or(program).to_owned()
}

/// The first number that `--version` prints.
fn version(agent: &HeadlessAgent, program: &Path, folders: &str) -> Result<String, AgentError> {
    let failed = |reason: String| AgentError::DoesNotStart { program: agent.program, reason };
    let output = Command::new(program)
        .arg("--version")
        .env_clear()
        .env("PATH", folders)
        .env("HOME", std::env::temp_dir())
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let found = text.split_whitespace().find(is_version).map(str::to_owned);
    found.ok_or_else(|| failed("`--version` prints no version".to_owned()))
}

impl Host for AgentHost {
    fn record(&self) -> HostRecord {
        HostRecord {
            name: self.agent.id.to_owned(),
            version: self.version.clone(),
            model: self.model.clone().unwrap_or_else(|| "its own".to_owned()),
        }
    }

    fn tools(&self) -> Vec<String> {
        Vec::new()
    }

    fn disclosure(&self) -> Disclosure {
        HostRules::of(self.agent.id).map_or(Disclosure::Unknown, Disclosure::Rules)
    }

    fn network(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    fn skills_folder(&self) -> &'static str {
        self.agent.skills_folder
    }

    fn run<'a>(&'a self, setup: TrialSetup<'a>) -> BoxFuture<'a, Result<HostRun, String>> {
        Box::pin(async move {
            // The sandbox has its own deadline; this one is for what it cannot end.
            let most = setup.time + Duration::from_secs(30);
            let run = tokio::time::timeout(most, self.run_trial(setup)).await;
            run.unwrap_or_else(|_| Err("the agent did not end in time".to_owned()))
        })
    }
}

#[cfg(test)]
mod tests;
