//! Records everything that runs, and lets clients attach to a run again.
//!
//! A [`RunRecorder`] sees each event of a run before its client does. While the run goes on, its
//! events are in memory, where any number of clients can follow them; in the end they are stored
//! with the result. `spans` turns the events into a timeline.

mod events;
pub(crate) mod spans;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use savoir_flow::event::{Event, ModelCalls};
use savoir_store::{Run, RunEnd, RunKind, RunState, StoreError, Timestamp};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub(crate) use self::events::{EventLog, RecordedEvent};
use crate::app::App;

/// How often a process says that its runs go on.
const SEEN_INTERVAL: Duration = Duration::from_secs(15);
/// A run whose process was not seen for this long has ended with it.
const LOST_AFTER: Duration = Duration::from_mins(1);
/// How long the last event may wait until the run is stored.
const SAVE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long clients can attach to a run after its end and get exactly the events that they missed.
const ATTACH_PERIOD: Duration = Duration::from_mins(10);
/// Maximum runs that are over and stay in memory.
const MAX_ENDED_RUNS: usize = 200;
/// Maximum bytes of the inputs of a run in its record.
const MAX_INPUT_BYTES: usize = 64 * 1024;
/// The only member of inputs that were too large for the record: their beginning as JSON.
pub(crate) const SHORTENED_INPUTS: &str = "shortened";
/// Maximum characters of the name of a run.
const MAX_NAME_CHARS: usize = 200;

/// Something that is about to run.
#[derive(Debug)]
pub(crate) struct NewRun {
    /// The id, if it is the execution of a workflow.
    pub(crate) id: Option<String>,
    pub(crate) kind: RunKind,
    pub(crate) user_id: i64,
    /// The name of the skill or workflow, or the message.
    pub(crate) name: String,
    /// The skill, the id of the workflow, or the conversation.
    pub(crate) target: String,
    pub(crate) inputs: Value,
}

/// The runs of this process that go on, or ended lately.
#[derive(Debug, Default)]
pub(crate) struct RunHistory {
    live: Mutex<HashMap<String, Arc<LiveRun>>>,
}

/// A run of this process that goes on, or ended lately.
#[derive(Debug)]
pub(crate) struct LiveRun {
    pub(crate) run: Run,
    began: Instant,
    log: Mutex<EventLog>,
    /// The number of events so far.
    changed: watch::Sender<u64>,
    /// Cancelled when its user stops the run.
    pub(crate) stop: CancellationToken,
    ended: OnceLock<(Instant, RunEnd)>,
}

impl RunHistory {
    fn live(&self) -> MutexGuard<'_, HashMap<String, Arc<LiveRun>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run of this process that goes on, or ended lately.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<LiveRun>> {
        self.live().get(id).cloned()
    }

    /// Stops a run if it goes on, and forgets it.
    pub(crate) fn remove(&self, id: &str) {
        if let Some(run) = self.live().remove(id) {
            run.stop.cancel();
        }
    }

    /// Forgets runs that ended some time ago. Returns the ids of those that go on.
    fn sweep(&self) -> Vec<String> {
        let mut live = self.live();
        let age = |run: &LiveRun| run.ended.get().map(|(ended, _)| ended.elapsed());
        live.retain(|_, run| age(run).is_none_or(|age| age < ATTACH_PERIOD));
        let mut ended: Vec<(Duration, String)> =
            live.iter().filter_map(|(id, run)| Some((age(run)?, id.clone()))).collect();
        ended.sort();
        for (_, id) in ended.iter().skip(MAX_ENDED_RUNS) {
            live.remove(id);
        }
        let going = live.iter().filter(|(_, run)| run.ended.get().is_none());
        going.map(|(id, _)| id.clone()).collect()
    }
}

impl LiveRun {
    fn log(&self) -> MutexGuard<'_, EventLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run as it is now.
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
    /// Stores that something starts to run. A run goes on even if it cannot be recorded.
    pub(crate) async fn start(app: &App, new: NewRun, calls: ModelCalls) -> Self {
        let name: String = new.name.chars().take(MAX_NAME_CHARS).collect();
        let run = Run {
            id: new.id.unwrap_or_else(|| Uuid::now_v7().to_string()),
            user_id: new.user_id,
            kind: new.kind,
            name: name.split_whitespace().collect::<Vec<_>>().join(" "),
            target: new.target,
            started_at: Timestamp::now(),
            inputs: shorten_inputs(new.inputs),
            end: RunEnd::running(),
        };
        if let Err(error) = app.database.runs().add(&run).await {
            tracing::warn!(%error, "a run is not recorded");
        }
        let live = Arc::new(LiveRun {
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
    let saving = async { app.database.runs().finish(id, &end).await };
    match tokio::time::timeout(SAVE_TIMEOUT, saving).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(run = id, %error, "the end of a run was not stored"),
        Err(_) => tracing::warn!(run = id, "the end of a run was not stored in time"),
    }
    let _ = live.ended.set((Instant::now(), end));
    // Clients that follow it read the last events, then see that it is over.
    live.log().set_over();
    live.changed.send_modify(|_| {});
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

/// Records something that has already run.
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

/// Says that runs of this process go on, and ends those of processes that are gone.
pub(crate) async fn watch_runs(app: App, stopping: CancellationToken) {
    let mut every = tokio::time::interval(SEEN_INTERVAL);
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
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
