//! Tests savoir-model with scripted, broken and real servers.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail loudly")]

mod anthropic;
mod embeddings;
mod failures;
mod garbage;
mod models;
mod ollama;
mod openai;
mod real;
mod settings;
mod support;
