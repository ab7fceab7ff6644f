//! Signed evaluations of versions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bounded::readable_items;
use crate::{limits::MAX_EVALUATIONS, trust::evaluation::Evaluation};

/// A signed evaluation to publish.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryNewAttestation))]
pub struct NewAttestation {
    /// The signed statement: a DSSE envelope or a Sigstore bundle.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub statement: Value,
    /// The key that signed it. OpenSSH signatures and certificates contain their key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
    pub public_key: Option<String>,
}

/// The signed evaluations of a version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryAttestations))]
pub struct Attestations {
    /// The newest of each key, newest first. Those of the requested keys come first.
    #[serde(default, deserialize_with = "readable_items::<_, _, MAX_EVALUATIONS>")]
    pub items: Vec<PublishedAttestation>,
    /// Whether two of them cannot both be right: one passes and one fails, or their intervals do not
    /// overlap.
    #[serde(default)]
    pub disagree: bool,
}

/// A signed evaluation that a registry has verified.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryAttestation))]
pub struct PublishedAttestation {
    /// Identifies the key and the signed statement.
    pub id: String,
    /// The id of the key that signed it.
    pub key_id: String,
    /// The key, if the statement does not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// What was measured.
    pub evaluation: Evaluation,
    /// The signed statement.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub statement: Value,
    pub added_at: Option<String>,
}
