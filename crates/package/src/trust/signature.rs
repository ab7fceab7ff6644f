//! Signs skills and verifies their signatures. A record is the content of `signature.json`: the
//! hashes of all files, the name and the version of the skill, and one or more signatures.

use std::{collections::BTreeMap, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use savoir_skill::digest::sha256_hex;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    PublicKey, Role, SigningKey, Tier, TrustStore, TrustedKey,
    oms::{self, OmsError},
    openpgp, ssh,
};
use crate::{
    File, Tree,
    limits::MAX_SIGNATURES,
    tree::{SIGNATURE_FILES, canonical_json, push_ascii},
};

mod error;
mod record;
mod stored_records;

pub use error::{Difference, SignatureError};
pub(super) use record::is_digest;
use record::{Record, claims};
pub use stored_records::{SignatureRecord, records};

/// File names of the record: as the specification spells it, and as the shipped product does.
const RECORD_FILES: [&str; 2] = ["signature.json", "SIGNATURE.json"];
/// File name of an OpenSSF model signing bundle, as other programs expect it.
const BUNDLE_FILE: &str = "skill.oms.sig";
/// File name of a detached OpenPGP signature over the signed bytes.
const OPENPGP_FILE: &str = "signature.asc";

/// The `algorithm` of a record with an Ed25519 signature.
const ED25519_NAME: &str = "ed25519";
/// The `algorithm` of a record without its own signature, which only has entries in `signatures`.
const UNSIGNED_NAME: &str = "detached";

/// The `type` of an entry of `signatures` that contains a complete record.
const RECORD_TYPE: &str = "record";

/// The format of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SignatureKind {
    /// The Ed25519 signature in `signature.json`.
    Ed25519,
    /// OpenSSH.
    SshSig,
    /// OpenSSF model signing.
    Oms,
    OpenPgp,
}

impl SignatureKind {
    /// The name of the kind in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ed25519 => "ed25519",
            Self::SshSig => "sshsig",
            Self::Oms => "oms",
            Self::OpenPgp => "openpgp",
        }
    }
}

/// The signer of a valid signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Signer {
    /// The identifier of the key.
    pub key_id: String,
    /// The owner of the key: from the list of trusted keys, or, if the key is not trusted, as the
    /// signature claims.
    pub publisher: String,
    /// The role of the key; `None` if it is not trusted for this skill.
    pub role: Option<Role>,
    pub kind: SignatureKind,
    /// The skills for which the user trusts the key, if this skill is not one of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trusted_for: Vec<String>,
}

impl Signer {
    fn tier(&self) -> Tier {
        self.role.map_or(Tier::Experimental, Role::tier)
    }
}

/// A signature that cannot be checked, because its key or its format is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UncheckedSignature {
    /// The key that the signature names, if any.
    pub key_id: Option<String>,
    /// The format that the signature names.
    pub kind: String,
}

/// The result of verifying the signatures of a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Attestation {
    /// The valid signature with the highest tier; `None` if there is no valid signature.
    pub signed: Option<Signer>,
    /// The tier that the signatures attest.
    pub tier: Tier,
    /// The signers of all valid signatures.
    pub signatures: Vec<Signer>,
    /// Signatures that could not be checked. They do not raise the tier.
    pub unchecked: Vec<UncheckedSignature>,
    /// Files that a signature does not cover, because the signer excluded them. Unless they are
    /// only files for git, such as `.gitignore`, that signature does not raise the tier.
    pub left_out: Vec<String>,
}

impl Attestation {
    fn of(check: Check<'_>) -> Self {
        let Check { signers: signatures, unchecked, mut left_out, .. } = check;
        left_out.sort();
        left_out.dedup();
        // Reversed, because `max_by_key` returns the last of equal maxima, and the first is wanted.
        let signed = signatures.iter().rev().max_by_key(|signer| signer.tier()).cloned();
        let tier = signed.as_ref().map_or(Tier::Experimental, Signer::tier);
        Self { signed, tier, signatures, unchecked, left_out }
    }
}

/// A signature made by another program, to add to a record with [`countersign`].
#[derive(Clone, Debug)]
pub enum FurtherSignature {
    /// The output of `ssh-keygen -Y sign` or [`ssh::sign`] for the signed bytes.
    SshSig(String),
    /// A bundle, as [`oms::sign`] creates it.
    Oms(Value),
    /// An armoured OpenPGP signature over the signed bytes.
    OpenPgp {
        /// The fingerprint of the key.
        fingerprint: String,
        armoured: String,
    },
}

