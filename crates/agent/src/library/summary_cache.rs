//! Caches the summaries of skills between runs, so that unchanged skills are not read again. The
//! summary of a skill is its line in the list that a model gets.
//!
//! A skill is unchanged if its folder and its SKILL.md have the same times, sizes and inode
//! numbers. Only skills whose summary depends on SKILL.md alone are cached.
//!
//! With ten thousand skills, a run spends most of its time here. So the file is not parsed: after a
//! line with its format, it has records of a fixed size, sorted by path, and then their texts. A
//! skill is found by binary search.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use savoir_engine::{Home, StoreError};
use savoir_skill::Skill;

use crate::preamble::Candidate;

const FORMAT_VERSION: u32 = 4;
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
    stored: StoredSummaries,
    /// The skills that this run read, by path.
    added: Mutex<BTreeMap<String, CachedSummary>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct CachedSummary {
    state: FileState,
    name: String,
    summary: String,
    tokens: usize,
}

/// The state of a skill's files when it was examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkillFileState {
    state: FileState,
    /// Whether the last change is so long ago that the next one has another time.
    is_settled: bool,
}

/// Times in nanoseconds, size, and inode number, to detect changes.
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
        Ok(Self::at(home.cache_folder("skills")?.join("summaries")))
    }

    fn at(file: PathBuf) -> Self {
        let stored = fs::read(&file).ok().and_then(StoredSummaries::open).unwrap_or_default();
        Self { file, stored, added: Mutex::default() }
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
        self.get_or_read_at(name, folder, SkillFileState::of(folder), read)
    }

    /// Like [`Self::get_or_read`], for a folder that was examined before.
    pub fn get_or_read_at<E>(
        &self,
        name: &str,
        folder: &Path,
        found: Option<SkillFileState>,
        read: impl FnOnce() -> Result<Option<Skill>, E>,
    ) -> Result<Option<Candidate>, E> {
        let Some((found, path)) = found.zip(folder.to_str()) else {
            return Ok(read()?.map(|skill| Candidate::new(&skill)));
        };
        if let Some((summary, tokens)) = self.get(path, name, found.state) {
            return Ok(Some(Candidate::cached(name.to_owned(), summary, tokens)));
        }
        let Some(skill) = read()? else { return Ok(None) };
        let candidate = Candidate::new(&skill);
        // Modes are not in the file. All skills of gibb.eri.sh have some.
        let is_complete = candidate.modes.is_empty();
        if is_complete && depends_on_skill_file_alone(&skill) && found.is_settled {
            self.insert(path, found.state, &candidate);
        }
        Ok(Some(candidate))
    }

    fn get(&self, path: &str, name: &str, state: FileState) -> Option<(String, usize)> {
        if let Some(record) = self.stored.find(path)
            && record.state == state
            && record.name == name.as_bytes()
            && let Ok(summary) = std::str::from_utf8(record.summary)
        {
            record.is_used.store(true, Ordering::Relaxed);
            return Some((summary.to_owned(), record.tokens));
        }
        let added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        let known = added.get(path).filter(|known| known.state == state && known.name == name)?;
        Some((known.summary.clone(), known.tokens))
    }

    fn insert(&self, path: &str, state: FileState, candidate: &Candidate) {
        let (name, summary) = (candidate.name.clone(), candidate.line.clone());
        let new = CachedSummary { state, name, summary, tokens: candidate.tokens() };
        self.added.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), new);
    }

    /// Stores the cache. If this fails, the next run reads the skills again.
    pub fn save(&self) {
        let added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        if added.is_empty() {
            return;
        }
        let keeps_all = self.stored.count + added.len() <= MAX_CACHED_SKILLS;
        let stored = (0..self.stored.count).filter_map(|at| self.stored.record(at));
        let stored = stored.filter(|one| keeps_all || one.is_used.load(Ordering::Relaxed));
        let mut all: BTreeMap<&[u8], Record<'_>> = stored.map(|one| (one.path, one)).collect();
        let used = AtomicBool::new(true);
        for (path, CachedSummary { state, name, summary, tokens }) in &*added {
            let (path, name, summary) = (path.as_bytes(), name.as_bytes(), summary.as_bytes());
            let record =
                Record { state: *state, path, name, summary, tokens: *tokens, is_used: &used };
            all.insert(path, record);
        }
        let bytes = serialize(all.values());
        let write = || -> std::io::Result<()> {
            let folder = self.file.parent().unwrap_or(Path::new("."));
            let mut file = tempfile::Builder::new().prefix(".summaries-").tempfile_in(folder)?;
            std::io::Write::write_all(&mut file, &bytes)?;
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
    format!("{FORMAT_VERSION} {} {built}\n", env!("CARGO_PKG_VERSION"))
}

/// The content of the file. It is only examined where it is used: a damaged record counts as absent.
#[derive(Debug, Default)]
struct StoredSummaries {
    bytes: Vec<u8>,
    /// The offset of the first record.
    records: usize,
    count: usize,
    is_used: Vec<AtomicBool>,
}

/// Eight-byte numbers of a record: five of the state, the offset of the texts, the lengths of path,
/// name and summary, and the number of tokens.
const RECORD_NUMBERS: usize = 10;
const RECORD_BYTES: usize = RECORD_NUMBERS * size_of::<u64>();

/// A skill in the file. The texts are compared as bytes.
#[derive(Clone, Copy)]
struct Record<'a> {
    state: FileState,
    path: &'a [u8],
    name: &'a [u8],
    summary: &'a [u8],
    tokens: usize,
    /// Whether this run looked it up.
    is_used: &'a AtomicBool,
}

