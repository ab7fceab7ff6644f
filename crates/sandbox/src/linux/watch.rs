//! Records which files a program opens. The kernel pauses each such call until this watcher has
//! read its path. Mounts and Landlock still decide what the call may do, so a program that changes
//! the path after the check only falsifies the record. One rule is enforced here: in a folder with
//! [`Access::Make`], only granted paths may be created. A program that deceives the watcher can
//! create other new files there, but none with a name that other programs obey.

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
pub(crate) struct Sight {
    /// The policy; successful access is recorded only for paths that it names.
    pub(crate) policy: Policy,
    /// All paths of the new root, granted or not.
    pub(crate) visible: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Read,
    /// Changes or removes a file.
    Write,
    /// Creates a file, or changes it if it exists.
    Make,
    Execute,
}

impl Use {
    fn changes(self) -> bool {
        matches!(self, Self::Write | Self::Make)
    }
}

/// The positions of a path, and of its base folder, in the arguments of a call.
struct Call {
    folder: Option<usize>,
    path: usize,
    usage: Use,
}

pub(crate) fn start(listener: OwnedFd, sight: Arc<Sight>) -> JoinHandle<FileEvents> {
    std::thread::spawn(move || watch(&listener, &sight))
}

fn watch(listener: &OwnedFd, sight: &Sight) -> FileEvents {
    let mut events = FileEvents::default();
    let listener = listener.as_raw_fd();
    let mut waits = [sys::Wait::read(listener)];
    while sys::poll(&mut waits, None).is_ok() && !waits[0].gone {
        if !waits[0].ready {
            continue;
        }
        // The process may have died since the notification.
        let Ok(notification) = sys::next_notification(listener) else { continue };
        let mut is_allowed = true;
        for (path, usage) in uses(&notification, sight) {
            is_allowed &= !is_beside_granted(sight, &path, usage);
            note(&mut events, sight, path, usage);
        }
        let _ = if is_allowed {
            sys::let_continue(listener, notification.id)
        } else {
            sys::refuse(listener, notification.id, libc::EACCES)
        };
    }
    events
}

/// Returns the paths that a call is about to use, and how.
fn uses(notification: &libc::seccomp_notif, sight: &Sight) -> Vec<(PathBuf, Use)> {
    let arguments = &notification.data.args;
    let pid = notification.pid as libc::pid_t;
    calls(c_long::from(notification.data.nr), arguments)
        .into_iter()
        .filter_map(|call| {
            let path = read_path(pid, *arguments.get(call.path)?)?;
            let folder = call.folder.and_then(|index| arguments.get(index).copied());
            let whole = whole(pid, folder, &path)?;
            let path = folded(&whole);
            // After a link, `..` leads to a different folder than the text suggests.
            let is_led = path != whole || led(sight, &path);
            let real = is_led.then(|| real(pid, &whole, call.usage)).flatten();
            Some((path.clone(), real.filter(|real| *real != path), call.usage))
        })
        .flat_map(|(path, real, usage)| std::iter::once(path).chain(real).map(move |p| (p, usage)))
        .collect()
}

/// Returns whether a path is, or would be created, in a folder with [`Access::Make`] without a
/// grant for the path itself. Entries that existed before the run have their own grants.
fn is_beside_granted(sight: &Sight, path: &Path, usage: Use) -> bool {
    let is_open_folder = || sight.policy.paths.iter().any(|grant| grant.path == path);
    sight.policy.access(path) == Some(Access::Make)
        && !is_open_folder()
        && (usage == Use::Make || path.symlink_metadata().is_ok())
}

/// Returns whether a path may contain links: those that the program can create, or those of
/// `/proc`.
fn led(sight: &Sight, path: &Path) -> bool {
    let access = sight.policy.access(path);
    matches!(access, Some(Access::Private | Access::Write | Access::Make))
        || path.starts_with("/proc")
}

/// Resolves a path of the other process. An absolute link leads to the same path on the host.
fn real(pid: libc::pid_t, path: &Path, usage: Use) -> Option<PathBuf> {
    // A file that is about to be created does not exist yet, but its folder does.
    let (Use::Make, Some(folder), Some(name)) = (usage, path.parent(), path.file_name()) else {
        return real_path(pid, path);
    };
    real_path(pid, path).or_else(|| Some(real_path(pid, folder)?.join(name)))
}

