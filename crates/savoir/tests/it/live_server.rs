//! Starts `savoir serve` and a fake model provider for tests, with a minimal HTTP client for both.

use std::{
    collections::VecDeque,
    fmt::Write as _,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Child, ChildStderr, Command, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::Sandbox;

/// Time after which a test fails.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// An `OpenAI`-compatible server that answers every request in the same way.
pub(crate) struct Provider {
    pub(crate) url: String,
    questions: Arc<Mutex<Vec<Value>>>,
}

/// How a provider answers a request.
#[derive(Clone, Copy)]
pub(crate) enum ProviderBehavior {
    /// Sends this text in pieces.
    Says(&'static [&'static str]),
    /// Sends this text with a pause before each piece.
    Slowly(&'static [&'static str]),
    /// Sends text slowly and never ends.
    Dawdles,
    /// Refuses the request.
    Refuses,
    /// Requests one tool call after the other, each with name and arguments, and then sends this
    /// text.
    Calls(&'static [(&'static str, &'static str)], &'static [&'static str]),
    /// Calls a function to get the answer.
    Script(fn(&Value) -> ScriptedReply),
}

/// The answer of a [`ProviderBehavior::Script`].
pub(crate) enum ScriptedReply {
    Says(String),
    /// A tool call with name and arguments.
    Calls(&'static str, String),
}

impl Provider {
    pub(crate) fn new(behavior: ProviderBehavior) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let questions = Arc::new(Mutex::new(Vec::new()));
        let asked = Arc::clone(&questions);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let asked = Arc::clone(&asked);
                // A disconnected client only ends its thread.
                thread::spawn(move || answer(stream, behavior, &asked));
            }
        });
        Self { url, questions }
    }

    /// The bodies of all requests, oldest first.
    pub(crate) fn questions(&self) -> Vec<Value> {
        self.questions.lock().expect("a lock").clone()
    }

    /// Configures a command to use this provider.
    pub(crate) fn of(&self, command: &mut Command) {
        command
            .env("OPENAI_BASE_URL", &self.url)
            .env("NO_PROXY", "127.0.0.1")
            .env("OPENAI_API_KEY", "sk-of-the-tests")
            .env("OPENAI_MODEL", "echo-1");
    }
}

fn answer(stream: TcpStream, behavior: ProviderBehavior, asked: &Mutex<Vec<Value>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut out = stream;
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let length = read_headers(&mut reader)?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if line.starts_with("GET") {
        let list = json!({"object": "list", "data": [{"id": "echo-1", "object": "model"}]});
        return reply(&mut out, "200 OK", &list);
    }
    let body: Value = serde_json::from_slice(&body).ok()?;
    let done = answers_in(&body);
    let scripted = match behavior {
        ProviderBehavior::Script(script) => Some(script(&body)),
        _ => None,
    };
    asked.lock().ok()?.push(body);
    let said;
    let words = match behavior {
        ProviderBehavior::Script(_) => match scripted? {
            ScriptedReply::Calls(name, arguments) => {
                return ask_for(&mut out, (name, &arguments));
            }
            ScriptedReply::Says(text) => {
                said = text;
                vec![said.as_str()]
            }
        },
        ProviderBehavior::Refuses => {
            let error = json!({"error": {"message": "the key is wrong", "type": "auth"}});
            return reply(&mut out, "401 Unauthorized", &error);
        }
        ProviderBehavior::Calls(calls, _) if done < calls.len() => {
            return ask_for(&mut out, calls[done]);
        }
        ProviderBehavior::Says(words)
        | ProviderBehavior::Slowly(words)
        | ProviderBehavior::Calls(_, words) => words.to_vec(),
        ProviderBehavior::Dawdles => vec!["and so on "; 600],
    };
    out.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
    )
    .ok()?;
    for word in words {
        if matches!(behavior, ProviderBehavior::Slowly(_)) {
            thread::sleep(Duration::from_millis(400));
        }
        let delta = json!({"choices": [{"index": 0, "delta": {"content": word}}]});
        write!(out, "data: {delta}\n\n").ok()?;
        out.flush().ok()?;
        if matches!(behavior, ProviderBehavior::Dawdles) {
            thread::sleep(Duration::from_millis(50));
        }
    }
    let end = json!({
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    });
    write!(out, "data: {end}\n\ndata: [DONE]\n\n").ok()
}

/// The number of tool results in a request.
fn answers_in(question: &Value) -> usize {
    let messages = question["messages"].as_array().into_iter().flatten();
    messages.filter(|message| message["role"] == "tool").count()
}

fn ask_for(out: &mut TcpStream, (name, arguments): (&str, &str)) -> Option<()> {
    let call =
        json!({"index": 0, "id": "call", "function": {"name": name, "arguments": arguments}});
    let delta = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    write!(
        out,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
         data: {delta}\n\ndata: {end}\n\ndata: [DONE]\n\n"
    )
    .ok()
}

fn read_headers(reader: &mut impl std::io::BufRead) -> Option<usize> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok()?;
            }
            Some(_) => {}
            None => return Some(length),
        }
    }
}

fn reply(out: &mut TcpStream, status: &str, body: &Value) -> Option<()> {
    let body = body.to_string();
    write!(
        out,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )
    .ok()
}

/// A running `savoir serve`.
pub(crate) struct TestServer {
    child: Child,
    pub(crate) address: String,
    /// The output up to the line that begins with `try`.
    pub(crate) greeting: String,
    lines: mpsc::Receiver<String>,
}

impl TestServer {
    /// Starts a server on a free port and waits for its greeting.
    pub(crate) fn start(sandbox: &Sandbox, options: &[&str], provider: Option<&Provider>) -> Self {
        Self::start_with(sandbox, options, |command| {
            if let Some(provider) = provider {
                provider.of(command);
            }
        })
    }

