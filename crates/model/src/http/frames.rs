//! Splits a streamed response into frames: lines of JSON, or server-sent events.

use super::body::Body;
use crate::{ModelError, limits};

/// How a response is split into frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Each line is one JSON document.
    Lines,
    /// Server-sent events, of which only the data is used.
    Events,
}

/// The frames of a streamed response.
#[derive(Debug)]
pub(crate) struct Frames {
    body: Body,
    framing: Framing,
    /// The bytes that were read. `start` is the first byte that was not returned yet; the search
    /// for a line end continues at `searched`.
    buffer: Vec<u8>,
    start: usize,
    searched: usize,
    ended: bool,
}

impl Frames {
    pub(super) fn new(body: Body, framing: Framing) -> Self {
        Self { body, framing, buffer: Vec::new(), start: 0, searched: 0, ended: false }
    }

    /// Returns the next frame; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, ModelError> {
        match self.framing {
            Framing::Lines => self.next_non_empty_line().await,
            Framing::Events => self.next_event().await,
        }
    }

    async fn next_non_empty_line(&mut self) -> Result<Option<String>, ModelError> {
        loop {
            match self.next_line().await? {
                Some(line) if line.trim().is_empty() => {}
                line => return Ok(line),
            }
        }
    }

    /// Returns the data of the next event that has any. The last event may lack its empty line.
    async fn next_event(&mut self) -> Result<Option<String>, ModelError> {
        let mut data: Option<String> = None;
        while let Some(line) = self.next_line().await? {
            if line.is_empty() {
                if data.is_some() {
                    break;
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            match field {
                "data" => {
                    self.append_event_data(&mut data, value.strip_prefix(' ').unwrap_or(value))?;
                }
                "" | "event" | "id" | "retry" => {}
                _ => {
                    return Err(self
                        .body
                        .http()
                        .invalid_response(format!("not a server-sent event: {line}")));
                }
            }
        }
        Ok(data)
    }

    fn append_event_data(&self, data: &mut Option<String>, value: &str) -> Result<(), ModelError> {
        match data {
            None => *data = Some(value.to_owned()),
            Some(data) if data.len() + value.len() < limits::MAX_EVENT_BYTES => {
                data.push('\n');
                data.push_str(value);
            }
            Some(_) => return Err(self.body.http().invalid_response("an event is too long")),
        }
        Ok(())
    }

    /// Returns the next line without its line end; `None` after the last one.
    async fn next_line(&mut self) -> Result<Option<String>, ModelError> {
        loop {
            let fresh = &self.buffer[self.searched..];
            if let Some(length) = fresh.iter().position(|byte| *byte == b'\n') {
                return self.take_line(self.searched + length + 1).map(Some);
            }
            self.searched = self.buffer.len();
            if self.searched - self.start > limits::MAX_EVENT_BYTES {
                return Err(self.body.http().invalid_response("a line is too long"));
            }
            if self.ended && self.start == self.searched {
                return Ok(None);
            }
            if self.ended {
                return self.take_line(self.searched).map(Some);
            }
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
            match self.body.next().await? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => self.ended = true,
            }
        }
    }

    /// Returns the bytes before `end` as text and removes them from the buffer.
    fn take_line(&mut self, end: usize) -> Result<String, ModelError> {
        let line = &self.buffer[self.start..end];
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = str::from_utf8(line).map(str::to_owned);
        self.start = end;
        self.searched = end;
        text.map_err(|_| self.body.http().invalid_response("it is not UTF-8"))
    }
}
