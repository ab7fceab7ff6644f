//! Creates and checks bundles of OpenSSF model signing, which other programs read as `skill.oms.sig`.
//!
//! A bundle is a Sigstore bundle 0.3 with a DSSE envelope around an in-toto statement that lists the
//! SHA-256 of every file. It is signed with a P-256 or P-384 key; the key stands in the bundle, or
//! in the certificate at the end of a chain. [`verify`](super::verify) reads the bundles of
//! `model_signing`, and `model_signing` reads ours.
//!
//! Our statements also contain the version of the skill. Statements of other programs contain its
//! name and its files; `SKILL.md` is one of the files and contains the version.
//!
//! As in `model_signing`, a chain is checked at the time when the validity of its certificate
//! starts: nothing in a bundle proves when it was signed, and an expired certificate does not
//! invalidate earlier signatures. So a certificate whose key leaked has to be revoked.

use std::{collections::BTreeMap, fmt, fs, path::Path, time::Duration};

use aws_lc_rs::{
    encoding::{AsDer as _, PublicKeyX509Der},
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1,
        EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
    },
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::civil::DateTime;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject as _};
use savoir_skill::digest::{hex, sha256_hex};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert, aws_lc_rs as algorithms};
use zeroize::Zeroizing;

use super::{
    KeyError, KeyKind, PublicKey, TrustStore, TrustedKey,
    dsse::{Envelope, PAYLOAD_TYPE, pre_authentication_encoding},
    json,
    keys::refuse_readable,
    public_key::{certificate_id, oms_key_id},
    safe_file,
    signature::{Difference, UNSIGNED_FILES, content, is_digest},
};
use crate::Tree;

const MEDIA_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
const PREDICATE_TYPE: &str = "https://model_signing/signature/v1.0";

/// 1.3.6.1.5.5.7.3.3: extended key usage for code signing.
const CODE_SIGNING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x03];

/// Maximum size of a key file.
const MAX_KEY_BYTES: u64 = 64 * 1024;

/// Maximum certificates in a chain below the root.
const MAX_CHAIN: usize = 8;

/// Why a bundle is invalid.
#[derive(Debug, Error)]
pub enum OmsError {
    /// The text is not a bundle.
    #[error("it is not an OMS bundle: {0}; sign the skill again")]
    Malformed(String),
    /// A field has an unsupported value.
    #[error(
        "`{field}` is {found}, expected `{expected}`; sign the skill with `model_signing` 1 or `savoir sign`"
    )]
    Unsupported { field: &'static str, found: String, expected: &'static str },
    /// It was made for another skill or version.
    #[error(
        "it signs {found}, but the skill is {expected}; a signature does not pass from one to another"
    )]
    Subject { found: String, expected: String },
    /// The digest of all digests does not match.
    #[error("its list of files is not the one that its subject names; sign the skill again")]
    Inconsistent,
    /// The signature does not match the statement.
    #[error("the signature of the key {0} does not hold; get the skill again from its publisher")]
    Wrong(String),
    /// The files differ from the signed ones.
    #[error("{0}")]
    Files(Difference),
    /// The signing key cannot be used.
    #[error("it is not a P-256 key: expected a PEM block `PRIVATE KEY` or `EC PRIVATE KEY`")]
    Key,
    /// The file of the signing key cannot be used.
    #[error(transparent)]
    File(#[from] KeyError),
    /// Signing failed.
    #[error("the system could not sign")]
    Sign,
}

impl OmsError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) | Self::Unsupported { .. } => "oms_malformed",
            Self::Subject { .. } => "oms_subject",
            Self::Inconsistent => "oms_inconsistent",
            Self::Wrong(_) => "oms_wrong",
            Self::Files(_) => "oms_files",
            Self::Key => "oms_key",
            Self::File(error) => error.code(),
            Self::Sign => "oms_sign",
        }
    }
}

/// A P-256 key that signs bundles. Its `Debug` output shows the identifier, never the secret.
pub struct BundleKey {
    pair: EcdsaKeyPair,
}

