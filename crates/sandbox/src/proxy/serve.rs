//! One connection of the program, from its first byte to the answer.

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

/// Why a connection ends before its answer is complete.
#[derive(Debug)]
pub(super) enum End {
    /// The program is told why.
    Refused(Refused),
    /// There is nobody to tell, or no words that it could read.
    Silent(Refusal),
    /// One side is gone.
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
    /// Bodies that have two readings are told apart from those that just end.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => {
                Self::Refused(Refused::bad_request(format!("the body cannot be read: {error}")))
            }
            _ => Self::Broken,
        }
    }
}

/// The first byte of every handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// Serves one request and hangs up.
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

/// Opens a tunnel only to look inside: what cannot be read cannot be granted.
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

/// Judges a request, and lets it leave if it may. Nothing is looked up for one that may not: names
/// alone can carry data away.
fn exchange(
    shared: &Shared,
    program: &mut BufReader<Side>,
    note: &mut Note,
    request: &Request,
    (endpoint, scheme, path): (&Endpoint, Scheme, &str),
) -> Result<Sent, End> {
    let port = endpoint.port(scheme);
    if let Some(trap) = &shared.trap {
        // As it is kept, so that a host that gives up early is known, too.
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
    // From here on bytes leave, whatever comes of it.
    shared.record(note, Verdict::Allowed);
    let revealed = Some(&shared.secrets).filter(|secrets| {
        !secrets.is_empty() && forward::may_see_secrets(upstream.address, scheme, permit)
    });
    let place = (&endpoint.host, port, scheme);
    let sent = upstream.send(request, place, path, revealed, program)?;
    upstream.answer(request, &shared.secrets, program)?;
    Ok(sent)
}
