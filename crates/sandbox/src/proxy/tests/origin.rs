//! Runs a local host that records the requests that it receives.

use std::{
    io::{BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ServerConfig, ServerConnection, StreamOwned, crypto::CryptoProvider};
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::proxy::{
    body::{Body, Framing},
    head::{self, Headers},
};

pub(super) struct Origin {
    pub(super) port: u16,
    pub(super) certificate: Option<CertificateDer<'static>>,
    received: Arc<Mutex<Vec<String>>>,
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

pub(super) const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

impl Origin {
    /// Starts a host that answers every request with these bytes.
    pub(super) fn plain(answer: impl Into<String>) -> Self {
        Self::start(None, answer.into())
    }

    /// Starts a host with TLS and a certificate for these names.
    pub(super) fn tls(names: &[&str], answer: impl Into<String>) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
        let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key.into())
            .unwrap();
        let certificate = cert.der().clone();
        let origin = Self::start(Some(Arc::new(config)), answer.into());
        Self { certificate: Some(certificate), ..origin }
    }

    fn start(tls: Option<Arc<ServerConfig>>, answer: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&received);
        // This thread lives as long as the test process, and waits for connections.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                let (tls, kept, answer) = (tls.clone(), Arc::clone(&kept), answer.clone());
                thread::spawn(move || match tls {
                    None => serve(&stream, &kept, &answer),
                    Some(config) => {
                        let connection = ServerConnection::new(config).unwrap();
                        let mut stream = StreamOwned::new(connection, stream);
                        serve_on(&mut stream, &kept, &answer);
                        stream.conn.send_close_notify();
                        let _ = stream.flush();
                    }
                });
            }
        });
        Self { port, certificate: None, received }
    }

    /// The received requests with their bodies, in the order of their completion.
    pub(super) fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }

    pub(super) fn trust(&self) -> Vec<CertificateDer<'static>> {
        self.certificate.iter().cloned().collect()
    }
}

fn serve(mut stream: &TcpStream, kept: &Mutex<Vec<String>>, answer: &str) {
    serve_on(&mut stream, kept, answer);
}

fn serve_on(stream: &mut (impl Read + Write), kept: &Mutex<Vec<String>>, answer: &str) {
    let mut reader = BufReader::new(stream);
    // Connections without a request are recorded, too.
    let Ok(mut text) = head::read(&mut reader, |_| Ok(())) else {
        kept.lock().unwrap().push("nothing".to_owned());
        return;
    };
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let mut parsed = httparse::Request::new(&mut headers);
    parsed.parse(&text).unwrap();
    let framing = Framing::of(&Headers::new(parsed.headers)).unwrap().unwrap_or(Framing::Empty);
    let mut body = Body::new(framing);
    let mut buffer = [0; 4096];
    loop {
        match body.read(&mut reader, &mut buffer) {
            Ok(0) => break,
            Ok(read) => text.extend_from_slice(&buffer[..read]),
            Err(_) => {
                text.extend_from_slice(b"[cut]");
                break;
            }
        }
    }
    kept.lock().unwrap().push(String::from_utf8_lossy(&text).into_owned());
    let _ = reader.get_mut().write_all(answer.as_bytes());
    let _ = reader.get_mut().flush();
}
