//! The queue of indexing tasks, which survives a crash of the worker.

use std::time::Duration;

use sqlx::AnyConnection;

use super::{
    Chunk, ClaimedTask, Document, IndexingStatus, IndexingTask, Knowledge, NewDocument, chunks,
    document, forget_embedder, status, touch,
};
use crate::{
    StoreError, Timestamp,
    quota::Addition,
    sql::{Row, built, new_id, sql},
};

/// Reads `id, doc_id, kb_id, status, progress, started_at, error`.
fn task(row: &Row) -> Result<IndexingTask, StoreError> {
    Ok(IndexingTask {
        id: row.text(0)?,
        doc_id: row.text(1)?,
        kb_id: row.text(2)?,
        status: status(&row.text(3)?)?,
        progress: u8::try_from(row.number(4)?).unwrap_or(100),
        started_at: row.time(5)?,
        error: row.maybe_text(6)?,
    })
}

/// A task that can be claimed.
struct WaitingTask {
    id: String,
    doc_id: String,
    /// The user who owns the knowledge base; 0 if it has no owner.
    turn_of: i64,
}

async fn insert_task(
    connection: &mut AnyConnection,
    kb_id: &str,
    doc_id: &str,
) -> Result<IndexingTask, StoreError> {
    let row = sql("INSERT INTO tasks (id, doc_id, kb_id, status, progress, started_at, attempts)
         VALUES ($1, $2, $3, 'pending', 0, $4, 0)
         RETURNING id, doc_id, kb_id, status, progress, started_at, error")
    .text(&new_id())
    .text(doc_id)
    .text(kb_id)
    .time(Timestamp::now())
    .one(connection)
    .await?;
    task(&row)
}

/// The task of a document that waits or is being worked on, or a new one.
pub(super) async fn ensure_task(
    connection: &mut AnyConnection,
    kb_id: &str,
    doc_id: &str,
) -> Result<IndexingTask, StoreError> {
    // The update changes nothing but locks the row.
    let found = sql("UPDATE documents SET error = error WHERE kb_id = $1 AND id = $2")
        .text(kb_id)
        .text(doc_id)
        .run(&mut *connection)
        .await?;
    if found == 0 {
        return Err(sqlx::Error::RowNotFound.into());
    }
    let open = sql("SELECT id, doc_id, kb_id, status, progress, started_at, error FROM tasks
         WHERE doc_id = $1 AND status IN ('pending', 'processing')
         ORDER BY started_at DESC LIMIT 1")
    .text(doc_id)
    .optional(&mut *connection)
    .await?;
    if let Some(row) = open {
        return task(&row);
    }
    set_document(&mut *connection, doc_id, IndexingStatus::Pending, None).await?;
    insert_task(connection, kb_id, doc_id).await
}

async fn set_document(
    connection: &mut AnyConnection,
    id: &str,
    status: IndexingStatus,
    error: Option<&str>,
) -> Result<Option<Document>, StoreError> {
    let row = sql("UPDATE documents SET status = $2, error = $3 WHERE id = $1
         RETURNING id, kb_id, filename, status, error, file_size, created_at")
    .text(id)
    .text(status.as_str())
    .maybe_text(error)
    .optional(connection)
    .await?;
    row.as_ref().map(document).transpose()
}

/// Ends a task that a worker has claimed. Returns false if another worker has claimed it since.
async fn end_task(
    connection: &mut AnyConnection,
    id: &str,
    worker: &str,
    status: IndexingStatus,
    error: Option<&str>,
) -> Result<bool, StoreError> {
    let ended = sql("UPDATE tasks SET status = $3, error = $4, ended_at = $5, worker = NULL,
            lease_ends_at = NULL, progress = CASE WHEN $3 = 'completed' THEN 100 ELSE progress END
         WHERE id = $1 AND worker = $2 AND status = 'processing'")
    .text(id)
    .text(worker)
    .text(status.as_str())
    .maybe_text(error)
    .time(Timestamp::now())
    .run(connection)
    .await?;
    Ok(ended == 1)
}

/// Records which embedding model produced the vectors of a base.
async fn note_embedder(
    connection: &mut AnyConnection,
    kb_id: &str,
    embedder: &str,
) -> Result<(), StoreError> {
    let noted = sql("UPDATE bases SET embedder = $2
         WHERE id = $1 AND (embedder IS NULL OR embedder = $2)")
    .text(kb_id)
    .text(embedder)
    .run(connection)
    .await?;
    if noted == 1 {
        return Ok(());
    }
    Err(StoreError::Setting(format!(
        "the knowledge base holds vectors of another embedder than {embedder}"
    )))
}

impl Knowledge<'_> {
    /// Stores a document and a task to index it, both pending.
    pub async fn add_document(
        &self,
        document: NewDocument<'_>,
    ) -> Result<(Document, IndexingTask), StoreError> {
        let NewDocument { id, kb_id, filename, file_size } = document;
        let mut transaction = self.0.begin().await?;
        let owner = sql("SELECT user_id FROM bases WHERE id = $1")
            .text(kb_id)
            .optional(&mut *transaction)
            .await?;
        let owner = owner.map(|row| row.maybe_number(0)).transpose()?.flatten();
        let addition = Addition::Document { bytes: file_size };
        self.0.take_quota(&mut transaction, owner, addition).await?;
        let row = sql("INSERT INTO documents (id, kb_id, filename, status, file_size, created_at)
             VALUES ($1, $2, $3, 'pending', $4, $5)
             RETURNING id, kb_id, filename, status, error, file_size, created_at")
        .text(id)
        .text(kb_id)
        .text(filename)
        .count(file_size)
        .time(Timestamp::now())
        .one(&mut *transaction)
        .await?;
        let task = insert_task(&mut transaction, kb_id, id).await?;
        transaction.commit().await?;
        Ok((super::document(&row)?, task))
    }

    /// Queues a document for indexing. If a task for it is already running, returns that task.
    pub async fn add_task(&self, kb_id: &str, doc_id: &str) -> Result<IndexingTask, StoreError> {
        let mut transaction = self.0.begin().await?;
        let task = ensure_task(&mut transaction, kb_id, doc_id).await?;
        transaction.commit().await?;
        Ok(task)
    }

    pub async fn task(&self, id: &str) -> Result<Option<IndexingTask>, StoreError> {
        let row = sql("SELECT id, doc_id, kb_id, status, progress, started_at, error
             FROM tasks WHERE id = $1")
        .text(id)
        .optional(self.0.reader())
        .await?;
        row.as_ref().map(task).transpose()
    }

    /// Counts the documents in a user's knowledge bases that wait for a worker.
    pub async fn waiting(&self, user_id: i64) -> Result<u64, StoreError> {
        sql("SELECT COUNT(*) FROM tasks JOIN bases ON bases.id = tasks.kb_id
             WHERE bases.user_id = $1 AND tasks.status = 'pending'")
        .number(user_id)
        .one(self.0.reader())
        .await?
        .count(0)
    }

    /// Claims a task that is pending or whose worker died. The claim expires after `lease` unless
    /// it is renewed. Users take turns, so that nobody waits for all documents of another user; the
    /// oldest task of a user comes first.
    pub async fn claim_task(
        &self,
        worker: &str,
        lease: Duration,
    ) -> Result<Option<ClaimedTask>, StoreError> {
        loop {
            let row = built(format!(
                "SELECT tasks.id, tasks.doc_id, COALESCE(bases.user_id, 0)
                 FROM tasks JOIN bases ON bases.id = tasks.kb_id
                    LEFT JOIN turns ON turns.user_id = COALESCE(bases.user_id, 0)
                 WHERE tasks.status = 'pending'
                    OR (tasks.status = 'processing' AND tasks.lease_ends_at <= {})
                 ORDER BY COALESCE(turns.number, 0), tasks.started_at, tasks.id LIMIT 1",
                self.0.clock()
            ))
            .optional(self.0.reader())
            .await?;
            let Some(row) = row else { return Ok(None) };
            let candidate =
                WaitingTask { id: row.text(0)?, doc_id: row.text(1)?, turn_of: row.number(2)? };
            let claimed = self.claim(&candidate, worker, lease).await?;
            // If another worker claimed this task first, try the next one.
            if claimed.is_some() {
                return Ok(claimed);
            }
        }
    }

    async fn claim(
        &self,
        candidate: &WaitingTask,
        worker: &str,
        lease: Duration,
    ) -> Result<Option<ClaimedTask>, StoreError> {
        let WaitingTask { id, doc_id, turn_of } = candidate;
        let mut transaction = self.0.begin().await?;
        let document =
            set_document(&mut transaction, doc_id, IndexingStatus::Processing, None).await?;
        let Some(document) = document else { return Ok(None) };
        let now = self.0.clock();
        let row = built(format!(
            "UPDATE tasks SET status = 'processing', worker = $2, lease_ends_at = {now} + $3,
                progress = 0, attempts = attempts + 1
             WHERE id = $1
                AND (status = 'pending' OR (status = 'processing' AND lease_ends_at <= {now}))
             RETURNING id, doc_id, kb_id, status, progress, started_at, error, attempts"
        ))
        .text(id)
        .text(worker)
        .duration(lease)
        .optional(&mut *transaction)
        .await?;
        let Some(row) = row else { return Ok(None) };
        // Move this user to the end of the order. It is a counter and not a time, because the
        // clocks of processes differ.
        sql("INSERT INTO turns (user_id, number)
             VALUES ($1, (SELECT COALESCE(MAX(number), 0) + 1 FROM turns))
             ON CONFLICT (user_id) DO UPDATE SET number = excluded.number")
        .number(*turn_of)
        .run(&mut *transaction)
        .await?;
        transaction.commit().await?;
        let attempt = u32::try_from(row.number(7)?).unwrap_or(u32::MAX);
        Ok(Some(ClaimedTask { task: task(&row)?, document, attempt }))
    }

    /// Records the progress of a claimed task and renews the lease. Returns false if another worker
    /// has claimed it since.
    pub async fn report_progress(
        &self,
        task_id: &str,
        worker: &str,
        progress: u8,
        lease: Duration,
    ) -> Result<bool, StoreError> {
        let renewed = built(format!(
            "UPDATE tasks SET progress = $3, lease_ends_at = {} + $4
             WHERE id = $1 AND worker = $2 AND status = 'processing'",
            self.0.clock()
        ))
        .text(task_id)
        .text(worker)
        .number(i64::from(progress.min(100)))
        .duration(lease)
        .run(self.0.writer())
        .await?;
        Ok(renewed == 1)
    }

    /// Completes a claimed task: replaces the document's chunks and marks it as completed, in one
    /// transaction. Returns false if another worker has claimed the task since, or the document was
    /// deleted. Fails if the vectors come from another embedding model than the stored ones of the
    /// base.
    pub async fn complete_task(
        &self,
        task_id: &str,
        worker: &str,
        chunks: &[Chunk],
        embedder: Option<&str>,
    ) -> Result<bool, StoreError> {
        let Some(task) = self.task(task_id).await? else { return Ok(false) };
        let mut transaction = self.0.begin().await?;
        let connection = &mut *transaction;
        if !touch(connection, &task.kb_id).await?
            || set_document(connection, &task.doc_id, IndexingStatus::Completed, None)
                .await?
                .is_none()
            || !end_task(connection, task_id, worker, IndexingStatus::Completed, None).await?
        {
            return Ok(false);
        }
        sql("DELETE FROM chunks WHERE doc_id = $1")
            .text(&task.doc_id)
            .run(&mut *connection)
            .await?;
        forget_embedder(connection, &task.kb_id).await?;
        if let Some(embedder) = embedder
            && chunks.iter().any(|chunk| chunk.embedding.is_some())
        {
            note_embedder(connection, &task.kb_id, embedder).await?;
        }
        for chunk in chunks {
            chunks::insert(self.0, connection, &task, chunk).await?;
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// Ends a claimed task that failed, and stores the reason with its document.
    pub async fn fail_task(
        &self,
        task_id: &str,
        worker: &str,
        error: &str,
    ) -> Result<bool, StoreError> {
        let Some(task) = self.task(task_id).await? else { return Ok(false) };
        let mut transaction = self.0.begin().await?;
        let connection = &mut *transaction;
        if set_document(connection, &task.doc_id, IndexingStatus::Failed, Some(error))
            .await?
            .is_none()
            || !end_task(connection, task_id, worker, IndexingStatus::Failed, Some(error)).await?
        {
            return Ok(false);
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// Lets any worker take a claimed task after a pause, because this one cannot reach what it
    /// needs. The attempt does not count: the document did no harm.
    pub async fn release_task(
        &self,
        task_id: &str,
        worker: &str,
        pause: Duration,
    ) -> Result<bool, StoreError> {
        // As the task of a worker that died, whose lease ends with the pause.
        let released = built(format!(
            "UPDATE tasks SET worker = NULL, lease_ends_at = {} + $3, attempts = attempts - 1
             WHERE id = $1 AND worker = $2 AND status = 'processing'",
            self.0.clock()
        ))
        .text(task_id)
        .text(worker)
        .duration(pause)
        .run(self.0.writer())
        .await?;
        Ok(released == 1)
    }

    /// Uncounts the attempt of a worker that another one took a task from, because it was slow: the
    /// document did not stop it.
    pub async fn forgive_attempt(&self, task_id: &str, worker: &str) -> Result<(), StoreError> {
        sql("UPDATE tasks SET attempts = attempts - 1
             WHERE id = $1 AND worker <> $2 AND status = 'processing' AND attempts > 1")
        .text(task_id)
        .text(worker)
        .run(self.0.writer())
        .await
        .map(drop)
    }

    /// Deletes tasks that ended before a time.
    pub async fn sweep_tasks(&self, before: Timestamp) -> Result<u64, StoreError> {
        sql("DELETE FROM tasks WHERE ended_at < $1").time(before).run(self.0.writer()).await
    }
}
