//! Caches the skills that the last search found, and decides when to search again.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use savoir_agent::library::{Folders, LibraryError};

/// Minimum time between two searches.
const MIN_SEARCH_INTERVAL: Duration = Duration::from_secs(1);
/// The next search waits this many times longer than the last one took, which limits the load with
/// many skills.
const SEARCH_TIME_FACTOR: u32 = 50;

/// When a file was written, and its size.
type FileStamp = Option<(SystemTime, u64)>;

/// The skills at the last search.
#[derive(Debug)]
pub(super) struct SkillsSnapshot {
    pub(super) folders: Arc<Folders>,
    /// Number of searches that found changes.
    pub(super) revision: u64,
    stamps: BTreeMap<PathBuf, [FileStamp; 2]>,
    /// Time of the next search.
    next_search: Instant,
}

impl SkillsSnapshot {
    /// Returns the last snapshot, or searches again if it is due.
    pub(super) fn refresh(
        last: Option<Self>,
        search: impl FnOnce() -> Result<Vec<(String, PathBuf)>, LibraryError>,
        open_folders: impl FnOnce(Vec<(String, PathBuf)>) -> Result<Folders, LibraryError>,
    ) -> Result<Self, LibraryError> {
        let start = Instant::now();
        let last = match last {
            Some(last) if start < last.next_search => return Ok(last),
            last => last,
        };
        let skills = match (search(), last.is_some()) {
            (Ok(skills), _) => Some(skills),
            (Err(error), false) => return Err(error),
            (Err(error), true) => {
                tracing::warn!(%error, "the search failed; the skills of the last search are used");
                None
            }
        };
        let next_search = || start + MIN_SEARCH_INTERVAL.max(start.elapsed() * SEARCH_TIME_FACTOR);
        let Some(skills) = skills else {
            return last
                .map(|last| Self { next_search: next_search(), ..last })
                .ok_or_else(no_snapshot_error);
        };
        let stamps = stamps(&skills);
        match last {
            Some(last) if last.stamps == stamps => Ok(Self { next_search: next_search(), ..last }),
            last => {
                let revision = last.map_or(0, |last| last.revision) + 1;
                let folders = Arc::new(open_folders(skills)?);
                Ok(Self { folders, revision, stamps, next_search: next_search() })
            }
        }
    }
}

fn no_snapshot_error() -> LibraryError {
    LibraryError::Failed { reason: "nothing was found yet".to_owned() }
}

/// Modification times and sizes, to detect changed skills.
fn stamps(skills: &[(String, PathBuf)]) -> BTreeMap<PathBuf, [FileStamp; 2]> {
    let stamp = |path: &Path| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    let folder_stamps = |folder: &PathBuf| {
        let file = stamp(&folder.join("SKILL.md")).or_else(|| stamp(&folder.join("skill.md")));
        (folder.clone(), [stamp(folder), file])
    };
    skills.iter().map(|(_, folder)| folder_stamps(folder)).collect()
}
