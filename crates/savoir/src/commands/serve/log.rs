//! The log of a server, on standard error and for the web app.

use std::{fmt as text, io};

use savoir_server::LogTail;
use serde_json::{Map, Value};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id},
};
use tracing_subscriber::{
    EnvFilter, Layer, fmt, layer::Context, layer::SubscriberExt as _, registry::LookupSpan,
    util::SubscriberInitExt as _,
};

use crate::{
    config::{LogFormat, LogLevel},
    error::CommandError,
    log_filter,
};

/// Starts the log, and returns its newest lines.
pub(super) fn start(format: LogFormat, level: LogLevel) -> Result<LogTail, CommandError> {
    let filter = EnvFilter::try_new(log_filter::from(level.as_str()))
        .map_err(|error| CommandError::input(format!("cannot set up the log: {error}")))?;
    let tail = LogTail::default();
    let registry = tracing_subscriber::registry().with(filter).with(TailLayer(tail.clone()));
    let started = match format {
        LogFormat::Text => {
            let colour =
                anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
            registry
                .with(fmt::layer().with_writer(io::stderr).with_ansi(colour).with_target(false))
                .try_init()
        }
        LogFormat::Json => registry
            .with(fmt::layer().json().flatten_event(true).with_writer(io::stderr))
            .try_init(),
    };
    started.map_err(|error| CommandError::input(format!("cannot set up the log: {error}")))?;
    Ok(tail)
}

/// Copies each line of the log to a [`LogTail`].
struct TailLayer(LogTail);

/// The fields of a span, for example the method and the path of a request.
struct SpanFields(Map<String, Value>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TailLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = EventFields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(SpanFields(fields.others));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = EventFields::default();
        event.record(&mut fields);
        for span in context.event_scope(event).into_iter().flatten() {
            let extensions = span.extensions();
            let Some(SpanFields(outer)) = extensions.get() else { continue };
            for (name, value) in outer {
                fields.others.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warn",
            Level::INFO => "info",
            Level::DEBUG => "debug",
            Level::TRACE => "trace",
        };
        self.0.push(level, event.metadata().target(), &fields.message, fields.others);
    }
}

/// The message and the other fields of an event.
#[derive(Default)]
struct EventFields {
    message: String,
    others: Map<String, Value>,
}

impl EventFields {
    fn add(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            (name, value) => {
                self.others.insert(name.to_owned(), value);
            }
        }
    }
}

impl Visit for EventFields {
    fn record_debug(&mut self, field: &Field, value: &dyn text::Debug) {
        self.add(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }
}
