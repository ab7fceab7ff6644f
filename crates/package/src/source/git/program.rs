//! Runs the program `git` without a shell, without settings or code of the repository, and within
//! limits of time and size.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, Command},
    time::{sleep, timeout},
};

use super::{GitUrl, failure};
use crate::source::{Settings, SourceError};

/// Settings that override those of the user and the system.
const GIT_SETTINGS: [&str; 17] = [
    "advice.detachedHead=false",
    "core.attributesFile=/dev/null",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.symlinks=false",
    "fetch.negotiationAlgorithm=noop",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
    "maintenance.auto=false",
    "protocol.ext.allow=never",
    "remote.origin.partialclonefilter=blob:none",
    "remote.origin.promisor=true",
    "submodule.recurse=false",
    "transfer.bundleURI=false",
];

/// `GIT_` variables that are passed on: the user's settings, certificates, proxies, and programs
/// that ask for passwords. All others could redirect git to another repository or other programs.
const KEPT_VARIABLES: [&str; 20] = [
    "GIT_ASKPASS",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_SYSTEM",
    "GIT_HTTP_PROXY_AUTHMETHOD",
    "GIT_PROXY_SSL_CAINFO",
    "GIT_PROXY_SSL_CERT",
    "GIT_PROXY_SSL_CERT_PASSWORD_PROTECTED",
    "GIT_PROXY_SSL_KEY",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_CERT",
    "GIT_SSL_CERT_PASSWORD_PROTECTED",
    "GIT_SSL_KEY",
    "GIT_SSL_NO_VERIFY",
];

/// Prefixes of the variables with settings.
const KEPT_VARIABLE_PREFIXES: [&str; 2] = ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"];

/// Maximum bytes of git's error output that are read.
const MAX_COMPLAINT: usize = 16 * 1024;

/// How often the size of the cache is checked while git writes into it.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A call of git in a cached repository.
pub(super) struct GitCommand<'a> {
    pub(super) settings: &'a Settings,
    pub(super) url: &'a GitUrl,
    pub(super) folder: &'a Path,
    /// Maximum bytes of the output.
    pub(super) limit: usize,
    /// The allowed protocols; empty if no server is needed.
    pub(super) protocols: &'a str,
    /// Maximum size of the repository in the cache, in bytes.
    pub(super) room: u64,
}

impl GitCommand<'_> {
    /// Runs git with an input, and returns its output.
    pub(super) async fn run(
        &self,
        arguments: &[&str],
        input: &[u8],
    ) -> Result<Vec<u8>, SourceError> {
        let mut child = self.command(arguments).spawn().map_err(|error| self.start_error(error))?;
        let group = ProcessGroup::of(&child);
        let waited = self.settings.git_timeout;
        let done = tokio::select! {
            done = timeout(waited, communicate(&mut child, input, self.limit)) => {
                done.map_err(|_| SourceError::TimedOut { place: self.url.to_string(), waited })?
            }
            () = self.wait_until_too_large() => {
                return Err(self.too_large(self.room));
            }
        };
        let answer = done.map_err(|error| self.io_error(&error))?;
        if answer.too_long {
            return Err(self.too_large(self.limit as u64));
        }
        group.disarm();
        match answer {
            GitOutput { success: true, output, .. } => Ok(output),
            GitOutput { complaint, .. } => Err(failure::explain(self.url, &complaint)),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.settings.git);
        for (name, _) in std::env::vars_os() {
            if is_dropped_variable(&name) {
                command.env_remove(&name);
            }
        }
        command
            .env("GIT_ALLOW_PROTOCOL", self.protocols)
            .env("GIT_LFS_SKIP_SMUDGE", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C")
            // There is no user to answer prompts, so they must fail.
            .env("GCM_INTERACTIVE", "never");
        // A graphical password program of the user may still ask.
        if std::env::var_os("SSH_ASKPASS").is_none() {
            command.env("SSH_ASKPASS", "false");
        }
        command.env("SSH_ASKPASS_REQUIRE", "force");
        command.arg("--git-dir").arg(self.folder).arg("--no-pager");
        for setting in GIT_SETTINGS {
            command.args(["-c", setting]);
        }
        if !self.settings.git_redirects {
            command.args(["-c", "http.followRedirects=false"]);
        }
        command.arg("-c").arg(format!("remote.origin.url={}", self.url));
        command.args(arguments).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        command
    }

    /// Returns when the repository exceeds its maximum size, which only a server can cause.
    async fn wait_until_too_large(&self) {
        if self.protocols.is_empty() {
            return std::future::pending().await;
        }
        while size(self.folder) <= self.room {
            sleep(POLL_INTERVAL).await;
        }
    }

    fn too_large(&self, limit: u64) -> SourceError {
        SourceError::TooLarge { place: self.url.to_string(), limit }
    }

    fn start_error(&self, error: io::Error) -> SourceError {
        let path = &self.settings.git;
        match error.kind() {
            io::ErrorKind::NotFound => SourceError::NoGit(path.display().to_string()),
            _ => SourceError::Io { path: path.clone(), error },
        }
    }

    fn io_error(&self, error: &io::Error) -> SourceError {
        SourceError::Git { url: self.url.clone(), message: error.to_string() }
    }
}

