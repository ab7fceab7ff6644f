//! What a run came to.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use serde::Serialize;

use crate::proxy::{Caught, HostEvent};

/// What a run came to.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// From its start to its end.
    pub duration: Duration,
    /// Bytes of standard output and error together.
    pub output_bytes: u64,
    /// Requests that it made or tried to make.
    pub hosts: Vec<HostEvent>,
    /// Requests that a trap kept, in the order in which they came.
    #[serde(skip)]
    pub caught: Vec<Caught>,
    /// Files that it opened or tried to open, if it was watched.
    pub files: FileEvents,
    /// What it made in protected places.
    pub put_aside: Vec<PutAside>,
    /// What held it.
    pub enforcement: Enforcement,
}

/// Something that a program made in a protected place, and that was put aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PutAside {
    /// Where it was.
    pub from: PathBuf,
    /// Where it is now; nothing if it could not be moved.
    pub to: Option<PathBuf>,
    /// Why it could not be moved, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl std::fmt::Display for PutAside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it made {}, which other programs obey; ", self.from.display())?;
        match (&self.to, &self.error) {
            (Some(to), _) => write!(f, "that is now {}", to.display()),
            (None, Some(error)) => write!(f, "remove it, since it cannot be renamed: {error}"),
            (None, None) => f.write_str("look at it, or remove it"),
        }
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It took longer than allowed.
    TimedOut,
    /// It printed more than allowed.
    TooMuchOutput,
    /// Its processes together took more memory than allowed.
    TooMuchMemory,
    /// It started more processes than allowed.
    TooManyProcesses,
    /// Whoever started it ended it.
    Stopped,
}

/// Files that a program opened or tried to open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileEvents {
    /// Opened for reading.
    pub read: BTreeSet<PathBuf>,
    /// Opened for writing, made, renamed or removed.
    pub written: BTreeSet<PathBuf>,
    /// The same, in folders of the run's own that are gone.
    pub written_in_vain: BTreeSet<PathBuf>,
    /// Executed.
    pub executed: BTreeSet<PathBuf>,
    /// Exist outside, and were not to be had.
    pub denied: BTreeSet<PathBuf>,
    /// Those of the denied that were to be written.
    pub denied_writes: BTreeSet<PathBuf>,
    /// Programs that exist outside, and could not be started.
    pub denied_programs: BTreeSet<PathBuf>,
    /// Events beyond the limit.
    pub more: u64,
}

/// What held a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Enforcement {
    /// Namespaces of its own.
    pub namespaces: Vec<&'static str>,
    /// Version of Landlock; `None` if the kernel has none.
    pub landlock: Option<u32>,
    /// Whether system calls are filtered.
    pub seccomp: bool,
    /// What holds the limits.
    pub limits: LimitedBy,
    /// Whether requests go through the proxy; otherwise there is no network.
    pub proxy: bool,
    /// Whether opened files are noted.
    pub watched: bool,
}

/// What holds the limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitedBy {
    /// Resource limits, which count each process by itself; all of them are counted beside.
    #[default]
    ResourceLimits,
    /// A control group, which counts all processes together, beside resource limits.
    ControlGroup,
}
