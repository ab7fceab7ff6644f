//! Checks whether the database and the storage can be used.
//!
//! A check is a small write to both: a database that can be read but not written is not ready.
//! Anyone may ask, as often as they like, and the answer must come within a second. So a check ends
//! after [`CHECK_TIMEOUT`], requests at the same time share one check, and a good result is used
//! again for [`GOOD_AGE`], a bad one for [`BAD_AGE`]: anonymous requests cause one write in a second.

use std::time::{Duration, Instant};

use savoir_store::{DatabaseKind, StoreError};
use tokio::{sync::Mutex, time::timeout};

use crate::app::App;

/// How long a good result is used.
const GOOD_AGE: Duration = Duration::from_secs(1);

/// How long a bad result is used, so that a recovery is reported soon.
const BAD_AGE: Duration = Duration::from_millis(200);

/// Maximum time of one check.
const CHECK_TIMEOUT: Duration = Duration::from_millis(700);

/// In SQLite, a writer waits for other writers, which is not a failure for this long.
const SQLITE_PATIENCE: Duration = Duration::from_secs(25);

/// A disk, a database server or a bucket may be slow for this long: a load balancer must not take
/// all processes away at once because of it.
const READINESS_TIMEOUT: Duration = Duration::from_secs(3);

/// The state of one component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ComponentState {
    Ok,
    /// No disk space is left.
    Full,
    /// It refuses writes.
    Denied,
    Unreachable,
}

impl ComponentState {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Full => "disk full",
            Self::Denied => "access denied",
            Self::Unreachable => "unreachable",
        }
    }
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) database: ComponentState,
    pub(crate) storage: ComponentState,
}

impl Health {
    /// How long this result is used.
    fn max_age(self) -> Duration {
        if self.is_good() { GOOD_AGE } else { BAD_AGE }
    }

    const UNKNOWN: Self =
        Self { database: ComponentState::Unreachable, storage: ComponentState::Unreachable };

    pub(crate) fn is_good(self) -> bool {
        self.database == ComponentState::Ok && self.storage == ComponentState::Ok
    }
}

/// The last result, shared with all requests. One check runs at a time.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<LastCheck>);

#[derive(Debug, Default)]
struct LastCheck {
    result: Option<(Instant, Health)>,
    database: Wait,
    storage: Wait,
}

/// Since when a component has not answered.
#[derive(Debug, Default)]
struct Wait {
    since: Option<Instant>,
    /// Whether it failed since its last good answer. Then there is no patience, or it would be
    /// reported as ready while it still starts.
    failed: bool,
}

/// Checks the database and the storage, or returns the result of a check that has just ended.
pub(crate) async fn check(app: &App) -> Health {
    let (asked, app) = (Instant::now(), app.clone());
    // It is completed even if the client leaves: a write to the database must not be cut off.
    let checking = tokio::spawn(async move {
        let mut last = app.readiness.0.lock().await;
        if let Some((ended, health)) = last.result
            && asked.saturating_duration_since(ended) < health.max_age()
        {
            return health;
        }
        let health = check_all(&app, &mut last).await;
        last.result = Some((Instant::now(), health));
        health
    });
    checking.await.unwrap_or(Health::UNKNOWN)
}

async fn check_all(app: &App, last: &mut LastCheck) -> Health {
    let database_patience = match app.database.kind() {
        DatabaseKind::Sqlite => SQLITE_PATIENCE,
        DatabaseKind::Postgres => READINESS_TIMEOUT,
    };
    let (database, storage) = tokio::join!(
        last.database.check("database", database_patience, app.database.try_write()),
        last.storage.check("storage", READINESS_TIMEOUT, app.storage.try_write()),
    );
    Health { database, storage }
}

impl Wait {
    async fn check(
        &mut self,
        what: &str,
        patience: Duration,
        tried: impl Future<Output = Result<(), StoreError>>,
    ) -> ComponentState {
        let Ok(answered) = timeout(CHECK_TIMEOUT, tried).await else {
            let since = *self.since.get_or_insert_with(Instant::now);
            if !self.failed && since.elapsed() < patience {
                return ComponentState::Ok;
            }
            self.failed = true;
            tracing::warn!(what, limit = ?CHECK_TIMEOUT, "not ready: no answer");
            return ComponentState::Unreachable;
        };
        *self = Self { since: None, failed: answered.is_err() };
        let Err(error) = answered else { return ComponentState::Ok };
        tracing::warn!(what, %error, "not ready");
        match error {
            StoreError::Full { .. } => ComponentState::Full,
            StoreError::Denied { .. } => ComponentState::Denied,
            _ => ComponentState::Unreachable,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn a_component_that_does_not_answer_is_unreachable_once_patience_ends() {
        let mut wait = Wait::default();
        let none = Duration::ZERO;
        assert_eq!(wait.check("disk", SQLITE_PATIENCE, pending()).await, ComponentState::Ok);
        assert_eq!(wait.check("disk", none, pending()).await, ComponentState::Unreachable);
        assert_eq!(wait.check("disk", none, ready(Ok(()))).await, ComponentState::Ok);
        assert!(wait.since.is_none());
    }

    #[tokio::test]
    async fn component_that_failed_is_not_ready_until_it_answers() {
        let mut wait = Wait::default();
        let full = StoreError::Full { what: "the disk".to_owned() };
        assert_eq!(
            wait.check("disk", READINESS_TIMEOUT, ready(Err(full))).await,
            ComponentState::Full
        );
        assert_eq!(
            wait.check("disk", READINESS_TIMEOUT, pending()).await,
            ComponentState::Unreachable
        );
        assert_eq!(wait.check("disk", READINESS_TIMEOUT, ready(Ok(()))).await, ComponentState::Ok);
        assert_eq!(wait.check("disk", READINESS_TIMEOUT, pending()).await, ComponentState::Ok);
    }
}
