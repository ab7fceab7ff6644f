//! Tests that a server loses nothing that it acknowledged, on every path that writes: while it is
//! killed, and while its disk, its database or its bucket fails and comes back.
//!
//! `paths` lists the write paths. A test adds a fault to all of them at once.

mod paths;

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    io::BufRead as _,
    path::Path,
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    cluster::register,
    live_server::{Provider, ProviderBehavior, TestServer},
    registry_faults::{
        NO_RATE_LIMIT, disk_of, fill, is_ready, random_below, server_on_a_small_disk,
    },
    server_faults::OwnPostgres,
    services::{RunEnvironment, TcpProxy, skipped},
    support::Sandbox,
};
use paths::{Client, Kind, Outcome, PATHS, WritePath, document_states};

/// How long a path may be blocked by what a killed process held: two seconds, and the rest for a
/// slow machine.
const MAX_BLOCKED: Duration = Duration::from_secs(15);

/// How long a request may take while the database or the bucket does not answer: the deadline of
/// one call, and the rest for a slow machine.
const MAX_ANSWER: Duration = Duration::from_secs(25);

/// After four seconds, `/ready` says the truth; the rest is for a slow machine.
const MAX_LIE: Duration = Duration::from_secs(6);

/// What was written on one path.
#[derive(Default)]
struct Progress {
    /// The numbers below this one were tried.
    next: usize,
    acknowledged: BTreeSet<usize>,
    /// How many writes were under way when the server was killed.
    interrupted: usize,
    /// All below this one were read back with what they contain.
    checked: usize,
}

/// Clients that write on all paths.
struct Writers {
    client: RwLock<Client>,
    /// The path, and the id of what it writes to.
    paths: Vec<(&'static WritePath, String, Mutex<Progress>)>,
    stop: AtomicBool,
}

impl Writers {
    fn new(server: &TestServer) -> Self {
        let token = make_administrator(server);
        let reviewer = register(server, "bob@example.com");
        let client = Client { address: server.address.clone(), token, reviewer };
        let paths = PATHS.iter().map(|path| {
            let progress = Progress { next: 1, checked: 1, ..Progress::default() };
            (path, (path.prepare)(&client), Mutex::new(progress))
        });
        let paths = paths.collect();
        Self { client: RwLock::new(client), paths, stop: AtomicBool::new(false) }
    }

    fn client(&self) -> Client {
        self.client.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The server is somewhere else now.
    fn set_address(&self, address: &str) {
        let mut client = self.client.write().unwrap_or_else(PoisonError::into_inner);
        address.clone_into(&mut client.address);
    }

    /// Writes on all paths while something else is done.
    fn write_during<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        self.stop.store(false, Ordering::SeqCst);
        thread::scope(|scope| {
            // Also if the work fails: else the threads would go on for ever.
            let _stop = Stop(&self.stop);
            for at in 0..self.paths.len() {
                scope.spawn(move || {
                    while !self.stop.load(Ordering::SeqCst) && !self.is_exhausted(at) {
                        if self.write(at) != Outcome::Acknowledged {
                            thread::sleep(Duration::from_millis(20));
                        }
                    }
                });
            }
            work()
        })
    }

    fn progress(&self, at: usize) -> std::sync::MutexGuard<'_, Progress> {
        self.paths[at].2.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_exhausted(&self, at: usize) -> bool {
        self.progress(at).next >= self.paths[at].0.limit
    }

    fn write(&self, at: usize) -> Outcome {
        let (path, place, _) = &self.paths[at];
        let number = {
            let mut progress = self.progress(at);
            progress.next += 1;
            progress.next - 1
        };
        let outcome = (path.write)(&self.client(), place, number);
        match &outcome {
            Outcome::Acknowledged => {
                self.progress(at).acknowledged.insert(number);
            }
            Outcome::Gone => self.progress(at).interrupted += 1,
            Outcome::Refused(_) => {}
        }
        outcome
    }

    /// One write on each path at the same time, with how long each took.
    fn write_each(&self) -> Vec<(&'static WritePath, Outcome, Duration)> {
        thread::scope(|scope| {
            let written: Vec<_> = (0..self.paths.len())
                .map(|at| {
                    scope.spawn(move || {
                        let began = Instant::now();
                        let outcome = self.write(at);
                        (self.paths[at].0, outcome, began.elapsed())
                    })
                })
                .collect();
            written.into_iter().map(|thread| thread.join().expect("a write")).collect()
        })
    }

