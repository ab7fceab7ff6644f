//! Stores the trusted and revoked keys of a user in `trusted-keys.json`.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::{Timestamp, Unit};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::{KeyKind, PublicKey, PublicKeyError, Tier, json, safe_file};
use crate::limits::{MAX_EVALUATION_KEYS, MAX_TRUST_STORE_BYTES};

/// The role of a trusted key, which decides the tier that its signatures attest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A publisher: its skills are [`Tier::Community`].
    Publisher,
    /// The vendor: its skills are [`Tier::Verified`].
    Amd,
    /// Somebody who measures skills: its evaluations count, its signatures of skills do not.
    Evaluator,
}

impl Role {
    /// The tier that a signature of such a key attests.
    pub fn tier(self) -> Tier {
        match self {
            Self::Publisher => Tier::Community,
            Self::Amd => Tier::Verified,
            Self::Evaluator => Tier::Experimental,
        }
    }

    /// The name of the role in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Publisher => "publisher",
            Self::Amd => "amd",
            Self::Evaluator => "evaluator",
        }
    }
}

/// A key that the user trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedKey {
    pub key: PublicKey,
    /// The name of the owner.
    pub publisher: String,
    pub role: Role,
    /// The names of the skills that the key may sign, or prefixes followed by `*`; `None` for all
    /// skills.
    pub namespaces: Option<Vec<String>>,
}

impl TrustedKey {
    /// Whether the key may sign a skill of this name.
    pub fn covers(&self, name: &str) -> bool {
        let covers = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == pattern,
        };
        self.namespaces.as_ref().is_none_or(|patterns| patterns.iter().any(covers))
    }
}

/// A revoked key: all its signatures are rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRevocation {
    /// The identifier of the key.
    pub key_id: String,
    pub revoked_at: String,
    #[serde(default)]
    pub reason: String,
}

/// An error while reading or changing the trusted keys.
#[derive(Debug, Error)]
pub enum TrustStoreError {
    /// The operating system returned an error.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// The file is not valid. Treating it as empty would silently trust nobody.
    #[error("{} is not a list of trusted keys: {why}; fix it or remove it", path.display())]
    Corrupt { path: PathBuf, why: String },
    /// The key was revoked, and cannot be trusted again.
    #[error("the key {key_id} was revoked on {revoked_at}: {reason}; ask its owner for a new one")]
    Revoked { key_id: String, revoked_at: String, reason: String },
    /// A namespace is neither the name of a skill nor a prefix.
    #[error("`{}` is not a namespace: expected the name of a skill, or its beginning and `*`", .0.escape_debug())]
    Namespace(String),
}

impl TrustStoreError {
    /// A stable error code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "io",
            Self::Corrupt { .. } => "trust_store",
            Self::Revoked { .. } => "key_revoked",
            Self::Namespace(_) => "namespace",
        }
    }

    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }
}

/// The trusted and revoked keys, as read at one moment. Without trusted keys, every skill is
/// experimental.
#[derive(Clone, Debug, Default)]
pub struct TrustStore {
    keys: Vec<TrustedKey>,
    revoked: Vec<KeyRevocation>,
}

/// An entry of `keys` in the file.
#[derive(Deserialize)]
struct Entry {
    key_id: String,
    public_key: String,
    #[serde(default)]
    publisher: String,
    role: Role,
    #[serde(default, rename = "type")]
    kind: KeyKind,
    namespaces: Option<Vec<String>>,
}

impl TrustStore {
    /// Reads the file. A missing file means that no key is trusted; an unreadable file is an error.
    pub fn read(path: &Path) -> Result<Self, TrustStoreError> {
        Self::of(&document(path)?)
            .map_err(|why| TrustStoreError::Corrupt { path: path.to_owned(), why })
    }

    /// Creates a store that is not on disk, for example for the keys of a namespace.
    pub fn of_keys(keys: Vec<TrustedKey>) -> Self {
        Self { keys, revoked: Vec::new() }
    }

    /// Trusts a key. If it is trusted already, updates its publisher, role and namespaces.
    pub fn trust(path: &Path, key: &TrustedKey) -> Result<(), TrustStoreError> {
        if let Some(bad) = key.namespaces.iter().flatten().find(|pattern| !is_namespace(pattern)) {
            return Err(TrustStoreError::Namespace(bad.clone()));
        }
        change(path, |document, store| {
            let key_id = key.key.key_id();
            if let Some(revoked) = store.revocation(&key_id) {
                let KeyRevocation { key_id, revoked_at, reason } = revoked.clone();
                return Err(TrustStoreError::Revoked { key_id, revoked_at, reason });
            }
            edit(document, "keys", |keys| put(keys, entry(key)));
            Ok(())
        })
    }

