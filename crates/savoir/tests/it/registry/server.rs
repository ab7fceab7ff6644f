//! A small server that returns prepared responses and records requests.

use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::Value;

/// A recorded request.
#[derive(Clone, Debug)]
pub(super) struct RecordedRequest {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) token: Option<String>,
    pub(super) body: Vec<u8>,
}

impl RecordedRequest {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

type PreparedResponses = HashMap<(String, String), (u16, Vec<u8>)>;

#[derive(Default)]
struct Shared {
    answers: Mutex<PreparedResponses>,
    seen: Mutex<Vec<RecordedRequest>>,
}

pub(super) struct MockRegistry {
    address: String,
    shared: Arc<Shared>,
}

impl MockRegistry {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let shared = Arc::new(Shared::default());
        let all = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = all.clone();
                thread::spawn(move || answer(stream, &shared));
            }
        });
        Self { address, shared }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn get(&self, path: &str, body: &Value) {
        self.on("GET", path, 200, body);
    }

    pub(super) fn on(&self, method: &str, path: &str, status: u16, body: &Value) {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.bytes(method, path, status, bytes);
    }

    pub(super) fn bytes(&self, method: &str, path: &str, status: u16, bytes: Vec<u8>) {
        let mut answers = self.shared.answers.lock().expect("answers");
        answers.insert((method.to_owned(), path.to_owned()), (status, bytes));
    }

    /// Appends to a prepared response.
    pub(super) fn append(&self, method: &str, path: &str, text: &str) {
        let mut answers = self.shared.answers.lock().expect("answers");
        let key = (method.to_owned(), path.to_owned());
        answers.entry(key).or_insert((200, Vec::new())).1.extend_from_slice(text.as_bytes());
    }

    /// The requests since the last call.
    pub(super) fn seen(&self) -> Vec<RecordedRequest> {
        std::mem::take(&mut *self.shared.seen.lock().expect("questions"))
    }
}

fn answer(mut stream: TcpStream, shared: &Shared) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let (mut length, mut token) = (0, None);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "authorization" => token = Some(value.trim_start_matches("Bearer ").to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let asked =
        RecordedRequest { method, path: path.to_owned(), query: query.to_owned(), token, body };
    let key = (asked.method.clone(), asked.path.clone());
    shared.seen.lock().ok()?.push(asked);
    let known = shared.answers.lock().ok()?.get(&key).cloned();
    let (status, body) = known.unwrap_or((404, Vec::new()));
    let size = body.len();
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&body).ok()
}
