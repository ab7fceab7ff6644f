//! Wraps system calls that block, receive and reset signals.

use std::{
    os::fd::{FromRawFd as _, OwnedFd, RawFd},
    ptr,
};

use libc::c_int;

use super::{Errno, Result, check_int, zeroed};

/// Returns a descriptor that becomes readable when a child ends. The signal stays blocked.
pub(crate) fn child_signals() -> Result<RawFd> {
    // SAFETY: set is initialised by the first call before it is read.
    unsafe {
        let mut set: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        check_int(libc::sigprocmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut()))?;
        check_int(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))
    }
}

/// Empties a signal descriptor, so that it can become ready again.
pub(crate) fn drain(fd: RawFd) {
    let mut buffer = [0_u8; 128];
    // SAFETY: buffer is valid for its length.
    while unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) } > 0 {}
}

/// Blocks all signals, so that no handler of the old process runs in the new one.
pub(crate) fn block_signals() -> Result<libc::sigset_t> {
    // SAFETY: both sets are valid places.
    unsafe {
        let mut all: libc::sigset_t = zeroed();
        let mut before: libc::sigset_t = zeroed();
        libc::sigfillset(&raw mut all);
        let result = libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        if result == 0 { Ok(before) } else { Err(Errno(result)) }
    }
}

/// Blocks the signals with which a user or the system ends a program, for this thread and the
/// threads that it starts. Returns the old mask and a descriptor on which the signals arrive.
/// Signals with a handler in this process are not blocked, because the descriptor would receive
/// them instead of the handler.
pub(crate) fn block_termination_signals() -> Result<(libc::sigset_t, OwnedFd)> {
    // SAFETY: both sets are valid places, initialised before they are read; the descriptor is new.
    unsafe {
        let mut blocked: libc::sigset_t = zeroed();
        let mut before: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut blocked);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            if !is_handled(signal) {
                libc::sigaddset(&raw mut blocked, signal);
            }
        }
        let result = libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, &raw mut before);
        if result != 0 {
            return Err(Errno(result));
        }
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        let fd = check_int(libc::signalfd(-1, &raw const blocked, flags))?;
        Ok((before, OwnedFd::from_raw_fd(fd)))
    }
}

/// Returns whether this process has its own handler for a signal.
fn is_handled(signal: c_int) -> bool {
    // SAFETY: the old action is a valid place, and nothing is changed without a new one.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action) == 0
            && ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction)
    }
}

pub(crate) fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: before was filled in by `block_signals`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, ptr::null_mut()) };
}

/// Resets all signal handlers to the default.
pub(crate) fn reset_handlers() {
    for signal in 1..=64 {
        // SAFETY: SIG_DFL is a valid handler for every signal; those that cannot be set are
        // refused.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Resets all signal handlers to the default and unblocks all signals.
pub(crate) fn reset_signals() {
    reset_handlers();
    // SAFETY: none is initialised by the first call before it is read.
    unsafe {
        let mut none: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Returns the signal that arrived first; the others are dropped.
pub(crate) fn first_signal(signal_fd: RawFd) -> Option<c_int> {
    // SAFETY: the place is valid for its size, and read only if all of it was written.
    unsafe {
        let mut info: libc::signalfd_siginfo = zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        let read = libc::read(signal_fd, (&raw mut info).cast(), size);
        let is_whole = usize::try_from(read).is_ok_and(|read| read == size);
        drain(signal_fd);
        is_whole.then_some(info.ssi_signo as c_int)
    }
}