impl fmt::Debug for BundleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key_id = self.public_key().map(|key| key.key_id()).unwrap_or_default();
        f.debug_tuple("BundleKey").field(&key_id).finish()
    }
}

impl BundleKey {
    /// Parses a PEM block, as `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`
    /// writes it.
    pub fn from_pem(pem: &str) -> Result<Self, OmsError> {
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| OmsError::Key)?;
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let pair = match &key {
            PrivateKeyDer::Pkcs8(key) => {
                EcdsaKeyPair::from_pkcs8(algorithm, key.secret_pkcs8_der())
            }
            key => EcdsaKeyPair::from_private_key_der(algorithm, key.secret_der()),
        };
        Ok(Self { pair: pair.map_err(|_| OmsError::Key)? })
    }

    /// Reads the PEM block in a file; fails if other users can read the file.
    pub fn read(path: &Path) -> Result<Self, OmsError> {
        let fail = |error| KeyError::Io { path: path.to_owned(), error };
        let opened = fs::File::open(path).map_err(fail)?;
        refuse_readable(&opened, path)?;
        let pem = Zeroizing::new(safe_file::read_open(&opened, MAX_KEY_BYTES).map_err(fail)?);
        Self::from_pem(std::str::from_utf8(&pem).map_err(|_| OmsError::Key)?)
    }

    /// Generates a key; returns its secret PEM block.
    pub fn generate() -> Result<Zeroizing<String>, OmsError> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random);
        Ok(Zeroizing::new(pem("PRIVATE KEY", key.map_err(|_| OmsError::Key)?.as_ref())))
    }

    pub fn public_key(&self) -> Result<PublicKey, OmsError> {
        let der: PublicKeyX509Der<'_> =
            self.pair.public_key().as_der().map_err(|_| OmsError::Key)?;
        PublicKey::new(KeyKind::Ecdsa, der.as_ref().to_vec()).map_err(|_| OmsError::Key)
    }

    /// Returns the public key as a PEM block.
    pub fn public_pem(&self) -> Result<String, OmsError> {
        self.public_key().map(|key| pem("PUBLIC KEY", key.bytes()))
    }
}

/// Signs a skill; returns a bundle, to be written as `skill.oms.sig` before `signature.json` is
/// made.
pub fn sign(
    tree: &Tree,
    name: &str,
    version: &str,
    publisher: &str,
    key: &BundleKey,
) -> Result<Value, OmsError> {
    let files = content(tree);
    let resources: Vec<_> = files
        .iter()
        .map(|(path, digest)| json!({"name": path, "algorithm": "sha256", "digest": digest}))
        .collect();
    let payload = json!({
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": format!("{name}@{version}"), "digest": {"sha256": root(files.values())?}},
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "serialization": {
                "method": "files",
                "hash_type": "sha256",
                "allow_symlinks": false,
                "ignore_paths": UNSIGNED_FILES,
            },
            "resources": resources,
            "name": name,
            "version": version,
            "publisher": publisher,
        },
    })
    .to_string();
    sign_payload(&payload, key)
}

/// Signs a statement as a bundle.
pub(super) fn sign_payload(payload: &str, key: &BundleKey) -> Result<Value, OmsError> {
    let signature =
        key.pair.sign(&SystemRandom::new(), &pre_authentication_encoding(payload.as_bytes()));
    let signature = signature.map_err(|_| OmsError::Sign)?;
    Ok(json!({
        "mediaType": MEDIA_TYPE,
        "verificationMaterial": {
            "publicKey": {"hint": hint(key.public_key()?.bytes())},
            "tlogEntries": [],
        },
        "dsseEnvelope": {
            "payload": STANDARD.encode(payload),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": STANDARD.encode(signature.as_ref()), "keyid": ""}],
        },
    }))
}

/// The skill that a bundle is expected to sign.
pub(super) struct Skill<'a> {
    pub(super) files: &'a BTreeMap<String, String>,
    pub(super) name: &'a str,
    pub(super) version: &'a str,
}