/// Signs a skill; returns the bytes of a new `signature.json`. Does not take over signatures of an
/// existing one.
pub fn sign(tree: &Tree, name: &str, version: &str, publisher: &str, key: &SigningKey) -> Vec<u8> {
    let files = files(tree);
    let signature = key.sign(statement(ED25519_NAME, &files, name, version).as_bytes());
    let record = json!({
        "algorithm": ED25519_NAME,
        "files": files,
        "key_id": key.key_id(),
        "name": name,
        "public_key": key.public_key().to_base64(),
        "publisher": publisher,
        "signature": STANDARD.encode(signature),
        "signature_version": 1,
        "version": version,
    });
    written(&record)
}

/// Returns a record without its own signature, for users who only sign with other programs: add at
/// least one signature with [`countersign`].
pub fn unsigned(tree: &Tree, name: &str, version: &str) -> Vec<u8> {
    written(&json!({
        "algorithm": UNSIGNED_NAME,
        "files": files(tree),
        "name": name,
        "signature_version": 1,
        "version": version,
    }))
}

/// Returns the bytes that a record signs, for other programs to sign, too.
pub fn signed_bytes(record: &[u8]) -> Result<Vec<u8>, SignatureError> {
    let record = Record::parse(record, RECORD_FILES[0])?;
    let algorithm = record.algorithm()?;
    record.format()?;
    let (name, version) = (record.text("name")?, record.text("version")?);
    Ok(statement(algorithm, &record.files()?, name, version).into_bytes())
}

/// Adds a signature of another program to a record.
pub fn countersign(record: &[u8], further: FurtherSignature) -> Result<Vec<u8>, SignatureError> {
    let place = RECORD_FILES[0];
    let mut record = Record::parse(record, place)?.members;
    let entry = match further {
        FurtherSignature::SshSig(sig) => {
            let key = ssh::signer(&sig);
            let key = key.map_err(|error| SignatureError::Ssh { place: place.into(), error })?;
            json!({"type": "sshsig", "keyid": key.key_id(), "sig": sig})
        }
        FurtherSignature::Oms(bundle) => {
            let error = |error| SignatureError::Oms { place: place.into(), error };
            match oms::key_id(&bundle).map_err(error)? {
                Some(key_id) => json!({"type": "oms", "keyid": key_id, "bundle": bundle}),
                None => json!({"type": "oms", "bundle": bundle}),
            }
        }
        FurtherSignature::OpenPgp { fingerprint, armoured } => {
            let fingerprint = fingerprint.to_ascii_lowercase();
            json!({"type": "openpgp", "keyid": format!("openpgp:{fingerprint}"), "sig": armoured})
        }
    };
    let list = record.entry("signatures").or_insert_with(|| json!([]));
    let list = list.as_array_mut().ok_or_else(|| SignatureError::Field {
        place: place.into(),
        field: "signatures",
        why: "is not a list".into(),
    })?;
    list.push(entry);
    Ok(written(&record.into()))
}

/// Adds the signatures that a registry stores for a skill to those in its files.
///
/// Each of `others` is a record in the format of `signature.json`. Signatures do not change a
/// skill's integrity, so the result is the same skill. The signatures are not checked: call
/// [`verify`].
pub fn attach(tree: &Tree, others: &[Value]) -> Result<Tree, SignatureError> {
    let place = file_name(tree).unwrap_or(RECORD_FILES[0]);
    let own = tree.get(place).map(|file| Record::parse(&file.bytes, place)).transpose()?;
    let mut record = own.map(|own| own.members);
    let mut changed = false;
    for other in others.iter().filter_map(Value::as_object) {
        match &mut record {
            None => record = Some(other.clone()),
            Some(record) if has_record(record, other) => continue,
            Some(record) => {
                let list = record.entry("signatures").or_insert_with(|| json!([]));
                let Some(list) = list.as_array_mut() else {
                    let (place, why) = (place.to_owned(), "is not a list".to_owned());
                    return Err(SignatureError::Field { place, field: "signatures", why });
                };
                list.push(json!({"type": RECORD_TYPE, "record": other}));
            }
        }
        changed = true;
    }
    let Some(record) = record.filter(|_| changed) else { return Ok(tree.clone()) };
    let file = File { bytes: written(&record.into()), executable: false };
    tree.with_file(place, file)
        .map_err(|error| SignatureError::Json { place: place.to_owned(), why: error.to_string() })
}

