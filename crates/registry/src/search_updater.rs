//! Follows the change log of the registry and updates the search index.
//!
//! Each process has its own copy of the index. The follower rebuilds the index from the database
//! when the index is lost, when it belongs to another database, or when the database was restored
//! to an older state. During a rebuild, searches use the documents that the index already has.

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use savoir_store::{
    Database, Storage, StoreError,
    registry::{AuditAction, PackageName, Registry, SearchablePackage},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    EXCERPT_KEY, RegistryState,
    search::{Document, IndexChange, SearchError, SearchIndex},
};

/// How often the follower checks the database for changes made by other processes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// How long the last commit may take when the server stops.
const SHUTDOWN_COMMIT_TIMEOUT: Duration = Duration::from_secs(30);
/// How often download counts are written to the database.
const DOWNLOAD_FLUSH_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of changes, or of packages, that one database query reads.
const CHANGE_BATCH: u64 = 500;
/// The database setting with a random id of this database. An index stores the id of the database
/// that it was built from.
const INSTANCE_SETTING: &str = "registry.instance";

/// Why the search index could not be updated.
#[derive(Debug, thiserror::Error)]
enum SearchUpdateError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error("the thread that writes the index ended: {0}")]
    Thread(#[from] tokio::task::JoinError),
}

/// Updates the search index in `folder` and saves download counts until `stopping` is cancelled.
pub async fn update_search_index(
    state: &RegistryState,
    database: &Database,
    storage: &Storage,
    folder: &Path,
    stopping: CancellationToken,
) {
    let registry = database.registry(storage);
    let updating = async {
        let mut updater = loop {
            match open(state, database, registry, folder).await {
                Ok(updater) => break updater,
                Err(error) => warn_and_wait(&error).await,
            }
        };
        loop {
            match updater.catch_up_or_start_over().await {
                Ok(()) => {
                    let _ =
                        tokio::time::timeout(POLL_INTERVAL, state.changes_notify.notified()).await;
                }
                Err(error) => warn_and_wait(&error).await,
            }
        }
    };
    let saving_downloads = async {
        loop {
            tokio::time::sleep(DOWNLOAD_FLUSH_INTERVAL).await;
            flush_downloads(state, registry).await;
        }
    };
    tokio::select! {
        () = stopping.cancelled() => {
            tokio::join!(flush_downloads(state, registry), finish_writing(state));
        }
        () = updating => {}
        () = saving_downloads => {}
    }
}

async fn warn_and_wait(error: &SearchUpdateError) {
    let code = match error {
        SearchUpdateError::Search(error) => error.code(),
        SearchUpdateError::Store(_) => "store_failed",
        SearchUpdateError::Thread(_) => "search_thread",
    };
    tracing::warn!(%error, code, "cannot update the search index; trying again");
    tokio::time::sleep(RETRY_INTERVAL).await;
}

async fn flush_downloads(state: &RegistryState, registry: Registry<'_>) {
    match registry.add_downloads(&state.downloads).await {
        Ok(downloaded) => state.forget_pages(&downloaded),
        Err(error) => {
            tracing::warn!(%error, "download counts were not saved; trying again later");
        }
    }
}

/// Waits for a running index commit: a writer that is killed during a commit leaves files behind.
async fn finish_writing(state: &RegistryState) {
    let Some(index) = state.search() else { return };
    let settling = tokio::task::spawn_blocking(move || index.wait_for_writer());
    if tokio::time::timeout(SHUTDOWN_COMMIT_TIMEOUT, settling).await.is_err() {
        tracing::warn!("the search index is still being written; the next start may rebuild it");
    }
}

async fn open<'a>(
    state: &RegistryState,
    database: &Database,
    registry: Registry<'a>,
    folder: &Path,
) -> Result<SearchUpdater<'a>, SearchUpdateError> {
    let new = Uuid::new_v4().to_string();
    let instance = database.settings().put_if_absent(INSTANCE_SETTING, &new).await?;
    let folder = folder.to_owned();
    let opened = tokio::task::spawn_blocking(move || SearchIndex::open(&folder, &instance));
    let (index, applied) = opened.await??;
    let index = Arc::new(index);
    // `set` cannot fail: the index is opened only once.
    let _ = state.search.set(Arc::clone(&index));
    Ok(SearchUpdater { registry, index, applied, failures: 0 })
}

struct SearchUpdater<'a> {
    registry: Registry<'a>,
    index: Arc<SearchIndex>,
    applied: u64,
    /// How many times in a row the index (not the database) failed.
    failures: u32,
}

