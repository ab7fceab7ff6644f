//! Tests the proxy from the view of a program: real sockets, real TLS, and local hosts.

mod clients;
mod hostile;
mod masking;
mod origin;
mod plain;
mod trap;
mod tunnel;

use std::{
    collections::HashMap,
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject};

use self::origin::Origin;
use super::*;
use crate::policy::{MethodGroup, Scheme, Secret};

const MARK: &str = "savoir-masked-00112233445566778899aabbccddeeff";
const VALUE: &str = "the-real/value+1";

/// A resolver with prepared answers: each lookup returns the next one, and the last one is
/// repeated. All other names resolve to the loopback address.
#[derive(Clone, Debug, Default)]
struct Names {
    prepared: Arc<Mutex<HashMap<String, Vec<Vec<IpAddr>>>>>,
    facts: Arc<Mutex<Vec<String>>>,
}

impl Resolve for Names {
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.facts.lock().unwrap().push(name.to_owned());
        match self.prepared.lock().unwrap().get_mut(name) {
            None => Ok(vec![Ipv4Addr::LOCALHOST.into()]),
            Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
            Some(answers) => Ok(answers[0].clone()),
        }
    }
}

/// A running proxy with its resolver and certificate authority.
struct Run {
    proxy: Proxy,
    address: SocketAddr,
    names: Names,
    pem: String,
}

impl Run {
    fn new(grants: Vec<HostGrant>) -> Self {
        Self::with(grants, Vec::new(), Vec::new())
    }

    /// A proxy with a trap, which sends nothing.
    fn trap() -> Self {
        Self::of(Vec::new(), Some(Trap::default()), Vec::new(), Vec::new())
    }

    fn with(
        grants: Vec<HostGrant>,
        secrets: Vec<MaskedSecret>,
        extra_certificates: Vec<CertificateDer<'static>>,
    ) -> Self {
        Self::of(grants, None, secrets, extra_certificates)
    }

    fn of(
        grants: Vec<HostGrant>,
        trap: Option<Trap>,
        secrets: Vec<MaskedSecret>,
        extra_certificates: Vec<CertificateDer<'static>>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let names = Names::default();
        let authority = CertificateAuthority::new().unwrap();
        let pem = authority.certificate_pem().to_owned();
        let resolver = Box::new(names.clone());
        let settings =
            ProxySettings { grants, trap, secrets, authority, resolver, extra_certificates };
        Self { proxy: Proxy::start(listener, settings).unwrap(), address, names, pem }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    /// Sends bytes, and reads the response until the connection is closed.
    fn talk(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect();
        stream.write_all(bytes.as_ref()).unwrap();
        read_all(&mut stream)
    }

    /// Opens a TLS tunnel, as a client that trusts the certificate authority of the run.
    fn tunnel(&self, endpoint: &str, sni: &str) -> StreamOwned<ClientConnection, TcpStream> {
        let mut stream = self.connect();
        write!(stream, "CONNECT {endpoint} HTTP/1.1\r\nHost: {endpoint}\r\n\r\n").unwrap();
        let mut answer = [0; 39];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer.as_slice(), b"HTTP/1.1 200 Connection established\r\n\r\n");
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(origin::provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(sni.to_owned()).unwrap();
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream)
    }

    fn talk_inside(&self, endpoint: &str, bytes: impl AsRef<[u8]>) -> String {
        let host = endpoint.rsplit_once(':').unwrap().0.trim_matches(['[', ']']);
        let mut stream = self.tunnel(endpoint, host);
        stream.write_all(bytes.as_ref()).unwrap();
        read_all(&mut stream)
    }

    fn facts(&self) -> Vec<String> {
        self.names.facts.lock().unwrap().clone()
    }

    /// Stops the proxy, and returns its events as short lines.
    fn events(self) -> Vec<String> {
        let line = |event: HostEvent| {
            let verdict = match event.verdict {
                Verdict::Allowed => "allowed".to_owned(),
                Verdict::Trapped => "caught".to_owned(),
                Verdict::Refused { reason } => {
                    serde_json::to_value(reason).unwrap().as_str().unwrap().to_owned()
                }
            };
            format!("{} {}{} {verdict} {}", event.method, event.host, event.path, event.count)
        };
        self.proxy.stop().0.into_iter().map(line).collect()
    }
}

fn read_all(stream: &mut impl Read) -> String {
    let mut out = Vec::new();
    match stream.read_to_end(&mut out) {
        Ok(_) => {}
        // A connection that is closed without a TLS close message is acceptable, because tests
        // compare the bytes.
        Err(error) => assert!(
            matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset),
            "{error}"
        ),
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or(answer)
}

/// A grant for a host on the loopback address.
fn grant(methods: MethodGroup, host: &str, port: u16) -> HostGrant {
    HostGrant {
        host: host.parse().unwrap(),
        scheme: None,
        port: Some(port),
        path: String::new(),
        methods,
        allow_private_addresses: true,
    }
}

fn secret() -> Vec<MaskedSecret> {
    vec![MaskedSecret { placeholder: MARK.to_owned(), value: Secret::new(VALUE) }]
}

#[test]
fn stops_in_bounded_time() {
    let run = Run::new(Vec::new());
    let mut idle = run.connect();
    let mut half = run.connect();
    half.write_all(b"GET http://a").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let address = run.address;
    let start = Instant::now();
    run.proxy.stop();
    assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
    assert_eq!(read_all(&mut idle), "");
    assert_eq!(read_all(&mut half), "");
    assert!(TcpStream::connect(address).is_err());
}

/// A resolver that blocks for a long time, like an unreachable name server.
#[derive(Debug)]
struct Stuck;

impl Resolve for Stuck {
    fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        std::thread::sleep(Duration::from_secs(20));
        Err(io::ErrorKind::TimedOut.into())
    }
}

#[test]
fn stops_while_the_resolver_hangs() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let settings = ProxySettings {
        trap: None,
        grants: vec![grant(MethodGroup::Read, "a.example", 80)],
        secrets: Vec::new(),
        authority: CertificateAuthority::new().unwrap(),
        resolver: Box::new(Stuck),
        extra_certificates: Vec::new(),
    };
    let proxy = Proxy::start(listener, settings).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let start = Instant::now();
    proxy.stop();
    assert!(start.elapsed() < limits::PROXY_STOP_TIMEOUT * 2, "{:?}", start.elapsed());
}

#[test]
#[ignore = "prints times; run it with --release"]
#[expect(clippy::print_stderr, reason = "the times are its result")]
fn times() {
    CertificateAuthority::new().unwrap();
    let begin = Instant::now();
    for _ in 0..200 {
        CertificateAuthority::new().unwrap();
    }
    let authority = begin.elapsed() / 200;
    let (mut start, mut stop) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..200 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let settings = ProxySettings {
            trap: None,
            grants: vec![grant(MethodGroup::Read, "a.example", 80)],
            secrets: secret(),
            authority: CertificateAuthority::new().unwrap(),
            resolver: Box::new(SystemResolver),
            extra_certificates: Vec::new(),
        };
        let begin = Instant::now();
        let proxy = Proxy::start(listener, settings).unwrap();
        start += begin.elapsed() / 200;
        let begin = Instant::now();
        proxy.stop();
        stop += begin.elapsed() / 200;
    }
    eprintln!("Authority::new {authority:?}, Proxy::start {start:?}, Proxy::stop {stop:?}");
}
