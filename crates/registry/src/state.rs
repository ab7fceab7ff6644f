//! State that all registry routes share: caches, limits and the search index.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use savoir_store::{
    StoreError,
    registry::{AuditAction, DownloadCounter, PackageName, Registry, RegistryChange},
};
use tokio::sync::{Mutex, Notify};

use super::{
    cache::{ResponseCache, ResponseCacheEntry},
    publish_limits::PublishLimits,
    search::SearchIndex,
};

/// Maximum age of a cached response. A change waits this long before it is acknowledged, so that no
/// process still returns the old state.
pub const MAX_CACHE_AGE: Duration = Duration::from_millis(100);

/// Changes that are read with one query.
const CHANGE_BATCH: u64 = 1000;

#[derive(Debug)]
pub struct RegistryState {
    cache: ResponseCache,
    started: Instant,
    /// Number of the last known change.
    seq: AtomicU64,
    /// When that was asked for, in microseconds after `started`; 0 is never.
    last_checked: AtomicU64,
    checking: Mutex<()>,
    pub publish_limits: PublishLimits,
    /// Held while a large archive is packed.
    pub packing_lock: Arc<Mutex<()>>,
    /// Downloads that are not written to the database yet.
    pub downloads: DownloadCounter,
    /// Set once the index is open.
    pub(super) search: OnceLock<Arc<SearchIndex>>,
    /// Notified after a change of this process.
    pub(super) changes_notify: Notify,
}

impl Default for RegistryState {
    fn default() -> Self {
        Self {
            cache: ResponseCache::default(),
            started: Instant::now(),
            seq: AtomicU64::new(0),
            last_checked: AtomicU64::new(0),
            checking: Mutex::new(()),
            publish_limits: PublishLimits::default(),
            packing_lock: Arc::default(),
            downloads: DownloadCounter::default(),
            search: OnceLock::new(),
            changes_notify: Notify::new(),
        }
    }
}

impl RegistryState {
    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX).max(1)
    }

    /// Whether cached responses are new enough.
    pub fn is_fresh(&self) -> bool {
        let last_checked = self.last_checked.load(Ordering::Acquire);
        last_checked != 0
            && self.now().saturating_sub(last_checked) < MAX_CACHE_AGE.as_micros() as u64
    }

    /// Reads new changes, unless that was just done. Returns the number of the last known change: data
    /// that is read afterwards is at least as new.
    pub async fn refresh(&self, registry: Registry<'_>) -> Result<u64, StoreError> {
        if !self.is_fresh() {
            let _one = self.checking.lock().await;
            if !self.is_fresh() {
                self.load_changes(registry).await?;
            }
        }
        Ok(self.seq.load(Ordering::Acquire))
    }

    /// Reads new changes after this process made one.
    pub async fn apply_own_change(&self, registry: Registry<'_>) -> Result<(), StoreError> {
        let _one = self.checking.lock().await;
        let learned = self.load_changes(registry).await;
        self.changes_notify.notify_one();
        learned
    }

    async fn load_changes(&self, registry: Registry<'_>) -> Result<(), StoreError> {
        let started = self.now();
        let mut seq = self.seq.load(Ordering::Acquire);
        let never = self.last_checked.load(Ordering::Acquire) == 0;
        let head = registry.head().await?;
        if never || head < seq {
            // First check, or the database was replaced: nothing cached is valid.
            self.cache.clear(head);
            seq = head;
        }
        while seq < head {
            let changes = registry.changes(seq, CHANGE_BATCH).await?;
            let Some(last) = changes.last() else { break };
            seq = last.seq;
            self.invalidate(changes, seq);
        }
        self.seq.store(seq, Ordering::Release);
        self.last_checked.store(started, Ordering::Release);
        Ok(())
    }

    fn invalidate(&self, changes: Vec<RegistryChange>, seq: u64) {
        if changes.iter().any(|change| change.act == AuditAction::Imported) {
            return self.cache.clear(seq);
        }
        let packages = changes.into_iter();
        let packages = packages.filter_map(|change| Some((change.package?, change.seq)));
        self.cache.invalidate(packages, seq);
    }

    /// Drops the cached pages of packages whose number of downloads has changed.
    pub fn forget_pages(&self, packages: &[PackageName]) {
        for package in packages {
            self.cache.forget(&format!("/api/v1/skills/{package}"));
        }
    }

    /// The cached response for a path of the registry. It is as new as the last [`Self::refresh`].
    pub fn get_cached(&self, path: &str) -> Option<Arc<ResponseCacheEntry>> {
        self.cache.get(path)
    }

    /// Caches a response that was read after [`Self::refresh`] returned its `seq`.
    pub fn cache_response(&self, path: &str, entry: ResponseCacheEntry) {
        self.cache.put(path, entry);
    }

    /// The search index, once it is open.
    pub fn search(&self) -> Option<Arc<SearchIndex>> {
        self.search.get().cloned()
    }
}
