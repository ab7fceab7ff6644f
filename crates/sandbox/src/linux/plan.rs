//! Prepares a [`LaunchPlan`]: everything that the new process does before it becomes the program. Between
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
    landlock,
    layout::{Layout, MountMode, RootEntry},
    path_guard::GuardedPath,
    seccomp::{self, Sockets},
    sys::{self, HandledRights},
};
use crate::{
    error::SandboxError,
    limits,
    policy::{CountedMemory, ExtraPrograms, Limits, Network, Policy, RecordOpenedFiles},
};

/// The port of the proxy inside the sandbox.
pub(crate) const PROXY_PORT: u16 = 3128;

const READ_ONLY: u64 = 1;
const NO_SET_UID: u64 = 2;
const NO_DEVICES: u64 = 4;
const NO_EXECUTE: u64 = 8;

/// The device that is mounted over a hidden file. The mount disallows devices, so the file cannot
/// even be opened.
const NULL_DEVICE: &str = "/dev/null";

/// The stack size of the second process: enough for the few calls before it executes the program.
const WORKER_STACK_BYTES: usize = 64 << 10;

/// Everything that the new process does before it becomes the program.
#[derive(Debug)]
pub(crate) struct LaunchPlan {
    pub(crate) user_map: Vec<u8>,
    pub(crate) group_map: Vec<u8>,
    /// The folder on which the new root is mounted; its content is no longer needed then.
    pub(crate) base: CString,
    pub(crate) root_options: CString,
    pub(crate) sources: Vec<MountSource>,
    pub(crate) steps: Vec<RootStep>,
    /// Protected paths that are checked and restored after the run.
    pub(crate) guarded: Vec<GuardedPath>,
    pub(crate) landlock: Option<LandlockRules>,
    pub(crate) filter: Vec<sock_filter>,
    /// Resource, soft limit and hard limit.
    pub(crate) limits: Vec<(c_uint, u64, u64)>,
    pub(crate) proxy: Option<u16>,
    /// Whether the new process waits until it is in a control group.
    pub(crate) waits_for_cgroup: bool,
    /// Whether the standard streams are a terminal.
    pub(crate) has_terminal: bool,
    pub(crate) watched: bool,
    pub(crate) directory: CString,
    pub(crate) program: CString,
    pub(crate) arguments: CStringArray,
    pub(crate) environment: CStringArray,
    pub(crate) stack: Vec<u8>,
}

/// A host file or folder that is mounted in the new root.
#[derive(Debug)]
pub(crate) struct MountSource {
    pub(crate) path: CString,
    pub(crate) is_folder: bool,
    pub(crate) mode: MountMode,
    /// Both descriptors are filled in by the new process.
    pub(crate) fd: RawFd,
    pub(crate) tree: RawFd,
}

/// One step of building the root; paths are relative to the new root.
#[derive(Debug)]
pub(crate) enum RootStep {
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
    /// Mounts `/proc`; `pid_max` is the file and value of the largest process ID, if the limit
    /// applies to this run alone.
    Processes {
        target: CString,
        pid_max: Option<(CString, String)>,
    },
}

/// The Landlock rules.
#[derive(Debug)]
pub(crate) struct LandlockRules {
    pub(crate) handled: HandledRights,
    pub(crate) size: usize,
    /// Rights on paths of the new root; the rights on sources follow from their modes.
    pub(crate) paths: Vec<(CString, u64)>,
}

/// A null-terminated list of strings for `execve`.
pub(crate) struct CStringArray {
    // The strings that the pointers refer to.
    texts: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl std::fmt::Debug for CStringArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Values of environment variables must not be logged.
        f.debug_struct("Strings").field("count", &self.texts.len()).finish_non_exhaustive()
    }
}

impl CStringArray {
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
pub(crate) struct ProgramCall {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<CString>,
    pub(crate) environment: Vec<CString>,
}

impl LaunchPlan {
    pub(crate) fn new(
        policy: &Policy,
        layout: &Layout,
        execution: ProgramCall,
        landlock_version: Option<u32>,
    ) -> Result<Self, SandboxError> {
        let (uid, gid) = sys::identity();
        let sockets = match policy.network {
            Network::None => Sockets::Pairs,
            Network::Hosts(_) | Network::Trap => Sockets::Internet,
        };
        let watched = policy.record_opened_files == RecordOpenedFiles::On;
        let (sources, steps) = build_steps(policy, layout)?;
        Ok(Self {
            user_map: format!("{uid} {uid} 1\n").into_bytes(),
            group_map: format!("{gid} {gid} 1\n").into_bytes(),
            base: CString::from(base_folder()),
            root_options: c"size=8m,mode=755".to_owned(),
            sources,
            steps,
            guarded: layout.guarded()?,
            landlock: landlock_version
                .map(|version| landlock_rules(policy, layout, version))
                .transpose()?,
            filter: seccomp::compile_filter(sockets, watched),
            limits: resource_limits(&policy.limits),
            waits_for_cgroup: false,
            has_terminal: false,
            proxy: (policy.network != Network::None).then_some(PROXY_PORT),
            watched,
            directory: c_path(&policy.directory)?,
            program: c_path(&execution.program)?,
            arguments: CStringArray::new(execution.arguments),
            environment: CStringArray::new(execution.environment),
            stack: vec![0; WORKER_STACK_BYTES],
        })
    }

