//! Runs shell commands in a sandbox that can write only to the workspace.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use savoir_engine::{
    cancel::Cancel,
    envelope::{Capture, Captured, Stream as Printed},
    grant,
    protection::{CommandGuard, Root, printable_path},
};
use savoir_sandbox::{
    Access, CountedMemory, ExtraPrograms, FileEvents, Limits, MovedFile, Network, Outcome,
    PathGrant, Policy, ProcessEnd, RecordOpenedFiles, Sandbox, Stream, TRUSTED_PATH, Variable,
    find_program,
};
use serde_json::json;

use super::{HostTools, ToolFailure, unusable};
use crate::{allowed_tools::CallGuard, consent::HostAction, toolset::ToolAnswer};

/// Maximum and default time limit of a command, in seconds.
pub(super) const MAX_SECONDS: u64 = 300;
const DEFAULT_TIMEOUT_SECONDS: u64 = 60;
/// Maximum output of a command in bytes; it is stopped when it prints more. The model gets the
/// beginning and the end.
const MAX_OUTPUT_BYTES: u64 = 8 << 20;
/// Maximum number of moved files that are listed for the model.
const MAX_REPORTED: usize = 40;

impl HostTools {
    pub(super) async fn run_command(
        &self,
        command: &str,
        seconds: Option<u64>,
        call_guard: CallGuard<'_>,
    ) -> Result<ToolAnswer, ToolFailure> {
        if command.trim().is_empty() || command.contains('\0') {
            return Err(("missing-argument", "the command is empty, or has a NUL".to_owned()));
        }
        let seconds = seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS).clamp(1, MAX_SECONDS);
        let (shell, policy) = self.shell_and_policy(seconds)?;
        self.ask_consent(HostAction::Run { command: command.to_owned() }, call_guard).await?;
        Ok(answer(&self.execute(command, shell, policy).await?, seconds))
    }

    /// Runs a command without asking, in the sandbox for commands of the model, and records which
    /// files it opens. An error is a stable code and a message.
    pub async fn run_watched(
        &self,
        command: &str,
        seconds: u64,
    ) -> Result<CommandEnd, (&'static str, String)> {
        let (shell, mut policy) = self.shell_and_policy(seconds)?;
        policy.record_opened_files = RecordOpenedFiles::On;
        let CommandResult { end, captured, moved_lines, files } =
            self.execute(command, shell, policy).await?;
        let exit_code = match end {
            ProcessEnd::Exited(code) => Some(code),
            _ => None,
        };
        let (ended, output) = (describe_end(end, seconds).0, captured.output);
        let FileEvents { denied, denied_writes, .. } = files;
        // Every shell opens its terminal and reads `/proc`, so these accesses say nothing about the
        // command.
        let is_file =
            |path: &PathBuf| !["/dev", "/proc", "/sys"].iter().any(|at| path.starts_with(at));
        let denied = denied.into_iter().filter(is_file).collect();
        let denied_writes = denied_writes.into_iter().filter(is_file).collect();
        Ok(CommandEnd { exit_code, ended, output, moved_files: moved_lines, denied, denied_writes })
    }

    fn shell_and_policy(&self, seconds: u64) -> Result<(PathBuf, Policy), ToolFailure> {
        let shells = TRUSTED_PATH.map(PathBuf::from);
        let shell = find_program("bash", &shells).or_else(|| find_program("sh", &shells));
        let shell = shell.ok_or_else(|| ("no-shell", "there is no shell".to_owned()))?;
        let policy = self.policy(&shell, Duration::from_secs(seconds))?;
        Ok((shell, policy))
    }

    async fn execute(
        &self,
        command: &str,
        shell: PathBuf,
        policy: Policy,
    ) -> Result<CommandResult, ToolFailure> {
        let cancel = Cancel::default();
        // Dropping this future, because the caller stops waiting, ends the command.
        let _guard = cancel.cancel_on_drop();
        let words = ["-c".to_owned(), command.to_owned()];
        let (workspace, protected) = (Arc::clone(&self.workspace), self.protected());
        let (baseline, home) = (Arc::clone(&self.baseline), self.run_env.home.clone());
        let turn = Arc::clone(&self.commands).read_owned().await;
        let work = move || {
            let root = workspace.folder_to_look_at();
            let before = |enforced: &[PathGrant]| {
                baseline.start_command(root, protected, &home, enforced).map_err(unusable)
            };
            let ran = run_protected(policy, &shell, &words, &cancel, root, before);
            drop(turn);
            ran
        };
        let ran = tokio::task::spawn_blocking(work).await;
        ran.unwrap_or_else(|error| Err(("command-failed", error.to_string())))
    }

    fn policy(&self, shell: &Path, wall: Duration) -> Result<Policy, ToolFailure> {
        let root = self.workspace.root().to_owned();
        // Commands may change the workspace's own repository, except for files that git executes.
        let opened = [root.join(".git")];
        let protected = grant::protect(&self.run_env, None, std::slice::from_ref(&root), &opened);
        let protected = protected.map_err(|error| ("workspace-unusable", error.to_string()))?;
        let mut paths = vec![PathGrant::scratch("/tmp")];
        if self.run_env.home.parent().is_some() {
            paths.push(PathGrant::scratch(&self.run_env.home));
        }
        paths.push(PathGrant::write(&root));
        paths.extend(protected);
        paths.extend(grant::stored_secrets(&self.run_env).map(PathGrant::hidden));
        let home = self.run_env.home.display().to_string();
        let search = TRUSTED_PATH.join(":");
        let environment = [
            ("PATH", search.as_str()),
            ("HOME", &home),
            ("LANG", "C.UTF-8"),
            ("TERM", "dumb"),
            // Nobody can answer a prompt.
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_PAGER", "cat"),
        ];
        let plain =
            |(name, value): (&str, &str)| (name.to_owned(), Variable::Plain(value.to_owned()));
        Ok(Policy {
            paths,
            programs: vec![shell.to_owned()],
            mounts: Vec::new(),
            extra_programs: ExtraPrograms::System,
            network: Network::None,
            environment: BTreeMap::from(environment.map(plain)),
            limits: Limits {
                wall: Some(wall),
                counted_memory: CountedMemory::Data,
                output: MAX_OUTPUT_BYTES,
                ..Limits::default()
            },
            directory: root,
            record_opened_files: RecordOpenedFiles::Off,
        })
    }
}

