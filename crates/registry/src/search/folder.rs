//! The folder of the search index and its locks.
//!
//! The folder that is given has one subfolder for each process that uses it at the same time: the
//! first that nobody holds is taken, so that a process that starts anew finds its index again. What is
//! damaged, of another kind or of another database is thrown away: the database has it all.

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

/// Raised whenever the same documents would be indexed in another way.
const FORMAT_VERSION: u32 = 1;
/// Processes that can use one folder at the same time.
const MAX_SLOTS: usize = 64;

/// The part of a folder that belongs to this process as long as this lives.
#[derive(Debug)]
pub(super) struct IndexFolderLock {
    path: PathBuf,
    _lock: File,
}

impl IndexFolderLock {
    /// Takes the first part that nobody holds.
    pub(super) fn take(folder: &Path) -> Result<Self, SearchError> {
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

    /// Where the index lies.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens what is there, or begins anew; tells how far it goes.
    pub(super) fn open(
        &self,
        schema: &Schema,
        database: &str,
    ) -> Result<(OpenIndex, u64), SearchError> {
        if self.path.exists() {
            match reopen(&self.path, schema, database) {
                Ok(opened) => return Ok(opened),
                Err(reason) => {
                    let path = self.path.display();
                    tracing::warn!(%path, %reason, "the search index is built anew");
                }
            }
        }
        Ok((self.begin(schema)?, 0))
    }

    /// Begins anew, whatever is there.
    pub(super) fn begin(&self, schema: &Schema) -> Result<OpenIndex, SearchError> {
        if self.path.exists() {
            fs::remove_dir_all(&self.path).map_err(SearchError::folder(&self.path))?;
        }
        fs::create_dir_all(&self.path).map_err(SearchError::folder(&self.path))?;
        self.create(schema).map_err(SearchError::index(&self.path))
    }

    fn create(&self, schema: &Schema) -> Result<OpenIndex, TantivyError> {
        let new = Index::builder().schema(schema.clone()).settings(fields::settings());
        let index = new.create_in_dir(&self.path)?;
        fields::teach(&index);
        let reader = reader(&index)?;
        Ok(OpenIndex { reader, index })
    }
}

/// An index that can be searched.
pub(super) struct OpenIndex {
    pub(super) reader: IndexReader,
    pub(super) index: Index,
}

/// Readers see a commit when they are told to: there is one writer, and it tells them.
fn reader(index: &Index) -> Result<IndexReader, TantivyError> {
    index
        .reader_builder()
        .reload_policy(ReloadPolicy::Manual)
        .doc_store_cache_num_blocks(1)
        .try_into()
}

/// Opens an index whose every byte is as it was written, and tells how far it goes.
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
    fields::teach(&index);
    let reader = reader(&index).map_err(described)?;
    for segment in reader.searcher().segment_readers() {
        let weights = segment.fast_fields().u64(WEIGHT_FIELD).map_err(described)?;
        if weights.num_docs() != segment.max_doc() {
            return Err("it does not have as many skills as it says".to_owned());
        }
    }
    Ok((OpenIndex { reader, index }, applied))
}

/// What is committed together with the documents: how far they go, and in which database.
pub(super) fn payload(applied: u64, database: &str) -> String {
    format!("{FORMAT_VERSION} {applied} {:016x} {database}", seal(applied, database))
}

fn read_payload(payload: &str, database: &str) -> Result<u64, String> {
    let mut parts = payload.splitn(4, ' ');
    let mut next = || parts.next().unwrap_or_default();
    if next() != FORMAT_VERSION.to_string() {
        return Err("another version of the program made it".to_owned());
    }
    let applied = next().parse().map_err(|_| "its number cannot be read".to_owned())?;
    let sealed = next() == format!("{:016x}", seal(applied, database));
    match next() == database {
        true if sealed => Ok(applied),
        true => Err("its number is damaged".to_owned()),
        false => Err("it belongs to another database".to_owned()),
    }
}

/// Guards the number against damage. Another build of the program may reckon otherwise and then builds
/// the index anew.
fn seal(applied: u64, database: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (FORMAT_VERSION, applied, database).hash(&mut hasher);
    hasher.finish()
}
