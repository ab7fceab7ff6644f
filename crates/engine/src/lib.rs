//! Plans and runs the tools of skills in a sandbox, with only the permissions that were granted.
//!
//! Modules, in the order in which a call passes through them:
//!
//! - [`loaded_skill`] is a skill on disk with its digest; [`run_environment`] is where the run happens.
//! - [`manifest`] tells a model or another program which tools there are, in its own format.
//! - [`call`] turns what a caller gives into arguments that a tool accepts, or says what is wrong.
//! - [`requirements`] finds out what a skill needs and this machine does not have; [`structured`]
//!   prepares a skill of skillrt, and validates its answer against its schema.
//! - [`grant`] turns permissions into a sandbox policy, and refuses what cannot be enforced.
//! - [`approval`] decides whether the user must be asked, renders the question, and stores the answers.
//! - [`run`] puts all of this together, and runs it in the sandbox; [`python`] hosts Python tools.
//! - [`event`] streams what happens in a run; [`services`] are the models and the
//!   knowledge that a run may ask, and [`skill_lookup`] is where it finds skills.
//! - [`prompt`] runs a skill that is a prompt; [`workflow`] runs a graph of models, skills, searches,
//!   requests and code.
//! - [`knowledge`] makes documents into passages that can be found.
//! - [`contract`] finds out which permissions a tool really needs.
//! - [`envelope`] is the result of a tool; [`record`] stores what was run and how it ended, below
//!   [`home`].
//!
//! Nothing here prints; callers such as the binary `savoir` do.

#![forbid(unsafe_code)]

pub mod approval;
pub mod call;
pub mod contract;
pub mod envelope;
pub mod event;
pub mod grant;
pub mod home;
pub mod knowledge;
pub mod limits;
pub mod loaded_skill;
pub mod manifest;
pub mod prompt;
pub mod protection;
pub mod python;
pub mod record;
pub mod requirements;
pub mod run;
pub mod run_environment;
pub mod secrets;
pub mod services;
pub mod session;
pub mod skill_lookup;
pub mod structured;
pub mod workflow;

pub mod cancel;
mod clock;
mod error;
mod inspect;
mod packages;
pub mod retrieval;
pub mod store;
#[cfg(test)]
mod testing;

pub use error::{Fault, RunError};
pub use home::Home;
pub use inspect::inspect;
pub use store::StoreError;