    /// Stops trusting a key; returns whether it was trusted. Skills that only it signed become
    /// experimental; use [`Self::revoke`] for a stolen key.
    pub fn distrust(path: &Path, key_id: &str) -> Result<bool, TrustStoreError> {
        change(path, |document, _| Ok(edit(document, "keys", |keys| take(keys, key_id))))
    }

    /// Revokes a key, whether it was trusted or not: from now on everything that it signed is
    /// rejected.
    pub fn revoke(path: &Path, key_id: &str, reason: &str) -> Result<(), TrustStoreError> {
        change(path, |document, store| {
            // Older programs that do not know `revoked` must not trust the key either.
            edit(document, "keys", |keys| take(keys, key_id));
            if store.revocation(key_id).is_none() {
                let now = Timestamp::now();
                let now = now.round(Unit::Second).unwrap_or(now);
                let revoked =
                    json!({"key_id": key_id, "revoked_at": now.to_string(), "reason": reason});
                edit(document, "revoked", |list| list.push(revoked));
            }
            Ok(())
        })
    }

    /// The trusted keys.
    pub fn keys(&self) -> &[TrustedKey] {
        &self.keys
    }

    /// The revoked keys.
    pub fn revoked(&self) -> &[KeyRevocation] {
        &self.revoked
    }

    /// Returns the trusted key with this identifier.
    pub fn get(&self, key_id: &str) -> Option<&TrustedKey> {
        self.keys.iter().find(|trusted| trusted.key.key_id() == key_id)
    }

    /// The ids of the keys whose evaluations of a skill count, those of evaluators first.
    pub fn evaluation_keys(&self, skill: &str) -> Vec<String> {
        let mut keys: Vec<&TrustedKey> =
            self.keys.iter().filter(|trusted| trusted.covers(skill)).collect();
        keys.sort_by_key(|trusted| trusted.role != Role::Evaluator);
        keys.iter().take(MAX_EVALUATION_KEYS).map(|trusted| trusted.key.key_id()).collect()
    }

    /// Returns the revocation of a key, if it was revoked.
    pub fn revocation(&self, key_id: &str) -> Option<&KeyRevocation> {
        self.revoked.iter().find(|revoked| revoked.key_id.eq_ignore_ascii_case(key_id))
    }

    pub(super) fn of_kind(&self, kind: KeyKind) -> impl Iterator<Item = &TrustedKey> {
        self.keys.iter().filter(move |trusted| trusted.key.kind() == kind)
    }

    fn of(document: &Map<String, Value>) -> Result<Self, String> {
        match document.get("schema_version") {
            None => {}
            Some(version) if version.as_u64() == Some(1) => {}
            Some(version) => {
                return Err(format!("its `schema_version` is {version}, and 1 is what is known"));
            }
        }
        let mut seen = HashSet::new();
        let mut keys = Vec::new();
        for (n, value) in items(document, "keys")?.iter().enumerate() {
            let key = trusted(value).map_err(|why| format!("`keys[{n}]`: {why}"))?;
            if !seen.insert(key.key.key_id()) {
                return Err(format!("the key {} is there twice", key.key.key_id()));
            }
            keys.push(key);
        }
        let mut revoked = Vec::new();
        for (n, value) in items(document, "revoked")?.iter().enumerate() {
            let entry = KeyRevocation::deserialize(value);
            revoked.push(entry.map_err(|why| format!("`revoked[{n}]`: {why}"))?);
        }
        Ok(Self { keys, revoked })
    }
}

/// Collects trusted keys that are not in a file.
impl FromIterator<TrustedKey> for TrustStore {
    fn from_iter<T: IntoIterator<Item = TrustedKey>>(keys: T) -> Self {
        Self { keys: keys.into_iter().collect(), revoked: Vec::new() }
    }
}

fn trusted(value: &Value) -> Result<TrustedKey, String> {
    let entry = Entry::deserialize(value).map_err(|error| error.to_string())?;
    let bytes = STANDARD.decode(&entry.public_key);
    let bytes = bytes.map_err(|error| format!("its `public_key` is not base64: {error}"))?;
    let key = PublicKey::new(entry.kind, bytes).map_err(|why: PublicKeyError| why.to_string())?;
    if key.key_id() != entry.key_id {
        return Err(format!(
            "its `key_id` is {}, and that of its `public_key` is {}",
            entry.key_id,
            key.key_id()
        ));
    }
    Ok(TrustedKey {
        key,
        publisher: entry.publisher,
        role: entry.role,
        namespaces: entry.namespaces,
    })
}

