//! Signals that stop a server: the first one gracefully, the second one immediately.

use std::time::Duration;

use tokio::{sync::watch, time::sleep};

use crate::error::CommandError;

/// Signals within this time count as one, because supervisors signal first a process and then its
/// group.
const SAME_SIGNAL_INTERVAL: Duration = Duration::from_millis(500);

/// The number of signals received.
#[derive(Debug)]
pub(super) struct Signals(watch::Receiver<u32>);

impl Signals {
    /// Counts SIGINT and SIGTERM from now on.
    pub(super) fn listen() -> Result<Self, CommandError> {
        let mut next = Next::new()
            .map_err(|error| CommandError::input(format!("cannot handle signals: {error}")))?;
        let (count, receiver) = watch::channel(0);
        tokio::spawn(async move {
            loop {
                next.wait().await;
                count.send_modify(|count| *count += 1);
                let mut together = std::pin::pin!(sleep(SAME_SIGNAL_INTERVAL));
                loop {
                    tokio::select! {
                        () = &mut together => break,
                        () = next.wait() => {}
                    }
                }
            }
        });
        Ok(Self(receiver))
    }

    /// Completes at the first signal.
    pub(super) fn stop(&self) -> impl Future<Output = ()> + Send + 'static {
        self.reach(1)
    }

    /// Completes at the second signal.
    pub(super) fn again(&self) -> impl Future<Output = ()> + Send + 'static {
        self.reach(2)
    }

    fn reach(&self, wanted: u32) -> impl Future<Output = ()> + Send + 'static {
        let mut receiver = self.0.clone();
        async move {
            // The counter lives as long as the program.
            let _ = receiver.wait_for(|count| *count >= wanted).await;
        }
    }
}

#[cfg(unix)]
struct Next {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Next {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        let (interrupt, terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Next;

#[cfg(not(unix))]
impl Next {
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn wait(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
