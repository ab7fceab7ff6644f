//! Wraps system calls that start, restrict, signal and reap processes.

use std::{
    ffi::CStr,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
    ptr,
};

use libc::{c_int, c_long, c_uint, c_ulong};

use super::{Errno, Result, check, check_int, errno, zeroed};

/// Which process the call returned in.
pub(crate) enum Forked {
    Child,
    Parent { pidfd: OwnedFd },
}

/// Copies this process into new namespaces.
///
/// # Safety
/// The child is a copy of one thread of a process that may have more: until it ends or executes
/// another program it must not allocate, lock, or unwind.
pub(crate) unsafe fn fork_into(namespaces: c_int) -> Result<Forked> {
    let mut pidfd: c_int = -1;
    let flags = namespaces | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: without CLONE_VM and with a null stack this is a fork: the child continues with a
    // copy of this stack. The third argument receives the descriptor on every architecture.
    let result =
        unsafe { libc::syscall(libc::SYS_clone, c_long::from(flags), 0, &raw mut pidfd, 0, 0) };
    match check(result)? {
        0 => Ok(Forked::Child),
        // SAFETY: the kernel has just made this descriptor and nobody else owns it.
        _ => Ok(Forked::Parent { pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } }),
    }
}

/// Starts `entry` in a process that shares the memory of this one until it executes a program or
/// ends; this process waits until then.
///
/// # Safety
/// `entry` must be sound when called with `argument` on another stack while this thread is
/// suspended, and `stack` must be unused memory that is large enough for it.
pub(crate) unsafe fn start_sharing_memory(
    entry: extern "C" fn(*mut libc::c_void) -> c_int,
    stack: &mut [u8],
    argument: *mut libc::c_void,
) -> Result<libc::pid_t> {
    let top = stack.as_mut_ptr_range().end as usize & !15;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack grows down from its aligned end; the rest is the caller's promise.
    check_int(unsafe { libc::clone(entry, top as *mut libc::c_void, flags, argument) })
}

/// Replaces this process by a program; returns only on failure.
///
/// # Safety
/// Both lists must end with a null pointer and hold pointers to C strings.
pub(crate) unsafe fn execute(
    program: &CStr,
    arguments: *const *const libc::c_char,
    environment: *const *const libc::c_char,
) -> Errno {
    // SAFETY: the caller's promise.
    unsafe { libc::execve(program.as_ptr(), arguments, environment) };
    errno()
}

/// Ends this process without running exit handlers.
pub(crate) fn exit(code: c_int) -> ! {
    // SAFETY: _exit is always sound.
    unsafe { libc::_exit(code) }
}

pub(crate) fn prctl(option: c_int, value: c_ulong) -> Result<()> {
    // SAFETY: none of the options that are used takes a pointer.
    check_int(unsafe { libc::prctl(option, value, 0, 0, 0) }).map(drop)
}

/// Drops all capabilities, including those that a program could regain.
pub(crate) fn drop_capabilities() -> Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    const VERSION_3: u32 = 0x2008_0522;
    const NO_ROOT_AND_LOCKED: c_ulong = 0b10_1111;
    let last = 63;
    for capability in 0..=last {
        match prctl(libc::PR_CAPBSET_DROP, capability) {
            Err(Errno(libc::EINVAL)) => break,
            result => result?,
        }
    }
    prctl(libc::PR_SET_SECUREBITS, NO_ROOT_AND_LOCKED)?;
    let header = Header { version: VERSION_3, pid: 0 };
    let none = [0_u32; 6];
    // SAFETY: version 3 reads two sets of three words.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    check(result).map(drop)
}

pub(crate) fn set_limit(resource: c_uint, soft: u64, hard: u64) -> Result<()> {
    let mut limit: libc::rlimit64 = zeroed();
    // SAFETY: limit is a valid place for the answer.
    check_int(unsafe { libc::getrlimit64(resource, &raw mut limit) })?;
    // Limits can only be lowered, so a lower existing limit stays.
    let hard = hard.min(limit.rlim_max);
    let limit = libc::rlimit64 { rlim_cur: soft.min(hard), rlim_max: hard };
    // SAFETY: limit lives through the call.
    check_int(unsafe { libc::setrlimit64(resource, &raw const limit) }).map(drop)
}

