//! Defines [`Policy`]: what a program in the sandbox may do. Everything that the policy does not
//! name does not exist for the program.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Serialize;

use crate::{host::HostPattern, limits};

/// The rights and limits of a program.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Policy {
    /// Files and folders that the program can see.
    pub paths: Vec<PathGrant>,
    /// Files and folders that the program can read and execute at a path that differs from their
    /// host path.
    pub mounts: Vec<Mount>,
    /// Programs that can be executed, by absolute path; the files that they need to start are added
    /// automatically.
    pub programs: Vec<PathBuf>,
    /// Which other programs can be executed.
    #[serde(rename = "userland")]
    pub extra_programs: ExtraPrograms,
    /// Hosts that the program can reach.
    pub network: Network,
    /// All environment variables; none is inherited.
    pub environment: BTreeMap<String, Variable>,
    /// Limits on time, memory, processes and output.
    pub limits: Limits,
    /// The working directory; it must be visible.
    pub directory: PathBuf,
    /// Whether the files that the program opens are recorded.
    #[serde(rename = "watch")]
    pub record_opened_files: RecordOpenedFiles,
}

/// A file or folder that the program can see at its host path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathGrant {
    /// An absolute path without links and without `..`.
    pub path: PathBuf,
    /// What the program can do with the path.
    pub access: Access,
}

/// A host file or folder that the program sees at another path. A host file or folder must exist at
/// that path, or the path must be in an [`Access::Scratch`] or [`Access::Hidden`] folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// The path inside the sandbox: absolute, without links and without `..`.
    pub path: PathBuf,
    /// The file or folder on the host.
    pub source: PathBuf,
}

/// What a program can do with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Read the path and everything below; with [`ExtraPrograms::System`] also execute it.
    Read,
    /// Read and execute the path and everything below.
    Execute,
    /// Create entries in this folder, but only those that have a [`Access::Write`] grant. This does
    /// not protect existing entries: they must be protected or hidden separately.
    #[serde(rename = "make")]
    CreateGranted,
    /// Read and change the path and everything below; with [`ExtraPrograms::System`] also execute
    /// it. The path may be missing if it is in a folder with [`Access::CreateGranted`] or
    /// [`Access::Write`].
    Write,
    /// An empty folder in memory that belongs to the run, has a size limit and is deleted
    /// afterwards. With [`ExtraPrograms::System`] files written there can be executed.
    #[serde(rename = "private")]
    Scratch,
    /// A path below a writable folder that stays unchanged. If it does not exist and the program
    /// creates it, or if it is a link and the program replaces it, the new file is moved aside when
    /// the program has ended.
    Protected,
    /// Hides the path: a folder becomes an empty read-only folder, in which paths with their own
    /// grants are still visible; a file becomes one that cannot be opened.
    Hidden,
}

/// Which programs can be executed besides those that a policy lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExtraPrograms {
    /// None. Nothing in granted folders can be executed either, so the program cannot bring its
    /// own.
    #[default]
    #[serde(rename = "listed")]
    None,
    /// The system's programs, read-only: `/usr` and related folders. Setuid and setgid bits have no
    /// effect. Since any program can be started, granted and scratch folders are executable, too.
    System,
}

/// Hosts that a program can reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// None: the program cannot create a socket of any family.
    #[default]
    None,
    /// These hosts, through the filtering proxy only.
    Hosts(Vec<HostGrant>),
    /// None, but every request seems to succeed: nothing is sent and no name is resolved. Requests
    /// are stored in [`Outcome::trapped_requests`](crate::Outcome::trapped_requests) and answered
    /// with an empty JSON object.
    Trap,
}

/// A set of requests that the proxy allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostGrant {
    /// The hosts.
    pub host: HostPattern,
    /// Only this scheme; `None` allows both.
    pub scheme: Option<Scheme>,
    /// Only this port; `None` is the default port of the scheme.
    pub port: Option<u16>,
    /// Only paths that start with these segments; empty allows all.
    pub path: String,
    /// The group of methods.
    pub methods: MethodGroup,
    /// Whether the name may resolve to a private, loopback or link-local address.
    #[serde(rename = "private")]
    pub allow_private_addresses: bool,
}

