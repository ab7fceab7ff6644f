//! Provides clients for language models and embedding models behind two small traits.
//!
//! - [`LanguageModel`] answers a [`ChatRequest`] with a stream of [`Chunk`]s. Dropping the stream
//!   ends the request.
//! - [`Embedder`] turns texts into vectors.
//! - [`Models`] contains the configured providers and finds the provider for a name such as
//!   `openai:gpt-4o`.
//! - [`Settings`] are the user's settings from files and environment variables;
//!   [`Models::from_settings`] creates the clients from them.
//!
//! This crate knows nothing about skills.

#![forbid(unsafe_code)]

mod chat;
mod embed;
mod error;
mod http;
mod limits;
mod models;
mod provider;
mod secret;
mod settings;

pub use chat::{
    ChatRequest, Chunk, Finish, LanguageModel, Message, ToolCall, ToolDefinition, Usage,
};
pub use embed::Embedder;
#[cfg(feature = "local-embeddings")]
pub use embed::WordPiece;
pub use error::ModelError;
pub use models::{ChosenModel, Models, ProviderModels};
pub use secret::Secret;
pub use settings::{EmbeddingSettings, ProviderKind, ProviderSettings, Settings};
