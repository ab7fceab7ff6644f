//! Locks with an expiry time that all processes share. They expire if their holder dies.

use std::time::Duration;

use tokio::task::JoinHandle;

use crate::{
    Database, StoreError, Timestamp,
    sql::{built, new_id, sql},
};

#[derive(Clone, Copy, Debug)]
pub struct Leases<'a>(pub(crate) &'a Database);

/// An acquired lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub name: String,
    /// Identifies the process that has the lock.
    pub holder: String,
    /// When the lock expires unless it is renewed, by the clock of this process.
    pub until: Timestamp,
}

/// How long a lock stays after the process that held it died.
const HELD_FOR: Duration = Duration::from_secs(2);
/// How often a lock is renewed while its work goes on.
const RENEWAL_INTERVAL: Duration = Duration::from_millis(500);

/// A lock that is renewed during some work.
#[derive(Debug)]
pub struct HeldLease<'a> {
    leases: Leases<'a>,
    lease: Lease,
}

impl HeldLease<'_> {
    /// Does some work, then releases the lock. Returns `None` if another holder has taken the lock
    /// meanwhile, for example because this process was suspended; then the work ends unfinished.
    pub async fn during<T>(self, work: impl Future<Output = T>) -> Option<T> {
        let Self { leases, lease } = self;
        let (database, name, holder) = (leases.0.clone(), lease.name.clone(), lease.holder.clone());
        // A task of its own, because work that blocks its thread would delay the renewals.
        let mut lost = AbortOnDrop(tokio::spawn(async move {
            loop {
                tokio::time::sleep(RENEWAL_INTERVAL).await;
                // After an error it is tried again.
                if let Ok(None) = database.leases().acquire(&name, &holder, HELD_FOR).await {
                    return;
                }
            }
        }));
        let done = tokio::select! {
            biased;
            done = work => done,
            _ = &mut lost.0 => {
                tracing::warn!(name = lease.name, "another process took a lock; its work ends");
                return None;
            }
        };
        drop(lost);
        if let Err(error) = leases.release(&lease).await {
            tracing::debug!(name = lease.name, %error, "a lock ends by itself");
        }
        Some(done)
    }
}

/// A task that ends when this is dropped.
#[derive(Debug)]
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<'a> Leases<'a> {
    /// Takes a lock for some work; `None` if another holds it. It ends within two seconds if this
    /// process dies.
    pub async fn hold(self, name: &str) -> Result<Option<HeldLease<'a>>, StoreError> {
        let lease = self.acquire(name, &new_id(), HELD_FOR).await?;
        Ok(lease.map(|lease| HeldLease { leases: self, lease }))
    }
}

impl Leases<'_> {
    /// Acquires a lock, or renews it if this holder has it. Returns `None` if another holder has
    /// it. When a lock ends is decided by the clock of the database, because those of processes
    /// differ.
    pub async fn acquire(
        &self,
        name: &str,
        holder: &str,
        length: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        // Before the statement, so that the holder never takes the lock for longer than it lasts.
        let until = Timestamp::now().plus(length);
        let now = self.0.clock();
        let acquired = built(format!(
            "INSERT INTO leases (name, holder, ends_at) VALUES ($1, $2, {now} + $3)
             ON CONFLICT (name) DO UPDATE
             SET holder = excluded.holder, ends_at = excluded.ends_at
             WHERE leases.holder = excluded.holder OR leases.ends_at <= {now}"
        ))
        .text(name)
        .text(holder)
        .duration(length)
        .run(self.0.writer())
        .await?;
        let lease = || Lease { name: name.to_owned(), holder: holder.to_owned(), until };
        Ok((acquired == 1).then(lease))
    }

    pub async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        sql("DELETE FROM leases WHERE name = $1 AND holder = $2")
            .text(&lease.name)
            .text(&lease.holder)
            .run(self.0.writer())
            .await
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn work_ends_when_another_holder_takes_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open_folder(folder.path()).await.unwrap();
        let lease = database.leases().hold("l").await.unwrap().unwrap();
        let work = async {
            sql("UPDATE leases SET holder = 'other', ends_at = ends_at + 60000000")
                .run(database.writer())
                .await
                .unwrap();
            std::future::pending::<()>().await;
        };
        assert_eq!(lease.during(work).await, None);
        assert!(database.leases().hold("l").await.unwrap().is_none(), "the other still holds it");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn lock_is_renewed_while_work_blocks_its_thread() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open_folder(folder.path()).await.unwrap();
        let lease = database.leases().hold("l").await.unwrap().unwrap();
        let work = async {
            std::thread::sleep(HELD_FOR + RENEWAL_INTERVAL);
            database.leases().hold("l").await.unwrap().is_none()
        };
        assert_eq!(lease.during(work).await, Some(true));
    }
}
