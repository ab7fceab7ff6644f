//! What was found when somebody looked last, and whether it is worth to look again.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use savoir_agent::library::{Folders, LibraryError};

/// How long what was found holds at least.
const HOLDS: Duration = Duration::from_secs(1);
/// How much longer it holds than looking took: whoever has many skills does not look all the time.
const TIMES_LONGER: u32 = 50;

/// When a file was written, and its size.
type Trace = Option<(SystemTime, u64)>;

/// The skills as they were found.
#[derive(Debug)]
pub(super) struct Sight {
    pub(super) folders: Arc<Folders>,
    /// How often they were others than before.
    pub(super) edition: u64,
    traces: BTreeMap<PathBuf, [Trace; 2]>,
    /// When it is worth to look again.
    due: Instant,
}

impl Sight {
    /// What is known, or what there is now if that may be something else.
    pub(super) fn renewed(
        known: Option<Self>,
        look: impl FnOnce() -> Result<Vec<(String, PathBuf)>, LibraryError>,
        shelve: impl FnOnce(Vec<(String, PathBuf)>) -> Result<Folders, LibraryError>,
    ) -> Result<Self, LibraryError> {
        let begun = Instant::now();
        let known = match known {
            Some(known) if begun < known.due => return Ok(known),
            known => known,
        };
        let places = match (look(), known.is_some()) {
            (Ok(places), _) => Some(places),
            (Err(error), false) => return Err(error),
            (Err(error), true) => {
                tracing::warn!(%error, "the skills are taken as they were");
                None
            }
        };
        let due = || begun + HOLDS.max(begun.elapsed() * TIMES_LONGER);
        let Some(places) = places else {
            return known.map(|known| Self { due: due(), ..known }).ok_or_else(nothing);
        };
        let traces = traces(&places);
        match known {
            Some(known) if known.traces == traces => Ok(Self { due: due(), ..known }),
            known => {
                let edition = known.map_or(0, |known| known.edition) + 1;
                let folders = Arc::new(shelve(places)?);
                Ok(Self { folders, edition, traces, due: due() })
            }
        }
    }
}

fn nothing() -> LibraryError {
    LibraryError::Failed { reason: "nothing was found yet".to_owned() }
}

/// What tells whether skills are others: where they are, and when their folders and files changed.
fn traces(places: &[(String, PathBuf)]) -> BTreeMap<PathBuf, [Trace; 2]> {
    let trace = |path: &Path| {
        let known = fs::metadata(path).ok()?;
        Some((known.modified().ok()?, known.len()))
    };
    let of = |folder: &PathBuf| {
        let file = trace(&folder.join("SKILL.md")).or_else(|| trace(&folder.join("skill.md")));
        (folder.clone(), [trace(folder), file])
    };
    places.iter().map(|(_, folder)| of(folder)).collect()
}
