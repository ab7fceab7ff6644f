//! Caches registry responses on disk.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use savoir_skill::digest::sha256_hex;
use semver::Version;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;
use url::Url;

use super::Name;
use crate::{limits::MAX_PACKAGE_INDEX_BYTES, text_file};

/// A cached file of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cached {
    /// The `ETag` of the response.
    pub(super) etag: Option<String>,
    /// The text; `None` if the registry has no such file.
    pub(super) text: Option<String>,
}

/// The first line of a cached file.
#[derive(Serialize, Deserialize)]
struct CacheHeader {
    etag: Option<String>,
    absent: bool,
}

/// The cache: a folder per registry, and one folder for the archives of all registries.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    registry: PathBuf,
    artifacts: PathBuf,
}

impl Cache {
    pub(super) fn new(cache: &Path, base: &Url) -> Self {
        let all = cache.join("registry");
        let host = base.host_str().unwrap_or_default();
        // The digest distinguishes several registries of one host; the host name is only for users
        // who look into the folder.
        let folder = format!("{host}-{}", &sha256_hex(base.as_str().as_bytes())[..16]);
        Self { registry: all.join(folder), artifacts: all.join("artifacts") }
    }

    /// Returns the cached index of a skill.
    pub(super) fn index(&self, name: &Name) -> Option<Cached> {
        read(&self.index_path(name))
    }

    pub(super) fn store_index(&self, name: &Name, cached: &Cached) {
        store_cached(&self.index_path(name), cached);
    }

    pub(super) fn config(&self) -> Option<Cached> {
        read(&self.registry.join("config.json"))
    }

    pub(super) fn store_config(&self, cached: &Cached) {
        store_cached(&self.registry.join("config.json"), cached);
    }

    /// Returns a cached archive, if it still has its digest.
    pub(super) fn artifact(&self, sha256: &str) -> Option<Vec<u8>> {
        let bytes = fs::read(self.artifacts.join(sha256)).ok()?;
        (sha256_hex(&bytes) == sha256).then_some(bytes)
    }

    pub(super) fn store_artifact(&self, sha256: &str, bytes: &[u8]) {
        store_bytes(&self.artifacts.join(sha256), bytes);
    }

    /// Returns the cached signatures of a version.
    pub(super) fn signatures(&self, name: &Name, version: &Version) -> Option<String> {
        read(&self.signatures_path(name, version))?.text
    }

    pub(super) fn store_signatures(&self, name: &Name, version: &Version, text: &str) {
        let cached = Cached { etag: None, text: Some(text.to_owned()) };
        store_cached(&self.signatures_path(name, version), &cached);
    }

    /// The cached signed evaluations of a version.
    pub(super) fn attestations(&self, name: &Name, version: &Version) -> Option<String> {
        read(&self.version_path("attestations", name, version))?.text
    }

    pub(super) fn store_attestations(&self, name: &Name, version: &Version, text: &str) {
        let cached = Cached { etag: None, text: Some(text.to_owned()) };
        store_cached(&self.version_path("attestations", name, version), &cached);
    }

    fn signatures_path(&self, name: &Name, version: &Version) -> PathBuf {
        self.version_path("signatures", name, version)
    }

    fn version_path(&self, kind: &str, name: &Name, version: &Version) -> PathBuf {
        let folder = self.registry.join(kind).join(name.namespace().unwrap_or("_"));
        folder.join(name.last()).join(version.to_string())
    }

    /// Skills without a namespace are in the folder `_`, which is not a valid namespace.
    fn index_path(&self, name: &Name) -> PathBuf {
        let folder = self.registry.join("index").join(name.namespace().unwrap_or("_"));
        folder.join(name.last())
    }
}

fn read(path: &Path) -> Option<Cached> {
    // Damaged files count as missing.
    let text = text_file::read(path, MAX_PACKAGE_INDEX_BYTES + 1024).ok()??;
    let (head, text) = text.split_once('\n')?;
    let CacheHeader { etag, absent } = serde_json::from_str(head).ok()?;
    Some(Cached { etag, text: (!absent).then(|| text.to_owned()) })
}

fn store_cached(path: &Path, cached: &Cached) {
    let head = CacheHeader { etag: cached.etag.clone(), absent: cached.text.is_none() };
    let Ok(mut bytes) = serde_json::to_vec(&head) else { return };
    bytes.push(b'\n');
    bytes.extend(cached.text.iter().flat_map(|text| text.bytes()));
    store_bytes(path, &bytes);
}

/// Writes a file to the cache. Errors are ignored: they only cause more requests.
fn store_bytes(path: &Path, bytes: &[u8]) {
    if let Err(error) = write(path, bytes) {
        tracing::debug!(path = %path.display(), %error, "nothing was kept");
    }
}

/// Writes a file atomically.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_values_round_trip() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::new(place.path(), &Url::parse("https://x.example/registry/").unwrap());
        let (flat, deep) = (Name::parse("acme").unwrap(), Name::parse("acme/acorn").unwrap());
        let known =
            Cached { etag: Some("\"a\"".into()), text: Some("{\"b\": 1}\n{\"c\": 2}\n".into()) };
        let absent = Cached { etag: None, text: None };
        cache.store_index(&flat, &known);
        cache.store_index(&deep, &absent);
        assert_eq!(cache.index(&flat), Some(known));
        assert_eq!(cache.index(&deep), Some(absent), "a name and a namespace may be the same");
        assert_eq!(cache.index(&Name::parse("other").unwrap()), None);
        let other = Cache::new(place.path(), &Url::parse("https://x.example/second/").unwrap());
        assert_eq!(other.index(&flat), None, "another registry of the same host");
    }

    #[test]
    fn damaged_cache_is_ignored() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::new(place.path(), &Url::parse("https://x.example/").unwrap());
        let digest = sha256_hex(b"bytes");
        cache.store_artifact(&digest, b"bytes");
        assert_eq!(cache.artifact(&digest).unwrap(), b"bytes");
        let path = cache.artifacts.join(&digest);
        fs::write(&path, "other").unwrap();
        assert_eq!(cache.artifact(&digest), None);
        let name = Name::parse("a").unwrap();
        cache.store_index(&name, &Cached { etag: None, text: Some("x".into()) });
        fs::write(cache.index_path(&name), "no head").unwrap();
        assert_eq!(cache.index(&name), None);
    }

    #[test]
    fn unwritable_cache_is_ignored() {
        let place = tempfile::tempdir().unwrap();
        let blocked = place.path().join("file");
        fs::write(&blocked, "").unwrap();
        let cache = Cache::new(&blocked, &Url::parse("https://x.example/").unwrap());
        cache.store_artifact("a", b"b");
        assert_eq!(cache.artifact("a"), None);
    }
}
