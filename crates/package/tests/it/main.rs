//! Behaviour of the crate as a whole.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![expect(clippy::print_stderr, reason = "tests tell what they could not check here")]

mod archive;
mod shared;
//! What tools of others leave on a machine, and how fast that is found.

#![expect(clippy::unwrap_used, reason = "a failed test is a panic")]

mod speed;
mod tools;
