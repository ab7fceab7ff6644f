//! Single signatures, stored beside a skill.

use savoir_skill::digest::sha256_hex;
use serde_json::{Map, Value, json};

use super::{
    super::{oms, ssh},
    BUNDLE_FILE, ED25519_NAME, OPENPGP_FILE, RECORD_TYPE, SignatureError, SignatureKind, file_name,
    record::Record,
};
use crate::{Tree, limits::MAX_SIGNATURE_RECORD_BYTES};

/// A signature in the files of a skill, not verified: see [`verify`](super::verify).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureRecord {
    pub kind: SignatureKind,
    /// The key that it names, if any.
    pub key_id: Option<String>,
    /// The public key in base64, if the signature contains it.
    pub public_key: Option<String>,
    /// The name of the key's owner, as the signature claims.
    pub publisher: Option<String>,
    /// The file, and the position in it.
    pub place: String,
    /// The signature as JSON, without the list of files. If it is too long, its position and its
    /// digest instead.
    pub text: String,
}

/// Returns all signatures of known kinds, in the order in which they are checked.
pub fn records(tree: &Tree) -> Result<Vec<SignatureRecord>, SignatureError> {
    let mut found = Vec::new();
    if let Some(place) = file_name(tree)
        && let Some(file) = tree.get(place)
    {
        let record = Record::parse(&file.bytes, place)?;
        found.extend(records_in(&record)?);
        let further = record.members.get("signatures").and_then(Value::as_array);
        for (n, entry) in further.into_iter().flatten().enumerate() {
            let Some(whole) = entry["record"].as_object().filter(|_| entry["type"] == RECORD_TYPE)
            else {
                continue;
            };
            let place = format!("{place}: signatures[{n}]");
            found.extend(records_in(&Record { members: whole.clone(), place: &place })?);
        }
    }
    if let Some(file) = tree.get(BUNDLE_FILE) {
        let bundle = Record::parse(&file.bytes, BUNDLE_FILE)?;
        found.push(bundle_record(BUNDLE_FILE.to_owned(), &bundle.members.into())?);
    }
    if let Some(file) = tree.get(OPENPGP_FILE) {
        let signed = json!({"type": "openpgp", "sig": String::from_utf8_lossy(&file.bytes)});
        found.push(new_record(SignatureKind::OpenPgp, OPENPGP_FILE.to_owned(), &signed));
    }
    Ok(found)
}

/// Returns the signatures of one record.
fn records_in(record: &Record<'_>) -> Result<Vec<SignatureRecord>, SignatureError> {
    let mut found: Vec<SignatureRecord> = own_signature(record)?.into_iter().collect();
    let further = record.members.get("signatures").and_then(Value::as_array);
    for (n, entry) in further.into_iter().flatten().enumerate() {
        found.extend(further_signature(format!("{}: signatures[{n}]", record.place), entry)?);
    }
    Ok(found)
}

/// Returns the record's own signature, if it has one.
fn own_signature(record: &Record<'_>) -> Result<Option<SignatureRecord>, SignatureError> {
    if record.algorithm()? != ED25519_NAME {
        return Ok(None);
    }
    let said = |(key, _): &(&String, &Value)| !matches!(key.as_str(), "files" | "signatures");
    let members = record.members.iter().filter(said);
    let members: Map<_, _> = members.map(|(key, value)| (key.clone(), value.clone())).collect();
    let place = record.place.to_owned();
    Ok(Some(SignatureRecord {
        key_id: record.line("key_id")?.map(str::to_owned),
        public_key: record.optional("public_key")?.map(str::to_owned),
        publisher: record.line("publisher")?.map(str::to_owned),
        ..new_record(SignatureKind::Ed25519, place, &members.into())
    }))
}

/// Returns a signature of another program in a record.
fn further_signature(
    place: String,
    entry: &Value,
) -> Result<Option<SignatureRecord>, SignatureError> {
    let key_id = entry["keyid"].as_str().map(str::to_owned);
    match entry["type"].as_str() {
        Some("sshsig") => {
            let key = ssh::signer(entry["sig"].as_str().unwrap_or_default())
                .map_err(|error| SignatureError::Ssh { place: place.clone(), error })?;
            Ok(Some(SignatureRecord {
                key_id: Some(key.key_id()),
                public_key: Some(key.to_text()),
                ..new_record(SignatureKind::SshSig, place, entry)
            }))
        }
        Some("oms") => {
            let bundle = bundle_record(place, &entry["bundle"])?;
            Ok(Some(SignatureRecord { key_id: bundle.key_id.clone().or(key_id), ..bundle }))
        }
        Some("openpgp") => {
            Ok(Some(SignatureRecord { key_id, ..new_record(SignatureKind::OpenPgp, place, entry) }))
        }
        _ => Ok(None),
    }
}

fn bundle_record(place: String, bundle: &Value) -> Result<SignatureRecord, SignatureError> {
    let key_id =
        oms::key_id(bundle).map_err(|error| SignatureError::Oms { place: place.clone(), error })?;
    Ok(SignatureRecord { key_id, ..new_record(SignatureKind::Oms, place, bundle) })
}

fn new_record(kind: SignatureKind, place: String, signature: &Value) -> SignatureRecord {
    let mut text = signature.to_string();
    if text.len() > MAX_SIGNATURE_RECORD_BYTES {
        let sha256 = sha256_hex(text.as_bytes());
        text = json!({"type": kind, "place": place, "sha256": sha256}).to_string();
    }
    SignatureRecord { kind, key_id: None, public_key: None, publisher: None, place, text }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            super::testing::{golden, key, with},
            FurtherSignature, countersign, sign, signed_bytes,
        },
        *,
    };

    #[test]
    fn every_signature_is_listed() {
        let tree = golden();
        let record = sign(&tree, "demo", "1.0.0", "Ada", &key(1));
        let ssh = ssh::sign_with(&key(2), &signed_bytes(&record).unwrap());
        let record = countersign(&record, FurtherSignature::SshSig(ssh)).unwrap();
        let (fingerprint, armoured) = ("AB".repeat(20), "x".repeat(20_000));
        let record =
            countersign(&record, FurtherSignature::OpenPgp { fingerprint, armoured }).unwrap();
        let found = records(&with(&tree, "signature.json", record)).unwrap();
        let kinds: Vec<_> = found.iter().map(|one| one.kind.as_str()).collect();
        assert_eq!(kinds, ["ed25519", "sshsig", "openpgp"]);
        assert_eq!(found[0].key_id, Some(key(1).key_id()));
        assert_eq!(found[0].public_key, Some(key(1).public_key().to_base64()));
        assert_eq!(found[0].publisher.as_deref(), Some("Ada"));
        assert!(!found[0].text.contains("files") && found[0].text.contains("signature_version"));
        assert!(found[1].key_id.as_ref().unwrap().starts_with("SHA256:"));
        assert!(found[1].public_key.is_some() && found[1].text.contains("SSH SIGNATURE"));
        assert_eq!(found[2].key_id, Some(format!("openpgp:{}", "ab".repeat(20))));
        assert!(found[2].text.len() < 300 && found[2].text.contains("sha256"));
        assert_eq!(found[2].place, "signature.json: signatures[1]");
        assert!(records(&tree).unwrap().is_empty());
        assert!(records(&with(&tree, "signature.json", "{")).is_err());
    }
}
