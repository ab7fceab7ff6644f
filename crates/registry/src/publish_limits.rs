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
/// How long an upload waits for a free place. Its body is not read during this time.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of packages that are vetted at once; the others wait.
const MAX_CONCURRENT_SCANS: usize = 2;

#[derive(Debug)]
pub struct PublishLimits {
    inside: UploadsByUser,
    /// Notified when an upload ends.
    room: Arc<Notify>,
    vetting: Arc<Semaphore>,
}

type UploadsByUser = Arc<Mutex<HashMap<i64, UserUploads>>>;

/// The uploads of one user.
#[derive(Debug)]
struct UserUploads {
    uploads: usize,
    /// Only one upload of a user waits to be vetted, so that users take turns, not packages.
    turn: Arc<Semaphore>,
}

impl Default for PublishLimits {
    fn default() -> Self {
        let vetting = Arc::new(Semaphore::new(MAX_CONCURRENT_SCANS));
        Self { inside: Arc::default(), room: Arc::default(), vetting }
    }
}

/// The place of one upload. Dropping it frees the place.
#[derive(Debug)]
pub struct PublishPass {
    inside: UploadsByUser,
    room: Arc<Notify>,
    user: i64,
    turn: Arc<Semaphore>,
}

/// Permission to vet one package. Dropping it lets the next package in.
#[derive(Debug)]
pub struct PublishTurn {
    _own: Option<OwnedSemaphorePermit>,
    _all: OwnedSemaphorePermit,
}

impl PublishLimits {
    /// Waits for a place for an upload of a user; `None` after the timeout.
    pub async fn wait(&self, user: i64) -> Option<PublishPass> {
        let entered = async {
            loop {
                let mut room = std::pin::pin!(self.room.notified());
                // Register before checking, so that no notification is missed.
                room.as_mut().enable();
                if let Some(pass) = self.enter(user) {
                    return pass;
                }
                room.await;
            }
        };
        timeout(QUEUE_TIMEOUT, entered).await.ok()
    }

    /// A place for an upload of a user, if one is free.
    fn enter(&self, user: i64) -> Option<PublishPass> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = inside.values().map(|person| person.uploads).sum();
        let first = !inside.contains_key(&user);
        let room = if first { MAX_PUBLISHERS_WITH_NEWCOMERS } else { MAX_PUBLISHERS };
        let person = inside.get(&user).map_or(0, |person| person.uploads);
        if all >= room || person >= MAX_UPLOADS_PER_USER {
            return None;
        }
        let new = || UserUploads { uploads: 0, turn: Arc::new(Semaphore::new(1)) };
        let person = inside.entry(user).or_insert_with(new);
        person.uploads += 1;
        let turn = Arc::clone(&person.turn);
        let (inside, room) = (Arc::clone(&self.inside), Arc::clone(&self.room));
        Some(PublishPass { inside, room, user, turn })
    }

    /// Waits for permission to vet a package. A package without a pass belongs to no user.
    pub async fn wait_for_scan_turn(&self, pass: Option<&PublishPass>) -> Option<PublishTurn> {
        // The semaphores are never closed.
        let own = match pass {
            Some(pass) => Some(Arc::clone(&pass.turn).acquire_owned().await.ok()?),
            None => None,
        };
        let all = Arc::clone(&self.vetting).acquire_owned().await.ok()?;
        Some(PublishTurn { _own: own, _all: all })
    }
}

impl Drop for PublishPass {
    fn drop(&mut self) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(person) = inside.get_mut(&self.user) {
            person.uploads -= 1;
            if person.uploads == 0 {
                inside.remove(&self.user);
            }
        }
        drop(inside);
        self.room.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_cannot_take_all_upload_slots() {
        let gate = PublishLimits::default();
        let mine: Vec<PublishPass> = std::iter::from_fn(|| gate.enter(1)).collect();
        assert_eq!(mine.len(), MAX_UPLOADS_PER_USER);
        let greedy: Vec<PublishPass> = (2..10)
            .flat_map(|user| std::iter::repeat_with(move || user).take(8))
            .filter_map(|user| gate.enter(user))
            .collect();
        assert!(mine.len() + greedy.len() < MAX_PUBLISHERS + 8);
        let others: Vec<PublishPass> = (10..200).filter_map(|user| gate.enter(user)).collect();
        assert_eq!(mine.len() + greedy.len() + others.len(), MAX_PUBLISHERS_WITH_NEWCOMERS);
        assert!(gate.enter(10).is_none(), "a second one while the place is full");
        drop((mine, greedy));
        assert!(gate.enter(1).is_some());
        drop(others);
        assert!(gate.inside.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn upload_waits_for_free_slot() {
        let gate = Arc::new(PublishLimits::default());
        let mut mine: Vec<PublishPass> = std::iter::from_fn(|| gate.enter(1)).collect();
        let waiting: Vec<_> = (0..2)
            .map(|_| {
                let gate = Arc::clone(&gate);
                tokio::spawn(async move { gate.wait(1).await.is_some() })
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
        let gate = PublishLimits::default();
        let (mine, again) = (gate.enter(1).unwrap(), gate.enter(1).unwrap());
        let other = gate.enter(2).unwrap();
        let first = gate.wait_for_scan_turn(Some(&mine)).await.unwrap();
        let short = Duration::from_millis(20);
        assert!(
            timeout(short, gate.wait_for_scan_turn(Some(&again))).await.is_err(),
            "one of mine at a time"
        );
        let second = timeout(short, gate.wait_for_scan_turn(Some(&other))).await.unwrap().unwrap();
        drop(first);
        assert!(timeout(short, gate.wait_for_scan_turn(Some(&again))).await.is_ok());
        drop(second);
    }
}
