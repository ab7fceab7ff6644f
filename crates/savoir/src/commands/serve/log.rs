//! The log of a server, on standard error.

use std::io;

use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::{
    config::{LogFormat, LogLevel},
    error::CommandError,
    log_filter,
};

pub(super) fn start(format: LogFormat, level: LogLevel) -> Result<(), CommandError> {
    let filter = EnvFilter::try_new(log_filter::from(level.as_str()))
        .map_err(|error| CommandError::input(format!("cannot set up the log: {error}")))?;
    let registry = tracing_subscriber::registry().with(filter);
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
    started.map_err(|error| CommandError::input(format!("cannot set up the log: {error}")))
}
