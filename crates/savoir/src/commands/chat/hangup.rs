//! Signals that end a conversation.

use tokio::sync::watch;

use crate::error::CommandError;

/// Whether a signal to end the program was received.
#[derive(Debug)]
pub(super) struct Hangup(watch::Receiver<bool>);

impl Hangup {
    /// Starts listening for SIGTERM and SIGHUP. Ctrl-C only stops an answer.
    pub(super) fn listen() -> Result<Self, CommandError> {
        let (sender, receiver) = watch::channel(false);
        let waiting = signals()
            .map_err(|error| CommandError::input(format!("cannot listen for signals: {error}")))?;
        tokio::spawn(async move {
            waiting.await;
            // Without a receiver, the conversation has already ended.
            let _ = sender.send(true);
        });
        Ok(Self(receiver))
    }

    /// Waits for a signal; returns immediately if one was received before.
    pub(super) async fn wait(&self) {
        if self.0.clone().wait_for(|hung_up| *hung_up).await.is_err() {
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
