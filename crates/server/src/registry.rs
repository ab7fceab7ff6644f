//! Where skills are published and found.
//!
//! - [`RegistryState`] is what all routes of the registry share. What it gives out is never older than a moment,
//!   whichever process changed the registry.
//! - `memory` keeps answers that are asked for often; `answer` is one of them.
//! - `gate` bounds how much is published at once.
//! - `search` is the index that finds skills by words. It knows nothing of the database: `follower`
//!   follows the changes there and feeds it.

mod answer;
mod cache;
mod facts;
mod follower;
mod publish_limits;
pub(crate) mod search;
mod state;

pub(crate) use answer::{Answer, CachePolicy, has_already, part};
pub(crate) use cache::CachedResponse;
pub use facts::facts_of;
pub(crate) use facts::{EXCERPT, PLAIN};
pub(crate) use follower::follow;
pub(crate) use publish_limits::PublishPass;
pub(crate) use state::{LEASE, RegistryState};
