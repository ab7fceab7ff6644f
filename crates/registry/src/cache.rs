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
/// A larger response would push out too many others.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
/// Changed packages that are tracked by name. With more, the whole cache is cleared.
const MAX_CHANGED_PACKAGES: usize = 100_000;

#[derive(Debug)]
pub struct CachedResponse {
    pub response: CacheableResponse,
    pub package: PackageName,
    /// Counts a download each time it is returned.
    pub download: Option<VersionDownloads>,
    /// Number of the change at which it was read.
    pub seq: u64,
}

#[derive(Debug)]
pub(crate) struct ResponseCache(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    answers: LruCache<String, Arc<CachedResponse>>,
    bytes: usize,
    /// Packages that changed since the cache was last cleared, with the number of their last
    /// change.
    invalidate: HashMap<PackageName, u64>,
    /// The change at which the cache was last cleared. Older responses may be outdated.
    floor: u64,
}

impl Default for ResponseCache {
    fn default() -> Self {
        let answers = LruCache::unbounded();
        Self(Mutex::new(Inner { answers, bytes: 0, invalidate: HashMap::new(), floor: 0 }))
    }
}

impl ResponseCache {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, path: &str) -> Option<Arc<CachedResponse>> {
        let mut inner = self.inner();
        let found = Arc::clone(inner.answers.get(path)?);
        if inner.is_current(&found) {
            return Some(found);
        }
        inner.remove(path);
        None
    }

    /// Stores a response, unless it is already outdated.
    pub(crate) fn put(&self, path: &str, response: CachedResponse) {
        let mut inner = self.inner();
        let weight = weight(path, &response);
        if weight > MAX_RESPONSE_BYTES || !inner.is_current(&response) {
            return;
        }
        inner.remove(path);
        inner.answers.put(path.to_owned(), Arc::new(response));
        inner.bytes += weight;
        while inner.bytes > MAX_TOTAL_BYTES {
            let Some((path, least)) = inner.answers.pop_lru() else { return };
            inner.bytes -= self::weight(&path, &least);
        }
    }

    /// Invalidates packages that changed; `seq` is the number of the last change.
    pub(crate) fn invalidate(
        &self,
        packages: impl IntoIterator<Item = (PackageName, u64)>,
        seq: u64,
    ) {
        let mut inner = self.inner();
        inner.invalidate.extend(packages);
        if inner.invalidate.len() > MAX_CHANGED_PACKAGES {
            inner.clear(seq);
        }
    }

    /// Clears the cache: any package may have changed, up to the change `seq`.
    pub(crate) fn clear(&self, seq: u64) {
        self.inner().clear(seq);
    }
}

impl Inner {
    fn is_current(&self, response: &CachedResponse) -> bool {
        let invalidate = self.invalidate.get(&response.package).copied().unwrap_or(self.floor);
        invalidate.max(self.floor) <= response.seq
    }

    fn remove(&mut self, path: &str) {
        if let Some((path, gone)) = self.answers.pop_entry(path) {
            self.bytes -= weight(&path, &gone);
        }
    }

    fn clear(&mut self, seq: u64) {
        self.answers.clear();
        self.invalidate.clear();
        (self.bytes, self.floor) = (0, seq);
    }
}

fn weight(path: &str, response: &CachedResponse) -> usize {
    response.response.memory_bytes() + path.len() + 256
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CachePolicy;

    fn name(text: &str) -> PackageName {
        text.parse().unwrap()
    }

    fn answer(package: &str, seq: u64, bytes: usize) -> CachedResponse {
        let answer = CacheableResponse::new("text/plain", CachePolicy::Minute, vec![b'x'; bytes]);
        CachedResponse { response: answer, package: name(package), download: None, seq }
    }

    #[test]
    fn cached_response_is_dropped_when_package_changes() {
        let cache = ResponseCache::default();
        cache.put("/a", answer("a", 1, 1));
        cache.put("/b", answer("b", 1, 1));
        cache.invalidate([(name("a"), 2)], 2);
        assert!(cache.get("/a").is_none() && cache.get("/b").is_some());
        // It was read before the change, and comes after it.
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
        assert!(cache.get("/0").is_none(), "everything is forgotten");
        assert!(cache.inner().invalidate.is_empty());
    }
}