/// How a watched command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandEnd {
    /// The exit code; `None` if the command did not exit by itself.
    pub exit_code: Option<i32>,
    /// Describes how the command ended, for the model.
    pub ended: String,
    /// The output; the middle is left out if it is long.
    pub output: String,
    /// Sentences about protected files that the command created and that were moved aside.
    pub moved_files: Vec<String>,
    /// Existing files that the command could not access.
    pub denied: Vec<PathBuf>,
    /// The files among `denied` that the command tried to write.
    pub denied_writes: Vec<PathBuf>,
}

/// The result of a command.
struct CommandResult {
    end: ProcessEnd,
    captured: Captured,
    /// Sentences about the files that were moved aside.
    moved_lines: Vec<String>,
    /// The files that the command opened, if they were recorded.
    files: FileEvents,
}

/// Runs a command while protected files are read-only, and moves aside protected files that it
/// creates.
fn run_protected<'a>(
    mut policy: Policy,
    shell: &Path,
    words: &[String],
    cancel: &Cancel,
    root: &Root,
    start: impl FnOnce(&[PathGrant]) -> Result<(CommandGuard<'a>, Vec<PathGrant>), ToolFailure>,
) -> Result<CommandResult, ToolFailure> {
    let is_protected = |grant: &&PathGrant| grant.access == Access::Protected;
    let protected: Vec<PathGrant> = policy.paths.iter().filter(is_protected).cloned().collect();
    let (guard, more) = start(&protected)?;
    policy.paths.extend(more);
    let ran = run(policy, shell, words, cancel);
    let (mut moved, failed) = guard.move_aside(root);
    ran.map(|(outcome, captured)| {
        moved.extend(outcome.moved_files);
        let moved_lines =
            moved.iter().map(|one| describe_moved(one, root.path())).chain(failed).collect();
        CommandResult { end: outcome.end, captured, moved_lines, files: outcome.files }
    })
}

