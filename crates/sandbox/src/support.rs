//! Reports which sandbox features this machine supports and which are missing.

use std::{io, path::PathBuf};

use serde::Serialize;
use thiserror::Error;

/// A feature that this machine lacks, with a hint.
#[derive(Debug, Error)]
pub enum MissingFeature {
    /// Processes cannot create their own namespaces.
    #[error("unprivileged user namespaces are not available ({reason}); {hint}")]
    Namespaces {
        /// The system's error.
        reason: io::Error,
        /// A hint how to solve it.
        hint: &'static str,
    },
    /// macOS cannot show a file at another path.
    #[error(
        "macOS cannot show installed packages at {}; install them for the whole system instead",
        path.display()
    )]
    Mount {
        /// The path inside the sandbox.
        path: PathBuf,
    },
    /// There is no sandbox for this operating system yet.
    #[error(
        "there is no sandbox for this operating system yet, so tools of skills are not run here"
    )]
    System,
}

impl MissingFeature {
    pub(crate) fn namespaces(reason: io::Error) -> Self {
        let set = |path: &str, value: &str| {
            std::fs::read_to_string(path).is_ok_and(|text| text.trim() == value)
        };
        let hint = if set("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
            "AppArmor forbids them: allow them for savoir with a profile that has `userns,`, or \
             with sysctl kernel.apparmor_restrict_unprivileged_userns=0"
        } else if set("/proc/sys/kernel/unprivileged_userns_clone", "0") {
            "allow them with sysctl kernel.unprivileged_userns_clone=1"
        } else if set("/proc/sys/user/max_user_namespaces", "0") {
            "allow them with sysctl user.max_user_namespaces=15000"
        } else {
            "in a container, start it with a seccomp profile that allows them"
        };
        Self::Namespaces { reason, hint }
    }
}

/// The sandbox features of this machine, found by trying them.
#[derive(Clone, Debug, Serialize)]
pub struct SandboxSupport {
    /// Namespaces, a separate root file system and the system call filter.
    pub sandbox: FeatureStatus,
    /// Version of Landlock; `None` if the kernel does not support it.
    pub landlock: Option<u32>,
    /// Network access to named hosts through the proxy.
    pub proxy: FeatureStatus,
    /// Records of the files that a run opens.
    pub watch: FeatureStatus,
    /// Whether limits can apply to all processes of a run together.
    #[serde(rename = "groups")]
    pub control_groups: bool,
}

/// Whether a feature of the sandbox works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum FeatureStatus {
    /// The feature was tried and works.
    #[serde(rename = "held")]
    Available,
    /// The feature was tried and does not work.
    #[serde(rename = "absent")]
    Unavailable {
        /// What failed.
        reason: String,
        /// A hint how to solve it; may be empty if the reason is enough.
        #[serde(rename = "way_out")]
        hint: String,
    },
}

/// Which tools this machine may run, depending on its sandbox features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum RunnableTools {
    /// No tools.
    #[serde(rename = "nothing")]
    None,
    /// Only signed tools, because Landlock, one of the protections, is missing.
    #[serde(rename = "vouched")]
    Signed,
    /// All tools.
    #[serde(rename = "everything")]
    All,
}

impl FeatureStatus {
    pub(crate) fn unavailable(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into(), hint: hint.into() }
    }

    /// Returns whether the feature works.
    pub fn is_available(&self) -> bool {
        *self == Self::Available
    }
}

impl SandboxSupport {
    /// Tries each feature on this machine.
    pub fn detect() -> Self {
        crate::platform::detect_support()
    }

    /// Returns which tools this machine may run.
    pub fn runnable_tools(&self) -> RunnableTools {
        crate::platform::runnable_tools(self)
    }
}

/// Returns whether this machine lacks Landlock, the second protection of files, although its system
/// could have it. Unsigned programs should not run then.
pub fn lacks_landlock() -> bool {
    cfg!(target_os = "linux") && crate::platform::landlock_version().is_none()
}
