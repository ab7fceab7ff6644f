//! Where commands that wait for others run.

use tokio::runtime::{Builder, Runtime};

use crate::error::CommandError;

/// Runs a future to its end. What it left behind in the background is not waited for.
pub(crate) fn block_on<T>(
    future: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    let runtime = new()?;
    let outcome = runtime.block_on(future);
    runtime.shutdown_background();
    outcome
}

/// Threads that wait.
pub(crate) fn new() -> Result<Runtime, CommandError> {
    Builder::new_multi_thread().enable_all().build().map_err(|error| {
        CommandError::findings(format!("threads cannot be started: {error}"))
            .hint("raise the limit of processes: ulimit -u")
    })
}
