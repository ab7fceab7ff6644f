//! Slows down password guessing.
//!
//! A client that fails five times for one account has to wait. An account as a whole allows ten
//! times as many failures, so that nobody can lock out its owner. An address allows four times as
//! many over all accounts, so that nobody can try one password on many accounts. Concurrent
//! attempts from one address are limited, so that parallel guesses are counted too.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::http::{HeaderValue, StatusCode, header};
use savoir_store::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    accounts::Email,
    app::App,
    error::{ApiError, ApiResult},
};

/// How long a failure counts.
const FAILURE_WINDOW: Duration = Duration::from_mins(15);

/// Maximum failures of one client for one account.
const MAX_FAILURES_PER_CLIENT_AND_ACCOUNT: u64 = 5;
/// Maximum failures of one client for all accounts.
const MAX_FAILURES_PER_ADDRESS: u64 = 20;
/// Maximum failures of all clients for one account.
const MAX_FAILURES_PER_ACCOUNT: u64 = 50;

/// Maximum existing email addresses that one client may discover by registering.
const MAX_FAILURES_OF_KNOWN_CLIENTS: u64 = 10;

/// Maximum concurrent password checks for one address, in one process.
const MAX_CONCURRENT_ATTEMPTS: usize = 4;

/// A key by which failures are counted, with its limit.
#[derive(Debug)]
struct FailureCounter {
    key: String,
    most: u64,
}

/// A password check in progress. It counts as failed until it succeeds, so that parallel guesses
/// are counted too.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Reset when the password is right.
    guesses: Vec<FailureCounter>,
    /// Counted only when the password is wrong, because many users may share an address. It is not
    /// reset: otherwise an attacker could log in to their own account to get more guesses at
    /// others.
    source: Option<FailureCounter>,
    /// The entries that this attempt added to the counters.
    notes: Vec<String>,
    _turn: Option<AttemptSlot>,
}

/// A permit for one password check. Dropping it releases the permit.
#[derive(Debug)]
struct AttemptSlot {
    turns: AttemptSlots,
    address: String,
    permit: Option<OwnedSemaphorePermit>,
}

/// The permits of each address with password checks in progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptSlots(Arc<Mutex<HashMap<String, Arc<Semaphore>>>>);

impl AttemptSlots {
    async fn take(&self, address: &str) -> AttemptSlot {
        let semaphore = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let made = turns.entry(address.to_owned());
            Arc::clone(made.or_insert_with(|| Arc::new(Semaphore::new(MAX_CONCURRENT_ATTEMPTS))))
        };
        // The semaphore is never closed.
        let permit = semaphore.acquire_owned().await.ok();
        AttemptSlot { turns: self.clone(), address: address.to_owned(), permit }
    }
}

impl Drop for AttemptSlot {
    fn drop(&mut self) {
        drop(self.permit.take());
        let mut turns = self.turns.0.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.get(&self.address).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            turns.remove(&self.address);
        }
    }
}

impl Attempt {
    /// Starts an attempt to log in.
    pub(crate) async fn login(app: &App, email: &Email, address: &str) -> ApiResult<Self> {
        let email = email.as_str();
        let guesses = vec![
            FailureCounter {
                key: format!("login:{email} {address}"),
                most: MAX_FAILURES_PER_CLIENT_AND_ACCOUNT,
            },
            FailureCounter { key: format!("login:{email}"), most: MAX_FAILURES_PER_ACCOUNT },
        ];
        let source =
            FailureCounter { key: format!("login:{address}"), most: MAX_FAILURES_PER_ADDRESS };
        let turn = app.turns.take(address).await;
        Self { guesses, source: Some(source), notes: Vec::new(), _turn: Some(turn) }
            .count_attempt(app)
            .await
    }

