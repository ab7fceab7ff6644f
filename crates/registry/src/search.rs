//! Full-text search over skills.
//!
//! The index is a copy of data in the database, stored in its own folder, with the number of the
//! last change that it contains. The follower of the change log updates it with
//! [`SearchIndex::apply`], which writes the documents and the number together or not at all. If the
//! folder is lost, damaged or has another format, the number is 0 and all skills must be indexed
//! again.
//!
//! - `words` splits text into words, `fields` defines the fields of a document, `queue` limits the
//!   memory of documents that wait to be written, `folder` locks and opens the folder of the index,
//!   `merge` decides which segments are merged.
//! - `query` parses the text of a query, `stages` builds index queries from it, `synonyms` knows
//!   other words for the same thing, `rank` selects the best results.

mod fields;
mod folder;
mod merge;
mod query;
mod queue;
mod rank;
mod stages;
mod synonyms;
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

/// Memory for documents that are not written yet. It is allocated only while changes are applied.
const WRITER_MEMORY_BYTES: usize = 20_000_000;
/// Maximum number of results that the pages of one query can reach.
pub const MAX_RESULTS: usize = 1000;

/// A skill as it is passed to the index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Identifies the skill to the caller; search results contain it.
    pub key: String,
    /// `None` for a skill of the default namespace.
    pub namespace: Option<String>,
    /// The name within its namespace.
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub author: String,
    /// The text of the skill. Only the beginning is indexed.
    pub body: String,
    pub tier: Tier,
    pub downloads: u64,
    /// Whether its latest version has a signed evaluation.
    pub evaluated: bool,
    /// Seconds since 1970.
    pub updated_at: i64,
    /// Whether all versions are yanked. Such a skill is found by its exact name only.
    pub yanked_all: bool,
}

#[derive(Clone, Debug)]
pub enum IndexChange {
    /// Add a skill that is not in the index. This saves the search for a document to replace.
    New(Document),
    /// Add a skill, or replace it if it exists.
    Put(Document),
    /// Remove the skill with this key.
    Remove(String),
}

/// A search request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// Words, `"phrases"`, `tag:x`, `author:y`, `tier:z` and `evaluated:yes`. An empty text finds all
    /// skills.
    pub text: String,
    /// Tags that a skill must all have.
    pub tags: Vec<String>,
    pub author: Option<String>,
    pub tier: Option<Tier>,
    /// Only skills that have a signed evaluation.
    pub evaluated: bool,
    /// A skill must be in one of these namespaces; `_/name` is a skill without a namespace. If
    /// empty, all namespaces are searched.
    pub namespaces: Vec<String>,
}

/// How a skill matches a query, from best to worst. Better kinds come first, whatever the score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchKind {
    /// The query is the name of the skill.
    Name,
    /// The query is the name of the skill, except for hyphens and spaces.
    JoinedName,
    /// The skill has all words.
    AllWords,
    /// A word of the name begins with the last word of the query; the skill has all other words.
    Beginning,
    /// The skill has all things that the query names, some by another word.
    Synonyms,
    /// Words of the name or the description are similar to words of the query.
    Similar,
    /// The skill has some of the words.
    SomeWords,
}

impl MatchKind {
    const ALL: [Self; 7] = [
        Self::Name,
        Self::JoinedName,
        Self::AllWords,
        Self::Beginning,
        Self::Synonyms,
        Self::Similar,
        Self::SomeWords,
    ];
}

/// A skill that was found, and how well it matches.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    pub key: String,
    /// Comparable only within one query and one kind of match.
    pub score: f32,
    pub how: MatchKind,
}

/// One page of search results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchHits {
    pub items: Vec<SearchHit>,
    /// Whether there is another page.
    pub more: bool,
    /// How many results all pages have together.
    pub total: usize,
}

/// An error of searching or indexing.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The query text is longer than anything a person types.
    #[error("the query has {length} bytes, the limit is {most}; use fewer words")]
    TooLong { length: usize, most: usize },
    /// The folder cannot be created or locked.
    #[error("{}: {source}; the search index needs a folder that it can write to", path.display())]
    Folder { path: PathBuf, source: io::Error },
    /// Every slot of the folder is used by another process.
    #[error("{}: {most} processes already use it; use another folder for this one", folder.display())]
    Full { folder: PathBuf, most: usize },
    /// The index cannot be read or written.
    #[error("the search index in {}: {source}; delete the folder to rebuild it", path.display())]
    Index { path: PathBuf, source: TantivyError },
    /// The index contains later changes than the database: the database was restored.
    #[error(
        "the search index has change {applied}, which is after change {up_to}; clear it and rebuild it"
    )]
    Backwards { applied: u64, up_to: u64 },
}

impl SearchError {
    /// A stable identifier of the error, for logs.
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

/// The search index of this process.
///
/// Any number of threads can search while one thread applies changes; each search sees the state
/// before or after the changes, never a part of them. Searching and applying block: call them on a
/// thread that may block.
pub struct SearchIndex {
    // Fields are dropped in this order: the lock of the folder is released last.
    /// [`Self::start_over`] replaces the index.
    open: RwLock<OpenIndex>,
    fields: Fields,
    database: String,
    /// The number of the last change in the index. The lock is held while changes are applied.
    applied: Mutex<u64>,
    /// A copy of `applied` that can be read without the lock.
    shown: AtomicU64,
    folder_lock: IndexFolderLock,
}

impl fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchIndex")
            .field("path", &self.folder_lock.path())
            .finish_non_exhaustive()
    }
}

