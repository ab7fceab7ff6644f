//! Compares `savoir serve` with its peers: 1,000 concurrent streams, the time to the first byte
//! next to a bare handler, and requests per second next to nginx.
//!
//! The last measurement needs nginx and wrk. All servers listen on loopback only.

#![allow(clippy::cast_precision_loss, clippy::print_stdout, clippy::unwrap_used)]

use std::{
    convert::Infallible,
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    body::Body,
    extract::State,
    http::header,
    response::Response,
    routing::{get, post},
};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::watch;

const PASSWORD: &str = "correct horse battery";
const SKILL: &str = "---\nname: bench\ndescription: Says hello\ninputs:\n  - name: who\n    required: true\nmodel:\n  temperature: 0\n---\nSay hello to {{who}}.\n";

fn main() {
    let mut words = env::args().skip(1);
    let streams: usize = words.next().and_then(|word| word.parse().ok()).unwrap_or(1000);
    let requests: usize = words.next().and_then(|word| word.parse().ok()).unwrap_or(2000);
    let model = Model::start();
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), model.address);
    concurrent_streams(&server, &model, streams);
    first_byte(&server, requests);
    beside_nginx(&server, folder.path());
}

/// A fake model server: it sends one token, then waits for `go_on` before it ends the response.
struct Model {
    address: SocketAddr,
    go_on: watch::Sender<bool>,
    waiting: Arc<AtomicUsize>,
}

#[derive(Clone)]
struct ModelState {
    go_on: watch::Receiver<bool>,
    waiting: Arc<AtomicUsize>,
}

impl Model {
    fn start() -> Self {
        let (go_on, receiver) = watch::channel(true);
        let waiting = Arc::new(AtomicUsize::new(0));
        let state = ModelState { go_on: receiver, waiting: Arc::clone(&waiting) };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let router = Router::new()
                    .route("/v1/chat/completions", post(complete))
                    .route("/v1/models", get(models))
                    .with_state(state);
                axum::serve(listener, router).await.unwrap();
            });
        });
        Self { address, go_on, waiting }
    }
}

async fn models() -> Json<Value> {
    Json(json!({"object": "list", "data": [{"id": "bench", "object": "model"}]}))
}

