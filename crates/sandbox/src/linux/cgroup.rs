//! Uses control groups (version 2) to limit all processes of a run together, if this process may
//! create groups. Otherwise only resource limits apply.

use std::{
    fs,
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use super::usage_monitor::pid_of;
use crate::policy::Limits;

/// The control group of one run; it is removed when the run has ended.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    folder: PathBuf,
}

impl ControlGroup {
    /// Creates a group with the limits, if this process may.
    pub(crate) fn new(limits: &Limits) -> Option<Self> {
        Self::create_below(&own_group_folder()?, limits)
    }

    fn create_below(parent: &Path, limits: &Limits) -> Option<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let controllers = fs::read_to_string(parent.join("cgroup.controllers")).ok()?;
        let has = |name| controllers.split_whitespace().any(|controller| controller == name);
        if !has("memory") || !has("pids") {
            return None;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let group = Self { folder: parent.join(format!("savoir-{}-{number}", process::id())) };
        fs::create_dir(&group.folder).ok()?;
        let set =
            |file: &str, value: u64| fs::write(group.folder.join(file), value.to_string()).ok();
        set("memory.max", limits.memory)?;
        set("pids.max", limits.processes)?;
        // Not every kernel counts swap.
        let _ = set("memory.swap.max", 0);
        Some(group)
    }

    /// Puts a process, and thereby all processes that it starts, into the group. Returns whether
    /// that worked.
    pub(crate) fn add(&self, pidfd: BorrowedFd<'_>) -> bool {
        let procs = self.folder.join("cgroup.procs");
        pid_of(pidfd).is_some_and(|pid| fs::write(procs, pid.to_string()).is_ok())
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Returns the folder of the control group of this process.
pub(crate) fn own_group_folder() -> Option<PathBuf> {
    let control_groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = control_groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (point, kind) = (words.nth(1)?, words.next()?);
        (kind == "cgroup2").then(|| point.to_owned())
    })?;
    Some(Path::new(&mount).join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_memory_and_pids_controllers() {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits { memory: 1 << 20, processes: 7, ..Limits::default() };
        assert!(
            ControlGroup::create_below(dir.path(), &limits).is_none(),
            "there are no control groups"
        );
        fs::write(dir.path().join("cgroup.controllers"), "cpu io\n").unwrap();
        assert!(
            ControlGroup::create_below(dir.path(), &limits).is_none(),
            "memory is someone else's"
        );
        fs::write(dir.path().join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        let group = ControlGroup::create_below(dir.path(), &limits).unwrap();
        let read = |file: &str| fs::read_to_string(group.folder.join(file)).unwrap();
        assert_eq!((read("memory.max"), read("pids.max")), ("1048576".into(), "7".into()));
    }
}
