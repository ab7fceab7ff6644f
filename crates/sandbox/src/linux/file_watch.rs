//! Records which files a program opens. The kernel pauses each such call until this watcher has
//! read its path. Mounts and Landlock still decide what the call may do, so a program that changes
//! the path after the check only falsifies the record. One rule is enforced here: in a folder with
//! [`Access::CreateGranted`], only granted paths may be created. A program that deceives the
//! watcher can create other new files there, but none with a name that other programs obey.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::OpenOptions,
    os::{
        fd::{AsRawFd as _, OwnedFd, RawFd},
        unix::{ffi::OsStrExt as _, fs::OpenOptionsExt as _},
    },
    path::{Component, Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
};

use libc::c_long;

use super::sys;
use crate::{
    limits,
    outcome::FileEvents,
    policy::{Access, Policy},
};

/// The longest path that the kernel accepts.
const PATH_MAX: usize = 4096;

/// The paths that a run can see, to distinguish a refusal from a missing file.
#[derive(Debug)]
pub(crate) struct VisiblePaths {
    /// The policy; successful access is recorded only for paths that it names.
    pub(crate) policy: Policy,
    /// All paths of the new root, granted or not.
    pub(crate) visible: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccessKind {
    Read,
    /// Changes or removes a file.
    Write,
    /// Creates a file, or changes it if it exists.
    Create,
    Execute,
}

impl AccessKind {
    fn is_change(self) -> bool {
        matches!(self, Self::Write | Self::Create)
    }
}

/// The positions of a path, and of its base folder, in the arguments of a call.
struct PathArgument {
    folder: Option<usize>,
    path: usize,
    access_kind: AccessKind,
}

pub(crate) fn start(listener: OwnedFd, visible_paths: Arc<VisiblePaths>) -> JoinHandle<FileEvents> {
    std::thread::spawn(move || watch(&listener, &visible_paths))
}

fn watch(listener: &OwnedFd, visible_paths: &VisiblePaths) -> FileEvents {
    let mut events = FileEvents::default();
    let listener = listener.as_raw_fd();
    let mut waits = [sys::PollEntry::read(listener)];
    while sys::poll(&mut waits, None).is_ok() && !waits[0].is_closed {
        if !waits[0].is_ready {
            continue;
        }
        // The process may have died since the notification.
        let Ok(notification) = sys::next_notification(listener) else { continue };
        let mut is_allowed = true;
        let changes_folder = changes_folder(c_long::from(notification.data.nr));
        for (path, access_kind) in accessed_paths(&notification, visible_paths) {
            if changes_folder && events.replaced.len() < limits::MAX_EVENTS {
                events.replaced.insert(path.clone());
            }
            is_allowed &= !creates_ungranted_path(visible_paths, &path, access_kind);
            record_access(&mut events, visible_paths, path, access_kind);
        }
        let _ = if is_allowed {
            sys::allow_call(listener, notification.id)
        } else {
            sys::deny_call(listener, notification.id, libc::EACCES)
        };
    }
    events
}

/// Returns the paths that a call is about to use, and how.
fn accessed_paths(
    notification: &libc::seccomp_notif,
    visible_paths: &VisiblePaths,
) -> Vec<(PathBuf, AccessKind)> {
    let arguments = &notification.data.args;
    let pid = notification.pid as libc::pid_t;
    path_arguments(c_long::from(notification.data.nr), arguments)
        .into_iter()
        .filter_map(|call| {
            let path = read_path(pid, *arguments.get(call.path)?)?;
            let folder = call.folder.and_then(|index| arguments.get(index).copied());
            let absolute = absolute_path(pid, folder, &path)?;
            let path = normalize(&absolute);
            // After a link, `..` leads to a different folder than the text suggests.
            let may_contain_links = path != absolute || may_contain_links(visible_paths, &path);
            let real =
                may_contain_links.then(|| resolve_path(pid, &absolute, call.access_kind)).flatten();
            Some((path.clone(), real.filter(|real| *real != path), call.access_kind))
        })
        .flat_map(|(path, real, access_kind)| {
            std::iter::once(path).chain(real).map(move |p| (p, access_kind))
        })
        .collect()
}

/// Returns whether a path is, or would be created, in a folder with [`Access::CreateGranted`]
/// without a grant for the path itself. Entries that existed before the run have their own grants.
fn creates_ungranted_path(
    visible_paths: &VisiblePaths,
    path: &Path,
    access_kind: AccessKind,
) -> bool {
    let is_open_folder = || visible_paths.policy.paths.iter().any(|grant| grant.path == path);
    visible_paths.policy.access_to(path) == Some(Access::CreateGranted)
        && !is_open_folder()
        && (access_kind == AccessKind::Create || path.symlink_metadata().is_ok())
}

/// Returns whether a path may contain links: those that the program can create, or those of
/// `/proc`.
fn may_contain_links(visible_paths: &VisiblePaths, path: &Path) -> bool {
    let access = visible_paths.policy.access_to(path);
    matches!(access, Some(Access::Scratch | Access::Write | Access::CreateGranted))
        || path.starts_with("/proc")
}

/// Resolves a path of the other process. An absolute link leads to the same path on the host.
fn resolve_path(pid: libc::pid_t, path: &Path, access_kind: AccessKind) -> Option<PathBuf> {
    // A file that is about to be created does not exist yet, but its folder does.
    let (AccessKind::Create, Some(folder), Some(name)) =
        (access_kind, path.parent(), path.file_name())
    else {
        return resolve_existing_path(pid, path);
    };
    resolve_existing_path(pid, path)
        .or_else(|| Some(resolve_existing_path(pid, folder)?.join(name)))
}

fn resolve_existing_path(pid: libc::pid_t, path: &Path) -> Option<PathBuf> {
    let proc_path = match path.strip_prefix("/proc/self") {
        // `/proc/self` would be the watcher itself, so the process ID replaces it.
        Ok(rest) => Path::new(&format!("/proc/{pid}")).join(rest),
        Err(_) => Path::new(&format!("/proc/{pid}/root")).join(path.strip_prefix("/").ok()?),
    };
    let file = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(proc_path).ok()?;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

fn path_arguments(number: c_long, arguments: &[u64; 6]) -> Vec<PathArgument> {
    let single = |folder, path, access_kind| vec![PathArgument { folder, path, access_kind }];
    let open_access = |flags: u64| {
        let changes = libc::O_WRONLY | libc::O_RDWR | libc::O_TRUNC;
        if flags & libc::O_CREAT as u64 != 0 {
            AccessKind::Create
        } else if flags & changes as u64 != 0 {
            AccessKind::Write
        } else {
            AccessKind::Read
        }
    };
    match number {
        libc::SYS_openat => single(Some(0), 1, open_access(arguments[2])),
        libc::SYS_mkdirat | libc::SYS_mknodat => single(Some(0), 1, AccessKind::Create),
        libc::SYS_unlinkat => single(Some(0), 1, AccessKind::Write),
        libc::SYS_linkat => single(Some(2), 3, AccessKind::Create),
        libc::SYS_symlinkat => single(Some(1), 2, AccessKind::Create),
        libc::SYS_truncate => single(None, 0, AccessKind::Write),
        libc::SYS_renameat | libc::SYS_renameat2 => vec![
            PathArgument { folder: Some(0), path: 1, access_kind: AccessKind::Write },
            PathArgument { folder: Some(2), path: 3, access_kind: AccessKind::Create },
        ],
        libc::SYS_execve => single(None, 0, AccessKind::Execute),
        libc::SYS_execveat => single(Some(0), 1, AccessKind::Execute),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => single(None, 0, open_access(arguments[1])),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat | libc::SYS_mkdir | libc::SYS_mknod => single(None, 0, AccessKind::Create),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rmdir | libc::SYS_unlink => single(None, 0, AccessKind::Write),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_link | libc::SYS_symlink => single(None, 1, AccessKind::Create),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => vec![
            PathArgument { folder: None, path: 0, access_kind: AccessKind::Write },
            PathArgument { folder: None, path: 1, access_kind: AccessKind::Create },
        ],
        _ => Vec::new(),
    }
}

/// Returns whether a call removes, renames or links an entry of a folder. A file that is mounted by
/// itself cannot be removed or replaced.
fn changes_folder(number: c_long) -> bool {
    match number {
        libc::SYS_unlinkat
        | libc::SYS_linkat
        | libc::SYS_symlinkat
        | libc::SYS_renameat
        | libc::SYS_renameat2 => true,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rmdir
        | libc::SYS_unlink
        | libc::SYS_link
        | libc::SYS_symlink
        | libc::SYS_rename => true,
        _ => false,
    }
}

/// Reads a C string of the other process, page by page, since the next page may not be mapped.
fn read_path(pid: libc::pid_t, address: u64) -> Option<PathBuf> {
    const PAGE: u64 = 4096;
    let mut bytes = Vec::new();
    let mut at = address;
    while bytes.len() < PATH_MAX {
        let mut page = [0_u8; PAGE as usize];
        let length = (PAGE - at % PAGE) as usize;
        let read = sys::read_memory(pid, at, &mut page[..length]).ok()?;
        let part = page.get(..read)?;
        if let Some(end) = part.iter().position(|byte| *byte == 0) {
            bytes.extend_from_slice(&part[..end]);
            return Some(PathBuf::from(OsStr::from_bytes(&bytes)));
        }
        bytes.extend_from_slice(part);
        at = at.checked_add(read as u64)?;
    }
    None
}

/// Returns the absolute path. Paths are the same inside and outside the sandbox.
fn absolute_path(pid: libc::pid_t, folder: Option<u64>, path: &Path) -> Option<PathBuf> {
    if path.as_os_str().is_empty() {
        return None;
    }
    let base = match folder.map(|fd| fd as RawFd) {
        _ if path.is_absolute() => PathBuf::from("/"),
        None | Some(libc::AT_FDCWD) => std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?,
        Some(fd) => std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?,
    };
    Some(base.join(path))
}

/// Returns the path without `.` and `..`.
fn normalize(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(result.pop()),
            Component::CurDir => {}
            part => result.push(part),
        }
    }
    result
}

