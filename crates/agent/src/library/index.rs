//! Keeps the lines of skills between runs, so that unchanged skills are not read again.
//!
//! A skill is unchanged if its folder and its SKILL.md have the same times, sizes and numbers. Only
//! skills whose line depends on SKILL.md alone are kept.

use std::{
    collections::HashMap,
    env, fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use savoir_engine::{Home, StoreError};
use savoir_skill::Skill;
use serde::{Deserialize, Serialize};

use crate::disclosure::Candidate;

const FORMAT_VERSION: u32 = 1;
/// A file that changed more recently could change again without getting another time.
const SETTLED_AFTER: Duration = Duration::from_secs(2);
/// Maximum number of skills in the file; with more, those that this run did not meet are removed.
const MAX_SKILLS: usize = 100_000;
/// Files that change how a skill is read, although their own changes leave no trace in its folder.
const OTHER_SOURCES: [&str; 2] = ["tools.py", "agents/openai.yaml"];

/// The lines of the skills that were read before.
#[derive(Debug)]
pub struct SkillIndex {
    file: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    skills: HashMap<String, IndexedSkill>,
    is_changed: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct IndexedSkill {
    stamp: Stamp,
    name: String,
    line: String,
    #[serde(skip)]
    is_met: bool,
}

/// What shows that a skill was not changed: times in nanoseconds, the size, and the number of the
/// file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    folder_modified: i64,
    modified: i64,
    changed: i64,
    size: u64,
    file: u64,
}

#[derive(Serialize, Deserialize)]
struct IndexFile {
    format: String,
    skills: HashMap<String, IndexedSkill>,
}

impl SkillIndex {
    /// Opens the index of a home. One that cannot be read, or that another program wrote, is empty.
    pub fn of(home: &Home) -> Result<Self, StoreError> {
        Ok(Self::at(home.cache_folder("skills")?.join("lines.json")))
    }

    fn at(file: PathBuf) -> Self {
        let stored = fs::read(&file).ok();
        let stored = stored.and_then(|bytes| serde_json::from_slice::<IndexFile>(&bytes).ok());
        let skills = stored.filter(|stored| stored.format == format_name());
        let skills = skills.map(|stored| stored.skills).unwrap_or_default();
        Self { file, state: Mutex::new(State { skills, is_changed: false }) }
    }

    /// The line of a skill in a folder, from the index or else from the skill that `read` returns;
    /// `None` if that returns none.
    pub fn candidate<E>(
        &self,
        name: &str,
        folder: &Path,
        read: impl FnOnce() -> Result<Option<Skill>, E>,
    ) -> Result<Option<Candidate>, E> {
        // Taken before the files are read: a later change has another stamp.
        let known = Stamp::of(folder).zip(folder.to_str());
        let Some((stamp, path)) = known else {
            return Ok(read()?.map(|skill| Candidate::new(&skill)));
        };
        if let Some(line) = self.find(path, name, stamp) {
            let name = name.to_owned();
            return Ok(Some(Candidate { name, line, ..Candidate::default() }));
        }
        let Some(skill) = read()? else { return Ok(None) };
        let candidate = Candidate::new(&skill);
        if depends_on_skill_file_alone(&skill) && stamp.is_settled() {
            self.add(path, stamp, &candidate);
        }
        Ok(Some(candidate))
    }

    fn find(&self, path: &str, name: &str, stamp: Stamp) -> Option<String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let known = state.skills.get_mut(path)?;
        if known.stamp != stamp || known.name != name {
            return None;
        }
        known.is_met = true;
        Some(known.line.clone())
    }

    fn add(&self, path: &str, stamp: Stamp, candidate: &Candidate) {
        let Candidate { name, line, .. } = candidate.clone();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.skills.insert(path.to_owned(), IndexedSkill { stamp, name, line, is_met: true });
        state.is_changed = true;
    }

    /// Stores what was read. The next run reads the skills again if this fails.
    pub fn save(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::take(&mut state.is_changed) {
            return;
        }
        if state.skills.len() > MAX_SKILLS {
            state.skills.retain(|_, skill| skill.is_met);
        }
        let skills = state.skills.clone();
        let write = || -> std::io::Result<()> {
            let folder = self.file.parent().unwrap_or(Path::new("."));
            let mut file = tempfile::Builder::new().prefix(".lines-").tempfile_in(folder)?;
            let stored = IndexFile { format: format_name(), skills };
            std::io::Write::write_all(&mut file, &serde_json::to_vec(&stored)?)?;
            file.persist(&self.file)?;
            Ok(())
        };
        if let Err(error) = write() {
            tracing::debug!(%error, "the index of skills was not stored");
        }
    }
}

