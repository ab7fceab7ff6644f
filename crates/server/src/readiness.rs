//! Whether everything that requests need answers.
//!
//! Strangers may ask, and asking costs a question to the database and one to the storage: an answer
//! is good for a second, and one who asks while it is looked up waits for it.

use std::time::{Duration, Instant};

use savoir_store::{Database, Storage};
use tokio::sync::Mutex;

/// How long an answer is good.
const KEPT: Duration = Duration::from_secs(1);

/// What answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answering {
    pub(crate) database: bool,
    pub(crate) storage: bool,
}

/// The last answer.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<Option<(Instant, Answering)>>);

impl Readiness {
    /// What answers, or did a moment ago.
    pub(crate) async fn look(&self, database: &Database, storage: &Storage) -> Answering {
        let mut last = self.0.lock().await;
        if let Some((at, answering)) = *last
            && at.elapsed() < KEPT
        {
            return answering;
        }
        let answering = probe(database, storage).await;
        *last = Some((Instant::now(), answering));
        answering
    }
}

async fn probe(database: &Database, storage: &Storage) -> Answering {
    let (database, storage) = tokio::join!(database.ping(), storage.ping());
    for error in [database.as_ref().err(), storage.as_ref().err()].into_iter().flatten() {
        tracing::warn!(%error, "not ready");
    }
    Answering { database: database.is_ok(), storage: storage.is_ok() }
}
