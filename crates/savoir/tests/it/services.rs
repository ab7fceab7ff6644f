//! Access to the services that `scripts/services.sh` starts, such as PostgreSQL and S3.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    thread,
    time::Duration,
};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};
use uuid::Uuid;

use crate::{
    live_server::{Provider, TestServer},
    support::{Sandbox, Transcript, repository},
};

/// The value of a variable that `scripts/services.sh` sets; prints what is skipped if it is
/// missing.
pub(crate) fn service(variable: &str, what: &str) -> Option<String> {
    let found = std::env::var(variable).ok().filter(|value| !value.is_empty());
    if found.is_none() {
        skipped(&format!("{what}, since {variable} is not set"));
    }
    found
}

/// Prints that a test is skipped.
#[expect(clippy::print_stderr, reason = "a test that was skipped must be seen")]
pub(crate) fn skipped(what: &str) {
    eprintln!("=== SKIPPED: {what} ===");
}

/// A separate database and bucket that several servers share.
pub(crate) struct RunEnvironment {
    pub(crate) sandbox: Sandbox,
    server: String,
    name: String,
    bucket: String,
    /// A proxy between the servers and the bucket.
    pub(crate) line: TcpProxy,
}

impl RunEnvironment {
    pub(crate) fn new() -> Option<Self> {
        let server = service("SAVOIR_TEST_POSTGRES", "servers on one PostgreSQL")?;
        let s3 = service("SAVOIR_TEST_S3", "servers on one bucket")?;
        let name = format!("test_{}", Uuid::new_v4().simple());
        execute(&server, &format!("CREATE DATABASE {name}"));
        let bucket = format!("test-{}", Uuid::new_v4().simple());
        let address = s3.strip_prefix("http://").expect("an address");
        let made = TestServer::try_ask(address, "PUT", &format!("/{bucket}"), "", None);
        assert_eq!(made.expect("an answer").status, 200);
        let line = TcpProxy::new(address);
        Some(Self { sandbox: Sandbox::new(), server, name, bucket, line })
    }

    fn database(&self) -> String {
        let (head, _) = self.server.rsplit_once('/').expect("a database");
        format!("{head}/{}", self.name)
    }

    /// The database and the storage, as options name them.
    pub(crate) fn place(&self) -> (String, String) {
        (self.database(), format!("s3://{}", self.bucket))
    }

    /// Runs a command that has access to the bucket.
    pub(crate) fn run(&self, sandbox: &Sandbox, args: &[&str]) -> Transcript {
        let mut command = sandbox.command(args);
        self.reaches_bucket(&mut command);
        Transcript::of(command)
    }

    fn reaches_bucket(&self, command: &mut Command) {
        command
            .env("AWS_ENDPOINT_URL", format!("http://{}", self.line.address))
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("AWS_REGION", "us-east-1")
            .env("NO_PROXY", "127.0.0.1");
    }

    pub(crate) fn server(&self, options: &[&str], provider: Option<&Provider>) -> TestServer {
        let (database, storage) = (self.database(), format!("s3://{}", self.bucket));
        let place = ["--database", &database, "--storage", &storage];
        TestServer::start_with(&self.sandbox, &[&place, options].concat(), |command| {
            self.reaches_bucket(command);
            if let Some(provider) = provider {
                provider.of(command);
            }
        })
    }

    /// A proxy to the database, for [`Self::server_through`].
    pub(crate) fn database_line(&self) -> TcpProxy {
        let (_, rest) = self.server.rsplit_once('@').expect("an address");
        TcpProxy::new(rest.split('/').next().expect("an address"))
    }

    /// Starts a server that connects to the database through a proxy.
    pub(crate) fn server_through(&self, line: &TcpProxy, options: &[&str]) -> TestServer {
        let (head, _) = self.server.rsplit_once('@').expect("an address");
        let database = format!("{head}@{}/{}", line.address, self.name);
        let place = ["--database", &database];
        TestServer::start(&self.sandbox, &[&place, options].concat(), None)
    }

    /// Closes all connections to the database; returns their number.
    pub(crate) fn cut_connections(&self) -> i64 {
        number(
            &self.server,
            &format!(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                 WHERE datname = '{}'",
                self.name
            ),
        )
    }

    /// The result of a database query that returns one number.
    pub(crate) fn number(&self, question: &str) -> i64 {
        number(&self.database(), question)
    }
}

