//! Builds the sandbox on Linux from namespaces, a new root file system, Landlock and a system call
//! filter.
//!
//! - `layout` decides which paths are visible; `system_folders` lists the system folders among
//!   them; `plan` prepares every step before the new process exists.
//! - `child` is the code that the new process runs; `sys` has the system calls that it uses.
//! - `seccomp` (system calls) and `landlock` are the second and third layer of protection, after the
//!   namespaces.
//! - `launch` starts the process and `process` supervises it; `file_watch` records the files that
//!   the process opens; `cgroup` enforces limits on all processes of a run together.
//! - `path_guard` moves aside files that the program created at protected paths; `usage_monitor`
//!   counts memory and processes where there is no control group; `detect` tests what this machine
//!   supports.

#![expect(
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "the interfaces of the kernel differ in the signs of the same numbers"
)]

mod cgroup;
mod child;
mod detect;
mod file_watch;
mod landlock;
mod launch;
mod layout;
mod path_guard;
mod plan;
mod process;
mod seccomp;
mod sys;
mod system_folders;
mod usage_monitor;

pub(crate) use detect::detect_support;
pub use launch::Sandbox;
pub use process::{KillHandle, Process, Stream};

use crate::support::{RunnableTools, SandboxSupport};

/// Returns which tools may run: without Landlock only signed ones, because a second layer is
/// missing.
pub(crate) fn runnable_tools(support: &SandboxSupport) -> RunnableTools {
    match (support.sandbox.is_available() && support.watch.is_available(), support.landlock) {
        (false, _) => RunnableTools::None,
        (true, None) => RunnableTools::Signed,
        (true, Some(_)) => RunnableTools::All,
    }
}

/// Returns the Landlock version of the running kernel.
pub(crate) fn landlock_version() -> Option<u32> {
    sys::landlock_version().ok()
}
