//! Parses public keys of every kind that can be trusted.

use std::fmt;

use aws_lc_rs::{
    digest::{self, SHA1_FOR_LEGACY_USE_ONLY},
    signature::{ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ED25519, ParsedPublicKey},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls_pki_types::{CertificateDer, pem::PemObject as _};
use savoir_skill::digest::{hex, sha256_hex};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{oms, openpgp, ssh};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// An Ed25519 key of 32 bytes, which signs `signature.json`.
    #[default]
    Ed25519,
    /// An OpenSSH key.
    Ssh,
    /// A P-256 or P-384 key, which signs OMS bundles.
    Ecdsa,
    /// The root of certificates that sign OMS bundles.
    Certificate,
    /// An OpenPGP key.
    OpenPgp,
}

/// A public key. Its [identifier](Self::key_id) shows its kind:
///
/// | Kind | Identifier |
/// |---|---|
/// | Ed25519 | 32 hexadecimal digits: the first of the SHA-256 of the key |
/// | SSH | `SHA256:` and base64, as `ssh-keygen -l` shows it |
/// | ECDSA | `oms:` and the SHA-256 of its PEM block, as bundles name it |
/// | Certificate | `x509:` and the SHA-256 of the certificate in DER |
/// | OpenPGP | `openpgp:` and the fingerprint |
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    kind: KeyKind,
    bytes: Vec<u8>,
    key_id: String,
}

/// The reason why a text is not a public key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PublicKeyError {
    /// The format is unknown.
    #[error(
        "it is not a public key: expected base64 of 32 bytes, a line `ssh-ed25519 AAAA…`, or a PEM block `PUBLIC KEY`, `CERTIFICATE` or `PGP PUBLIC KEY BLOCK`"
    )]
    Unknown,
    /// The format is known, but the key cannot be used.
    #[error("it is not a usable public key: {0}")]
    Unusable(&'static str),
    /// It is a private key, which should not have been passed.
    #[error("it is a private key; keep it, and give the public one")]
    Private,
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PublicKey").field(&self.kind).field(&self.key_id).finish()
    }
}

impl PublicKey {
    /// Parses a key as its program writes it: the line of a `.pub` file of Savoir or of OpenSSH, or
    /// a PEM block.
    pub fn parse(text: &str) -> Result<Self, PublicKeyError> {
        let text = text.trim();
        if text.contains("PRIVATE KEY") {
            return Err(PublicKeyError::Private);
        }
        if text.starts_with("-----BEGIN PGP PUBLIC KEY BLOCK-----") {
            let bytes = openpgp::dearmour(text, "PGP PUBLIC KEY BLOCK");
            return Self::new(KeyKind::OpenPgp, bytes.ok_or(PublicKeyError::Unknown)?);
        }
        if text.starts_with("-----BEGIN CERTIFICATE-----") {
            let certificate = CertificateDer::from_pem_slice(text.as_bytes());
            let certificate = certificate.map_err(|_| PublicKeyError::Unknown)?;
            return Self::new(KeyKind::Certificate, certificate.to_vec());
        }
        if text.starts_with("-----BEGIN PUBLIC KEY-----") {
            let key = rustls_pki_types::SubjectPublicKeyInfoDer::from_pem_slice(text.as_bytes());
            let key = key.map_err(|_| PublicKeyError::Unknown)?;
            return Self::new(KeyKind::Ecdsa, key.to_vec());
        }
        if let Some(bytes) = ssh::public_key_line(text) {
            return Self::new(KeyKind::Ssh, bytes);
        }
        let bytes = STANDARD.decode(text).map_err(|_| PublicKeyError::Unknown)?;
        Self::new(KeyKind::Ed25519, bytes)
    }

