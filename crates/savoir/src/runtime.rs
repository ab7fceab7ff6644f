//! Where commands that wait for others run.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::error::CommandError;

/// How long what was told to end may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs a future to its end. What it left behind in the background is not waited for.
pub(crate) fn block_on<T>(
    future: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    let runtime = new()?;
    let outcome = runtime.block_on(future);
    runtime.shutdown_background();
    outcome
}

/// The same, and waits a while for what it left behind in the background: programs that were told to end,
/// and what is tidied up after them.
pub(crate) fn block_on_to_the_end<T>(
    future: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    let runtime = new()?;
    let outcome = runtime.block_on(future);
    runtime.shutdown_timeout(PATIENCE);
    outcome
}

/// Threads that wait.
pub(crate) fn new() -> Result<Runtime, CommandError> {
    Builder::new_multi_thread().enable_all().build().map_err(|error| {
        CommandError::findings(format!("threads cannot be started: {error}"))
            .hint("raise the limit of processes: ulimit -u")
    })
}
