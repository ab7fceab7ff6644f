//! Behaviour of the crate as a whole.

#![expect(clippy::print_stderr, reason = "tests tell what they measured and what they left out")]

mod workflow;
