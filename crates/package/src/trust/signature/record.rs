//! Checks the members of a signature record.

use std::collections::BTreeMap;

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use super::{
    super::{PublicKey, json},
    ED25519_NAME, SignatureError, UNSIGNED_NAME,
};
use crate::{limits::MAX_SHOWN_BYTES, path::is_hidden};

/// A JSON object of a signature, with its position for errors.
pub(super) struct Record<'a> {
    pub(super) members: Map<String, Value>,
    pub(super) place: &'a str,
}

impl<'a> Record<'a> {
    pub(super) fn parse(bytes: &[u8], place: &'a str) -> Result<Self, SignatureError> {
        let wrong = |why: String| SignatureError::Json { place: place.to_owned(), why };
        match json::parse(bytes).map_err(|error| wrong(error.to_string()))? {
            Value::Object(members) => Ok(Self { members, place }),
            _ => Err(wrong("it is something else".to_owned())),
        }
    }

    pub(super) fn wrong(&self, field: &'static str, why: String) -> SignatureError {
        SignatureError::Field { place: self.place.to_owned(), field, why }
    }

    pub(super) fn text(&self, field: &'static str) -> Result<&str, SignatureError> {
        self.optional(field)?.ok_or_else(|| self.wrong(field, "is missing".to_owned()))
    }

    pub(super) fn optional(&self, field: &'static str) -> Result<Option<&str>, SignatureError> {
        match self.members.get(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(field, "is not a text".to_owned())),
        }
    }

    /// Returns a text that is shown to users.
    pub(super) fn line(&self, field: &'static str) -> Result<Option<&str>, SignatureError> {
        let line = self.optional(field)?.filter(|line| !line.is_empty());
        if line.is_some_and(|line| line.len() > MAX_SHOWN_BYTES || line.contains(is_hidden)) {
            let why = format!("is not a line of at most {MAX_SHOWN_BYTES} bytes that can be seen");
            return Err(self.wrong(field, why));
        }
        Ok(line)
    }

    /// Returns a member for an error message, shortened and without control characters.
    pub(super) fn shown(&self, field: &str) -> String {
        let value = self.members.get(field).map_or_else(|| "missing".to_owned(), Value::to_string);
        value.chars().filter(|c| !is_hidden(*c)).take(80).collect()
    }

    pub(super) fn algorithm(&self) -> Result<&'static str, SignatureError> {
        let found = self.members.get("algorithm").and_then(Value::as_str);
        let known = [ED25519_NAME, UNSIGNED_NAME].into_iter().find(|known| Some(*known) == found);
        known.ok_or_else(|| SignatureError::Algorithm {
            place: self.place.to_owned(),
            found: self.shown("algorithm"),
        })
    }

    pub(super) fn format(&self) -> Result<(), SignatureError> {
        match self.members.get("signature_version").and_then(Value::as_u64) {
            Some(1) => Ok(()),
            _ => Err(SignatureError::Format {
                place: self.place.to_owned(),
                found: self.shown("signature_version"),
            }),
        }
    }

    /// Checks that the record was made for this skill and version. The skill may have no version;
    /// the record must have one.
    pub(super) fn belongs_to(&self, name: &str, version: &str) -> Result<(), SignatureError> {
        let place = self.place.to_owned();
        let signed = self.members.get("name").and_then(Value::as_str);
        if name.is_empty() || signed != Some(name) {
            let found = self.shown("name");
            return Err(SignatureError::Name { place, found, expected: name.to_owned() });
        }
        let signed = self.members.get("version").and_then(Value::as_str);
        let is_stated = signed.is_some_and(|signed| !signed.is_empty());
        if !is_stated || !version.is_empty() && signed != Some(version) {
            let found = self.shown("version");
            return Err(SignatureError::Version { place, found, expected: version.to_owned() });
        }
        Ok(())
    }

    pub(super) fn files(&self) -> Result<BTreeMap<String, String>, SignatureError> {
        let wrong = |why: String| SignatureError::Files { place: self.place.to_owned(), why };
        let Some(Value::Object(files)) = self.members.get("files") else {
            return Err(wrong("is not an object, so it is not known what was signed".to_owned()));
        };
        let digests = files.iter().map(|(path, digest)| {
            let digest = digest
                .as_str()
                .filter(|digest| is_digest(digest))
                .ok_or_else(|| wrong(format!("has no SHA-256 for `{}`", path.escape_debug())))?;
            Ok((path.clone(), digest.to_owned()))
        });
        digests.collect()
    }

    pub(super) fn base64<const N: usize>(
        &self,
        field: &'static str,
    ) -> Result<[u8; N], SignatureError> {
        let bytes = STANDARD.decode(self.text(field)?);
        let bytes = bytes.map_err(|error| self.wrong(field, format!("is not base64: {error}")))?;
        bytes.try_into().map_err(|bytes: Vec<u8>| {
            self.wrong(field, format!("has {} bytes, expected {N}", bytes.len()))
        })
    }

    /// Returns the key of the signature, if the signature is valid.
    pub(super) fn signer(&self, bytes: &[u8]) -> Result<PublicKey, SignatureError> {
        let public_key: [u8; 32] = self.base64("public_key")?;
        let signature: [u8; 64] = self.base64("signature")?;
        let key = PublicKey::ed25519(public_key);
        let claimed = self.line("key_id")?;
        let claimed = claimed.ok_or_else(|| self.wrong("key_id", "is missing".to_owned()))?;
        claims(self.place, Some(claimed), &key.key_id())?;
        match UnparsedPublicKey::new(&ED25519, public_key).verify(bytes, &signature) {
            Ok(()) => Ok(key),
            Err(_) => {
                Err(SignatureError::Wrong { place: self.place.to_owned(), key_id: key.key_id() })
            }
        }
    }
}

/// Checks that a claimed key id matches the actual key.
pub(super) fn claims(
    place: &str,
    claimed: Option<&str>,
    actual: &str,
) -> Result<(), SignatureError> {
    match claimed {
        Some(claimed) if claimed != actual => Err(SignatureError::KeyId {
            place: place.to_owned(),
            claimed: claimed.to_owned(),
            actual: actual.to_owned(),
        }),
        _ => Ok(()),
    }
}

pub(in super::super) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
