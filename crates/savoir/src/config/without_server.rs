//! Reads settings of the server in a program that is built without it: they are shown, but have no
//! effect.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::CommandError;

/// Settings of one layer, unchecked.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct ServeLayer(Map<String, Value>);

impl ServeLayer {
    pub(crate) fn defaults() -> [(&'static str, Value); 0] {
        []
    }

    #[expect(clippy::unnecessary_wraps, reason = "it has the type of the one with a server")]
    pub(crate) fn environment() -> Result<Vec<(String, Self)>, CommandError> {
        Ok(Vec::new())
    }

    /// Merges two layers; the values of this layer take precedence.
    #[must_use]
    pub(crate) fn merge_over(self, mut below: Self) -> Self {
        below.0.extend(self.0);
        below
    }
}
