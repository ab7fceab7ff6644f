//! Finds, fetches, verifies, resolves and installs skills. A skill is a folder with a `SKILL.md`
//! file.
//!
//! - [`Tree`] is the files of one skill in memory. Sources return it; the scanner, the signer, the
//!   store and the installer take it. The lock pins its hash, [`Tree::integrity`].
//! - [`archive`] reads zip and tar archives made by any tool, and packs a tree as one.
//! - [`Store`] stores fetched skills on disk, shared by all projects.
//! - [`trust`] manages keys and signatures, and computes the trust tier that they attest.
//! - [`policy`] decides which skills may be installed and run, by rules of an organization and of
//!   the user.
//! - [`manifest`] is `savoir.toml`, which lists the skills and the agents that a project uses.
//! - [`resolve`] chooses compatible versions, or explains in sentences why there are none.
//! - [`lock`] is `savoir.lock`, which pins the same files for everyone, and detects when a new
//!   version of a skill requests more permissions or tools than the old one.
//! - [`gaia_lock`] is the lock file of GAIA, and [`agent_file`] its agents, which are assembled
//!   from skills.
//! - [`summary`] reads the name, the version and the requested permissions from a skill's files.
//! - [`install`] manages the installed skills of a project or a user: it plans a change, shows the
//!   plan, applies it completely or not at all, undoes it, and verifies installed files.
//! - [`agents`] lists the programs that read skills, and the folders in which they look.
//! - [`Ledger`] finds the skills on a machine, whichever tool installed them, and returns the
//!   origin of each.
//! - [`registry`] is the client of a skill registry: it lists packages and versions, and fetches,
//!   publishes and mirrors them.
//! - [`submission`] reads and checks a package that is to be published. The client and the registry
//!   server run the same checks.
//! - [`discover`] finds the skills below a folder, and [`skill_file`] reads their files.
//! - [`source`] finds skills in folders, files, repositories and sites, and fetches them.
//! - [`temporary_file`] creates files that replace others once they are complete.
//! - [`migrate`] converts OpenClaw skills to GAIA skills, with all their files.
//!
//! No code in this crate runs a program that came with a skill.

#![forbid(unsafe_code)]

pub mod agent_file;
pub mod agents;
pub mod archive;
pub mod discover;
pub mod gaia_lock;
pub mod install;
pub mod ledger;
pub mod limits;
pub mod lock;
pub mod manifest;
pub mod merge;
pub mod migrate;
mod other_files;
pub mod path;
pub mod policy;
pub mod registry;
pub mod resolve;
pub mod skill_file;
pub mod source;
pub mod submission;
pub mod summary;
pub mod temporary_file;
pub mod tree_input;
pub mod trust;

mod parallel;
mod scan_cache;
mod store;
mod table;
mod text_file;
mod tree;
mod untracked;

pub use agents::{Agent, Agents};
pub use install::{InstallFailure, SkillSet};
pub use ledger::Ledger;
pub use other_files::OtherFiles;
pub use scan_cache::ScanCache;
pub use store::{Store, StoreError};
pub use summary::{SkillSummary, SummaryError};
pub use text_file::{ContentError, FileError, FilePosition};
pub use tree::{File, Tree, TreeError};
pub use untracked::is_note;
