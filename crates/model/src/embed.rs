//! Turns texts into embedding vectors.

mod http;
#[cfg(feature = "local-embeddings")]
mod local;

use std::fmt;

use futures::future::BoxFuture;

pub(crate) use self::http::{EmbeddingApi, HttpEmbedder};
#[cfg(feature = "local-embeddings")]
pub(crate) use self::local::LocalEmbedder;
#[cfg(feature = "local-embeddings")]
pub use self::local::WordPiece;
use crate::ModelError;

/// Turns texts into vectors that all have the same dimension.
pub trait Embedder: fmt::Debug + Send + Sync {
    /// Returns the identity `provider:model`. Vectors of different identities must not be compared.
    fn identity(&self) -> &str;

    /// Returns one vector of length 1 for each text, in order.
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, ModelError>>;
}

/// Scales a vector to length 1. Returns `None` if its length is 0 or not finite.
fn normalise(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let squares: f64 = vector.iter().map(|x| f64::from(*x).powi(2)).sum();
    let length = squares.sqrt();
    if !length.is_finite() || length == 0.0 {
        return None;
    }
    for x in &mut vector {
        *x = (f64::from(*x) / length) as f32;
    }
    Some(vector)
}