impl StoredSummaries {
    /// Returns `None` if another build wrote the file or its length is wrong.
    fn open(bytes: Vec<u8>) -> Option<Self> {
        let format = format_line();
        let rest = bytes.strip_prefix(format.as_bytes())?;
        let count = usize::try_from(u64::from_le_bytes(*rest.first_chunk()?)).ok()?;
        let records = format.len() + size_of::<u64>();
        let end = count.checked_mul(RECORD_BYTES)?.checked_add(records)?;
        if end > bytes.len() {
            return None;
        }
        let is_used = std::iter::repeat_with(AtomicBool::default).take(count).collect();
        Some(Self { bytes, records, count, is_used })
    }

    fn number(&self, record: usize, number: usize) -> Option<u64> {
        let start = self.records + record * RECORD_BYTES + number * size_of::<u64>();
        Some(u64::from_le_bytes(*self.bytes.get(start..)?.first_chunk()?))
    }

    fn length(&self, record: usize, number: usize) -> Option<usize> {
        self.number(record, number).and_then(|length| usize::try_from(length).ok())
    }

    /// The path of a record, and the offset behind it.
    fn path(&self, record: usize) -> Option<(&[u8], usize)> {
        let start = self.length(record, 5)?;
        let end = start.checked_add(self.length(record, 6)?)?;
        Some((self.bytes.get(start..end)?, end))
    }

    fn record(&self, at: usize) -> Option<Record<'_>> {
        let (path, names) = self.path(at)?;
        let summaries = names.checked_add(self.length(at, 7)?)?;
        let end = summaries.checked_add(self.length(at, 8)?)?;
        Some(Record {
            state: FileState {
                folder_modified: self.number(at, 0)?.cast_signed(),
                modified: self.number(at, 1)?.cast_signed(),
                changed: self.number(at, 2)?.cast_signed(),
                size: self.number(at, 3)?,
                inode: self.number(at, 4)?,
            },
            path,
            name: self.bytes.get(names..summaries)?,
            summary: self.bytes.get(summaries..end)?,
            // More tokens than bytes are damaged.
            tokens: self.length(at, 9).filter(|tokens| *tokens <= end - summaries)?,
            is_used: self.is_used.get(at)?,
        })
    }

    fn find(&self, path: &str) -> Option<Record<'_>> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.path(middle)?.0.cmp(path.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.record(middle),
            }
        }
        None
    }
}

