//! Signals that end a conversation: what runs is ended, and what it left is looked at.

use tokio::sync::watch;

use crate::error::CommandError;

/// Whether the program was told to end.
#[derive(Debug)]
pub(super) struct Hangup(watch::Receiver<bool>);

impl Hangup {
    /// Listens for SIGTERM and SIGHUP from now on. Ctrl-C ends an answer only.
    pub(super) fn listen() -> Result<Self, CommandError> {
        let (told, heard) = watch::channel(false);
        let waiting = signals()
            .map_err(|error| CommandError::input(format!("signals cannot be heard: {error}")))?;
        tokio::spawn(async move {
            waiting.await;
            // Who does not listen has ended.
            let _ = told.send(true);
        });
        Ok(Self(heard))
    }

    /// Ends when the program is told to end, or was before.
    pub(super) async fn heard(&self) {
        if self.0.clone().wait_for(|told| *told).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
fn signals() -> std::io::Result<impl Future<Output = ()> + Send> {
    use tokio::signal::unix::{SignalKind, signal};

    let (mut terminate, mut hangup) =
        (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
fn signals() -> std::io::Result<impl Future<Output = ()> + Send> {
    Ok(std::future::pending())
}
