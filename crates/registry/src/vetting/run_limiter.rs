//! [`RunLimiter`]: kills a program that takes too long or fills the disk.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use savoir_sandbox::KillHandle;

/// Pause between two checks.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum files of a working folder that are counted; more files exceed the limit.
const MAX_FILES: usize = 4096;

/// Why a program was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    Time,
    /// The program wrote too much to the disk.
    Disk,
    /// The answer of the program was too long.
    Answer,
    /// The program exceeded the memory limit.
    Memory,
}

/// Kills a program that takes too long or fills the disk.
#[derive(Debug)]
pub(super) struct RunLimiter {
    until: Mutex<Instant>,
    fired: Mutex<Option<StopReason>>,
    work: PathBuf,
    disk: u64,
}

impl RunLimiter {
    pub(super) fn new(until: Instant, work: &Path, disk: u64) -> Self {
        Self { until: Mutex::new(until), fired: Mutex::default(), work: work.to_owned(), disk }
    }

    /// Sets a new deadline.
    pub(super) fn set_deadline(&self, until: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// The reason why the program was killed, if it was.
    pub(super) fn stop_reason(&self) -> Option<StopReason> {
        *self.fired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the limits until the sender of the channel is dropped.
    pub(super) fn watch(&self, over: &mpsc::Receiver<()>, killer: &KillHandle) {
        while over.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
            let why = if Instant::now() >= until {
                StopReason::Time
            } else if size(&self.work) > self.disk {
                StopReason::Disk
            } else {
                continue;
            };
            *self.fired.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            killer.kill();
            return;
        }
    }
}

/// Bytes of all files below a folder; `u64::MAX` if there are too many files.
fn size(folder: &Path) -> u64 {
    let mut open = vec![folder.to_owned()];
    let (mut bytes, mut count) = (0_u64, 0);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            count += 1;
            if count > MAX_FILES {
                return u64::MAX;
            }
            // Metadata of the entry itself: symlinks are not followed.
            match entry.metadata() {
                Ok(found) if found.is_dir() => open.push(entry.path()),
                Ok(found) => bytes = bytes.saturating_add(found.len()),
                Err(_) => {}
            }
        }
    }
    bytes
}