/// The result of checking a valid bundle.
#[derive(Debug)]
pub(super) struct CheckedBundle<'a> {
    /// The keys and certificates of the bundle, that of the signature first.
    pub(super) key_ids: Vec<String>,
    /// The trusted key that made it.
    pub(super) trusted: Option<&'a TrustedKey>,
    /// Whether the signature was checked; false if its key is unknown.
    pub(super) holds: bool,
    /// Files of the skill that the bundle does not cover, because of its `ignore_paths`.
    pub(super) left_out: Vec<String>,
}

pub(super) fn check<'a>(
    bundle: &Value,
    skill: &Skill<'_>,
    store: &'a TrustStore,
) -> Result<CheckedBundle<'a>, OmsError> {
    let (mut checked, payload) = check_payload(bundle, store)?;
    checked.left_out = statement(&payload, skill)?;
    Ok(checked)
}

/// Checks the signature of a bundle; returns the bytes of its statement.
pub(super) fn check_payload<'a>(
    bundle: &Value,
    store: &'a TrustStore,
) -> Result<(CheckedBundle<'a>, Vec<u8>), OmsError> {
    let bundle = Bundle::read(bundle)?;
    let [signature] = &bundle.envelope.signatures[..] else {
        return Err(OmsError::Malformed("it has not exactly one signature".into()));
    };
    let signature = decoded(&signature.sig, "sig")?;
    let payload = decoded(&bundle.envelope.payload, "payload")?;
    let signed = pre_authentication_encoding(&payload);
    let checked = match &bundle.material {
        Material { public_key: Some(key), chain: None } => {
            check_by_key(key, &signed, &signature, store)?
        }
        Material { chain: Some(chain), public_key: None } => {
            check_by_chain(&chain.ders()?, &signed, &signature, store)?
        }
        // Keyless signatures need a transparency log and an identity policy, which are not
        // supported.
        _ => CheckedBundle { key_ids: vec![], trusted: None, holds: false, left_out: vec![] },
    };
    check_field("payloadType", &bundle.envelope.payload_type, PAYLOAD_TYPE)?;
    Ok((checked, payload))
}

/// Returns the key id that a bundle names, if any.
pub(super) fn key_id(bundle: &Value) -> Result<Option<String>, OmsError> {
    let bundle = Bundle::read(bundle)?;
    Ok(match &bundle.material {
        Material { chain: Some(chain), .. } => chain.ders()?.first().map(|der| certificate_id(der)),
        Material { public_key, .. } => public_key.as_ref().and_then(KeyHint::key_id),
    })
}

/// Returns every file that differs from the signed one.
pub(super) fn differences(
    bundle: &Value,
    files: &BTreeMap<String, String>,
) -> Result<Vec<Difference>, OmsError> {
    let payload = decoded(&Bundle::read(bundle)?.envelope.payload, "payload")?;
    let malformed = |error: serde_json::Error| OmsError::Malformed(format!("its payload: {error}"));
    let payload = json::parse(&payload).map_err(malformed)?;
    let predicate = Statement::deserialize(&payload).map_err(malformed)?.predicate;
    let signed = listed(&predicate.resources)?;
    let (covered, _) = predicate.serialization.split(&signed, files);
    Ok(Difference::all(&signed, &covered))
}

fn check_by_key<'a>(
    named: &KeyHint,
    signed: &[u8],
    signature: &[u8],
    store: &'a TrustStore,
) -> Result<CheckedBundle<'a>, OmsError> {
    let named = named.key_id();
    let mut known = store.of_kind(KeyKind::Ecdsa);
    let trusted = match &named {
        Some(named) => known.find(|trusted| trusted.key.key_id() == *named),
        None => known.find(|trusted| is_valid_signature(trusted.key.bytes(), signed, signature)),
    };
    let Some(trusted) = trusted else {
        let key_ids = named.into_iter().collect();
        return Ok(CheckedBundle { key_ids, trusted: None, holds: false, left_out: vec![] });
    };
    let key_id = trusted.key.key_id();
    if !is_valid_signature(trusted.key.bytes(), signed, signature) {
        return Err(OmsError::Wrong(key_id));
    }
    let (key_ids, trusted) = (vec![key_id], Some(trusted));
    Ok(CheckedBundle { key_ids, trusted, holds: true, left_out: vec![] })
}

