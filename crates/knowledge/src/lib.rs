//! Manages knowledge bases: stores documents, indexes them and searches their passages.
//!
//! The text of a document is extracted ([`extract`]), split into chunks ([`chunk`]), embedded if
//! there is an embedding model, and stored ([`index`]). A search combines full-text search and
//! vector search by rank.

pub mod chunk;
pub mod extract;
pub mod index;

mod fuse;
pub mod limits;
mod upload;

use std::{fmt, sync::Arc};

use bytes::Bytes;
use savoir_model::Embedder;
use savoir_store::{
    Chunk, ChunkHit, ChunkSize, Database, Document, IndexingStatus, IndexingTask, KnowledgeBase,
    NewDocument, Storage, StoreError,
};
use thiserror::Error;
use tokio::sync::Notify;
use uuid::Uuid;

pub use self::{
    index::Indexer,
    upload::{NameError, UploadError, check_name},
};

/// The knowledge bases of a database. Cloning shares them.
#[derive(Clone, Debug)]
pub struct Knowledge {
    database: Database,
    storage: Storage,
    embedder: Option<Arc<dyn Embedder>>,
    uploads: Arc<Notify>,
}

/// A search result.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    pub doc_id: String,
    /// `<doc>_chunk_<n>`.
    pub chunk_id: String,
    /// The index in the document, from 0.
    pub chunk_index: u64,
    /// The number of tokens.
    pub chunk_size: u64,
    pub text: String,
    /// The relevance, between 0 (unrelated) and 1, rounded to four digits.
    pub score: f64,
    /// The position among the results, from 1.
    pub rank: u32,
}

/// The search method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Full-text search only, because there is no embedding model.
    Words,
    /// Full-text search, and vector search with this embedding model.
    Hybrid(String),
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words => f.write_str("words alone (BM25): no embedding model is configured"),
            Self::Hybrid(identity) => write!(f, "words (BM25) and vectors of {identity}"),
        }
    }
}

/// Information about a knowledge base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The knowledge base.
    pub base: KnowledgeBase,
    /// The number of chunks that have a vector.
    pub vectors: u64,
    /// The search method.
    pub mode: Mode,
}

/// The result of a request to index a document again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reprocessing {
    /// The document will be indexed again.
    Started(IndexingTask),
    /// The document is waiting or being indexed.
    Underway,
    /// The document is already indexed.
    Done,
    /// Rejected, because too many documents are waiting.
    Crowded,
}

/// Why a search failed.
#[derive(Debug, Error)]
pub enum SearchError {
    /// There is no such knowledge base.
    #[error("Knowledge base not found: {0}")]
    UnknownBase(String),
    /// The vectors were created by another model.
    #[error(
        "Knowledge base index is incompatible with current embedding model. Rebuild the knowledge \
         base index and re-upload documents."
    )]
    OtherModel,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns the storage key of a document.
fn key(kb_id: &str, doc_id: &str) -> String {
    format!("knowledge/{kb_id}/{doc_id}")
}

impl Knowledge {
    /// Creates the knowledge bases of a database, with documents in a storage. Without an embedding
    /// model, only full-text search is used.
    pub fn new(database: Database, storage: Storage, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self { database, storage, embedder, uploads: Arc::default() }
    }

    /// Returns the search method.
    pub fn mode(&self) -> Mode {
        match &self.embedder {
            None => Mode::Words,
            Some(embedder) => Mode::Hybrid(embedder.identity().to_owned()),
        }
    }

    /// Wakes a worker of this process after an upload.
    pub fn notify(&self) {
        self.uploads.notify_one();
    }

    /// Waits until a document was uploaded.
    async fn uploaded(&self) {
        self.uploads.notified().await;
    }

    pub async fn create(&self, name: &str, user: Option<i64>) -> Result<KnowledgeBase, StoreError> {
        self.database.knowledge().create(name, user).await
    }

    /// Returns all knowledge bases, newest first.
    pub async fn list(&self) -> Result<Vec<KnowledgeBase>, StoreError> {
        self.database.knowledge().list().await
    }

