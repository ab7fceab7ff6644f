//! Serves one connection of the sandboxed program, from its first byte to the response.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::TcpStream,
    sync::Arc,
};

use super::{
    ProxyState,
    event_log::{RequestSummary, Verdict},
    forward::{self, SentBody},
    grant_check::{self, RequestFacts},
    head,
    head::HeadError,
    refusal::{Refusal, RefusalResponse},
    request::{self, Endpoint, Request, Target},
    stream::{ProxyStream, TimedSocket},
    tls::Sni,
};
use crate::{limits, policy::Scheme};

/// Why a connection ends before its response is complete.
#[derive(Debug)]
pub(super) enum ConnectionEnd {
    /// The request is refused and the program receives the reason.
    Refused(RefusalResponse),
    /// The request is refused, but the program cannot receive a readable reason.
    Silent(Refusal),
    /// The program or the host has disconnected.
    Broken,
}

impl From<RefusalResponse> for ConnectionEnd {
    fn from(refused: RefusalResponse) -> Self {
        Self::Refused(refused)
    }
}

impl From<HeadError> for ConnectionEnd {
    fn from(error: HeadError) -> Self {
        request::refuse_head(&error).map_or(Self::Broken, Self::Refused)
    }
}

impl From<io::Error> for ConnectionEnd {
    /// An ambiguous body is refused with a reason; a body that just ends early is not.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => Self::Refused(RefusalResponse::bad_request(format!(
                "the body cannot be read: {error}"
            ))),
            _ => Self::Broken,
        }
    }
}

/// The first byte of every TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// Serves one request and closes the connection.
pub(super) fn serve(state: &ProxyState, stream: TcpStream) {
    let stream = Arc::new(stream);
    state.connections.register(&stream);
    let _ = stream.set_nodelay(true);
    let mut socket = TimedSocket::new(stream, limits::CLIENT_IDLE_TIMEOUT);
    socket.set_deadline(limits::HEAD_TIMEOUT);
    let mut program = BufReader::new(ProxyStream::Plain(socket));
    let mut summary = RequestSummary::default();
    match serve_request(state, &mut program, &mut summary) {
        Ok(sent_body) => {
            program.get_mut().finish();
            if sent_body == SentBody::Partial {
                program.get_mut().drain_unread();
            }
        }
        Err(ConnectionEnd::Refused(refused)) => {
            state.record(&mut summary, Verdict::Refused { reason: refused.reason });
            let stream_to_program = program.get_mut();
            stream_to_program.socket().set_deadline(limits::HEAD_TIMEOUT);
            if stream_to_program.write_all(&refused.to_http()).is_ok() {
                stream_to_program.finish();
                stream_to_program.drain_unread();
            }
        }
        Err(ConnectionEnd::Silent(reason)) => {
            state.record(&mut summary, Verdict::Refused { reason });
        }
        Err(ConnectionEnd::Broken) => {}
    }
}

fn serve_request(
    state: &ProxyState,
    program: &mut BufReader<ProxyStream>,
    summary: &mut RequestSummary,
) -> Result<SentBody, ConnectionEnd> {
    let head = head::read(program, request::check_first_line)?;
    let request = Request::parse(&head, summary)?;
    match &request.target {
        Target::Origin(_) => Err(RefusalResponse::bad_request(
            "this is a proxy: request a full URL, or open a tunnel with CONNECT",
        )
        .into()),
        Target::Absolute(endpoint, path) => {
            set_endpoint(summary, endpoint, Scheme::Http);
            request.check_host_header(endpoint, Scheme::Http)?;
            check_and_forward(state, program, summary, &request, (endpoint, Scheme::Http, path))
        }
        Target::Tunnel(endpoint) => {
            set_endpoint(summary, endpoint, Scheme::Https);
            request.check_host_header(endpoint, Scheme::Https)?;
            serve_tunnel(state, program, summary, endpoint)
        }
    }
}

