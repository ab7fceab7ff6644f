//! Inserts chunks into the full-text and vector indexes. Deleting a chunk's row removes it from
//! both.

use sqlx::AnyConnection;

use super::{Chunk, IndexingTask, VectorSearch, vectors, words::terms};
use crate::{
    Database, DatabaseKind, StoreError,
    sql::{Row, sql},
};

/// Reads `id, doc_id, place, text, size`.
pub(super) fn chunk(row: &Row) -> Result<Chunk, StoreError> {
    Ok(Chunk {
        id: row.text(0)?,
        doc_id: row.text(1)?,
        index: row.count(2)?,
        text: row.text(3)?,
        size: row.count(4)?,
        embedding: None,
    })
}

/// Inserts a chunk of a task's document into both indexes.
pub(super) async fn insert(
    database: &Database,
    connection: &mut AnyConnection,
    task: &IndexingTask,
    chunk: &Chunk,
) -> Result<(), StoreError> {
    let number = match database.kind() {
        DatabaseKind::Sqlite => insert_sqlite(connection, task, chunk).await?,
        DatabaseKind::Postgres => insert_postgres(connection, task, chunk).await?,
    };
    let Some(vector) = &chunk.embedding else { return Ok(()) };
    vectors::check(&chunk.id, vector)?;
    let statement = match database.vectors() {
        VectorSearch::Scan => {
            sql("INSERT INTO vectors (embedding, chunk, kb_id, dimensions) VALUES ($1, $2, $3, $4)")
                .bytes(&vectors::to_bytes(vector))
        }
        VectorSearch::Pgvector => sql("INSERT INTO vectors (point, chunk, kb_id, dimensions)
             VALUES (CAST($1 AS vector), $2, $3, $4)")
        .text(&vectors::to_text(vector)),
    };
    statement
        .number(number)
        .text(&task.kb_id)
        .count(vector.len() as u64)
        .run(connection)
        .await
        .map(drop)
}

async fn insert_sqlite(
    connection: &mut AnyConnection,
    task: &IndexingTask,
    chunk: &Chunk,
) -> Result<i64, StoreError> {
    let number = sql("INSERT INTO chunks (id, doc_id, kb_id, place, text, size)
         VALUES ($1, $2, $3, $4, $5, $6) RETURNING number")
    .text(&chunk.id)
    .text(&task.doc_id)
    .text(&task.kb_id)
    .count(chunk.index)
    .text(&chunk.text)
    .count(chunk.size)
    .one(&mut *connection)
    .await?
    .number(0)?;
    sql("INSERT INTO chunk_words (rowid, words) VALUES ($1, $2)")
        .number(number)
        .text(&terms(&chunk.text).join(" "))
        .run(connection)
        .await?;
    Ok(number)
}

async fn insert_postgres(
    connection: &mut AnyConnection,
    task: &IndexingTask,
    chunk: &Chunk,
) -> Result<i64, StoreError> {
    let terms = terms(&chunk.text);
    sql("INSERT INTO chunks (id, doc_id, kb_id, place, text, size, words, word_count)
         VALUES ($1, $2, $3, $4, $5, $6, to_tsvector('savoir', $7), $8) RETURNING number")
    .text(&chunk.id)
    .text(&task.doc_id)
    .text(&task.kb_id)
    .count(chunk.index)
    .text(&chunk.text)
    .count(chunk.size)
    .text(&terms.join(" "))
    .count(terms.len() as u64)
    .one(connection)
    .await?
    .number(0)
}
