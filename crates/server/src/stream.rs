//! Turns engine events into server-sent events.

use std::{convert::Infallible, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::Response,
};
use futures::{FutureExt as _, Stream, StreamExt as _, stream};
use savoir_flow::event::{Done, Emitter, Event, Thought, sse};
use serde_json::json;
use tokio::{
    sync::mpsc::Receiver,
    time::{Instant, Interval, MissedTickBehavior, interval_at},
};
use tracing::Instrument as _;

use crate::{
    app::App,
    auth::StreamReader,
    run_history::{LiveRun, NewRun, RecordedEvent, RunRecorder},
    session_cookie::APP_HEADER,
};

/// The response header with the id of the run.
pub(crate) const RUN_HEADER: HeaderName = HeaderName::from_static("x-savoir-run");

/// What happens to a run when its client disconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDisconnect {
    /// The run is cancelled, as the API contract requires.
    Cancel,
    /// The run continues, and clients can attach to it again.
    Continue,
}

impl OnDisconnect {
    /// Runs continue if the web app started them, or if the client requests it.
    pub(crate) fn new(headers: &HeaderMap, detached: bool) -> Self {
        let app = headers.get(APP_HEADER).is_some_and(|value| value == "1");
        if app || detached { Self::Continue } else { Self::Cancel }
    }
}

/// The kind of a run. It determines the last events that the stream sends if the run cannot send
/// them itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StreamKind {
    Skill,
    Chat,
    Workflow,
}

impl StreamKind {
    /// The last events of a run that failed unexpectedly.
    fn error_events(self) -> [Event; 2] {
        match self {
            Self::Skill => {
                let why = "Skill execution failed";
                let thought = Thought::new("error", "error").with("error", why);
                [thought.into(), Event::failed(why)]
            }
            Self::Chat => self.interrupted_events("Chat generation failed"),
            Self::Workflow => self.interrupted_events("Workflow execution failed"),
        }
    }

    /// The last events of a run that the server ends early.
    fn interrupted_events(self, why: &str) -> [Event; 2] {
        match self {
            Self::Skill | Self::Chat => [Event::error(why), Event::failed(why)],
            Self::Workflow => {
                [Event::WorkflowError { error: why.to_owned() }, Event::Done(Done::Failed)]
            }
        }
    }
}

/// Starts a run that emits events, records it, and returns the events as a stream.
///
/// The run continues in its own task, so that it can clean up when the client disconnects; its
/// emitter reports that. The first events, which wait for nothing, are sent with the response
/// header.
pub(crate) async fn respond<F, R>(
    app: &App,
    running: StreamKind,
    new: NewRun,
    then: OnDisconnect,
    run: F,
) -> Response
where
    F: FnOnce(Emitter) -> R,
    R: Future<Output = ()> + Send + 'static,
{
    let (emitter, events) = Emitter::channel();
    let recorder = RunRecorder::start(app, new, emitter.model_calls()).await;
    let live = Arc::clone(recorder.live());
    // A panic is handled like a failed run, here as in the task.
    let mut run = Box::pin(AssertUnwindSafe(run(emitter)).catch_unwind());
    if run.as_mut().now_or_never().is_none() {
        app.tasks.spawn(run.in_current_span());
    }
    let frames = Frames::new(app.clone(), running, events, recorder);
    let body = match then {
        OnDisconnect::Cancel => Body::from_stream(frames.into_stream()),
        OnDisconnect::Continue => {
            app.tasks.spawn(frames.read_to_end().in_current_span());
            Body::from_stream(follow(app.clone(), None, Arc::clone(&live), 0))
        }
    };
    let mut response = sse_response(body);
    if let Ok(id) = HeaderValue::from_str(&live.run.id) {
        response.headers_mut().insert(RUN_HEADER, id);
    }
    response
}

/// The events of a running run after the first `seen` ones, as long as the reader may see them.
pub(crate) fn attach(app: &App, reader: StreamReader, live: Arc<LiveRun>, seen: u64) -> Response {
    sse_response(Body::from_stream(follow(app.clone(), Some(reader), live, seen)))
}

/// The events of an ended run, from the start. Stored events have other numbers than live ones,
/// because consecutive tokens are joined. A client that saw some of them gets an event that tells
/// it to start again.
pub(crate) fn replay(events: &[RecordedEvent], has_seen_some: bool) -> Response {
    let reset = json!({"message": "The events begin again with the first one"});
    let mut text = if has_seen_some { sse("reset", &reset) } else { String::new() };
    text.extend((1..).zip(events).map(|(id, event)| event.to_sse(id)));
    sse_response(Body::from(text))
}

