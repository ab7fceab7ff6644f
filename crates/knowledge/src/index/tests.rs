use std::{collections::VecDeque, sync::Mutex};

use futures::{FutureExt as _, future::BoxFuture};

use super::*;

/// An embedder with prepared results; afterwards it returns one vector per text.
#[derive(Debug, Default)]
struct Scripted {
    answers: Mutex<VecDeque<Result<usize, ModelError>>>,
    asked: Mutex<Vec<usize>>,
}

impl Scripted {
    fn new(answers: impl IntoIterator<Item = Result<usize, ModelError>>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() }
    }

    fn asked(&self) -> Vec<usize> {
        self.asked.lock().unwrap().clone()
    }
}

impl Embedder for Scripted {
    fn identity(&self) -> &'static str {
        "test:scripted"
    }

    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, ModelError>> {
        self.asked.lock().unwrap().push(texts.len());
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or(Ok(texts.len()));
        async move { answer.map(|count| vec![vec![1.0]; count]) }.boxed()
    }
}

fn busy() -> ModelError {
    ModelError::TimedOut { provider: "test".to_owned(), seconds: 1 }
}

fn chunks(count: u64) -> Vec<Chunk> {
    let part = |index| TextChunk { index, text: format!("text {index}"), tokens: 2 };
    (0..count).map(|index| to_chunk("doc", part(index))).collect()
}

#[test]
fn chunks_are_named_after_their_document() {
    assert_eq!(chunks(3)[2].id, "doc_chunk_2");
}

#[tokio::test]
async fn busy_embedder_is_retried() {
    let embedder = Scripted::new([Err(busy()), Err(busy()), Ok(2)]);
    let mut two = chunks(2);
    embed(&embedder, &mut two, Duration::ZERO).await.unwrap();
    assert_eq!(embedder.asked(), [2, 2, 2]);
    assert!(two.iter().all(|chunk| chunk.embedding.is_some()));
    let embedder = Scripted::new([Err(busy()), Err(busy()), Err(busy())]);
    assert!(embed(&embedder, &mut two, Duration::ZERO).await.is_err());
    assert_eq!(embedder.asked().len(), 3);
}

#[tokio::test]
async fn permanent_embedder_error_is_not_retried() {
    let refused =
        ModelError::Refused { provider: "test".to_owned(), status: 401, message: String::new() };
    let embedder = Scripted::new([Err(refused)]);
    assert!(embed(&embedder, &mut chunks(1), Duration::ZERO).await.is_err());
    assert_eq!(embedder.asked().len(), 1);
    let embedder = Scripted::new([Ok(2)]);
    let error = embed(&embedder, &mut chunks(1), Duration::ZERO).await.unwrap_err();
    assert!(error.to_string().contains("2 vectors for 1 texts"), "{error}");
}

#[test]
fn progress_stays_between_the_steps() {
    assert_eq!(progress_percent(0, 10), CHUNKED_PERCENT);
    assert_eq!(progress_percent(10, 10), EMBEDDED_PERCENT);
    assert_eq!(progress_percent(32, 70), 54);
    assert_eq!(progress_percent(0, 0), CHUNKED_PERCENT);
}

#[tokio::test]
async fn denied_document_is_tried_with_growing_pauses_and_then_fails() {
    assert_eq!([1, 2, 3].map(retry_pause), [1, 2, 4].map(Duration::from_secs));
    assert_eq!(retry_pause(u32::MAX), limits::RETRY_PAUSES.1);
    let folder = tempfile::tempdir().unwrap();
    let database = savoir_store::Database::open_folder(folder.path()).await.unwrap();
    let storage = savoir_store::Storage::folder(&folder.path().join("files")).unwrap();
    let indexer = Indexer::new(Knowledge::new(database, storage, None), Extractor::new(None));
    let (what, message) = ("the storage".to_owned(), "no".to_owned());
    let denied = StoreError::Denied { what, message };
    for _ in 1..limits::MAX_DENIED_TRIES {
        assert!(!indexer.try_later("task", &denied).await);
    }
    assert!(indexer.try_later("task", &denied).await);
    let full = StoreError::Full { what: "the disk".to_owned() };
    assert!(!indexer.try_later("task", &full).await, "it may be emptied");
}