    /// Starts an attempt of a logged-in user to confirm their password.
    pub(crate) async fn confirm(app: &App, user_id: i64) -> ApiResult<Self> {
        let guess = FailureCounter {
            key: format!("password:{user_id}"),
            most: MAX_FAILURES_PER_CLIENT_AND_ACCOUNT,
        };
        Self { guesses: vec![guess], source: None, notes: Vec::new(), _turn: None }
            .count_attempt(app)
            .await
    }

    async fn count_attempt(mut self, app: &App) -> ApiResult<Self> {
        for counter in self.guesses.iter().chain(&self.source) {
            counter.check(app).await?;
        }
        let mut notes = Vec::new();
        for counter in &self.guesses {
            match counter.record_failure(app).await {
                Ok(note) => notes.push(note),
                Err(refused) => {
                    // No password was checked, so the attempt does not count.
                    remove_failures(app, &notes).await?;
                    return Err(refused);
                }
            }
        }
        self.notes = notes;
        Ok(self)
    }

    /// Call this if the password was wrong.
    pub(crate) async fn record_failed(self, app: &App) -> ApiResult<()> {
        if let Some(source) = &self.source {
            let since = Timestamp::now().minus(FAILURE_WINDOW);
            app.database.accounts().record_failure(&source.key, since).await?;
        }
        Ok(())
    }

    /// Call this if the password was right.
    pub(crate) async fn record_success(self, app: &App) -> ApiResult<()> {
        for counter in &self.guesses {
            app.database.accounts().clear_failures(&counter.key).await?;
        }
        remove_failures(app, &self.notes).await
    }
}

/// An attempt to register. The API requires that registering reports existing addresses. So that
/// nobody can discover many, a client that found a few has to wait.
#[derive(Debug)]
pub(crate) struct NewcomerAttempt {
    known: FailureCounter,
    _turn: AttemptSlot,
}

impl NewcomerAttempt {
    pub(crate) async fn count_attempt(app: &App, address: &str) -> ApiResult<Self> {
        let known = FailureCounter {
            key: format!("register:{address}"),
            most: MAX_FAILURES_OF_KNOWN_CLIENTS,
        };
        let turn = app.turns.take(address).await;
        known.check(app).await?;
        Ok(Self { known, _turn: turn })
    }

    /// Call this if the email address already has an account.
    pub(crate) async fn record_failed(self, app: &App) -> ApiResult<()> {
        let since = Timestamp::now().minus(FAILURE_WINDOW);
        app.database.accounts().record_failure(&self.known.key, since).await?;
        Ok(())
    }
}

async fn remove_failures(app: &App, notes: &[String]) -> ApiResult<()> {
    for note in notes {
        app.database.accounts().remove_failure(note).await?;
    }
    Ok(())
}

impl FailureCounter {
    /// Fails if the limit is reached.
    async fn check(&self, app: &App) -> ApiResult<()> {
        let since = Timestamp::now().minus(FAILURE_WINDOW);
        let (count, first) = app.database.accounts().failures(&self.key, since).await?;
        if count < self.most { Ok(()) } else { Err(too_many_failures(first)) }
    }

    /// Adds a failure, unless the limit is reached.
    async fn record_failure(&self, app: &App) -> ApiResult<String> {
        let since = Timestamp::now().minus(FAILURE_WINDOW);
        let noted = app.database.accounts().record_failure(&self.key, since).await?;
        if noted.count <= self.most {
            return Ok(noted.id);
        }
        remove_failures(app, &[noted.id]).await?;
        Err(too_many_failures(noted.first))
    }
}

/// The response that says when the first failure expires.
fn too_many_failures(first: Option<Timestamp>) -> ApiError {
    let over = first.unwrap_or_else(Timestamp::now).plus(FAILURE_WINDOW);
    let wait = (over.seconds() - Timestamp::now().seconds()).max(1);
    // The API requires this text for every throttled request.
    let text = "Too many failed login attempts. Please try again later.";
    ApiError::plain(StatusCode::TOO_MANY_REQUESTS, text)
        .with_header(header::RETRY_AFTER, HeaderValue::from(wait))
}
