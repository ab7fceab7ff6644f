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

/// The knowledge of a database.
#[derive(Clone, Copy, Debug)]
pub struct Knowledge<'a>(pub(crate) &'a Database);

/// A knowledge base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnowledgeBase {
    /// A UUID.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Who made it.
    pub user_id: Option<i64>,
    /// How many documents it has.
    pub document_count: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// Identity of the embedder whose vectors it holds; `None` before the first, or without
    /// vectors.
    pub embedder: Option<String>,
    /// The size of its passages, if it was chosen.
    pub chunk_size: Option<ChunkSize>,
    /// Whether its documents are still split by another size.
    pub stale: bool,
}

/// The size of the passages of a knowledge base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSize {
    /// Maximum tokens of a passage.
    pub tokens: u64,
    /// Maximum tokens that a passage repeats from the one before.
    pub overlap: u64,
}

/// How far a document or a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexingStatus {
    /// Waits for a worker.
    Pending,
    /// A worker is at it.
    Processing,
    /// Done.
    Completed,
    /// It cannot be done.
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

/// A document of a knowledge base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// A UUID.
    pub id: String,
    /// The knowledge base.
    pub kb_id: String,
    /// Its name, as it was uploaded.
    pub filename: String,
    /// How far it is.
    pub status: IndexingStatus,
    /// Why it failed.
    pub error: Option<String>,
    /// In bytes.
    pub file_size: u64,
    /// When it was uploaded.
    pub created_at: Timestamp,
}

/// A document that is to be kept. Its bytes lie in the storage.
#[derive(Clone, Debug)]
pub struct NewDocument<'a> {
    /// A UUID.
    pub id: &'a str,
    /// The knowledge base.
    pub kb_id: &'a str,
    /// Its name.
    pub filename: &'a str,
    /// In bytes.
    pub file_size: u64,
}

/// Work on a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexingTask {
    /// A UUID.
    pub id: String,
    /// The document.
    pub doc_id: String,
    /// Its knowledge base.
    pub kb_id: String,
    /// How far it is.
    pub status: IndexingStatus,
    /// 0 to 100.
    pub progress: u8,
    /// When it was asked for.
    pub started_at: Timestamp,
    /// Why it failed.
    pub error: Option<String>,
}

/// A task that a worker has taken, with its document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedTask {
    /// The task.
    pub task: IndexingTask,
    /// Its document.
    pub document: Document,
    /// How often it was taken, this time included. A document that kills its worker stops being
    /// tried.
    pub attempt: u32,
}

/// A part of a document, as it is found.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// `<doc>_chunk_<n>`.
    pub id: String,
    /// The document.
    pub doc_id: String,
    /// Its place in the document, from 0.
    pub index: u64,
    /// Its words.
    pub text: String,
    /// How many tokens it has.
    pub size: u64,
    /// Its vector.
    pub embedding: Option<Vec<f32>>,
}

/// Something that was found. Its chunk has no vector.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkHit {
    /// What was found.
    pub chunk: Chunk,
    /// For words: BM25 or the like, higher is better. For vectors: the cosine.
    pub score: f64,
}

/// How vectors are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorSearch {
    /// One after the other.
    Scan,
    /// By pgvector, in the database.
    Pgvector,
}

/// What [`base`] reads.
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

/// Marks that the chunks of a base change, and keeps others from changing them until the end of the
/// transaction; false if there is no such base. Transactions lock the base first, then the
/// document, then the task: two that did it in another order would wait for each other.
async fn touch(connection: &mut AnyConnection, kb_id: &str) -> Result<bool, StoreError> {
    let touched = sql("UPDATE bases SET generation = generation + 1 WHERE id = $1")
        .text(kb_id)
        .run(connection)
        .await?;
    Ok(touched == 1)
}

/// Forgets whose vectors a base holds if it holds none.
async fn forget_embedder(connection: &mut AnyConnection, kb_id: &str) -> Result<(), StoreError> {
    sql("UPDATE bases SET embedder = NULL
         WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM vectors WHERE kb_id = $1)")
    .text(kb_id)
    .run(connection)
    .await
    .map(drop)
}

impl Knowledge<'_> {
    /// Makes a knowledge base.
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

    /// All knowledge bases, newest first.
    pub async fn list(&self) -> Result<Vec<KnowledgeBase>, StoreError> {
        let rows = sql(concat!(base_columns!(), "ORDER BY created_at DESC, id DESC"))
            .all(self.0.reader())
            .await?;
        rows.iter().map(base).collect()
    }

    /// The knowledge base of an id.
    pub async fn get(&self, id: &str) -> Result<Option<KnowledgeBase>, StoreError> {
        let row = sql(concat!(base_columns!(), "WHERE id = $1"))
            .text(id)
            .optional(self.0.reader())
            .await?;
        row.as_ref().map(base).transpose()
    }

    /// The knowledge base of an id or else of a name: the one of `user_id` first, then the oldest.
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

    /// Changes the name or the size of passages; `None` if there is no such base. Documents that
    /// are already split stay as they are until [`Self::index_again`].
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

    /// Forgets the vectors of a base and lets all its documents be indexed again; gives the number
    /// of documents. Until then the old passages are found by their words.
    pub async fn index_again(&self, id: &str) -> Result<u64, StoreError> {
        let mut transaction = self.0.begin().await?;
        if !touch(&mut transaction, id).await? {
            return Ok(0);
        }
        sql("DELETE FROM vectors WHERE kb_id = $1").text(id).run(&mut *transaction).await?;
        forget_embedder(&mut transaction, id).await?;
        sql("UPDATE bases SET stale = 0 WHERE id = $1").text(id).run(&mut *transaction).await?;
        transaction.commit().await?;
        self.0.cache().forget(id);
        let documents = self.documents(id).await?;
        for document in &documents {
            self.add_task(id, &document.id).await?;
        }
        Ok(documents.len() as u64)
    }

    /// Removes a knowledge base with all that is in it; gives the ids of its documents, whose bytes
    /// are to be removed from the storage.
    pub async fn delete(&self, id: &str) -> Result<Option<Vec<String>>, StoreError> {
        let mut transaction = self.0.begin().await?;
        if self.0.kind() == DatabaseKind::Postgres {
            // No document is added behind the back of the list below.
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

    /// The documents of a knowledge base, newest first.
    pub async fn documents(&self, kb_id: &str) -> Result<Vec<Document>, StoreError> {
        let rows = sql("SELECT id, kb_id, filename, status, error, file_size, created_at
             FROM documents WHERE kb_id = $1 ORDER BY created_at DESC, id DESC")
        .text(kb_id)
        .all(self.0.reader())
        .await?;
        rows.iter().map(document).collect()
    }

    /// The passages of a document in order, at most `limit` after the first `offset`; and how many
    /// there are.
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

    /// A document.
    pub async fn document(&self, kb_id: &str, id: &str) -> Result<Option<Document>, StoreError> {
        let row = sql("SELECT id, kb_id, filename, status, error, file_size, created_at
             FROM documents WHERE kb_id = $1 AND id = $2")
        .text(kb_id)
        .text(id)
        .optional(self.0.reader())
        .await?;
        row.as_ref().map(document).transpose()
    }

    /// Removes a document with its chunks, from every index; false if there is none.
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
