//! Caches the results of the last update check.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use savoir_skill::digest::sha256_hex;
use semver::Version;
use serde::{Deserialize, Serialize};

use super::Availability;
use crate::{
    FileError, install::State, limits::MAX_LOCK_BYTES, registry::PublishedStatus,
    source::PinnedSource, text_file,
};

const FORMAT: u32 = 3;

/// What was found out the last time.
#[derive(Clone, Debug, PartialEq)]
pub struct CachedUpdates {
    /// When somebody looked at all skills.
    looked: Timestamp,
    /// When somebody looked at one of them since.
    later: BTreeMap<String, Timestamp>,
    /// What it was, for the skills that are still locked as they were then.
    pub skills: BTreeMap<String, Availability>,
}

impl CachedUpdates {
    /// When somebody looked at a skill last.
    pub fn checked_at(&self, name: &str) -> Timestamp {
        self.later.get(name).copied().unwrap_or(self.looked)
    }
}

#[derive(Serialize, Deserialize)]
struct UpdateCacheFile {
    version: u32,
    root: PathBuf,
    looked: String,
    skills: BTreeMap<String, CachedSkill>,
}

#[derive(Serialize, Deserialize)]
struct CachedSkill {
    /// What was locked then.
    version: Version,
    integrity: String,
    source: String,
    newer: Option<NewerVersion>,
    published: Option<PublishedStatus>,
    /// When somebody looked at this one alone.
    looked: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct NewerVersion {
    version: Option<String>,
    place: String,
}

fn path(cache: &Path, root: &Path) -> PathBuf {
    let name = sha256_hex(root.as_os_str().as_encoded_bytes());
    cache.join("updates").join(format!("{}.json", &name[..32]))
}

/// Keeps what was found out about all skills of the shelf in the folder `root`. What nobody could
/// tell is not kept: it may be known the next time.
pub fn save_updates(
    cache: &Path,
    root: &Path,
    state: &State,
    found: &BTreeMap<String, Availability>,
) -> Result<(), FileError> {
    let skills =
        found.iter().filter_map(|(name, found)| cached_skill(root, state, name, found, None));
    let (skills, looked) = (skills.collect(), Timestamp::now().to_string());
    write(cache, &UpdateCacheFile { version: FORMAT, root: root.to_owned(), looked, skills })
}

/// As [`save_updates`], for some skills alone: of the others it stays what was known.
pub fn save_some_updates(
    cache: &Path,
    root: &Path,
    state: &State,
    found: &BTreeMap<String, Availability>,
) -> Result<(), FileError> {
    let now = Timestamp::now().to_string();
    let nothing = || {
        let (root, skills) = (root.to_owned(), BTreeMap::new());
        UpdateCacheFile { version: FORMAT, root, looked: now.clone(), skills }
    };
    let mut cache_file = read(cache, root).unwrap_or_else(nothing);
    let some =
        found.iter().filter_map(|(name, found)| cached_skill(root, state, name, found, Some(&now)));
    cache_file.skills.extend(some);
    write(cache, &cache_file)
}

fn cached_skill(
    root: &Path,
    state: &State,
    name: &str,
    found: &Availability,
    when: Option<&String>,
) -> Option<(String, CachedSkill)> {
    let locked = state.lock.skills.get(name)?;
    let (newer, published) = match found {
        Availability::Unknown(_) => return None,
        Availability::Current => (None, None),
        Availability::Newer { version, place } => {
            let version = version.as_ref().map(ToString::to_string);
            (Some(NewerVersion { version, place: place.text(root) }), None)
        }
        Availability::Published(published) => (None, Some(published.clone())),
    };
    let (version, integrity) = (locked.version.clone(), locked.integrity.clone());
    let source = locked.source.to_string();
    let entry = CachedSkill { version, integrity, source, newer, published, looked: when.cloned() };
    Some((name.to_owned(), entry))
}

fn write(cache: &Path, cache_file: &UpdateCacheFile) -> Result<(), FileError> {
    let path = path(cache, &cache_file.root);
    let fail = |error: std::io::Error| FileError::Io { path: path.clone(), error };
    let text = serde_json::to_string(cache_file).map_err(|error| fail(error.into()))?;
    let folder = path.parent().unwrap_or(cache);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(fail)?;
    text_file::write(&path, &text)
}

/// What is kept; nothing if there is nothing, or it is damaged.
fn read(cache: &Path, root: &Path) -> Option<UpdateCacheFile> {
    let text = text_file::read(&path(cache, root), MAX_LOCK_BYTES).ok()??;
    let cache_file: UpdateCacheFile = serde_json::from_str(&text).ok()?;
    (cache_file.version == FORMAT && cache_file.root == root).then_some(cache_file)
}

/// What was found out the last time about the shelf in the folder `root`; nothing, if nobody looked
/// or what was kept is damaged.
pub fn load_cached_updates(cache: &Path, root: &Path, state: &State) -> Option<CachedUpdates> {
    let UpdateCacheFile { looked, skills: kept, .. } = read(cache, root)?;
    let (mut skills, mut later) = (BTreeMap::new(), BTreeMap::new());
    for (name, entry) in kept {
        let looked = entry.looked.as_ref().and_then(|looked| looked.parse().ok());
        let Some(found) = entry.if_still_locked(&name, root, state) else { continue };
        later.extend(looked.map(|looked| (name.clone(), looked)));
        skills.insert(name, found);
    }
    Some(CachedUpdates { looked: looked.parse().ok()?, later, skills })
}

impl CachedSkill {
    /// What was found out, if the skill is still locked as it was then.
    fn if_still_locked(self, name: &str, root: &Path, state: &State) -> Option<Availability> {
        let locked = state.lock.skills.get(name)?;
        let is_same = (&locked.version, &locked.integrity) == (&self.version, &self.integrity)
            && locked.source.to_string() == self.source;
        if !is_same {
            return None;
        }
        Some(match (self.newer, self.published) {
            (None, None) => Availability::Current,
            (None, Some(published)) => Availability::Published(published),
            (Some(newer), _) => {
                let place = PinnedSource::parse(&newer.place, root).ok()?;
                let version = newer.version.map(|version| Version::parse(&version));
                Availability::Newer { version: version.transpose().ok()?, place }
            }
        })
    }
}
