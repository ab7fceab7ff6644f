//! Linux: namespaces, a root built from nothing, Landlock, a filter of system calls.
//!
//! - `root` lays out what is visible, `plan` works out every step beforehand.
//! - `child` is what the new process does; `sys` are the system calls that it uses.
//! - `filter` and `landlock` are the second and third lock.
//! - `launch` starts it, `process` watches over it; `watch` notes the files that it opens; `group` holds
//!   limits for all its processes together.

#![expect(
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "the interfaces of the kernel differ in the signs of the same numbers"
)]

mod child;
mod filter;
mod group;
mod guard;
mod landlock;
mod launch;
mod plan;
mod process;
mod root;
mod sys;
mod tally;
mod trial;
mod userland;
mod watch;

pub use launch::Sandbox;
pub use process::{Killer, Process, Stream};
pub(crate) use trial::examine;

/// The version of Landlock that the kernel has.
pub(crate) fn landlock_version() -> Option<u32> {
    sys::landlock_version().ok()
}
