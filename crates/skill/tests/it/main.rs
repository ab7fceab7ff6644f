//! Tests the whole crate.

#![expect(clippy::print_stderr, reason = "tests tell which file of the shared data failed")]

mod convert;
mod corpus;
mod fixpairs;
mod library;
mod loaders;
mod mutations;
mod properties;
mod reviewed;
mod rules;
mod shared;
