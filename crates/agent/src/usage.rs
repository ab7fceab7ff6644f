//! Records when each skill was last used, to list recently used skills first.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use savoir_engine::{
    Home, StoreError,
    store::{Existing, read_json, take_turn, write_json},
};
use serde::{Deserialize, Serialize};

/// The format of the file.
const FORMAT: u64 = 1;
/// Skills that are remembered; the ones that were used longest ago are forgotten.
const MOST: usize = 10_000;

/// A file that remembers what was used.
#[derive(Clone, Debug)]
pub struct Usage {
    path: PathBuf,
}

/// What is remembered of a skill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// When it was used last, in seconds since 1970.
    pub last: i64,
    /// How often it was used.
    pub times: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    format: u64,
    skills: BTreeMap<String, Used>,
}

impl Usage {
    /// What the user of this machine used.
    pub fn of(home: &Home) -> Result<Self, StoreError> {
        Ok(Self { path: home.data_folder("skills")?.join("usage.json") })
    }

    /// All that is remembered.
    pub fn all(&self) -> Result<BTreeMap<String, Used>, StoreError> {
        let kept: Option<Kept> = read_json(&self.path)?;
        let kept = kept.unwrap_or_default();
        if kept.format > FORMAT {
            let (path, found) = (self.path.clone(), kept.format);
            return Err(StoreError::Newer { path, found, known: FORMAT });
        }
        Ok(kept.skills)
    }

    /// Notes that a skill is used now.
    pub fn note(&self, skill: &str) -> Result<(), StoreError> {
        let _turn = take_turn(&self.path)?;
        let mut skills = self.all()?;
        let used = skills.entry(skill.to_owned()).or_default();
        used.last = now();
        used.times = used.times.saturating_add(1);
        if skills.len() > MOST {
            let oldest =
                skills.iter().min_by_key(|(_, used)| used.last).map(|(name, _)| name.clone());
            skills.retain(|name, _| Some(name) != oldest.as_ref());
        }
        write_json(&self.path, &Kept { format: FORMAT, skills }, Existing::Replace)
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_counted_by_all() {
        let dir = tempfile::tempdir().unwrap();
        let usage = Usage::of(&Home::at(dir.path())).unwrap();
        assert!(usage.all().unwrap().is_empty());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5).for_each(|_| usage.note("pdf").unwrap()));
            }
        });
        usage.note("mail").unwrap();
        let all = usage.all().unwrap();
        assert_eq!((all["pdf"].times, all["mail"].times), (20, 1));
        assert!(all["pdf"].last > 1_700_000_000 && all["mail"].last >= all["pdf"].last);
    }
}
