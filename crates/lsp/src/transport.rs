//! Reads and writes the messages of the protocol.
//!
//! The crate `lsp_server` could do this, too, but its reader ends at the first invalid message.
//! Editors and proxies do send such messages, and a server that ends loses the state of all open
//! files.

use std::io::{self, BufRead, Read as _, Write};

use lsp_server::Message;
use serde_json::{Value, json};

use crate::limits::{MAX_HEADER_BYTES, MAX_MESSAGE_BYTES};

/// A message of the client.
#[derive(Debug)]
pub(crate) enum Received {
    Message(Message),
    /// An invalid message: the id of its request, if it has one, and the reason.
    Malformed {
        id: Value,
        code: i32,
        problem: String,
    },
}

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;

/// Reads the next message; `None` at the end of the input.
pub(crate) fn read(input: &mut impl BufRead) -> io::Result<Option<Received>> {
    let Some(length) = read_headers(input)? else { return Ok(None) };
    if length > MAX_MESSAGE_BYTES as u64 {
        io::copy(&mut input.take(length), &mut io::sink())?;
        let problem = format!("the message has {length} bytes, the limit is {MAX_MESSAGE_BYTES}");
        return Ok(Some(Received::Malformed { id: Value::Null, code: INVALID_REQUEST, problem }));
    }
    let mut content = Vec::with_capacity(length as usize);
    input.take(length).read_to_end(&mut content)?;
    if (content.len() as u64) < length {
        return Ok(None);
    }
    Ok(Some(parse(&content)))
}

fn parse(content: &[u8]) -> Received {
    match serde_json::from_slice::<Message>(content) {
        Ok(message) => match unusable_id(&message, content) {
            Some(id) => Received::Malformed {
                id,
                code: INVALID_REQUEST,
                problem: "the id is neither a number of 32 bits nor a string".to_owned(),
            },
            None => Received::Message(message),
        },
        Err(error) => match serde_json::from_slice::<Value>(content) {
            Ok(value) => Received::Malformed {
                id: value.get("id").cloned().unwrap_or_default(),
                code: INVALID_REQUEST,
                problem: "the message is neither a request nor a notification".to_owned(),
            },
            Err(_) => Received::Malformed {
                id: Value::Null,
                code: PARSE_ERROR,
                problem: format!("the message is not JSON: {error}"),
            },
        },
    }
}

/// The id of a request whose id has an invalid type, so that it was parsed as a notification. Its
/// client would wait for a response.
fn unusable_id(message: &Message, content: &[u8]) -> Option<Value> {
    #[derive(serde::Deserialize)]
    struct OnlyId {
        id: Option<Value>,
    }
    if !matches!(message, Message::Notification(_)) {
        return None;
    }
    serde_json::from_slice::<OnlyId>(content).ok()?.id
}

/// Reads headers up to the blank line, and returns the length of the content. Other lines are
/// skipped, so that output of a wrapper script is harmless.
fn read_headers(input: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        if input.take(MAX_HEADER_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line.is_empty() {
            if length.is_some() {
                return Ok(length);
            }
            continue;
        }
        let header = line.split_once(':');
        if let Some((name, value)) = header
            && name.trim().eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok();
        }
    }
}

pub(crate) fn write(output: &mut dyn Write, message: &Message) -> io::Result<()> {
    let mut value = serde_json::to_value(message)?;
    value["jsonrpc"] = "2.0".into();
    write_value(output, &value)
}

/// Responds to an invalid message, whose id may be missing.
pub(crate) fn write_problem(
    output: &mut dyn Write,
    id: &Value,
    code: i32,
    problem: &str,
) -> io::Result<()> {
    let error = json!({"code": code, "message": problem});
    write_value(output, &json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

fn write_value(output: &mut dyn Write, value: &Value) -> io::Result<()> {
    let content = serde_json::to_vec(value)?;
    write!(output, "Content-Length: {}\r\n\r\n", content.len())?;
    output.write_all(&content)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(mut bytes: &[u8]) -> Vec<Received> {
        std::iter::from_fn(|| read(&mut bytes).unwrap()).collect()
    }

    fn framed(content: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{content}", content.len())
    }

    #[test]
    fn messages_after_a_bad_one_are_read() {
        let good = framed(r#"{"jsonrpc":"2.0","method":"exit"}"#);
        let too_long = format!("Content-Length: {}\r\n\r\n", MAX_MESSAGE_BYTES + 1)
            + &" ".repeat(MAX_MESSAGE_BYTES + 1);
        let bad = [
            framed("{"),
            framed("[1]"),
            framed("\u{0}"),
            framed(r#"{"id":99999999999,"method":"x"}"#),
            too_long,
        ];
        for bad in bad {
            let found = read_all((bad + &good).as_bytes());
            assert!(matches!(found[0], Received::Malformed { .. }), "{:?}", found[0]);
            assert!(matches!(found[1], Received::Message(Message::Notification(_))));
        }
    }

    #[test]
    fn lines_that_are_not_headers_are_skipped() {
        let text = format!("Loading…\n\nContent-Type: x\n{}", framed(r#"{"method":"a"}"#));
        assert!(matches!(read_all(text.as_bytes())[..], [Received::Message(_)]));
    }

    #[test]
    fn invalid_request_keeps_its_id() {
        let found = read_all(framed(r#"{"id":7,"params":{}}"#).as_bytes());
        assert!(
            matches!(&found[..], [Received::Malformed { id, .. }] if *id == json!(7)),
            "{found:?}"
        );
    }

    #[test]
    fn truncated_message_ends_input() {
        assert!(read_all(b"Content-Length: 10\r\n\r\n{}").is_empty());
        assert!(read_all(b"Content-Len").is_empty());
    }
}