    /// Describes the step in which the new process failed.
    pub(crate) fn describe(&self, failure: super::child::Failure) -> String {
        use super::child::Stage;
        let source = || self.sources.get(failure.index).map(|source| source.path.to_string_lossy());
        let target = || {
            self.steps.get(failure.index).map(|step| match step {
                RootStep::Folder(path)
                | RootStep::Link { path, .. }
                | RootStep::Text { path, .. }
                | RootStep::Bind { target: path, .. }
                | RootStep::Scratch { target: path, .. }
                | RootStep::Empty(path)
                | RootStep::Seal(path)
                | RootStep::Processes { target: path, .. } => {
                    format!("/{}", path.to_string_lossy())
                }
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
const RESERVED_PIDS: u64 = 300;

/// Returns whether the largest process ID is a setting of each namespace, as since Linux 6.14.
/// Before, it is a setting of the machine, and root would change it for all processes.
fn pid_max_is_per_namespace() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (6, 14))
}

/// Returns a folder that exists on every system.
fn base_folder() -> &'static std::ffi::CStr {
    if Path::new("/tmp").is_dir() { c"/tmp" } else { c"/dev" }
}

fn build_steps(
    policy: &Policy,
    layout: &Layout,
) -> Result<(Vec<MountSource>, Vec<RootStep>), SandboxError> {
    let mut sources = Vec::new();
    let mut steps = Vec::new();
    let mut seal_steps = Vec::new();
    let mut folders = BTreeSet::new();
    for (path, entry) in layout.iter() {
        // Below a host folder, every path exists already or must not be created.
        let is_created = is_created_in_root(layout, path);
        if is_created {
            make_parents(path, layout, &mut folders, &mut steps)?;
        }
        let target = path_in_root(path)?;
        match entry {
            RootEntry::Mount(source) => {
                let is_folder = source.is_dir();
                if is_created && is_folder {
                    steps.push(RootStep::Folder(target.clone()));
                } else if is_created {
                    steps.push(RootStep::Text { path: target.clone(), bytes: Vec::new() });
                }
                let flags = mount_flags(MountMode::Code);
                steps.push(RootStep::Bind { source: sources.len(), target, flags });
                sources.push(MountSource {
                    path: c_path(source)?,
                    is_folder,
                    mode: MountMode::Code,
                    fd: -1,
                    tree: -1,
                });
            }
            RootEntry::Bind(mode) => {
                let is_folder = path.is_dir();
                if is_created && is_folder {
                    steps.push(RootStep::Folder(target.clone()));
                } else if is_created {
                    steps.push(RootStep::Text { path: target.clone(), bytes: Vec::new() });
                }
                steps.push(RootStep::Bind {
                    source: sources.len(),
                    target,
                    flags: mount_flags(*mode),
                });
                sources.push(MountSource {
                    path: c_path(if *mode == MountMode::Closed {
                        Path::new(NULL_DEVICE)
                    } else {
                        path
                    })?,
                    is_folder,
                    mode: *mode,
                    fd: -1,
                    tree: -1,
                });
            }
            RootEntry::Scratch => {
                if is_created {
                    steps.push(RootStep::Folder(target.clone()));
                }
                let (size, files) = (policy.limits.scratch, limits::MAX_SCRATCH_FILES);
                let options = format!("size={size},nr_inodes={files},mode=700");
                let options =
                    CString::new(options).map_err(|_| SandboxError::Nul { what: "an option" })?;
                let flags = scratch_flags(policy.extra_programs);
                steps.push(RootStep::Scratch { target, flags, options });
            }
            RootEntry::Empty => {
                if is_created {
                    steps.push(RootStep::Folder(target.clone()));
                }
                steps.push(RootStep::Empty(target.clone()));
                seal_steps.push(RootStep::Seal(target));
            }
            RootEntry::Text(bytes) => {
                steps.push(RootStep::Text { path: target, bytes: bytes.clone() });
            }
            RootEntry::Link(to) => {
                steps.push(RootStep::Link { path: target, target: c_path(to)? });
            }
            RootEntry::Processes => {
                steps.push(RootStep::Folder(target.clone()));
                let file = path_in_root(&path.join("sys/kernel/pid_max"))?;
                let pid_max = (RESERVED_PIDS + policy.limits.processes).to_string();
                let pid_max = pid_max_is_per_namespace().then_some((file, pid_max));
                steps.push(RootStep::Processes { target, pid_max });
            }
        }
        folders.insert(path.to_owned());
    }
    steps.extend(seal_steps);
    Ok((sources, steps))
}

/// Returns whether a path is in a folder of the new root that is empty at first.
fn is_created_in_root(layout: &Layout, path: &Path) -> bool {
    matches!(layout.covering(path), None | Some(RootEntry::Scratch | RootEntry::Empty))
}

/// Adds steps that create the parents of a path in the new root.
fn make_parents(
    path: &Path,
    layout: &Layout,
    created: &mut BTreeSet<PathBuf>,
    steps: &mut Vec<RootStep>,
) -> Result<(), SandboxError> {
    let mut parents: Vec<&Path> = path.ancestors().skip(1).collect();
    parents.pop();
    for parent in parents.into_iter().rev() {
        let is_created = is_created_in_root(layout, parent);
        if is_created && created.insert(parent.to_owned()) {
            steps.push(RootStep::Folder(path_in_root(parent)?));
        }
    }
    Ok(())
}

fn mount_flags(mode: MountMode) -> u64 {
    match mode {
        MountMode::Writable => NO_SET_UID | NO_DEVICES | NO_EXECUTE,
        MountMode::WritableCode => NO_SET_UID | NO_DEVICES,
        MountMode::Data | MountMode::Closed => READ_ONLY | NO_SET_UID | NO_DEVICES | NO_EXECUTE,
        MountMode::Code => READ_ONLY | NO_SET_UID | NO_DEVICES,
        MountMode::Device => NO_SET_UID | NO_EXECUTE,
    }
}

/// Returns the mount flags of scratch folders.
fn scratch_flags(extra_programs: ExtraPrograms) -> u64 {
    match extra_programs {
        ExtraPrograms::None => mount_flags(MountMode::Writable),
        ExtraPrograms::System => mount_flags(MountMode::WritableCode),
    }
}

/// Returns the Landlock rights of a source with this mode.
pub(crate) fn landlock_rights(mode: MountMode, is_folder: bool) -> u64 {
    let rights = match mode {
        MountMode::Writable => landlock::WRITE,
        MountMode::WritableCode => landlock::WRITE_AND_RUN,
        MountMode::Data => landlock::READ,
        MountMode::Code => landlock::RUN,
        MountMode::Device => landlock::DEVICE,
        MountMode::Closed => 0,
    };
    if is_folder { rights } else { rights & landlock::FILE }
}

fn landlock_rules(
    policy: &Policy,
    layout: &Layout,
    version: u32,
) -> Result<LandlockRules, SandboxError> {
    let (handled, size) = landlock::supported_rights(version);
    let mut paths = vec![
        // Listing folders is harmless: only granted paths exist.
        (c"/".to_owned(), landlock::READ & !landlock::FILE),
        (c"/etc".to_owned(), landlock::READ),
        (c"/proc".to_owned(), landlock::READ),
    ];
    let scratch = match policy.extra_programs {
        ExtraPrograms::None => landlock::WRITE,
        ExtraPrograms::System => landlock::WRITE_AND_RUN,
    };
    for (path, entry) in layout.iter() {
        match entry {
            RootEntry::Scratch => paths.push((c_path(path)?, scratch)),
            RootEntry::Text(_) if !path.starts_with("/etc") => {
                paths.push((c_path(path)?, landlock::READ & landlock::FILE));
            }
            _ => {}
        }
    }
    Ok(LandlockRules { handled, size, paths })
}

fn resource_limits(limits: &Limits) -> Vec<(c_uint, u64, u64)> {
    let memory = match limits.counted_memory {
        CountedMemory::AddressSpace => libc::RLIMIT_AS,
        CountedMemory::Data => libc::RLIMIT_DATA,
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

fn path_in_root(path: &Path) -> Result<CString, SandboxError> {
    c_path(path.strip_prefix("/").unwrap_or(path))
}

pub(crate) fn c_path(path: &Path) -> Result<CString, SandboxError> {
    c_string(path.as_os_str(), "a path")
}

pub(crate) fn c_string(text: &OsStr, what: &'static str) -> Result<CString, SandboxError> {
    CString::new(text.as_bytes()).map_err(|_| SandboxError::Nul { what })
}
