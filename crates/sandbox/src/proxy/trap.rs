//! [`Trap`]: takes requests in the place of every host, for programs that nobody trusts yet. Nothing
//! leaves and no name is looked up.

use std::{
    io::{BufReader, Write as _},
    sync::{Mutex, PoisonError},
};

use super::{body::Body, forward::Sent, line::Side, request::Request, serve::End};
use crate::{host::Host, limits};

/// An answer that a program can go on with, whether it reads text or JSON.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
    Content-Length: 2\r\nConnection: close\r\n\r\n{}";
const HEAD_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
    Content-Length: 2\r\nConnection: close\r\n\r\n";

/// A request that a trap kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caught {
    /// In canonical spelling.
    pub host: String,
    /// Also when it is the scheme's own.
    pub port: u16,
    /// In capital letters.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Headers as lines.
    pub headers: Vec<u8>,
    /// The body, as far as [`limits::CAUGHT_BODY`] goes.
    pub body: Vec<u8>,
    /// Whether the body went on.
    pub cut: bool,
}

impl Caught {
    fn bytes(&self) -> usize {
        self.host.len() + self.target.len() + self.headers.len() + self.body.len()
    }
}

/// Takes requests in the place of every host.
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
    /// Reads a request to its end, keeps it, and answers.
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
        // What was read counts, also if the program is ended in the middle of it.
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

    /// What was kept, which is then forgotten here.
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
