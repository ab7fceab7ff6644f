//! Records everything that runs, and lets clients attach to a run again.
//!
//! A [`RunRecorder`] sees each event of a run before its client does. While the run goes on, its
//! events are in memory, where any number of clients can follow them; in the end they are stored
//! with the result. `spans` turns the events into a timeline.

mod events;
pub(crate) mod spans;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use savoir_flow::event::{Event, ModelCalls};
use savoir_lint::words::one_line;
use savoir_store::{Run, RunEnd, RunKind, RunState, StoreError, Timestamp};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub(crate) use self::events::{EventLog, RecordedEvent};
use crate::app::App;

/// How often a process records that its runs still continue.
const SEEN_INTERVAL: Duration = Duration::from_secs(15);
/// If a process did not record this for so long, it has ended, and its runs with it.
const LOST_AFTER: Duration = Duration::from_mins(1);
/// How often a process tries to store runs that it could not store when they ended.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum delay of a stream's last event until the run is stored.
const SAVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum delay of a stopped run until it has noticed that.
const END_TIMEOUT: Duration = Duration::from_millis(500);
/// How long clients can attach to an ended run and get exactly the events that they missed.
const ATTACH_PERIOD: Duration = Duration::from_mins(10);
/// Maximum number of ended runs that stay in memory.
const MAX_ENDED_RUNS: usize = 200;
/// Maximum bytes of the inputs of a run in its record.
const MAX_INPUT_BYTES: usize = 64 * 1024;
/// The only member of inputs that were too large for the record: their beginning as JSON.
pub(crate) const SHORTENED_INPUTS: &str = "shortened";
/// Maximum characters of the name of a run.
const MAX_NAME_CHARS: usize = 200;

/// A run that is about to start.
#[derive(Debug)]
pub(crate) struct NewRun {
    /// The id, if the run is the execution of a workflow.
    pub(crate) id: Option<String>,
    pub(crate) kind: RunKind,
    pub(crate) user_id: i64,
    /// The name of the skill or workflow, or the message.
    pub(crate) name: String,
    /// The name of the skill, the id of the workflow, or the conversation.
    pub(crate) target: String,
    pub(crate) inputs: Value,
}

/// The running and recently ended runs of this process.
#[derive(Debug, Default)]
pub(crate) struct RunHistory {
    live: Mutex<HashMap<String, Arc<LiveRun>>>,
}

/// A running or recently ended run of this process.
#[derive(Debug)]
pub(crate) struct LiveRun {
    pub(crate) run: Run,
    began: Instant,
    log: Mutex<EventLog>,
    /// The number of events so far.
    changed: watch::Sender<u64>,
    /// Cancelled when the user stops the run.
    pub(crate) stop: CancellationToken,
    ended: OnceLock<(Instant, RunEnd)>,
    /// Whether the start is in the database.
    is_added: AtomicBool,
    /// Whether the end is in the database.
    is_stored: AtomicBool,
}

impl RunHistory {
    fn live(&self) -> MutexGuard<'_, HashMap<String, Arc<LiveRun>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A running or recently ended run of this process.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<LiveRun>> {
        self.live().get(id).cloned()
    }

    /// Stops a run if it is running, and removes it.
    pub(crate) fn remove(&self, id: &str) {
        if let Some(run) = self.live().remove(id) {
            run.stop.cancel();
        }
    }

    /// Removes runs that ended some time ago; if there are too many, stored ones first. Returns the
    /// ids of the running ones.
    fn sweep(&self) -> Vec<String> {
        let mut live = self.live();
        let age = |run: &LiveRun| run.ended.get().map(|(ended, _)| ended.elapsed());
        let is_stored = |run: &LiveRun| run.is_stored.load(Ordering::Relaxed);
        live.retain(|_, run| age(run).is_none_or(|age| age < ATTACH_PERIOD || !is_stored(run)));
        let mut ended: Vec<(bool, Duration, String)> = live
            .iter()
            .filter_map(|(id, run)| Some((is_stored(run), age(run)?, id.clone())))
            .collect();
        ended.sort();
        for (_, _, id) in ended.iter().skip(MAX_ENDED_RUNS) {
            live.remove(id);
        }
        let going = live.iter().filter(|(_, run)| run.ended.get().is_none());
        going.map(|(id, _)| id.clone()).collect()
    }

    /// Runs that are over, but could not be stored.
    fn unstored(&self) -> Vec<Arc<LiveRun>> {
        let live = self.live();
        let unstored = live
            .values()
            .filter(|run| run.ended.get().is_some() && !run.is_stored.load(Ordering::Relaxed));
        unstored.cloned().collect()
    }
}

