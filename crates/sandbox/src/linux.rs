//! Builds the sandbox on Linux from namespaces, a new root file system, Landlock and a system call
//! filter.
//!
//! - `root` decides which paths are visible; `userland` lists the system folders among them; `plan`
//!   prepares every step before the new process exists.
//! - `child` is the code that the new process runs; `sys` has the system calls that it uses.
//! - `filter` (system calls) and `landlock` are the second and third layer of protection, after the
//!   namespaces.
//! - `launch` starts the process and `process` supervises it; `watch` records the files that the
//!   process opens; `group` enforces limits on all processes of a run together.
//! - `guard` moves aside files that the program created at protected paths; `tally` counts memory
//!   and processes where there is no control group; `trial` tests what this machine supports.

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

/// Returns the Landlock version of the running kernel.
pub(crate) fn landlock_version() -> Option<u32> {
    sys::landlock_version().ok()
}
