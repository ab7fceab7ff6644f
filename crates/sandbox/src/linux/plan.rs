//! Prepares a [`Plan`]: everything that the new process does before it becomes the program. Between
//! `clone` and `execve` nothing may be allocated, so the plan contains every string, list and
//! buffer that the new process needs.

use std::{
    collections::BTreeSet,
    ffi::{CString, OsStr},
    os::{fd::RawFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
};

use libc::{c_char, c_uint, sock_filter};

use super::{
    filter::{self, Sockets},
    guard::Guarded,
    landlock,
    root::{Item, Layout, Mode},
    sys::{self, Handled},
};
use crate::{
    error::SandboxError,
    limits,
    policy::{Counted, Limits, Network, Policy, Userland, Watch},
};

/// The port of the proxy inside the sandbox.
pub(crate) const PROXY_PORT: u16 = 3128;

const READ_ONLY: u64 = 1;
const NO_SET_UID: u64 = 2;
const NO_DEVICES: u64 = 4;
const NO_EXECUTE: u64 = 8;

/// The device that is mounted over a hidden file. The mount disallows devices, so the file cannot
/// even be opened.
const NOTHING: &str = "/dev/null";

/// The stack size of the second process: enough for the few calls before it executes the program.
const WORKER_STACK: usize = 64 << 10;

/// Everything that the new process does before it becomes the program.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) user_map: Vec<u8>,
    pub(crate) group_map: Vec<u8>,
    /// The folder on which the new root is mounted; its content is no longer needed then.
    pub(crate) base: CString,
    pub(crate) root_options: CString,
    pub(crate) sources: Vec<Source>,
    pub(crate) steps: Vec<Step>,
    /// Protected paths that are checked and restored after the run.
    pub(crate) guarded: Vec<Guarded>,
    pub(crate) landlock: Option<Rules>,
    pub(crate) filter: Vec<sock_filter>,
    /// Resource, soft limit and hard limit.
    pub(crate) limits: Vec<(c_uint, u64, u64)>,
    pub(crate) proxy: Option<u16>,
    /// Whether the new process waits until it is in a control group.
    pub(crate) grouped: bool,
    /// Whether the standard streams are a terminal.
    pub(crate) on_terminal: bool,
    pub(crate) watched: bool,
    pub(crate) directory: CString,
    pub(crate) program: CString,
    pub(crate) arguments: Strings,
    pub(crate) environment: Strings,
    pub(crate) stack: Vec<u8>,
}

/// A host file or folder that is mounted in the new root.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: CString,
    pub(crate) is_folder: bool,
    pub(crate) mode: Mode,
    /// Both descriptors are filled in by the new process.
    pub(crate) fd: RawFd,
    pub(crate) tree: RawFd,
}

/// One step of building the root; paths are relative to the new root.
#[derive(Debug)]
pub(crate) enum Step {
    Folder(CString),
    Link {
        path: CString,
        target: CString,
    },
    Text {
        path: CString,
        bytes: Vec<u8>,
    },
    Bind {
        source: usize,
        target: CString,
        flags: u64,
    },
    Scratch {
        target: CString,
        flags: u64,
        options: CString,
    },
    /// Mounts an empty folder, in which later steps may create mount points.
    Empty(CString),
    /// Makes an empty folder read-only.
    Seal(CString),
    /// Mounts `/proc`; `highest` is the file and value of the largest process ID, if the limit
    /// applies to this run alone.
    Processes {
        target: CString,
        highest: Option<(CString, String)>,
    },
}

/// The Landlock rules.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) handled: Handled,
    pub(crate) size: usize,
    /// Rights on paths of the new root; the rights on sources follow from their modes.
    pub(crate) paths: Vec<(CString, u64)>,
}

/// A null-terminated list of strings for `execve`.
pub(crate) struct Strings {
    // The strings that the pointers refer to.
    texts: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl std::fmt::Debug for Strings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Values of environment variables must not be logged.
        f.debug_struct("Strings").field("count", &self.texts.len()).finish_non_exhaustive()
    }
}

impl Strings {
    pub(crate) fn new(texts: Vec<CString>) -> Self {
        let null = std::iter::once(std::ptr::null());
        let pointers = texts.iter().map(|text| text.as_ptr()).chain(null).collect();
        Self { texts, pointers }
    }

    pub(crate) fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}

/// The program to execute, with its arguments and environment.
pub(crate) struct Execution {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<CString>,
    pub(crate) environment: Vec<CString>,
}