impl Drop for RunEnvironment {
    fn drop(&mut self) {
        execute(&self.server, &format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

fn execute(server: &str, statement: &str) {
    block_on(async {
        let mut connection = PgConnection::connect(server).await.expect("PostgreSQL");
        let statement = sqlx::raw_sql(AssertSqlSafe(statement.to_owned()));
        statement.execute(&mut connection).await.expect("a result");
    });
}

fn number(server: &str, question: &str) -> i64 {
    block_on(async {
        let mut connection = PgConnection::connect(server).await.expect("PostgreSQL");
        let question = sqlx::query(AssertSqlSafe(question.to_owned()));
        question.fetch_one(&mut connection).await.expect("a row").get(0)
    })
}

/// A proxy to another server whose connections can be cut or paused.
pub(crate) struct TcpProxy {
    address: String,
    state: Arc<AtomicU8>,
}

const OPEN: u8 = 0;
const CUT: u8 = 1;
const HUNG: u8 = 2;
const READ_ONLY: u8 = 3;

impl TcpProxy {
    fn new(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (state, target) = (Arc::new(AtomicU8::new(OPEN)), target.to_owned());
        let now = Arc::clone(&state);
        thread::spawn(move || {
            // Accepted connections that are never answered.
            let mut silent = Vec::new();
            for here in listener.incoming().flatten() {
                match now.load(Ordering::SeqCst) {
                    OPEN => {}
                    HUNG => {
                        silent.push(here);
                        continue;
                    }
                    READ_ONLY => {
                        let target = target.clone();
                        thread::spawn(move || answer_read_only(here, &target));
                        continue;
                    }
                    _ => continue,
                }
                let Ok(there) = TcpStream::connect(&target) else { continue };
                for (from, to) in [(&here, &there), (&there, &here)] {
                    let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else { continue };
                    let now = Arc::clone(&now);
                    thread::spawn(move || pump(from, to, &now));
                }
            }
        });
        Self { address, state }
    }

    pub(crate) fn cut(&self, cut: bool) {
        self.state.store(if cut { CUT } else { OPEN }, Ordering::SeqCst);
    }

    /// Answers requests that write with 403, like a read-only bucket.
    pub(crate) fn refuse_writes(&self, refuse: bool) {
        self.state.store(if refuse { READ_ONLY } else { OPEN }, Ordering::SeqCst);
    }

    /// Keeps connections open but transfers nothing.
    pub(crate) fn hang(&self, hang: bool) {
        self.state.store(if hang { HUNG } else { OPEN }, Ordering::SeqCst);
    }
}

/// Forwards a request that reads, and answers one that writes with 403.
fn answer_read_only(mut here: TcpStream, target: &str) -> Option<()> {
    let mut reader = BufReader::new(here.try_clone().ok()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().to_ascii_lowercase().split_once(": ") {
            _ if line.trim().is_empty() => break,
            Some(("connection", _)) => continue,
            Some(("content-length", value)) => length = value.parse().ok()?,
            _ => {}
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if !head.starts_with("GET ") && !head.starts_with("HEAD ") {
        let body = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>";
        let length = body.len();
        return write!(
            here,
            "HTTP/1.1 403 Forbidden\r\ncontent-type: application/xml\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
        .ok();
    }
    let mut there = TcpStream::connect(target).ok()?;
    write!(there, "{head}connection: close\r\n\r\n").ok()?;
    there.write_all(&body).ok()?;
    io::copy(&mut there, &mut here).ok().map(drop)
}

/// Copies bytes until one side closes or the proxy is cut.
fn pump(mut from: TcpStream, mut to: TcpStream, state: &AtomicU8) -> Option<()> {
    from.set_read_timeout(Some(Duration::from_millis(50))).ok()?;
    let mut buffer = [0; 16 * 1024];
    let end = loop {
        while state.load(Ordering::SeqCst) == HUNG {
            thread::sleep(Duration::from_millis(50));
        }
        match from.read(&mut buffer) {
            _ if matches!(state.load(Ordering::SeqCst), CUT | READ_ONLY) => {
                break std::net::Shutdown::Both;
            }
            Ok(0) => break std::net::Shutdown::Write,
            Ok(count) => to.write_all(&buffer[..count]).ok()?,
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(_) => break std::net::Shutdown::Both,
        }
    };
    to.shutdown(end).ok()
}

/// Uploads a file as a form; returns the whole response.
pub(crate) fn upload(
    server: &TestServer,
    path: &str,
    token: &str,
    name: &str,
    text: &str,
) -> String {
    let body = format!(
        "--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
         Content-Type: text/plain\r\n\r\n{text}\r\n--edge--\r\n"
    );
    let mut stream = TcpStream::connect(&server.address).expect("a server");
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n\
         content-type: multipart/form-data; boundary=edge\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        server.address,
        body.len()
    )
    .expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Runs a script of `tests/it/clients` with third-party clients.
pub(crate) fn python(program: &str, script: &str, words: &[&str]) -> Output {
    let script = repository().join("crates/savoir/tests/it/clients").join(script);
    Command::new(program)
        .arg(script)
        .args(words)
        .env("NO_PROXY", "127.0.0.1")
        .env("no_proxy", "127.0.0.1")
        .stdin(Stdio::null())
        .output()
        .expect("python runs")
}
