//! Connects to a host, sends the request and returns the response to the program, in pieces of
//! bounded size.

use std::{
    io::{self, BufReader, Write},
    net::{IpAddr, SocketAddr, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    ProxyState,
    body::{self, Body, Framing},
    grant_check::Permit,
    head::{self, HeadError, Headers},
    refusal::{Refusal, RefusalResponse},
    request::{Request, Version, default_port},
    resolve::{self, refuse_unreachable},
    secrets::{Escaping, Secrets},
    serve::ConnectionEnd,
    stream::{ProxyStream, TimedSocket},
};
use crate::{
    host::{Host, is_public},
    limits,
    policy::Scheme,
};

/// The number of bytes that are copied at once.
const COPY_BYTES: usize = 16 << 10;
/// The limit of interim responses such as `103 Early Hints` before the real one.
const MAX_INTERIM_RESPONSES: usize = 8;

/// An open connection to a host whose address was checked.
#[derive(Debug)]
pub(super) struct Upstream<'a> {
    state: &'a ProxyState,
    reader: BufReader<ProxyStream>,
    pub(super) address: IpAddr,
}

/// How much of a request was read from the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentBody {
    Whole,
    /// The host stopped reading before the end.
    Partial,
}

/// Resolves the host, checks its addresses and connects to one of them. The name is resolved only
/// once, so its addresses cannot change after the check.
pub(super) fn connect_to_host<'a>(
    state: &'a ProxyState,
    scheme: Scheme,
    host: &Host,
    port: u16,
    permit: Permit,
) -> Result<Upstream<'a>, RefusalResponse> {
    let addresses = resolve::resolve_addresses(&*state.resolver, host, permit)?;
    let stream = Arc::new(connect(state, host, port, &addresses)?);
    state.connections.register(&stream);
    let failed = |error: io::Error| refuse_unreachable(host, &error.to_string());
    let address = stream.peer_addr().map_err(failed)?.ip();
    // A connection to one of the machine's own addresses also comes from that address, so this
    // finds own addresses in every range.
    let is_own_address = stream.local_addr().map_err(failed)?.ip() == address;
    if !permit.allow_private_addresses && (is_own_address || !is_public(address)) {
        return Err(resolve::refuse_private_address(host));
    }
    let _ = stream.set_nodelay(true);
    let mut socket = TimedSocket::new(stream, limits::HOST_IDLE_TIMEOUT);
    let stream = match scheme {
        Scheme::Http => ProxyStream::Plain(socket),
        Scheme::Https => {
            socket.set_deadline(limits::CONNECT_TIMEOUT);
            let connection = state.host_verifier.connect(host, &mut socket).map_err(failed)?;
            socket.clear_deadline();
            ProxyStream::Host(Box::new(rustls::StreamOwned::new(connection, socket)))
        }
    };
    Ok(Upstream { state, reader: BufReader::with_capacity(COPY_BYTES, stream), address })
}

/// Tries one address after the other; the remaining addresses share the remaining time.
fn connect(
    state: &ProxyState,
    host: &Host,
    port: u16,
    addresses: &[IpAddr],
) -> Result<TcpStream, RefusalResponse> {
    let end = Instant::now() + limits::CONNECT_TIMEOUT;
    let mut last = io::Error::from(io::ErrorKind::TimedOut);
    for (left, address) in (1_u32..=addresses.len() as u32).rev().zip(addresses) {
        if state.connections.is_stopping() {
            break;
        }
        let share = end.saturating_duration_since(Instant::now()) / left;
        let share = share.max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&SocketAddr::new(*address, port), share) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(refuse_unreachable(host, &last.to_string()))
}

/// Returns whether a secret may be sent on this connection: others cannot read it in transit, or
/// the user accepted plain HTTP.
pub(super) fn may_see_secrets(address: IpAddr, scheme: Scheme, permit: Permit) -> bool {
    scheme == Scheme::Https || permit.plain || address.is_loopback()
}

