//! The server side of a registry of skills.
//!
//! - [`RegistryState`] is what all routes of the registry share; [`CacheableResponse`] and [`CachedResponse`] are
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

mod cache;
mod cacheable_response;
mod follower;
mod publish_limits;
mod state;
mod version_facts;

pub use cache::CachedResponse;
pub use cacheable_response::{
    CachePolicy, CacheableResponse, matches_if_none_match, requested_range,
};
pub use follower::follow;
pub use publish_limits::PublishPass;
pub use state::{MAX_CACHE_AGE, RegistryState};
pub use version_facts::{EXCERPT_KEY, PLAIN_DIGEST_KEY, facts_of};
