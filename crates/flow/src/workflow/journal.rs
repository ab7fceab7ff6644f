//! Stores checkpoints of a workflow run so that it can resume. A journal is the place where one run
//! stores its checkpoints.

use std::{
    fmt,
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use savoir_store::{Checkpoint, Database, ExecutionStatus};
use thiserror::Error;

/// How long a run stays assigned to a worker that does not renew its lease. After a crash, the run
/// can be resumed when this time is over.
pub const LEASE: Duration = Duration::from_secs(2);

/// How long a run continues while its lease cannot be renewed because the database does not
/// respond. Longer than the lease, so that a run survives a restart of the database. If another
/// worker claims the run meanwhile, the next renewal or checkpoint detects it.
const MAX_RENEWAL_OUTAGE: Duration = Duration::from_secs(30);

/// How long an execution can be viewed and resumed after its last change. Each stores up to two
/// mebibytes of outputs.
pub const EXECUTION_RETENTION: Duration = Duration::from_hours(30 * 24);

/// A store for the checkpoints of one run.
pub trait Journal: fmt::Debug + Send + Sync {
    /// Stores a checkpoint. A status other than running releases the lease.
    fn save<'a>(
        &'a self,
        status: ExecutionStatus,
        checkpoint: &'a Checkpoint,
    ) -> BoxFuture<'a, Result<(), JournalError>>;

    /// Renews the lease, and returns when another worker has taken the run. Polled while nodes run.
    fn lease_lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// Why a checkpoint was not stored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JournalError {
    /// Another worker has claimed the run.
    #[error("another worker has the run now")]
    TakenOver,
    /// The checkpoint cannot be written.
    #[error("{0}")]
    Failed(String),
}

/// A journal that stores nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoJournal;

impl Journal for NoJournal {
    fn save<'a>(
        &'a self,
        _: ExecutionStatus,
        _: &'a Checkpoint,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A journal in the database, for one worker that owns the execution by a lease.
#[derive(Clone, Debug)]
pub struct StoreJournal {
    database: Database,
    execution: String,
    worker: String,
    lease: Duration,
}

impl StoreJournal {
    /// Creates the journal of an execution that the worker has started or claimed.
    pub fn new(database: Database, execution: String, worker: String, lease: Duration) -> Self {
        Self { database, execution, worker, lease }
    }
}

impl Journal for StoreJournal {
    fn save<'a>(
        &'a self,
        status: ExecutionStatus,
        checkpoint: &'a Checkpoint,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            let workflows = self.database.workflows();
            match workflows.save(&self.execution, &self.worker, status, checkpoint).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(JournalError::TakenOver),
                Err(error) => Err(JournalError::Failed(error.to_string())),
            }
        })
    }

    fn lease_lost(&self) -> BoxFuture<'_, ()> {
        let renew = move || async move {
            self.database.workflows().renew(&self.execution, &self.worker, self.lease).await
        };
        Box::pin(keep_renewing(self.lease, MAX_RENEWAL_OUTAGE, renew))
    }
}

/// Renews a lease three times per term. Returns when another worker owns the lease, or when
/// renewing failed for too long.
async fn keep_renewing<E: fmt::Display, F: Future<Output = Result<bool, E>>>(
    term: Duration,
    max_outage: Duration,
    mut renew: impl FnMut() -> F,
) {
    let mut renewed_at = Instant::now();
    loop {
        tokio::time::sleep(term / 3).await;
        match renew().await {
            Ok(true) => renewed_at = Instant::now(),
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(%error, "the lease of an execution was not renewed");
                if renewed_at.elapsed() >= max_outage {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn a_lease_is_renewed_until_it_is_lost() {
        let mut answers = [Ok(true), Err("busy"), Err("busy"), Ok(true), Ok(false)].into_iter();
        let (term, outage) = (Duration::from_millis(3), Duration::from_mins(1));
        keep_renewing(term, outage, || ready(answers.next().unwrap())).await;
        assert_eq!(answers.next(), None);
    }

    #[tokio::test]
    async fn a_run_survives_a_short_outage_of_the_database_but_not_a_long_one() {
        let (began, mut asked) = (Instant::now(), 0);
        let outage = Duration::from_millis(30);
        keep_renewing(Duration::from_millis(3), outage, || {
            asked += 1;
            ready(Err::<bool, _>("gone"))
        })
        .await;
        assert!(began.elapsed() >= outage, "a whole term without a renewal is not the end");
        assert!(asked > 3, "{asked}");
    }

    #[test]
    fn run_can_be_claimed_two_seconds_after_crash() {
        assert!(LEASE <= Duration::from_secs(2));
    }
}