/// The format of the file. Another build of this program may read skills in another way.
fn format_name() -> String {
    let program = env::current_exe().and_then(fs::metadata);
    let built = program.and_then(|program| program.modified()).map_or(0, nanoseconds);
    format!("{FORMAT_VERSION} {} {built}", env!("CARGO_PKG_VERSION"))
}

/// Whether nothing but SKILL.md decides on the line of a skill.
fn depends_on_skill_file_alone(skill: &Skill) -> bool {
    let is_other = |path: &String| OTHER_SOURCES.contains(&path.as_str());
    skill.tools.is_empty() && !skill.resources.iter().any(is_other)
}

impl Stamp {
    fn of(folder: &Path) -> Option<Self> {
        let file = fs::metadata(folder.join("SKILL.md"));
        let file = file.or_else(|_| fs::metadata(folder.join("skill.md"))).ok()?;
        let folder = fs::metadata(folder).ok()?;
        let stamp = Self {
            folder_modified: nanoseconds(folder.modified().ok()?),
            modified: nanoseconds(file.modified().ok()?),
            size: file.len(),
            ..Self::default()
        };
        Some(stamp.with_identity(&file))
    }

    #[cfg(unix)]
    fn with_identity(self, file: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        let changed = file.ctime().saturating_mul(1_000_000_000).saturating_add(file.ctime_nsec());
        Self { changed, file: file.ino(), ..self }
    }

    #[cfg(not(unix))]
    fn with_identity(self, _: &fs::Metadata) -> Self {
        self
    }

    fn is_settled(self) -> bool {
        let latest = self.folder_modified.max(self.modified).max(self.changed);
        let limit = SystemTime::now().checked_sub(SETTLED_AFTER).map_or(0, nanoseconds);
        latest < limit
    }
}

fn nanoseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use savoir_skill::{Folder, Source, read};

    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            fs::create_dir(place.folder()).unwrap();
            place.write("SKILL.md", "One.");
            place
        }

        fn folder(&self) -> PathBuf {
            self.0.path().join("zebra")
        }

        /// Writes a file long enough ago to be kept.
        fn write(&self, name: &str, description: &str) {
            let path = self.folder().join(name);
            let text = format!("---\nname: zebra\ndescription: {description}\n---\nDo it.\n");
            fs::write(path, text).unwrap();
        }

        /// The line of the skill, and whether the skill was read for it.
        fn line(&self, index: &SkillIndex) -> (String, bool) {
            let mut was_read = false;
            let found = index.candidate("zebra", &self.folder(), || {
                was_read = true;
                let folder = Folder::open(&self.folder()).unwrap();
                let bytes = fs::read(self.folder().join("SKILL.md")).unwrap();
                let source = Source::from_bytes(bytes).unwrap();
                Ok::<_, ()>(Some(read(source, Some(&folder)).skill))
            });
            (found.unwrap().unwrap().line, was_read)
        }

        fn index(&self) -> SkillIndex {
            SkillIndex::at(self.0.path().join("lines.json"))
        }
    }

    fn wait_until_settled() {
        std::thread::sleep(SETTLED_AFTER + Duration::from_millis(200));
    }

    #[test]
    fn unchanged_skills_are_read_once() {
        let place = Place::new();
        let index = place.index();
        assert_eq!(place.line(&index), ("- zebra: One.".to_owned(), true));
        assert_eq!(place.line(&index), ("- zebra: One.".to_owned(), true), "it is too new to keep");
        wait_until_settled();
        assert!(place.line(&index).1);
        assert_eq!(place.line(&index), ("- zebra: One.".to_owned(), false));
        index.save();
        let index = place.index();
        assert_eq!(place.line(&index), ("- zebra: One.".to_owned(), false));
        place.write("SKILL.md", "Two.");
        assert_eq!(place.line(&index), ("- zebra: Two.".to_owned(), true));
    }

    #[test]
    fn skills_with_a_new_file_are_read_again() {
        let place = Place::new();
        wait_until_settled();
        let index = place.index();
        assert!(place.line(&index).1);
        fs::write(place.folder().join("tools.py"), "").unwrap();
        assert!(place.line(&index).1);
        wait_until_settled();
        assert!(place.line(&index).1);
        assert!(place.line(&index).1, "tools.py can change without a trace in its folder");
    }

    #[test]
    fn damaged_indexes_are_empty() {
        let place = Place::new();
        wait_until_settled();
        fs::write(place.0.path().join("lines.json"), "{").unwrap();
        let index = place.index();
        assert!(place.line(&index).1);
        index.save();
        assert!(!place.line(&place.index()).1);
    }
}
