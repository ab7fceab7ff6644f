//! What a machine must have to hold a sandbox.

use std::io;

use serde::Serialize;
use thiserror::Error;

/// What this machine lacks, and the way out.
#[derive(Debug, Error)]
pub enum Missing {
    /// Processes cannot have namespaces of their own.
    #[error("unprivileged user namespaces are not available ({reason}); {way_out}")]
    Namespaces {
        /// What the system said.
        reason: io::Error,
        /// What can be done about it.
        way_out: &'static str,
    },
    /// There is no sandbox for this system yet.
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

/// What this machine can hold, as it was found by trying.
#[derive(Clone, Debug, Serialize)]
pub struct Support {
    /// Namespaces, a root of its own and the filter of system calls.
    pub sandbox: Part,
    /// Version of Landlock; `None` if the kernel has none.
    pub landlock: Option<u32>,
    /// Hosts by name, through the proxy.
    pub proxy: Part,
    /// Notes of the files that a run opens.
    pub watch: Part,
    /// Whether limits can hold for all processes of a run together.
    pub groups: bool,
}

/// Whether a part of the sandbox works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// It was tried and works.
    Held,
    /// It was tried and does not.
    Absent {
        /// What happened.
        reason: String,
        /// What can be done about it; may be empty, then the reason says it.
        way_out: String,
    },
}

/// How far a machine can be trusted with other people's tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing is run.
    Nothing,
    /// What someone vouches for is run: one of the locks is missing.
    Vouched,
    /// Everything is run.
    Everything,
}

impl Part {
    pub(crate) fn absent(reason: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self::Absent { reason: reason.into(), way_out: way_out.into() }
    }

    /// Whether it works.
    pub fn is_held(&self) -> bool {
        *self == Self::Held
    }
}

impl Support {
    /// Tries what this machine can hold.
    pub fn examine() -> Self {
        crate::linux::examine()
    }

    /// How far this machine can be trusted.
    pub fn level(&self) -> Level {
        match (self.sandbox.is_held() && self.watch.is_held(), self.landlock) {
            (false, _) => Level::Nothing,
            (true, None) => Level::Vouched,
            (true, Some(_)) => Level::Everything,
        }
    }
}

/// Version of Landlock, the second lock on files; `None` if the kernel has none.
pub fn landlock() -> Option<u32> {
    crate::linux::landlock_version()
}