/// Whether a record equals another one or already contains it. A second signature of the same files
/// by the same key adds nothing.
fn has_record(record: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let same = |one: &Map<String, Value>| {
        ["signature", "signatures", "files", "name", "version"]
            .iter()
            .all(|key| one.get(*key) == other.get(*key))
    };
    let is_own = other.get("signature").is_some_and(|own| record.get("signature") == Some(own));
    let further = record.get("signatures").and_then(Value::as_array).into_iter().flatten();
    let mut further = further.filter_map(|entry| entry["record"].as_object());
    is_own || same(record) || further.any(same)
}

/// Returns the name of the file that has the record, if there is one. A [`Tree`] cannot have both
/// spellings.
pub fn file_name(tree: &Tree) -> Option<&'static str> {
    RECORD_FILES.into_iter().find(|name| tree.get(name).is_some())
}

/// Whether a skill's folder has any file that [`verify`] would check.
pub fn is_signed(folder: &Path) -> bool {
    SIGNATURE_FILES.iter().any(|name| folder.join(name).symlink_metadata().is_ok())
}

/// Checks every signature of a skill, and returns what they attest.
///
/// `name` and `version` are those that the caller requested, not those in the skill's own files. An
/// empty one is not compared: a skill's files may have no version if the registry assigned one.
pub fn verify(
    tree: &Tree,
    name: &str,
    version: &str,
    store: &TrustStore,
) -> Result<Attestation, SignatureError> {
    let (signers, unchecked, left_out) = (vec![], vec![], vec![]);
    let mut check = Check { tree, name, version, store, signers, unchecked, left_out };
    let mut bytes = None;
    if let Some(place) = file_name(tree)
        && let Some(file) = tree.get(place)
    {
        bytes = Some(check.record(&Record::parse(&file.bytes, place)?, Nested::Allowed)?);
    }
    if let Some(file) = tree.get(BUNDLE_FILE) {
        let bundle = Record::parse(&file.bytes, BUNDLE_FILE)?;
        check.bundle(BUNDLE_FILE.to_owned(), &bundle.members.into(), None)?;
    }
    if let Some(file) = tree.get(OPENPGP_FILE) {
        let bytes = bytes
            .unwrap_or_else(|| statement(UNSIGNED_NAME, &files(tree), name, version).into_bytes());
        let text = String::from_utf8_lossy(&file.bytes);
        check.openpgp(OPENPGP_FILE.to_owned(), &text, None, &bytes)?;
    }
    Ok(Attestation::of(check))
}

/// Returns what the signatures of a skill attest under the keys that a user trusts.
///
/// A wrong signature is an error only if it names a key that the user trusts or that was revoked.
/// Any other wrong signature attests nothing: anyone who changed the files could have removed it as
/// well.
pub fn attest(
    tree: &Tree,
    name: &str,
    version: &str,
    store: &TrustStore,
) -> Result<Attestation, SignatureError> {
    verify(tree, name, version, store).or_else(|error| {
        let records = records(tree).unwrap_or_default();
        let is_known = |id: &String| store.get(id).is_some() || store.revocation(id).is_some();
        // The key of an OpenPGP signature is not known before it is checked.
        let concerns_user = |record: &SignatureRecord| match &record.key_id {
            Some(id) => is_known(id),
            None => record.kind == SignatureKind::OpenPgp,
        };
        let revoked = matches!(error, SignatureError::Revoked { .. });
        if revoked || error.is_undecided() || records.iter().any(concerns_user) {
            return Err(error);
        }
        let unchecked = records.into_iter().map(|record| UncheckedSignature {
            key_id: record.key_id,
            kind: format!("{}, which does not match the files,", record.kind.as_str()),
        });
        let mut unchecked: Vec<UncheckedSignature> = unchecked.collect();
        if unchecked.is_empty() && has_record_file(tree) {
            let kind = "invalid".to_owned();
            unchecked.push(UncheckedSignature { key_id: None, kind });
        }
        Ok(Attestation { unchecked, ..Attestation::default() })
    })
}

