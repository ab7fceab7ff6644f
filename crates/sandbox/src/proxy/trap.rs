//! Answers requests in place of every host, for programs that are not trusted yet. Nothing is sent
//! to the network and no name is resolved.

use std::{
    io::{BufReader, Write as _},
    sync::{Mutex, PoisonError},
};

use super::{body::Body, forward::Sent, line::Side, request::Request, serve::End};
use crate::{host::Host, limits};

/// A response that programs accept whether they read text or JSON.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
    Content-Length: 2\r\nConnection: close\r\n\r\n{}";
const HEAD_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
    Content-Length: 2\r\nConnection: close\r\n\r\n";

/// A request that a trap received and stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caught {
    /// The host in canonical spelling.
    pub host: String,
    /// The port, even if it is the default of the scheme.
    pub port: u16,
    /// The HTTP method in capital letters.
    pub method: String,
    /// The path and query.
    pub target: String,
    /// The headers, one per line.
    pub headers: Vec<u8>,
    /// The body, up to [`limits::CAUGHT_BODY`] bytes.
    pub body: Vec<u8>,
    /// Whether the body was longer.
    pub cut: bool,
}

impl Caught {
    fn bytes(&self) -> usize {
        self.host.len() + self.target.len() + self.headers.len() + self.body.len()
    }
}

/// Answers and stores requests in place of every host.
#[derive(Debug, Default)]
pub(crate) struct Trap {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    requests: Vec<Caught>,
    bytes: usize,
}

impl Trap {
    /// Reads a request to its end, stores it, and answers it.
    pub(super) fn spring(
        &self,
        program: &mut BufReader<Side>,
        request: &Request,
        (host, port, target): (&Host, u16, &str),
    ) -> Result<Sent, End> {
        program.get_mut().line().relax();
        if request.expects_continue() {
            program.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let mut headers = Vec::new();
        for (name, value) in request.headers.end_to_end() {
            headers.extend_from_slice(name.as_bytes());
            headers.extend_from_slice(b": ");
            headers.extend_from_slice(value);
            headers.push(b'\n');
        }
        let mut caught = Caught {
            host: host.to_string(),
            port,
            method: request.method.clone(),
            target: target.to_owned(),
            headers,
            body: Vec::new(),
            cut: false,
        };
        // The part that was read is stored, even if the program ends in the middle of the request.
        let read = read_body(program, request, &mut caught);
        self.keep(caught);
        read?;
        let answer = if request.method == "HEAD" { HEAD_ANSWER } else { ANSWER };
        program.get_mut().write_all(answer)?;
        Ok(Sent::Whole)
    }

    fn keep(&self, caught: Caught) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = kept.bytes + caught.bytes();
        if kept.requests.len() < limits::CAUGHT && bytes <= limits::CAUGHT_BYTES {
            kept.bytes = bytes;
            kept.requests.push(caught);
        }
    }

    /// Returns the stored requests and clears the list.
    pub(super) fn take(&self) -> Vec<Caught> {
        std::mem::take(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner).requests)
    }
}

fn read_body(
    program: &mut BufReader<Side>,
    request: &Request,
    caught: &mut Caught,
) -> std::io::Result<()> {
    let mut body = Body::new(request.framing);
    let mut buffer = vec![0; 16 << 10];
    loop {
        let read = body.read(program, &mut buffer)?;
        let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else {
            return Ok(());
        };
        let room = limits::CAUGHT_BODY.saturating_sub(caught.body.len()).min(piece.len());
        caught.body.extend_from_slice(&piece[..room]);
        caught.cut |= room < piece.len();
    }
}
