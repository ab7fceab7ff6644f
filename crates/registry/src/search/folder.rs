//! Locks and opens the folder of the search index.
//!
//! The configured folder has one subfolder (slot) for each process that uses it at the same time. A
//! process takes the first unlocked slot, so that a restarted process finds its index again. An
//! index that is damaged, has another format or belongs to another database is deleted: all its
//! data is in the database.

use std::{
    fs::{self, File, TryLockError},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
};

use tantivy::{Index, IndexReader, ReloadPolicy, TantivyError, schema::Schema};

use super::{
    SearchError,
    fields::{self, WEIGHT_FIELD},
};

/// Increase this number whenever the same documents would be indexed differently.
const FORMAT_VERSION: u32 = 1;
/// Maximum number of processes that can use one folder at the same time.
const MAX_SLOTS: usize = 64;

/// The slot of this process. The lock is held until this value is dropped.
#[derive(Debug)]
pub(super) struct IndexFolderLock {
    path: PathBuf,
    _lock: File,
}

impl IndexFolderLock {
    /// Locks the first slot that no other process has locked.
    pub(super) fn lock_free_slot(folder: &Path) -> Result<Self, SearchError> {
        for number in 0..MAX_SLOTS {
            let path = folder.join(number.to_string());
            fs::create_dir_all(&path).map_err(SearchError::folder(&path))?;
            let lock = path.join("lock");
            let file = File::options().create(true).append(true).open(&lock);
            let file = file.map_err(SearchError::folder(&lock))?;
            match file.try_lock() {
                Ok(()) => return Ok(Self { path: path.join("index"), _lock: file }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(SearchError::folder(&lock)(error)),
            }
        }
        Err(SearchError::Full { folder: folder.to_owned(), most: MAX_SLOTS })
    }

    /// The folder of the index files.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the existing index, or creates a new one. Also returns the number of the last change
    /// in it.
    pub(super) fn open(
        &self,
        schema: &Schema,
        database: &str,
    ) -> Result<(OpenIndex, u64), SearchError> {
        if self.path.exists() {
            remove_temporary_files(&self.path).map_err(SearchError::folder(&self.path))?;
            match reopen(&self.path, schema, database) {
                Ok(opened) => return Ok(opened),
                Err(reason) => {
                    let path = self.path.display();
                    tracing::warn!(%path, %reason, "the search index is rebuilt");
                }
            }
        }
        Ok((self.start_empty(schema)?, 0))
    }

    /// Creates a new index and deletes existing files.
    pub(super) fn start_empty(&self, schema: &Schema) -> Result<OpenIndex, SearchError> {
        if self.path.exists() {
            fs::remove_dir_all(&self.path).map_err(SearchError::folder(&self.path))?;
        }
        fs::create_dir_all(&self.path).map_err(SearchError::folder(&self.path))?;
        self.create(schema).map_err(SearchError::index(&self.path))
    }

    fn create(&self, schema: &Schema) -> Result<OpenIndex, TantivyError> {
        let new = Index::builder().schema(schema.clone()).settings(fields::settings());
        let index = new.create_in_dir(&self.path)?;
        fields::register_tokenizers(&index);
        let reader = reader(&index)?;
        Ok(OpenIndex { reader, index })
    }
}

/// Removes the files that tantivy was writing when the process was killed: it writes to a temporary file
/// and renames it.
fn remove_temporary_files(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b".tmp") {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// An index with its reader.
pub(super) struct OpenIndex {
    pub(super) reader: IndexReader,
    pub(super) index: Index,
}

/// Readers are reloaded by hand: the only writer reloads them after a commit.
fn reader(index: &Index) -> Result<IndexReader, TantivyError> {
    index
        .reader_builder()
        .reload_policy(ReloadPolicy::Manual)
        .doc_store_cache_num_blocks(1)
        .try_into()
}

/// Opens an existing index after checking the checksum of every file. Also returns the number of
/// the last change in it.
fn reopen(path: &Path, schema: &Schema, database: &str) -> Result<(OpenIndex, u64), String> {
    let described = |error: TantivyError| error.to_string();
    let index = Index::open_in_dir(path).map_err(described)?;
    if index.schema() != *schema || *index.settings() != fields::settings() {
        return Err("it has other fields".to_owned());
    }
    let payload = index.load_metas().map_err(described)?.payload;
    let applied = match payload.as_deref() {
        Some(payload) => read_payload(payload, database)?,
        None => 0,
    };
    let damaged = index.validate_checksum().map_err(described)?;
    if let Some(file) = damaged.iter().next() {
        return Err(format!("{} is damaged", file.display()));
    }
    fields::register_tokenizers(&index);
    let reader = reader(&index).map_err(described)?;
    for segment in reader.searcher().segment_readers() {
        let weights = segment.fast_fields().u64(WEIGHT_FIELD).map_err(described)?;
        if weights.num_docs() != segment.max_doc() {
            return Err("it does not have as many skills as it says".to_owned());
        }
    }
    Ok((OpenIndex { reader, index }, applied))
}

/// The text that is committed together with the documents: the number of the last change and the id
/// of the database.
pub(super) fn payload(applied: u64, database: &str) -> String {
    format!("{FORMAT_VERSION} {applied} {:016x} {database}", checksum(applied, database))
}

fn read_payload(payload: &str, database: &str) -> Result<u64, String> {
    let mut parts = payload.splitn(4, ' ');
    let mut next = || parts.next().unwrap_or_default();
    if next() != FORMAT_VERSION.to_string() {
        return Err("another version of the program made it".to_owned());
    }
    let applied = next().parse().map_err(|_| "its number cannot be read".to_owned())?;
    let sealed = next() == format!("{:016x}", checksum(applied, database));
    match next() == database {
        true if sealed => Ok(applied),
        true => Err("its number is damaged".to_owned()),
        false => Err("it belongs to another database".to_owned()),
    }
}

/// A checksum that protects the number against damage. Another build of the program may compute
/// another checksum; then the index is built again.
fn checksum(applied: u64, database: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (FORMAT_VERSION, applied, database).hash(&mut hasher);
    hasher.finish()
}