impl LiveRun {
    fn log(&self) -> MutexGuard<'_, EventLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current state of the run.
    pub(crate) fn snapshot(&self) -> Run {
        let end = match self.ended.get() {
            Some((_, end)) => end.clone(),
            None => self.log().end(RunState::Running, None),
        };
        Run { end, ..self.run.clone() }
    }

    /// The events after the first `seen` ones; waits for the next one if there are none. `None` if
    /// the run is over.
    pub(crate) async fn next_events(&self, seen: u64) -> Option<Vec<(u64, RecordedEvent)>> {
        let mut changed = self.changed.subscribe();
        loop {
            {
                let log = self.log();
                let new = log.after(seen);
                if !new.is_empty() {
                    return Some(new);
                }
                if log.is_over() {
                    return None;
                }
            }
            changed.changed().await.ok()?;
        }
    }
}

/// Records one run. A recorder that is dropped early ends its run as stopped.
#[derive(Debug)]
pub(crate) struct RunRecorder {
    app: App,
    live: Arc<LiveRun>,
    calls: ModelCalls,
    saved: bool,
}

impl RunRecorder {
    /// Stores that a run starts. The run continues even if it cannot be stored yet.
    pub(crate) async fn start(app: &App, new: NewRun, calls: ModelCalls) -> Self {
        let name: String = new.name.chars().take(MAX_NAME_CHARS).collect();
        let run = Run {
            id: new.id.unwrap_or_else(|| Uuid::now_v7().to_string()),
            user_id: new.user_id,
            kind: new.kind,
            name: one_line(&name),
            target: new.target,
            started_at: Timestamp::now(),
            inputs: shorten_inputs(new.inputs),
            end: RunEnd::running(),
        };
        let added = app.database.runs().add(&run).await;
        if let Err(error) = &added {
            tracing::warn!(%error, "the start of a run was not stored");
        }
        let live = Arc::new(LiveRun {
            is_added: AtomicBool::new(added.is_ok()),
            is_stored: AtomicBool::new(false),
            began: Instant::now(),
            log: Mutex::default(),
            changed: watch::Sender::new(0),
            stop: CancellationToken::new(),
            ended: OnceLock::new(),
            run,
        });
        app.history.live().insert(live.run.id.clone(), Arc::clone(&live));
        Self { app: app.clone(), live, calls, saved: false }
    }

    pub(crate) fn live(&self) -> &Arc<LiveRun> {
        &self.live
    }

    /// Records an event.
    pub(crate) fn record(&self, event: &Event) {
        let at = self.live.began.elapsed();
        let count = {
            let mut log = self.live.log();
            for call in self.calls.take() {
                log.add_call(at, call);
            }
            log.add(at, event);
            log.count()
        };
        self.live.changed.send_replace(count);
    }

    /// Stores the run after its last event.
    pub(crate) async fn finish(&mut self) {
        let end = self.take_end(None);
        save(&self.app, &self.live, end).await;
    }

