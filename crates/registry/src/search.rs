//! Full-text search over skills.
//!
//! The index is a copy of what the database knows, in a folder of its own, and remembers the number of
//! the last change that it has. Whoever follows the changes in the database feeds it with
//! [`SearchIndex::apply`]; documents and number are written together or not at all. If the folder is
//! lost, damaged or of another kind, the number is 0 and everything is to be fed again.
//!
//! - `words` splits text, `fields` is what is kept of a skill, `queue` is how it gets there, `folder` is
//!   where that is, `merge` keeps it tidy.
//! - `query` reads what someone typed, `stages` asks the index, `rank` takes the best.

mod fields;
mod folder;
mod merge;
mod query;
mod queue;
mod rank;
mod stages;
#[cfg(test)]
mod tests;
mod words;

use std::{
    collections::HashSet,
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use savoir_skill::permission::Tier;
use tantivy::{Index, IndexReader, IndexWriter, TantivyError, indexer::IndexWriterOptions};

use self::{
    fields::Fields,
    folder::{IndexFolderLock, OpenIndex},
    query::ParsedQuery,
    queue::{DocumentQueue, QueuedDocument},
    rank::{Ranking, YankedSkills},
    stages::QueryBuilder,
};

/// Memory for documents that are not written yet; it is there only while documents are applied.
const WRITER_MEMORY_BYTES: usize = 20_000_000;
/// Skills that one question can page through.
pub const MAX_RESULTS: usize = 1000;

/// What the index knows of a skill.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// What tells skills apart, for whoever asks.
    pub key: String,
    /// The namespace, unless the name is flat.
    pub namespace: Option<String>,
    /// The name within its namespace.
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub author: String,
    /// The text of the skill. Only its beginning is indexed.
    pub body: String,
    pub tier: Tier,
    pub downloads: u64,
    /// Seconds since 1970.
    pub updated_at: i64,
    /// Whether no version can be chosen. Such a skill is found by its exact name only.
    pub yanked_all: bool,
}

/// A change.
#[derive(Clone, Debug)]
pub enum IndexChange {
    /// The skill was never here. Whoever says so saves the search for what it would replace.
    New(Document),
    /// The skill is new, or different.
    Put(Document),
    /// The skill with this key is gone.
    Remove(String),
}

/// What someone asks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// Words, `"phrases"`, `tag:x`, `author:y` and `tier:z`. Empty finds everything.
    pub text: String,
    /// Tags that a skill must have.
    pub tags: Vec<String>,
    pub author: Option<String>,
    pub tier: Option<Tier>,
    /// Namespaces of which a skill must be in one; `_/name` is a skill that has none. All if there are
    /// none.
    pub namespaces: Vec<String>,
}

/// How a skill fits a question, from best to worst. Better fits come first, whatever their score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchKind {
    /// The question is its name.
    Name,
    /// The question is its name but for hyphens and spaces.
    JoinedName,
    /// It has all words.
    AllWords,
    /// A word of its name begins with the last word, and it has the others.
    Beginning,
    /// Words of its name are similar to words of the question.
    Similar,
    /// It has some of the words.
    SomeWords,
}

impl MatchKind {
    const ALL: [Self; 6] = [
        Self::Name,
        Self::JoinedName,
        Self::AllWords,
        Self::Beginning,
        Self::Similar,
        Self::SomeWords,
    ];
}

/// A skill that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    pub key: String,
    /// Comparable within one question and one kind of match.
    pub score: f32,
    pub how: MatchKind,
}

/// A page of what was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchHits {
    pub items: Vec<SearchHit>,
    /// Whether there is another page.
    pub more: bool,
}

/// Searching or indexing failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// Nobody types this much.
    #[error("the query has {length} bytes, the limit is {most}; use fewer words")]
    TooLong { length: usize, most: usize },
    /// The folder cannot be used.
    #[error("{}: {source}; the search index needs a folder that it can write to", path.display())]
    Folder { path: PathBuf, source: io::Error },
    /// Every part of the folder belongs to another process.
    #[error("{}: {most} processes already use it; use another folder for this one", folder.display())]
    Full { folder: PathBuf, most: usize },
    /// The index cannot be read or written.
    #[error("the search index in {}: {source}; delete the folder to rebuild it", path.display())]
    Index { path: PathBuf, source: TantivyError },
    /// The database has gone back.
    #[error(
        "the search index has change {applied}, which is after change {up_to}; clear it and rebuild it"
    )]
    Backwards { applied: u64, up_to: u64 },
}

