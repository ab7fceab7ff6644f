//! Defines the Landlock rights, the second protection of files: mounts decide which files are
//! visible, Landlock decides what can be done with them. A mistake in one is caught by the other.

use super::sys::HandledRights;

const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const MAKE_SOCK: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_BLOCK: u64 = 1 << 11;
const MAKE_SYM: u64 = 1 << 12;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

const BIND_TCP: u64 = 1 << 0;
pub(crate) const CONNECT_TCP: u64 = 1 << 1;

const SCOPE_ABSTRACT_SOCKETS: u64 = 1 << 0;
const SCOPE_SIGNALS: u64 = 1 << 1;

/// Rights that apply to files; the others apply to folders only.
pub(crate) const FILE: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

pub(crate) const READ: u64 = READ_FILE | READ_DIR;
pub(crate) const RUN: u64 = READ | EXECUTE;
pub(crate) const DEVICE: u64 = READ_FILE | WRITE_FILE;
pub(crate) const WRITE: u64 = READ
    | WRITE_FILE
    | REMOVE_DIR
    | REMOVE_FILE
    | MAKE_DIR
    | MAKE_REG
    | MAKE_FIFO
    | MAKE_SYM
    | REFER
    | TRUNCATE;
/// Only used where any program can be started, see
/// [`ExtraPrograms::System`](crate::ExtraPrograms::System).
pub(crate) const WRITE_AND_RUN: u64 = WRITE | EXECUTE;

const EVERYTHING: u64 = WRITE | EXECUTE | MAKE_CHAR | MAKE_SOCK | MAKE_BLOCK | IOCTL_DEV;

/// Returns the rights that a kernel with this Landlock version supports, and the size of the
/// structure that it expects.
pub(crate) fn supported_rights(version: u32) -> (HandledRights, usize) {
    let mut files = EVERYTHING;
    if version < 5 {
        files &= !IOCTL_DEV;
    }
    if version < 3 {
        files &= !TRUNCATE;
    }
    if version < 2 {
        files &= !REFER;
    }
    let network = if version >= 4 { BIND_TCP | CONNECT_TCP } else { 0 };
    let scopes = if version >= 6 { SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS } else { 0 };
    let size = match version {
        ..4 => 8,
        4..6 => 16,
        _ => 24,
    };
    (HandledRights { files, network, scopes }, size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_kernels_support_more_rights() {
        let mut before = 0;
        for version in 1..=9 {
            let (handled, size) = supported_rights(version);
            assert!(handled.files.count_ones() >= before);
            before = handled.files.count_ones();
            assert_eq!(handled.network != 0, version >= 4);
            assert_eq!(handled.scopes != 0, version >= 6);
            assert_eq!(size == 24, version >= 6);
        }
    }

    #[test]
    fn nothing_writable_is_executable_with_listed_programs() {
        assert_eq!(WRITE & EXECUTE, 0);
        assert_eq!(READ & !(READ_FILE | READ_DIR), 0);
    }

    #[test]
    fn devices_and_sockets_cannot_be_created() {
        let never = MAKE_CHAR | MAKE_BLOCK | MAKE_SOCK | IOCTL_DEV;
        assert_eq!(WRITE_AND_RUN & never, 0);
        assert_eq!(WRITE_AND_RUN & !EXECUTE, WRITE);
    }
}
