//! Defines [`Outcome`], the result of a run.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Serialize;

use crate::proxy::{HostEvent, TrappedRequest};

/// The result of a run: how the program ended and what it did.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// How the program ended.
    pub end: ProcessEnd,
    /// The time from start to end.
    pub duration: Duration,
    /// Bytes of standard output and error together.
    pub output_bytes: u64,
    /// Requests that the program made or tried to make.
    pub hosts: Vec<HostEvent>,
    /// Requests that a trap stored, in order of arrival.
    #[serde(skip)]
    pub trapped_requests: Vec<TrappedRequest>,
    /// Files that the program opened or tried to open, if it was watched.
    pub files: FileEvents,
    /// Files that the program created at protected paths.
    #[serde(rename = "put_aside")]
    pub moved_files: Vec<MovedFile>,
    /// The protections that were active.
    pub enforcement: Enforcement,
}

/// A file or folder that a program created at a protected path and that was moved aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MovedFile {
    /// The protected path.
    pub from: PathBuf,
    /// The new path; `None` if it could not be moved.
    pub to: Option<PathBuf>,
    /// Why it could not be moved, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl std::fmt::Display for MovedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it created {}, which other programs obey; ", one_line(&self.from))?;
        match (&self.to, &self.error) {
            (Some(to), _) => write!(f, "it is now {}", one_line(to)),
            (None, Some(error)) => write!(f, "remove it: it cannot be renamed: {error}"),
            (None, None) => f.write_str("inspect or remove it"),
        }
    }
}

/// A path without control characters: the program chose it, and a line feed in it could look like a line
/// that Savoir prints.
fn one_line(path: &Path) -> String {
    let escape = |character: char| {
        if character.is_control() {
            character.escape_default().collect()
        } else {
            String::from(character)
        }
    };
    path.to_string_lossy().chars().map(escape).collect()
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessEnd {
    /// The program exited with this code.
    Exited(i32),
    /// The program was ended by this signal.
    Signalled(i32),
    /// The program took longer than allowed.
    TimedOut,
    /// The program printed more than allowed.
    TooMuchOutput,
    /// The program's processes together used more memory than allowed.
    TooMuchMemory,
    /// The program started more processes than allowed.
    TooManyProcesses,
    /// The caller stopped the program.
    Stopped,
}

/// Files that a program opened or tried to open, grouped by the kind of access.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileEvents {
    /// Files opened for reading.
    pub read: BTreeSet<PathBuf>,
    /// Files opened for writing, created, renamed or removed.
    pub written: BTreeSet<PathBuf>,
    /// Files that the program removed, renamed or linked, or tried to. Such a call changes the
    /// folder, so access to the file alone does not suffice for it.
    #[serde(skip)]
    pub replaced: BTreeSet<PathBuf>,
    /// The same in scratch folders, which were deleted after the run.
    #[serde(rename = "written_in_vain")]
    pub written_privately: BTreeSet<PathBuf>,
    /// Files that were executed.
    pub executed: BTreeSet<PathBuf>,
    /// Files that exist on the host but that the program could not access.
    pub denied: BTreeSet<PathBuf>,
    /// The subset of `denied` that the program tried to write.
    pub denied_writes: BTreeSet<PathBuf>,
    /// Programs that exist on the host but that the program could not start.
    pub denied_programs: BTreeSet<PathBuf>,
    /// Number of events beyond the limit, which are not listed.
    pub more: u64,
}

/// The protections that were active in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Enforcement {
    /// The kinds of namespaces that the run had of its own.
    pub namespaces: Vec<&'static str>,
    /// Version of Landlock; `None` if the kernel does not support it.
    pub landlock: Option<u32>,
    /// Whether system calls were filtered.
    pub seccomp: bool,
    /// The mechanism that enforced the limits.
    pub limits: LimitMechanism,
    /// Whether requests went through the proxy; otherwise the run had no network.
    pub proxy: bool,
    /// Whether opened files were recorded.
    pub watched: bool,
}

/// The mechanism that enforces the limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitMechanism {
    /// Resource limits, which count each process separately; a thread also adds up all processes.
    #[default]
    ResourceLimits,
    /// A control group, which counts all processes together, in addition to resource limits.
    ControlGroup,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_moved_files_stay_on_one_line() {
        let from = "dir/x\nhint: run this\r\u{1b}[2K/.git".into();
        let moved = MovedFile { from, to: None, error: None };
        let text = moved.to_string();
        assert!(
            text.starts_with(r"it created dir/x\nhint: run this\r\u{1b}[2K/.git, which"),
            "{text}"
        );
        assert!(!text.contains(char::is_control));
    }
}