/// Follows a run. Without a reader, no access is checked: the client that started a run may see it
/// to its end.
fn follow(
    app: App,
    reader: Option<StreamReader>,
    live: Arc<LiveRun>,
    seen: u64,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let heartbeat = heartbeat(app.config.heartbeat);
    let state = (OpenStream::new(app), reader, live, seen, heartbeat);
    stream::unfold(state, |state| async move {
        let (open, mut reader, live, mut seen, mut heartbeat) = state;
        let bytes = tokio::select! {
            biased;
            events = live.next_events(seen) => {
                let events = events?;
                seen = events.last().map_or(seen, |(id, _)| *id);
                events.iter().map(|(id, event)| event.to_sse(*id)).collect::<String>().into()
            }
            _ = heartbeat.tick() => HEARTBEAT,
        };
        if let Some(reader) = &mut reader
            && !reader.is_allowed().await
        {
            return None;
        }
        Some((Ok(bytes), (open, reader, live, seen, heartbeat)))
    })
}

const HEARTBEAT: Bytes = Bytes::from_static(b": heartbeat\n\n");

fn sse_response(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONNECTION, "keep-alive"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Counts an open stream in the metrics until it is dropped.
struct OpenStream(App);

impl OpenStream {
    fn new(app: App) -> Self {
        app.metrics.record_stream_start();
        Self(app)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.metrics.record_stream_end();
    }
}

/// The message for clients of streams when the server stops.
const STOPPING_MESSAGE: &str = "The server is stopping";

/// The message of a run that its user stopped.
const STOPPED_MESSAGE: &str = "The run was stopped";

struct Frames {
    open: OpenStream,
    running: StreamKind,
    events: Receiver<Event>,
    recorder: RunRecorder,
    heartbeat: Interval,
    /// Whether the last event was sent.
    over: bool,
}

fn heartbeat(every: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + every, every);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

impl Frames {
    fn new(app: App, running: StreamKind, events: Receiver<Event>, recorder: RunRecorder) -> Self {
        let heartbeat = heartbeat(app.config.heartbeat);
        let open = OpenStream::new(app);
        Self { open, running, events, recorder, heartbeat, over: false }
    }

    fn into_stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold(self, |mut frames| async move {
            let bytes = frames.next().await?;
            Some((Ok(bytes), frames))
        })
    }

    /// Records all events of a run that no client follows.
    async fn read_to_end(self) {
        let mut frames = std::pin::pin!(self.into_stream());
        while frames.next().await.is_some() {}
    }

    /// Returns the next bytes. The stream always ends with exactly one `done`.
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let app = &self.open.0;
        let live = Arc::clone(self.recorder.live());
        tokio::select! {
            biased;
            event = self.events.recv() => {
                let Some(event) = event else {
                    return Some(self.end(&self.running.error_events(), None).await);
                };
                app.metrics.record_stream_event();
                self.recorder.record(&event);
                self.over = matches!(event, Event::Done(_));
                if self.over {
                    // The run is stored before the last event is sent, so that a client that then
                    // requests the run finds it ended.
                    self.recorder.finish().await;
                }
                Some(event.to_sse().into())
            }
            () = app.stop.cancelled() => {
                let last = self.running.interrupted_events(STOPPING_MESSAGE);
                Some(self.end(&last, Some(STOPPING_MESSAGE)).await)
            }
            () = live.stop.cancelled() => {
                let last = self.running.interrupted_events(STOPPED_MESSAGE);
                Some(self.end(&last, Some(STOPPED_MESSAGE)).await)
            }
            _ = self.heartbeat.tick() => Some(HEARTBEAT),
        }
    }

    async fn end(&mut self, last: &[Event], stopped: Option<&str>) -> Bytes {
        self.over = true;
        self.events.close();
        if stopped == Some(STOPPED_MESSAGE) {
            self.recorder.wait_for_end().await;
        }
        for event in last {
            self.recorder.record(event);
        }
        match stopped {
            Some(why) => self.recorder.stop(why).await,
            None => self.recorder.finish().await,
        }
        last.iter().map(Event::to_sse).collect::<String>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_run_ends_with_error_events() {
        let text = |running: StreamKind| -> String {
            running.error_events().iter().map(Event::to_sse).collect()
        };
        assert_eq!(
            text(StreamKind::Skill),
            "event: thought\ndata: {\"type\": \"error\", \"status\": \"error\", \"error\": \
             \"Skill execution failed\"}\n\nevent: done\ndata: {\"status\": \"error\", \
             \"message\": \"Skill execution failed\"}\n\n"
        );
        assert_eq!(
            text(StreamKind::Chat),
            "event: error\ndata: {\"message\": \"Chat generation failed\"}\n\nevent: done\n\
             data: {\"status\": \"error\", \"message\": \"Chat generation failed\"}\n\n"
        );
        assert_eq!(
            text(StreamKind::Workflow),
            "event: workflow_error\ndata: {\"error\": \"Workflow execution failed\"}\n\n\
             event: done\ndata: {\"status\": \"error\"}\n\n"
        );
    }
}
