//! A proxy between a program and a local server that records requests.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::Value;

/// A listening port without a target.
pub(super) struct Relay {
    listener: TcpListener,
    pub(super) address: String,
}

/// The bodies of the recorded requests, oldest first.
#[derive(Clone, Default)]
pub(super) struct RelayedRequests(Arc<Mutex<Vec<Value>>>);

impl RelayedRequests {
    pub(super) fn all(&self) -> Vec<Value> {
        self.0.lock().expect("a lock").clone()
    }
}

impl Relay {
    pub(super) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        Self { listener, address }
    }

    /// Forwards everything to a server, with an additional header for clients that cannot send it.
    pub(super) fn forward_to(self, server: &str, header: Option<String>) -> RelayedRequests {
        let relayed_requests = RelayedRequests::default();
        let (server, heard) = (server.to_owned(), relayed_requests.clone());
        let header = header.map(|header| format!("{header}\r\n")).unwrap_or_default();
        thread::spawn(move || {
            for client in self.listener.incoming().flatten() {
                let (server, header, heard) = (server.clone(), header.clone(), heard.clone());
                // A disconnected client only ends its thread.
                thread::spawn(move || forward(client, &server, &header, &heard));
            }
        });
        relayed_requests
    }
}

/// Forwards one request per connection, so that every header can be recorded.
fn forward(
    mut client: TcpStream,
    server: &str,
    more: &str,
    relayed_requests: &RelayedRequests,
) -> io::Result<()> {
    let mut from = BufReader::new(client.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if line.trim_end().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        match name.to_ascii_lowercase().as_str() {
            "connection" => continue,
            "content-length" => length = value.trim().parse().expect("a length"),
            "transfer-encoding" => panic!("a body without a length: {head}{line}"),
            _ => {}
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    if let Ok(body) = serde_json::from_slice(&body) {
        relayed_requests.0.lock().expect("a lock").push(body);
    }
    let mut server = TcpStream::connect(server)?;
    write!(server, "{head}{more}connection: close\r\n\r\n")?;
    server.write_all(&body)?;
    io::copy(&mut server, &mut client)?;
    client.shutdown(Shutdown::Both)
}
