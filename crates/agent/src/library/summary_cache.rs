//! Caches the summaries of skills between runs, so that unchanged skills are not read again. The
//! summary of a skill is its line in the list that a model gets.
//!
//! A skill is unchanged if its folder and its SKILL.md have the same times, sizes and inode
//! numbers. Only skills whose summary depends on SKILL.md alone are cached.
//!
//! The first line of the file is its format. The others have the fields of one skill each,
//! separated by tabs, which are parsed faster than JSON.

use std::{
    collections::HashMap,
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use savoir_engine::{Home, StoreError};
use savoir_skill::Skill;

use crate::disclosure::Candidate;

const FORMAT_VERSION: u32 = 2;
/// The resolution of file times is limited: a file that changed more recently than this could
/// change again without getting another time.
const SETTLED_AFTER: Duration = Duration::from_secs(2);
/// Maximum number of skills in the file; with more, those that this run did not use are removed.
const MAX_CACHED_SKILLS: usize = 100_000;
/// Files that change the summary of a skill, and whose changes do not change its [`FileState`].
const FILES_NOT_IN_STATE: [&str; 2] = ["tools.py", "agents/openai.yaml"];

/// The summaries of the skills that were read before.
#[derive(Debug)]
pub struct SummaryCache {
    file: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    skills: HashMap<String, CachedSummary>,
    is_changed: bool,
}

#[derive(Debug)]
struct CachedSummary {
    file_state: FileState,
    name: String,
    summary: String,
    /// Whether this run looked it up.
    is_used: bool,
}

/// The state of a skill's files, to detect changes: times in nanoseconds, size, and inode number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FileState {
    folder_modified: i64,
    modified: i64,
    changed: i64,
    size: u64,
    inode: u64,
}

impl SummaryCache {
    /// Opens the cache in a home folder. A cache that is unreadable, or was written by another build,
    /// counts as empty.
    pub fn of(home: &Home) -> Result<Self, StoreError> {
        Ok(Self::at(home.cache_folder("skills")?.join("summaries.tsv")))
    }

    fn at(file: PathBuf) -> Self {
        let skills = fs::read_to_string(&file).ok().and_then(|text| parse(&text));
        let skills = skills.unwrap_or_default();
        Self { file, state: Mutex::new(State { skills, is_changed: false }) }
    }

    /// Returns the summary of the skill in a folder, from the cache or else from the skill that `read`
    /// returns. Returns `None` if `read` returns `None`.
    pub fn get_or_read<E>(
        &self,
        name: &str,
        folder: &Path,
        read: impl FnOnce() -> Result<Option<Skill>, E>,
    ) -> Result<Option<Candidate>, E> {
        // The state is read before the files, so that a change during reading is detected.
        let known = FileState::of(folder).zip(folder.to_str());
        let Some((file_state, path)) = known else {
            return Ok(read()?.map(|skill| Candidate::new(&skill)));
        };
        if let Some(line) = self.get(path, name, file_state) {
            let name = name.to_owned();
            return Ok(Some(Candidate { name, line, ..Candidate::default() }));
        }
        let Some(skill) = read()? else { return Ok(None) };
        let candidate = Candidate::new(&skill);
        if depends_on_skill_file_alone(&skill) && file_state.is_settled() {
            self.insert(path, file_state, &candidate);
        }
        Ok(Some(candidate))
    }

    fn get(&self, path: &str, name: &str, file_state: FileState) -> Option<String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let known = state.skills.get_mut(path)?;
        if known.file_state != file_state || known.name != name {
            return None;
        }
        known.is_used = true;
        Some(known.summary.clone())
    }

    fn insert(&self, path: &str, file_state: FileState, candidate: &Candidate) {
        let Candidate { name, line: summary, .. } = candidate.clone();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state
            .skills
            .insert(path.to_owned(), CachedSummary { file_state, name, summary, is_used: true });
        state.is_changed = true;
    }

    /// Stores the cache. If this fails, the next run reads the skills again.
    pub fn save(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::take(&mut state.is_changed) {
            return;
        }
        if state.skills.len() > MAX_CACHED_SKILLS {
            state.skills.retain(|_, skill| skill.is_used);
        }
        let text = serialize(&state.skills);
        drop(state);
        let write = || -> std::io::Result<()> {
            let folder = self.file.parent().unwrap_or(Path::new("."));
            let mut file = tempfile::Builder::new().prefix(".summaries-").tempfile_in(folder)?;
            std::io::Write::write_all(&mut file, text.as_bytes())?;
            file.persist(&self.file)?;
            Ok(())
        };
        if let Err(error) = write() {
            tracing::debug!(%error, "the summaries of skills could not be cached");
        }
    }
}

/// The format of the file. It includes this program's build, because another build may read skills
/// differently.
fn format_line() -> String {
    let program = env::current_exe().and_then(fs::metadata);
    let built = program.and_then(|program| program.modified()).map_or(0, nanoseconds);
    format!("{FORMAT_VERSION} {} {built}", env!("CARGO_PKG_VERSION"))
}

/// The skills of a file; nothing if another build wrote it or it is damaged.
fn parse(text: &str) -> Option<HashMap<String, CachedSummary>> {
    let mut lines = text.lines();
    if lines.next()? != format_line() {
        return None;
    }
    let skill = |line: &str| {
        let mut fields = line.split('\t');
        let path = fields.next()?.to_owned();
        let (name, summary) = (fields.next()?.to_owned(), fields.next()?.to_owned());
        let file_state = FileState {
            folder_modified: fields.next()?.parse().ok()?,
            modified: fields.next()?.parse().ok()?,
            changed: fields.next()?.parse().ok()?,
            size: fields.next()?.parse().ok()?,
            inode: fields.next()?.parse().ok()?,
        };
        Some((path, CachedSummary { file_state, name, summary, is_used: false }))
    };
    lines.map(skill).collect()
}