fn check_by_chain<'a>(
    chain: &[CertificateDer<'static>],
    signed: &[u8],
    signature: &[u8],
    store: &'a TrustStore,
) -> Result<CheckedBundle<'a>, OmsError> {
    let malformed = |why: &str| OmsError::Malformed(why.to_owned());
    let (leaf, others) = chain.split_first().ok_or_else(|| malformed("its chain is empty"))?;
    if others.len() > MAX_CHAIN {
        return Err(malformed("its chain is too long"));
    }
    let end = EndEntityCert::try_from(leaf)
        .map_err(|error| malformed(&format!("its certificate cannot be read: {error}")))?;
    let key = end.subject_public_key_info();
    if !is_valid_signature(&key, signed, signature) {
        return Err(OmsError::Wrong(certificate_id(leaf)));
    }
    let mut key_ids: Vec<_> = chain.iter().map(|certificate| certificate_id(certificate)).collect();
    key_ids.push(oms_key_id(&key));
    let roots = store.of_kind(KeyKind::Certificate);
    let trusted = roots.into_iter().find(|root| check_chain(&end, leaf, others, root.key.bytes()));
    key_ids.extend(trusted.map(|trusted| trusted.key.key_id()));
    Ok(CheckedBundle { key_ids, trusted, holds: true, left_out: vec![] })
}

/// Whether a certificate chain leads to the root.
fn check_chain(
    end: &EndEntityCert<'_>,
    leaf: &CertificateDer<'_>,
    others: &[CertificateDer<'static>],
    root: &[u8],
) -> bool {
    let root = CertificateDer::from(root);
    let (Ok(anchor), Some(time)) = (anchor_from_trusted_cert(&root), valid_from(leaf)) else {
        return false;
    };
    let anchors = [anchor];
    let good = end.verify_for_usage(
        &[
            algorithms::ECDSA_P256_SHA256,
            algorithms::ECDSA_P256_SHA384,
            algorithms::ECDSA_P384_SHA256,
            algorithms::ECDSA_P384_SHA384,
            algorithms::RSA_PKCS1_2048_8192_SHA256,
            algorithms::RSA_PKCS1_2048_8192_SHA384,
            algorithms::RSA_PKCS1_2048_8192_SHA512,
        ],
        &anchors,
        others,
        time,
        KeyUsage::required_if_present(CODE_SIGNING),
        None,
        None,
    );
    if let Err(error) = &good {
        tracing::debug!(root = certificate_id(&root), %error, "the certificates do not lead to this root");
    }
    good.is_ok()
}

/// Parses when a certificate becomes valid: the fourth member after its optional version.
fn valid_from(certificate: &[u8]) -> Option<UnixTime> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut body, _) = element(certificate)?;
    if let (0xa0, _, rest) = element(body)? {
        body = rest;
    }
    for _ in ["serial number", "algorithm", "issuer"] {
        body = element(body)?.2;
    }
    let (_, validity, _) = element(body)?;
    let (tag, from, _) = element(validity)?;
    let text = std::str::from_utf8(from).ok()?;
    let text = match tag {
        0x17 if text.as_bytes().first()? >= &b'5' => format!("19{text}"),
        0x17 => format!("20{text}"),
        0x18 => text.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?;
    let seconds = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second();
    Some(UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(seconds).ok()?)))
}