/// Returns what the signatures of a skill attest under the keys that a user trusts, before the skill
/// is installed.
///
/// In contrast to [`attest`], a wrong record is an error even if the user does not trust its key.
/// `savoir verify` would refuse the installed skill for the same reason, and a mistake of the
/// publisher is reported before it spreads.
pub fn attest_for_install(
    tree: &Tree,
    name: &str,
    version: &str,
    store: &TrustStore,
) -> Result<Attestation, SignatureError> {
    match verify(tree, name, version, store) {
        Err(error) if has_record_file(tree) && error.is_of_record(&RECORD_FILES) => Err(error),
        Err(_) => attest(tree, name, version, store),
        found => found,
    }
}

/// Whether a skill has a record, as opposed to another JSON file that happens to have its name.
fn has_record_file(tree: &Tree) -> bool {
    let file = file_name(tree).and_then(|place| Some((place, tree.get(place)?)));
    let record = file.and_then(|(place, file)| Record::parse(&file.bytes, place).ok());
    record.is_some_and(|record| {
        ["signature_version", "algorithm"].iter().any(|key| record.members.contains_key(*key))
    })
}

/// Returns every file that differs from the signed one, sorted by path. [`verify`] stops at the
/// first one. Does not check whether the signature itself is valid.
pub fn differences(tree: &Tree) -> Result<Vec<Difference>, SignatureError> {
    let mut found = Vec::new();
    if let Some(place) = file_name(tree)
        && let Some(file) = tree.get(place)
    {
        let signed = Record::parse(&file.bytes, place)?.files()?;
        found = Difference::all(&signed, &files(tree));
    }
    if let Some(file) = tree.get(BUNDLE_FILE) {
        let bundle = Record::parse(&file.bytes, BUNDLE_FILE)?.members.into();
        let differences = oms::differences(&bundle, &content(tree))
            .map_err(|error| SignatureError::Oms { place: BUNDLE_FILE.to_owned(), error })?;
        found.extend(differences);
    }
    found.sort_by(|a, b| a.path().cmp(b.path()));
    found.dedup();
    Ok(found)
}

/// Whether a record may contain complete records in its signatures: only the outermost one may.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nested {
    Allowed,
    Refused,
}

struct Check<'a> {
    tree: &'a Tree,
    name: &'a str,
    version: &'a str,
    store: &'a TrustStore,
    signers: Vec<Signer>,
    unchecked: Vec<UncheckedSignature>,
    left_out: Vec<String>,
}

