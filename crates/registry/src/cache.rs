//! Cache of registry responses, by the path of the request.
//!
//! A response belongs to one package and was read at some change of the registry. It is valid as long
//! as no later change of that package is known.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lru::LruCache;
use savoir_store::registry::{PackageName, VersionDownloads};

use super::CacheableResponse;

const MAX_TOTAL_BYTES: usize = 16 * 1024 * 1024;
/// A larger response would evict too many others.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
/// Changed packages that are tracked by name. With more, the whole cache is cleared.
const MAX_CHANGED_PACKAGES: usize = 100_000;

#[derive(Debug)]
pub struct ResponseCacheEntry {
    pub response: CacheableResponse,
    pub package: PackageName,
    /// Counts a download each time it is returned.
    pub download: Option<VersionDownloads>,
    /// Number of the change at which it was read.
    pub seq: u64,
}

#[derive(Debug)]
pub(crate) struct ResponseCache(Mutex<CacheContents>);

#[derive(Debug)]
struct CacheContents {
    entries: LruCache<String, Arc<ResponseCacheEntry>>,
    bytes: usize,
    /// Packages that changed since the cache was last cleared, with the number of their last
    /// change.
    changed_packages: HashMap<PackageName, u64>,
    /// The change at which the cache was last cleared. Older responses may be outdated.
    cleared_at: u64,
}

impl Default for ResponseCache {
    fn default() -> Self {
        let entries = LruCache::unbounded();
        Self(Mutex::new(CacheContents {
            entries,
            bytes: 0,
            changed_packages: HashMap::new(),
            cleared_at: 0,
        }))
    }
}

impl ResponseCache {
    fn inner(&self) -> MutexGuard<'_, CacheContents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, path: &str) -> Option<Arc<ResponseCacheEntry>> {
        let mut inner = self.inner();
        let found = Arc::clone(inner.entries.get(path)?);
        if inner.is_current(&found) {
            return Some(found);
        }
        inner.remove(path);
        None
    }

    /// Stores a response, unless it is already outdated.
    pub(crate) fn put(&self, path: &str, entry: ResponseCacheEntry) {
        let mut inner = self.inner();
        let bytes = memory_bytes(path, &entry);
        if bytes > MAX_RESPONSE_BYTES || !inner.is_current(&entry) {
            return;
        }
        inner.remove(path);
        inner.entries.put(path.to_owned(), Arc::new(entry));
        inner.bytes += bytes;
        while inner.bytes > MAX_TOTAL_BYTES {
            let Some((path, oldest)) = inner.entries.pop_lru() else { return };
            inner.bytes -= memory_bytes(&path, &oldest);
        }
    }

    /// Invalidates packages that changed; `seq` is the number of the last change.
    pub(crate) fn invalidate(
        &self,
        packages: impl IntoIterator<Item = (PackageName, u64)>,
        seq: u64,
    ) {
        let mut inner = self.inner();
        inner.changed_packages.extend(packages);
        if inner.changed_packages.len() > MAX_CHANGED_PACKAGES {
            inner.clear(seq);
        }
    }

    /// Drops the response for a path.
    pub(crate) fn forget(&self, path: &str) {
        self.inner().remove(path);
    }

    /// Clears the cache: any package may have changed, up to the change `seq`.
    pub(crate) fn clear(&self, seq: u64) {
        self.inner().clear(seq);
    }
}

impl CacheContents {
    fn is_current(&self, entry: &ResponseCacheEntry) -> bool {
        let changed_at =
            self.changed_packages.get(&entry.package).copied().unwrap_or(self.cleared_at);
        changed_at.max(self.cleared_at) <= entry.seq
    }

    fn remove(&mut self, path: &str) {
        if let Some((path, removed)) = self.entries.pop_entry(path) {
            self.bytes -= memory_bytes(&path, &removed);
        }
    }

    fn clear(&mut self, seq: u64) {
        self.entries.clear();
        self.changed_packages.clear();
        (self.bytes, self.cleared_at) = (0, seq);
    }
}

fn memory_bytes(path: &str, entry: &ResponseCacheEntry) -> usize {
    entry.response.memory_bytes() + path.len() + 256
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CachePolicy;

    fn name(text: &str) -> PackageName {
        text.parse().unwrap()
    }

    fn answer(package: &str, seq: u64, bytes: usize) -> ResponseCacheEntry {
        let answer = CacheableResponse::new("text/plain", CachePolicy::Minute, vec![b'x'; bytes]);
        ResponseCacheEntry { response: answer, package: name(package), download: None, seq }
    }

    #[test]
    fn cached_response_is_dropped_when_package_changes() {
        let cache = ResponseCache::default();
        cache.put("/a", answer("a", 1, 1));
        cache.put("/b", answer("b", 1, 1));
        cache.invalidate([(name("a"), 2)], 2);
        assert!(cache.get("/a").is_none() && cache.get("/b").is_some());
        // Such a response was read before the change and is stored after it.
        cache.put("/a", answer("a", 1, 1));
        assert!(cache.get("/a").is_none());
        cache.put("/a", answer("a", 2, 1));
        assert!(cache.get("/a").is_some());
        cache.clear(3);
        cache.put("/b", answer("b", 2, 1));
        assert!(cache.get("/a").is_none() && cache.get("/b").is_none());
        assert_eq!(cache.inner().bytes, 0);
    }

    #[test]
    fn cache_size_is_limited() {
        let cache = ResponseCache::default();
        cache.put("/huge", answer("huge", 0, MAX_RESPONSE_BYTES));
        assert!(cache.get("/huge").is_none());
        for n in 0..100 {
            cache.put(&format!("/{n}"), answer(&format!("p{n}"), 0, MAX_RESPONSE_BYTES - 2000));
            cache.get("/0");
        }
        assert!(cache.inner().bytes <= MAX_TOTAL_BYTES);
        assert!(cache.get("/0").is_some() && cache.get("/1").is_none());
        cache.invalidate((0..=MAX_CHANGED_PACKAGES).map(|n| (name(&format!("n{n}")), 1)), 1);
        assert!(cache.get("/0").is_none(), "the whole cache is cleared");
        assert!(cache.inner().changed_packages.is_empty());
    }
}
