//! Knowledge bases and their documents.

mod chunks;
mod tasks;
mod vectors;
mod words;

use sqlx::AnyConnection;

pub(crate) use vectors::{VectorCache, adopt_pgvector};

use crate::{
    Database, DatabaseKind, StoreError, Timestamp,
    sql::{Row, damaged, new_id, sql},
};

#[derive(Clone, Copy, Debug)]
pub struct Knowledge<'a>(pub(crate) &'a Database);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnowledgeBase {
    /// A UUID.
    pub id: String,
    pub name: String,
    /// The user who created it.
    pub user_id: Option<i64>,
    pub document_count: u64,
    pub created_at: Timestamp,
    /// Identifier of the embedding model of the stored vectors; `None` if there are none.
    pub embedder: Option<String>,
    /// The chunk size, if the user chose one.
    pub chunk_size: Option<ChunkSize>,
    /// Whether documents are still split with an earlier chunk size.
    pub stale: bool,
}

/// The size of the chunks of a knowledge base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSize {
    /// Maximum tokens of a chunk.
    pub tokens: u64,
    /// Maximum tokens that a chunk repeats from the previous one.
    pub overlap: u64,
}

/// The status of a document or of an indexing task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexingStatus {
    /// Waiting for a worker.
    Pending,
    /// A worker is indexing it.
    Processing,
    Completed,
    /// Indexing failed.
    Failed,
}

impl IndexingStatus {
    /// `pending`, `processing`, `completed` or `failed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

fn status(word: &str) -> Result<IndexingStatus, StoreError> {
    Ok(match word {
        "pending" => IndexingStatus::Pending,
        "processing" => IndexingStatus::Processing,
        "completed" => IndexingStatus::Completed,
        "failed" => IndexingStatus::Failed,
        other => return Err(damaged("the status of a document", other)),
    })
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// A UUID.
    pub id: String,
    pub kb_id: String,
    /// The file name of the upload.
    pub filename: String,
    pub status: IndexingStatus,
    /// Why indexing failed.
    pub error: Option<String>,
    /// In bytes.
    pub file_size: u64,
    pub created_at: Timestamp,
}

/// A new document. Its bytes are in the storage.
#[derive(Clone, Debug)]
pub struct NewDocument<'a> {
    /// A UUID.
    pub id: &'a str,
    pub kb_id: &'a str,
    pub filename: &'a str,
    /// In bytes.
    pub file_size: u64,
}

/// A task that indexes a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexingTask {
    /// A UUID.
    pub id: String,
    pub doc_id: String,
    pub kb_id: String,
    pub status: IndexingStatus,
    /// In percent.
    pub progress: u8,
    /// When the task was created.
    pub started_at: Timestamp,
    /// Why indexing failed.
    pub error: Option<String>,
}

/// A task that a worker has claimed, with its document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedTask {
    pub task: IndexingTask,
    pub document: Document,
    /// How often the task was claimed, this time included. A document that crashes its worker is
    /// given up after some attempts.
    pub attempt: u32,
}

/// A chunk of a document, the unit of search results.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// `<doc>_chunk_<n>`.
    pub id: String,
    pub doc_id: String,
    /// Position in the document, from 0.
    pub index: u64,
    pub text: String,
    /// Number of tokens.
    pub size: u64,
    /// The embedding vector, if it was loaded.
    pub embedding: Option<Vec<f32>>,
}

/// A search result. Its chunk has no vector.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkHit {
    pub chunk: Chunk,
    /// For full-text search: BM25 or similar, higher is better. For vector search: the cosine
    /// similarity.
    pub score: f64,
}

/// How vectors are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorSearch {
    /// By comparing with every vector in memory.
    Scan,
    /// By pgvector in the database.
    Pgvector,
}

/// The columns that [`base`] reads.
macro_rules! base_columns {
    () => {
        "SELECT id, name, user_id, created_at, embedder,
            (SELECT COUNT(*) FROM documents WHERE kb_id = bases.id),
            chunk_tokens, chunk_overlap, stale
         FROM bases "
    };
}

fn base(row: &Row) -> Result<KnowledgeBase, StoreError> {
    let chunk_size = match (row.maybe_number(6)?, row.maybe_number(7)?) {
        (Some(tokens), Some(overlap)) => {
            Some(ChunkSize { tokens: tokens.unsigned_abs(), overlap: overlap.unsigned_abs() })
        }
        _ => None,
    };
    Ok(KnowledgeBase {
        id: row.text(0)?,
        name: row.text(1)?,
        user_id: row.maybe_number(2)?,
        created_at: row.time(3)?,
        embedder: row.maybe_text(4)?,
        document_count: row.count(5)?,
        chunk_size,
        stale: row.number(8)? != 0,
    })
}

