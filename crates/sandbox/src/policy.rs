//! [`Policy`]: what a program may do. Whatever is not named is not there.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Serialize;

use crate::{host::HostPattern, limits};

/// What a program may do.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Policy {
    /// Files and folders that can be seen.
    pub paths: Vec<PathGrant>,
    /// Files and folders that can be read and executed at another path than the one that they have
    /// outside.
    pub mounts: Vec<Mount>,
    /// Programs that can be executed, by absolute path; what they need to start comes along.
    pub programs: Vec<PathBuf>,
    /// Which other programs there are.
    pub userland: Userland,
    /// Hosts that can be spoken to.
    pub network: Network,
    /// The whole environment; nothing is inherited.
    pub environment: BTreeMap<String, Variable>,
    /// How much it may use.
    pub limits: Limits,
    /// Where it starts; it must be visible.
    pub directory: PathBuf,
    /// Whether the files that it opens are noted.
    pub watch: Watch,
}

/// A file or folder that can be seen, at the path that it has outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathGrant {
    /// An absolute path without links and without `..`.
    pub path: PathBuf,
    /// What can be done with it.
    pub access: Access,
}

/// A file or folder that is shown at another path. There, a file or folder of the host must exist, or
/// the path lies in a folder that the run has for its own ([`Access::Private`], [`Access::Hidden`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// Where it is shown: an absolute path without links and without `..`.
    pub path: PathBuf,
    /// The file or folder of the host.
    pub source: PathBuf,
}

/// What can be done with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Read it and everything below; with [`Userland::System`] also execute it.
    Read,
    /// Read and execute it and everything below.
    Execute,
    /// A folder in which only what is granted for writing can be made. What is in it already is not kept by
    /// this: it has to be protected or hidden.
    Make,
    /// Read and change it and everything below; with [`Userland::System`] also execute it. It may be
    /// missing in a folder in which something can be made.
    Write,
    /// An empty folder of the run's own, in memory and of limited size, gone afterwards. With
    /// [`Userland::System`] what is written there can be executed.
    Private,
    /// Something below a writable folder that stays as it is. What the program makes there if it does not
    /// exist is put aside when the program has ended, and so is what it puts in the place of a link.
    Protected,
    /// An empty folder that cannot be changed, in the place of a folder that is not to be seen.
    /// What is granted below is there. In the place of a file, one that cannot be opened.
    Hidden,
}

/// Which programs there are besides those that a policy lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Userland {
    /// None, and none can be brought along: nothing that is granted can be executed.
    #[default]
    Listed,
    /// Those of the system, read-only: `/usr` and what belongs to it. Bits that change the user have
    /// no effect. Since any program can be started, granted and private folders can be executed, too.
    System,
}

/// Hosts that can be spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// No socket of any family.
    #[default]
    None,
    /// Only through the filtering proxy, only to these.
    Hosts(Vec<HostGrant>),
    /// Nothing leaves, and nothing is looked up: every request is kept in
    /// [`Outcome::caught`](crate::Outcome::caught) and answered with an empty JSON object.
    Trap,
}

/// Requests that may leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostGrant {
    /// Which hosts.
    pub host: HostPattern,
    /// `http` or `https` alone; `None` is both.
    pub scheme: Option<Scheme>,
    /// Only this port; `None` is the scheme's own.
    pub port: Option<u16>,
    /// Only paths that start with these segments; empty is all.
    pub path: String,
    /// Which methods.
    pub methods: Methods,
    /// Whether the name may lead to a private, loopback or link-local address.
    pub private: bool,
}

/// Schemes that the proxy speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Plain.
    Http,
    /// Over TLS, which the proxy ends and begins anew.
    Https,
}

/// Groups of methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Methods {
    /// GET, HEAD and OPTIONS, without a body.
    Read,
    /// All others.
    Write,
}

/// The value of an environment variable. It is never printed or written down, only its kind is.
#[derive(Clone, PartialEq, Eq)]
pub enum Variable {
    /// The program sees it.
    Plain(String),
    /// The program sees a placeholder; the proxy puts the value in for granted hosts.
    Masked(Secret),
}

/// A value that must not be printed.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

/// How much a program may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Time on the clock; then SIGTERM, and SIGKILL after a grace period.
    pub wall: Option<Duration>,
    /// Seconds of processor time of each process.
    pub cpu: Option<u64>,
    /// Bytes of memory of all processes.
    pub memory: u64,
    /// What it counts of a single process without a cgroup.
    pub counted: Counted,
    /// Processes and threads at once.
    pub processes: u64,
    /// Open files of each process.
    pub open_files: u64,
    /// Bytes of the largest file it may write.
    pub file_size: u64,
    /// Bytes of every private folder.
    pub scratch: u64,
    /// Bytes of standard output and error together.
    pub output: u64,
}

/// What the memory limit counts without a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// All addresses (`RLIMIT_AS`).
    Addresses,
    /// Private writable memory (`RLIMIT_DATA`), for runtimes that reserve far more than they use.
    Data,
}

/// Whether the files that a program opens are noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Watch {
    /// No.
    #[default]
    Off,
    /// Yes; opening a file takes longer.
    On,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Some(limits::WALL),
            cpu: None,
            memory: limits::MEMORY,
            counted: Counted::Addresses,
            processes: limits::PROCESSES,
            open_files: limits::OPEN_FILES,
            file_size: limits::FILE_SIZE,
            scratch: limits::SCRATCH,
            output: limits::OUTPUT,
        }
    }
}

impl PathGrant {
    /// A path that can be read.
    pub fn read(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), access: Access::Read }
    }

    /// A path that can be read and changed.
    pub fn write(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), access: Access::Write }
    }

    /// A folder in which only what is granted for writing can be made.
    pub fn make(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), access: Access::Make }
    }

    /// An empty folder of the run's own.
    pub fn private(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), access: Access::Private }
    }

    /// An empty folder that cannot be changed.
    pub fn hidden(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), access: Access::Hidden }
    }

    /// Something below a writable folder that stays as it is.
    pub fn protected(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), access: Access::Protected }
    }
}

impl Access {
    /// Whether the host's file at a granted path is shown.
    pub fn shows_host(self) -> bool {
        !matches!(self, Self::Private | Self::Hidden)
    }
}

impl Policy {
    /// What the policy says about a path, by itself: the most specific grant counts. Programs and
    /// what they need are not part of it. Tests hold what happens against this.
    pub fn access(&self, path: &Path) -> Option<Access> {
        self.paths
            .iter()
            .filter(|grant| path.starts_with(&grant.path))
            .max_by_key(|grant| (grant.path.components().count(), grant.access))
            .map(|grant| grant.access)
    }
}

impl Secret {
    /// Keeps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl Variable {
    /// The word for its kind.
    fn kind(&self) -> &'static str {
        match self {
            Self::Plain(_) => "plain",
            Self::Masked(_) => "masked",
        }
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

impl Serialize for Variable {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.kind())
    }
}

/// How large a terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters of a line.
    pub columns: u16,
}