/// URL schemes that the proxy supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS; the proxy terminates it and opens a new TLS connection to the host.
    Https,
}

/// Groups of HTTP methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MethodGroup {
    /// GET, HEAD and OPTIONS, without a body.
    Read,
    /// All other requests.
    Write,
}

/// The value of an environment variable. Debug output and serialization show only its kind, never
/// the value.
#[derive(Clone, PartialEq, Eq)]
pub enum Variable {
    /// The program sees the value.
    Plain(String),
    /// The program sees a placeholder; the proxy replaces it by the value in requests to granted
    /// hosts.
    Masked(Secret),
}

/// A value that must not be printed. Its debug output is `…`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

/// Limits on the resources of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Wall-clock time; then SIGTERM, and SIGKILL after a grace period.
    pub wall: Option<Duration>,
    /// Seconds of processor time for each process.
    pub cpu: Option<u64>,
    /// Bytes of memory for all processes together.
    pub memory: u64,
    /// Which memory counts for each process where there is no cgroup.
    #[serde(rename = "counted")]
    pub counted_memory: CountedMemory,
    /// Number of processes and threads at the same time.
    pub processes: u64,
    /// Number of open files for each process.
    pub open_files: u64,
    /// Bytes of the largest file that the program may write.
    pub file_size: u64,
    /// Bytes of each scratch folder.
    pub scratch: u64,
    /// Bytes of standard output and error together.
    pub output: u64,
}

/// Which memory the limit counts where there is no cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedMemory {
    /// The whole address space (`RLIMIT_AS`).
    #[serde(rename = "addresses")]
    AddressSpace,
    /// Private writable memory (`RLIMIT_DATA`), for runtimes that reserve far more than they use.
    Data,
}

/// Whether the files that a program opens are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordOpenedFiles {
    /// Not recorded.
    #[default]
    Off,
    /// Recorded; opening a file takes longer.
    On,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Some(limits::DEFAULT_WALL_TIME),
            cpu: None,
            memory: limits::DEFAULT_MEMORY_BYTES,
            counted_memory: CountedMemory::AddressSpace,
            processes: limits::DEFAULT_PROCESSES,
            open_files: limits::DEFAULT_OPEN_FILES,
            file_size: limits::DEFAULT_FILE_BYTES,
            scratch: limits::DEFAULT_SCRATCH_BYTES,
            output: limits::DEFAULT_OUTPUT_BYTES,
        }
    }
}

impl PathGrant {
    /// Creates a grant to read a path.
    pub fn read(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), access: Access::Read }
    }

    /// Creates a grant to read and change a path.
    pub fn write(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), access: Access::Write }
    }

    /// Creates a grant for a folder in which the program may create only paths that have a write
    /// grant.
    pub fn create_granted(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), access: Access::CreateGranted }
    }

    /// Creates a grant for an empty folder in memory that belongs to the run.
    pub fn scratch(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), access: Access::Scratch }
    }

    /// Creates a grant that hides a path behind an empty read-only folder.
    pub fn hidden(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), access: Access::Hidden }
    }

    /// Creates a grant that protects a path below a writable folder from changes.
    pub fn protected(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), access: Access::Protected }
    }
}

impl Access {
    /// Returns whether the program sees the host's file at a path with this access.
    pub fn shows_host(self) -> bool {
        !matches!(self, Self::Scratch | Self::Hidden)
    }
}

impl Policy {
    /// Returns the access to a path according to the most specific grant. Programs and the files
    /// that they need are not considered. Tests compare the behavior of the sandbox with this
    /// function.
    pub fn access_to(&self, path: &Path) -> Option<Access> {
        self.paths
            .iter()
            .filter(|grant| path.starts_with(&grant.path))
            .max_by_key(|grant| (grant.path.components().count(), grant.access))
            .map(|grant| grant.access)
    }
}

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Returns the value itself.
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
    /// Returns the name of the kind, for debug output and serialization.
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

/// The size of a terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Number of lines.
    pub rows: u16,
    /// Number of characters per line.
    pub columns: u16,
}
