//! Stores secrets that the user provides for skills ([`Secrets`]), and removes them from the output
//! of runs (`Masker`).
//!
//! A secret is for every skill that declares its name, or for the skill in one folder. Folders are
//! used instead of skill names, as for approvals, because anyone can choose a name. The value is in
//! the keyring of the system if there is one, otherwise in the file that lists all secrets.

#[cfg_attr(not(feature = "keyring"), path = "secrets/no_keyring.rs")]
mod keyring;

use std::{
    fmt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    clock,
    envelope::Stream,
    home::Home,
    limits,
    store::{self, Existing, StoreError},
};

/// The text that replaces a secret.
const MASK_TEXT: &str = "[secret]";

/// The folder with the secrets, below the data folder and accessible only for its owner.
pub(crate) const FOLDER: &str = "secrets";

/// The format of the file.
const FORMAT_VERSION: u64 = 2;

/// The location of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretLocation {
    /// In the keyring of the system.
    Keyring,
    /// In a file that only its owner can read.
    File,
}

/// Why a value is neither stored in the keyring nor found there.
#[derive(Clone, Debug, Error)]
pub enum KeyringError {
    /// There is no keyring, or it has no collection for new values yet.
    #[error("no keyring answers")]
    Absent,
    /// The program was built without support for keyrings.
    #[error("this savoir was built without support for the keyring, where the value is stored")]
    NotBuiltIn,
    /// Nobody unlocked it.
    #[error("the keyring is locked")]
    Locked,
    /// The value was removed from the keyring.
    #[error("the keyring has no value for {0}")]
    Gone(String),
    /// Something else.
    #[error("the keyring failed: {0}")]
    Failed(String),
}

/// A stored secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSecret {
    /// The name of the variable.
    pub name: String,
    /// The folder of the only skill that gets the value, in the form that approvals use; none if
    /// any skill may get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<PathBuf>,
    /// The time at which it was stored, RFC 3339 in UTC.
    pub stored_at: String,
    /// The value; none if it is in the keyring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

impl StoredSecret {
    /// Creates a secret for a variable, with the current time.
    pub fn new(name: &str, skill: Option<&Path>, value: String) -> Self {
        let stored_at = clock::rfc3339(SystemTime::now());
        Self {
            name: name.to_owned(),
            skill: skill.map(Path::to_owned),
            stored_at,
            value: Some(value),
        }
    }

    /// The location of the value.
    pub fn location(&self) -> SecretLocation {
        if self.value.is_some() { SecretLocation::File } else { SecretLocation::Keyring }
    }

    /// The value, which must not be printed. The keyring may ask the user to unlock it.
    pub fn value(&self) -> Result<String, KeyringError> {
        match &self.value {
            Some(value) => Ok(value.clone()),
            None => keyring::read(&self.name, self.skill.as_deref()),
        }
    }

    fn is_same(&self, name: &str, skill: Option<&Path>) -> bool {
        self.name == name && self.skill.as_deref() == skill
    }
}

impl fmt::Debug for StoredSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredSecret")
            .field("name", &self.name)
            .field("skill", &self.skill)
            .finish_non_exhaustive()
    }
}

#[derive(Serialize, Deserialize)]
struct SecretsFile {
    version: u64,
    secrets: Vec<StoredSecret>,
}

/// The stored secrets of a user.
#[derive(Clone, Debug)]
pub struct Secrets {
    home: Home,
    /// The location for new values, if it is available.
    preferred: SecretLocation,
}

impl Secrets {
    /// Creates the store of a home; reads nothing yet.
    pub fn new(home: &Home) -> Self {
        Self { home: home.clone(), preferred: SecretLocation::Keyring }
    }

    /// The file that lists the secrets, which may not exist.
    pub fn file(&self) -> PathBuf {
        self.home.data().join(FOLDER).join("secrets.json")
    }

    /// All secrets, sorted by name.
    pub fn list(&self) -> Result<Vec<StoredSecret>, StoreError> {
        let path = self.file();
        store::refuse_readable(&path)?;
        let Some(file) = store::read_json::<SecretsFile>(&path)? else { return Ok(Vec::new()) };
        if file.version > FORMAT_VERSION {
            return Err(StoreError::Newer { path, found: file.version, known: FORMAT_VERSION });
        }
        Ok(file.secrets)
    }

