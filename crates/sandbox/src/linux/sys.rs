//! Wraps system calls, one per function. Only this module calls the kernel without the standard
//! library: none of its functions allocates, locks or unwinds, so that they can be called between
//! `clone` and `execve`.

#![expect(unsafe_code, reason = "the standard library has no functions for these calls")]

mod files;
mod landlock;
mod mounts;
mod processes;
mod seccomp;
mod signals;
mod sockets;

use std::{
    mem,
    os::fd::{FromRawFd as _, OwnedFd, RawFd},
};

use libc::{c_int, c_long};

pub(crate) use self::{
    files::{
        change_directory, close, close_from, close_on_execute, duplicate, file_type, file_type_in,
        give_owner_access, is_link_to, make_folder, make_link, make_link_in, open_path,
        open_without_links, rename_in, set_nonblocking, write_file,
    },
    landlock::{
        HandledRights, allow_path, allow_port, apply_ruleset, create_ruleset, landlock_version,
    },
    mounts::{
        MountScope, attach_tree, clone_tree, enter_root, make_mounts_private, mount,
        set_mount_flags,
    },
    processes::{
        Forked, drop_capabilities, execute, exit, fork_into, identity, kill_all, new_session,
        open_terminal, prctl, read_memory, reap_child, set_hostname, set_limit, signal, signal_all,
        start_sharing_memory, take_terminal, wait_for,
    },
    seccomp::{allow_call, deny_call, install_filter, next_notification},
    signals::{
        block_signals, block_termination_signals, child_signals, drain, first_signal,
        reset_handlers, reset_signals, restore_signals,
    },
    sockets::{PollEntry, listen_on_loopback, message_pair, poll, receive, send},
};

/// The error number of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) c_int);

pub(crate) type Result<T> = std::result::Result<T, Errno>;

impl From<Errno> for std::io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.0)
    }
}

pub(crate) fn errno() -> Errno {
    // SAFETY: the location of errno is valid for the calling thread.
    Errno(unsafe { *libc::__errno_location() })
}

fn check(result: c_long) -> Result<c_long> {
    if result < 0 { Err(errno()) } else { Ok(result) }
}

fn check_int(result: c_int) -> Result<c_int> {
    if result < 0 { Err(errno()) } else { Ok(result) }
}

fn owned_fd(result: c_long) -> Result<OwnedFd> {
    let fd = check(result)?;
    // SAFETY: the kernel has just made this descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Returns a C structure with all bytes zero.
fn zeroed<T: Zeroable>() -> T {
    // SAFETY: every type that is marked as `Zeroable` is valid with all bytes zero.
    unsafe { mem::zeroed() }
}

/// Types that are valid with all bytes zero.
trait Zeroable {}
impl Zeroable for libc::open_how {}
impl Zeroable for libc::stat {}
impl Zeroable for libc::rlimit64 {}
impl Zeroable for libc::ifreq {}
impl Zeroable for libc::sockaddr_in {}
impl Zeroable for libc::msghdr {}
impl Zeroable for libc::siginfo_t {}
impl Zeroable for libc::signalfd_siginfo {}
impl Zeroable for libc::sigset_t {}
impl Zeroable for libc::sigaction {}
impl Zeroable for libc::seccomp_notif {}
impl Zeroable for libc::seccomp_notif_resp {}