impl Check<'_> {
    /// Checks a record in the order of the specification, and returns the bytes that it signs.
    fn record(&mut self, record: &Record<'_>, nested: Nested) -> Result<Vec<u8>, SignatureError> {
        let place = record.place;
        let algorithm = record.algorithm()?;
        record.format()?;
        record.belongs_to(self.name, self.version)?;
        let files = record.files()?;
        let (name, version) = (record.text("name")?, record.text("version")?);
        let bytes = statement(algorithm, &files, name, version).into_bytes();
        let signer = match algorithm {
            ED25519_NAME => Some(record.signer(&bytes)?),
            _ => None,
        };
        compare(place, &files, &self::files(self.tree))?;
        if let Some(key) = signer {
            let publisher = record.line("publisher")?.unwrap_or_default();
            self.add_signer(place, SignatureKind::Ed25519, &key, publisher)?;
        }
        self.check_further(record, algorithm, &bytes, nested)?;
        Ok(bytes)
    }

    fn check_further(
        &mut self,
        record: &Record<'_>,
        algorithm: &str,
        bytes: &[u8],
        nested: Nested,
    ) -> Result<(), SignatureError> {
        let wrong = |why: &str| record.wrong("signatures", why.to_owned());
        let entries = match record.members.get("signatures") {
            None if algorithm == UNSIGNED_NAME => {
                return Err(wrong("is missing, so nobody signed"));
            }
            None => return Ok(()),
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err(wrong("is not a list")),
        };
        if entries.is_empty() && algorithm == UNSIGNED_NAME {
            return Err(wrong("is empty, so nobody signed"));
        }
        if entries.len() > MAX_SIGNATURES {
            return Err(wrong(&format!("has more than {MAX_SIGNATURES} entries")));
        }
        for (n, entry) in entries.iter().enumerate() {
            let place = format!("{}: signatures[{n}]", record.place);
            let Value::Object(entry) = entry else {
                return Err(SignatureError::Json { place, why: "it is something else".into() });
            };
            self.check_entry(&Record { members: entry.clone(), place: &place }, bytes, nested)?;
        }
        Ok(())
    }

    fn check_entry(
        &mut self,
        entry: &Record<'_>,
        bytes: &[u8],
        nested: Nested,
    ) -> Result<(), SignatureError> {
        let place = entry.place.to_owned();
        let claimed = entry.line("keyid")?;
        match entry.text("type")? {
            RECORD_TYPE if nested == Nested::Allowed => {
                let members = entry.members.get("record").and_then(Value::as_object);
                let members =
                    members.ok_or_else(|| entry.wrong("record", "is not an object".to_owned()))?;
                let record = Record { members: members.clone(), place: &place };
                self.record(&record, Nested::Refused).map(drop)
            }
            "sshsig" => {
                let key = ssh::check(entry.text("sig")?, bytes)
                    .map_err(|error| SignatureError::Ssh { place, error })?;
                claims(entry.place, claimed, &key.key_id())?;
                self.add_signer(entry.place, SignatureKind::SshSig, &key, "")
            }
            "oms" => {
                let bundle = entry.members.get("bundle");
                let bundle = bundle.ok_or_else(|| entry.wrong("bundle", "is missing".into()))?;
                self.bundle(place, bundle, claimed)
            }
            "openpgp" => self.openpgp(place, entry.text("sig")?, claimed, bytes),
            _ => {
                let kind = entry.line("type")?.unwrap_or_default().to_owned();
                self.unknown(&place, claimed.map(str::to_owned), kind)
            }
        }
    }

    fn bundle(
        &mut self,
        place: String,
        bundle: &Value,
        claimed: Option<&str>,
    ) -> Result<(), SignatureError> {
        let files = content(self.tree);
        let skill = oms::Skill { files: &files, name: self.name, version: self.version };
        let checked = match oms::check(bundle, &skill, self.store) {
            Ok(checked) => checked,
            Err(OmsError::Files(difference)) => return Err(difference.error(place)),
            Err(error) => return Err(SignatureError::Oms { place, error }),
        };
        for key_id in checked.key_ids.iter().map(String::as_str).chain(claimed) {
            self.refuse_revoked(&place, key_id)?;
        }
        let key_id = checked.key_ids.into_iter().next();
        if let Some(key_id) = &key_id {
            claims(&place, claimed, key_id)?;
        }
        // If an agent or a script could use an excluded file, the signature does not cover the
        // whole skill.
        let is_whole = checked.left_out.iter().all(|path| is_note_for_git(path));
        self.left_out.extend(checked.left_out);
        match (checked.trusted, checked.holds) {
            (Some(trusted), _) if is_whole => self.push(SignatureKind::Oms, trusted),
            (trusted, true) => self.signers.push(Signer {
                key_id: key_id.unwrap_or_default(),
                publisher: trusted.map(|trusted| trusted.publisher.clone()).unwrap_or_default(),
                role: None,
                kind: SignatureKind::Oms,
                trusted_for: Vec::new(),
            }),
            (_, false) => {
                let claimed = claimed.map(str::to_owned);
                return self.unknown(&place, key_id.or(claimed), "oms".into());
            }
        }
        Ok(())
    }

    fn openpgp(
        &mut self,
        place: String,
        armoured: &str,
        claimed: Option<&str>,
        bytes: &[u8],
    ) -> Result<(), SignatureError> {
        let checked = match openpgp::check(armoured, bytes, self.store) {
            Ok(checked) => checked,
            Err(error) => return Err(SignatureError::OpenPgp { place, error }),
        };
        match checked {
            openpgp::CheckedSignature::By(trusted) => {
                claims(&place, claimed, &trusted.key.key_id())?;
                self.push(SignatureKind::OpenPgp, trusted);
                Ok(())
            }
            openpgp::CheckedSignature::Unknown(issuer) => {
                for key_id in issuer.as_deref().into_iter().chain(claimed) {
                    self.refuse_revoked(&place, key_id)?;
                }
                let claimed = claimed.map(str::to_owned);
                self.unknown(&place, issuer.or(claimed), "openpgp".into())
            }
        }
    }

    /// Adds the signer of a valid signature; fails if the key was revoked.
    fn add_signer(
        &mut self,
        place: &str,
        kind: SignatureKind,
        key: &PublicKey,
        publisher: &str,
    ) -> Result<(), SignatureError> {
        let key_id = key.key_id();
        self.refuse_revoked(place, &key_id)?;
        match self.store.get(&key_id).filter(|trusted| trusted.key == *key) {
            Some(trusted) => self.push(kind, trusted),
            None => self.signers.push(Signer {
                key_id,
                publisher: publisher.to_owned(),
                role: None,
                kind,
                trusted_for: Vec::new(),
            }),
        }
        Ok(())
    }

    /// Adds a trusted signer. A key that is trusted only for other skills, or only for evaluations,
    /// gets no role, like an unknown key.
    fn push(&mut self, kind: SignatureKind, trusted: &TrustedKey) {
        let is_covered = trusted.role != Role::Evaluator && trusted.covers(self.name);
        let others = trusted.namespaces.iter().flatten().filter(|_| !is_covered);
        self.signers.push(Signer {
            key_id: trusted.key.key_id(),
            publisher: trusted.publisher.clone(),
            role: is_covered.then_some(trusted.role),
            kind,
            trusted_for: others.cloned().collect(),
        });
    }

    fn unknown(
        &mut self,
        place: &str,
        key_id: Option<String>,
        kind: String,
    ) -> Result<(), SignatureError> {
        if let Some(key_id) = &key_id {
            self.refuse_revoked(place, key_id)?;
        }
        self.unchecked.push(UncheckedSignature { key_id, kind });
        Ok(())
    }

    fn refuse_revoked(&self, place: &str, key_id: &str) -> Result<(), SignatureError> {
        let Some(revoked) = self.store.revocation(key_id) else { return Ok(()) };
        Err(SignatureError::Revoked {
            place: place.to_owned(),
            key_id: revoked.key_id.clone(),
            revoked_at: revoked.revoked_at.clone(),
            reason: revoked.reason.clone(),
        })
    }
}

