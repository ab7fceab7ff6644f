//! Limits concurrent uploads: each needs memory, and scanning it takes time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// Maximum concurrent uploads of all users, for a user who already has an upload in progress.
const MAX_PUBLISHERS: usize = 24;
/// Maximum concurrent uploads of all users, for a user without an upload in progress. The limit is
/// higher so that a few users with slow or many uploads do not block everyone else.
const MAX_PUBLISHERS_WITH_NEWCOMERS: usize = 48;
/// Maximum concurrent uploads of one user.
const MAX_UPLOADS_PER_USER: usize = 8;
/// How long an upload waits for a permit. Its body is not read during this time.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of packages that are vetted at once; the others wait.
const MAX_CONCURRENT_SCANS: usize = 2;

#[derive(Debug)]
pub struct PublishLimits {
    uploads_by_user: UploadsByUser,
    /// Notified when an upload ends.
    slot_freed: Arc<Notify>,
    vetting: Arc<Semaphore>,
}

type UploadsByUser = Arc<Mutex<HashMap<i64, UserUploads>>>;

#[derive(Debug)]
struct UserUploads {
    uploads: usize,
    /// Only one upload of a user waits to be vetted at a time, so that users take turns, not
    /// packages.
    turn: Arc<Semaphore>,
}

impl Default for PublishLimits {
    fn default() -> Self {
        let vetting = Arc::new(Semaphore::new(MAX_CONCURRENT_SCANS));
        Self { uploads_by_user: Arc::default(), slot_freed: Arc::default(), vetting }
    }
}

/// Permission for one upload. Dropping it lets the next upload in.
#[derive(Debug)]
pub struct PublishPermit {
    uploads_by_user: UploadsByUser,
    slot_freed: Arc<Notify>,
    user: i64,
    turn: Arc<Semaphore>,
}

/// Permission to vet one package. Dropping it lets the next package in.
#[derive(Debug)]
pub struct ScanPermit {
    _own: Option<OwnedSemaphorePermit>,
    _all: OwnedSemaphorePermit,
}

impl PublishLimits {
    /// Waits for a permit for an upload of a user; `None` after the timeout.
    pub async fn acquire(&self, user: i64) -> Option<PublishPermit> {
        let acquired = async {
            loop {
                let mut slot_freed = std::pin::pin!(self.slot_freed.notified());
                // Register before checking, so that no notification is missed.
                slot_freed.as_mut().enable();
                if let Some(permit) = self.try_acquire(user) {
                    return permit;
                }
                slot_freed.await;
            }
        };
        timeout(QUEUE_TIMEOUT, acquired).await.ok()
    }

    /// Returns a permit for an upload of a user if one is free.
    fn try_acquire(&self, user: i64) -> Option<PublishPermit> {
        let mut uploads_by_user =
            self.uploads_by_user.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = uploads_by_user.values().map(|user_uploads| user_uploads.uploads).sum();
        let is_first = !uploads_by_user.contains_key(&user);
        let limit = if is_first { MAX_PUBLISHERS_WITH_NEWCOMERS } else { MAX_PUBLISHERS };
        let own = uploads_by_user.get(&user).map_or(0, |user_uploads| user_uploads.uploads);
        if all >= limit || own >= MAX_UPLOADS_PER_USER {
            return None;
        }
        let new = || UserUploads { uploads: 0, turn: Arc::new(Semaphore::new(1)) };
        let user_uploads = uploads_by_user.entry(user).or_insert_with(new);
        user_uploads.uploads += 1;
        let turn = Arc::clone(&user_uploads.turn);
        let (uploads_by_user, slot_freed) =
            (Arc::clone(&self.uploads_by_user), Arc::clone(&self.slot_freed));
        Some(PublishPermit { uploads_by_user, slot_freed, user, turn })
    }

    /// Waits for permission to vet a package. A package without an upload permit belongs to no
    /// user.
    pub async fn wait_for_scan_turn(&self, permit: Option<&PublishPermit>) -> Option<ScanPermit> {
        // The semaphores are never closed.
        let own = match permit {
            Some(permit) => Some(Arc::clone(&permit.turn).acquire_owned().await.ok()?),
            None => None,
        };
        let all = Arc::clone(&self.vetting).acquire_owned().await.ok()?;
        Some(ScanPermit { _own: own, _all: all })
    }
}

impl Drop for PublishPermit {
    fn drop(&mut self) {
        let mut uploads_by_user =
            self.uploads_by_user.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(user_uploads) = uploads_by_user.get_mut(&self.user) {
            user_uploads.uploads -= 1;
            if user_uploads.uploads == 0 {
                uploads_by_user.remove(&self.user);
            }
        }
        drop(uploads_by_user);
        self.slot_freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_cannot_take_all_upload_slots() {
        let limits = PublishLimits::default();
        let mine: Vec<PublishPermit> = std::iter::from_fn(|| limits.try_acquire(1)).collect();
        assert_eq!(mine.len(), MAX_UPLOADS_PER_USER);
        let greedy: Vec<PublishPermit> = (2..10)
            .flat_map(|user| std::iter::repeat_with(move || user).take(8))
            .filter_map(|user| limits.try_acquire(user))
            .collect();
        assert!(mine.len() + greedy.len() < MAX_PUBLISHERS + 8);
        let others: Vec<PublishPermit> =
            (10..200).filter_map(|user| limits.try_acquire(user)).collect();
        assert_eq!(mine.len() + greedy.len() + others.len(), MAX_PUBLISHERS_WITH_NEWCOMERS);
        assert!(limits.try_acquire(10).is_none(), "a second upload while all permits are taken");
        drop((mine, greedy));
        assert!(limits.try_acquire(1).is_some());
        drop(others);
        assert!(limits.uploads_by_user.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn upload_waits_for_free_slot() {
        let limits = Arc::new(PublishLimits::default());
        let mut mine: Vec<PublishPermit> = std::iter::from_fn(|| limits.try_acquire(1)).collect();
        let waiting: Vec<_> = (0..2)
            .map(|_| {
                let limits = Arc::clone(&limits);
                tokio::spawn(async move { limits.acquire(1).await.is_some() })
            })
            .collect();
        tokio::task::yield_now().await;
        mine.truncate(MAX_UPLOADS_PER_USER - 2);
        for waiting in waiting {
            assert!(waiting.await.unwrap());
        }
    }

    #[tokio::test]
    async fn users_take_turns() {
        let limits = PublishLimits::default();
        let (mine, again) = (limits.try_acquire(1).unwrap(), limits.try_acquire(1).unwrap());
        let other = limits.try_acquire(2).unwrap();
        let first = limits.wait_for_scan_turn(Some(&mine)).await.unwrap();
        let short = Duration::from_millis(20);
        assert!(
            timeout(short, limits.wait_for_scan_turn(Some(&again))).await.is_err(),
            "one of mine at a time"
        );
        let second =
            timeout(short, limits.wait_for_scan_turn(Some(&other))).await.unwrap().unwrap();
        drop(first);
        assert!(timeout(short, limits.wait_for_scan_turn(Some(&again))).await.is_ok());
        drop(second);
    }
}
