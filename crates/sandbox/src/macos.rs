//! Runs programs on macOS under `sandbox-exec`, with a profile that is generated from the policy.
//!
//! - `profile` writes the policy in the language of macOS's sandbox.
//! - `launch` prepares the folders, proxy and environment of a run and starts it; `process`
//!   supervises it.
//!
//! It is weaker than the sandbox on Linux; `docs/concepts/security.md` lists the differences. All
//! code but `sandbox-exec` itself runs on every Unix, so the tests run it with a stand-in.

mod launch;
mod process;
mod profile;

pub use launch::Sandbox;
pub use process::{KillHandle, Process, Stream};

use std::path::Path;

use crate::support::{FeatureStatus, RunnableTools, SandboxSupport};

/// The program that applies a profile and then executes another program.
const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// Reports whether `sandbox-exec` is installed, as it is on every supported macOS.
pub(crate) fn detect_support() -> SandboxSupport {
    let sandbox = if Path::new(SANDBOX_EXEC).is_file() {
        FeatureStatus::Available
    } else {
        FeatureStatus::unavailable(format!("{SANDBOX_EXEC} is missing"), "")
    };
    SandboxSupport {
        proxy: sandbox.clone(),
        sandbox,
        landlock: None,
        watch: FeatureStatus::unavailable("macOS does not report opened files", ""),
        control_groups: false,
    }
}

/// Returns `None`: macOS has no Landlock.
pub(crate) fn landlock_version() -> Option<u32> {
    None
}

/// Returns which tools may run: all, since macOS offers no second layer of protection that could
/// be missing.
pub(crate) fn runnable_tools(support: &SandboxSupport) -> RunnableTools {
    if support.sandbox.is_available() { RunnableTools::All } else { RunnableTools::None }
}