impl SearchError {
    /// A stable word for the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => "query_too_long",
            Self::Folder { .. } => "search_folder",
            Self::Full { .. } => "search_folder_full",
            Self::Index { .. } => "search_index",
            Self::Backwards { .. } => "search_backwards",
        }
    }

    fn folder(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Folder { path: path.to_owned(), source }
    }

    fn index(path: &Path) -> impl FnOnce(TantivyError) -> Self {
        move |source| Self::Index { path: path.to_owned(), source }
    }
}

/// The index of this process.
///
/// Any number of threads search it while one applies changes; they see the state before or after, and
/// nothing between. Both block: call them where blocking is allowed.
pub struct SearchIndex {
    // Dropped in this order: the folder is let go last.
    /// Another one after [`Self::start_over`].
    open: RwLock<OpenIndex>,
    fields: Fields,
    database: String,
    /// The number of the last change; held while changes are applied.
    applied: Mutex<u64>,
    /// The same, for those who only look.
    shown: AtomicU64,
    slot: IndexFolderLock,
}

impl fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchIndex").field("path", &self.slot.path()).finish_non_exhaustive()
    }
}

impl SearchIndex {
    /// Opens the index in a folder, or begins a new one; tells the number of the last change that it
    /// has. `database` is anything that tells one database from another, on one line.
    pub fn open(folder: &Path, database: &str) -> Result<(Self, u64), SearchError> {
        let slot = IndexFolderLock::take(folder)?;
        let (fields, schema) = Fields::new();
        let (opened, applied) = slot.open(&schema, database)?;
        let database = database.to_owned();
        let (held, shown) = (Mutex::new(applied), AtomicU64::new(applied));
        let open = RwLock::new(opened);
        Ok((Self { open, fields, database, applied: held, shown, slot }, applied))
    }

    fn reader(&self) -> IndexReader {
        self.open.read().unwrap_or_else(PoisonError::into_inner).reader.clone()
    }

    fn index(&self) -> Index {
        self.open.read().unwrap_or_else(PoisonError::into_inner).index.clone()
    }

    /// Applies changes, all or none, and remembers that it has everything up to a number.
    pub fn apply(
        &self,
        batch: impl IntoIterator<Item = IndexChange>,
        up_to: u64,
    ) -> Result<(), SearchError> {
        let mut applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        if up_to < *applied {
            return Err(SearchError::Backwards { applied: *applied, up_to });
        }
        let queue = DocumentQueue::default();
        self.write(&mut applied, up_to, |writer| {
            for entry in batch {
                let key = match &entry {
                    IndexChange::New(_) => None,
                    IndexChange::Put(document) => Some(&document.key),
                    IndexChange::Remove(key) => Some(key),
                };
                if let Some(key) = key {
                    writer.delete_term(self.fields.key_term(key));
                }
                if let IndexChange::New(document) | IndexChange::Put(document) = entry {
                    // A body stands there once, the other texts twice.
                    let bytes = document.body.len() + 2 * document.description.len();
                    let kept = self.fields.index(&document);
                    writer.add_document(queue.enter(kept, bytes))?;
                }
            }
            Ok(())
        })
    }

    /// Makes one segment of all, which every question asks. It takes long if there are many skills.
    pub fn tidy_up(&self) -> Result<(), SearchError> {
        let _applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |error| SearchError::index(self.slot.path())(error);
        let segments = self.index().searchable_segment_ids().map_err(failed)?;
        if segments.len() < 2 {
            return Ok(());
        }
        let mut writer = self.writer().map_err(failed)?;
        writer.merge(&segments).wait().map_err(failed)?;
        writer.wait_merging_threads().map_err(failed)?;
        self.reader().reload().map_err(failed)
    }

    /// Forgets everything, so that it can be fed from the beginning.
    pub fn clear(&self) -> Result<(), SearchError> {
        let mut applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        self.write(&mut applied, 0, |writer| writer.delete_all_documents().map(drop))
    }

