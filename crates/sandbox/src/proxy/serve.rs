//! Serves one connection of the sandboxed program, from its first byte to the response.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::TcpStream,
    sync::Arc,
};

use super::{
    Shared,
    decide::{self, Asked},
    events::{Note, Verdict},
    forward::{self, Sent},
    head,
    head::HeadError,
    line::{Line, Side},
    refusal::{Refusal, Refused},
    request::{self, Endpoint, Request, Target},
    tls::Sni,
};
use crate::{limits, policy::Scheme};

/// Why a connection ends before its response is complete.
#[derive(Debug)]
pub(super) enum End {
    /// The request is refused and the program receives the reason.
    Refused(Refused),
    /// The request is refused, but the program cannot receive a readable reason.
    Silent(Refusal),
    /// The program or the host has disconnected.
    Broken,
}

impl From<Refused> for End {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<HeadError> for End {
    fn from(error: HeadError) -> Self {
        request::unread(&error).map_or(Self::Broken, Self::Refused)
    }
}

impl From<io::Error> for End {
    /// An ambiguous body is refused with a reason; a body that just ends early is not.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => {
                Self::Refused(Refused::bad_request(format!("the body cannot be read: {error}")))
            }
            _ => Self::Broken,
        }
    }
}

/// The first byte of every TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// Serves one request and closes the connection.
pub(super) fn serve(shared: &Shared, stream: TcpStream) {
    let stream = Arc::new(stream);
    shared.connections.watch(&stream);
    let _ = stream.set_nodelay(true);
    let mut line = Line::new(stream, limits::CLIENT_SILENCE);
    line.hurry(limits::HEAD_TIME);
    let mut program = BufReader::new(Side::Plain(line));
    let mut note = Note::default();
    match converse(shared, &mut program, &mut note) {
        Ok(sent) => {
            program.get_mut().finish();
            if sent == Sent::Partly {
                program.get_mut().linger();
            }
        }
        Err(End::Refused(refused)) => {
            shared.record(&mut note, Verdict::Refused { reason: refused.reason });
            let side = program.get_mut();
            side.line().hurry(limits::HEAD_TIME);
            if side.write_all(&refused.answer()).is_ok() {
                side.finish();
                side.linger();
            }
        }
        Err(End::Silent(reason)) => shared.record(&mut note, Verdict::Refused { reason }),
        Err(End::Broken) => {}
    }
}

fn converse(shared: &Shared, program: &mut BufReader<Side>, note: &mut Note) -> Result<Sent, End> {
    let head = head::read(program, request::first_line)?;
    let request = Request::parse(&head, note)?;
    match &request.target {
        Target::Origin(_) => Err(Refused::bad_request(
            "this is a proxy: ask for a whole URL, or for a tunnel with CONNECT",
        )
        .into()),
        Target::Absolute(endpoint, path) => {
            describe(note, endpoint, Scheme::Http);
            request.agrees(endpoint, Scheme::Http)?;
            exchange(shared, program, note, &request, (endpoint, Scheme::Http, path))
        }
        Target::Tunnel(endpoint) => {
            describe(note, endpoint, Scheme::Https);
            request.agrees(endpoint, Scheme::Https)?;
            tunnel(shared, program, note, endpoint)
        }
    }
}

fn describe(note: &mut Note, endpoint: &Endpoint, scheme: Scheme) {
    note.host = endpoint.host.to_string();
    note.port = endpoint.port(scheme);
}

/// Opens a tunnel and terminates its TLS, because the proxy can only check requests that it can
/// read.
fn tunnel(
    shared: &Shared,
    program: &mut BufReader<Side>,
    note: &mut Note,
    endpoint: &Endpoint,
) -> Result<Sent, End> {
    if shared.trap.is_none() {
        decide::tunnel(&shared.grants, &endpoint.host, endpoint.port(Scheme::Https))?;
    }
    program.get_mut().write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    match program.fill_buf()?.first() {
        Some(&TLS_HANDSHAKE) => {}
        Some(_) => {
            return Err(Refused::new(
                Refusal::OpaqueTunnel,
                format!("only TLS can be spoken in the tunnel to {}", endpoint.host),
            )
            .into());
        }
        None => return Err(End::Broken),
    }
    let early = program.buffer().to_vec();
    let stream = Arc::clone(program.get_mut().line().stream());
    let mut line = Line::new(stream, limits::CLIENT_SILENCE).after(early);
    line.hurry(limits::HEAD_TIME);
    let (connection, sni) =
        shared.authority.accept(&endpoint.host, &mut line).map_err(End::Silent)?;
    *program = BufReader::new(Side::Program(Box::new(rustls::StreamOwned::new(connection, line))));

    let head = head::read(program, request::first_line)?;
    let request = Request::parse(&head, note)?;
    if sni == Sni::Differs {
        return Err(Refused::new(
            Refusal::HostMismatch,
            format!("the tunnel is for {}, its TLS is for another name", endpoint.host),
        )
        .into());
    }
    let Target::Origin(path) = &request.target else {
        return Err(Refused::bad_request("inside a tunnel, ask for a path").into());
    };
    request.agrees(endpoint, Scheme::Https)?;
    exchange(shared, program, note, &request, (endpoint, Scheme::Https, path))
}

/// Checks a request and forwards it if it is allowed. The host name of a refused request is never
/// resolved, because a DNS query alone can carry data out.
fn exchange(
    shared: &Shared,
    program: &mut BufReader<Side>,
    note: &mut Note,
    request: &Request,
    (endpoint, scheme, path): (&Endpoint, Scheme, &str),
) -> Result<Sent, End> {
    let port = endpoint.port(scheme);
    if let Some(trap) = &shared.trap {
        // Recorded before the body is read, so that the host is known even if the program
        // disconnects early.
        shared.record(note, Verdict::Caught);
        return trap.spring(program, request, (&endpoint.host, port, path));
    }
    let asked = Asked {
        scheme,
        host: &endpoint.host,
        port,
        method: &request.method,
        path,
        header_bytes: request.headers.bytes(),
        has_body: request.has_body(),
        overrides_method: request.overrides_method(),
        upgrades: request.upgrades(),
    };
    let permit = decide::request(&shared.grants, &asked)?;
    let mut upstream = forward::dial(shared, scheme, &endpoint.host, port, permit)?;
    program.get_mut().line().relax();
    // From here on data leaves the sandbox, so the request counts as allowed even if it fails
    // later.
    shared.record(note, Verdict::Allowed);
    let revealed = Some(&shared.secrets).filter(|secrets| {
        !secrets.is_empty() && forward::may_see_secrets(upstream.address, scheme, permit)
    });
    let place = (&endpoint.host, port, scheme);
    let sent = upstream.send(request, place, path, revealed, program)?;
    upstream.answer(request, &shared.secrets, program)?;
    Ok(sent)
}
