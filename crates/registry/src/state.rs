//! What all routes of the registry share.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use savoir_store::{
    StoreError,
    registry::{Act, Change, DownloadCounter, Registry},
};
use tokio::sync::{Mutex, Notify};

use super::{
    cache::{CachedResponse, ResponseCache},
    publish_limits::PublishLimits,
    search::SearchIndex,
};

/// How old an answer may be. Whoever changes the registry waits for so long before saying that it is
/// done, so that no process answers with what was before.
pub const LEASE: Duration = Duration::from_millis(100);

/// Changes that are looked at in one question.
const AT_ONCE: u64 = 1000;

/// What all routes of the registry share.
#[derive(Debug)]
pub struct RegistryState {
    memory: ResponseCache,
    began: Instant,
    /// The last change that is known.
    seq: AtomicU64,
    /// When that was asked for, in microseconds after `began`; 0 is never.
    asked: AtomicU64,
    asking: Mutex<()>,
    /// How much is published at once.
    pub gate: PublishLimits,
    /// Whoever packs a large archive for other tools.
    pub packing: Arc<Mutex<()>>,
    /// Downloads that are not written down yet.
    pub downloads: DownloadCounter,
    /// The index, as soon as it is open.
    pub(super) search: OnceLock<Arc<SearchIndex>>,
    /// There is something new.
    pub(super) news: Notify,
}

impl Default for RegistryState {
    fn default() -> Self {
        Self {
            memory: ResponseCache::default(),
            began: Instant::now(),
            seq: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            asking: Mutex::new(()),
            gate: PublishLimits::default(),
            packing: Arc::default(),
            downloads: DownloadCounter::default(),
            search: OnceLock::new(),
            news: Notify::new(),
        }
    }
}

impl RegistryState {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX).max(1)
    }

    /// Whether what is remembered is new enough to be given out.
    pub fn is_fresh(&self) -> bool {
        let asked = self.asked.load(Ordering::Acquire);
        asked != 0 && self.now().saturating_sub(asked) < LEASE.as_micros() as u64
    }

    /// Learns what changed, unless that was done a moment ago. Returns the last change that is known:
    /// what is read after this is at least as new.
    pub async fn freshen(&self, registry: Registry<'_>) -> Result<u64, StoreError> {
        if !self.is_fresh() {
            let _one = self.asking.lock().await;
            if !self.is_fresh() {
                self.learn(registry).await?;
            }
        }
        Ok(self.seq.load(Ordering::Acquire))
    }

    /// Learns of a change of our own.
    pub async fn changed(&self, registry: Registry<'_>) -> Result<(), StoreError> {
        let _one = self.asking.lock().await;
        let learned = self.learn(registry).await;
        self.news.notify_one();
        learned
    }

    async fn learn(&self, registry: Registry<'_>) -> Result<(), StoreError> {
        let began = self.now();
        let mut seq = self.seq.load(Ordering::Acquire);
        let never = self.asked.load(Ordering::Acquire) == 0;
        let head = registry.head().await?;
        if never || head < seq {
            // There is nothing in memory that is older, or nothing of it counts.
            self.memory.forget_all(head);
            seq = head;
        }
        while seq < head {
            let changes = registry.changes(seq, AT_ONCE).await?;
            let Some(last) = changes.last() else { break };
            seq = last.seq;
            self.note(changes, seq);
        }
        self.seq.store(seq, Ordering::Release);
        self.asked.store(began, Ordering::Release);
        Ok(())
    }

    fn note(&self, changes: Vec<Change>, seq: u64) {
        if changes.iter().any(|change| change.act == Act::Imported) {
            return self.memory.forget_all(seq);
        }
        let packages = changes.into_iter();
        let packages = packages.filter_map(|change| Some((change.package?, change.seq)));
        self.memory.changed(packages, seq);
    }

    /// What is remembered for a path of the registry. It is as new as the last [`Self::freshen`].
    pub fn recall(&self, path: &str) -> Option<Arc<CachedResponse>> {
        self.memory.get(path)
    }

    /// Remembers an answer that was read after [`Self::freshen`] returned its `seq`.
    pub fn remember(&self, path: &str, remembered: CachedResponse) {
        self.memory.keep(path, remembered);
    }

    /// The index of skills by words, once it is open.
    pub fn search(&self) -> Option<Arc<SearchIndex>> {
        self.search.get().cloned()
    }
}
