//! Runs the filtering proxy, which is the only connection of a sandbox to the network.
//!
//! The program inside can reach nothing but one listening socket, which threads of the supervisor
//! serve. They read requests strictly ([`request`]), decide whether a request may leave
//! ([`decide`], pure), resolve and check the address once ([`resolve`]), and forward the request
//! ([`forward`]). The proxy terminates TLS with a certificate authority that exists for one run
//! only ([`tls`]), because it can only check requests that it can read. It replaces placeholders by
//! secrets on the way to the host ([`secrets`]). With a [`trap`], the proxy answers in place of
//! every host.
//!
//! One thread accepts connections, and each connection has a thread and serves one request.
//! Everything that takes time is created when the first request needs it.

mod bandwidth;
mod body;
mod connections;
mod event_log;
mod forward;
mod grant_check;
mod head;
mod refusal;
mod request;
mod resolve;
mod secrets;
mod serve;
mod stream;
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
    bandwidth::Bandwidth,
    connections::Connections,
    event_log::{EventLog, RequestSummary},
    refusal::RefusalResponse,
    secrets::Secrets,
    tls::HostVerifier,
};
use crate::{limits, policy::HostGrant};

pub use self::{
    event_log::{HostEvent, Verdict},
    refusal::Refusal,
    trap::TrappedRequest,
};
pub(crate) use self::{
    resolve::{Resolve, SystemResolver},
    secrets::{MaskedSecret, new_placeholder},
    tls::CertificateAuthority,
    trap::Trap,
};

