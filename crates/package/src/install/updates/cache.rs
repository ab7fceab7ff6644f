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

/// The cached result of an update check.
#[derive(Clone, Debug, PartialEq)]
pub struct CachedUpdates {
    /// The time of the last check of all skills.
    looked: Timestamp,
    /// The time of later checks of single skills.
    later: BTreeMap<String, Timestamp>,
    /// The results, for skills whose lock entry is unchanged since.
    pub skills: BTreeMap<String, Availability>,
}

impl CachedUpdates {
    /// Returns when a skill was last checked.
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
    /// The locked version at the time of the check.
    version: Version,
    integrity: String,
    source: String,
    newer: Option<NewerVersion>,
    published: Option<PublishedStatus>,
    /// The time of the check, if it was of this skill only.
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

/// Stores the results of a check of all skills in the skill set at `root`. Unknown results are not
/// stored, because they may be known the next time.
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

/// Like [`save_updates`], but for some skills; the results of the others stay.
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

/// Returns the cached results; `None` if there are none, or the file is damaged.
fn read(cache: &Path, root: &Path) -> Option<UpdateCacheFile> {
    let text = text_file::read(&path(cache, root), MAX_LOCK_BYTES).ok()??;
    let cache_file: UpdateCacheFile = serde_json::from_str(&text).ok()?;
    (cache_file.version == FORMAT && cache_file.root == root).then_some(cache_file)
}

/// Returns the cached results for the skill set at `root`; `None` if there are none, or the file is
/// damaged.
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
    /// Returns the result, if the lock entry is unchanged since.
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
