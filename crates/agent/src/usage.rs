//! Records when each skill was last used, to list recently used skills first.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use savoir_engine::{
    Home, StoreError,
    store::{Existing, lock_file, read_json, write_json},
};
use serde::{Deserialize, Serialize};

/// The format of the file.
const FORMAT_VERSION: u64 = 1;
/// Maximum number of skills in the file; the least recently used ones are removed.
const MAX_SKILLS: usize = 10_000;

/// The file with the usage of all skills.
#[derive(Clone, Debug)]
pub struct SkillUsageFile {
    path: PathBuf,
}

/// The usage of one skill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillUsage {
    /// The time of the last use, in seconds since 1970.
    #[serde(rename = "last")]
    pub last_used: i64,
    /// The number of uses.
    pub times: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct UsageData {
    format: u64,
    skills: BTreeMap<String, SkillUsage>,
}

impl SkillUsageFile {
    /// Opens the usage file of a home.
    pub fn open(home: &Home) -> Result<Self, StoreError> {
        Ok(Self { path: home.data_folder("skills")?.join("usage.json") })
    }

    /// Returns the usage of all skills.
    pub fn all(&self) -> Result<BTreeMap<String, SkillUsage>, StoreError> {
        let file: Option<UsageData> = read_json(&self.path)?;
        let file = file.unwrap_or_default();
        if file.format > FORMAT_VERSION {
            let (path, found) = (self.path.clone(), file.format);
            return Err(StoreError::Newer { path, found, known: FORMAT_VERSION });
        }
        Ok(file.skills)
    }

    /// Records that a skill is used now.
    pub fn record(&self, skill: &str) -> Result<(), StoreError> {
        let _lock = lock_file(&self.path)?;
        let mut skills = self.all()?;
        let used = skills.entry(skill.to_owned()).or_default();
        used.last_used = now();
        used.times = used.times.saturating_add(1);
        remove_least_recent(&mut skills);
        write_json(&self.path, &UsageData { format: FORMAT_VERSION, skills }, Existing::Replace)
    }
}

/// Removes the least recently used skill if there are too many.
fn remove_least_recent(skills: &mut BTreeMap<String, SkillUsage>) {
    if skills.len() <= MAX_SKILLS {
        return;
    }
    let oldest = skills.iter().min_by_key(|(_, used)| used.last_used).map(|(name, _)| name.clone());
    skills.retain(|name, _| Some(name) != oldest.as_ref());
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_skill_is_removed_beyond_the_maximum() {
        let dir = tempfile::tempdir().unwrap();
        let usage = SkillUsageFile::open(&Home::at(dir.path())).unwrap();
        let uses = (0..MAX_SKILLS).map(|number| {
            let last_used = if number == 7 { 1 } else { 2 };
            (format!("skill-{number}"), SkillUsage { last_used, times: 1 })
        });
        let data = UsageData { format: FORMAT_VERSION, skills: uses.collect() };
        write_json(&usage.path, &data, Existing::Replace).unwrap();
        usage.record("new").unwrap();
        let skills = usage.all().unwrap();
        assert_eq!(skills.len(), MAX_SKILLS);
        assert!(skills.contains_key("new") && !skills.contains_key("skill-7"));
    }

    #[test]
    fn concurrent_uses_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let usage = SkillUsageFile::open(&Home::at(dir.path())).unwrap();
        assert!(usage.all().unwrap().is_empty());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5).for_each(|_| usage.record("pdf").unwrap()));
            }
        });
        usage.record("mail").unwrap();
        let all = usage.all().unwrap();
        assert_eq!((all["pdf"].times, all["mail"].times), (20, 1));
        assert!(
            all["pdf"].last_used > 1_700_000_000 && all["mail"].last_used >= all["pdf"].last_used
        );
    }
}
