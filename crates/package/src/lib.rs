//! The shelf: where skills come from, what they are, and where they go.
//!
//! - [`Tree`] is a skill as files: what a source gives, what is scanned, signed, kept and written.
//!   Its [`Tree::integrity`] is what a lock holds a skill to.
//! - [`archive`] reads and packs such files as a zip or a tar, whoever made it.
//! - [`Store`] keeps what was fetched, for all projects.
//! - [`trust`] says who vouches for a skill: keys, signatures, and the tier that they attest.
//! - [`policy`] says which skills may be installed and run: the rules of an organization and of a user.
//! - [`manifest`] is `savoir.toml`, in which a project says which skills it uses, and in which agents.
//! - [`resolve`] chooses versions that go together, or says in sentences why none do.
//! - [`lock`] is `savoir.lock`, which holds everyone to the same files, and tells when a new version
//!   of a skill wants more than the old one.
//! - [`gaia_lock`] is the lock of GAIA, and [`agent_file`] its agents, which are made of skills.
//! - [`summary`] is what a skill's files say about it: its name, its version, and what it asks for.
//! - [`install`] is the skills that are installed in a project or for a person: it plans a change,
//!   shows it, makes it whole or not at all, takes it back, and checks what lies there.
//! - [`agents`] knows the programs that read skills, and the folders in which they look.
//! - [`Ledger`] finds the skills on a machine, however they came there, and tells how that was.
//! - [`registry`] is the client of a registry of skills: what there is, in which versions, and how it
//!   is fetched, published and mirrored.
//! - [`submission`] is a package that somebody wants to publish, read and checked: the same for those
//!   who send it and for those who get it.
//! - [`source`] finds skills in folders, files, repositories and sites, and fetches them.
//! - [`migrate`] makes skills of GAIA from those of OpenClaw, with all their files.
//!
//! Nothing here runs anything that a skill brought.

#![forbid(unsafe_code)]

pub mod agent_file;
pub mod agents;
pub mod archive;
pub mod gaia_lock;
pub mod install;
pub mod ledger;
pub mod limits;
pub mod lock;
pub mod manifest;
pub mod merge;
pub mod migrate;
pub mod path;
pub mod policy;
pub mod registry;
pub mod resolve;
pub mod source;
pub mod submission;
pub mod summary;
pub mod trust;

mod parallel;
mod store;
mod table;
mod text_file;
mod tree;
mod untracked;

pub use agents::{Agent, Agents};
pub use install::{InstallFailure, SkillSet};
pub use ledger::Ledger;
pub use store::{Store, StoreError};
pub use summary::{SkillSummary, SummaryError};
pub use text_file::{ContentError, FileError, FilePosition};
pub use tree::{File, Tree, TreeError};
pub use untracked::is_note;