pub(crate) fn set_hostname(name: &CStr) -> Result<()> {
    // SAFETY: name is valid for the length of the string.
    check_int(unsafe { libc::sethostname(name.as_ptr(), name.count_bytes()) }).map(drop)
}

/// Sends a signal to the process of a pidfd.
pub(crate) fn signal(pidfd: BorrowedFd<'_>, signal: c_int) -> Result<()> {
    let fd = pidfd.as_raw_fd();
    // SAFETY: a null pointer asks for the default information.
    let result =
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, ptr::null::<()>(), 0) };
    check(result).map(drop)
}

/// Waits for the end of the child process of a pidfd and reaps it.
pub(crate) fn wait_for(pidfd: BorrowedFd<'_>) -> Result<()> {
    let mut information: libc::siginfo_t = zeroed();
    loop {
        // SAFETY: information is a valid place for the answer.
        let result = unsafe {
            libc::waitid(
                libc::P_PIDFD,
                pidfd.as_raw_fd() as libc::id_t,
                &raw mut information,
                libc::WEXITED,
            )
        };
        match check_int(result) {
            Err(Errno(libc::EINTR)) => {}
            result => return result.map(drop),
        }
    }
}

/// Reaps a child that has ended and returns its status, if there is one.
pub(crate) fn reap_child() -> Option<(libc::pid_t, c_int)> {
    let mut status = 0;
    // SAFETY: status is a valid place for the answer.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

/// Signals every process of this namespace except this one.
pub(crate) fn signal_all(signal: c_int) {
    // SAFETY: kill takes no pointer. An error means that no process is left.
    unsafe { libc::kill(-1, signal) };
}

/// Kills every process of this namespace except this one, and waits until they have ended.
pub(crate) fn kill_all() {
    // SAFETY: only a null pointer is passed. Both calls fail once no process is left.
    unsafe {
        loop {
            let is_alone = libc::kill(-1, libc::SIGKILL) < 0;
            let nobody =
                libc::waitpid(-1, ptr::null_mut(), libc::__WALL) < 0 && errno().0 != libc::EINTR;
            if nobody && is_alone {
                return;
            }
        }
    }
}

/// Starts a new session, without a terminal.
pub(crate) fn new_session() -> Result<()> {
    // SAFETY: setsid takes nothing.
    check_int(unsafe { libc::setsid() }).map(drop)
}

/// Creates a terminal of this size. Returns the controlling end and the program's end.
pub(crate) fn open_terminal(rows: u16, columns: u16) -> Result<(OwnedFd, OwnedFd)> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let lock: c_int = 0;
    // SAFETY: the pointers are valid for each call; both descriptors are new.
    unsafe {
        let ours = OwnedFd::from_raw_fd(check_int(libc::posix_openpt(flags))?);
        let fd = ours.as_raw_fd();
        check_int(libc::ioctl(fd, libc::TIOCSPTLCK, &raw const lock))?;
        check_int(libc::ioctl(fd, libc::TIOCSWINSZ, &raw const size))?;
        let theirs = check_int(libc::ioctl(fd, libc::TIOCGPTPEER, flags))?;
        Ok((ours, OwnedFd::from_raw_fd(theirs)))
    }
}

/// Makes the terminal on standard input the controlling terminal of the session.
pub(crate) fn take_terminal() -> Result<()> {
    // SAFETY: the call takes a number.
    check_int(unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) }).map(drop)
}

/// Reads memory of another process; returns the number of bytes read.
pub(crate) fn read_memory(pid: libc::pid_t, address: u64, buffer: &mut [u8]) -> Result<usize> {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: local describes buffer; remote is an address of the other process, which the kernel
    // checks.
    let result =
        unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    Ok(check(result as c_long)? as usize)
}

/// Returns the effective user and group of this process.
pub(crate) fn identity() -> (libc::uid_t, libc::gid_t) {
    // SAFETY: both calls take nothing and cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}