    /// Writes on each path until it succeeds.
    fn write_each_until_done(&self) {
        thread::scope(|scope| {
            for at in 0..self.paths.len() {
                scope.spawn(move || {
                    let began = Instant::now();
                    loop {
                        let outcome = self.write(at);
                        if outcome == Outcome::Acknowledged {
                            return;
                        }
                        let name = self.paths[at].0.name;
                        assert!(began.elapsed() < MAX_BLOCKED, "{name}: still {outcome:?}");
                        thread::sleep(Duration::from_millis(50));
                    }
                });
            }
        });
    }

    /// Waits until one more write was acknowledged on each path.
    fn wait_for_each(&self) {
        let counts = || -> Vec<usize> {
            (0..self.paths.len()).map(|at| self.progress(at).acknowledged.len()).collect()
        };
        let (before, began) = (counts(), Instant::now());
        loop {
            let now = counts();
            let waits =
                (0..self.paths.len()).find(|&at| now[at] <= before[at] && !self.is_exhausted(at));
            let Some(at) = waits else { return };
            let name = self.paths[at].0.name;
            assert!(began.elapsed() < MAX_BLOCKED, "nothing is written any more: {name}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Everything that was acknowledged is there, and nothing is there by half. Returns how many
    /// acknowledged writes were read back.
    fn check(&self) -> usize {
        let client = self.client();
        let mut count = 0;
        for (at, (path, place, _)) in self.paths.iter().enumerate() {
            let (checked, next, acknowledged) = {
                let progress = self.progress(at);
                (progress.checked, progress.next, progress.acknowledged.clone())
            };
            let found: BTreeSet<usize> =
                (path.read)(&client, place, checked..next).into_iter().collect();
            match path.kind {
                Kind::Added => {
                    let wanted: BTreeSet<_> = acknowledged.range(checked..).copied().collect();
                    let lost: Vec<_> = wanted.difference(&found).collect();
                    assert!(lost.is_empty(), "{}: acknowledged and lost: {lost:?}", path.name);
                    count += wanted.len();
                }
                Kind::Replaced => {
                    let newest = acknowledged.last().copied().unwrap_or(0);
                    let found = found.last().copied().unwrap_or(0);
                    assert!(found >= newest, "{}: {found} instead of {newest}", path.name);
                    assert!(found < self.progress(at).next, "{}: {found}", path.name);
                    count += usize::from(newest > 0);
                }
            }
        }
        count
    }

    /// Later checks need not read again what was written so far.
    fn forget_checked(&self) {
        for at in 0..self.paths.len() {
            let mut progress = self.progress(at);
            progress.checked = progress.next;
        }
    }

    /// Reads everything again, after all documents were indexed.
    fn check_all(&self) -> usize {
        let began = Instant::now();
        let base = &self.paths[0].1;
        loop {
            let states = document_states(&self.client(), base);
            if states.iter().all(|state| state == "completed") {
                break;
            }
            assert!(began.elapsed() < MAX_BLOCKED, "documents are not indexed: {states:?}");
            thread::sleep(Duration::from_millis(100));
        }
        for at in 0..self.paths.len() {
            self.progress(at).checked = 1;
        }
        self.check()
    }

    /// What happened on each path, for `make soak`.
    fn report(&self, kills: usize) -> String {
        let mut text = format!("{kills} kills\n");
        for (at, (path, ..)) in self.paths.iter().enumerate() {
            let progress = self.progress(at);
            let _ = writeln!(
                text,
                "{:<24} {:>6} tried {:>6} acknowledged {:>4} interrupted, 0 lost",
                path.name,
                progress.next - 1,
                progress.acknowledged.len(),
                progress.interrupted,
            );
        }
        text
    }
}

/// Creates the first administrator with the link that a server prints; gives a token.
fn make_administrator(server: &TestServer) -> String {
    let link = server.greeting.split("#token=").nth(1).expect("a link");
    let token = link.split_whitespace().next().expect("a token");
    let (email, password) = ("ada@example.com", "secret-word");
    let body = json!({"token": token, "email": email, "password": password});
    let answer = server.ask("POST", "/api/v1/setup", "", Some(&body));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let body = json!({"email": email, "password": password});
    let answer = server.ask("POST", "/api/v1/auth/login", "", Some(&body));
    answer.json()["token"].as_str().expect("a token").to_owned()
}

/// `/ready` says this within a few seconds, and answers each time within one.
fn assert_ready(server: &TestServer, status: u16, part: &str) {
    let began = Instant::now();
    loop {
        let (found, body) = is_ready(server);
        if found == status && body.contains(part) {
            return;
        }
        assert!(began.elapsed() < MAX_LIE, "/ready still says {found}: {body}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Temporary files below a folder.
fn unfinished_files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(".tmp") {
            found.push(entry.path().display().to_string());
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(unfinished_files(&entry.path()));
        }
    }
    found
}

/// How often a server is killed.
fn kills() -> usize {
    if std::env::var_os("SAVOIR_TEST_SOAK").is_some() { 40 } else { 3 }
}

/// Kills a server again and again while clients write on all paths.
#[expect(clippy::print_stderr, reason = "`make soak` reports what was tried")]
fn survives_kills(mut server: TestServer, start: impl Fn() -> TestServer, data: Option<&Path>) {
    let writers = Writers::new(&server);
    let kills = kills();
    for _ in 0..kills {
        writers.write_during(|| {
            writers.wait_for_each();
            thread::sleep(Duration::from_millis(random_below(300)));
            server.signal("-KILL");
            // A request that was not under way is not interrupted.
            writers.stop.store(true, Ordering::SeqCst);
        });
        server = start();
        writers.set_address(&server.address);
        assert_ready(&server, 200, "ready");
        writers.check();
        writers.forget_checked();
        // Nothing that the killed process held blocks a write.
        writers.write_each_until_done();
    }
    let count = writers.check_all();
    if let Some(data) = data {
        let began = Instant::now();
        while !unfinished_files(data).is_empty() {
            let left = unfinished_files(data);
            assert!(began.elapsed() < MAX_BLOCKED, "files that nobody finishes: {left:?}");
            thread::sleep(Duration::from_millis(100));
        }
    }
    eprintln!("{}{count} acknowledged writes were read back", writers.report(kills));
}

#[test]
fn kills_lose_nothing_in_a_folder() {
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Says(&["Nothing."]));
    let start = || TestServer::start(&sandbox, &NO_RATE_LIMIT, Some(&provider));
    survives_kills(start(), start, Some(&sandbox.path(".savoir")));
}

#[test]
fn kills_lose_nothing_in_database_and_bucket() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let provider = Provider::new(ProviderBehavior::Says(&["Nothing."]));
    let start = || run_env.server(&NO_RATE_LIMIT, Some(&provider));
    survives_kills(start(), start, None);
}

/// Something that breaks and is repaired while a server runs.
struct Fault<'a> {
    begin: Box<dyn Fn() + 'a>,
    end: Box<dyn Fn() + 'a>,
    /// What `/ready` says meanwhile.
    ready: &'static str,
    /// Whether a path writes meanwhile; `None` if it may be either.
    writes: Writes,
}

type Writes = fn(&WritePath) -> Option<bool>;

/// Breaks something, repairs it, and checks that the server tells the truth all the time, needs no
/// restart and loses nothing.
fn survives(server: &TestServer, writers: &Writers, fault: &Fault<'_>) {
    writers.write_each_until_done();
    (fault.begin)();
    assert_ready(server, 503, fault.ready);
    for (path, outcome, took) in writers.write_each() {
        assert!(took < MAX_ANSWER, "{}: {outcome:?} after {took:?}", path.name);
        let writes = match &outcome {
            Outcome::Acknowledged => true,
            Outcome::Refused(_) => false,
            Outcome::Gone => panic!("{}: no answer", path.name),
        };
        assert_eq!((fault.writes)(path).unwrap_or(writes), writes, "{}: {outcome:?}", path.name);
    }
    assert_ready(server, 503, fault.ready);
    (fault.end)();
    assert_ready(server, 200, "ready");
    writers.write_each_until_done();
    // Runs that could not be stored are stored within a second or two.
    thread::sleep(Duration::from_secs(2));
    writers.check_all();
}

/// Writes to the database until its journal has no room on a full disk.
fn fill_journal(server: &TestServer, token: &str) {
    let node = json!({"id": "s", "type": "start", "data": {"note": "x".repeat(100_000)}});
    let large = json!({"name": "w", "graph_data": {"nodes": [node], "edges": []}});
    let write = || server.ask("POST", "/api/v1/workflows", token, Some(&large)).status;
    assert!((0..150).any(|_| write() == 503), "the disk is full at last");
}

#[test]
fn a_full_disk_that_is_freed_loses_nothing() {
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Says(&["Nothing."]));
    let Some(server) = server_on_a_small_disk(&sandbox, 24, Some(&provider)) else {
        skipped("no disk of our own can be made here");
        return;
    };
    let writers = Writers::new(&server);
    let ballast = disk_of(&server, &sandbox).join("ballast");
    let fault = Fault {
        begin: Box::new(|| {
            fill(&ballast);
            fill_journal(&server, &writers.client().reviewer);
        }),
        end: Box::new(|| std::fs::remove_file(&ballast).expect("the ballast goes")),
        ready: "disk full",
        // A run goes on, and is stored later.
        writes: |path| Some(path.name == "run history"),
    };
    survives(&server, &writers, &fault);
}

#[test]
fn an_answer_that_cannot_be_stored_is_not_acknowledged() {
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Slowly(&["It "; 20]));
    let Some(server) = server_on_a_small_disk(&sandbox, 12, Some(&provider)) else {
        skipped("no disk of our own can be made here");
        return;
    };
    let token = register(&server, "ada@example.com");
    let body = json!({"session_id": "talk", "message": "How was it?"});
    let path = "/api/v1/chat/completions";
    let mut stream = server.send_streaming("POST", path, &token, Some(&body));
    let mut text = String::new();
    while !text.contains("event: token") {
        assert_ne!(stream.reader.read_line(&mut text).expect("a line"), 0, "{text}");
    }
    let ballast = disk_of(&server, &sandbox).join("ballast");
    fill(&ballast);
    fill_journal(&server, &token);
    while stream.reader.read_line(&mut text).expect("a line") > 0 {}
    assert!(text.contains("The answer could not be stored"), "{text}");
    assert!(!text.contains("completed successfully"), "{text}");
    std::fs::remove_file(&ballast).expect("the ballast goes");
    let session = server.ask("GET", "/api/v1/chat/sessions/talk", &token, None).json();
    assert_eq!(session["message_count"], 1, "{session}");
}

