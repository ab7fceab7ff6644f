//! Wraps system calls that change mounts.

use std::{ffi::CStr, os::fd::RawFd, ptr};

use libc::{c_uint, c_ulong};

use super::{Result, check, check_int};

/// Returns a detached copy of the mount at an open path, with all mounts below.
pub(crate) fn clone_tree(fd: RawFd) -> Result<RawFd> {
    const OPEN_TREE_CLONE: c_uint = 1;
    let flags = OPEN_TREE_CLONE
        | libc::O_CLOEXEC as c_uint
        | libc::AT_EMPTY_PATH as c_uint
        | libc::AT_RECURSIVE as c_uint;
    // SAFETY: the path is an empty C string.
    let result = unsafe { libc::syscall(libc::SYS_open_tree, fd, c"".as_ptr(), flags) };
    Ok(check(result)? as RawFd)
}

/// Which mounts a change of flags applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MountScope {
    /// Only this mount.
    Single,
    /// This mount and all mounts below.
    Tree,
}

pub(crate) fn set_mount_flags(fd: RawFd, flags: u64, scope: MountScope) -> Result<()> {
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    let attr = MountAttr { set: flags, clear: 0, propagation: 0, user_namespace: 0 };
    let at = match scope {
        MountScope::Single => libc::AT_EMPTY_PATH,
        MountScope::Tree => libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
    };
    // SAFETY: the path is an empty C string, attr lives through the call and has the size given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd,
            c"".as_ptr(),
            at,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    check(result).map(drop)
}

/// Attaches a detached mount at a path.
pub(crate) fn attach_tree(fd: RawFd, target: &CStr) -> Result<()> {
    const MOVE_MOUNT_F_EMPTY_PATH: c_uint = 4;
    // SAFETY: both paths are C strings.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            fd,
            c"".as_ptr(),
            libc::AT_FDCWD,
            target.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    check(result).map(drop)
}

/// Mounts a file system without a source.
pub(crate) fn mount(kind: &CStr, target: &CStr, flags: c_ulong, options: &CStr) -> Result<()> {
    // SAFETY: all pointers are C strings that live through the call.
    let result = unsafe {
        libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    };
    check_int(result).map(drop)
}

/// Stops propagation between the mounts of this namespace and the namespace that they were copied
/// from.
pub(crate) fn make_mounts_private() -> Result<()> {
    // SAFETY: the kernel ignores the null pointers when it changes propagation.
    let result = unsafe {
        libc::mount(
            ptr::null(),
            c"/".as_ptr(),
            ptr::null(),
            libc::MS_REC | libc::MS_PRIVATE,
            ptr::null(),
        )
    };
    check_int(result).map(drop)
}

/// Makes the working directory the root and detaches the old root.
pub(crate) fn enter_root() -> Result<()> {
    // SAFETY: all paths are C strings. Old and new root are the same directory, so the old one is
    // mounted on top of the new one, and is detached immediately.
    unsafe {
        check(libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()))?;
        check_int(libc::umount2(c".".as_ptr(), libc::MNT_DETACH))?;
        check_int(libc::chdir(c"/".as_ptr()))?;
    }
    Ok(())
}
