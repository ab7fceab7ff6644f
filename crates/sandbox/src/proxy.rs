//! The filtering proxy: the only way out of a sandbox.
//!
//! The program inside has no network but one listening socket, whose other end is here, in threads
//! of the supervisor. It reads requests ([`request`], strictly), asks whether they may leave
//! ([`decide`], pure), finds and judges the address once ([`resolve`]), and carries them
//! ([`forward`]). TLS is ended here with an authority that exists for one run ([`tls`]), because
//! what cannot be read cannot be granted; secrets are put in on the way out ([`secrets`]). A [`trap`]
//! takes the place of all hosts.
//!
//! One thread accepts, one serves each connection, one connection serves one request. Everything
//! that costs time is made when the first request needs it.

mod body;
mod connections;
mod decide;
mod events;
mod forward;
mod head;
mod line;
mod refusal;
mod request;
mod resolve;
mod secrets;
mod serve;
mod tls;
mod trap;

use std::{
    io::{self, Write},
    net::{Shutdown, TcpListener, TcpStream},
    os::fd::OwnedFd,
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use rustls_pki_types::CertificateDer;

use self::{
    connections::Connections,
    events::{Events, Note},
    refusal::Refused,
    secrets::Secrets,
    tls::Trust,
};
use crate::{limits, policy::HostGrant};

pub use self::{
    events::{HostEvent, Verdict},
    refusal::Refusal,
    trap::Caught,
};
pub(crate) use self::{
    resolve::{Resolve, SystemResolver},
    secrets::{MaskedSecret, placeholder},
    tls::Authority,
    trap::Trap,
};

/// Why there is no proxy. None of it has a secret in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ProxyError {
    /// The system has no random numbers.
    #[error("no random numbers can be had")]
    Random,
    /// The authority of the run could not be made.
    #[error("the authority of the run cannot be made")]
    Certificate(#[from] rcgen::Error),
    /// TLS could not be set up.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// The listener or its thread could not be set up.
    #[error("the proxy cannot be started")]
    Start(#[from] io::Error),
}

/// What a proxy needs to know.
#[derive(Debug)]
pub(crate) struct Settings {
    /// What may leave; nothing else does.
    pub(crate) grants: Vec<HostGrant>,
    /// Where everything ends up instead of leaving.
    pub(crate) trap: Option<Trap>,
    /// What is put in on the way out.
    pub(crate) secrets: Vec<MaskedSecret>,
    /// Whom the program trusts.
    pub(crate) authority: Authority,
    /// Who knows addresses.
    pub(crate) resolver: Box<dyn Resolve>,
    /// Roots that are trusted beside those of the system.
    pub(crate) trust: Vec<CertificateDer<'static>>,
}

/// A proxy at work.
#[derive(Debug)]
pub(crate) struct Proxy {
    shared: Arc<Shared>,
    /// The listening socket, in the only type of the standard library that can shut one down.
    listener: TcpStream,
    accepting: Option<JoinHandle<()>>,
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    grants: Vec<HostGrant>,
    trap: Option<Trap>,
    secrets: Secrets,
    authority: Authority,
    resolver: Box<dyn Resolve>,
    trust: Trust,
    connections: Arc<Connections>,
    events: Mutex<Events>,
}

impl Shared {
    /// Keeps a verdict, the first one of each request.
    fn record(&self, note: &mut Note, verdict: Verdict) {
        if !std::mem::replace(&mut note.recorded, true) {
            // A program that came to know a value must not write it into the record.
            note.path = String::from_utf8_lossy(&self.secrets.hide(note.path.as_bytes())).into();
            note.host = String::from_utf8_lossy(&self.secrets.hide(note.host.as_bytes())).into();
            self.events.lock().unwrap_or_else(PoisonError::into_inner).add(note, verdict);
        }
    }
}

impl Proxy {
    /// Begins to accept.
    pub(crate) fn start(listener: TcpListener, settings: Settings) -> Result<Self, ProxyError> {
        let Settings { grants, trap, secrets, authority, resolver, trust } = settings;
        let shared = Arc::new(Shared {
            grants,
            trap,
            secrets: Secrets::new(secrets),
            authority,
            resolver,
            trust: Trust::new(trust),
            connections: Arc::default(),
            events: Mutex::default(),
        });
        listener.set_nonblocking(false)?;
        let handle = TcpStream::from(OwnedFd::from(listener.try_clone()?));
        let accepting = thread::Builder::new().name("savoir-proxy".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        })?;
        Ok(Self { shared, listener: handle, accepting: Some(accepting) })
    }

    /// Hangs up everywhere, and tells what was asked. Takes [`limits::PROXY_STOP`] at most.
    pub(crate) fn stop(mut self) -> (Vec<HostEvent>, Vec<Caught>) {
        self.close();
        let events = self.shared.events.lock().unwrap_or_else(PoisonError::into_inner).take();
        (events, self.shared.trap.as_ref().map(Trap::take).unwrap_or_default())
    }

    fn close(&mut self) {
        let Some(accepting) = self.accepting.take() else { return };
        // On Linux this wakes the thread that accepts.
        let woken = self.listener.shutdown(Shutdown::Both).is_ok();
        self.shared.connections.stop(limits::PROXY_STOP);
        if woken {
            // It has nothing left that it could wait for, and nothing to say.
            let _ = accepting.join();
        }
    }
}

impl Drop for Proxy {
    /// A supervisor that fails half-way leaves no way out behind.
    fn drop(&mut self) {
        self.close();
    }
}

/// Gives each connection a thread, until the listener is shut down.
fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let stream = match listener.accept() {
            _ if shared.connections.stopping() => return,
            Ok((stream, _)) => stream,
            // The listener was shut down.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
            // Out of descriptors or memory for now, or hung up already.
            Err(_) => {
                thread::sleep(Duration::from_millis(10));
                continue;
            }
        };
        let Some(place) = shared.connections.enter() else {
            turn_away(shared, &stream);
            continue;
        };
        let worker = Arc::clone(shared);
        // Without a thread, the connection is closed and its place is free again.
        let _ = thread::Builder::new().name("savoir-request".to_owned()).spawn(move || {
            serve::serve(&worker, stream);
            drop(place);
        });
    }
}

fn turn_away(shared: &Shared, mut stream: &TcpStream) {
    let reason = Refusal::TooManyConnections;
    shared.record(&mut Note::default(), Verdict::Refused { reason });
    let refused = Refused::new(reason, "too many connections at once");
    // A fresh socket has room for this much; if not, nobody waits.
    let _ = stream.set_nonblocking(true);
    let _ = stream.write_all(&refused.answer());
}

#[cfg(test)]
mod tests;