/// Why the proxy cannot start. No variant contains a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ProxyError {
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    Random,
    /// The certificate authority of the run could not be created.
    #[error("the certificate authority of the run cannot be created")]
    Certificate(#[from] rcgen::Error),
    /// TLS could not be set up.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// The listener or its thread could not be set up.
    #[error("the proxy cannot be started")]
    Start(#[from] io::Error),
}

/// The configuration of a proxy.
#[derive(Debug)]
pub(crate) struct ProxySettings {
    /// The hosts, methods and paths that requests may reach; all other requests are refused.
    pub(crate) grants: Vec<HostGrant>,
    /// Receives every request instead of the network, if set.
    pub(crate) trap: Option<Trap>,
    /// The secrets that replace placeholders in requests.
    pub(crate) secrets: Vec<MaskedSecret>,
    /// The certificate authority that the program trusts.
    pub(crate) authority: CertificateAuthority,
    /// Resolves host names to addresses.
    pub(crate) resolver: Box<dyn Resolve>,
    /// Root certificates that are trusted besides those of the system.
    pub(crate) extra_certificates: Vec<CertificateDer<'static>>,
}

/// A running proxy.
#[derive(Debug)]
pub(crate) struct Proxy {
    state: Arc<ProxyState>,
    /// The listening socket, as the only type of the standard library that can shut a socket down.
    listener: TcpStream,
    accepting: Option<JoinHandle<()>>,
}

/// The data that all connections share.
#[derive(Debug)]
struct ProxyState {
    grants: Vec<HostGrant>,
    trap: Option<Trap>,
    secrets: Secrets,
    authority: CertificateAuthority,
    resolver: Box<dyn Resolve>,
    host_verifier: HostVerifier,
    connections: Arc<Connections>,
    bandwidth: Bandwidth,
    events: Mutex<EventLog>,
}

impl ProxyState {
    /// Waits until the data rate of the run permits this many bytes.
    fn wait_for_bandwidth(&self, bytes: usize) {
        self.bandwidth.wait_for(bytes, &self.connections);
    }

    /// Records the verdict about a request; only the first verdict of each request counts.
    fn record(&self, summary: &mut RequestSummary, verdict: Verdict) {
        if !std::mem::replace(&mut summary.recorded, true) {
            // If the program learned a secret value, it must not be able to write the value into
            // the record.
            summary.path =
                String::from_utf8_lossy(&self.secrets.hide(summary.path.as_bytes())).into();
            summary.host =
                String::from_utf8_lossy(&self.secrets.hide(summary.host.as_bytes())).into();
            self.events.lock().unwrap_or_else(PoisonError::into_inner).add(summary, verdict);
        }
    }
}

impl Proxy {
    /// Starts to accept connections.
    pub(crate) fn start(
        listener: TcpListener,
        settings: ProxySettings,
    ) -> Result<Self, ProxyError> {
        let ProxySettings { grants, trap, secrets, authority, resolver, extra_certificates } =
            settings;
        let state = Arc::new(ProxyState {
            grants,
            trap,
            secrets: Secrets::new(secrets),
            authority,
            resolver,
            host_verifier: HostVerifier::new(extra_certificates),
            connections: Arc::default(),
            bandwidth: Bandwidth::default(),
            events: Mutex::default(),
        });
        listener.set_nonblocking(false)?;
        let handle = TcpStream::from(OwnedFd::from(listener.try_clone()?));
        let accepting = thread::Builder::new().name("savoir-proxy".to_owned()).spawn({
            let state = Arc::clone(&state);
            move || accept(&listener, &state)
        })?;
        Ok(Self { state, listener: handle, accepting: Some(accepting) })
    }

    /// Closes all connections and returns the recorded events and the trapped requests. Takes
    /// [`limits::PROXY_STOP_TIMEOUT`] at most.
    pub(crate) fn stop(mut self) -> (Vec<HostEvent>, Vec<TrappedRequest>) {
        self.close();
        let events = self.state.events.lock().unwrap_or_else(PoisonError::into_inner).take();
        (events, self.state.trap.as_ref().map(Trap::take).unwrap_or_default())
    }

    fn close(&mut self) {
        let Some(accepting) = self.accepting.take() else { return };
        // On Linux this wakes up the accepting thread.
        let mut woken = self.listener.shutdown(Shutdown::Both).is_ok();
        self.state.connections.stop(limits::PROXY_STOP_TIMEOUT);
        if !woken {
            // Elsewhere a connection does.
            woken = self.listener.local_addr().and_then(TcpStream::connect).is_ok();
        }
        if woken {
            // The thread has nothing left to wait for, and its result does not matter.
            let _ = accepting.join();
        }
    }
}

impl Drop for Proxy {
    /// Closes the proxy even if the supervisor fails halfway, so that no connection to the network
    /// remains.
    fn drop(&mut self) {
        self.close();
    }
}

/// Starts a thread for each connection, until the listener is shut down.
fn accept(listener: &TcpListener, state: &Arc<ProxyState>) {
    loop {
        let stream = match listener.accept() {
            _ if state.connections.is_stopping() => return,
            Ok((stream, _)) => stream,
            // The listener was shut down.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
            // No descriptors or memory at the moment, or the client has already disconnected.
            Err(_) => {
                thread::sleep(Duration::from_millis(10));
                continue;
            }
        };
        let Some(slot) = state.connections.take_slot() else {
            refuse_connection(state, &stream);
            continue;
        };
        let worker = Arc::clone(state);
        // If no thread can be started, the connection is closed and its slot is free again.
        let _ = thread::Builder::new().name("savoir-request".to_owned()).spawn(move || {
            serve::serve(&worker, stream);
            drop(slot);
        });
    }
}

fn refuse_connection(state: &ProxyState, mut stream: &TcpStream) {
    let reason = Refusal::TooManyConnections;
    state.record(&mut RequestSummary::default(), Verdict::Refused { reason });
    let refused = RefusalResponse::new(reason, "too many concurrent connections");
    // The buffer of a new socket has room for this answer; if not, the proxy does not wait.
    let _ = stream.set_nonblocking(true);
    let _ = stream.write_all(&refused.to_http());
}

#[cfg(test)]
mod tests;