    /// Stores a value, and replaces the one of the same name for the same skill; returns its
    /// location.
    pub fn set(&self, mut secret: StoredSecret) -> Result<SecretLocation, StoreError> {
        let StoredSecret { name, skill, value, .. } = &mut secret;
        if let Some(text) = value
            && self.preferred == SecretLocation::Keyring
            && keyring::store(name, skill.as_deref(), text).is_ok()
        {
            *value = None;
        }
        let place = secret.location();
        self.change(|secrets| {
            secrets.retain(|known| !known.is_same(&secret.name, secret.skill.as_deref()));
            secrets.push(secret);
        })?;
        Ok(place)
    }

    /// Removes a value; returns whether it existed.
    pub fn remove(&self, name: &str, skill: Option<&Path>) -> Result<bool, StoreError> {
        let secrets = self.list()?;
        let Some(secret) = secrets.iter().find(|known| known.is_same(name, skill)) else {
            return Ok(false);
        };
        if secret.location() == SecretLocation::Keyring {
            keyring::remove(name, skill)?;
        }
        self.change(|secrets| secrets.retain(|known| !known.is_same(name, skill)))?;
        Ok(true)
    }

    /// Reads, changes and writes the file under a lock.
    fn change(&self, change: impl FnOnce(&mut Vec<StoredSecret>)) -> Result<(), StoreError> {
        self.home.data_folder(FOLDER)?;
        let path = self.file();
        let _lock = store::lock_file(&path)?;
        let mut secrets = self.list()?;
        change(&mut secrets);
        secrets.sort_by(|a, b| (&a.name, &a.skill).cmp(&(&b.name, &b.skill)));
        store::write_json(
            &path,
            &SecretsFile { version: FORMAT_VERSION, secrets },
            Existing::Replace,
        )
    }
}

/// The value of a variable for the skill in a folder: the skill's own value takes precedence over
/// the one for any skill.
pub(crate) fn value_for<'a>(
    secrets: &'a [StoredSecret],
    name: &str,
    skill: &Path,
) -> Option<&'a StoredSecret> {
    let find = |skill: Option<&Path>| secrets.iter().find(|known| known.is_same(name, skill));
    find(Some(skill)).or_else(|| find(None))
}

/// Masks the secrets in a text; values that are too short to be distinguished from other text are
/// not masked.
pub(crate) fn mask(secrets: &[String], text: String) -> String {
    let mut real: Vec<&String> =
        secrets.iter().filter(|secret| secret.len() >= limits::MIN_MASKED_SECRET_BYTES).collect();
    // Longer secrets first, so that no part of one remains when another secret is a part of it.
    real.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    real.into_iter().fold(text, |text, secret| text.replace(secret.as_str(), MASK_TEXT))
}

