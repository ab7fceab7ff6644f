//! Tests of savoir-model against servers: scripted ones, broken ones, and real ones.

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