    /// Finds a knowledge base by id or name.
    pub async fn resolve(
        &self,
        id_or_name: &str,
        user: Option<i64>,
    ) -> Result<Option<KnowledgeBase>, StoreError> {
        self.database.knowledge().resolve(id_or_name, user).await
    }

    /// Returns information about a knowledge base.
    pub async fn info(&self, kb_id: &str) -> Result<Option<Info>, StoreError> {
        let rows = self.database.knowledge();
        let Some(base) = rows.get(kb_id).await? else { return Ok(None) };
        let vectors = rows.vector_count(kb_id).await?;
        let mode = if vectors == 0 { Mode::Words } else { self.mode() };
        Ok(Some(Info { base, vectors, mode }))
    }

    /// Returns the documents of a knowledge base, newest first.
    pub async fn documents(&self, kb_id: &str) -> Result<Vec<Document>, StoreError> {
        self.database.knowledge().documents(kb_id).await
    }

    pub async fn document(
        &self,
        kb_id: &str,
        doc_id: &str,
    ) -> Result<Option<Document>, StoreError> {
        self.database.knowledge().document(kb_id, doc_id).await
    }

    /// Returns a page of a document's chunks in order, and how many chunks it has.
    pub async fn chunks(
        &self,
        kb_id: &str,
        doc_id: &str,
        limit: u64,
        offset: u64,
    ) -> Result<(Vec<Chunk>, u64), StoreError> {
        self.database.knowledge().chunks(kb_id, doc_id, limit, offset).await
    }

    /// Returns the uploaded bytes of a document; `None` if they are missing.
    pub async fn bytes(&self, kb_id: &str, doc_id: &str) -> Result<Option<Bytes>, StoreError> {
        self.storage.get(&key(kb_id, doc_id)).await
    }

    /// Changes the name or the chunk size of a knowledge base.
    pub async fn update(
        &self,
        kb_id: &str,
        name: Option<&str>,
        size: Option<ChunkSize>,
    ) -> Result<Option<KnowledgeBase>, StoreError> {
        self.database.knowledge().update(kb_id, name, size).await
    }

    /// Queues all documents for indexing, for example for another embedding model. Returns their
    /// number.
    pub async fn index_again(&self, kb_id: &str) -> Result<u64, StoreError> {
        let documents = self.database.knowledge().index_again(kb_id).await?;
        self.notify();
        Ok(documents)
    }

    /// Whether documents must be indexed again, because the chunk size or the embedding model
    /// changed.
    pub fn is_stale(&self, base: &KnowledgeBase) -> bool {
        let other_model = match (&base.embedder, &self.embedder) {
            (Some(there), Some(ours)) => there != ours.identity(),
            _ => false,
        };
        base.document_count > 0 && (base.stale || other_model)
    }

    /// Returns the progress of an indexing task.
    pub async fn task(&self, id: &str) -> Result<Option<IndexingTask>, StoreError> {
        self.database.knowledge().task(id).await
    }

    /// Stores a document and queues it for indexing.
    pub async fn add(
        &self,
        kb_id: &str,
        filename: &str,
        bytes: Bytes,
    ) -> Result<(Document, IndexingTask), UploadError> {
        upload::check(filename, &bytes)?;
        let rows = self.database.knowledge();
        let base = rows.get(kb_id).await?.ok_or(UploadError::UnknownBase)?;
        if self.is_crowded(&base).await? {
            return Err(UploadError::Crowded);
        }
        let id = Uuid::new_v4().to_string();
        let file_size = bytes.len() as u64;
        // Store the bytes first: a worker of another process may claim the task immediately.
        self.storage.put(&key(kb_id, &id), bytes).await?;
        let document = NewDocument { id: &id, kb_id, filename, file_size };
        match rows.add_document(document).await {
            Ok(added) => {
                self.notify();
                Ok(added)
            }
            Err(error) => {
                self.remove_bytes(kb_id, &id).await;
                Err(error.into())
            }
        }
    }

    /// Whether the owner has reached the limit of waiting documents. Documents without an owner
    /// belong to the operator.
    async fn is_crowded(&self, base: &KnowledgeBase) -> Result<bool, StoreError> {
        let Some(owner) = base.user_id else { return Ok(false) };
        let waiting = self.database.knowledge().waiting(owner).await?;
        Ok(waiting >= limits::MAX_WAITING_DOCUMENTS)
    }