/// Returns the fields of an entry that Savoir writes. Other fields of an existing entry stay.
fn entry(trusted: &TrustedKey) -> Map<String, Value> {
    let mut entry = Map::new();
    entry.insert("key_id".into(), trusted.key.key_id().into());
    entry.insert("public_key".into(), trusted.key.to_base64().into());
    entry.insert("publisher".into(), trusted.publisher.clone().into());
    entry.insert("role".into(), trusted.role.as_str().into());
    if trusted.key.kind() != KeyKind::Ed25519 {
        entry.insert("type".into(), json!(trusted.key.kind()));
    }
    if let Some(namespaces) = &trusted.namespaces {
        entry.insert("namespaces".into(), json!(namespaces));
    }
    entry
}

fn put(list: &mut Vec<Value>, entry: Map<String, Value>) {
    let there = list.iter_mut().find(|value| value["key_id"] == entry["key_id"]);
    match there.and_then(Value::as_object_mut) {
        Some(old) => {
            old.shift_remove("namespaces");
            old.extend(entry);
        }
        None => list.push(entry.into()),
    }
}

fn take(list: &mut Vec<Value>, key_id: &str) -> bool {
    let before = list.len();
    list.retain(|value| value["key_id"] != key_id);
    list.len() < before
}

fn is_namespace(pattern: &str) -> bool {
    let beginning = pattern.strip_suffix('*').unwrap_or(pattern);
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    beginning.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && beginning.chars().all(good)
}

fn document(path: &Path) -> Result<Map<String, Value>, TrustStoreError> {
    let corrupt = |why: String| TrustStoreError::Corrupt { path: path.to_owned(), why };
    let bytes = match safe_file::read(path, MAX_TRUST_STORE_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(TrustStoreError::io(path)(error)),
    };
    match json::parse(&bytes).map_err(|error| corrupt(error.to_string()))? {
        Value::Object(document) => Ok(document),
        _ => Err(corrupt("expected a JSON object".to_owned())),
    }
}

fn items<'a>(document: &'a Map<String, Value>, name: &str) -> Result<&'a [Value], String> {
    match document.get(name) {
        None => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("`{name}` is not a list")),
    }
}

/// Changes a list of a document that was already validated.
fn edit<T: Default>(
    document: &mut Map<String, Value>,
    name: &str,
    act: impl FnOnce(&mut Vec<Value>) -> T,
) -> T {
    let value = document.entry(name).or_insert_with(|| json!([]));
    value.as_array_mut().map(act).unwrap_or_default()
}

