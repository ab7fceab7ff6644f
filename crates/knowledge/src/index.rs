//! Runs the worker that indexes uploaded documents, one after the other.

use std::{
    future::Future,
    sync::atomic::{AtomicU8, Ordering},
    time::Duration,
};

use savoir_model::{Embedder, ModelError};
use savoir_store::{Chunk, ClaimedTask, KnowledgeBase, StoreError};
use thiserror::Error;
use tokio::time::sleep;

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

/// Reads the documents that were uploaded to any process of this database.
///
/// Several may run at once, in one process or in many: each has its own tasks.
#[derive(Debug)]
pub struct Indexer {
    knowledge: Knowledge,
    extractor: Extractor,
    worker: String,
}

/// Why a document is not indexed.
#[derive(Debug, Error)]
enum IndexError {
    /// The document cannot be read.
    #[error(transparent)]
    Extract(#[from] ExtractError),
    /// There is nothing to read.
    #[error("its bytes are not in the storage any more; upload it again")]
    BytesMissing,
    /// The chunks cannot be embedded.
    #[error("its embeddings could not be made: {}", .0.public_message())]
    Embed(#[from] ModelError),
    /// The knowledge base has vectors of another model.
    #[error("{}", SearchError::OtherModel)]
    OtherModel,
    /// The worker died too often with this document.
    #[error("reading it stopped the worker three times")]
    StopsWorkers,
    /// The document was removed, or another worker took over.
    #[error("another worker has it, or it is gone")]
    TakenOver,
    /// The database failed, so the document will be tried again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Indexer {
    /// A worker for the documents of a database.
    pub fn new(knowledge: Knowledge, extractor: Extractor) -> Self {
        let worker = format!("indexer-{}", uuid::Uuid::new_v4());
        Self { knowledge, extractor, worker }
    }

    /// Works until `shutdown`. A task that is not done by then is left to another worker, which
    /// takes it when its lease ends.
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
        let Some(claimed) = rows.claim_task(&self.worker, limits::TASK_LEASE).await? else {
            return Ok(false);
        };
        let progress = AtomicU8::new(0);
        let done = tokio::select! {
            done = self.index(&claimed, &progress) => done,
            () = self.keep_lease(&claimed, &progress) => Err(IndexError::TakenOver),
        };
        match done {
            Ok(()) => {}
            Err(error @ IndexError::TakenOver) => {
                tracing::warn!(document = claimed.document.id, %error, "a document was let go");
            }
            // The lease ends, and then it is tried again.
            Err(IndexError::Store(error)) => return Err(error),
            Err(error) => {
                tracing::info!(document = claimed.document.id, %error, "a document failed");
                rows.fail_task(&claimed.task.id, &self.worker, &error.to_string()).await?;
            }
        }
        Ok(true)
    }

    /// Renews the lease for as long as the task is ours.
    async fn keep_lease(&self, claimed: &ClaimedTask, progress: &AtomicU8) {
        loop {
            sleep(limits::TASK_HEARTBEAT).await;
            match self.report(claimed, progress).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => tracing::warn!(%error, "a lease was not renewed"),
            }
        }
    }

    async fn report(&self, claimed: &ClaimedTask, progress: &AtomicU8) -> Result<bool, StoreError> {
        let (task, worker) = (&claimed.task.id, &self.worker);
        let progress = progress.load(Ordering::Relaxed);
        let rows = self.knowledge.database.knowledge();
        rows.report_progress(task, worker, progress, limits::TASK_LEASE).await
    }

    async fn reached(
        &self,
        claimed: &ClaimedTask,
        progress: &AtomicU8,
        percent: u8,
    ) -> Result<(), IndexError> {
        progress.store(percent, Ordering::Relaxed);
        let ours = self.report(claimed, progress).await?;
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

    /// The size of the passages of a knowledge base.
    async fn size_of(&self, kb_id: &str) -> Result<Size, StoreError> {
        let base = self.knowledge.database.knowledge().get(kb_id).await?;
        Ok(base.and_then(|base| base.chunk_size).map_or_else(Size::default, Size::from))
    }

    /// Vectors of two models must not meet in one knowledge base.
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

/// The parts of a text; a large one takes a while.
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

/// Gives each chunk its vector; asks again if the embedder is busy.
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