    /// Deletes a document from all indexes, and its bytes. Returns false if it does not exist.
    pub async fn remove_document(&self, kb_id: &str, doc_id: &str) -> Result<bool, StoreError> {
        let removed = self.database.knowledge().delete_document(kb_id, doc_id).await?;
        if removed {
            self.remove_bytes(kb_id, doc_id).await;
        }
        Ok(removed)
    }

    /// Deletes a knowledge base with all its documents. Returns false if it does not exist.
    pub async fn remove_base(&self, kb_id: &str) -> Result<bool, StoreError> {
        let Some(documents) = self.database.knowledge().delete(kb_id).await? else {
            return Ok(false);
        };
        for doc_id in documents {
            self.remove_bytes(kb_id, &doc_id).await;
        }
        Ok(true)
    }

    /// Removes stored bytes. Unreferenced bytes do no harm, so the removal may fail.
    async fn remove_bytes(&self, kb_id: &str, doc_id: &str) {
        if let Err(error) = self.storage.delete(&key(kb_id, doc_id)).await {
            tracing::warn!(%error, kb_id, doc_id, "the bytes of a document were not removed");
        }
    }

    /// Indexes a failed document again; `None` if it does not exist.
    pub async fn reprocess(
        &self,
        base: &KnowledgeBase,
        doc_id: &str,
    ) -> Result<Option<Reprocessing>, StoreError> {
        let rows = self.database.knowledge();
        let Some(document) = rows.document(&base.id, doc_id).await? else { return Ok(None) };
        Ok(Some(match document.status {
            IndexingStatus::Pending | IndexingStatus::Processing => Reprocessing::Underway,
            IndexingStatus::Completed => Reprocessing::Done,
            IndexingStatus::Failed if self.is_crowded(base).await? => Reprocessing::Crowded,
            IndexingStatus::Failed => {
                let task = rows.add_task(&base.id, doc_id).await?;
                self.notify();
                Reprocessing::Started(task)
            }
        }))
    }

    /// Returns the passages of a knowledge base, given by id or name, that match a question best.
    ///
    /// Uses only full-text search if vector search is not available.
    pub async fn search(
        &self,
        id_or_name: &str,
        user: Option<i64>,
        question: &str,
        limit: u32,
    ) -> Result<Vec<Passage>, SearchError> {
        let base = self.resolve(id_or_name, user).await?;
        let base = base.ok_or_else(|| SearchError::UnknownBase(id_or_name.to_owned()))?;
        if question.trim().is_empty() {
            return Ok(Vec::new());
        }
        let depth = limit.saturating_mul(limits::CANDIDATES_PER_PASSAGE);
        let by_vector = self.find_vector(&base, question, depth).await?;
        let words = fuse::without_stop_words(question);
        let by_words = self.database.knowledge().find_words(&base.id, &words, depth).await?;
        let by_vector = by_vector.map(fuse::Hits::Vectors);
        let lists = std::iter::once(fuse::Hits::Words(by_words)).chain(by_vector).collect();
        Ok(fuse::fuse_results(lists, question, limit as usize))
    }

    /// Returns the chunks with the nearest vectors; `None` if vector search is not available.
    async fn find_vector(
        &self,
        base: &KnowledgeBase,
        question: &str,
        depth: u32,
    ) -> Result<Option<Vec<ChunkHit>>, SearchError> {
        let Some(embedder) = &self.embedder else { return Ok(None) };
        match &base.embedder {
            None => return Ok(None),
            Some(identity) if identity != embedder.identity() => {
                return Err(SearchError::OtherModel);
            }
            Some(_) => {}
        }
        let vectors = match embedder.embed(vec![question.to_owned()]).await {
            Ok(vectors) => vectors,
            Err(error) => {
                tracing::warn!(%error, kb_id = base.id, "no vector for a question: words alone serve");
                return Ok(None);
            }
        };
        let Some(vector) = vectors.first() else { return Ok(None) };
        Ok(Some(self.database.knowledge().find_vector(&base.id, vector, depth).await?))
    }
}
