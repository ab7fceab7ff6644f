//! Texts become vectors.

mod http;
mod local;

use std::fmt;

use futures::future::BoxFuture;

pub(crate) use self::{
    http::{HttpEmbedder, Wire},
    local::LocalEmbedder,
};
use crate::ModelError;

/// Something that turns texts into vectors of one length.
pub trait Embedder: fmt::Debug + Send + Sync {
    /// `provider:model`. Vectors of different identities must not be compared.
    fn identity(&self) -> &str;

    /// One vector of length 1 for each text, in order.
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, ModelError>>;
}

/// Makes a vector's length 1. Fails where it has none.
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
