//! The skills that were found at the last search, and when to search again.

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
    pub(super) edition: u64,
    stamps: BTreeMap<PathBuf, [FileStamp; 2]>,
    /// Time of the next search.
    due: Instant,
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
            Some(last) if start < last.due => return Ok(last),
            last => last,
        };
        let places = match (search(), last.is_some()) {
            (Ok(places), _) => Some(places),
            (Err(error), false) => return Err(error),
            (Err(error), true) => {
                tracing::warn!(%error, "the skills are taken as they were");
                None
            }
        };
        let due = || start + MIN_SEARCH_INTERVAL.max(start.elapsed() * SEARCH_TIME_FACTOR);
        let Some(places) = places else {
            return last.map(|last| Self { due: due(), ..last }).ok_or_else(not_searched);
        };
        let stamps = stamps(&places);
        match last {
            Some(last) if last.stamps == stamps => Ok(Self { due: due(), ..last }),
            last => {
                let edition = last.map_or(0, |last| last.edition) + 1;
                let folders = Arc::new(open_folders(places)?);
                Ok(Self { folders, edition, stamps, due: due() })
            }
        }
    }
}

fn not_searched() -> LibraryError {
    LibraryError::Failed { reason: "nothing was found yet".to_owned() }
}

/// Modification times and sizes, to detect changed skills.
fn stamps(places: &[(String, PathBuf)]) -> BTreeMap<PathBuf, [FileStamp; 2]> {
    let stamp = |path: &Path| {
        let last = fs::metadata(path).ok()?;
        Some((last.modified().ok()?, last.len()))
    };
    let of = |folder: &PathBuf| {
        let file = stamp(&folder.join("SKILL.md")).or_else(|| stamp(&folder.join("skill.md")));
        (folder.clone(), [stamp(folder), file])
    };
    places.iter().map(|(_, folder)| of(folder)).collect()
}
