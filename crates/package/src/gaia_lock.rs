//! `skill-lock.json`, the lock file of GAIA. GAIA's specification and GAIA itself use different
//! keys; Savoir reads both, and writes both into one object.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use savoir_skill::permission::{Permission, Tier};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::{
    limits::MAX_LOCK_BYTES,
    manifest::{check_name, is_absolute, is_integrity},
    path,
    text_file::{self, FileError, Text},
};

mod from_lock;

pub use from_lock::{Archive, Files, Locks, from_lock, is_for_gaia};

/// The name of the file.
pub const FILE: &str = "skill-lock.json";

/// The id of the agent in whose folder the file is.
pub const AGENT: &str = "gaia";

/// The version of both formats.
const FORMAT: u64 = 1;

/// The content of `skill-lock.json`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GaiaLock {
    /// When the file was written, as RFC 3339.
    pub generated_at: Option<String>,
    /// The skills by name.
    pub skills: BTreeMap<String, GaiaSkill>,
    /// Unknown keys, which are written back unchanged.
    pub unknown: Map<String, Value>,
}

/// A skill in the lock of GAIA.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GaiaSkill {
    pub version: String,
    /// The integrity of its tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrity: Option<String>,
    /// The trust tier; always the same as `installed_tier`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_tier: Option<Tier>,
    /// When it was installed, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed_at: Option<String>,
    /// The hash of all its dependencies; see [`dependencies_hash`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependencies_hash: Option<String>,
    /// The requested version range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
    /// The kind of source, such as `registry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The address of the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// The file name of the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_filename: Option<String>,
    /// The SHA-256 of the archive, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_sha256: Option<String>,
    /// The tier that the skill claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_tier: Option<Tier>,
    /// The tier that its signature attests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attested_tier: Option<Tier>,
    /// The trust tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed_tier: Option<Tier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<GaiaSignature>,
    /// The permissions that it requests, sorted; `None` if another program wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Vec<Permission>>,
    /// Files that were added during the install, with their SHA-256.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub generated: BTreeMap<String, String>,
    /// Unknown keys, which are written back unchanged.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// The stored data about a signature.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GaiaSignature {
    /// Whether the skill is signed.
    pub signed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// The owner of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publisher: Option<String>,
    /// The role for which the key is trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Unknown keys, which are written back unchanged.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// An error of reading or writing the lock.
#[derive(Debug, Error)]
pub enum GaiaLockError {
    /// The format version is not supported.
    #[error("{file}: `{key}` is {found}, and only 1 is known: update savoir")]
    Version { file: String, key: &'static str, found: String },
    /// The file cannot be read, or is not a lock.
    #[error(transparent)]
    File(#[from] FileError),
    /// An entry is invalid.
    #[error("{file}: `{skill}`: {why}")]
    Entry { file: String, skill: String, why: String },
}

impl GaiaLockError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Version { .. } => "lock_from_the_future",
            Self::File(FileError::Invalid(_)) | Self::Entry { .. } => "corrupt_lock",
            Self::File(error) => error.code(),
        }
    }
}

impl GaiaLock {
    /// Reads the file; returns an empty lock if it does not exist.
    pub fn read(path: &Path) -> Result<Self, GaiaLockError> {
        match text_file::read(path, MAX_LOCK_BYTES)? {
            Some(text) => Self::parse(&path.display().to_string(), &text),
            None => Ok(Self::default()),
        }
    }

