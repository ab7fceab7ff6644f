//! Answers requests in place of every host, for programs that are not trusted yet. Nothing is sent
//! to the network and no name is resolved.

use std::{
    io::{BufReader, Write as _},
    sync::{Mutex, PoisonError},
};

use super::{
    body::Body, forward::SentBody, request::Request, serve::ConnectionEnd, stream::ProxyStream,
};
use crate::{host::Host, limits};

/// A response that programs accept whether they read text or JSON.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
    Content-Length: 2\r\nConnection: close\r\n\r\n{}";
const HEAD_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
    Content-Length: 2\r\nConnection: close\r\n\r\n";

/// A request that a trap received and stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrappedRequest {
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
    /// The body, up to [`limits::MAX_TRAPPED_BODY_BYTES`] bytes.
    pub body: Vec<u8>,
    /// Whether the body was longer.
    pub cut: bool,
}

impl TrappedRequest {
    fn bytes(&self) -> usize {
        self.host.len() + self.target.len() + self.headers.len() + self.body.len()
    }
}

/// Answers and stores requests in place of every host.
#[derive(Debug, Default)]
pub(crate) struct Trap {
    stored: Mutex<StoredRequests>,
}

#[derive(Debug, Default)]
struct StoredRequests {
    requests: Vec<TrappedRequest>,
    bytes: usize,
}

impl Trap {
    /// Reads a request to its end, stores it, and answers it.
    pub(super) fn answer(
        &self,
        program: &mut BufReader<ProxyStream>,
        request: &Request,
        (host, port, target): (&Host, u16, &str),
    ) -> Result<SentBody, ConnectionEnd> {
        program.get_mut().socket().clear_deadline();
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
        let mut trapped = TrappedRequest {
            host: host.to_string(),
            port,
            method: request.method.clone(),
            target: target.to_owned(),
            headers,
            body: Vec::new(),
            cut: false,
        };
        // The part that was read is stored, even if the program ends in the middle of the request.
        let read = read_body(program, request, &mut trapped);
        self.store(trapped);
        read?;
        let answer = if request.method == "HEAD" { HEAD_ANSWER } else { ANSWER };
        program.get_mut().write_all(answer)?;
        Ok(SentBody::Whole)
    }

    fn store(&self, trapped: TrappedRequest) {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = stored.bytes + trapped.bytes();
        if stored.requests.len() < limits::MAX_TRAPPED_REQUESTS
            && bytes <= limits::MAX_TRAPPED_BYTES
        {
            stored.bytes = bytes;
            stored.requests.push(trapped);
        }
    }

    /// Returns the stored requests and clears the list.
    pub(super) fn take(&self) -> Vec<TrappedRequest> {
        std::mem::take(&mut self.stored.lock().unwrap_or_else(PoisonError::into_inner).requests)
    }
}

fn read_body(
    program: &mut BufReader<ProxyStream>,
    request: &Request,
    trapped: &mut TrappedRequest,
) -> std::io::Result<()> {
    let mut body = Body::new(request.framing);
    let mut buffer = vec![0; 16 << 10];
    loop {
        let read = body.read(program, &mut buffer)?;
        let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else {
            return Ok(());
        };
        let room =
            limits::MAX_TRAPPED_BODY_BYTES.saturating_sub(trapped.body.len()).min(piece.len());
        trapped.body.extend_from_slice(&piece[..room]);
        trapped.cut |= room < piece.len();
    }
}
