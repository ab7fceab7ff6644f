//! Embeds texts with the HTTP API of a provider.

use std::sync::OnceLock;

use futures::{FutureExt as _, future::BoxFuture};
use serde::Deserialize;
use serde_json::json;

use super::{Embedder, normalise};
use crate::{ModelError, http::Http, limits};

/// The API that the server implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EmbeddingApi {
    OpenAi,
    Ollama,
}

/// Embeds texts with the HTTP API of a provider.
#[derive(Debug)]
pub(crate) struct HttpEmbedder {
    http: Http,
    api: EmbeddingApi,
    model: String,
    identity: String,
    /// The dimension of the first vector; all others must have the same.
    dimension: OnceLock<usize>,
}

impl HttpEmbedder {
    pub(crate) fn new(http: Http, api: EmbeddingApi, model: &str) -> Self {
        let identity = format!("{}:{model}", http.provider());
        Self { http, api, model: model.to_owned(), identity, dimension: OnceLock::new() }
    }

    async fn embed_batch(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let vectors = match self.api {
            EmbeddingApi::OpenAi => self.embed_openai(texts).await?,
            EmbeddingApi::Ollama => self.embed_ollama(texts).await?,
        };
        if vectors.len() != texts.len() {
            let message = format!("{} vectors for {} texts", vectors.len(), texts.len());
            return Err(self.http.invalid_response(message));
        }
        vectors.into_iter().map(|vector| self.check_and_normalise(vector)).collect()
    }

    fn check_and_normalise(&self, vector: Vec<f32>) -> Result<Vec<f32>, ModelError> {
        let dimension = *self.dimension.get_or_init(|| vector.len());
        if vector.len() != dimension {
            let message =
                format!("a vector of dimension {}, the others have {dimension}", vector.len());
            return Err(self.http.invalid_response(message));
        }
        normalise(vector).ok_or_else(|| self.http.invalid_response("a vector of length zero"))
    }

    async fn embed_openai(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let content = json!({ "model": self.model, "input": texts, "encoding_format": "float" });
        let mut answer: OpenAiEmbeddings = self.http.post("embeddings", &content).await?;
        answer.data.sort_by_key(|entry| entry.index);
        Ok(answer.data.into_iter().map(|entry| entry.embedding).collect())
    }

    async fn embed_ollama(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let content = json!({ "model": self.model, "input": texts });
        let answer: OllamaEmbeddings = self.http.post("api/embed", &content).await?;
        match answer.embeddings {
            OneOrManyVectors::Many(vectors) => Ok(vectors),
            OneOrManyVectors::One(vector) if texts.len() == 1 => Ok(vec![vector]),
            OneOrManyVectors::One(_) => self.embed_one_by_one(texts).await,
        }
    }

    /// Embeds one text per request, for servers that return only one vector.
    async fn embed_one_by_one(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            let content = json!({ "model": self.model, "input": text });
            let answer: OllamaEmbeddings = self.http.post("api/embed", &content).await?;
            match answer.embeddings {
                OneOrManyVectors::One(vector) => vectors.push(vector),
                OneOrManyVectors::Many(many) => vectors.extend(many),
            }
        }
        Ok(vectors)
    }
}

#[derive(Deserialize)]
struct OpenAiEmbeddings {
    data: Vec<OpenAiEmbedding>,
}

#[derive(Deserialize)]
struct OpenAiEmbedding {
    #[serde(default)]
    index: u64,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct OllamaEmbeddings {
    #[serde(alias = "embedding")]
    embeddings: OneOrManyVectors,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrManyVectors {
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
            for batch in texts.chunks(limits::MAX_TEXTS_PER_REQUEST) {
                vectors.extend(self.embed_batch(batch).await?);
            }
            Ok(vectors)
        }
        .boxed()
    }
}
