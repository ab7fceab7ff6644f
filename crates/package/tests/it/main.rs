//! Integration tests of the crate, including tests with programs of others.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![expect(clippy::print_stderr, reason = "tests tell what they could not check here")]

mod archive;
mod install;
mod migrate;
mod registry;
mod scan;
mod shared;

mod source;
mod speed;
mod submission;
mod tools;