impl Plan {
    pub(crate) fn new(
        policy: &Policy,
        layout: &Layout,
        execution: Execution,
        landlock_version: Option<u32>,
    ) -> Result<Self, SandboxError> {
        let (uid, gid) = sys::identity();
        let sockets = match policy.network {
            Network::None => Sockets::Pairs,
            Network::Hosts(_) | Network::Trap => Sockets::Internet,
        };
        let watched = policy.watch == Watch::On;
        let (sources, steps) = build_steps(policy, layout)?;
        Ok(Self {
            user_map: format!("{uid} {uid} 1\n").into_bytes(),
            group_map: format!("{gid} {gid} 1\n").into_bytes(),
            base: CString::from(base_folder()),
            root_options: c"size=8m,mode=755".to_owned(),
            sources,
            steps,
            guarded: layout.guarded()?,
            landlock: landlock_version.map(|version| rules(policy, layout, version)).transpose()?,
            filter: filter::compile(sockets, watched),
            limits: resource_limits(&policy.limits),
            grouped: false,
            on_terminal: false,
            proxy: (policy.network != Network::None).then_some(PROXY_PORT),
            watched,
            directory: c_path(&policy.directory)?,
            program: c_path(&execution.program)?,
            arguments: Strings::new(execution.arguments),
            environment: Strings::new(execution.environment),
            stack: vec![0; WORKER_STACK],
        })
    }

    /// Describes the step in which the new process failed.
    pub(crate) fn describe(&self, failure: super::child::Failure) -> String {
        use super::child::Stage;
        let source = || self.sources.get(failure.index).map(|source| source.path.to_string_lossy());
        let target = || {
            self.steps.get(failure.index).map(|step| match step {
                Step::Folder(path)
                | Step::Link { path, .. }
                | Step::Text { path, .. }
                | Step::Bind { target: path, .. }
                | Step::Scratch { target: path, .. }
                | Step::Empty(path)
                | Step::Seal(path)
                | Step::Processes { target: path, .. } => format!("/{}", path.to_string_lossy()),
            })
        };
        match failure.stage {
            Stage::Open => format!("opening {}", source().unwrap_or_default()),
            Stage::Root => format!("mounting {}", target().unwrap_or_default()),
            stage => stage.to_string(),
        }
    }
}

/// Low process IDs that the kernel does not reuse.
const RESERVED_NUMBERS: u64 = 300;

/// Returns whether the largest process ID is a setting of each namespace, as since Linux 6.14.
/// Before, it is a setting of the machine, and root would change it for all processes.
fn numbers_are_own() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (6, 14))
}

/// Returns a folder that exists on every system.
fn base_folder() -> &'static std::ffi::CStr {
    if Path::new("/tmp").is_dir() { c"/tmp" } else { c"/dev" }
}

fn build_steps(policy: &Policy, layout: &Layout) -> Result<(Vec<Source>, Vec<Step>), SandboxError> {
    let mut sources = Vec::new();
    let mut steps = Vec::new();
    let mut sealed = Vec::new();
    let mut folders = BTreeSet::new();
    for (path, item) in layout.iter() {
        // Below a host folder, every path exists already or must not be created.
        let own = is_own(layout, path);
        if own {
            make_parents(path, layout, &mut folders, &mut steps)?;
        }
        let target = relative(path)?;
        match item {
            Item::Mount(source) => {
                let is_folder = source.is_dir();
                if own && is_folder {
                    steps.push(Step::Folder(target.clone()));
                } else if own {
                    steps.push(Step::Text { path: target.clone(), bytes: Vec::new() });
                }
                let flags = mount_flags(Mode::Code);
                steps.push(Step::Bind { source: sources.len(), target, flags });
                sources.push(Source {
                    path: c_path(source)?,
                    is_folder,
                    mode: Mode::Code,
                    fd: -1,
                    tree: -1,
                });
            }
            Item::Bind(mode) => {
                let is_folder = path.is_dir();
                if own && is_folder {
                    steps.push(Step::Folder(target.clone()));
                } else if own {
                    steps.push(Step::Text { path: target.clone(), bytes: Vec::new() });
                }
                steps.push(Step::Bind { source: sources.len(), target, flags: mount_flags(*mode) });
                sources.push(Source {
                    path: c_path(if *mode == Mode::Closed { Path::new(NOTHING) } else { path })?,
                    is_folder,
                    mode: *mode,
                    fd: -1,
                    tree: -1,
                });
            }
            Item::Scratch => {
                if own {
                    steps.push(Step::Folder(target.clone()));
                }
                let (size, files) = (policy.limits.scratch, limits::SCRATCH_FILES);
                let options = format!("size={size},nr_inodes={files},mode=700");
                let options =
                    CString::new(options).map_err(|_| SandboxError::Nul { what: "an option" })?;
                let flags = scratch_flags(policy.userland);
                steps.push(Step::Scratch { target, flags, options });
            }
            Item::Empty => {
                if own {
                    steps.push(Step::Folder(target.clone()));
                }
                steps.push(Step::Empty(target.clone()));
                sealed.push(Step::Seal(target));
            }
            Item::Text(bytes) => steps.push(Step::Text { path: target, bytes: bytes.clone() }),
            Item::Link(to) => {
                steps.push(Step::Link { path: target, target: c_path(to)? });
            }
            Item::Processes => {
                steps.push(Step::Folder(target.clone()));
                let file = relative(&path.join("sys/kernel/pid_max"))?;
                let highest = (RESERVED_NUMBERS + policy.limits.processes).to_string();
                let highest = numbers_are_own().then_some((file, highest));
                steps.push(Step::Processes { target, highest });
            }
        }
        folders.insert(path.to_owned());
    }
    steps.extend(sealed);
    Ok((sources, steps))
}

