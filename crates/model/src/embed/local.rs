//! Vectors from a model in a folder, in the layout of sentence-transformers.

mod bert;
mod folder;
mod weights;

use std::{
    path::Path,
    sync::{Arc, OnceLock, PoisonError},
};

use futures::{FutureExt as _, future::BoxFuture};
use tokenizers::{Tokenizer, TruncationParams};
use tokio::task::spawn_blocking;

use self::{
    bert::Bert,
    folder::{Folder, Pooling},
};
use super::{Embedder, normalise};
use crate::{ModelError, limits};

/// Vectors from a model in a folder.
#[derive(Debug)]
pub(crate) struct LocalEmbedder {
    identity: String,
    lazy: Arc<Lazy>,
}

/// A model that is read when it is first needed.
#[derive(Debug)]
struct Lazy {
    folder: Folder,
    loaded: OnceLock<Model>,
    /// Held while it is read, so that it is read once.
    loading: std::sync::Mutex<()>,
}

#[derive(Debug)]
struct Model {
    tokenizer: Tokenizer,
    bert: Bert,
    pooling: Pooling,
}

impl LocalEmbedder {
    /// Looks at a folder. Its weights are read with the first text.
    pub(crate) fn open(path: &Path) -> Result<Self, ModelError> {
        let folder = Folder::open(path)?;
        let identity = folder.identity()?;
        let (loaded, loading) = (OnceLock::new(), std::sync::Mutex::default());
        Ok(Self { identity, lazy: Arc::new(Lazy { folder, loaded, loading }) })
    }
}

impl Embedder for LocalEmbedder {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, ModelError>> {
        async move {
            let mut vectors = Vec::with_capacity(texts.len());
            for texts in texts.chunks(limits::LOCAL_TEXTS) {
                let (lazy, texts) = (self.lazy.clone(), texts.to_vec());
                let work = spawn_blocking(move || lazy.get()?.embed(&texts));
                vectors.extend(work.await.map_err(|error| ModelError::Local(error.to_string()))??);
            }
            Ok(vectors)
        }
        .boxed()
    }
}

impl Lazy {
    fn get(&self) -> Result<&Model, ModelError> {
        if let Some(model) = self.loaded.get() {
            return Ok(model);
        }
        let _guard = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = self.loaded.get() {
            return Ok(model);
        }
        let model = Model::load(&self.folder)?;
        Ok(self.loaded.get_or_init(|| model))
    }
}

impl Model {
    fn load(folder: &Folder) -> Result<Self, ModelError> {
        let mut tokenizer = Tokenizer::from_bytes(folder.tokenizer()?)
            .map_err(|error| folder.wrong("tokenizer.json", &error))?;
        let max_length = folder.max_tokens();
        let truncation = TruncationParams { max_length, ..TruncationParams::default() };
        tokenizer
            .with_padding(None)
            .with_truncation(Some(truncation))
            .map_err(|error| folder.wrong("tokenizer.json", &error))?;
        let bert = Bert::load(folder.config(), &folder.weights()?)
            .map_err(|error| folder.wrong("model.safetensors", &error))?;
        Ok(Self { tokenizer, bert, pooling: folder.pooling() })
    }

    /// Texts are read one by one: a processor gains nothing from filling them up to one length.
    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        texts.iter().map(|text| self.vector(text).map_err(ModelError::Local)).collect()
    }

    fn vector(&self, text: &str) -> Result<Vec<f32>, String> {
        let encoding = self.tokenizer.encode(text, true).map_err(|error| error.to_string())?;
        let states = self.bert.forward(encoding.get_ids())?;
        let pooled = match self.pooling {
            Pooling::Mean => states.mean_axis(ndarray::Axis(0)),
            Pooling::First => states.outer_iter().next().map(|row| row.to_owned()),
        };
        let pooled = pooled.ok_or("a text without tokens")?;
        normalise(pooled.to_vec()).ok_or_else(|| "a vector without a direction".to_owned())
    }
}