impl Upstream<'_> {
    /// Sends the request. A host that stops reading early may still respond.
    pub(super) fn send(
        &mut self,
        request: &Request,
        endpoint: (&Host, u16, Scheme),
        path: &str,
        revealed: Option<&Secrets>,
        program: &mut BufReader<ProxyStream>,
    ) -> Result<SentBody, ConnectionEnd> {
        let mut out = Vec::with_capacity(1024);
        let target = match revealed {
            Some(secrets) => secrets.reveal(path.as_bytes(), Escaping::Percent),
            None => path.as_bytes().to_vec(),
        };
        let (host, port, scheme) = endpoint;
        out.extend_from_slice(request.method.as_bytes());
        out.push(b' ');
        out.extend_from_slice(&target);
        out.extend_from_slice(format!(" HTTP/1.1\r\nHost: {host}").as_bytes());
        if port != default_port(scheme) {
            out.extend_from_slice(format!(":{port}").as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        for (name, value) in request.headers.end_to_end() {
            if name.eq_ignore_ascii_case("host") {
                continue;
            }
            // A compressed response could not be searched for secrets.
            if revealed.is_some() && name.eq_ignore_ascii_case("accept-encoding") {
                continue;
            }
            match revealed {
                Some(secrets) => push_header(&mut out, name, &secrets.reveal_header(name, value)),
                None => push_header(&mut out, name, value),
            }
        }
        if revealed.is_some() {
            push_header(&mut out, "Accept-Encoding", b"identity");
        }
        push_header(&mut out, "Connection", b"close");

        if request.expects_continue() {
            program.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        match (request.framing, revealed) {
            (Framing::Length(length), Some(secrets)) if length <= limits::MAX_MASKED_BODY_BYTES => {
                let body = read_whole(program, length)?;
                let content_type = request.headers.all("content-type").next().unwrap_or_default();
                let body = secrets.reveal(&body, Escaping::of_body(content_type));
                push_header(&mut out, "Content-Length", body.len().to_string().as_bytes());
                out.extend_from_slice(b"\r\n");
                self.state.wait_for_bandwidth(out.len() + body.len());
                let host = self.reader.get_mut();
                // The error occurs again when the response is read.
                let _ = host.write_all(&out).and_then(|()| host.write_all(&body));
                Ok(SentBody::Whole)
            }
            (framing, _) => {
                match framing {
                    Framing::Length(length) => {
                        push_header(&mut out, "Content-Length", length.to_string().as_bytes());
                    }
                    Framing::Chunked => push_header(&mut out, "Transfer-Encoding", b"chunked"),
                    Framing::Empty | Framing::Close => {}
                }
                out.extend_from_slice(b"\r\n");
                self.stream_body(&out, framing, program)
            }
        }
    }

    fn stream_body(
        &mut self,
        head: &[u8],
        framing: Framing,
        program: &mut BufReader<ProxyStream>,
    ) -> Result<SentBody, ConnectionEnd> {
        let state = self.state;
        state.wait_for_bandwidth(head.len());
        let host = self.reader.get_mut();
        if host.write_all(head).is_err() {
            return Ok(SentBody::Partial);
        }
        let mut body = Body::new(framing);
        let mut buffer = vec![0; COPY_BYTES];
        loop {
            let read = body.read(program, &mut buffer)?;
            let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else { break };
            state.wait_for_bandwidth(read);
            if body::write_piece(host, framing, piece).is_err() {
                return Ok(SentBody::Partial);
            }
        }
        let _ = body::write_end(host, framing);
        Ok(SentBody::Whole)
    }

    /// Sends the response to the program.
    pub(super) fn forward_response(
        &mut self,
        request: &Request,
        secrets: &Secrets,
        program: &mut BufReader<ProxyStream>,
    ) -> Result<(), ConnectionEnd> {
        let response = self.read_response(request)?;
        let hides_secrets = !secrets.is_empty() && response.is_identity();
        let program_framing = match response.framing {
            Framing::Empty => Framing::Empty,
            Framing::Length(length) if !hides_secrets => Framing::Length(length),
            _ if request.version == Version::Http11 => Framing::Chunked,
            _ => Framing::Close,
        };
        let mut out = Vec::with_capacity(1024);
        let first = format!("HTTP/1.1 {} {}\r\n", response.status, response.reason);
        out.extend_from_slice(&secrets.hide(first.as_bytes()));
        for (name, value) in response.headers.end_to_end() {
            push_header(&mut out, name, &secrets.hide(value));
        }
        match program_framing {
            Framing::Length(length) => {
                push_header(&mut out, "Content-Length", length.to_string().as_bytes());
            }
            Framing::Chunked => push_header(&mut out, "Transfer-Encoding", b"chunked"),
            // The response has no body, but keeps the length that the body would have had.
            Framing::Empty if response.status != 204 => {
                for value in response.headers.all("content-length") {
                    push_header(&mut out, "Content-Length", value);
                }
            }
            Framing::Empty | Framing::Close => {}
        }
        push_header(&mut out, "Connection", b"close");
        out.extend_from_slice(b"\r\n");
        let program = program.get_mut();
        self.state.wait_for_bandwidth(out.len());
        program.write_all(&out)?;

        let mut body = Body::new(response.framing);
        let mut replacer = secrets.response_replacer();
        let mut buffer = vec![0; COPY_BYTES];
        loop {
            // If the response breaks off, the connection is cut too, so that the program does not
            // take it as complete.
            let read =
                body.read(&mut self.reader, &mut buffer).map_err(|_| ConnectionEnd::Broken)?;
            let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else { break };
            self.state.wait_for_bandwidth(read);
            if hides_secrets {
                out.clear();
                replacer.push(piece, &mut out);
                body::write_piece(program, program_framing, &out)?;
            } else {
                body::write_piece(program, program_framing, piece)?;
            }
        }
        out.clear();
        replacer.finish(&mut out);
        body::write_piece(program, program_framing, &out)?;
        body::write_end(program, program_framing)?;
        Ok(())
    }

    fn read_response(&mut self, request: &Request) -> Result<Response, ConnectionEnd> {
        let bad = |why: &str| {
            RefusalResponse::new(Refusal::BadResponse, format!("the answer of the host {why}"))
        };
        for _ in 0..MAX_INTERIM_RESPONSES {
            let head = head::read(&mut self.reader, |line| {
                if line.starts_with(b"HTTP/1.1 ") || line.starts_with(b"HTTP/1.0 ") {
                    Ok(())
                } else {
                    Err("is not HTTP/1.1")
                }
            })
            .map_err(|error| match error {
                HeadError::Closed => bad("ended before it began"),
                HeadError::Slow => bad("did not come in time"),
                HeadError::Malformed(why) => bad(why),
            })?;
            let response = Response::parse(&head, request).map_err(|why| bad(&why))?;
            match response.status {
                101 => return Err(bad("switches the protocol without being asked").into()),
                100..=199 => {}
                _ => return Ok(response),
            }
        }
        Err(bad("has too many heads").into())
    }
}

fn push_header(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn read_whole(program: &mut BufReader<ProxyStream>, length: u64) -> io::Result<Vec<u8>> {
    let mut whole = Vec::new();
    let mut body = Body::new(Framing::Length(length));
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let read = body.read(program, &mut buffer)?;
        let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else { break };
        whole.extend_from_slice(piece);
    }
    Ok(whole)
}

/// The head of a response.
#[derive(Debug)]
struct Response {
    status: u16,
    reason: String,
    headers: Headers,
    framing: Framing,
}

impl Response {
    fn parse(head: &[u8], request: &Request) -> Result<Self, String> {
        let mut headers = [httparse::EMPTY_HEADER; limits::MAX_HEADERS];
        let mut parsed = httparse::Response::new(&mut headers);
        match parsed.parse(head) {
            Ok(httparse::Status::Complete(length)) if length == head.len() => {}
            Ok(_) => return Err("has more than one head".to_owned()),
            Err(error) => return Err(format!("cannot be read: {error}")),
        }
        let status = parsed.code.unwrap_or_default();
        let reason = parsed.reason.unwrap_or_default().to_owned();
        let headers = Headers::new(parsed.headers);
        let declared_framing = Framing::of(&headers)?;
        let framing = match status {
            100..=199 | 204 | 304 => Framing::Empty,
            _ if request.method == "HEAD" => Framing::Empty,
            200..=599 => declared_framing.unwrap_or(Framing::Close),
            _ => return Err(format!("has the status {status}")),
        };
        Ok(Self { status, reason, headers, framing })
    }

    /// Returns whether the body is not compressed and can be searched.
    fn is_identity(&self) -> bool {
        self.headers.all("content-encoding").all(|value| value.eq_ignore_ascii_case(b"identity"))
    }
}
