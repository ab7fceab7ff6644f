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

use savoir_sandbox::Killer;

/// Between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Files that are counted in a working folder; more are too many.
const MAX_FILES: usize = 4096;

/// Why a program was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    /// It took too long.
    Time,
    /// It wrote too much.
    Disk,
    /// Its answer was too long.
    Answer,
    /// It wanted more memory than it may have.
    Memory,
}

/// Ends a program that takes too long or fills the disk.
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

    /// Moves the end of the time.
    pub(super) fn until(&self, until: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// Why it ended the program, if it did.
    pub(super) fn fired(&self) -> Option<StopReason> {
        *self.fired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches until the other side of the channel is gone.
    pub(super) fn watch(&self, over: &mpsc::Receiver<()>, killer: &Killer) {
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

/// Bytes below a folder; no number is larger than that of too many files.
fn size(folder: &Path) -> u64 {
    let mut open = vec![folder.to_owned()];
    let (mut bytes, mut count) = (0_u64, 0);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            count += 1;
            if count > MAX_FILES {
                return u64::MAX;
            }
            // Of the entry itself: links lead nowhere.
            match entry.metadata() {
                Ok(found) if found.is_dir() => open.push(entry.path()),
                Ok(found) => bytes = bytes.saturating_add(found.len()),
                Err(_) => {}
            }
        }
    }
    bytes
}
