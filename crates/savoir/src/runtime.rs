//! Creates the Tokio runtime of asynchronous commands.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::error::CommandError;

/// Time limit for background tasks to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs a future to its end, without waiting for its background tasks.
pub(crate) fn block_on<T>(
    future: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    let runtime = new()?;
    let outcome = runtime.block_on(future);
    runtime.shutdown_background();
    outcome
}

/// As [`block_on`], and waits for background tasks up to a time limit: programs that are
/// terminating, and their cleanup.
pub(crate) fn block_on_with_cleanup<T>(
    future: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    let runtime = new()?;
    let outcome = runtime.block_on(future);
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    outcome
}

pub(crate) fn new() -> Result<Runtime, CommandError> {
    Builder::new_multi_thread().enable_all().build().map_err(|error| {
        CommandError::findings(format!("cannot start threads: {error}"))
            .hint("raise the limit of processes: ulimit -u")
    })
}