/// Parses a DER element; returns its tag, its content, and the rest.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, length, rest) = match bytes {
        [tag, length @ 0..=0x7f, rest @ ..] | [tag, 0x81, length, rest @ ..] => {
            (tag, usize::from(*length), rest)
        }
        [tag, 0x82, a, b, rest @ ..] => (tag, usize::from(u16::from_be_bytes([*a, *b])), rest),
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// Checks the statement of a bundle. Returns the files that it does not cover.
fn statement(payload: &[u8], skill: &Skill<'_>) -> Result<Vec<String>, OmsError> {
    let malformed = |error: serde_json::Error| OmsError::Malformed(format!("its payload: {error}"));
    let payload = json::parse(payload).map_err(malformed)?;
    let statement = Statement::deserialize(&payload).map_err(malformed)?;
    check_field("_type", &statement.kind, STATEMENT_TYPE)?;
    check_field("predicateType", &statement.predicate_type, PREDICATE_TYPE)?;
    let predicate = statement.predicate;
    check_field("predicate.serialization.method", &predicate.serialization.method, "files")?;
    let [subject] = &statement.subject[..] else {
        return Err(OmsError::Malformed("it has not exactly one subject".into()));
    };
    let Skill { files, name, version } = *skill;
    let both = format!("{name}@{version}");
    // The version is only compared if it is known.
    let named = match subject.name.split_once('@') {
        Some((first, _)) if version.is_empty() => first == name,
        _ => subject.name == name || subject.name == both,
    };
    let same = |claimed: &Option<String>, actual: &str| {
        actual.is_empty() || claimed.as_ref().is_none_or(|claimed| claimed == actual)
    };
    if !named || !same(&predicate.name, name) || !same(&predicate.version, version) {
        let found = match (&predicate.name, &predicate.version) {
            (Some(name), Some(version)) => format!("{name}@{version}"),
            _ => subject.name.clone(),
        };
        return Err(OmsError::Subject { found: found.escape_debug().to_string(), expected: both });
    }
    let signed = listed(&predicate.resources)?;
    if root(predicate.resources.iter().map(|resource| &resource.digest))? != subject.digest.sha256 {
        return Err(OmsError::Inconsistent);
    }
    let (covered, left_out) = predicate.serialization.split(&signed, files);
    Difference::find(&signed, &covered).map_err(OmsError::Files)?;
    Ok(left_out)
}

/// Returns the files that a statement lists, with their digests.
fn listed(resources: &[Resource]) -> Result<BTreeMap<String, String>, OmsError> {
    let mut signed = BTreeMap::new();
    for resource in resources {
        check_field("predicate.resources.algorithm", &resource.algorithm, "sha256")?;
        if !is_digest(&resource.digest) {
            return Err(OmsError::Malformed(format!(
                "no SHA-256 for `{}`",
                resource.name.escape_debug()
            )));
        }
        if signed.insert(resource.name.clone(), resource.digest.clone()).is_some() {
            return Err(OmsError::Malformed(format!(
                "`{}` is there twice",
                resource.name.escape_debug()
            )));
        }
    }
    Ok(signed)
}

fn check_field(field: &'static str, found: &str, expected: &'static str) -> Result<(), OmsError> {
    if found == expected {
        return Ok(());
    }
    Err(OmsError::Unsupported { field, found: format!("`{}`", found.escape_debug()), expected })
}

