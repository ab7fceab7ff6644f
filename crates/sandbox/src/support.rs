//! Reports which sandbox features this machine supports and which are missing.

use std::io;

use serde::Serialize;
use thiserror::Error;

/// A feature that this machine lacks, with a hint.
#[derive(Debug, Error)]
pub enum Missing {
    /// Processes cannot create their own namespaces.
    #[error("unprivileged user namespaces are not available ({reason}); {way_out}")]
    Namespaces {
        /// The system's error.
        reason: io::Error,
        /// A hint how to solve it.
        way_out: &'static str,
    },
    /// There is no sandbox for this operating system yet.
    #[error(
        "there is no sandbox for this operating system yet, so tools of skills are not run here"
    )]
    System,
}

impl Missing {
    pub(crate) fn namespaces(reason: io::Error) -> Self {
        let set = |path: &str, value: &str| {
            std::fs::read_to_string(path).is_ok_and(|text| text.trim() == value)
        };
        let way_out = if set("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
            "AppArmor forbids them: allow them for savoir with a profile that has `userns,`, or \
             with sysctl kernel.apparmor_restrict_unprivileged_userns=0"
        } else if set("/proc/sys/kernel/unprivileged_userns_clone", "0") {
            "allow them with sysctl kernel.unprivileged_userns_clone=1"
        } else if set("/proc/sys/user/max_user_namespaces", "0") {
            "allow them with sysctl user.max_user_namespaces=15000"
        } else {
            "in a container, start it with a seccomp profile that allows them"
        };
        Self::Namespaces { reason, way_out }
    }
}

/// The sandbox features of this machine, found by trying them.
#[derive(Clone, Debug, Serialize)]
pub struct Support {
    /// Namespaces, a separate root file system and the system call filter.
    pub sandbox: Part,
    /// Version of Landlock; `None` if the kernel does not support it.
    pub landlock: Option<u32>,
    /// Network access to named hosts through the proxy.
    pub proxy: Part,
    /// Records of the files that a run opens.
    pub watch: Part,
    /// Whether limits can apply to all processes of a run together.
    pub groups: bool,
}

/// Whether a feature of the sandbox works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The feature was tried and works.
    Held,
    /// The feature was tried and does not work.
    Absent {
        /// What failed.
        reason: String,
        /// A hint how to solve it; may be empty if the reason is enough.
        way_out: String,
    },
}

/// Which tools this machine may run, depending on its sandbox features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// No tools.
    Nothing,
    /// Only signed tools, because Landlock, one of the protections, is missing.
    Vouched,
    /// All tools.
    Everything,
}

impl Part {
    pub(crate) fn absent(reason: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self::Absent { reason: reason.into(), way_out: way_out.into() }
    }

    /// Returns whether the feature works.
    pub fn is_held(&self) -> bool {
        *self == Self::Held
    }
}

impl Support {
    /// Tries each feature on this machine.
    pub fn examine() -> Self {
        crate::linux::examine()
    }

    /// Returns which tools this machine may run.
    pub fn level(&self) -> Level {
        match (self.sandbox.is_held() && self.watch.is_held(), self.landlock) {
            (false, _) => Level::Nothing,
            (true, None) => Level::Vouched,
            (true, Some(_)) => Level::Everything,
        }
    }
}

/// Returns the version of Landlock, the second protection of files; `None` if the kernel does not
/// support it.
pub fn landlock() -> Option<u32> {
    crate::linux::landlock_version()
}