/// Runs the command until it ends.
fn run(
    policy: Policy,
    shell: &Path,
    words: &[String],
    cancel: &Cancel,
) -> Result<(Outcome, Captured), ToolFailure> {
    let failed = |error: &dyn std::fmt::Display| ("sandbox-failed", error.to_string());
    let sandbox = Sandbox::new(policy).map_err(|error| failed(&error))?;
    let process = sandbox.start(shell, words).map_err(|error| failed(&error))?;
    cancel.set_process(process.kill_handle().map_err(|error| failed(&error))?);
    let mut capture = Capture::default();
    let outcome = process.communicate(b"", |stream, bytes| {
        let stream = match stream {
            Stream::Output => Printed::Stdout,
            Stream::Error => Printed::Stderr,
        };
        capture.push(stream, bytes);
    });
    Ok((outcome, capture.finish()))
}

/// Describes how a command ended, and returns the error code if it failed.
fn describe_end(end: ProcessEnd, seconds: u64) -> (String, Option<&'static str>) {
    match end {
        ProcessEnd::Exited(0) => ("exit code 0".to_owned(), None),
        ProcessEnd::Exited(code) => (format!("exit code {code}"), Some("command-failed")),
        ProcessEnd::TimedOut => (format!("it took longer than {seconds} s"), Some("timeout")),
        ProcessEnd::TooMuchOutput => ("it printed too much".to_owned(), Some("output-limit")),
        ProcessEnd::TooMuchMemory => ("it took too much memory".to_owned(), Some("memory-limit")),
        ProcessEnd::TooManyProcesses => {
            ("it started too many processes".to_owned(), Some("process-limit"))
        }
        ProcessEnd::Stopped => ("it was stopped".to_owned(), Some("stopped")),
        ProcessEnd::Signalled(signal) => {
            (format!("it ended by signal {signal}"), Some("command-failed"))
        }
    }
}

fn answer(ran: &CommandResult, seconds: u64) -> ToolAnswer {
    let CommandResult { end, captured, moved_lines, .. } = ran;
    let (ended, failure) = describe_end(*end, seconds);
    let (output, truncated) = (captured.output.as_str(), captured.truncated > 0);
    let mut data = json!({"ended": ended, "truncated": truncated, "output": output});
    let text = format!("{output}\n[{ended}]");
    if moved_lines.is_empty() {
        let failure = failure.map(str::to_owned);
        return ToolAnswer { text, data: Some(data), failure, access: None };
    }
    let mut lines: Vec<String> = moved_lines.iter().take(MAX_REPORTED).cloned().collect();
    if let Some(more) = moved_lines.len().checked_sub(MAX_REPORTED + 1) {
        lines.push(format!("{} more were found", more + 1));
    }
    data["put_aside"] = json!(lines);
    let text = format!(
        "{}; commands cannot create files that other programs obey: use write_file for \
            instructions and workflows, the user must write the others\n{text}",
        lines.join("; ")
    );
    let failure = failure.unwrap_or("protected-path").to_owned();
    ToolAnswer { text, data: Some(data), failure: Some(failure), access: None }
}

fn describe_moved(MovedFile { from, to, error }: &MovedFile, root: &Path) -> String {
    let below = |path: &Path| printable_path(path.strip_prefix(root).unwrap_or(path));
    let from = below(from);
    if let Some(to) = to {
        return format!("`{from}` was renamed to `{}`", below(to));
    }
    let error = error.as_deref().unwrap_or("it cannot be renamed");
    format!("`{from}` must be removed by the user, because it cannot be renamed: {error}")
}