/// Computes the digest of all digests in order.
fn root<'a>(digests: impl Iterator<Item = &'a String>) -> Result<String, OmsError> {
    let mut all = Sha256::new();
    for digest in digests {
        let byte = |n: usize| digest.get(n..n + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
        let bytes: Option<Vec<u8>> = (0..digest.len()).step_by(2).map(byte).collect();
        all.update(bytes.ok_or(OmsError::Inconsistent)?);
    }
    Ok(hex(&all.finalize()))
}

fn is_valid_signature(key: &[u8], signed: &[u8], signature: &[u8]) -> bool {
    [&ECDSA_P256_SHA256_ASN1, &ECDSA_P384_SHA384_ASN1]
        .into_iter()
        .any(|algorithm| UnparsedPublicKey::new(algorithm, key).verify(signed, signature).is_ok())
}

/// Returns the key id that bundles use: the digest of the key's PEM block.
pub(super) fn hint(key: &[u8]) -> String {
    sha256_hex(pem("PUBLIC KEY", key).as_bytes())
}

pub(super) fn pem(kind: &str, bytes: &[u8]) -> String {
    let text = Zeroizing::new(STANDARD.encode(bytes));
    let mut block = format!("-----BEGIN {kind}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(64));
        block.push_str(line);
        block.push('\n');
        rest = more;
    }
    block + &format!("-----END {kind}-----\n")
}

fn decoded(text: &str, field: &str) -> Result<Vec<u8>, OmsError> {
    STANDARD.decode(text).map_err(|_| OmsError::Malformed(format!("`{field}` is not base64")))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    media_type: String,
    #[serde(rename = "verificationMaterial")]
    material: Material,
    #[serde(rename = "dsseEnvelope")]
    envelope: Envelope,
}

impl Bundle {
    fn read(value: &Value) -> Result<Self, OmsError> {
        let bundle = Self::deserialize(value);
        let bundle = bundle.map_err(|error| OmsError::Malformed(error.to_string()))?;
        check_field("mediaType", &bundle.media_type, MEDIA_TYPE)?;
        Ok(bundle)
    }
}

#[derive(Deserialize)]
struct Material {
    #[serde(rename = "publicKey")]
    public_key: Option<KeyHint>,
    #[serde(rename = "x509CertificateChain")]
    chain: Option<Chain>,
}

#[derive(Deserialize)]
struct KeyHint {
    hint: Option<String>,
}

impl KeyHint {
    fn key_id(&self) -> Option<String> {
        let hint = self.hint.as_ref().filter(|hint| is_digest(hint));
        hint.map(|hint| format!("oms:{hint}"))
    }
}

#[derive(Deserialize)]
struct Chain {
    certificates: Vec<Certificate>,
}

impl Chain {
    fn ders(&self) -> Result<Vec<CertificateDer<'static>>, OmsError> {
        let der = |certificate: &Certificate| decoded(&certificate.raw_bytes, "rawBytes");
        self.certificates.iter().map(|certificate| der(certificate).map(Into::into)).collect()
    }
}

#[derive(Deserialize)]
struct Certificate {
    #[serde(rename = "rawBytes")]
    raw_bytes: String,
}

#[derive(Deserialize)]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    predicate: Predicate,
}

#[derive(Deserialize)]
struct Subject {
    name: String,
    digest: SubjectDigest,
}

#[derive(Deserialize)]
struct SubjectDigest {
    sha256: String,
}

#[derive(Deserialize)]
struct Predicate {
    serialization: Serialization,
    resources: Vec<Resource>,
    name: Option<String>,
    version: Option<String>,
}

#[derive(Deserialize)]
struct Serialization {
    method: String,
    /// Files and folders that the signer excluded.
    #[serde(default)]
    ignore_paths: Vec<String>,
}

impl Serialization {
    /// Splits the files into those that must match the signed ones, and those that are excluded.
    fn split(
        &self,
        signed: &BTreeMap<String, String>,
        files: &BTreeMap<String, String>,
    ) -> (BTreeMap<String, String>, Vec<String>) {
        let (mut covered, mut left_out) = (BTreeMap::new(), Vec::new());
        for (path, digest) in files {
            if !signed.contains_key(path) && self.ignores(path) {
                left_out.push(path.clone());
            } else {
                covered.insert(path.clone(), digest.clone());
            }
        }
        (covered, left_out)
    }

    /// Whether a path is excluded, or below an excluded folder.
    fn ignores(&self, path: &str) -> bool {
        self.ignore_paths.iter().any(|ignored| {
            let ignored = ignored.strip_prefix("./").unwrap_or(ignored).trim_end_matches('/');
            let rest = path.strip_prefix(ignored).filter(|_| !ignored.is_empty());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    algorithm: String,
    digest: String,
}

#[cfg(test)]
mod tests;