fn set_endpoint(summary: &mut RequestSummary, endpoint: &Endpoint, scheme: Scheme) {
    summary.host = endpoint.host.to_string();
    summary.port = endpoint.port(scheme);
}

/// Opens a tunnel and terminates its TLS, because the proxy can only check requests that it can
/// read.
fn serve_tunnel(
    state: &ProxyState,
    program: &mut BufReader<ProxyStream>,
    summary: &mut RequestSummary,
    endpoint: &Endpoint,
) -> Result<SentBody, ConnectionEnd> {
    if state.trap.is_none() {
        grant_check::check_tunnel(&state.grants, &endpoint.host, endpoint.port(Scheme::Https))?;
    }
    program.get_mut().write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    match program.fill_buf()?.first() {
        Some(&TLS_HANDSHAKE) => {}
        Some(_) => {
            return Err(RefusalResponse::new(
                Refusal::OpaqueTunnel,
                format!("only TLS is allowed in the tunnel to {}", endpoint.host),
            )
            .into());
        }
        None => return Err(ConnectionEnd::Broken),
    }
    let read_ahead = program.buffer().to_vec();
    let stream = Arc::clone(program.get_mut().socket().stream());
    let mut socket =
        TimedSocket::new(stream, limits::CLIENT_IDLE_TIMEOUT).with_read_ahead(read_ahead);
    socket.set_deadline(limits::HEAD_TIMEOUT);
    let (connection, sni) =
        state.authority.accept(&endpoint.host, &mut socket).map_err(ConnectionEnd::Silent)?;
    *program = BufReader::new(ProxyStream::Program(Box::new(rustls::StreamOwned::new(
        connection, socket,
    ))));

    let head = head::read(program, request::check_first_line)?;
    let request = Request::parse(&head, summary)?;
    if sni == Sni::Differs {
        return Err(RefusalResponse::new(
            Refusal::HostMismatch,
            format!("the tunnel is for {}, its TLS is for another name", endpoint.host),
        )
        .into());
    }
    let Target::Origin(path) = &request.target else {
        return Err(RefusalResponse::bad_request("inside a tunnel, request a path").into());
    };
    request.check_host_header(endpoint, Scheme::Https)?;
    check_and_forward(state, program, summary, &request, (endpoint, Scheme::Https, path))
}

/// Checks a request and forwards it if it is allowed. The host name of a refused request is never
/// resolved, because a DNS query alone can carry data out.
fn check_and_forward(
    state: &ProxyState,
    program: &mut BufReader<ProxyStream>,
    summary: &mut RequestSummary,
    request: &Request,
    (endpoint, scheme, path): (&Endpoint, Scheme, &str),
) -> Result<SentBody, ConnectionEnd> {
    let port = endpoint.port(scheme);
    if let Some(trap) = &state.trap {
        // Recorded before the body is read, so that the host is known even if the program
        // disconnects early.
        state.record(summary, Verdict::Trapped);
        return trap.answer(program, request, (&endpoint.host, port, path));
    }
    let facts = RequestFacts {
        scheme,
        host: &endpoint.host,
        port,
        method: &request.method,
        path,
        header_bytes: request.headers.bytes(),
        has_body: request.has_body(),
        overrides_method: request.overrides_method(),
        upgrades: request.wants_upgrade(),
    };
    let permit = grant_check::check_request(&state.grants, &facts)?;
    let mut upstream = forward::connect_to_host(state, scheme, &endpoint.host, port, permit)?;
    program.get_mut().socket().clear_deadline();
    // From here on data leaves the sandbox, so the request counts as allowed even if it fails
    // later.
    state.record(summary, Verdict::Allowed);
    let revealed = Some(&state.secrets).filter(|secrets| {
        !secrets.is_empty() && forward::may_see_secrets(upstream.address, scheme, permit)
    });
    let endpoint_parts = (&endpoint.host, port, scheme);
    let sent_body = upstream.send(request, endpoint_parts, path, revealed, program)?;
    upstream.forward_response(request, &state.secrets, program)?;
    Ok(sent_body)
}