/// Reads `id, kb_id, filename, status, error, file_size, created_at`.
fn document(row: &Row) -> Result<Document, StoreError> {
    Ok(Document {
        id: row.text(0)?,
        kb_id: row.text(1)?,
        filename: row.text(2)?,
        status: status(&row.text(3)?)?,
        error: row.maybe_text(4)?,
        file_size: row.count(5)?,
        created_at: row.time(6)?,
    })
}

/// Increments the generation of a base and locks its row until the end of the transaction. Returns
/// false if there is no such base. To avoid deadlocks, transactions lock the base first, then the
/// document, then the task.
async fn touch(connection: &mut AnyConnection, kb_id: &str) -> Result<bool, StoreError> {
    let touched = sql("UPDATE bases SET generation = generation + 1 WHERE id = $1")
        .text(kb_id)
        .run(connection)
        .await?;
    Ok(touched == 1)
}

/// Clears the embedder of a base that has no vectors left, so that another one can be used.
async fn forget_embedder(connection: &mut AnyConnection, kb_id: &str) -> Result<(), StoreError> {
    sql("UPDATE bases SET embedder = NULL
         WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM vectors WHERE kb_id = $1)")
    .text(kb_id)
    .run(connection)
    .await
    .map(drop)
}

impl Knowledge<'_> {
    /// Creates a knowledge base.
    pub async fn create(
        &self,
        name: &str,
        user_id: Option<i64>,
    ) -> Result<KnowledgeBase, StoreError> {
        let row = sql("INSERT INTO bases (id, name, user_id, created_at, generation)
             VALUES ($1, $2, $3, $4, 0)
             RETURNING id, name, user_id, created_at, embedder, 0, chunk_tokens, chunk_overlap, stale")
        .text(&new_id())
        .text(name)
        .maybe_number(user_id)
        .time(Timestamp::now())
        .one(self.0.writer())
        .await?;
        base(&row)
    }

    /// Returns all knowledge bases, newest first.
    pub async fn list(&self) -> Result<Vec<KnowledgeBase>, StoreError> {
        let rows = sql(concat!(base_columns!(), "ORDER BY created_at DESC, id DESC"))
            .all(self.0.reader())
            .await?;
        rows.iter().map(base).collect()
    }

    pub async fn get(&self, id: &str) -> Result<Option<KnowledgeBase>, StoreError> {
        let row = sql(concat!(base_columns!(), "WHERE id = $1"))
            .text(id)
            .optional(self.0.reader())
            .await?;
        row.as_ref().map(base).transpose()
    }

    /// Finds a knowledge base by id or by name. If several have the name, prefers one of `user_id`,
    /// then the oldest.
    pub async fn resolve(
        &self,
        id_or_name: &str,
        user_id: Option<i64>,
    ) -> Result<Option<KnowledgeBase>, StoreError> {
        let row = sql(concat!(
            base_columns!(),
            "WHERE id = $1 OR name = $1
             ORDER BY CASE WHEN id = $1 THEN 0 WHEN user_id = $2 THEN 1 ELSE 2 END,
                created_at, id
             LIMIT 1"
        ))
        .text(id_or_name)
        .maybe_number(user_id)
        .optional(self.0.reader())
        .await?;
        row.as_ref().map(base).transpose()
    }

    /// Changes the name or the chunk size. Returns `None` if there is no such base. Documents that
    /// are already split keep their chunks until [`Self::index_again`].
    pub async fn update(
        &self,
        id: &str,
        name: Option<&str>,
        size: Option<ChunkSize>,
    ) -> Result<Option<KnowledgeBase>, StoreError> {
        let size_number = |number: fn(ChunkSize) -> u64| {
            size.map(|size| i64::try_from(number(size)).unwrap_or(i64::MAX))
        };
        sql("UPDATE bases SET name = COALESCE($2, name),
                stale = CASE WHEN chunk_tokens = $3 AND chunk_overlap = $4 OR $3 IS NULL
                    THEN stale ELSE 1 END,
                chunk_tokens = COALESCE($3, chunk_tokens),
                chunk_overlap = COALESCE($4, chunk_overlap)
             WHERE id = $1")
        .text(id)
        .maybe_text(name)
        .maybe_number(size_number(|size| size.tokens))
        .maybe_number(size_number(|size| size.overlap))
        .run(self.0.writer())
        .await?;
        self.get(id).await
    }

    /// Deletes the vectors of a base and queues all its documents for indexing. Returns the number
    /// of documents. Until they are indexed, full-text search finds the old chunks.
    pub async fn index_again(&self, id: &str) -> Result<u64, StoreError> {
        let mut transaction = self.0.begin().await?;
        if !touch(&mut transaction, id).await? {
            return Ok(0);
        }
        sql("DELETE FROM vectors WHERE kb_id = $1").text(id).run(&mut *transaction).await?;
        forget_embedder(&mut transaction, id).await?;
        sql("UPDATE bases SET stale = 0 WHERE id = $1").text(id).run(&mut *transaction).await?;
        let documents = sql("SELECT id FROM documents WHERE kb_id = $1 ORDER BY created_at, id")
            .text(id)
            .all(&mut *transaction)
            .await?;
        for document in &documents {
            tasks::ensure_task(&mut transaction, id, &document.text(0)?).await?;
        }
        transaction.commit().await?;
        self.0.cache().forget(id);
        Ok(documents.len() as u64)
    }

    /// Deletes a knowledge base with its documents. Returns the ids of the documents, whose bytes
    /// the caller must delete from the storage.
    pub async fn delete(&self, id: &str) -> Result<Option<Vec<String>>, StoreError> {
        let mut transaction = self.0.begin().await?;
        if self.0.kind() == DatabaseKind::Postgres {
            // The row lock prevents another process from adding a document while the ids are read.
            sql("SELECT id FROM bases WHERE id = $1 FOR UPDATE")
                .text(id)
                .run(&mut *transaction)
                .await?;
        }
        let rows = sql("SELECT id FROM documents WHERE kb_id = $1")
            .text(id)
            .all(&mut *transaction)
            .await?;
        let removed =
            sql("DELETE FROM bases WHERE id = $1").text(id).run(&mut *transaction).await?;
        transaction.commit().await?;
        self.0.cache().forget(id);
        if removed == 0 {
            return Ok(None);
        }
        rows.iter().map(|row| row.text(0)).collect::<Result<_, _>>().map(Some)
    }

    /// Returns the documents of a knowledge base, newest first.
    pub async fn documents(&self, kb_id: &str) -> Result<Vec<Document>, StoreError> {
        let rows = sql("SELECT id, kb_id, filename, status, error, file_size, created_at
             FROM documents WHERE kb_id = $1 ORDER BY created_at DESC, id DESC")
        .text(kb_id)
        .all(self.0.reader())
        .await?;
        rows.iter().map(document).collect()
    }

    /// Returns a page of a document's chunks in order, and how many chunks it has.
    pub async fn chunks(
        &self,
        kb_id: &str,
        doc_id: &str,
        limit: u64,
        offset: u64,
    ) -> Result<(Vec<Chunk>, u64), StoreError> {
        let total = sql("SELECT count(*) FROM chunks WHERE kb_id = $1 AND doc_id = $2")
            .text(kb_id)
            .text(doc_id)
            .one(self.0.reader())
            .await?
            .count(0)?;
        let rows = sql("SELECT id, doc_id, place, text, size FROM chunks
             WHERE kb_id = $1 AND doc_id = $2 ORDER BY place LIMIT $3 OFFSET $4")
        .text(kb_id)
        .text(doc_id)
        .count(limit)
        .count(offset)
        .all(self.0.reader())
        .await?;
        Ok((rows.iter().map(chunks::chunk).collect::<Result<_, _>>()?, total))
    }

    pub async fn document(&self, kb_id: &str, id: &str) -> Result<Option<Document>, StoreError> {
        let row = sql("SELECT id, kb_id, filename, status, error, file_size, created_at
             FROM documents WHERE kb_id = $1 AND id = $2")
        .text(kb_id)
        .text(id)
        .optional(self.0.reader())
        .await?;
        row.as_ref().map(document).transpose()
    }

    /// Deletes a document with its chunks from all indexes. Returns false if it does not exist.
    pub async fn delete_document(&self, kb_id: &str, id: &str) -> Result<bool, StoreError> {
        let mut transaction = self.0.begin().await?;
        if !touch(&mut transaction, kb_id).await? {
            return Ok(false);
        }
        let removed = sql("DELETE FROM documents WHERE kb_id = $1 AND id = $2")
            .text(kb_id)
            .text(id)
            .run(&mut *transaction)
            .await?;
        forget_embedder(&mut transaction, kb_id).await?;
        transaction.commit().await?;
        Ok(removed == 1)
    }
}