/// Whether a file only configures git: neither an agent nor a program reads it.
fn is_note_for_git(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    [".gitignore", ".gitattributes", ".gitkeep"].contains(&name)
}

/// Returns the exact bytes that are signed.
fn statement(
    algorithm: &str,
    files: &BTreeMap<String, String>,
    name: &str,
    version: &str,
) -> String {
    let mut text = String::from("{\"algorithm\":");
    push_ascii(&mut text, algorithm);
    text.push_str(",\"files\":");
    text.push_str(&canonical_json(files));
    text.push_str(",\"name\":");
    push_ascii(&mut text, name);
    text.push_str(",\"signature_version\":1,\"version\":");
    push_ascii(&mut text, version);
    text.push('}');
    text
}

/// Returns the hashes of the files that a record signs: all files except the record itself and the
/// detached OpenPGP signature, which signs the same bytes.
fn files(tree: &Tree) -> BTreeMap<String, String> {
    let mut files = content(tree);
    if let Some(bundle) = tree.get(BUNDLE_FILE) {
        files.insert(BUNDLE_FILE.to_owned(), sha256_hex(&bundle.bytes));
    }
    files
}

/// Returns the hashes of the files that a bundle signs: all files except signatures.
pub(super) fn content(tree: &Tree) -> BTreeMap<String, String> {
    let mut files = tree.digests();
    files.remove(OPENPGP_FILE);
    files
}

/// Files that bundles do not sign, sorted.
pub(super) const UNSIGNED_FILES: [&str; 4] =
    [RECORD_FILES[1], OPENPGP_FILE, RECORD_FILES[0], BUNDLE_FILE];

fn compare(
    place: &str,
    signed: &BTreeMap<String, String>,
    there: &BTreeMap<String, String>,
) -> Result<(), SignatureError> {
    Difference::find(signed, there).map_err(|difference| difference.error(place.to_owned()))
}

/// Formats a record as `signature.json`: sorted keys, indented by two spaces, with a final newline.
fn written(record: &Value) -> Vec<u8> {
    let mut record = record.clone();
    record.sort_all_objects();
    let mut text = format!("{record:#}");
    text.push('\n');
    text.into_bytes()
}

#[cfg(test)]
mod tests;