    /// Creates a key of a kind from its bytes.
    pub(super) fn new(kind: KeyKind, bytes: Vec<u8>) -> Result<Self, PublicKeyError> {
        let key_id = match kind {
            KeyKind::Ed25519 => validated_ed25519_id(&bytes)?,
            KeyKind::Ssh => ssh::key_id(&bytes)?,
            KeyKind::Ecdsa => validated_ecdsa_id(&bytes)?,
            KeyKind::Certificate => validated_certificate_id(&bytes)?,
            KeyKind::OpenPgp => openpgp_id(&bytes)?,
        };
        Ok(Self { kind, bytes, key_id })
    }

    /// Creates the public key of one of Savoir's own keys, whose bytes are known to be valid.
    pub(super) fn ed25519(bytes: [u8; 32]) -> Self {
        Self { kind: KeyKind::Ed25519, key_id: ed25519_key_id(&bytes), bytes: bytes.to_vec() }
    }

    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// The identifier of the key.
    pub fn key_id(&self) -> String {
        self.key_id.clone()
    }

    /// The bytes in base64, as in the list of trusted keys.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(&self.bytes)
    }

    /// The key as text that [`Self::parse`] reads: a PEM block for keys that sign bundles, a line of
    /// OpenSSH for its keys, else base64. Only OpenPGP keys have no such text.
    pub fn to_text(&self) -> String {
        match self.kind {
            KeyKind::Ecdsa => oms::pem("PUBLIC KEY", &self.bytes),
            KeyKind::Certificate => oms::pem("CERTIFICATE", &self.bytes),
            KeyKind::Ssh => ssh::public_key_line_of(&self.bytes),
            KeyKind::Ed25519 | KeyKind::OpenPgp => self.to_base64(),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

fn ed25519_key_id(bytes: &[u8]) -> String {
    let mut id = sha256_hex(bytes);
    id.truncate(32);
    id
}

fn validated_ed25519_id(bytes: &[u8]) -> Result<String, PublicKeyError> {
    if bytes.len() != 32 || ParsedPublicKey::new(&ED25519, bytes).is_err() {
        return Err(PublicKeyError::Unusable("an Ed25519 key has 32 bytes"));
    }
    Ok(ed25519_key_id(bytes))
}

fn validated_ecdsa_id(bytes: &[u8]) -> Result<String, PublicKeyError> {
    // An uncompressed point would be accepted, too, and the same key would have two identifiers.
    let is_der = bytes.first() == Some(&0x30);
    let is_known_curve = ParsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, bytes).is_ok()
        || ParsedPublicKey::new(&ECDSA_P384_SHA384_ASN1, bytes).is_ok();
    if !is_der || !is_known_curve {
        return Err(PublicKeyError::Unusable("bundles are signed with P-256 or P-384 keys"));
    }
    Ok(oms_key_id(bytes))
}

pub(super) fn oms_key_id(bytes: &[u8]) -> String {
    format!("oms:{}", oms::hint(bytes))
}

pub(super) fn certificate_id(bytes: &[u8]) -> String {
    format!("x509:{}", sha256_hex(bytes))
}

fn validated_certificate_id(bytes: &[u8]) -> Result<String, PublicKeyError> {
    let certificate = CertificateDer::from(bytes);
    match webpki::anchor_from_trusted_cert(&certificate) {
        Ok(_) => Ok(certificate_id(bytes)),
        Err(_) => Err(PublicKeyError::Unusable("the certificate cannot be read")),
    }
}

fn openpgp_id(bytes: &[u8]) -> Result<String, PublicKeyError> {
    let fingerprinted = openpgp::fingerprinted(bytes).ok_or(PublicKeyError::Unusable(
        "an OpenPGP key begins with a public key packet of version 4 or 6",
    ))?;
    Ok(match fingerprinted {
        openpgp::FingerprintedKey::Version4(bytes) => {
            format!("openpgp:{}", hex(digest::digest(&SHA1_FOR_LEGACY_USE_ONLY, &bytes).as_ref()))
        }
        openpgp::FingerprintedKey::Version6(bytes) => format!("openpgp:{}", sha256_hex(&bytes)),
    })
}
