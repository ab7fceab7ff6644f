//! Plans and runs the tools of skills in a sandbox, with only the permissions that were granted.
//!
//! Modules, in the order in which a call passes through them:
//!
//! - [`loaded_skill`] reads a skill from disk and computes its digest; [`run_environment`]
//!   describes the folder, repository, home and variables of the user who starts the run.
//! - [`manifest`] lists the tools of a skill in the format that a model or another program expects.
//! - [`call`] turns the input of a caller into arguments that a tool accepts, or reports what is
//!   wrong with the input.
//! - [`requirements`] reports what a skill needs and this machine lacks; [`structured`] prepares
//!   skills in the skillrt format, and validates their answers against their schema.
//! - [`grant`] turns permissions into a sandbox policy, and refuses permissions that the sandbox
//!   cannot enforce.
//! - [`approval`] decides whether the user must be asked, renders the question, and stores the
//!   answers.
//! - [`run`] plans a run and executes it in the sandbox; [`python`] hosts Python tools;
//!   [`protection`] keeps a run from changing files that other programs execute or obey.
//! - [`smallest_permissions`] observes which permissions a tool really needs.
//! - [`envelope`] is the result of a tool; [`record`] stores which tool ran and how the run ended.
//!   Records are files below [`home`].
//!
//! This crate never prints; its callers, such as the binary `savoir`, do.

#![forbid(unsafe_code)]

pub mod approval;
pub mod call;
pub mod envelope;
pub mod grant;
pub mod home;
pub mod limits;
pub mod loaded_skill;
pub mod manifest;
pub mod protection;
pub mod python;
pub mod record;
pub mod requirements;
pub mod run;
pub mod run_environment;
pub mod secrets;
pub mod session;
pub mod smallest_permissions;
pub mod structured;

pub mod cancel;
mod clock;
mod error;
mod inspect;
mod packages;
pub mod store;
#[cfg(test)]
mod testing;

pub use error::{Fault, RunError};
pub use home::Home;
pub use inspect::inspect;
pub use store::StoreError;
