//! Wraps system calls that open, inspect, create, rename and close files.

use std::{
    ffi::CStr,
    os::fd::{AsRawFd as _, BorrowedFd, RawFd},
};

use libc::{c_int, c_uint};

use super::{Errno, Result, check, check_int, errno, zeroed};

/// Opens a path with `O_PATH`, and only if it contains no symbolic link.
pub(crate) fn open_without_links(path: &CStr) -> Result<RawFd> {
    let mut how: libc::open_how = zeroed();
    how.flags = (libc::O_PATH | libc::O_CLOEXEC) as u64;
    how.resolve = libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_MAGICLINKS;
    // SAFETY: path and how live through the call, and the size is that of how.
    let result = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            libc::AT_FDCWD,
            path.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        )
    };
    Ok(check(result)? as RawFd)
}

/// Opens a path with `O_PATH`.
pub(crate) fn open_path(path: &CStr) -> Result<RawFd> {
    // SAFETY: path is a C string.
    check_int(unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) })
}

/// Returns the type bits of an open file.
pub(crate) fn file_type(fd: RawFd) -> Result<u32> {
    let mut stat: libc::stat = zeroed();
    // SAFETY: stat is a valid place for the answer.
    check_int(unsafe { libc::fstat(fd, &raw mut stat) })?;
    Ok(stat.st_mode & libc::S_IFMT)
}

pub(crate) fn change_directory(path: &CStr) -> Result<()> {
    // SAFETY: path is a C string.
    check_int(unsafe { libc::chdir(path.as_ptr()) }).map(drop)
}

pub(crate) fn make_folder(path: &CStr, mode: libc::mode_t) -> Result<()> {
    // SAFETY: path is a C string.
    check_int(unsafe { libc::mkdir(path.as_ptr(), mode) }).map(drop)
}

pub(crate) fn make_link(path: &CStr, target: &CStr) -> Result<()> {
    // SAFETY: both are C strings.
    check_int(unsafe { libc::symlink(target.as_ptr(), path.as_ptr()) }).map(drop)
}

/// Returns the type bits of an entry in a folder, without following a link.
pub(crate) fn file_type_in(folder: RawFd, name: &CStr) -> Result<u32> {
    let mut stat: libc::stat = zeroed();
    // SAFETY: name is a C string, and stat a valid place for the answer.
    check_int(unsafe {
        libc::fstatat(folder, name.as_ptr(), &raw mut stat, libc::AT_SYMLINK_NOFOLLOW)
    })?;
    Ok(stat.st_mode & libc::S_IFMT)
}

/// Returns whether a link in a folder has this target.
pub(crate) fn is_link_to(folder: RawFd, name: &CStr, target: &CStr) -> bool {
    let mut buffer = [0_u8; libc::PATH_MAX as usize];
    // SAFETY: name is a C string, and buffer is valid for its length.
    let length = unsafe {
        libc::readlinkat(folder, name.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len())
    };
    usize::try_from(length).ok().and_then(|length| buffer.get(..length)) == Some(target.to_bytes())
}

pub(crate) fn make_link_in(folder: RawFd, name: &CStr, target: &CStr) -> Result<()> {
    // SAFETY: both are C strings.
    check_int(unsafe { libc::symlinkat(target.as_ptr(), folder, name.as_ptr()) }).map(drop)
}

/// Renames an entry in a folder to a name that does not exist yet.
pub(crate) fn rename_in(folder: RawFd, name: &CStr, new: &CStr) -> Result<()> {
    let rename = |flags: c_uint| {
        // SAFETY: both are C strings.
        let result = unsafe {
            libc::syscall(libc::SYS_renameat2, folder, name.as_ptr(), folder, new.as_ptr(), flags)
        };
        check(result).map(drop)
    };
    match rename(libc::RENAME_NOREPLACE) {
        // Some network file systems do not support the flag that prevents overwriting.
        Err(Errno(libc::EINVAL)) => rename(0),
        result => result,
    }
}

/// Gives the owner all rights on a folder. Does nothing to folders of other users.
pub(crate) fn give_owner_access(folder: &CStr) {
    let mut stat: libc::stat = zeroed();
    // SAFETY: folder is a C string, and stat a valid place for the answer.
    let known = unsafe { libc::lstat(folder.as_ptr(), &raw mut stat) } == 0;
    let is_closed = stat.st_mode & libc::S_IRWXU != libc::S_IRWXU;
    if known && stat.st_mode & libc::S_IFMT == libc::S_IFDIR && is_closed {
        // SAFETY: folder is a C string.
        unsafe { libc::chmod(folder.as_ptr(), stat.st_mode & 0o7777 | libc::S_IRWXU) };
    }
}

/// Writes a file; `flags` decide whether the file is created or must exist.
pub(crate) fn write_file(path: &CStr, flags: c_int, bytes: &[u8]) -> Result<()> {
    // SAFETY: path is a C string; bytes is valid for its length; the descriptor is our own.
    unsafe {
        let fd = check_int(libc::open(
            path.as_ptr(),
            libc::O_WRONLY | libc::O_CLOEXEC | flags,
            0o444 as c_uint,
        ))?;
        let written = libc::write(fd, bytes.as_ptr().cast(), bytes.len());
        let result = if written == bytes.len() as isize { Ok(()) } else { Err(errno()) };
        libc::close(fd);
        result
    }
}

/// Makes reads and writes fail instead of blocking.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: fcntl takes no pointers here.
    unsafe {
        let flags = check_int(libc::fcntl(fd.as_raw_fd(), libc::F_GETFL))?;
        check_int(libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)).map(drop)
    }
}

/// Makes `to` a copy of `from` that stays open when a program is executed.
pub(crate) fn duplicate(from: RawFd, to: RawFd) -> Result<()> {
    // SAFETY: dup2 takes no pointers.
    check_int(unsafe { libc::dup2(from, to) }).map(drop)
}

/// Closes all descriptors from `first` on.
pub(crate) fn close_from(first: RawFd) -> Result<()> {
    // SAFETY: close_range takes no pointers. Only called in a process that uses none of them.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, c_uint::MAX, 0) };
    check(result).map(drop)
}

pub(crate) fn close(fd: RawFd) {
    // SAFETY: the caller made the descriptor and does not use it again.
    unsafe { libc::close(fd) };
}

/// Marks all descriptors above standard error to be closed when a program is executed.
pub(crate) fn close_on_execute() -> Result<()> {
    const FIRST: c_uint = 3;
    // SAFETY: close_range takes no pointers; with this flag nothing is closed yet.
    let result = unsafe {
        libc::syscall(libc::SYS_close_range, FIRST, c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    check(result).map(drop)
}
