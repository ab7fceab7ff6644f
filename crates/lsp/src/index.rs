//! The skills of all workspace folders, found in the background.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use savoir_skill::{Document, Source};

use crate::{
    Environment,
    limits::{MAX_INDEXED_BYTES, MAX_INDEXED_SKILLS},
};

/// A skill on disk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IndexedSkill {
    /// The name in the file, else the name of the folder.
    pub(crate) name: Box<str>,
    /// The path of SKILL.md.
    pub(crate) path: Box<Path>,
}

/// The skills, sorted by name. Requests that need all of them wait until the first walk is done.
#[derive(Debug, Default)]
pub(crate) struct Index {
    content: Mutex<Content>,
    finished: Condvar,
    /// Counts the walks. A walk stops when a later one has started.
    walks: AtomicU64,
}

#[derive(Debug, Default)]
struct Content {
    skills: Vec<IndexedSkill>,
    is_complete: bool,
}

/// How long a request waits for the first walk.
const INDEX_WAIT: Duration = Duration::from_secs(5);

impl Index {
    /// Walks folders on another thread.
    pub(crate) fn start(self: &Arc<Self>, environment: Arc<dyn Environment>, roots: Vec<PathBuf>) {
        let walk = self.walks.fetch_add(1, Ordering::SeqCst) + 1;
        let index = Arc::clone(self);
        let work = move || index.walk(environment.as_ref(), &roots, walk);
        let started = std::thread::Builder::new().name("index".to_owned()).spawn(work);
        if started.is_err() {
            // Without the thread, only open files are known.
            self.content().is_complete = true;
        }
    }

    fn walk(&self, environment: &dyn Environment, roots: &[PathBuf], walk: u64) {
        let is_current = || self.walks.load(Ordering::SeqCst) == walk;
        let mut skills = Vec::new();
        for root in roots {
            environment.find_skills(root, &mut |path| {
                skills.extend(read(&path));
                skills.len() < MAX_INDEXED_SKILLS && is_current()
            });
        }
        skills.sort_unstable();
        skills.dedup();
        skills.shrink_to_fit();
        let mut content = self.content();
        if is_current() {
            *content = Content { skills, is_complete: true };
            self.finished.notify_all();
        }
    }

    /// Reads one file again, after it was changed, created or deleted.
    pub(crate) fn update(&self, path: &Path) {
        let skill = read(path);
        let mut content = self.content();
        content.skills.retain(|known| *known.path != *path);
        if let Some(skill) = skill
            && content.skills.len() < MAX_INDEXED_SKILLS
        {
            let at = content.skills.partition_point(|known| *known < skill);
            content.skills.insert(at, skill);
        }
    }

    /// The skills with a name.
    pub(crate) fn named(&self, name: &str) -> Vec<IndexedSkill> {
        let content = self.complete();
        let start = content.skills.partition_point(|skill| *skill.name < *name);
        content.skills[start..].iter().take_while(|skill| *skill.name == *name).cloned().collect()
    }

    /// The names of all skills, without duplicates.
    pub(crate) fn names(&self) -> Vec<String> {
        let content = self.complete();
        let mut names: Vec<String> =
            content.skills.iter().map(|skill| skill.name.to_string()).collect();
        names.dedup();
        names
    }

    pub(crate) fn skills(&self) -> Vec<IndexedSkill> {
        self.complete().skills.clone()
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complete(&self) -> MutexGuard<'_, Content> {
        let waiting =
            |content: &mut Content| !content.is_complete && self.walks.load(Ordering::SeqCst) > 0;
        let waited = self.finished.wait_timeout_while(self.content(), INDEX_WAIT, waiting);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

fn read(path: &Path) -> Option<IndexedSkill> {
    use std::io::Read as _;
    if !std::fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_INDEXED_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let document = Document::parse(Source::new(text));
    let named = document.field("name").and_then(|name| name.text()).map(str::to_owned);
    let folder = || path.parent()?.file_name()?.to_str().map(str::to_owned);
    let name = named.filter(|name| !name.is_empty()).or_else(folder)?;
    Some(IndexedSkill { name: name.into(), path: path.into() })
}
