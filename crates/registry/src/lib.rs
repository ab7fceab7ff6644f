//! The server side of a skill registry.
//!
//! - [`RegistryState`] is the state that all registry routes share. [`CacheableResponse`] is an
//!   HTTP response with an `ETag`, [`ResponseCacheEntry`] an entry of the response cache.
//!   [`PublishPermit`] limits concurrent uploads.
//! - [`search`] is the full-text index of skills. It does not know the database: [`update_search_index`] reads
//!   the change log of the database and updates the index.
//! - [`vetting`] checks a package before it is published: it runs the tools in a sandbox with decoy
//!   secrets, and runs scanners.
//! - [`add_attestation`] verifies signed evaluations of versions and stores them.
//! - [`import`] publishes a folder of skills. [`backup`] writes a registry to one file and restores
//!   it.
//! - [`conformance`] tests whether a registry, ours or another one, conforms to the API.

#![forbid(unsafe_code)]

pub mod backup;
pub mod conformance;
pub mod import;
pub mod search;
pub mod vetting;

mod attestations;
mod cache;
mod cacheable_response;

mod publish_limits;
mod search_updater;
mod state;
mod version_facts;

pub use attestations::{AttestationError, add_attestation, attestations};
pub use cache::ResponseCacheEntry;
pub use cacheable_response::{
    CachePolicy, CacheableResponse, matches_if_none_match, requested_range,
};

pub use publish_limits::PublishPermit;
pub use search_updater::update_search_index;
pub use state::{MAX_CACHE_AGE, RegistryState};
pub use version_facts::{EXCERPT_KEY, PLAIN_ARCHIVE_DIGEST_KEY, collect_version_facts};
