//! Signs and checks in-toto statements about a skill, such as the results of an evaluation.
//!
//! A statement is signed as a DSSE envelope with an Ed25519 or an OpenSSH key, or as a Sigstore
//! bundle with a P-256 key. The signed bytes start with `DSSEv1`, so that a signature of a skill
//! cannot be used for a statement, and vice versa.

use std::path::Path;

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

use super::{
    KeyKind, SignatureKind, SigningKey, TrustStore, TrustedKey,
    dsse::{Envelope, PAYLOAD_TYPE, pre_authentication_encoding},
    json,
    oms::{self, BundleKey, OmsError},
    ssh::{self, SshError},
};

/// The key that signs a statement.
#[derive(Clone, Copy, Debug)]
pub enum StatementKey<'a> {
    /// A key of `savoir keys`.
    Own(&'a SigningKey),
    /// A file with an OpenSSH key.
    Ssh(&'a Path),
    /// A P-256 key for bundles.
    Bundle(&'a BundleKey),
}

/// A statement whose signature is valid, or could not be checked.
#[derive(Clone, Debug, PartialEq)]
pub struct SignedStatement {
    pub statement: Value,
    pub kind: SignatureKind,
    /// The key id, if it is known.
    pub key_id: String,
    /// The key, if the user trusts it.
    pub trusted: Option<TrustedKey>,
    /// Whether the signature could be checked. The key of an Ed25519 signature has to be known.
    pub checked: bool,
}

/// Why a statement cannot be signed, or its signature is invalid.
#[derive(Debug, Error)]
pub enum StatementError {
    #[error("it is not a signed statement: {0}")]
    Malformed(String),
    #[error("the signature of the key {0} is wrong: the statement was changed")]
    Wrong(String),
    #[error("the key {0} was revoked")]
    Revoked(String),
    #[error(transparent)]
    Ssh(#[from] SshError),
    #[error(transparent)]
    Bundle(#[from] OmsError),
}

impl StatementError {
    /// A stable error code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "statement_malformed",
            Self::Wrong(_) => "statement_wrong",
            Self::Revoked(_) => "statement_revoked",
            Self::Ssh(_) => "statement_ssh",
            Self::Bundle(error) => error.code(),
        }
    }
}

/// Signs a statement. The result is a DSSE envelope, or a bundle.
pub fn sign_statement(statement: &Value, key: StatementKey<'_>) -> Result<Value, StatementError> {
    let payload = statement.to_string();
    let message = pre_authentication_encoding(payload.as_bytes());
    let (keyid, signature) = match key {
        StatementKey::Own(key) => (key.key_id(), key.sign(&message)),
        StatementKey::Ssh(path) => {
            let armoured = ssh::sign(path, &message)?;
            (ssh::signer(&armoured)?.key_id(), armoured.into_bytes())
        }
        StatementKey::Bundle(key) => return Ok(oms::sign_payload(&payload, key)?),
    };
    Ok(json!({
        "payloadType": PAYLOAD_TYPE,
        "payload": STANDARD.encode(&payload),
        "signatures": [{"keyid": keyid, "sig": STANDARD.encode(signature)}],
    }))
}

/// Checks the signature of a statement.
pub fn check_statement(
    bytes: &[u8],
    store: &TrustStore,
) -> Result<SignedStatement, StatementError> {
    let malformed = |error: &dyn std::fmt::Display| StatementError::Malformed(error.to_string());
    let document = json::parse(bytes).map_err(|error| malformed(&error))?;
    if document.get("dsseEnvelope").is_some() {
        return check_bundle(&document, store);
    }
    let envelope = Envelope::deserialize(&document).map_err(|error| malformed(&error))?;
    if envelope.payload_type != PAYLOAD_TYPE {
        return Err(malformed(&"its payload is not an in-toto statement"));
    }
    let [signature] = envelope.signatures.as_slice() else {
        return Err(malformed(&"it has not exactly one signature"));
    };
    let decode = |text: &str| STANDARD.decode(text).map_err(|error| malformed(&error));
    let (payload, bytes) = (decode(&envelope.payload)?, decode(&signature.sig)?);
    let message = pre_authentication_encoding(&payload);
    let statement = json::parse(&payload).map_err(|error| malformed(&error))?;
    let (kind, key_id, checked) = match std::str::from_utf8(&bytes) {
        Ok(armoured) if armoured.starts_with("-----BEGIN SSH SIGNATURE-----") => {
            let key = ssh::check(armoured, &message)?;
            (SignatureKind::SshSig, key.key_id(), true)
        }
        _ => {
            let key_id = signature.keyid.clone();
            refuse_revoked(&key_id, store)?;
            let trusted =
                store.get(&key_id).filter(|trusted| trusted.key.kind() == KeyKind::Ed25519);
            let checked = match trusted {
                Some(trusted) => {
                    let key = UnparsedPublicKey::new(&ED25519, trusted.key.bytes());
                    key.verify(&message, &bytes)
                        .map_err(|_| StatementError::Wrong(key_id.clone()))?;
                    true
                }
                None => false,
            };
            (SignatureKind::Ed25519, key_id, checked)
        }
    };
    refuse_revoked(&key_id, store)?;
    let trusted = store.get(&key_id).cloned();
    Ok(SignedStatement { statement, kind, key_id, trusted, checked })
}

fn check_bundle(document: &Value, store: &TrustStore) -> Result<SignedStatement, StatementError> {
    let (checked, payload) = oms::check_payload(document, store)?;
    for key_id in &checked.key_ids {
        refuse_revoked(key_id, store)?;
    }
    let malformed = |error: serde_json::Error| StatementError::Malformed(error.to_string());
    Ok(SignedStatement {
        statement: json::parse(&payload).map_err(malformed)?,
        kind: SignatureKind::Oms,
        key_id: checked.key_ids.first().cloned().unwrap_or_default(),
        trusted: checked.trusted.cloned(),
        checked: checked.holds,
    })
}

fn refuse_revoked(key_id: &str, store: &TrustStore) -> Result<(), StatementError> {
    match store.revocation(key_id) {
        Some(_) => Err(StatementError::Revoked(key_id.to_owned())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::Role;

    fn trusting(key: super::super::PublicKey) -> TrustStore {
        TrustStore::of_keys(vec![TrustedKey {
            key,
            publisher: "Ada".to_owned(),
            role: Role::Publisher,
            namespaces: None,
        }])
    }

    #[test]
    fn changed_statement_is_not_trusted() {
        let statement = json!({"subject": [{"name": "pdf"}], "n": 1});
        let own = SigningKey::generate().unwrap();
        let bundle = BundleKey::from_pem(&BundleKey::generate().unwrap()).unwrap();
        let known = [own.public_key(), bundle.public_key().unwrap()];
        let keys = [StatementKey::Own(&own), StatementKey::Bundle(&bundle)];
        for (key, public) in keys.into_iter().zip(known) {
            let signed = sign_statement(&statement, key).unwrap();
            let bytes = signed.to_string().into_bytes();
            let store = trusting(public);
            let checked = check_statement(&bytes, &store).unwrap();
            assert_eq!(checked.statement, statement);
            assert!(checked.checked && checked.trusted.is_some_and(|key| key.publisher == "Ada"));
            let unknown = check_statement(&bytes, &TrustStore::default()).unwrap();
            assert!(!unknown.checked && unknown.trusted.is_none());
            let other = STANDARD.encode(json!({"subject": [{"name": "pdf"}], "n": 2}).to_string());
            let mut changed = signed.clone();
            let envelope = match changed.get_mut("dsseEnvelope") {
                Some(envelope) => envelope,
                None => &mut changed,
            };
            envelope["payload"] = other.into();
            assert!(check_statement(changed.to_string().as_bytes(), &store).is_err());
        }
    }

    #[test]
    fn malformed_statements_are_rejected() {
        for text in ["", "{}", "[]", r#"{"payload": "x", "payloadType": "y", "signatures": []}"#] {
            assert!(check_statement(text.as_bytes(), &TrustStore::default()).is_err(), "{text}");
        }
    }
}
