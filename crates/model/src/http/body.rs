//! Reads the body of a response within time and size limits.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use super::{Http, describe_error_chain};
use crate::ModelError;

/// The body of a response. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Body {
    http: Http,
    response: Response,
    /// The time when the next bytes must have arrived, and the timeout that it was computed from.
    deadline: Instant,
    timeout: Duration,
    bytes_left: usize,
}

impl Body {
    pub(super) fn new(http: Http, response: Response, deadline: Instant, limit: usize) -> Self {
        let timeout = http.0.timeouts.first_byte;
        Self { http, response, deadline, timeout, bytes_left: limit }
    }

    pub(super) fn http(&self) -> &Http {
        &self.http
    }

    /// Returns the next bytes; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        let chunk = match timeout_at(self.deadline, self.response.chunk()).await {
            Err(_) => return Err(self.http.timed_out(self.timeout)),
            Ok(Err(error)) => {
                let message = format!("the answer broke off: {}", describe_error_chain(&error));
                return Err(self.http.invalid_response(message));
            }
            Ok(Ok(chunk)) => chunk,
        };
        self.timeout = self.http.0.timeouts.idle;
        self.deadline = Instant::now() + self.timeout;
        let Some(chunk) = chunk else { return Ok(None) };
        self.bytes_left = self
            .bytes_left
            .checked_sub(chunk.len())
            .ok_or_else(|| self.http.invalid_response("the answer is too long"))?;
        Ok(Some(chunk))
    }

    pub(super) async fn read_to_end(mut self) -> Result<Vec<u8>, ModelError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.next().await? {
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// Reads up to the limit; an error ends the reading.
    pub(super) async fn read_prefix(mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let limit = self.bytes_left;
        while bytes.len() < limit {
            self.bytes_left = limit;
            let Ok(Some(chunk)) = self.next().await else { break };
            bytes.extend_from_slice(&chunk);
        }
        bytes.truncate(limit);
        bytes
    }
}
