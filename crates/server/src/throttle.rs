//! Slows down password guessing.
//!
//! One client that fails five times for one account waits. So that nobody can lock another out, an
//! account as a whole bears ten times as many failures; and so that nobody tries one password on
//! many accounts, so does an address bear four times as many. Who asks for more than a few at once
//! from one address waits, so that guesses that come together are counted too.

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

/// How long a failure is remembered.
const FAILURE_WINDOW: Duration = Duration::from_mins(15);

/// Failures of one client for one account.
const MAX_FAILURES_PER_CLIENT_AND_ACCOUNT: u64 = 5;
/// Failures of one client for all accounts.
const MAX_FAILURES_PER_ADDRESS: u64 = 20;
/// Failures of all clients for one account.
const MAX_FAILURES_PER_ACCOUNT: u64 = 50;

/// Known addresses that one client may find by registering.
const MAX_FAILURES_OF_KNOWN_CLIENTS: u64 = 10;

/// Passwords of one address that are checked at once, in one process.
const MAX_CONCURRENT_ATTEMPTS: usize = 4;

/// Something that failures are counted by, and how many there may be.
#[derive(Debug)]
struct Counter {
    key: String,
    most: u64,
}

/// A password is about to be checked. It counts as wrong until it is known to be right, so that
/// guesses that come at once are counted too.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Forgotten when the password is right.
    guesses: Vec<Counter>,
    /// Counted only when the password is wrong: many people may share an address. It is not forgotten:
    /// else one's own account would make room for guesses at those of others.
    source: Option<Counter>,
    /// What was noted for this attempt alone.
    notes: Vec<String>,
    _turn: Option<Turn>,
}

/// A turn to have a password checked, given back when it is dropped.
#[derive(Debug)]
struct Turn {
    turns: Turns,
    address: String,
    permit: Option<OwnedSemaphorePermit>,
}

/// The turns of each address that has asked for one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns(Arc<Mutex<HashMap<String, Arc<Semaphore>>>>);

impl Turns {
    async fn take(&self, address: &str) -> Turn {
        let semaphore = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let made = turns.entry(address.to_owned());
            Arc::clone(made.or_insert_with(|| Arc::new(Semaphore::new(MAX_CONCURRENT_ATTEMPTS))))
        };
        // The semaphore is never closed.
        let permit = semaphore.acquire_owned().await.ok();
        Turn { turns: self.clone(), address: address.to_owned(), permit }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        drop(self.permit.take());
        let mut turns = self.turns.0.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.get(&self.address).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            turns.remove(&self.address);
        }
    }
}

impl Attempt {
    /// Someone wants to log in.
    pub(crate) async fn login(app: &App, email: &Email, address: &str) -> ApiResult<Self> {
        let email = email.as_str();
        let guesses = vec![
            Counter {
                key: format!("login:{email} {address}"),
                most: MAX_FAILURES_PER_CLIENT_AND_ACCOUNT,
            },
            Counter { key: format!("login:{email}"), most: MAX_FAILURES_PER_ACCOUNT },
        ];
        let source = Counter { key: format!("login:{address}"), most: MAX_FAILURES_PER_ADDRESS };
        let turn = app.turns.take(address).await;
        Self { guesses, source: Some(source), notes: Vec::new(), _turn: Some(turn) }
            .begin(app)
            .await
    }

    /// Someone who is logged in tells their password once more.
    pub(crate) async fn confirm(app: &App, user_id: i64) -> ApiResult<Self> {
        let guess = Counter {
            key: format!("password:{user_id}"),
            most: MAX_FAILURES_PER_CLIENT_AND_ACCOUNT,
        };
        Self { guesses: vec![guess], source: None, notes: Vec::new(), _turn: None }.begin(app).await
    }

    async fn begin(mut self, app: &App) -> ApiResult<Self> {
        for counter in self.guesses.iter().chain(&self.source) {
            counter.check(app).await?;
        }
        let mut notes = Vec::new();
        for counter in &self.guesses {
            match counter.note(app).await {
                Ok(note) => notes.push(note),
                Err(refused) => {
                    // Nothing was tried.
                    take_back(app, &notes).await?;
                    return Err(refused);
                }
            }
        }
        self.notes = notes;
        Ok(self)
    }

    /// The password was wrong.
    pub(crate) async fn failed(self, app: &App) -> ApiResult<()> {
        if let Some(source) = &self.source {
            let since = Timestamp::now().minus(FAILURE_WINDOW);
            app.database.accounts().note_failure(&source.key, since).await?;
        }
        Ok(())
    }

    /// The password was right.
    pub(crate) async fn succeeded(self, app: &App) -> ApiResult<()> {
        for counter in &self.guesses {
            app.database.accounts().forget_failures(&counter.key).await?;
        }
        take_back(app, &self.notes).await
    }
}

/// Someone wants to register. The contract has them told that an address is known: so that nobody
/// learns of many, a client that found a few waits.
#[derive(Debug)]
pub(crate) struct NewcomerAttempt {
    known: Counter,
    _turn: Turn,
}

impl NewcomerAttempt {
    pub(crate) async fn begin(app: &App, address: &str) -> ApiResult<Self> {
        let known =
            Counter { key: format!("register:{address}"), most: MAX_FAILURES_OF_KNOWN_CLIENTS };
        let turn = app.turns.take(address).await;
        known.check(app).await?;
        Ok(Self { known, _turn: turn })
    }

    /// The address was known.
    pub(crate) async fn failed(self, app: &App) -> ApiResult<()> {
        let since = Timestamp::now().minus(FAILURE_WINDOW);
        app.database.accounts().note_failure(&self.known.key, since).await?;
        Ok(())
    }
}

async fn take_back(app: &App, notes: &[String]) -> ApiResult<()> {
    for note in notes {
        app.database.accounts().take_back_failure(note).await?;
    }
    Ok(())
}

impl Counter {
    /// Refuses if there are as many failures as there may be.
    async fn check(&self, app: &App) -> ApiResult<()> {
        let since = Timestamp::now().minus(FAILURE_WINDOW);
        let (count, first) = app.database.accounts().failures(&self.key, since).await?;
        if count < self.most { Ok(()) } else { Err(pause(first)) }
    }

    /// Counts one more, unless there are as many as there may be.
    async fn note(&self, app: &App) -> ApiResult<String> {
        let since = Timestamp::now().minus(FAILURE_WINDOW);
        let noted = app.database.accounts().note_failure(&self.key, since).await?;
        if noted.count <= self.most {
            return Ok(noted.id);
        }
        take_back(app, &[noted.id]).await?;
        Err(pause(noted.first))
    }
}

/// Says when the first failure is forgotten.
fn pause(first: Option<Timestamp>) -> ApiError {
    let over = first.unwrap_or_else(Timestamp::now).plus(FAILURE_WINDOW);
    let wait = (over.seconds() - Timestamp::now().seconds()).max(1);
    // The text of the contract, for every pause.
    let text = "Too many failed login attempts. Please try again later.";
    ApiError::plain(StatusCode::TOO_MANY_REQUESTS, text)
        .with_header(header::RETRY_AFTER, HeaderValue::from(wait))
}
