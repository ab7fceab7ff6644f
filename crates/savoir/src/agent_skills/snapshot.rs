//! Caches the skills that the last search found, and decides when to search again.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use savoir_agent::library::{FolderLibrary, LibraryError, SkillFileState};

use crate::installed::in_parallel;

/// Minimum time between two searches.
const MIN_SEARCH_INTERVAL: Duration = Duration::from_secs(1);
/// The next search waits this many times longer than the last one took, which limits the load with
/// many skills.
const SEARCH_TIME_FACTOR: u32 = 50;

/// The skills at the last search.
#[derive(Debug)]
pub(super) struct SkillsSnapshot {
    pub(super) folders: Arc<FolderLibrary>,
    /// Number of searches that found changes.
    pub(super) revision: u64,
    /// The states of the folders with skills, in the order of the search.
    states: Vec<StateOf>,
    /// Time of the next search.
    next_search: Instant,
}

impl SkillsSnapshot {
    /// Returns the last snapshot, or searches again if it is due.
    pub(super) fn refresh(
        last: Option<Self>,
        search: impl FnOnce() -> Result<Vec<(String, PathBuf)>, LibraryError>,
        open_folders: impl FnOnce(Vec<(String, PathBuf)>) -> Result<FolderLibrary, LibraryError>,
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
        let states = examine(&skills);
        let is_same = |last: &Self| {
            // A file counts as settled after some time, which is not a change.
            let same = |(a, b): (&StateOf, &StateOf)| a.0 == b.0 && is_unchanged(a.1, b.1);
            last.states.len() == states.len() && last.states.iter().zip(&states).all(same)
        };
        match last {
            Some(last) if is_same(&last) => Ok(Self { next_search: next_search(), ..last }),
            last => {
                let revision = last.map_or(0, |last| last.revision) + 1;
                let known =
                    states.iter().filter_map(|(path, state)| Some((path.clone(), (*state)?)));
                let known: HashMap<PathBuf, SkillFileState> = known.collect();
                let folders = Arc::new(open_folders(skills)?.with_states(known));
                Ok(Self { folders, revision, states, next_search: next_search() })
            }
        }
    }
}

type StateOf = (PathBuf, Option<SkillFileState>);

fn is_unchanged(before: Option<SkillFileState>, now: Option<SkillFileState>) -> bool {
    match (before, now) {
        (Some(before), Some(now)) => before.is_same_as(now),
        (before, now) => before.is_none() && now.is_none(),
    }
}

fn no_snapshot_error() -> LibraryError {
    LibraryError::Failed { reason: "nothing was found yet".to_owned() }
}

/// Examines the folders on all processors, to detect changed skills.
fn examine(skills: &[(String, PathBuf)]) -> Vec<StateOf> {
    let folders: Vec<&Path> = skills.iter().map(|(_, folder)| folder.as_path()).collect();
    let states = in_parallel(&folders, SkillFileState::of);
    folders.into_iter().map(Path::to_owned).zip(states).collect()
}
