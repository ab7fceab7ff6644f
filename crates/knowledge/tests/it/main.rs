//! Tests uploading, reading and searching documents.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod base;
mod isolated;
