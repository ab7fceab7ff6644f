//! Wraps the system calls of Landlock.

use std::{
    os::fd::{OwnedFd, RawFd},
    ptr,
};

use libc::{c_int, c_uint};

use super::{Result, check, owned_fd};

/// Returns the Landlock version of the kernel.
pub(crate) fn landlock_version() -> Result<u32> {
    const VERSION: c_uint = 1;
    // SAFETY: with this flag the kernel reads nothing.
    let result = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<()>(), 0_usize, VERSION)
    };
    Ok(check(result)? as u32)
}

/// The rights that a Landlock ruleset controls.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HandledRights {
    pub(crate) files: u64,
    pub(crate) network: u64,
    pub(crate) scopes: u64,
}

pub(crate) fn create_ruleset(handled: &HandledRights, size: usize) -> Result<OwnedFd> {
    // SAFETY: handled is at least as long as size, which the caller takes from the version.
    owned_fd(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const *handled,
            size.min(size_of::<HandledRights>()),
            0,
        )
    })
}

/// Allows rights on a file, or on a folder and everything below.
pub(crate) fn allow_path(ruleset: RawFd, path: RawFd, rights: u64) -> Result<()> {
    #[repr(C, packed)]
    struct PathBeneath {
        rights: u64,
        parent: RawFd,
    }
    const PATH_BENEATH: c_int = 1;
    let rule = PathBeneath { rights, parent: path };
    // SAFETY: rule lives through the call and has the layout that the kernel reads.
    let result = unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset, PATH_BENEATH, &raw const rule, 0)
    };
    check(result).map(drop)
}

/// Allows rights on a TCP port.
pub(crate) fn allow_port(ruleset: RawFd, port: u16, rights: u64) -> Result<()> {
    #[repr(C)]
    struct NetPort {
        rights: u64,
        port: u64,
    }
    const NET_PORT: c_int = 2;
    let rule = NetPort { rights, port: u64::from(port) };
    // SAFETY: rule lives through the call and has the layout that the kernel reads.
    let result = unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset, NET_PORT, &raw const rule, 0)
    };
    check(result).map(drop)
}

pub(crate) fn apply_ruleset(ruleset: RawFd) -> Result<()> {
    // SAFETY: the call takes no pointers.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) }).map(drop)
}
