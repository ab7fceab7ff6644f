//! A local web server that records requests.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// A recorded request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) line: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }
}

/// A server that answers everything with the same text. It lives as long as the tests.
pub(super) struct Server {
    pub(super) port: u16,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub(super) fn answering(text: &'static str) -> Self {
        Self::sending(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
            text.len()
        ))
    }

    pub(super) fn redirecting(to: &str) -> Self {
        Self::sending(format!(
            "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ))
    }

    fn sending(response: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Some(request) = read(&stream) {
                    noted.lock().expect("a list").push(request);
                    // Ignored, because the client may have disconnected.
                    let _ = (&stream).write_all(response.as_bytes());
                }
            }
        });
        Self { port, seen }
    }

    /// Host and port.
    pub(super) fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.authority())
    }

    pub(super) fn seen(&self) -> Vec<Request> {
        self.seen.lock().expect("a list").clone()
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut request = Request { line: line.trim_end().to_owned(), headers, body: String::new() };
    let length = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    request.body = String::from_utf8_lossy(&body).into_owned();
    Some(request)
}