async fn complete(State(state): State<ModelState>) -> Response {
    let piece = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({"id": "x", "object": "chat.completion.chunk", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let first = piece(json!({"content": "Hello"}), Value::Null);
    let last = format!("{}data: [DONE]\n\n", piece(json!({}), json!("stop")));
    let mut go_on = state.go_on.clone();
    let end = async move {
        state.waiting.fetch_add(1, Ordering::SeqCst);
        go_on.wait_for(|go_on| *go_on).await.unwrap();
        state.waiting.fetch_sub(1, Ordering::SeqCst);
        last
    };
    let pieces = futures::stream::once(async { first }).chain(futures::stream::once(end));
    let body = Body::from_stream(pieces.map(Ok::<_, Infallible>));
    Response::builder().header(header::CONTENT_TYPE, "text/event-stream").body(body).unwrap()
}

/// `savoir serve` with a logged-in administrator.
struct Server {
    child: Child,
    address: SocketAddr,
    token: String,
}

impl Server {
    fn start(folder: &Path, model: SocketAddr) -> Self {
        let data = folder.join("data");
        let mut create = Command::new(program("savoir"))
            .args(["admin", "create", "bench@example.com", "--data"])
            .arg(&data)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        writeln!(create.stdin.take().unwrap(), "{PASSWORD}").unwrap();
        assert!(create.wait().unwrap().success());
        let mut child = Command::new(program("savoir"))
            .args(["serve", "--address", "127.0.0.1:0", "--log-level", "error"])
            .args(["--rate-limit", "off", "--data"])
            .arg(&data)
            .env("OPENAI_BASE_URL", format!("http://{model}/v1"))
            .env("OPENAI_MODEL", "bench")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| {
                let (_, rest) = line.split_once("http://")?;
                rest.split(['/', ' ']).next()?.parse().ok()
            })
            .unwrap();
        thread::spawn(move || lines.for_each(drop));
        let mut server = Self { child, address, token: String::new() };
        let login = json!({"email": "bench@example.com", "password": PASSWORD});
        let answer = server.ask("POST", "/api/v1/auth/login", &login.to_string());
        let token = answer["token"].as_str().unwrap().to_owned();
        server.token = token;
        let skill = json!({"name": "bench", "content": SKILL});
        server.ask("POST", "/api/v1/skills", &skill.to_string());
        server
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Value {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(self.request(method, path, body, "close").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
    }

    fn request(&self, method: &str, path: &str, body: &str, connection: &str) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nConnection: {connection}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        )
    }

    fn run_request(&self) -> String {
        self.request("POST", "/api/v1/skills/bench/run", r#"{"inputs":{"who":"you"}}"#, "close")
    }

    /// Resident memory in KiB.
    fn memory(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program(name: &str) -> PathBuf {
    env::current_exe().unwrap().with_file_name(name)
}

fn concurrent_streams(server: &Server, model: &Model, count: usize) {
    // Warm up: the first run allocates caches.
    assert!(run_to_end(server.address, &server.run_request()).contains("Hello"));
    thread::sleep(Duration::from_millis(500));
    let idle = server.memory();
    model.go_on.send(false).unwrap();
    let request = server.run_request();
    let began = Instant::now();
    let mut open: Vec<TcpStream> = (0..count)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    while model.waiting.load(Ordering::SeqCst) < count {
        assert!(began.elapsed() < Duration::from_mins(1), "not all streams were opened");
        thread::sleep(Duration::from_millis(5));
    }
    let opened = began.elapsed();
    let busy = server.memory();
    let mut times: Vec<Duration> = (0..200)
        .map(|_| {
            let began = Instant::now();
            run_to_end(
                server.address,
                "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            );
            began.elapsed()
        })
        .collect();
    times.sort();
    model.go_on.send(true).unwrap();
    let whole = open
        .iter_mut()
        .map(|stream| {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        })
        .filter(|text| text.contains("Skill execution completed successfully"))
        .count();
    println!(
        "{count} streams at once: opened in {:.2} s, {whole} ended well; {:.1} KiB each over the \
         idle process of {:.1} MiB; /health meanwhile: median {:.2} ms, p99 {:.2} ms.",
        opened.as_secs_f64(),
        (busy - idle) / count as f64,
        idle / 1024.0,
        milliseconds(percentile(&times, 50)),
        milliseconds(percentile(&times, 99)),
    );
}

fn run_to_end(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn first_byte(server: &Server, requests: usize) {
    let mut bare =
        Command::new(program("peer-bare-server")).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(bare.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let bare_address: SocketAddr = line.trim().parse().unwrap();
    let ours = server.run_request();
    let theirs = ours.replace("/api/v1/skills/bench/run", "/run");
    let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
    for _ in 0..requests {
        our_times.push(time_to_first_event(server.address, &ours));
        their_times.push(time_to_first_event(bare_address, &theirs));
    }
    let _ = bare.kill();
    let _ = bare.wait();
    our_times.sort();
    their_times.sort();
    let micro = |times: &[Duration]| percentile(times, 50).as_secs_f64() * 1e6;
    println!(
        "First byte of {requests} runs: median {:.0} µs, bare handler {:.0} µs, ratio {:.2}.",
        micro(&our_times),
        micro(&their_times),
        micro(&our_times) / micro(&their_times)
    );
}

/// Time from the request to the first byte of the first event, on a new connection.
fn time_to_first_event(address: SocketAddr, request: &str) -> Duration {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let began = Instant::now();
    stream.write_all(request.as_bytes()).unwrap();
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "no event: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..count]);
        if seen.windows(6).any(|window| window == b"event:") {
            break;
        }
    }
    let took = began.elapsed();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    took
}

fn beside_nginx(server: &Server, folder: &Path) {
    if Command::new("wrk").arg("-v").output().is_err() {
        println!("Requests in a second: skipped, wrk is not installed.");
        return;
    }
    let detail = server.ask("GET", "/api/v1/skills/bench", "");
    fs::write(folder.join("bench"), detail.to_string()).unwrap();
    let Some(nginx) = Nginx::start(folder) else {
        println!("Requests in a second: skipped, nginx is not installed.");
        return;
    };
    let ours = format!("http://{}/api/v1/skills/bench", server.address);
    let theirs = format!("http://{}/bench", nginx.address);
    let header = format!("Authorization: Bearer {}", server.token);
    let (mut our_best, mut their_best) = (0.0_f64, 0.0_f64);
    for _ in 0..3 {
        our_best = our_best.max(wrk(&ours, &header));
        their_best = their_best.max(wrk(&theirs, &header));
    }
    drop(nginx);
    println!(
        "GET of a skill, requests in a second: {our_best:.0}, nginx with the same bytes \
         {their_best:.0}, ratio {:.2}.",
        our_best / their_best
    );
}

struct Nginx {
    child: Child,
    address: SocketAddr,
}

impl Nginx {
    fn start(folder: &Path) -> Option<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let here = folder.display();
        let config = format!(
            "daemon off; worker_processes 2; error_log {here}/error.log; pid {here}/nginx.pid;\n\
             events {{ worker_connections 1024; }}\n\
             http {{ access_log off; default_type application/json; sendfile on;\n\
             client_body_temp_path {here}/b; proxy_temp_path {here}/p; fastcgi_temp_path {here}/f;\n\
             uwsgi_temp_path {here}/u; scgi_temp_path {here}/s;\n\
             server {{ listen 127.0.0.1:{port}; root {here}; }} }}\n"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, config).unwrap();
        fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let child = Command::new("nginx")
            .arg("-c")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        for _ in 0..100 {
            if TcpStream::connect(address).is_ok() {
                return Some(Self { child, address });
            }
            thread::sleep(Duration::from_millis(20));
        }
        None
    }
}

impl Drop for Nginx {
    /// Sends SIGTERM, because after SIGKILL the workers of nginx would keep running.
    fn drop(&mut self) {
        let id = self.child.id().to_string();
        let _ = Command::new("kill").arg(id).status();
        let _ = self.child.wait();
    }
}

fn wrk(url: &str, header: &str) -> f64 {
    let output =
        Command::new("wrk").args(["-t2", "-c64", "-d4s", "-H", header, url]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("Non-2xx"), "{text}");
    let line = text.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
    line.unwrap_or_else(|| panic!("{text}")).trim().parse().unwrap()
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() - 1) * percent / 100]
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
