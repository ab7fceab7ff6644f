//! Exchanges calls and answers with the Python host, one line of JSON each way. The host is the
//! process that has loaded the functions of a skill.
//!
//! A [`Session`] has no thread and no timeout. The owner of the process kills it when time is up,
//! and the waiting read then returns [`CallError::HostEnded`].

use std::io::{self, BufRead, Read as _, Write};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

/// Longest line that is read from a host. The result of a tool goes to a model, which reads far
/// less.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// A connection to a host that has loaded its module.
#[derive(Debug)]
pub struct Session<R, W> {
    reader: R,
    writer: W,
    ready: Ready,
    next: u64,
    broken: bool,
}

/// The first message of a host, once its module is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Version of Python, `3.11.7`.
    pub python: String,
    /// Names of the tools in the module.
    pub tools: Vec<String>,
}

/// An exception of the skill's code.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// The class, or `NotSerialisable` for a result that is not JSON.
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
    /// The last line of the skill's code in the traceback, as `file:line`.
    pub at: Option<String>,
}

impl std::fmt::Display for Exception {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.kind)?;
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        self.at.as_ref().map_or(Ok(()), |at| write!(f, " ({at})"))
    }
}

/// Why a call has no result.
#[derive(Debug, Error)]
pub enum CallError {
    /// The code of the skill raised an exception. The session remains usable; every other error
    /// ends it.
    #[error("{0}")]
    Raised(Exception),
    /// The host process has ended.
    #[error("the Python host ended before it answered")]
    HostEnded,
    /// The host sent a line that is not an answer to this call.
    #[error("the Python host sent {0}")]
    BadAnswer(String),
    /// The answer has more than [`MAX_ANSWER_BYTES`].
    #[error("the answer of the Python host has more than {MAX_ANSWER_BYTES} bytes")]
    TooLarge,
    /// The pipe failed.
    #[error("cannot talk to the Python host")]
    Io(#[from] io::Error),
}

impl CallError {
    /// The stable error code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Raised(_) => "tool-raised",
            Self::HostEnded => "host-ended",
            Self::BadAnswer(_) => "bad-answer",
            Self::TooLarge => "answer-too-large",
            Self::Io(_) => "host-io",
        }
    }
}

#[derive(Serialize)]
struct Request<'a> {
    id: u64,
    tool: &'a str,
    args: &'a Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Greeting {
    ready: bool,
    python: Option<String>,
    tools: Option<Vec<String>>,
    error: Option<Exception>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    /// `None` when the host could not read the request.
    id: Option<u64>,
    ok: bool,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    #[serde(default)]
    error: Option<Exception>,
}

/// Distinguishes a result of `null` from a missing result.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl<R: BufRead, W: Write> Session<R, W> {
    /// Waits until the host has loaded its module. An exception of the module is returned as
    /// [`CallError::Raised`]; the host has then ended.
    pub fn start(mut reader: R, writer: W) -> Result<Self, CallError> {
        let line = read_line(&mut reader)?;
        let greeting: Greeting = parse(&line)?;
        let ready = match greeting {
            Greeting { ready: true, python: Some(python), tools: Some(tools), error: None } => {
                Ready { python, tools }
            }
            Greeting { ready: false, python: None, tools: None, error: Some(error) } => {
                return Err(CallError::Raised(error));
            }
            _ => return Err(unknown(&line)),
        };
        Ok(Self { reader, writer, ready, next: 1, broken: false })
    }

    /// The first message of the host.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Whether another call can be made.
    pub fn is_alive(&self) -> bool {
        !self.broken
    }

    /// Calls a tool and waits for its result.
    pub fn call(&mut self, tool: &str, args: &Map<String, Value>) -> Result<Value, CallError> {
        if self.broken {
            return Err(CallError::HostEnded);
        }
        let result = self.exchange(tool, args);
        self.broken = !matches!(result, Ok(_) | Err(CallError::Raised(_)));
        result
    }

    fn exchange(&mut self, tool: &str, args: &Map<String, Value>) -> Result<Value, CallError> {
        let id = self.next;
        self.next += 1;
        let mut line = serde_json::to_vec(&Request { id, tool, args }).map_err(io::Error::from)?;
        line.push(b'\n');
        let sent = self.writer.write_all(&line).and_then(|()| self.writer.flush());
        sent.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => CallError::HostEnded,
            _ => CallError::Io(error),
        })?;
        let line = read_line(&mut self.reader)?;
        let answer: Answer = parse(&line)?;
        if answer.id != Some(id) {
            return Err(CallError::BadAnswer(format!("an answer to another call than {id}")));
        }
        match answer {
            Answer { ok: true, result: Some(result), error: None, .. } => Ok(result),
            Answer { ok: false, result: None, error: Some(error), .. } => {
                Err(CallError::Raised(error))
            }
            _ => Err(unknown(&line)),
        }
    }
}

