use std::{collections::VecDeque, sync::Mutex};

use futures::{FutureExt as _, future::BoxFuture};

use super::*;

/// Answers as it was told; then with as many vectors as texts.
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
async fn a_busy_embedder_is_asked_again() {
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
async fn a_refusal_is_final() {
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
fn shares_stay_between_the_steps() {
    assert_eq!(progress_percent(0, 10), CHUNKED_PERCENT);
    assert_eq!(progress_percent(10, 10), EMBEDDED_PERCENT);
    assert_eq!(progress_percent(32, 70), 54);
    assert_eq!(progress_percent(0, 0), CHUNKED_PERCENT);
}
