//! The envelope of signed statements: DSSE, alone or inside of a bundle.

use serde::Deserialize;

/// The type of in-toto statements.
pub(super) const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

#[derive(Deserialize)]
pub(super) struct Envelope {
    /// In base64.
    pub(super) payload: String,
    #[serde(rename = "payloadType")]
    pub(super) payload_type: String,
    pub(super) signatures: Vec<EnvelopeSignature>,
}

#[derive(Deserialize)]
pub(super) struct EnvelopeSignature {
    #[serde(default)]
    pub(super) keyid: String,
    /// In base64.
    pub(super) sig: String,
}

/// The bytes that DSSE signs.
pub(super) fn pre_authentication_encoding(payload: &[u8]) -> Vec<u8> {
    let start = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len());
    [start.as_bytes(), payload].concat()
}