/// Returns the absolute paths of the files that git tracks in a work tree.
///
/// The folder may come from an attacker, and git settings in a repository can start programs. So
/// git reads only the index, with an empty repository of ours.
pub(in crate::source) fn tracked_files(root: &Path) -> io::Result<HashSet<PathBuf>> {
    let empty = tempfile::tempdir()?;
    for folder in ["objects", "refs"] {
        std::fs::create_dir(empty.path().join(folder))?;
    }
    std::fs::write(empty.path().join("HEAD"), "ref: refs/heads/main\n")?;
    let mut command = std::process::Command::new("git");
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_dropped_variable(name)) {
        command.env_remove(&name);
    }
    command
        .env("GIT_DIR", empty.path())
        .env("GIT_WORK_TREE", root)
        .env("GIT_INDEX_FILE", git_folder(root)?.join("index"))
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_OPTIONAL_LOCKS", "0");
    for setting in GIT_SETTINGS {
        command.args(["-c", setting]);
    }
    command.args(["ls-files", "-z"]).current_dir(root).stdin(Stdio::null());
    let answer = command.output()?;
    if !answer.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&answer.stderr).into_owned()));
    }
    let paths = answer.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(paths.map(|path| root.join(OsStr::from_bytes(path))).collect())
}

/// Returns the `.git` folder. In a linked work tree, `.git` is a file that contains its path.
fn git_folder(root: &Path) -> io::Result<PathBuf> {
    let git = root.join(".git");
    if git.is_dir() {
        return Ok(git);
    }
    let text = std::fs::read_to_string(&git)?;
    let named = text.strip_prefix("gitdir:").map(str::trim);
    let named = named.ok_or_else(|| io::Error::other("`.git` does not name a folder"))?;
    Ok(root.join(named))
}

fn is_dropped_variable(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let is_kept = KEPT_VARIABLES.contains(&name.as_ref())
        || KEPT_VARIABLE_PREFIXES.iter().any(|start| name.starts_with(start));
    name.starts_with("GIT_") && !is_kept
}

/// The output of a git process.
struct GitOutput {
    success: bool,
    output: Vec<u8>,
    complaint: String,
    too_long: bool,
}

async fn communicate(child: &mut Child, input: &[u8], limit: usize) -> io::Result<GitOutput> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // Git may exit before it has read everything; its error output explains why.
            let _ = stdin.write_all(input).await;
        }
    };
    let ((), output, complaint) =
        tokio::join!(write, read_limited(stdout, limit + 1), read_limited(stderr, MAX_COMPLAINT));
    let mut output = output?;
    let too_long = output.len() > limit;
    output.truncate(limit);
    // A process that exceeded the output limit may block on a full pipe, so do not wait for it.
    let success = !too_long && child.wait().await?.success();
    let complaint = String::from_utf8_lossy(&complaint?).into_owned();
    Ok(GitOutput { success, output, complaint, too_long })
}

async fn read_limited(from: Option<impl AsyncRead + Unpin>, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(limit as u64).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// The process group of git and its helpers, which is killed when this is dropped.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }

    /// Git has exited and all its helpers with it, so there is nothing to kill.
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // The processes may have exited meanwhile.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Returns the total size of the files in a folder. Files that are deleted meanwhile are skipped.
pub(super) fn size(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listing_tracked_files_ignores_repository_settings() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let git = |arguments: &[&str]| {
            let mut command = std::process::Command::new("git");
            let done = command.args(arguments).current_dir(&root).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        };
        git(&["init", "-q"]);
        fs::write(root.join("a.txt"), "a").unwrap();
        fs::write(root.join("b.txt"), "b").unwrap();
        git(&["add", "a.txt"]);
        // Git would fail if it read this invalid file, and would run programs that a valid one
        // names.
        fs::write(root.join(".git/config"), "[core\n").unwrap();
        assert_eq!(tracked_files(&root).unwrap(), HashSet::from([root.join("a.txt")]));
    }

    #[test]
    fn git_variables_are_removed_from_environment() {
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_EXEC_PATH", "GIT_PROXY_COMMAND"] {
            assert!(is_dropped_variable(OsStr::new(name)), "{name}");
        }
        for name in ["GIT_SSH_COMMAND", "GIT_CONFIG_KEY_0", "HOME", "https_proxy"] {
            assert!(!is_dropped_variable(OsStr::new(name)), "{name}");
        }
    }
}