impl SearchIndex {
    /// Opens the index in a folder, or creates a new one. Returns the index and the number of the
    /// last change that it contains. `database` identifies the database, on one line.
    pub fn open(folder: &Path, database: &str) -> Result<(Self, u64), SearchError> {
        let folder_lock = IndexFolderLock::lock_free_slot(folder)?;
        let (fields, schema) = Fields::new();
        let (opened, applied) = folder_lock.open(&schema, database)?;
        let database = database.to_owned();
        let (held, shown) = (Mutex::new(applied), AtomicU64::new(applied));
        let open = RwLock::new(opened);
        Ok((Self { open, fields, database, applied: held, shown, folder_lock }, applied))
    }

    fn reader(&self) -> IndexReader {
        self.open.read().unwrap_or_else(PoisonError::into_inner).reader.clone()
    }

    fn index(&self) -> Index {
        self.open.read().unwrap_or_else(PoisonError::into_inner).index.clone()
    }

    /// Applies all changes or none, and stores that the index contains every change up to `up_to`.
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
                    // A body is in one field, the other texts are in two.
                    let bytes = document.body.len() + 2 * document.description.len();
                    let kept = self.fields.index(&document);
                    writer.add_document(queue.enter(kept, bytes))?;
                }
            }
            Ok(())
        })
    }

    /// Merges all segments into one, which makes every query faster. Slow if there are many skills.
    pub fn merge_all_segments(&self) -> Result<(), SearchError> {
        let _applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |error| SearchError::index(self.folder_lock.path())(error);
        let segments = self.index().searchable_segment_ids().map_err(failed)?;
        if segments.len() < 2 {
            return Ok(());
        }
        let mut writer = self.writer().map_err(failed)?;
        writer.merge(&segments).wait().map_err(failed)?;
        writer.wait_merging_threads().map_err(failed)?;
        self.reader().reload().map_err(failed)
    }

    /// Removes all documents, so that the index can be built again.
    pub fn clear(&self) -> Result<(), SearchError> {
        let mut applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        self.write(&mut applied, 0, |writer| writer.delete_all_documents().map(drop))
    }

    /// Deletes all files and creates a new index: for an index that can no longer be written to.
    /// Searches find nothing until the index is built again.
    pub fn start_over(&self) -> Result<(), SearchError> {
        let mut applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, schema) = Fields::new();
        let opened = self.folder_lock.start_empty(&schema)?;
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = opened;
        *applied = 0;
        self.shown.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until no thread is writing.
    pub fn wait_for_writer(&self) {
        drop(self.applied.lock());
    }

    /// Number of skills in the index.
    pub fn skill_count(&self) -> u64 {
        self.reader().searcher().num_docs()
    }

    /// The number of the last change in the index.
    pub fn applied(&self) -> u64 {
        self.shown.load(Ordering::Relaxed)
    }

    /// Creates a writer for one commit. Without changes no writer is created, which saves its
    /// memory.
    fn write(
        &self,
        applied: &mut u64,
        up_to: u64,
        change: impl FnOnce(&IndexWriter<QueuedDocument>) -> Result<(), TantivyError>,
    ) -> Result<(), SearchError> {
        let failed = |error| SearchError::index(self.folder_lock.path())(error);
        let mut writer = self.writer().map_err(failed)?;
        change(&writer).map_err(failed)?;
        let mut commit = writer.prepare_commit().map_err(failed)?;
        commit.set_payload(&folder::payload(up_to, &self.database));
        commit.commit().map_err(failed)?;
        *applied = up_to;
        self.shown.store(up_to, Ordering::Relaxed);
        self.reader().reload().map_err(failed)?;
        // A failed merge does not undo the commit; it is retried after the next commit.
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
        // A process that was killed while writing may have left files that are in the way.
        writer.garbage_collect_files().wait()?;
        Ok(writer)
    }

    /// Returns skills, best first, starting at the result number `offset`. No results are returned
    /// beyond [`MAX_RESULTS`]: a query that finds so many should be narrowed.
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
        let failed = |error| SearchError::index(self.folder_lock.path())(error);
        let mut items = self.find(&wanted, end + 1).map_err(failed)?;
        let more = items.len() > end && end < MAX_RESULTS;
        // Only a query with further pages needs a second search to count them.
        let total = if more {
            self.find(&wanted, MAX_RESULTS).map_err(failed)?.len()
        } else {
            items.len().min(MAX_RESULTS)
        };
        items.truncate(end);
        items.drain(..offset.min(items.len()));
        Ok(SearchHits { items, more, total })
    }

    /// The first `most` skills: runs one stage after the other until there are enough.
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
            // A looser stage also finds the results of the stricter stages.
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

/// Today as days since 1970.
fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400)
}
