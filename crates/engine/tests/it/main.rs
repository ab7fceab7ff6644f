//! Integration tests of the engine.

#![expect(clippy::print_stderr, reason = "tests tell what they measured and what they left out")]

mod python;