#[test]
fn a_postgresql_that_goes_down_and_comes_back_loses_nothing() {
    let Some(postgres) = OwnPostgres::start() else { return };
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Says(&["Nothing."]));
    let url = postgres.url();
    let options = [&["--database", &url], &NO_RATE_LIMIT[..]].concat();
    let server = TestServer::start(&sandbox, &options, Some(&provider));
    let writers = Writers::new(&server);
    let postgres = Mutex::new(postgres);
    let postgres = || postgres.lock().unwrap_or_else(PoisonError::into_inner);
    for signal in ["-INT", "-QUIT"] {
        let fault = Fault {
            begin: Box::new(move || postgres().stop_postgres(signal)),
            end: Box::new(|| postgres().start_postgres()),
            ready: "\"database\":\"unreachable\"",
            writes: |_| Some(false),
        };
        survives(&server, &writers, &fault);
    }
}

#[test]
fn a_bucket_that_fails_and_comes_back_loses_nothing() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let provider = Provider::new(ProviderBehavior::Says(&["Nothing."]));
    let server = run_env.server(&NO_RATE_LIMIT, Some(&provider));
    let writers = Writers::new(&server);
    let line = &run_env.line;
    let fault = |begin: fn(&TcpProxy, bool), ready: &'static str, writes: Writes| Fault {
        begin: Box::new(move || begin(line, true)),
        end: Box::new(move || begin(line, false)),
        ready,
        writes,
    };
    let read_only = fault(TcpProxy::refuse_writes, "\"storage\":\"access denied\"", |path| {
        Some(!path.uses_storage)
    });
    let silent: Writes = |path| {
        // A skill that runs is read.
        (path.name != "run history").then_some(!path.uses_storage)
    };
    let cut = fault(TcpProxy::cut, "\"storage\":\"unreachable\"", silent);
    let hung = fault(TcpProxy::hang, "\"storage\":\"unreachable\"", silent);
    for fault in [read_only, cut, hung] {
        survives(&server, &writers, &fault);
    }
}