fn record_access(
    events: &mut FileEvents,
    visible_paths: &VisiblePaths,
    path: PathBuf,
    access_kind: AccessKind,
) {
    let below = |list: &[PathBuf]| list.iter().any(|root| path.starts_with(root));
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    // Creating a file counts as refused if only its folder exists.
    let exists = || {
        is_there(&path) || access_kind == AccessKind::Create && path.parent().is_some_and(is_there)
    };
    let set = if access_kind == AccessKind::Execute
        && !below(&visible_paths.visible)
        && path.is_file()
    {
        &mut events.denied_programs
    } else if access_kind == AccessKind::Execute {
        &mut events.executed
    } else if !below(&visible_paths.visible) {
        // Access to a missing file is not a refusal: programs look for files in many places. Parent
        // folders of visible paths exist in the sandbox.
        if !exists() || visible_paths.visible.iter().any(|root| root.starts_with(&path)) {
            return;
        }
        record_denied(events, &path, access_kind)
    } else {
        match (visible_paths.policy.access_to(&path), access_kind) {
            // A scratch folder hides the host's files at the same path.
            (Some(Access::Scratch | Access::Hidden), AccessKind::Read)
                if path.symlink_metadata().is_ok_and(|found| !found.is_dir()) =>
            {
                &mut events.denied
            }
            (Some(Access::Scratch), AccessKind::Write | AccessKind::Create) => {
                &mut events.written_privately
            }
            (None | Some(Access::Scratch), _) | (Some(Access::Hidden), AccessKind::Read) => return,
            (Some(_), AccessKind::Read) => &mut events.read,
            (Some(Access::Write), _) => &mut events.written,
            // There is no file that could be changed or removed.
            (Some(Access::CreateGranted), AccessKind::Write)
                if path.symlink_metadata().is_err() =>
            {
                return;
            }
            (Some(_), _) => record_denied(events, &path, access_kind),
        }
    };
    if set.contains(&path) {
        return;
    }
    if set.len() >= limits::MAX_EVENTS {
        events.more += 1;
    } else {
        set.insert(path);
    }
}

/// Returns the list for a denied path, and records separately if the program tried to write it.
fn record_denied<'a>(
    events: &'a mut FileEvents,
    path: &Path,
    access_kind: AccessKind,
) -> &'a mut BTreeSet<PathBuf> {
    if access_kind.is_change() && events.denied_writes.len() < limits::MAX_EVENTS {
        events.denied_writes.insert(path.to_owned());
    }
    &mut events.denied
}