    /// Parses the text of the file.
    pub fn parse(file: &str, text: &str) -> Result<Self, GaiaLockError> {
        let mut root: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| corrupt(file, text, &error))?;
        check_versions(file, &mut root)?;
        let wrong = |what: &str| {
            let content_error = Text { file, text }.content_error(0, what);
            GaiaLockError::File(content_error.into())
        };
        let generated_at = match root.shift_remove("generated_at") {
            None | Some(Value::Null) => None,
            Some(Value::String(time)) => Some(time),
            Some(_) => return Err(wrong("`generated_at` must be a text")),
        };
        let skills = match root.shift_remove("skills") {
            None => Map::new(),
            Some(Value::Object(skills)) => skills,
            Some(_) => return Err(wrong("`skills` must be an object")),
        };
        let mut lock = Self { generated_at, skills: BTreeMap::new(), unknown: root };
        for (name, entry) in skills {
            let bad = |why: String| GaiaLockError::Entry {
                file: file.to_owned(),
                skill: name.clone(),
                why,
            };
            let skill = GaiaSkill::deserialize(entry).map_err(|error| bad(error.to_string()))?;
            check_name(&name).and_then(|()| skill.check()).map_err(bad)?;
            lock.skills.insert(name, skill);
        }
        Ok(lock)
    }

    /// Writes the file atomically. Concurrent changes are lost, unless all writers use
    /// [`Self::update`].
    pub fn write(&self, path: &Path) -> Result<(), GaiaLockError> {
        for (name, skill) in &self.skills {
            let bad = |why| GaiaLockError::Entry {
                file: path.display().to_string(),
                skill: name.clone(),
                why,
            };
            check_name(name).and_then(|()| skill.check()).map_err(bad)?;
        }
        text_file::write(path, &self.to_text())?;
        Ok(())
    }

    /// Reads, changes and writes the file under a file lock, so that concurrent updates run one
    /// after the other.
    pub fn update<T>(path: &Path, change: impl FnOnce(&mut Self) -> T) -> Result<T, GaiaLockError> {
        // Writing replaces the file itself, so another file is locked.
        let beside = path.with_extension("json.lock");
        let held = fs::OpenOptions::new().create(true).truncate(false).write(true).open(&beside);
        let held = held.and_then(|file| file.lock().map(|()| file));
        let held = held.map_err(|error| FileError::io(&beside, error))?;
        let mut lock = Self::read(path)?;
        let answer = change(&mut lock);
        lock.write(path)?;
        drop(held);
        Ok(answer)
    }

    /// Whether it is equivalent to a missing file.
    pub fn is_bare(&self) -> bool {
        self.skills.is_empty() && self.unknown.is_empty()
    }

    /// Applies the difference between two locks to this one. All other data stays.
    pub fn carry(&mut self, from: &Self, to: &Self) {
        let names: BTreeSet<&String> = from.skills.keys().chain(to.skills.keys()).collect();
        for name in names {
            match (from.skills.get(name), to.skills.get(name)) {
                (old, new) if old == new => {}
                (_, Some(new)) => drop(self.skills.insert(name.clone(), new.clone())),
                (_, None) => drop(self.skills.remove(name)),
            }
        }
        // Both times have the same format, so the later one is the greater text.
        self.generated_at = self.generated_at.take().max(to.generated_at.clone());
    }

    /// Returns the text of the file.
    pub fn to_text(&self) -> String {
        let mut root = Map::new();
        root.insert("version".to_owned(), FORMAT.into());
        root.insert("schema_version".to_owned(), FORMAT.into());
        if let Some(time) = &self.generated_at {
            root.insert("generated_at".to_owned(), time.as_str().into());
        }
        let skills = self.skills.iter().map(|(name, skill)| (name.clone(), json!(skill)));
        root.insert("skills".to_owned(), Value::Object(skills.collect()));
        root.extend(self.unknown.clone());
        format!("{:#}\n", Value::Object(root))
    }
}

impl GaiaSkill {
    /// Sets the trust tier under both keys.
    pub fn set_tier(&mut self, tier: Tier) {
        self.security_tier = Some(tier);
        self.installed_tier = Some(tier);
    }

    /// Returns the trust tier: the lower one if the two keys differ.
    pub fn tier(&self) -> Tier {
        let tiers = [self.security_tier, self.installed_tier];
        tiers.into_iter().flatten().min().unwrap_or_default()
    }

    fn check(&self) -> Result<(), String> {
        if self.integrity.as_deref().is_some_and(|text| !is_integrity(text)) {
            return Err("`integrity` must be `sha256-` and a digest in base64".to_owned());
        }
        let local = [&self.source, &self.registry, &self.artifact_filename];
        if let Some(text) = local.into_iter().flatten().find(|text| is_absolute(text)) {
            return Err(format!("`{text}` is a path of one machine, and a lock is for all"));
        }
        if let Some(name) = self.artifact_filename.as_deref().filter(|name| !is_artifact(name)) {
            return Err(format!("`{}` cannot be the name of an archive", name.escape_debug()));
        }
        for path in self.generated.keys() {
            path::check(path).map_err(|why| format!("`{}`: {why}", path.escape_debug()))?;
        }
        Ok(())
    }
}

/// Whether a name consists of letters, digits and `._+-`, and starts with a letter or digit.
fn is_artifact(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
}

/// Checks the format version. One of the two keys is enough; each that exists must be 1.
fn check_versions(file: &str, root: &mut Map<String, Value>) -> Result<(), GaiaLockError> {
    let mut seen = false;
    for key in ["version", "schema_version"] {
        let Some(found) = root.shift_remove(key) else { continue };
        if found.as_u64() != Some(FORMAT) {
            let (file, found) = (file.to_owned(), found.to_string());
            return Err(GaiaLockError::Version { file, key, found });
        }
        seen = true;
    }
    if seen {
        return Ok(());
    }
    let found = "missing".to_owned();
    Err(GaiaLockError::Version { file: file.to_owned(), key: "version", found })
}

fn corrupt(file: &str, text: &str, error: &serde_json::Error) -> FileError {
    let line = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let at = line.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
    // The message ends with the position, which is reported separately.
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    Text { file, text }.content_error(at, message).into()
}

/// Returns the hash of all dependencies: Node packages, Python packages, and skills with their
/// resolved versions.
pub fn dependencies_hash(
    node: &BTreeSet<String>,
    python: &BTreeSet<String>,
    skills: &BTreeMap<String, String>,
) -> String {
    let text = json!({ "node": node, "python": python, "skills": skills }).to_string();
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests;