    /// Throws all files away and begins anew: for when what is there can be written to no more. Nothing
    /// is found until it is fed from the beginning.
    pub fn start_over(&self) -> Result<(), SearchError> {
        let mut applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, schema) = Fields::new();
        let opened = self.slot.begin(&schema)?;
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = opened;
        *applied = 0;
        self.shown.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until nobody writes.
    pub fn settle(&self) {
        drop(self.applied.lock());
    }

    /// How many skills it has.
    pub fn skill_count(&self) -> u64 {
        self.reader().searcher().num_docs()
    }

    /// The number of the last change that it has.
    pub fn applied(&self) -> u64 {
        self.shown.load(Ordering::Relaxed)
    }

    /// Makes a writer for one commit. Without changes there is none, and no memory for it.
    fn write(
        &self,
        applied: &mut u64,
        up_to: u64,
        change: impl FnOnce(&IndexWriter<QueuedDocument>) -> Result<(), TantivyError>,
    ) -> Result<(), SearchError> {
        let failed = |error| SearchError::index(self.slot.path())(error);
        let mut writer = self.writer().map_err(failed)?;
        change(&writer).map_err(failed)?;
        let mut commit = writer.prepare_commit().map_err(failed)?;
        commit.set_payload(&folder::payload(up_to, &self.database));
        commit.commit().map_err(failed)?;
        *applied = up_to;
        self.shown.store(up_to, Ordering::Relaxed);
        self.reader().reload().map_err(failed)?;
        // What was committed stays if merging fails: it is tried again after the next commit.
        if let Err(error) = writer.wait_merging_threads() {
            tracing::warn!(%error, "the search index could not be tidied up");
        }
        self.reader().reload().map_err(failed)
    }

    fn writer(&self) -> Result<IndexWriter<QueuedDocument>, TantivyError> {
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(WRITER_MEMORY_BYTES)
            .num_worker_threads(1)
            .num_merge_threads(1)
            .build();
        let writer = self.index().writer_with_options(options)?;
        writer.set_merge_policy(Box::new(merge::SegmentMergePolicy::default()));
        // What a process left that was ended while it wrote would be in the way.
        writer.garbage_collect_files().wait()?;
        Ok(writer)
    }

    /// Finds skills, best first, from the one with the number `offset` on. Beyond [`MAX_RESULTS`]
    /// there is nothing: a question that finds so many is to be made narrower.
    pub fn search(
        &self,
        query: &Query,
        limit: usize,
        offset: usize,
    ) -> Result<SearchHits, SearchError> {
        let wanted = ParsedQuery::read(query)?;
        let end = offset.saturating_add(limit).min(MAX_RESULTS);
        if offset >= end {
            return Ok(SearchHits::default());
        }
        let failed = |error| SearchError::index(self.slot.path())(error);
        let mut items = self.find(&wanted, end + 1).map_err(failed)?;
        let more = items.len() > end && end < MAX_RESULTS;
        items.truncate(end);
        items.drain(..offset.min(items.len()));
        Ok(SearchHits { items, more })
    }

    /// The first so many skills: one stage after the other, until there are enough.
    fn find(&self, wanted: &ParsedQuery, most: usize) -> Result<Vec<SearchHit>, TantivyError> {
        let searcher = self.reader().searcher();
        let question = QueryBuilder { fields: &self.fields, searcher: &searcher, wanted };
        let mut hits: Vec<SearchHit> = Vec::new();
        let mut known = HashSet::new();
        for how in MatchKind::ALL {
            if hits.len() >= most {
                break;
            }
            let Some(query) = question.stage(how)? else { continue };
            let yanked = if how <= MatchKind::JoinedName {
                YankedSkills::Shown
            } else {
                YankedSkills::Hidden
            };
            // A looser stage finds again what the stricter ones found.
            let ranking = Ranking { most: most + hits.len(), yanked, today: today() };
            let checks = question.phrases(how);
            for found in ranking.best(&searcher, query.as_ref(), &checks)? {
                if hits.len() < most && known.insert(found.key.clone()) {
                    hits.push(SearchHit { key: found.key, score: found.score, how });
                }
            }
        }
        Ok(hits)
    }
}

/// The number of this day.
fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400)
}