/// The content of the file for records that are sorted by path.
fn serialize<'a>(records: impl ExactSizeIterator<Item = &'a Record<'a>>) -> Vec<u8> {
    let mut head = format_line().into_bytes();
    head.extend((records.len() as u64).to_le_bytes());
    let mut texts = Vec::new();
    let first_text = head.len() + records.len() * RECORD_BYTES;
    for Record { state, path, name, summary, tokens, .. } in records {
        let numbers: [u64; RECORD_NUMBERS] = [
            state.folder_modified.cast_unsigned(),
            state.modified.cast_unsigned(),
            state.changed.cast_unsigned(),
            state.size,
            state.inode,
            (first_text + texts.len()) as u64,
            path.len() as u64,
            name.len() as u64,
            summary.len() as u64,
            *tokens as u64,
        ];
        head.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        for text in [path, name, summary] {
            texts.extend_from_slice(text);
        }
    }
    head.append(&mut texts);
    head
}

/// Whether the summary of a skill depends on SKILL.md alone.
fn depends_on_skill_file_alone(skill: &Skill) -> bool {
    let is_other = |path: &String| FILES_NOT_IN_STATE.contains(&path.as_str());
    skill.tools.is_empty() && !skill.resources.iter().any(is_other)
}

impl SkillFileState {
    /// Examines the folder of a skill; `None` if it has no SKILL.md.
    pub fn of(folder: &Path) -> Option<Self> {
        let state = FileState::of(folder)?;
        Some(Self { state, is_settled: state.is_settled() })
    }

    /// Whether the files did not change in between.
    pub fn is_same_as(self, other: Self) -> bool {
        self.state == other.state
    }
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
            SummaryCache::at(self.0.path().join("summaries"))
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
        let file = place.0.path().join("summaries");
        let whole = {
            assert!(place.summary(&place.cache()).1);
            let cache = place.cache();
            assert!(place.summary(&cache).1);
            cache.save();
            fs::read(&file).unwrap()
        };
        assert!(!place.summary(&place.cache()).1);
        let head = format_line().len() + size_of::<u64>();
        let mut damaged = vec![b"{".to_vec(), whole[..head].to_vec(), whole[..head + 20].to_vec()];
        // A huge number in each place.
        for at in (head - 8..head + RECORD_BYTES).step_by(8) {
            let mut bytes = whole.clone();
            bytes[at..at + 8].fill(0xff);
            damaged.push(bytes);
        }
        for damaged in damaged {
            fs::write(&file, damaged).unwrap();
            let cache = place.cache();
            assert_eq!(place.summary(&cache), ("- zebra: One.".to_owned(), true));
            cache.save();
            assert!(!place.summary(&place.cache()).1);
        }
    }

    #[test]
    fn stored_summaries_are_found_by_path() {
        let used = AtomicBool::default();
        let summaries: Vec<(String, CachedSummary)> = ["a", "b\tc", "d\ne", "ä"]
            .map(|name| {
                let state = FileState { folder_modified: -1, size: 7, ..FileState::default() };
                let summary = format!("- {name}: Über Wörter.");
                (
                    format!("/{name}"),
                    CachedSummary { state, name: name.to_owned(), summary, tokens: 9 },
                )
            })
            .into();
        let records = summaries.iter().map(|(path, one)| Record {
            state: one.state,
            path: path.as_bytes(),
            name: one.name.as_bytes(),
            summary: one.summary.as_bytes(),
            tokens: one.tokens,
            is_used: &used,
        });
        let records: Vec<Record<'_>> = records.collect();
        let stored = StoredSummaries::open(serialize(records.iter())).unwrap();
        for (path, one) in &summaries {
            let found = stored.find(path).unwrap();
            assert_eq!((found.state, found.tokens), (one.state, one.tokens));
            assert_eq!((found.name, found.summary), (one.name.as_bytes(), one.summary.as_bytes()));
        }
        assert!(stored.find("/aa").is_none() && stored.find("").is_none());
    }
}
