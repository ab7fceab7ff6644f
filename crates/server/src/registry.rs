//! Where skills are published and found.
//!
//! - `search` is the index that finds skills by words. It knows nothing of the database: whoever
//!   follows the changes there feeds it.

#[allow(dead_code, reason = "the routes that search are not here yet")]
pub(crate) mod search;
