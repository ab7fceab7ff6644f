//! The server side of a registry of skills.
//!
//! - [`RegistryState`] is what all routes of the registry share; [`Answer`] and [`CachedResponse`] are
//!   answers that are asked for often; [`PublishPass`] bounds how much is published at once.
//! - [`search`] is the index that finds skills by words. It does not know the database: [`follow`]
//!   follows the changes there and feeds it.
//! - [`vetting`] runs a package in a sandbox where nothing is real, and asks scanners, before it is
//!   published.
//! - [`import`] publishes a folder of skills, [`backup`] writes a registry to one file and restores it.
//! - [`conformance`] tests whether a registry, ours or another one, keeps the contract.

#![forbid(unsafe_code)]

pub mod backup;
pub mod conformance;
pub mod import;
pub mod search;
pub mod vetting;

mod answer;
mod cache;
mod facts;
mod follower;
mod publish_limits;
mod state;

pub use answer::{Answer, CachePolicy, has_already, part};
pub use cache::CachedResponse;
pub use facts::{EXCERPT, PLAIN, facts_of};
pub use follower::follow;
pub use publish_limits::PublishPass;
pub use state::{LEASE, RegistryState};
