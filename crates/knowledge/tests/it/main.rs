//! Tests uploading, reading and searching documents.

#![expect(clippy::print_stderr, reason = "tests tell what they left out")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod base;
mod isolated;
