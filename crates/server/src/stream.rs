//! Turns engine events into server-sent events.

use std::{convert::Infallible, panic::AssertUnwindSafe, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderName, HeaderValue, header},
    response::Response,
};
use futures::{FutureExt as _, Stream};
use savoir_flow::event::{Done, Emitter, Event, Thought};
use tokio::{
    sync::mpsc::Receiver,
    time::{Instant, Interval, MissedTickBehavior, interval_at},
};
use tracing::Instrument as _;

use crate::app::App;

/// The kind of a run. It decides the last events of a stream if the run itself cannot send them.
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
            Self::Skill | Self::Chat => {
                [Event::Error { message: why.to_owned() }, Event::failed(why)]
            }
            Self::Workflow => {
                [Event::WorkflowError { error: why.to_owned() }, Event::Done(Done::Complete)]
            }
        }
    }
}

/// Starts a run that emits events, and returns them as a stream.
///
/// The run continues in its own task, so that it can clean up when the client disconnects; its
/// emitter reports that. The first events, which wait for nothing, are sent with the response
/// header.
pub(crate) fn respond<F, R>(app: &App, running: StreamKind, run: F) -> Response
where
    F: FnOnce(Emitter) -> R,
    R: Future<Output = ()> + Send + 'static,
{
    let (emitter, events) = Emitter::channel();
    // A panic is handled like a failed run, here as in the task.
    let mut run = Box::pin(AssertUnwindSafe(run(emitter)).catch_unwind());
    if run.as_mut().now_or_never().is_none() {
        app.tasks.spawn(run.in_current_span());
    }
    let body = Body::from_stream(frames(app.clone(), running, events));
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

struct Frames {
    open: OpenStream,
    running: StreamKind,
    events: Receiver<Event>,
    heartbeat: Interval,
    /// Whether the last event was sent.
    over: bool,
}

fn frames(
    app: App,
    running: StreamKind,
    events: Receiver<Event>,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let heartbeat = heartbeat(app.config.heartbeat);
    let frames = Frames { open: OpenStream::new(app), running, events, heartbeat, over: false };
    futures::stream::unfold(frames, |mut frames| async move {
        let bytes = frames.next().await?;
        Some((Ok(bytes), frames))
    })
}

fn heartbeat(every: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + every, every);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

impl Frames {
    /// The next bytes. Whatever happens to the run, the stream ends with exactly one `done`.
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let app = &self.open.0;
        tokio::select! {
            biased;
            event = self.events.recv() => {
                let Some(event) = event else {
                    return Some(self.end(&self.running.error_events()));
                };
                app.metrics.record_stream_event();
                self.over = matches!(event, Event::Done(_));
                Some(event.to_sse().into())
            }
            () = app.stop.cancelled() => Some(self.end(&self.running.interrupted_events(STOPPING_MESSAGE))),
            _ = self.heartbeat.tick() => Some(Bytes::from_static(b": heartbeat\n\n")),
        }
    }

    fn end(&mut self, last: &[Event]) -> Bytes {
        self.over = true;
        self.events.close();
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
             event: done\ndata: {\"status\": \"complete\"}\n\n"
        );
    }
}
