//! An answer's bytes, in bounded time and number.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use super::{Http, chain};
use crate::ModelError;

/// An answer's bytes. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Body {
    http: Http,
    response: Response,
    /// When the next bytes must have come, and how long that was when the wait began.
    deadline: Instant,
    waited: Duration,
    left: usize,
}

impl Body {
    pub(super) fn new(http: Http, response: Response, deadline: Instant, limit: usize) -> Self {
        let waited = http.0.patience.first_byte;
        Self { http, response, deadline, waited, left: limit }
    }

    pub(super) fn http(&self) -> &Http {
        &self.http
    }

    /// The next bytes; nothing at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        let chunk = match timeout_at(self.deadline, self.response.chunk()).await {
            Err(_) => return Err(self.http.timed_out(self.waited)),
            Ok(Err(error)) => {
                let message = format!("the answer broke off: {}", chain(&error));
                return Err(self.http.garbled(message));
            }
            Ok(Ok(chunk)) => chunk,
        };
        self.waited = self.http.0.patience.idle;
        self.deadline = Instant::now() + self.waited;
        let Some(chunk) = chunk else { return Ok(None) };
        self.left = self
            .left
            .checked_sub(chunk.len())
            .ok_or_else(|| self.http.garbled("the answer is too long"))?;
        Ok(Some(chunk))
    }

    /// Everything.
    pub(super) async fn whole(mut self) -> Result<Vec<u8>, ModelError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.next().await? {
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// As much as comes without trouble.
    pub(super) async fn beginning(mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let limit = self.left;
        while bytes.len() < limit {
            self.left = limit;
            let Ok(Some(chunk)) = self.next().await else { break };
            bytes.extend_from_slice(&chunk);
        }
        bytes.truncate(limit);
        bytes
    }
}
