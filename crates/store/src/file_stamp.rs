//! Detects whether a file changed, from its metadata.

use std::{
    fs::Metadata,
    os::unix::fs::MetadataExt as _,
    time::{Duration, SystemTime},
};

/// Two changes within this time may leave the same modification time.
const CLOCK_RESOLUTION: Duration = Duration::from_millis(100);

/// Metadata of a file that differs after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether the last change is old enough that the next one will change the stamp.
    pub(crate) fn is_settled(&self) -> bool {
        let (seconds, nanos) = self.changed.max(self.modified);
        let changed = u64::try_from(seconds).unwrap_or(0);
        let changed =
            SystemTime::UNIX_EPOCH + Duration::new(changed, u32::try_from(nanos).unwrap_or(0));
        changed.elapsed().is_ok_and(|since| since > CLOCK_RESOLUTION)
    }
}
