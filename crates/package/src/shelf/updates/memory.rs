//! What was found out the last time, so that it can be told without the network.

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
    FileError, limits::MAX_LOCK_BYTES, place, registry::Published, shelf::State, source::Place,
};

const FORMAT: u32 = 2;

/// What was found out the last time.
#[derive(Clone, Debug, PartialEq)]
pub struct Remembered {
    /// When that was.
    pub looked: Timestamp,
    /// What it was, for the skills that are still locked as they were then.
    pub skills: BTreeMap<String, Availability>,
}

#[derive(Serialize, Deserialize)]
struct Memory {
    version: u32,
    root: PathBuf,
    looked: String,
    skills: BTreeMap<String, Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    /// What was locked then.
    integrity: String,
    source: String,
    newer: Option<Newer>,
    published: Option<Published>,
}

#[derive(Serialize, Deserialize)]
struct Newer {
    version: Option<String>,
    place: String,
}

fn path(cache: &Path, root: &Path) -> PathBuf {
    let name = sha256_hex(root.as_os_str().as_encoded_bytes());
    cache.join("updates").join(format!("{}.json", &name[..32]))
}

/// Keeps what was found out about the shelf in the folder `root`. What nobody could tell is not
/// kept: it may be known the next time.
pub fn remember(
    cache: &Path,
    root: &Path,
    state: &State,
    found: &BTreeMap<String, Availability>,
) -> Result<(), FileError> {
    let entry = |(name, found): (&String, &Availability)| {
        let locked = state.lock.skills.get(name)?;
        let (newer, published) = match found {
            Availability::Unknown(_) => return None,
            Availability::Current => (None, None),
            Availability::Newer { version, place } => {
                let version = version.as_ref().map(ToString::to_string);
                (Some(Newer { version, place: place.text(root) }), None)
            }
            Availability::Published(published) => (None, Some(published.clone())),
        };
        let (integrity, source) = (locked.integrity.clone(), locked.source.to_string());
        Some((name.clone(), Entry { integrity, source, newer, published }))
    };
    let skills = found.iter().filter_map(entry).collect();
    let (root, looked) = (root.to_owned(), Timestamp::now().to_string());
    let path = path(cache, &root);
    let fail = |error: std::io::Error| FileError::Io { path: path.clone(), error };
    let text = serde_json::to_string(&Memory { version: FORMAT, root, looked, skills });
    let text = text.map_err(|error| fail(error.into()))?;
    let folder = path.parent().unwrap_or(cache);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(fail)?;
    place::write(&path, &text)
}

/// What was found out the last time about the shelf in the folder `root`; nothing, if nobody looked
/// or what was kept is damaged.
pub fn remembered(cache: &Path, root: &Path, state: &State) -> Option<Remembered> {
    let text = place::read(&path(cache, root), MAX_LOCK_BYTES).ok()??;
    let memory: Memory = serde_json::from_str(&text).ok()?;
    if memory.version != FORMAT || memory.root != root {
        return None;
    }
    let skill = |(name, entry): (String, Entry)| {
        let locked = state.lock.skills.get(&name)?;
        if locked.integrity != entry.integrity || locked.source.to_string() != entry.source {
            return None;
        }
        let found = match (entry.newer, entry.published) {
            (None, None) => Availability::Current,
            (None, Some(published)) => Availability::Published(published),
            (Some(newer), _) => {
                let place = Place::parse(&newer.place, root).ok()?;
                let version = newer.version.map(|version| Version::parse(&version));
                Availability::Newer { version: version.transpose().ok()?, place }
            }
        };
        Some((name, found))
    };
    let skills = memory.skills.into_iter().filter_map(skill).collect();
    Some(Remembered { looked: memory.looked.parse().ok()?, skills })
}