/// Reads, changes and writes the file under an exclusive lock.
fn change<T>(
    path: &Path,
    act: impl FnOnce(&mut Map<String, Value>, &TrustStore) -> Result<T, TrustStoreError>,
) -> Result<T, TrustStoreError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(TrustStoreError::io(folder))?;
    }
    let _lock = safe_file::lock(path).map_err(TrustStoreError::io(&safe_file::lock_path(path)))?;

    let mut document = document(path)?;
    let corrupt = |why| TrustStoreError::Corrupt { path: path.to_owned(), why };
    let store = TrustStore::of(&document).map_err(corrupt)?;
    document.entry("schema_version").or_insert_with(|| 1.into());
    document.entry("keys").or_insert_with(|| json!([]));
    let done = act(&mut document, &store)?;
    let mut text = serde_json::to_string_pretty(&document)
        .map_err(|error| TrustStoreError::io(path)(error.into()))?;
    text.push('\n');
    safe_file::replace(path, text.as_bytes()).map_err(TrustStoreError::io(path))?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::{super::SigningKey, *};

    fn key(seed: u8) -> TrustedKey {
        TrustedKey {
            key: SigningKey::from_seed(&[seed; 32]).unwrap().public_key(),
            publisher: format!("publisher {seed}"),
            role: Role::Publisher,
            namespaces: None,
        }
    }

    #[test]
    fn trust_is_written_and_read() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("deep/trusted-keys.json");
        assert!(TrustStore::read(&path).unwrap().keys().is_empty(), "absent is empty");
        TrustStore::trust(&path, &key(1)).unwrap();
        TrustStore::trust(&path, &key(2)).unwrap();
        let namespaces = Some(vec!["acme-*".to_owned(), "web".to_owned()]);
        let better = TrustedKey { role: Role::Amd, namespaces, ..key(1) };
        TrustStore::trust(&path, &better).unwrap();
        let store = TrustStore::read(&path).unwrap();
        assert_eq!(store.keys(), [better.clone(), key(2)]);
        assert!(better.covers("acme-x") && better.covers("web"));
        assert!(!better.covers("acme") && !better.covers("web-x") && key(2).covers("any"));
        TrustStore::trust(&path, &key(1)).unwrap();
        assert_eq!(TrustStore::read(&path).unwrap().keys(), [key(1), key(2)]);
        assert!(TrustStore::distrust(&path, &key(1).key.key_id()).unwrap());
        assert!(!TrustStore::distrust(&path, &key(1).key.key_id()).unwrap());
        assert_eq!(TrustStore::read(&path).unwrap().keys(), [key(2)]);
        let bad = TrustedKey { namespaces: Some(vec!["*".into()]), ..key(3) };
        assert_eq!(TrustStore::trust(&path, &bad).unwrap_err().code(), "namespace");
    }

    #[test]
    fn revoked_key_cannot_be_trusted_again() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("trusted-keys.json");
        TrustStore::trust(&path, &key(1)).unwrap();
        let key_id = key(1).key.key_id();
        TrustStore::revoke(&path, &key_id, "the laptop was stolen").unwrap();
        TrustStore::revoke(&path, &key_id, "again").unwrap();
        let store = TrustStore::read(&path).unwrap();
        assert!(store.keys().is_empty(), "nobody else is to believe it either");
        assert_eq!(store.revoked().len(), 1);
        assert_eq!(store.revocation(&key_id).unwrap().reason, "the laptop was stolen");
        let error = TrustStore::trust(&path, &key(1)).unwrap_err();
        assert_eq!(error.code(), "key_revoked");
        assert!(error.to_string().contains("the laptop was stolen"));
    }

    #[test]
    fn unknown_fields_of_trusted_keys_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("trusted-keys.json");
        let mut entry = entry(&key(1));
        entry.insert("note".into(), "from the fair".into());
        let mine = json!({"theirs": {"b": 1, "a": [2]}, "schema_version": 1, "keys": [entry]});
        fs::write(&path, mine.to_string()).unwrap();
        TrustStore::trust(&path, &TrustedKey { role: Role::Amd, ..key(1) }).unwrap();
        TrustStore::trust(&path, &key(2)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let now: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(now["theirs"], mine["theirs"]);
        assert_eq!(now["keys"][0]["note"], "from the fair");
        assert_eq!(now["keys"][0]["role"], "amd");
        assert!(text.starts_with("{\n  \"theirs\": {\n    \"b\": 1,") && text.ends_with("}\n"));
    }

    #[test]
    fn invalid_trust_store_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("trusted-keys.json");
        let good = Value::from(entry(&key(1)));
        let with = |name: &str, value: Value| {
            let mut entry = good.clone();
            entry[name] = value;
            json!({"keys": [entry]}).to_string()
        };
        for text in [
            String::new(),
            "[]".into(),
            "{\"keys\":{}}".into(),
            "{\"keys\":[],\"keys\":[]}".into(),
            json!({"schema_version": 2}).to_string(),
            json!({"keys": [good, good]}).to_string(),
            json!({"revoked": [{}]}).to_string(),
            with("role", "owner".into()),
            with("key_id", "0".repeat(32).into()),
            with("public_key", key(2).key.to_base64().into()),
            with("public_key", "x".into()),
            with("type", "rot13".into()),
        ] {
            fs::write(&path, &text).unwrap();
            assert_eq!(TrustStore::read(&path).unwrap_err().code(), "trust_store", "{text}");
            assert_eq!(TrustStore::trust(&path, &key(3)).unwrap_err().code(), "trust_store");
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "what is broken stays as it is");
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(TrustStore::read(&path).unwrap_err().code(), "io");
    }

    #[test]
    fn concurrent_trust_changes_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("trusted-keys.json");
        std::thread::scope(|scope| {
            for seed in 1..=8 {
                let path = &path;
                scope.spawn(move || TrustStore::trust(path, &key(seed)).unwrap());
            }
        });
        assert_eq!(TrustStore::read(&path).unwrap().keys().len(), 8);
    }
}
