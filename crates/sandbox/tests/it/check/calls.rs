//! Wraps system calls that the standard library has no functions for.
#![expect(unsafe_code, reason = "checks make calls that nobody else makes")]

use std::{
    ffi::CString,
    io,
    os::{
        fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use libc::{c_int, c_long};

/// An invalid address.
pub(crate) const NOWHERE: usize = 8;

/// A number that is invalid for every call.
pub(crate) const ALL_BITS: usize = usize::MAX;

fn check(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Makes a call with these arguments; the rest is zero.
pub(crate) fn call(number: c_long, arguments: &[usize]) -> io::Result<c_long> {
    let at = |index: usize| arguments.get(index).copied().unwrap_or(0);
    // SAFETY: callers pass numbers, addresses of memory that they own, or invalid addresses, which
    // the kernel rejects.
    check(unsafe { libc::syscall(number, at(0), at(1), at(2), at(3), at(4), at(5)) })
}

/// Succeeds if the kernel checks the arguments of a call, which are wrong on purpose, instead of
/// refusing the call itself.
pub(crate) fn reaches(number: c_long, arguments: &[usize]) -> Result<(), String> {
    match call(number, arguments) {
        Ok(_) => Ok(()),
        Err(error) => match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES | libc::ENOSYS) | None => Err(error.to_string()),
            Some(_) => Ok(()),
        },
    }
}

/// The address of a value, as an argument of a call.
pub(crate) fn address<T: ?Sized>(value: &T) -> usize {
    std::ptr::from_ref(value).cast::<u8>() as usize
}

pub(crate) fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// Does something in a copy of this process, so that it does not affect the rest of the check.
pub(crate) fn in_child(action: impl FnOnce() -> io::Result<()>) -> Result<(), String> {
    // SAFETY: entries run on the only thread of their process, so the copy is whole.
    let pid = check(unsafe { libc::fork() }.into()).map_err(|error| error.to_string())?;
    if pid == 0 {
        let code = action().err().map_or(0, |error| error.raw_os_error().unwrap_or(1));
        leave(code);
    }
    let mut status = 0;
    // SAFETY: status is a valid place for the answer.
    unsafe { libc::waitpid(pid as libc::pid_t, &raw mut status, 0) };
    if libc::WIFEXITED(status) {
        match libc::WEXITSTATUS(status) {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno).to_string()),
        }
    } else {
        Err(format!("signal {}", libc::WTERMSIG(status)))
    }
}

/// Ends this process with a code, without returning to the test harness.
pub(crate) fn leave(code: c_int) -> ! {
    // SAFETY: _exit is always sound.
    unsafe { libc::_exit(code) }
}

/// Forks this process; returns `true` in the child.
pub(crate) fn fork() -> io::Result<bool> {
    // SAFETY: entries run on the only thread of their process, so the copy is whole.
    Ok(check(unsafe { libc::fork() }.into())? == 0)
}

pub(crate) fn make_pipe(path: &Path) -> io::Result<()> {
    make_node(path, libc::S_IFIFO | 0o600, 0)
}

pub(crate) fn make_node(path: &Path, mode: u32, device: u64) -> io::Result<()> {
    let path = c_path(path);
    // SAFETY: path is a C string.
    check(unsafe { libc::mknod(path.as_ptr(), mode, device) }.into()).map(drop)
}

/// Keeps a descriptor open when a program is executed.
pub(crate) fn keep_on_execute(fd: &OwnedFd) {
    // SAFETY: fcntl takes no pointer here.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, 0) }.into()).unwrap();
}

pub(crate) fn socket(family: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointers, and the new descriptor belongs to nobody else.
    unsafe {
        let fd = check(libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol).into())?;
        Ok(OwnedFd::from_raw_fd(fd as c_int))
    }
}

/// Sends a byte to a socket file through one end of a connected pair.
pub(crate) fn send_through_pair(kind: c_int, path: &Path) -> io::Result<()> {
    let mut pair = [-1; 2];
    // SAFETY: an address of all zeroes is valid; pair, address and byte live through the calls.
    unsafe {
        check(libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()).into())?;
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        for (to, from) in address.sun_path.iter_mut().zip(path.as_os_str().as_bytes()) {
            *to = from.cast_signed();
        }
        let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        let address = (&raw const address).cast();
        let sent = libc::sendto(pair[0], [b'x'].as_ptr().cast(), 1, 0, address, length);
        check(sent as c_long).map(drop)
    }
}

/// Maps the first page of a file with these rights.
pub(crate) fn map(fd: c_int, rights: c_int) -> io::Result<usize> {
    let flags = if fd < 0 {
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE
    } else {
        libc::MAP_PRIVATE
    };
    map_length(fd, rights, flags, 4096)
}

pub(crate) fn map_length(
    fd: c_int,
    rights: c_int,
    flags: c_int,
    length: usize,
) -> io::Result<usize> {
    // SAFETY: a new mapping at an address that the kernel chooses does not affect other memory.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), length, rights, flags, fd, 0) };
    if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(at as usize) }
}

/// Loads a shared library.
pub(crate) fn load_library(path: &Path) -> Result<(), String> {
    let path = c_path(path);
    // SAFETY: the library is a copy of one that this process uses already.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    if handle.is_null() { Err("the loader refuses it".to_owned()) } else { Ok(()) }
}

/// Makes a call through the interface for 32-bit programs.
#[cfg(target_arch = "x86_64")]
pub(crate) fn old_interface() -> io::Result<()> {
    const GETPID: i32 = 20;
    let result: i32;
    // SAFETY: getpid takes nothing; the kernel may clear the registers named here.
    unsafe {
        std::arch::asm!(
            "int 0x80", inlateout("eax") GETPID => result,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    if result > 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-result)) }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn old_interface() -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}

pub(crate) fn ignore(signal: c_int) {
    // SAFETY: SIG_IGN is a valid handler.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}
