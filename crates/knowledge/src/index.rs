//! Runs the worker that indexes uploaded documents, one after the other.

use std::{
    collections::HashMap,
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use savoir_model::{Embedder, ModelError};
use savoir_store::{Chunk, ClaimedTask, KnowledgeBase, StoreError};
use thiserror::Error;
use tokio::{task::JoinSet, time::sleep};

use super::{
    Knowledge, SearchError,
    chunk::{self, Size, TextChunk},
    extract::{ExtractError, Extractor},
    key,
};
use crate::limits;

/// Progress in percent when the text is extracted.
const EXTRACTED_PERCENT: u8 = 10;
/// Progress in percent when the text is split.
const CHUNKED_PERCENT: u8 = 20;
/// Progress in percent when all chunks are embedded.
const EMBEDDED_PERCENT: u8 = 95;

/// Indexes the documents that were uploaded to any process of this database.
///
/// Several indexers can run at the same time, in one process or in many: each task is claimed by
/// one.
#[derive(Debug)]
pub struct Indexer {
    knowledge: Knowledge,
    extractor: Extractor,
    worker: String,
    /// The tasks for which the database or the storage failed.
    failures: Mutex<Failures>,
}

/// The tasks of a worker for which the database or the storage failed.
#[derive(Debug, Default)]
struct Failures {
    /// A task that could not be released, because the database failed, and the pause after which it
    /// may be claimed again.
    unreleased: Option<(String, Duration)>,
    /// How often each task failed.
    counts: HashMap<String, u32>,
}

impl Failures {
    /// Counts a failure of a task.
    fn count(&mut self, task: &str) -> u32 {
        // Tasks that other workers completed are never removed one by one.
        if self.counts.len() >= MAX_COUNTED_TASKS {
            self.counts.clear();
        }
        let count = self.counts.entry(task.to_owned()).or_default();
        *count += 1;
        *count
    }
}

/// Maximum tasks whose failures are counted.
const MAX_COUNTED_TASKS: usize = 1000;

/// The pause after a number of failures in a row.
fn retry_pause(failures: u32) -> Duration {
    let (first, longest) = limits::RETRY_PAUSES;
    first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(longest)
}

/// Why a document is not indexed.
#[derive(Debug, Error)]
enum IndexError {
    /// The document cannot be read.
    #[error(transparent)]
    Extract(#[from] ExtractError),
    /// The uploaded bytes are missing.
    #[error("its bytes are not in the storage any more; upload it again")]
    BytesMissing,
    /// The chunks cannot be embedded.
    #[error("its embeddings could not be made: {}", .0.public_message())]
    Embed(#[from] ModelError),
    /// The knowledge base has vectors of another model.
    #[error("{}", SearchError::OtherModel)]
    OtherModel,
    /// The worker crashed too often with this document.
    #[error("reading it stopped the worker three times")]
    StopsWorkers,
    /// The document was deleted, or another worker has claimed the task.
    #[error("another worker has it, or it is gone")]
    TakenOver,
    /// The database failed; the document will be tried again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Indexer {
    /// Creates a worker for the documents of a database.
    pub fn new(knowledge: Knowledge, extractor: Extractor) -> Self {
        let worker = format!("indexer-{}", uuid::Uuid::new_v4());
        Self { knowledge, extractor, worker, failures: Mutex::default() }
    }

    /// Runs until `shutdown`. An unfinished task is left to another worker, which can claim it when
    /// the lease expires.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) {
        tokio::select! {
            () = shutdown => {}
            () = self.work() => {}
        }
    }

    async fn work(&self) {
        let (shortest, longest) = limits::TASK_POLL_INTERVALS;
        let mut pause = shortest;
        loop {
            match self.run_one().await {
                Ok(true) => {
                    pause = shortest;
                    continue;
                }
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "documents cannot be indexed"),
            }
            tokio::select! {
                () = self.knowledge.uploaded() => pause = shortest,
                () = sleep(pause) => pause = (pause * 2).min(longest),
            }
        }
    }

    /// Runs one task; returns false if there is none.
    pub async fn run_one(&self) -> Result<bool, StoreError> {
        let rows = self.knowledge.database.knowledge();
        self.release_task().await?;
        let Some(claimed) = rows.claim_task(&self.worker, limits::TASK_LEASE).await? else {
            return Ok(false);
        };
        let progress = Arc::new(AtomicU8::new(0));
        let mut lease = self.keep_lease(&claimed, &progress);
        let done = tokio::select! {
            biased;
            done = self.index(&claimed, &progress) => done,
            _ = lease.join_next() => Err(IndexError::TakenOver),
        };
        drop(lease);
        if let Err(error) = done {
            self.end_failed(&claimed, error).await?;
        }
        self.failures().counts.remove(&claimed.task.id);
        Ok(true)
    }

    /// Ends a task that failed, or leaves it for later. Returns the error of the database or the
    /// storage if there will be another try.
    async fn end_failed(&self, claimed: &ClaimedTask, error: IndexError) -> Result<(), StoreError> {
        let rows = self.knowledge.database.knowledge();
        let task = &claimed.task.id;
        let error = match error {
            IndexError::TakenOver => {
                tracing::warn!(document = claimed.document.id, %error, "a document was let go");
                return rows.forgive_attempt(task, &self.worker).await;
            }
            IndexError::Store(error) => {
                // If the failure is not temporary, the lease expires, and the task is tried again.
                if !error.is_temporary() || !self.try_later(task, &error).await {
                    return Err(error);
                }
                IndexError::Store(error)
            }
            error => error,
        };
        tracing::info!(document = claimed.document.id, %error, "a document failed");
        rows.fail_task(task, &self.worker, &error.to_string()).await.map(drop)
    }

    fn failures(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases a task for which the database or the storage failed, so that it is tried again
    /// after a pause. Returns true if it has failed too often.
    async fn try_later(&self, task: &str, error: &StoreError) -> bool {
        let count = {
            let mut failures = self.failures();
            let count = failures.count(task);
            failures.unreleased = Some((task.to_owned(), retry_pause(count)));
            count
        };
        if matches!(error, StoreError::Denied { .. }) && count >= limits::MAX_DENIED_TRIES {
            self.failures().unreleased = None;
            return true;
        }
        // If this fails as well, it is tried again before the next task.
        let _ = self.release_task().await;
        false
    }

    /// Releases the task for which the database or the storage failed.
    async fn release_task(&self) -> Result<(), StoreError> {
        let Some((task, pause)) = self.failures().unreleased.clone() else { return Ok(()) };
        self.knowledge.database.knowledge().release_task(&task, &self.worker, pause).await?;
        self.failures().unreleased = None;
        Ok(())
    }

    /// Renews the lease of a task, until the set is dropped or another worker has claimed the task.
    /// It is a task of its own, because indexing that blocks its thread would delay the renewals.
    fn keep_lease(&self, claimed: &ClaimedTask, progress: &Arc<AtomicU8>) -> JoinSet<()> {
        let (database, progress) = (self.knowledge.database.clone(), Arc::clone(progress));
        let (task, worker) = (claimed.task.id.clone(), self.worker.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                sleep(limits::TASK_HEARTBEAT).await;
                let percent = progress.load(Ordering::Relaxed);
                let rows = database.knowledge();
                match rows.report_progress(&task, &worker, percent, limits::TASK_LEASE).await {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(error) => tracing::warn!(%error, "a lease was not renewed"),
                }
            }
        });
        tasks
    }

    async fn reached(
        &self,
        claimed: &ClaimedTask,
        progress: &AtomicU8,
        percent: u8,
    ) -> Result<(), IndexError> {
        progress.store(percent, Ordering::Relaxed);
        let rows = self.knowledge.database.knowledge();
        let (task, lease) = (&claimed.task.id, limits::TASK_LEASE);
        let ours = rows.report_progress(task, &self.worker, percent, lease).await?;
        if ours { Ok(()) } else { Err(IndexError::TakenOver) }
    }

    async fn index(&self, claimed: &ClaimedTask, progress: &AtomicU8) -> Result<(), IndexError> {
        let ClaimedTask { task, document, attempt } = claimed;
        if *attempt > limits::MAX_TASK_ATTEMPTS {
            return Err(IndexError::StopsWorkers);
        }
        let knowledge = &self.knowledge;
        let embedder = knowledge.embedder.as_deref();
        if let Some(embedder) = embedder {
            self.check_model(&document.kb_id, embedder).await?;
        }
        let bytes = knowledge.storage.get(&key(&document.kb_id, &document.id)).await?;
        let bytes = bytes.ok_or(IndexError::BytesMissing)?;
        let text = self.extractor.extract(&document.filename, bytes).await?;
        self.reached(claimed, progress, EXTRACTED_PERCENT).await?;
        let parts = split_text(text, self.size_of(&document.kb_id).await?).await;
        self.reached(claimed, progress, CHUNKED_PERCENT).await?;
        let mut chunks: Vec<Chunk> =
            parts.into_iter().map(|part| to_chunk(&document.id, part)).collect();
        if let Some(embedder) = embedder {
            let all = chunks.len();
            let mut done = 0;
            for some in chunks.chunks_mut(limits::EMBEDDING_BATCH) {
                embed(embedder, some, limits::EMBED_PAUSE).await?;
                done += some.len();
                self.reached(claimed, progress, progress_percent(done, all)).await?;
            }
        }
        let identity = embedder.map(Embedder::identity);
        let rows = knowledge.database.knowledge();
        let kept = rows.complete_task(&task.id, &self.worker, &chunks, identity).await?;
        tracing::info!(document = document.id, chunks = chunks.len(), kept, "a document was read");
        Ok(())
    }

    /// Returns the chunk size of a knowledge base.
    async fn size_of(&self, kb_id: &str) -> Result<Size, StoreError> {
        let base = self.knowledge.database.knowledge().get(kb_id).await?;
        Ok(base.and_then(|base| base.chunk_size).map_or_else(Size::default, Size::from))
    }

    /// A knowledge base must not contain vectors of two models.
    async fn check_model(&self, kb_id: &str, embedder: &dyn Embedder) -> Result<(), IndexError> {
        let base = self.knowledge.database.knowledge().get(kb_id).await?;
        match base {
            Some(KnowledgeBase { embedder: Some(there), .. }) if there != embedder.identity() => {
                Err(IndexError::OtherModel)
            }
            _ => Ok(()),
        }
    }
}

