//! The shelf: where skills come from, what they are, and where they go.
//!
//! - [`Tree`] is a skill as files: what a source gives, what is scanned, signed, kept and written.
//!   Its [`Tree::integrity`] is what a lock holds a skill to.
//! - [`archive`] reads and packs such files as a zip or a tar, whoever made it.
//! - [`Store`] keeps what was fetched, for all projects.
//! - [`trust`] says who vouches for a skill: keys, signatures, and the tier that they attest.
//!
//! Nothing here runs anything that a skill brought.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod archive;
pub mod limits;
pub mod path;
pub mod trust;

mod store;
mod tree;

pub use store::{Store, StoreError};
pub use tree::{File, Tree, TreeError};