/// Masks the secrets in every text of a JSON value.
pub(crate) fn mask_json(secrets: &[String], value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::String(text) => *text = mask(secrets, std::mem::take(text)),
        Value::Array(items) => items.iter_mut().for_each(|item| mask_json(secrets, item)),
        Value::Object(map) => map.values_mut().for_each(|item| mask_json(secrets, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a stream may continue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MoreInput {
    MayCome,
    No,
}

fn index(stream: Stream) -> usize {
    usize::from(stream == Stream::Stderr)
}

/// Masks secrets in output that arrives in pieces, each of which may end inside a secret.
#[derive(Debug, Default)]
pub(crate) struct Masker {
    secrets: Vec<Vec<u8>>,
    /// Bytes that may be the beginning of a secret, for each stream.
    waiting: [Vec<u8>; 2],
}

impl Masker {
    pub(crate) fn new(secrets: &[String]) -> Self {
        let real = secrets.iter().filter(|secret| secret.len() >= limits::MIN_MASKED_SECRET_BYTES);
        // On a terminal, lines end with `\r\n`.
        let spelt = real.flat_map(|secret| [secret.clone(), secret.replace('\n', "\r\n")]);
        let mut secrets: Vec<Vec<u8>> = spelt.map(String::into_bytes).collect();
        // Longer secrets first, so that no secret is cut by another one that is a part of it.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets, waiting: Default::default() }
    }

    /// Adds output; returns the bytes that can be shown now.
    pub(crate) fn push(&mut self, stream: Stream, bytes: &[u8]) -> Vec<u8> {
        if self.secrets.is_empty() {
            return bytes.to_owned();
        }
        self.waiting[index(stream)].extend_from_slice(bytes);
        self.take(stream, MoreInput::MayCome)
    }

    /// Returns the remaining bytes at the end of a stream.
    pub(crate) fn finish(&mut self, stream: Stream) -> Vec<u8> {
        self.take(stream, MoreInput::No)
    }

    fn take(&mut self, stream: Stream, more: MoreInput) -> Vec<u8> {
        let Self { secrets, waiting } = self;
        let waiting = &mut waiting[index(stream)];
        let mut shown = Vec::with_capacity(waiting.len());
        let mut at = 0;
        while at < waiting.len() {
            let rest = &waiting[at..];
            let goes_on = |secret: &Vec<u8>| secret.len() > rest.len() && secret.starts_with(rest);
            if more == MoreInput::MayCome && secrets.iter().any(goes_on) {
                break;
            }
            if let Some(secret) = secrets.iter().find(|secret| rest.starts_with(secret)) {
                shown.extend_from_slice(MASK_TEXT.as_bytes());
                at += secret.len();
            } else {
                shown.push(rest[0]);
                at += 1;
            }
        }
        waiting.drain(..at);
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_of_a_skill_has_precedence() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = Secrets { home: Home::at(folder.path()), preferred: SecretLocation::File };
        let (own, other) = (Path::new("/skills/own"), Path::new("/skills/other"));
        secrets.set(StoredSecret::new("TOKEN", None, "for all".into())).unwrap();
        secrets.set(StoredSecret::new("TOKEN", Some(own), "old".into())).unwrap();
        secrets.set(StoredSecret::new("TOKEN", Some(own), "for one".into())).unwrap();
        let list = secrets.list().unwrap();
        assert_eq!(list.len(), 2);
        let value = |name, skill| value_for(&list, name, skill).map(|known| known.value().unwrap());
        assert_eq!(value("TOKEN", own).as_deref(), Some("for one"));
        assert_eq!(value("TOKEN", other).as_deref(), Some("for all"));
        assert_eq!(value("OTHER", own), None);
        assert!(!format!("{list:?}").contains("for one"));
        assert!(secrets.remove("TOKEN", None).unwrap());
        assert!(!secrets.remove("TOKEN", None).unwrap());
        assert_eq!(secrets.list().unwrap().len(), 1);
    }

    #[test]
    fn a_secret_in_two_pieces_is_masked() {
        let secrets = ["hunter2-long".to_owned(), "hunter2".to_owned()];
        let mut masker = Masker::new(&secrets);
        let mut shown = Vec::new();
        for piece in ["a hun", "ter2-l", "ong b hunt", "er2", "! hunt"] {
            shown.extend(masker.push(Stream::Stdout, piece.as_bytes()));
        }
        assert_eq!(masker.push(Stream::Stderr, b"er2 "), b"er2 ");
        shown.extend(masker.finish(Stream::Stdout));
        assert_eq!(String::from_utf8(shown).unwrap(), "a [secret] b [secret]! hunt");
        let mut masker = Masker::new(&["-- key --\nof two\nlines".to_owned()]);
        assert_eq!(masker.push(Stream::Stdout, b"-- key --\r\nof two\r\nlines!"), b"[secret]!");
        assert_eq!(masker.push(Stream::Stdout, b"-- key --\nof two\nlines!"), b"[secret]!");
        let mut masker = Masker::new(&secrets);
        assert_eq!(masker.push(Stream::Stdout, b"hunter2"), b"");
        assert_eq!(masker.finish(Stream::Stdout), b"[secret]");
    }
}