/// Returns whether a path is in a folder of the new root that is empty at first.
fn is_own(layout: &Layout, path: &Path) -> bool {
    matches!(layout.covering(path), None | Some(Item::Scratch | Item::Empty))
}

/// Adds steps that create the parents of a path in the new root.
fn make_parents(
    path: &Path,
    layout: &Layout,
    made: &mut BTreeSet<PathBuf>,
    steps: &mut Vec<Step>,
) -> Result<(), SandboxError> {
    let mut parents: Vec<&Path> = path.ancestors().skip(1).collect();
    parents.pop();
    for parent in parents.into_iter().rev() {
        let own = is_own(layout, parent);
        if own && made.insert(parent.to_owned()) {
            steps.push(Step::Folder(relative(parent)?));
        }
    }
    Ok(())
}

fn mount_flags(mode: Mode) -> u64 {
    match mode {
        Mode::Writable => NO_SET_UID | NO_DEVICES | NO_EXECUTE,
        Mode::WritableCode => NO_SET_UID | NO_DEVICES,
        Mode::Data | Mode::Closed => READ_ONLY | NO_SET_UID | NO_DEVICES | NO_EXECUTE,
        Mode::Code => READ_ONLY | NO_SET_UID | NO_DEVICES,
        Mode::Device => NO_SET_UID | NO_EXECUTE,
    }
}

/// Returns the mount flags of private folders.
fn scratch_flags(userland: Userland) -> u64 {
    match userland {
        Userland::Listed => mount_flags(Mode::Writable),
        Userland::System => mount_flags(Mode::WritableCode),
    }
}

/// Returns the Landlock rights of a source with this mode.
pub(crate) fn rights(mode: Mode, is_folder: bool) -> u64 {
    let rights = match mode {
        Mode::Writable => landlock::WRITE,
        Mode::WritableCode => landlock::WRITE_AND_RUN,
        Mode::Data => landlock::READ,
        Mode::Code => landlock::RUN,
        Mode::Device => landlock::DEVICE,
        Mode::Closed => 0,
    };
    if is_folder { rights } else { rights & landlock::FILE }
}

fn rules(policy: &Policy, layout: &Layout, version: u32) -> Result<Rules, SandboxError> {
    let (handled, size) = landlock::handled(version);
    let mut paths = vec![
        // Listing folders is harmless: only granted paths exist.
        (c"/".to_owned(), landlock::READ & !landlock::FILE),
        (c"/etc".to_owned(), landlock::READ),
        (c"/proc".to_owned(), landlock::READ),
    ];
    let scratch = match policy.userland {
        Userland::Listed => landlock::WRITE,
        Userland::System => landlock::WRITE_AND_RUN,
    };
    for (path, item) in layout.iter() {
        match item {
            Item::Scratch => paths.push((c_path(path)?, scratch)),
            Item::Text(_) if !path.starts_with("/etc") => {
                paths.push((c_path(path)?, landlock::READ & landlock::FILE));
            }
            _ => {}
        }
    }
    Ok(Rules { handled, size, paths })
}

fn resource_limits(limits: &Limits) -> Vec<(c_uint, u64, u64)> {
    let memory = match limits.counted {
        Counted::Addresses => libc::RLIMIT_AS,
        Counted::Data => libc::RLIMIT_DATA,
    };
    let mut list: Vec<(c_uint, u64, u64)> = [
        (libc::RLIMIT_CORE, 0),
        (memory, limits.memory),
        (libc::RLIMIT_NPROC, limits.processes),
        (libc::RLIMIT_NOFILE, limits.open_files),
        (libc::RLIMIT_FSIZE, limits.file_size),
        (libc::RLIMIT_MEMLOCK, 64 << 10),
        (libc::RLIMIT_MSGQUEUE, 64 << 10),
    ]
    .map(|(resource, value)| (resource as c_uint, value, value))
    .to_vec();
    // SIGXCPU at the soft limit shows the reason; SIGKILL follows a second later.
    list.extend(limits.cpu.map(|seconds| (libc::RLIMIT_CPU as c_uint, seconds, seconds + 1)));
    list
}

fn relative(path: &Path) -> Result<CString, SandboxError> {
    c_path(path.strip_prefix("/").unwrap_or(path))
}

pub(crate) fn c_path(path: &Path) -> Result<CString, SandboxError> {
    c_text(path.as_os_str(), "a path")
}

pub(crate) fn c_text(text: &OsStr, what: &'static str) -> Result<CString, SandboxError> {
    CString::new(text.as_bytes()).map_err(|_| SandboxError::Nul { what })
}