/// Skills whose texts break the format are left out, and read again by the next run.
fn serialize(skills: &HashMap<String, CachedSummary>) -> String {
    let mut lines = format_line() + "\n";
    for (path, CachedSummary { file_state, name, summary, .. }) in skills {
        if [path, name, summary].iter().any(|text| text.contains(['\t', '\n', '\r'])) {
            continue;
        }
        let FileState { folder_modified, modified, changed, size, inode } = file_state;
        // Writing into a string does not fail.
        let _ = writeln!(
            lines,
            "{path}\t{name}\t{summary}\t{folder_modified}\t{modified}\t{changed}\t{size}\t{inode}"
        );
    }
    lines
}

/// Whether the summary of a skill depends on SKILL.md alone.
fn depends_on_skill_file_alone(skill: &Skill) -> bool {
    let is_other = |path: &String| FILES_NOT_IN_STATE.contains(&path.as_str());
    skill.tools.is_empty() && !skill.resources.iter().any(is_other)
}

impl FileState {
    fn of(folder: &Path) -> Option<Self> {
        let file = fs::metadata(folder.join("SKILL.md"));
        let file = file.or_else(|_| fs::metadata(folder.join("skill.md"))).ok()?;
        let folder = fs::metadata(folder).ok()?;
        let state = Self {
            folder_modified: nanoseconds(folder.modified().ok()?),
            modified: nanoseconds(file.modified().ok()?),
            size: file.len(),
            ..Self::default()
        };
        Some(state.with_identity(&file))
    }

    #[cfg(unix)]
    fn with_identity(self, file: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        let changed = file.ctime().saturating_mul(1_000_000_000).saturating_add(file.ctime_nsec());
        Self { changed, inode: file.ino(), ..self }
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

        /// Writes a file with a time that is old enough for the cache.
        fn write(&self, name: &str, description: &str) {
            let path = self.folder().join(name);
            let text = format!("---\nname: zebra\ndescription: {description}\n---\nDo it.\n");
            fs::write(path, text).unwrap();
        }

        /// The summary of the skill, and whether the skill was read for it.
        fn summary(&self, cache: &SummaryCache) -> (String, bool) {
            let mut was_read = false;
            let found = cache.get_or_read("zebra", &self.folder(), || {
                was_read = true;
                let folder = Folder::open(&self.folder()).unwrap();
                let bytes = fs::read(self.folder().join("SKILL.md")).unwrap();
                let source = Source::from_bytes(bytes).unwrap();
                Ok::<_, ()>(Some(read(source, Some(&folder)).skill))
            });
            (found.unwrap().unwrap().line, was_read)
        }

        fn cache(&self) -> SummaryCache {
            SummaryCache::at(self.0.path().join("summaries.tsv"))
        }
    }

    fn wait_until_settled() {
        std::thread::sleep(SETTLED_AFTER + Duration::from_millis(200));
    }

    #[test]
    fn unchanged_skills_are_read_once() {
        let place = Place::new();
        let cache = place.cache();
        assert_eq!(place.summary(&cache), ("- zebra: One.".to_owned(), true));
        assert_eq!(
            place.summary(&cache),
            ("- zebra: One.".to_owned(), true),
            "it is too new to keep"
        );
        wait_until_settled();
        assert!(place.summary(&cache).1);
        assert_eq!(place.summary(&cache), ("- zebra: One.".to_owned(), false));
        cache.save();
        let cache = place.cache();
        assert_eq!(place.summary(&cache), ("- zebra: One.".to_owned(), false));
        place.write("SKILL.md", "Two.");
        assert_eq!(place.summary(&cache), ("- zebra: Two.".to_owned(), true));
    }

    #[test]
    fn skills_with_a_new_file_are_read_again() {
        let place = Place::new();
        wait_until_settled();
        let cache = place.cache();
        assert!(place.summary(&cache).1);
        fs::write(place.folder().join("tools.py"), "").unwrap();
        assert!(place.summary(&cache).1);
        wait_until_settled();
        assert!(place.summary(&cache).1);
        assert!(place.summary(&cache).1, "tools.py can change without a trace in its folder");
    }

    #[test]
    fn damaged_caches_are_empty() {
        let place = Place::new();
        wait_until_settled();
        let file = place.0.path().join("summaries.tsv");
        let damaged = [
            "{".to_owned(),
            format!("{}\nno tabs\n", format_line()),
            format!("{}\n{}\tzebra\t- zebra: One.\tx\t1\t1\t1\t1\n", format_line(), file.display()),
        ];
        for damaged in damaged {
            fs::write(&file, damaged).unwrap();
            let cache = place.cache();
            assert!(place.summary(&cache).1);
            cache.save();
            assert!(!place.summary(&place.cache()).1);
        }
    }

    #[test]
    fn texts_that_break_the_format_are_left_out() {
        let skill = |name: &str| CachedSummary {
            file_state: FileState { folder_modified: -1, size: 7, ..FileState::default() },
            name: name.to_owned(),
            summary: format!("- {name}: Über Wörter."),
            is_used: true,
        };
        let skills = ["a", "b\tc", "d\ne"].map(|name| (format!("/{name}"), skill(name))).into();
        let read = parse(&serialize(&skills)).unwrap();
        assert_eq!(read.keys().collect::<Vec<_>>(), ["/a"]);
        assert_eq!(read["/a"].file_state, skill("a").file_state);
        assert_eq!((&*read["/a"].name, &*read["/a"].summary), ("a", "- a: Über Wörter."));
    }
}