/// Reads one line without its end, at most [`MAX_ANSWER_BYTES`].
fn read_line(reader: &mut impl BufRead) -> Result<Vec<u8>, CallError> {
    let mut line = Vec::new();
    reader.take(MAX_ANSWER_BYTES as u64 + 1).read_until(b'\n', &mut line)?;
    if line.pop_if(|last| *last == b'\n').is_some() {
        return Ok(line);
    }
    Err(if line.len() > MAX_ANSWER_BYTES { CallError::TooLarge } else { CallError::HostEnded })
}

fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, CallError> {
    serde_json::from_slice(line).map_err(|_| unknown(line))
}

fn unknown(line: &[u8]) -> CallError {
    const SHOWN: usize = 80;
    let text = String::from_utf8_lossy(line);
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    CallError::BadAnswer(format!("a line that is not an answer: {shown:?}{more}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: &str = "{\"ready\":true,\"python\":\"3.11.7\",\"tools\":[\"f\"]}\n";

    fn start(lines: &str) -> Result<Session<&[u8], Vec<u8>>, CallError> {
        Session::start(lines.as_bytes(), Vec::new())
    }

    fn call(line: &str) -> Result<Value, CallError> {
        let lines = format!("{READY}{line}");
        start(&lines).unwrap().call("f", &Map::new())
    }

    #[test]
    fn a_call_and_its_answer() {
        let lines = format!("{READY}{{\"id\":1,\"ok\":true,\"result\":null}}\n");
        let mut session = start(&lines).unwrap();
        assert_eq!(session.ready().tools, ["f"]);
        assert_eq!(session.call("f", &Map::new()).unwrap(), Value::Null);
        assert_eq!(session.writer, b"{\"id\":1,\"tool\":\"f\",\"args\":{}}\n");
        assert!(session.is_alive());
        assert_eq!(session.call("f", &Map::new()).unwrap_err().code(), "host-ended");
        assert!(!session.is_alive());
    }

    #[test]
    fn every_other_line_is_refused() {
        for (line, code) in [
            ("{\"id\":2,\"ok\":true,\"result\":1}\n", "bad-answer"),
            ("{\"id\":null,\"ok\":true,\"result\":1}\n", "bad-answer"),
            ("{\"id\":1,\"ok\":true}\n", "bad-answer"),
            ("{\"id\":1,\"ok\":true,\"result\":1,\"more\":1}\n", "bad-answer"),
            ("{\"id\":1,\"ok\":false,\"result\":1}\n", "bad-answer"),
            ("{\"id\":1,\"ok\":false,\"error\":{\"type\":\"E\"}}\n", "bad-answer"),
            ("hello\n", "bad-answer"),
            ("\n", "bad-answer"),
            ("\u{1b}[0m\n", "bad-answer"),
            ("{\"id\":1,\"ok\":true,\"result\":1}", "host-ended"),
            ("", "host-ended"),
        ] {
            assert_eq!(call(line).unwrap_err().code(), code, "{line:?}");
        }
        for line in ["", "x\n", "{\"ready\":true}\n", "{\"ready\":false,\"tools\":[]}\n"] {
            assert!(start(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn an_endless_line_is_cut() {
        let mut reader = io::BufReader::new(io::repeat(b'a'));
        assert!(matches!(read_line(&mut reader), Err(CallError::TooLarge)));
        let deep = format!("{{\"id\":1,\"ok\":true,\"result\":{}\n", "[".repeat(1_000_000));
        assert_eq!(call(&deep).unwrap_err().code(), "bad-answer");
    }
}
