//! Embeds texts with a local model in the folder layout of sentence-transformers.

mod bert;
mod folder;
mod weights;
mod word_piece;

use std::{
    path::Path,
    sync::{Arc, OnceLock, PoisonError},
};

use futures::{FutureExt as _, future::BoxFuture};
use tokio::task::spawn_blocking;

pub use self::word_piece::WordPiece;
use self::{
    bert::Bert,
    folder::{ModelFolder, Pooling},
};
use super::{Embedder, normalise};
use crate::{ModelError, limits};

/// Embeds texts with a local model.
#[derive(Debug)]
pub(crate) struct LocalEmbedder {
    identity: String,
    lazy: Arc<LazyModel>,
}

/// A model that is loaded on first use.
#[derive(Debug)]
struct LazyModel {
    folder: ModelFolder,
    loaded: OnceLock<EmbeddingModel>,
    /// Locked while loading, so that concurrent callers load the model only once.
    loading: std::sync::Mutex<()>,
}

#[derive(Debug)]
struct EmbeddingModel {
    tokenizer: WordPiece,
    max_tokens: usize,
    bert: Bert,
    pooling: Pooling,
}

impl LocalEmbedder {
    /// Opens a model folder. The weights are loaded with the first text.
    pub(crate) fn open(path: &Path) -> Result<Self, ModelError> {
        let folder = ModelFolder::open(path)?;
        let identity = folder.identity()?;
        let (loaded, loading) = (OnceLock::new(), std::sync::Mutex::default());
        Ok(Self { identity, lazy: Arc::new(LazyModel { folder, loaded, loading }) })
    }
}

impl Embedder for LocalEmbedder {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, ModelError>> {
        async move {
            let mut vectors = Vec::with_capacity(texts.len());
            for texts in texts.chunks(limits::LOCAL_BATCH_TEXTS) {
                let (lazy, texts) = (self.lazy.clone(), texts.to_vec());
                let work = spawn_blocking(move || lazy.get_or_load()?.embed(&texts));
                vectors.extend(work.await.map_err(|error| ModelError::Local(error.to_string()))??);
            }
            Ok(vectors)
        }
        .boxed()
    }
}

impl LazyModel {
    fn get_or_load(&self) -> Result<&EmbeddingModel, ModelError> {
        if let Some(model) = self.loaded.get() {
            return Ok(model);
        }
        let _guard = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = self.loaded.get() {
            return Ok(model);
        }
        let model = EmbeddingModel::load(&self.folder)?;
        Ok(self.loaded.get_or_init(|| model))
    }
}

impl EmbeddingModel {
    fn load(folder: &ModelFolder) -> Result<Self, ModelError> {
        let tokenizer = WordPiece::from_json(&folder.tokenizer()?)
            .map_err(|error| folder.read_error("tokenizer.json", &error))?;
        let bert = Bert::load(folder.config(), &folder.weights()?)
            .map_err(|error| folder.read_error("model.safetensors", &error))?;
        let max_tokens = folder.max_tokens();
        Ok(Self { tokenizer, max_tokens, bert, pooling: folder.pooling() })
    }

    /// Embeds texts one by one: on a CPU, padding them to one length gains nothing.
    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        texts.iter().map(|text| self.embed_text(text).map_err(ModelError::Local)).collect()
    }

    fn embed_text(&self, text: &str) -> Result<Vec<f32>, String> {
        let states = self.bert.forward(&self.tokenizer.encode(text, self.max_tokens))?;
        let pooled = match self.pooling {
            Pooling::Mean => states.mean_axis(ndarray::Axis(0)),
            Pooling::First => states.outer_iter().next().map(|row| row.to_owned()),
        };
        let pooled = pooled.ok_or("a text without tokens")?;
        normalise(pooled.to_vec()).ok_or_else(|| "a vector of length zero".to_owned())
    }
}
