//! Checks in the background whether the database and the storage can be used.
//!
//! Anyone may request the state, and the response must be immediate. A background task regularly
//! tries a write, and requests return the last result. A database that can be read but not written
//! is not ready.

use std::{future::Future, time::Duration};

use savoir_store::{Database, DatabaseKind, Storage, StoreError};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::app::App;

/// The pause between two checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Writes to a bucket cost money and may leave versions. While everything works, only one in this
/// many checks writes; the others read.
const CHECKS_PER_BUCKET_WRITE: u64 = 15;

/// Maximum time of one small write to a server or a disk.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum time for SQLite: a writer waits for other writers, which is not a failure.
const SQLITE_CHECK_TIMEOUT: Duration = Duration::from_secs(25);

/// How long a request waits for the first check.
const FIRST_CHECK_WAIT: Duration = Duration::from_millis(800);

/// The result of checking one component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ComponentState {
    Ok,
    /// No disk space is left.
    Full,
    Unreachable,
}

impl ComponentState {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Full => "disk full",
            Self::Unreachable => "unreachable",
        }
    }
}

/// The result of the last check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) database: ComponentState,
    pub(crate) storage: ComponentState,
}

impl Health {
    const UNKNOWN: Self =
        Self { database: ComponentState::Unreachable, storage: ComponentState::Unreachable };

    pub(crate) fn is_good(self) -> bool {
        self.database == ComponentState::Ok && self.storage == ComponentState::Ok
    }
}

/// The last result, shared with all requests.
#[derive(Debug)]
pub(crate) struct Readiness(watch::Sender<Option<Health>>);

impl Default for Readiness {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Readiness {
    /// The result of the last check. Waits, for a short time, only if there is no result yet.
    pub(crate) async fn health(&self) -> Health {
        let mut results = self.0.subscribe();
        let first = timeout(FIRST_CHECK_WAIT, results.wait_for(Option::is_some)).await;
        first.ok().and_then(|known| known.ok().and_then(|known| *known)).unwrap_or(Health::UNKNOWN)
    }
}

/// Repeats the check until the server stops.
pub(crate) async fn watch(app: App, stopping: CancellationToken) {
    stopping.run_until_cancelled(check_repeatedly(&app)).await;
}

async fn check_repeatedly(app: &App) {
    for round in 0.. {
        let before = *app.readiness.0.borrow();
        let health = check_all(&app.database, &app.storage, before, round).await;
        app.readiness.0.send_replace(Some(health));
        sleep(CHECK_INTERVAL).await;
    }
}

async fn check_all(
    database: &Database,
    storage: &Storage,
    before: Option<Health>,
    round: u64,
) -> Health {
    let time_limit = match database.kind() {
        DatabaseKind::Sqlite => SQLITE_CHECK_TIMEOUT,
        DatabaseKind::Postgres => CHECK_TIMEOUT,
    };
    let well = before.is_some_and(|before| before.storage == ComponentState::Ok);
    let only_read = storage.is_bucket() && well && !round.is_multiple_of(CHECKS_PER_BUCKET_WRITE);
    let stored = async { if only_read { storage.ping().await } else { storage.try_write().await } };
    let (database, storage) = tokio::join!(
        check_state("database", time_limit, database.try_write()),
        check_state("storage", CHECK_TIMEOUT, stored),
    );
    Health { database, storage }
}

async fn check_state(
    what: &str,
    time_limit: Duration,
    tried: impl Future<Output = Result<(), StoreError>>,
) -> ComponentState {
    match timeout(time_limit, tried).await {
        Ok(Ok(())) => ComponentState::Ok,
        Ok(Err(error)) => {
            tracing::warn!(what, %error, "not ready");
            if matches!(error, StoreError::Full { .. }) {
                ComponentState::Full
            } else {
                ComponentState::Unreachable
            }
        }
        Err(_) => {
            tracing::warn!(what, ?time_limit, "not ready: no answer");
            ComponentState::Unreachable
        }
    }
}
