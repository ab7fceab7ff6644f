//! Counts the memory and processes of a run where no control group does: resource limits apply to
//! the memory of each process separately, and do not count the processes of root at all.

use std::{
    fs,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
    sync::{Arc, OnceLock},
    thread,
};

use super::sys;
use crate::{outcome::ProcessEnd, policy::Limits};

/// Milliseconds between two counts; processes can use only little memory in this time.
const INTERVAL_MILLISECONDS: i32 = 50;

/// A counter thread that ends the run when a limit is exceeded.
#[derive(Debug)]
pub(super) struct UsageMonitor {
    exceeded: Arc<OnceLock<ProcessEnd>>,
}

impl UsageMonitor {
    /// Counts until the first process of the run has ended. Returns `None` if `/proc` provides no
    /// numbers.
    pub(super) fn start(first: BorrowedFd<'_>, limits: &Limits) -> Option<Self> {
        let pid = pid_of(first)?;
        resident_memory(pid)?;
        let first = first.try_clone_to_owned().ok()?;
        let exceeded = Arc::new(OnceLock::new());
        let (thread_exceeded, maximums) =
            (Arc::clone(&exceeded), (limits.processes, limits.memory));
        let thread = thread::Builder::new().name("tally".to_owned());
        thread.spawn(move || monitor(&first, pid, maximums, &thread_exceeded)).ok()?;
        Some(Self { exceeded })
    }

    /// Returns the limit that ended the run.
    pub(super) fn exceeded(&self) -> Option<ProcessEnd> {
        self.exceeded.get().copied()
    }
}

fn monitor(first: &OwnedFd, pid: u32, maximums: (u64, u64), exceeded: &OnceLock<ProcessEnd>) {
    let mut ended = [sys::PollEntry::read(first.as_raw_fd())];
    while sys::poll(&mut ended, Some(INTERVAL_MILLISECONDS)).is_ok() && !ended[0].is_ready {
        let (all, threads) = process_tree(pid);
        let sum = |of: fn(u32) -> Option<u64>| all.iter().copied().filter_map(of).sum::<u64>();
        let end = if threads > maximums.0 {
            ProcessEnd::TooManyProcesses
        } else if sum(resident_memory) > maximums.1 && sum(proportional_memory) > maximums.1 {
            ProcessEnd::TooMuchMemory
        } else {
            continue;
        };
        let _ = exceeded.set(end);
        let _ = sys::signal(first.as_fd(), libc::SIGKILL);
        return;
    }
}

/// Returns the ID of the process of a pidfd.
pub(super) fn pid_of(pidfd: BorrowedFd<'_>) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok())
}

/// Returns a process and all its descendants, and the number of their threads. No process is
/// missed: a process whose parent has ended becomes a child of the first process of the namespace.
fn process_tree(first: u32) -> (Vec<u32>, u64) {
    let mut found = vec![first];
    let (mut next, mut count) = (0, 0);
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for thread in threads {
            count += 1;
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    (found, count)
}

/// Returns the memory of a process that is not backed by files, counting shared memory in
/// proportion. This is slower than `resident_memory`.
fn proportional_memory(pid: u32) -> Option<u64> {
    let Ok(rollup) = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else {
        return resident_memory(pid);
    };
    Some(kilobytes(&rollup, ["Pss_Anon:", "Pss_Shmem:"]) * 1024)
}

fn kilobytes(text: &str, keys: [&str; 2]) -> u64 {
    let lines = text.lines().filter_map(|line| {
        let rest = keys.iter().find_map(|key| line.strip_prefix(key))?;
        rest.trim().trim_end_matches(" kB").parse::<u64>().ok()
    });
    lines.sum()
}

/// Returns the memory of a process that is not backed by files, counting shared memory fully.
fn resident_memory(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(kilobytes(&status, ["RssAnon:", "RssShmem:"]) * 1024)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn all_descendants_are_counted() {
        let mut shell = Command::new("sh").args(["-c", "sleep 30 & sleep 30"]).spawn().unwrap();
        let seen = (0..200).any(|_| {
            thread::sleep(std::time::Duration::from_millis(10));
            process_tree(shell.id()).0.len() == 3
        });
        let (all, threads) = process_tree(shell.id());
        for pid in all.iter().rev() {
            let _ = Command::new("kill").arg(pid.to_string()).status();
        }
        shell.wait().unwrap();
        assert!(seen, "a shell and two that sleep: {all:?}");
        assert_eq!(threads, 3);
        let own = std::process::id();
        assert!(proportional_memory(own).unwrap() <= resident_memory(own).unwrap() + (4 << 20));
        assert!(resident_memory(std::process::id()).unwrap() > 100_000);
        assert_eq!(resident_memory(u32::MAX), None);
    }
}