/// Splits a text on a blocking thread, because a large one takes a while.
async fn split_text(text: String, size: Size) -> Vec<TextChunk> {
    let cut = move || chunk::split(&text, size, chunk::estimate_tokens);
    tokio::task::spawn_blocking(cut).await.unwrap_or_default()
}

fn to_chunk(doc_id: &str, part: TextChunk) -> Chunk {
    Chunk {
        id: format!("{doc_id}_chunk_{}", part.index),
        doc_id: doc_id.to_owned(),
        index: part.index,
        text: part.text,
        size: part.tokens,
        embedding: None,
    }
}

/// Returns the progress in percent while chunks are embedded.
fn progress_percent(done: usize, all: usize) -> u8 {
    let span = usize::from(EMBEDDED_PERCENT - CHUNKED_PERCENT);
    CHUNKED_PERCENT + (span * done / all.max(1)).min(span) as u8
}

/// Computes the vectors of the chunks; retries if the embedder is busy.
async fn embed(
    embedder: &dyn Embedder,
    chunks: &mut [Chunk],
    mut pause: Duration,
) -> Result<(), ModelError> {
    let texts: Vec<String> = chunks.iter().map(|chunk| chunk.text.clone()).collect();
    let mut attempt = 1;
    let vectors = loop {
        match embedder.embed(texts.clone()).await {
            Ok(vectors) => break vectors,
            Err(error) if attempt < limits::MAX_EMBED_ATTEMPTS && is_temporary(&error) => {
                tracing::debug!(%error, attempt, "chunks were not embedded");
                sleep(pause).await;
                (attempt, pause) = (attempt + 1, pause * 4);
            }
            Err(error) => return Err(error),
        }
    };
    if vectors.len() != chunks.len() {
        return Err(ModelError::InvalidResponse {
            provider: embedder.identity().to_owned(),
            message: format!("{} vectors for {} texts", vectors.len(), chunks.len()),
        });
    }
    for (chunk, vector) in chunks.iter_mut().zip(vectors) {
        chunk.embedding = Some(vector);
    }
    Ok(())
}

/// Whether a retry may succeed.
fn is_temporary(error: &ModelError) -> bool {
    match error {
        ModelError::Unreachable { .. } | ModelError::TimedOut { .. } => true,
        ModelError::Refused { status, .. } => matches!(status, 408 | 429 | 500..),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
