//! Answers that are asked for often, by the path of the request.
//!
//! An answer is about one package, and was true at some change of the registry. It counts as long as
//! no later change of that package is known.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lru::LruCache;
use savoir_store::registry::{PackageName, Tally};

use super::Answer;

/// Bytes of all answers together.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// An answer with more is not worth the others that it would push out.
const LARGEST: usize = 1024 * 1024;
/// Changed packages that are known by name. With more, everything is forgotten instead.
const MOST_CHANGED: usize = 100_000;

/// What is remembered for a path.
#[derive(Debug)]
pub struct CachedResponse {
    pub answer: Answer,
    /// What it is about.
    pub package: PackageName,
    /// Counts the downloads that giving it out is.
    pub download: Option<Tally>,
    /// The change of the registry at which it was true.
    pub seq: u64,
}

#[derive(Debug)]
pub(crate) struct ResponseCache(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    answers: LruCache<String, Arc<CachedResponse>>,
    bytes: usize,
    /// The last change of packages that changed since everything was forgotten.
    changed: HashMap<PackageName, u64>,
    /// The change at which that was. What is older is not known to be true.
    floor: u64,
}

impl Default for ResponseCache {
    fn default() -> Self {
        let answers = LruCache::unbounded();
        Self(Mutex::new(Inner { answers, bytes: 0, changed: HashMap::new(), floor: 0 }))
    }
}

impl ResponseCache {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, path: &str) -> Option<Arc<CachedResponse>> {
        let mut inner = self.inner();
        let found = Arc::clone(inner.answers.get(path)?);
        if inner.is_true(&found) {
            return Some(found);
        }
        inner.forget(path);
        None
    }

    /// Keeps an answer, unless it is not true any more.
    pub(crate) fn keep(&self, path: &str, remembered: CachedResponse) {
        let mut inner = self.inner();
        let weight = weight(path, &remembered);
        if weight > LARGEST || !inner.is_true(&remembered) {
            return;
        }
        inner.forget(path);
        inner.answers.put(path.to_owned(), Arc::new(remembered));
        inner.bytes += weight;
        while inner.bytes > MOST_BYTES {
            let Some((path, least)) = inner.answers.pop_lru() else { return };
            inner.bytes -= self::weight(&path, &least);
        }
    }

    /// Packages changed, the last of them at `seq`.
    pub(crate) fn changed(&self, packages: impl IntoIterator<Item = (PackageName, u64)>, seq: u64) {
        let mut inner = self.inner();
        inner.changed.extend(packages);
        if inner.changed.len() > MOST_CHANGED {
            inner.forget_all(seq);
        }
    }

    /// Anything may have changed, at `seq` at last.
    pub(crate) fn forget_all(&self, seq: u64) {
        self.inner().forget_all(seq);
    }
}

impl Inner {
    fn is_true(&self, remembered: &CachedResponse) -> bool {
        let changed = self.changed.get(&remembered.package).copied().unwrap_or(self.floor);
        changed.max(self.floor) <= remembered.seq
    }

    fn forget(&mut self, path: &str) {
        if let Some((path, gone)) = self.answers.pop_entry(path) {
            self.bytes -= weight(&path, &gone);
        }
    }

    fn forget_all(&mut self, seq: u64) {
        self.answers.clear();
        self.changed.clear();
        (self.bytes, self.floor) = (0, seq);
    }
}

fn weight(path: &str, remembered: &CachedResponse) -> usize {
    remembered.answer.weight() + path.len() + 256
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CachePolicy;

    fn name(text: &str) -> PackageName {
        text.parse().unwrap()
    }

    fn answer(package: &str, seq: u64, bytes: usize) -> CachedResponse {
        let answer = Answer::new("text/plain", CachePolicy::Minute, vec![b'x'; bytes]);
        CachedResponse { answer, package: name(package), download: None, seq }
    }

    #[test]
    fn an_answer_counts_until_its_package_changes() {
        let memory = ResponseCache::default();
        memory.keep("/a", answer("a", 1, 1));
        memory.keep("/b", answer("b", 1, 1));
        memory.changed([(name("a"), 2)], 2);
        assert!(memory.get("/a").is_none() && memory.get("/b").is_some());
        // It was read before the change, and comes after it.
        memory.keep("/a", answer("a", 1, 1));
        assert!(memory.get("/a").is_none());
        memory.keep("/a", answer("a", 2, 1));
        assert!(memory.get("/a").is_some());
        memory.forget_all(3);
        memory.keep("/b", answer("b", 2, 1));
        assert!(memory.get("/a").is_none() && memory.get("/b").is_none());
        assert_eq!(memory.inner().bytes, 0);
    }

    #[test]
    fn there_is_a_bound() {
        let memory = ResponseCache::default();
        memory.keep("/huge", answer("huge", 0, LARGEST));
        assert!(memory.get("/huge").is_none());
        for n in 0..100 {
            memory.keep(&format!("/{n}"), answer(&format!("p{n}"), 0, LARGEST - 2000));
            memory.get("/0");
        }
        assert!(memory.inner().bytes <= MOST_BYTES);
        assert!(memory.get("/0").is_some() && memory.get("/1").is_none());
        memory.changed((0..=MOST_CHANGED).map(|n| (name(&format!("n{n}")), 1)), 1);
        assert!(memory.get("/0").is_none(), "everything is forgotten");
        assert!(memory.inner().changed.is_empty());
    }
}
