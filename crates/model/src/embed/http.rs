//! Vectors from a server.

use std::sync::OnceLock;

use futures::{FutureExt as _, future::BoxFuture};
use serde::Deserialize;
use serde_json::json;

use super::{Embedder, normalise};
use crate::{ModelError, http::Http, limits};

/// How a server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    OpenAi,
    Ollama,
}

/// Vectors from a server.
#[derive(Debug)]
pub(crate) struct HttpEmbedder {
    http: Http,
    wire: Wire,
    model: String,
    identity: String,
    /// How many numbers the first vector had; all others must have as many.
    dimension: OnceLock<usize>,
}

impl HttpEmbedder {
    pub(crate) fn new(http: Http, wire: Wire, model: &str) -> Self {
        let identity = format!("{}:{model}", http.provider());
        Self { http, wire, model: model.to_owned(), identity, dimension: OnceLock::new() }
    }

    async fn batch(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let vectors = match self.wire {
            Wire::OpenAi => self.openai(texts).await?,
            Wire::Ollama => self.ollama(texts).await?,
        };
        if vectors.len() != texts.len() {
            let message = format!("{} vectors for {} texts", vectors.len(), texts.len());
            return Err(self.http.garbled(message));
        }
        vectors.into_iter().map(|vector| self.checked(vector)).collect()
    }

    fn checked(&self, vector: Vec<f32>) -> Result<Vec<f32>, ModelError> {
        let dimension = *self.dimension.get_or_init(|| vector.len());
        if vector.len() != dimension {
            let message =
                format!("a vector of {} numbers among those of {dimension}", vector.len());
            return Err(self.http.garbled(message));
        }
        normalise(vector).ok_or_else(|| self.http.garbled("a vector without a direction"))
    }

    async fn openai(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let content = json!({ "model": self.model, "input": texts, "encoding_format": "float" });
        let mut answer: List = self.http.post("embeddings", &content).await?;
        answer.data.sort_by_key(|entry| entry.index);
        Ok(answer.data.into_iter().map(|entry| entry.embedding).collect())
    }

    async fn ollama(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let content = json!({ "model": self.model, "input": texts });
        let answer: Embedded = self.http.post("api/embed", &content).await?;
        match answer.embeddings {
            Vectors::Many(vectors) => Ok(vectors),
            Vectors::One(vector) if texts.len() == 1 => Ok(vec![vector]),
            Vectors::One(_) => self.one_by_one(texts).await,
        }
    }

    /// Some servers only ever answer with one vector.
    async fn one_by_one(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            let content = json!({ "model": self.model, "input": text });
            let answer: Embedded = self.http.post("api/embed", &content).await?;
            match answer.embeddings {
                Vectors::One(vector) => vectors.push(vector),
                Vectors::Many(many) => vectors.extend(many),
            }
        }
        Ok(vectors)
    }
}

#[derive(Deserialize)]
struct List {
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    index: u64,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct Embedded {
    #[serde(alias = "embedding")]
    embeddings: Vectors,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Vectors {
    One(Vec<f32>),
    Many(Vec<Vec<f32>>),
}

impl Embedder for HttpEmbedder {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, ModelError>> {
        async move {
            let mut vectors = Vec::with_capacity(texts.len());
            for batch in texts.chunks(limits::TEXTS) {
                vectors.extend(self.batch(batch).await?);
            }
            Ok(vectors)
        }
        .boxed()
    }
}