    /// Waits until the run has ended after its listener was closed, so that its record has its
    /// last request to a model.
    pub(crate) async fn wait_for_end(&self) {
        let ended = async {
            while !self.calls.is_complete() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        // Ignored: a tool may need longer, and its user waits.
        let _ = tokio::time::timeout(END_TIMEOUT, ended).await;
    }

    /// Stores a run that was ended early.
    pub(crate) async fn stop(&mut self, why: &str) {
        let end = self.take_end(Some(why));
        save(&self.app, &self.live, end).await;
    }

    fn take_end(&mut self, stopped: Option<&str>) -> RunEnd {
        self.saved = true;
        let at = self.live.began.elapsed();
        let mut log = self.live.log();
        for call in self.calls.take() {
            log.add_call(at, call);
        }
        let state = stopped.map_or(log.state(), |_| RunState::Stopped);
        RunEnd { ended_at: Some(Timestamp::now()), ..log.end(state, stopped) }
    }
}

impl Drop for RunRecorder {
    fn drop(&mut self) {
        if !self.saved {
            let end = self.take_end(Some("The client left before the run ended"));
            let (app, live) = (self.app.clone(), Arc::clone(&self.live));
            self.app.tasks.spawn(async move { save(&app, &live, end).await });
        }
    }
}

async fn save(app: &App, live: &LiveRun, end: RunEnd) {
    let id = &live.run.id;
    match tokio::time::timeout(SAVE_TIMEOUT, store(app, live, &end)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(run = id, %error, "the end of a run is stored later"),
        Err(_) => tracing::warn!(run = id, "the end of a run was not stored in time"),
    }
    let _ = live.ended.set((Instant::now(), end));
    // Clients that follow the run read its last events, then see that it has ended.
    live.log().set_over();
    live.changed.send_modify(|_| {});
}

async fn store(app: &App, live: &LiveRun, end: &RunEnd) -> Result<(), StoreError> {
    let runs = app.database.runs();
    if !live.is_added.load(Ordering::Relaxed) {
        runs.add(&live.run).await?;
        live.is_added.store(true, Ordering::Relaxed);
    }
    runs.finish(&live.run.id, end).await?;
    live.is_stored.store(true, Ordering::Relaxed);
    Ok(())
}

/// Stores runs that ended while the database failed.
pub(crate) async fn store_unstored(app: &App) {
    for live in app.history.unstored() {
        let Some((_, end)) = live.ended.get() else { continue };
        if let Err(error) = store(app, &live, end).await {
            tracing::debug!(run = live.run.id, %error, "the end of a run is stored later");
            return;
        }
    }
}

/// Inputs for a record. A record of large inputs has only their beginning.
fn shorten_inputs(inputs: Value) -> Value {
    let text = inputs.to_string();
    if text.len() <= MAX_INPUT_BYTES {
        return inputs;
    }
    let end = savoir_lint::floor_char_boundary(&text, MAX_INPUT_BYTES);
    json!({SHORTENED_INPUTS: format!("{}…", &text[..end])})
}

/// Records a run that has already ended.
pub(crate) async fn record_finished(
    app: &App,
    new: NewRun,
    took: Duration,
    outcome: Result<String, String>,
) {
    let now = Timestamp::now();
    let mut end = RunEnd { ended_at: Some(now), state: RunState::Ok, ..RunEnd::running() };
    match outcome {
        Ok(output) => end.output = Some(events::shorten(&output)),
        Err(error) => (end.state, end.error) = (RunState::Failed, Some(events::shorten(&error))),
    }
    let NewRun { kind, user_id, name, target, inputs, .. } = new;
    let (id, started_at) = (Uuid::now_v7().to_string(), now.minus(took));
    let inputs = shorten_inputs(inputs);
    let run = Run { id, user_id, kind, name, target, started_at, inputs, end };
    if let Err(error) = app.database.runs().add(&run).await {
        tracing::warn!(%error, "a run is not recorded");
    }
}

/// Records that the runs of this process continue, and ends the runs of processes that have ended.
/// Stores runs that could not be stored when they ended.
pub(crate) async fn watch_runs(app: App, stopping: CancellationToken) {
    let mut every = tokio::time::interval(SEEN_INTERVAL);
    let mut retry = tokio::time::interval(RETRY_INTERVAL);
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            _ = retry.tick() => {
                store_unstored(&app).await;
                continue;
            }
            _ = every.tick() => {}
        }
        if let Err(error) = watch_once(&app).await {
            tracing::warn!(%error, "running runs were not noted; trying again");
        }
    }
}

async fn watch_once(app: &App) -> Result<(), StoreError> {
    app.database.runs().mark_seen(&app.history.sweep()).await?;
    app.database.runs().stop_lost(Timestamp::now().minus(LOST_AFTER)).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that ended some seconds ago.
    fn ended(id: u64, is_stored: bool) -> (String, Arc<LiveRun>) {
        let run = Run {
            id: id.to_string(),
            user_id: 1,
            kind: RunKind::Prompt,
            name: String::new(),
            target: String::new(),
            started_at: Timestamp::now(),
            inputs: Value::Null,
            end: RunEnd::running(),
        };
        let ended = Instant::now().checked_sub(Duration::from_secs(id)).unwrap();
        let live = LiveRun {
            is_added: AtomicBool::new(is_stored),
            is_stored: AtomicBool::new(is_stored),
            began: ended,
            log: Mutex::default(),
            changed: watch::Sender::new(0),
            stop: CancellationToken::new(),
            ended: (ended, RunEnd::running()).into(),
            run,
        };
        (id.to_string(), Arc::new(live))
    }

    #[test]
    fn runs_that_are_not_stored_yet_stay_longest() {
        let history = RunHistory::default();
        let count = MAX_ENDED_RUNS as u64;
        history.live().extend((0..count).map(|id| ended(id, true)));
        history.live().extend([ended(count, false)]);
        history.sweep();
        assert!(history.find(&count.to_string()).is_some(), "it is the oldest, and not stored");
        assert!(history.find(&(count - 1).to_string()).is_none());
        assert_eq!(history.live().len(), MAX_ENDED_RUNS);
    }
}
