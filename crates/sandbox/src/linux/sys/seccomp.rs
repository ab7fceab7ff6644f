//! Wraps the system calls of seccomp: installing a filter and answering its notifications.

use std::os::fd::RawFd;

use libc::c_int;

use super::{Result, check, check_int, zeroed};

/// Installs a system call filter. Returns a listener descriptor if one was requested.
pub(crate) fn install_filter(
    program: &[libc::sock_filter],
    listener: bool,
) -> Result<Option<RawFd>> {
    let program =
        libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    let flags = if listener { libc::SECCOMP_FILTER_FLAG_NEW_LISTENER } else { 0 };
    // SAFETY: program points to as many instructions as it says.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    let fd = check(result)?;
    Ok(listener.then_some(fd as RawFd))
}

/// Receives the next call that waits for the watcher's decision.
pub(crate) fn next_notification(listener: RawFd) -> Result<libc::seccomp_notif> {
    let mut notification: libc::seccomp_notif = zeroed();
    // SAFETY: notification is a valid and zeroed place, as the kernel demands.
    let result =
        unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notification) };
    check_int(result)?;
    Ok(notification)
}

/// Lets a waiting call continue normally.
pub(crate) fn allow_call(listener: RawFd, id: u64) -> Result<()> {
    let mut response: libc::seccomp_notif_resp = zeroed();
    response.id = id;
    response.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    // SAFETY: answer lives through the call.
    let result =
        unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response) };
    check_int(result).map(drop)
}

/// Makes a waiting call fail with `errno`.
pub(crate) fn deny_call(listener: RawFd, id: u64, errno: c_int) -> Result<()> {
    let mut response: libc::seccomp_notif_resp = zeroed();
    response.id = id;
    response.error = -errno;
    // SAFETY: answer lives through the call.
    let result =
        unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response) };
    check_int(result).map(drop)
}