impl SearchUpdater<'_> {
    /// Catches up. Rebuilds an index that fails repeatedly: all its data is in the database.
    async fn catch_up_or_start_over(&mut self) -> Result<(), SearchUpdateError> {
        let caught_up = self.catch_up().await;
        match &caught_up {
            Ok(()) => self.failures = 0,
            Err(SearchUpdateError::Store(_)) => {}
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                // Rebuild after 2, 4, 8, … failures: less and less often if rebuilding does not
                // help.
                if self.failures >= 2 && self.failures.is_power_of_two() {
                    tracing::warn!(%error, "the search index failed again; rebuilding it");
                    let index = Arc::clone(&self.index);
                    tokio::task::spawn_blocking(move || index.start_over()).await??;
                    self.applied = 0;
                }
            }
        }
        caught_up
    }

    async fn catch_up(&mut self) -> Result<(), SearchUpdateError> {
        let head = self.registry.head().await?;
        if head < self.applied {
            tracing::warn!("the database is older than the search index; rebuilding the index");
            let index = Arc::clone(&self.index);
            tokio::task::spawn_blocking(move || index.clear()).await??;
            self.applied = 0;
        }
        if self.applied == 0 && head > 0 {
            return self.rebuild(head).await;
        }
        while self.applied < head {
            let changes = self.registry.changes(self.applied, CHANGE_BATCH).await?;
            let Some(last) = changes.last() else { break };
            if changes.iter().any(|change| change.act == AuditAction::Imported) {
                return self.rebuild(head).await;
            }
            let last = last.seq;
            let packages: BTreeSet<PackageName> =
                changes.into_iter().filter_map(|change| change.package).collect();
            let index_changes = self.index_changes(packages.into_iter().collect()).await?;
            self.apply(index_changes, last).await?;
        }
        Ok(())
    }

    /// The index changes for packages that changed: `Put` for those that can still be found,
    /// `Remove` for the others.
    async fn index_changes(
        &self,
        packages: Vec<PackageName>,
    ) -> Result<Vec<IndexChange>, StoreError> {
        let found = self.registry.searchable_packages(&packages).await?;
        let there: BTreeSet<PackageName> =
            found.iter().map(|found| found.summary.package.clone()).collect();
        let gone = packages.into_iter().filter(|package| !there.contains(package));
        let gone: Vec<IndexChange> =
            gone.map(|package| IndexChange::Remove(package.to_string())).collect();
        Ok(found.into_iter().map(to_document).map(IndexChange::Put).chain(gone).collect())
    }

    async fn apply(
        &mut self,
        index_changes: Vec<IndexChange>,
        up_to: u64,
    ) -> Result<(), SearchUpdateError> {
        let index = Arc::clone(&self.index);
        let writing = tokio::task::spawn_blocking(move || {
            let applied = index.apply(index_changes, up_to);
            // The writer needs some megabytes for a moment: return them to the operating system.
            savoir_sandbox::release_free_memory();
            applied
        });
        writing.await??;
        self.applied = up_to;
        Ok(())
    }

    /// Indexes all packages. Changes made during the build come after `head` in the change log, so
    /// the next `catch_up` applies them.
    async fn rebuild(&mut self, head: u64) -> Result<(), SearchUpdateError> {
        let (sender, mut receiver) = mpsc::channel::<Vec<Document>>(2);
        let (index, applied) = (Arc::clone(&self.index), self.applied);
        let entry = if index.skill_count() == 0 { IndexChange::New } else { IndexChange::Put };
        let writing = tokio::task::spawn_blocking(move || {
            let documents = std::iter::from_fn(|| receiver.blocking_recv()).flatten();
            // Keep the old number: the index counts as built only after all packages were read.
            index.apply(documents.map(entry), applied)
        });
        let read = self.read_all_documents(sender).await;
        writing.await??;
        read?;
        let index = Arc::clone(&self.index);
        tokio::task::spawn_blocking(move || index.merge_all_segments()).await??;
        self.apply(Vec::new(), head).await?;
        tracing::info!(skills = self.index.skill_count(), "the search index is built");
        Ok(())
    }

    async fn read_all_documents(
        &self,
        sender: mpsc::Sender<Vec<Document>>,
    ) -> Result<(), StoreError> {
        let mut after: Option<PackageName> = None;
        loop {
            let page = self.registry.all_searchable_packages(after.as_ref(), CHANGE_BATCH).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.summary.package.clone());
            let documents = page.into_iter().map(to_document).collect();
            if sender.send(documents).await.is_err() {
                // The writer failed; its own error is returned by the caller.
                return Ok(());
            }
        }
    }
}

fn to_document(found: SearchablePackage) -> Document {
    let SearchablePackage { summary, facts, downloads, evaluated } = found;
    let namespace = summary.package.namespace();
    let excerpt = facts.more.get(EXCERPT_KEY).and_then(|text| text.as_str());
    Document {
        key: summary.package.to_string(),
        namespace: (!namespace.is_default()).then(|| namespace.to_string()),
        name: summary.package.name().to_owned(),
        body: excerpt.unwrap_or_default().to_owned(),
        description: summary.description,
        tags: summary.tags,
        author: summary.author.unwrap_or_default(),
        tier: summary.attested,
        downloads,
        evaluated,
        updated_at: summary.updated_at.seconds(),
        yanked_all: false,
    }
}