fn real_path(pid: libc::pid_t, path: &Path) -> Option<PathBuf> {
    let place = match path.strip_prefix("/proc/self") {
        // `/proc/self` would be the watcher itself, so the process ID replaces it.
        Ok(rest) => Path::new(&format!("/proc/{pid}")).join(rest),
        Err(_) => Path::new(&format!("/proc/{pid}/root")).join(path.strip_prefix("/").ok()?),
    };
    let file = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(place).ok()?;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

fn calls(number: c_long, arguments: &[u64; 6]) -> Vec<Call> {
    let one = |folder, path, usage| vec![Call { folder, path, usage }];
    let opened = |flags: u64| {
        let changes = libc::O_WRONLY | libc::O_RDWR | libc::O_TRUNC;
        if flags & libc::O_CREAT as u64 != 0 {
            Use::Make
        } else if flags & changes as u64 != 0 {
            Use::Write
        } else {
            Use::Read
        }
    };
    match number {
        libc::SYS_openat => one(Some(0), 1, opened(arguments[2])),
        libc::SYS_mkdirat | libc::SYS_mknodat => one(Some(0), 1, Use::Make),
        libc::SYS_unlinkat => one(Some(0), 1, Use::Write),
        libc::SYS_linkat => one(Some(2), 3, Use::Make),
        libc::SYS_symlinkat => one(Some(1), 2, Use::Make),
        libc::SYS_truncate => one(None, 0, Use::Write),
        libc::SYS_renameat | libc::SYS_renameat2 => vec![
            Call { folder: Some(0), path: 1, usage: Use::Write },
            Call { folder: Some(2), path: 3, usage: Use::Make },
        ],
        libc::SYS_execve => one(None, 0, Use::Execute),
        libc::SYS_execveat => one(Some(0), 1, Use::Execute),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => one(None, 0, opened(arguments[1])),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat | libc::SYS_mkdir | libc::SYS_mknod => one(None, 0, Use::Make),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rmdir | libc::SYS_unlink => one(None, 0, Use::Write),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_link | libc::SYS_symlink => one(None, 1, Use::Make),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => vec![
            Call { folder: None, path: 0, usage: Use::Write },
            Call { folder: None, path: 1, usage: Use::Make },
        ],
        _ => Vec::new(),
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
fn whole(pid: libc::pid_t, folder: Option<u64>, path: &Path) -> Option<PathBuf> {
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
fn folded(path: &Path) -> PathBuf {
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

fn note(events: &mut FileEvents, sight: &Sight, path: PathBuf, usage: Use) {
    let below = |list: &[PathBuf]| list.iter().any(|root| path.starts_with(root));
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    // Creating a file counts as refused if only its folder exists.
    let exists = || is_there(&path) || usage == Use::Make && path.parent().is_some_and(is_there);
    let set = if usage == Use::Execute && !below(&sight.visible) && path.is_file() {
        &mut events.denied_programs
    } else if usage == Use::Execute {
        &mut events.executed
    } else if !below(&sight.visible) {
        // Access to a missing file is not a refusal: programs look for files in many places. Parent
        // folders of visible paths exist in the sandbox.
        if !exists() || sight.visible.iter().any(|root| root.starts_with(&path)) {
            return;
        }
        denied_by(events, &path, usage)
    } else {
        match (sight.policy.access(&path), usage) {
            // A private folder hides the host's files at the same path.
            (Some(Access::Private | Access::Hidden), Use::Read)
                if path.symlink_metadata().is_ok_and(|found| !found.is_dir()) =>
            {
                &mut events.denied
            }
            (Some(Access::Private), Use::Write | Use::Make) => &mut events.written_in_vain,
            (None | Some(Access::Private), _) | (Some(Access::Hidden), Use::Read) => return,
            (Some(_), Use::Read) => &mut events.read,
            (Some(Access::Write), _) => &mut events.written,
            // There is no file that could be changed or removed.
            (Some(Access::Make), Use::Write) if path.symlink_metadata().is_err() => return,
            (Some(_), _) => denied_by(events, &path, usage),
        }
    };
    if set.contains(&path) {
        return;
    }
    if set.len() >= limits::EVENTS {
        events.more += 1;
    } else {
        set.insert(path);
    }
}

/// Returns the list for a denied path, and records separately if the program tried to write it.
fn denied_by<'a>(events: &'a mut FileEvents, path: &Path, usage: Use) -> &'a mut BTreeSet<PathBuf> {
    if usage.changes() && events.denied_writes.len() < limits::EVENTS {
        events.denied_writes.insert(path.to_owned());
    }
    &mut events.denied
}