    /// Like [`Self::start`], with changes to the command.
    pub(crate) fn start_with(
        sandbox: &Sandbox,
        options: &[&str],
        change: impl FnOnce(&mut Command),
    ) -> Self {
        let words = [&["serve", "--address", "127.0.0.1:0"], options].concat();
        let mut command = sandbox.command(&words);
        change(&mut command);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("savoir starts");
        let lines = lines(child.stderr.take().expect("standard error"));
        let mut greeting = String::new();
        loop {
            let line =
                lines.recv_timeout(REPLY_TIMEOUT).unwrap_or_else(|_| panic!("only: {greeting}"));
            let _ = writeln!(greeting, "{line}");
            if line.starts_with("try ") {
                break;
            }
        }
        let address =
            greeting.split("http://").nth(1).and_then(|rest| rest.split_whitespace().next());
        let address = address.expect("an address").to_owned();
        Self { child, address, greeting, lines }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let killed = Command::new("kill").args([name, &id]).status().expect("kill runs");
        assert!(killed.success());
    }

    /// Waits until the server ends; returns the exit code and the output after the greeting.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a status") {
                break status;
            }
            assert!(began.elapsed() < REPLY_TIMEOUT, "the server does not stop");
            thread::sleep(Duration::from_millis(20));
        };
        let printed: Vec<String> = self.lines.iter().collect();
        (status.code(), printed.join("\n"))
    }

    /// Sends a request and reads the whole response.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        token: &str,
        body: Option<&Value>,
    ) -> HttpResponse {
        Self::try_ask(&self.address, method, path, token, body).expect("an answer")
    }

    /// Like [`Self::ask`]; `None` if the server is not reachable.
    pub(crate) fn try_ask(
        address: &str,
        method: &str,
        path: &str,
        token: &str,
        body: Option<&Value>,
    ) -> Option<HttpResponse> {
        let mut answer = request(address, method, path, token, body)?;
        let mut rest = String::new();
        answer.reader.read_to_string(&mut rest).ok()?;
        let body = unchunked(&answer.head, &rest);
        Some(HttpResponse { status: answer.status, head: answer.head, body })
    }

    /// Sends a request and returns the response as a stream.
    pub(crate) fn send_streaming(
        &self,
        method: &str,
        path: &str,
        token: &str,
        body: Option<&Value>,
    ) -> IncomingRequest {
        request(&self.address, method, path, token, body).expect("an answer")
    }

    /// Creates an account with `savoir admin`, and logs in.
    pub(crate) fn log_in(&self, sandbox: &Sandbox) -> String {
        create_account(sandbox, "ada@example.com", "secret-word");
        let body = json!({"email": "ada@example.com", "password": "secret-word"});
        let answer = self.ask("POST", "/api/v1/auth/login", "", Some(&body));
        assert_eq!(answer.status, 200, "{}", answer.body);
        let token = answer.json()["token"].as_str().map(str::to_owned);
        token.unwrap_or_else(|| panic!("no token: {}", answer.body))
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `savoir admin create` with a password on standard input.
pub(crate) fn create_account(sandbox: &Sandbox, email: &str, password: &str) -> String {
    let mut child = sandbox
        .command(&["admin", "create", email])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("savoir starts");
    let mut input = child.stdin.take().expect("standard input");
    // Ignored, because the command may fail before it reads.
    let _ = writeln!(input, "{password}");
    drop(input);
    let output = child.wait_with_output().expect("savoir ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

fn lines(stderr: ChildStderr) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// A complete response.
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    /// The headers in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl HttpResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// A response whose body is still being received.
pub(crate) struct IncomingRequest {
    pub(crate) status: u16,
    head: String,
    pub(crate) reader: BufReader<TcpStream>,
}

/// Sends a request. A body that is a JSON string is sent as a form.
fn request(
    address: &str,
    method: &str,
    path: &str,
    token: &str,
    body: Option<&Value>,
) -> Option<IncomingRequest> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(REPLY_TIMEOUT)).ok()?;
    let (kind, body) = match body {
        Some(Value::String(form)) => ("application/x-www-form-urlencoded", form.clone()),
        Some(body) => ("application/json", body.to_string()),
        None => ("application/json", String::new()),
    };
    let bearer =
        if token.is_empty() { String::new() } else { format!("authorization: Bearer {token}\r\n") };
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\n{bearer}content-type: {kind}\r\n\
         x-savoir-app: 1\r\naccept: */*\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .ok()?;
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line.to_ascii_lowercase());
    }
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    Some(IncomingRequest { status, head, reader })
}

/// The body without the framing of chunked encoding.
fn unchunked(head: &str, body: &str) -> String {
    if !head.contains("transfer-encoding: chunked") {
        return body.to_owned();
    }
    let (mut text, mut rest) = (String::new(), body);
    while let Some((length, tail)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).unwrap_or(0);
        if length == 0 || length > tail.len() {
            break;
        }
        text.push_str(&tail[..length]);
        rest = tail[length..].trim_start_matches("\r\n");
    }
    text
}

/// The events of a stream, in the format of `savoir run --json`.
pub(crate) fn events(stream: &str) -> VecDeque<Value> {
    let event = |frame: &str| {
        let name = frame.lines().find_map(|line| line.strip_prefix("event: "))?;
        let data = frame.lines().find_map(|line| line.strip_prefix("data: "))?;
        let data: Value = serde_json::from_str(data).expect("JSON");
        Some(json!({"event": name, "data": data}))
    };
    stream.split("\n\n").filter_map(event).collect()
}
