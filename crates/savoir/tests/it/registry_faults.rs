//! Tests the registry under faults: killed processes, lost connections, full disks, stalled
//! clients.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use savoir_package::{File, Tree, archive};
use savoir_skill::digest::sha256_hex;

use crate::{
    cluster::register,
    live_server::{Provider, TestServer},
    services::{RunEnvironment, skipped},
    support::Sandbox,
};

pub(crate) const NO_RATE_LIMIT: [&str; 2] = ["--rate-limit", "off"];
pub(crate) const SKILLS: &str = "/registry/api/v1/skills";

pub(crate) fn skill(name: &str, version: &str) -> Vec<u8> {
    let text = format!(
        "---\nname: {name}\ndescription: Waits for the end. Use when something breaks.\n\
         metadata:\n  version: \"{version}\"\n---\n# {name}\n\nWait, {version}.\n"
    );
    let mut tree = Tree::default();
    let file = File { bytes: text.into_bytes(), executable: false };
    tree.add("SKILL.md".to_owned(), file).expect("a file");
    archive::pack(name, &tree).expect("an archive")
}

/// Sends an archive; returns status and body, or `None` if the server was killed.
pub(crate) fn send(
    address: &str,
    method: &str,
    path: &str,
    token: &str,
    body: &[u8],
) -> Option<(u16, Vec<u8>)> {
    send_as(address, method, path, token, "application/zip", body)
}

/// Like [`send`], for other types of content.
pub(crate) fn send_as(
    address: &str,
    method: &str,
    path: &str,
    token: &str,
    kind: &str,
    body: &[u8],
) -> Option<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(90))).ok()?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let body = answer.split_off(end + 4);
    // An incomplete response does not count.
    if length.is_some_and(|length| length.trim() != body.len().to_string()) {
        return None;
    }
    Some((head.split_whitespace().nth(1)?.parse().ok()?, body))
}

pub(crate) fn publish(address: &str, token: &str, bytes: &[u8]) -> Option<(u16, String)> {
    let (status, body) = send(address, "POST", SKILLS, token, bytes)?;
    Some((status, String::from_utf8_lossy(&body).into_owned()))
}

fn read(address: &str, path: &str) -> Option<(u16, Vec<u8>)> {
    send(address, "GET", path, "", b"")
}

/// Whether a version is published. Fails if the views of the registry disagree.
pub(crate) fn is_published_everywhere(address: &str, name: &str, bytes: &[u8]) -> bool {
    let index = format!("/registry/index/v1/{}/{name}", &name[..2]);
    let (status, line) = read(address, &index).expect("an answer");
    let sha256 = sha256_hex(bytes);
    let (detail, _) = read(address, &format!("{SKILLS}/{name}")).expect("an answer");
    let path = format!("/registry/artifacts/{sha256}/{name}-1.0.0.zip");
    let (archive, got) = read(address, &path).expect("an answer");
    if status == 404 {
        assert_eq!((detail, archive), (404, 404), "{name} is there by half");
        return false;
    }
    assert_eq!((status, detail, archive), (200, 200, 200), "{name} is there by half");
    assert!(String::from_utf8_lossy(&line).contains(&sha256), "{name}");
    assert_eq!(got, bytes, "{name} has other bytes");
    true
}

/// Sets a flag when it is dropped.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Publishes skills on servers that are killed and restarted, until it is stopped. Records which
/// ones were tried and acknowledged.
pub(crate) struct Publishers {
    token: String,
    addresses: Vec<Mutex<String>>,
    stop: AtomicBool,
    number: AtomicUsize,
    /// The names of the skills that were tried, and whether each was acknowledged.
    tried: Mutex<BTreeMap<String, bool>>,
}

impl Publishers {
    pub(crate) fn new(token: String, servers: &[&TestServer]) -> Self {
        Self {
            token,
            addresses: servers.iter().map(|server| Mutex::new(server.address.clone())).collect(),
            stop: AtomicBool::new(false),
            number: AtomicUsize::new(0),
            tried: Mutex::default(),
        }
    }

    /// Changes the address of one of the servers.
    pub(crate) fn set_address(&self, which: usize, address: &str) {
        address.clone_into(&mut self.addresses[which].lock().expect("an address"));
    }

    /// Publishes from several threads while `work` runs.
    pub(crate) fn spawn_publishers<T>(&self, threads: usize, work: impl FnOnce() -> T) -> T {
        thread::scope(|scope| {
            // The threads must stop even if `work` panics.
            let _stop = Stop(&self.stop);
            for _ in 0..threads {
                scope.spawn(|| self.run());
            }
            work()
        })
    }

    fn run(&self) {
        while !self.stop.load(Ordering::SeqCst) {
            let number = self.number.fetch_add(1, Ordering::SeqCst);
            let name = format!("wait-{number}");
            let place = &self.addresses[number % self.addresses.len()];
            let address = place.lock().expect("an address").clone();
            let answer = publish(&address, &self.token, &skill(&name, "1.0.0"));
            let acknowledged = match answer {
                Some((201, _)) => true,
                Some((503, _)) | None => false,
                Some((status, body)) => panic!("{name}: {status} {body}"),
            };
            self.tried.lock().expect("a list").insert(name, acknowledged);
            if !acknowledged {
                thread::sleep(Duration::from_millis(20));
            }
        }
    }

    pub(crate) fn acknowledged(&self) -> usize {
        self.tried.lock().expect("a list").values().filter(|done| **done).count()
    }

    /// Waits until this many more publish requests were acknowledged.
    pub(crate) fn wait_for(&self, more: usize) {
        let (from, began) = (self.acknowledged(), Instant::now());
        while self.acknowledged() < from + more {
            assert!(began.elapsed() < Duration::from_mins(1), "nothing is published any more");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Checks that every acknowledged version exists, and that no version is incomplete.
    pub(crate) fn check(&self, addresses: &[&str]) {
        let tried = self.tried.lock().expect("a list");
        let mut lost = Vec::new();
        for (name, acknowledged) in &*tried {
            for address in addresses {
                if !is_published_everywhere(address, name, &skill(name, "1.0.0")) && *acknowledged {
                    lost.push(name.clone());
                }
            }
        }
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    }
}

/// A random number below `below`, for random delays.
pub(crate) fn random_below(below: u64) -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(Instant::now()) % below
}

#[test]
fn killed_servers_lose_no_data() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let mut servers = [run_env.server(&NO_RATE_LIMIT, None), run_env.server(&NO_RATE_LIMIT, None)];
    let token = register(&servers[0], "ada@example.com");
    let publishers = Publishers::new(token, &[&servers[0], &servers[1]]);
    publishers.spawn_publishers(4, || {
        for kill in 0..6 {
            publishers.wait_for(2);
            thread::sleep(Duration::from_millis(random_below(300)));
            let which = kill % 2;
            servers[which].signal("-KILL");
            let new = run_env.server(&NO_RATE_LIMIT, None);
            publishers.set_address(which, &new.address);
            servers[which] = new;
        }
        publishers.wait_for(2);
    });
    publishers.check(&[&servers[0].address, &servers[1].address]);
}

#[test]
fn publishing_is_atomic_when_the_server_is_killed() {
    let sandbox = Sandbox::new();
    let mut server = TestServer::start(&sandbox, &NO_RATE_LIMIT, None);
    let token = register(&server, "ada@example.com");
    let publishers = Publishers::new(token, &[&server]);
    publishers.spawn_publishers(3, || {
        for _ in 0..8 {
            publishers.wait_for(1);
            thread::sleep(Duration::from_millis(random_below(120)));
            server.signal("-KILL");
            server = TestServer::start(&sandbox, &NO_RATE_LIMIT, None);
            publishers.set_address(0, &server.address);
        }
    });
    publishers.check(&[&server.address]);
}

#[test]
fn failed_publish_can_be_retried() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let server = run_env.server(&NO_RATE_LIMIT, None);
    let token = register(&server, "ada@example.com");
    let bytes = skill("patient", "1.0.0");
    run_env.line.cut(true);
    let (status, body) = publish(&server.address, &token, &bytes).expect("an answer");
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("\"unavailable\""), "{body}");
    run_env.line.cut(false);
    assert!(!is_published_everywhere(&server.address, "patient", &bytes));
    let (status, body) = publish(&server.address, &token, &bytes).expect("an answer");
    assert_eq!(status, 201, "{body}");
    // The server replaces lost database connections by itself.
    assert!(run_env.cut_connections() > 0);
    let next = skill("another", "1.0.0");
    let began = Instant::now();
    loop {
        match publish(&server.address, &token, &next).expect("an answer") {
            (201 | 409, _) => break,
            (503, _) if began.elapsed() < Duration::from_secs(20) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(is_published_everywhere(&server.address, "another", &next));
    assert!(is_published_everywhere(&server.address, "patient", &bytes));
}

/// Runs a server on a disk of a few megabytes, which only it sees.
pub(crate) fn server_on_a_small_disk(
    sandbox: &Sandbox,
    megabytes: u32,
    provider: Option<&Provider>,
) -> Option<TestServer> {
    let folder = sandbox.path("small");
    std::fs::create_dir_all(&folder).expect("a folder");
    let alone = Command::new("unshare").args(["-rm", "true"]).status();
    if !alone.is_ok_and(|status| status.success()) {
        return None;
    }
    let folder = folder.to_str().expect("a path").to_owned();
    let options = ["--data", &folder, "--rate-limit", "off"];
    Some(TestServer::start_with(sandbox, &options, |command| {
        if let Some(provider) = provider {
            provider.of(command);
        }
        let program = command.get_program().to_owned();
        let words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let script =
            format!("mount -t tmpfs -o size={megabytes}m,mode=700 none {folder} && exec \"$@\"");
        let mut alone = Command::new("unshare");
        alone.args(["-rm", "sh", "-c", &script, "sh"]).arg(program).args(words);
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => alone.env(name, value),
                None => alone.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            alone.current_dir(folder);
        }
        *command = alone;
    }))
}

/// A skill that cannot be compressed.
pub(crate) fn large_skill(name: &str, kilobytes: usize) -> Vec<u8> {
    let mut tree =
        archive::unpack(&skill(name, "1.0.0")).and_then(archive::one_skill).expect("a skill").1;
    let mut noise = Vec::new();
    let mut seed = sha256_hex(name.as_bytes());
    while noise.len() < kilobytes * 1024 {
        seed = sha256_hex(seed.as_bytes());
        noise.extend(seed.as_bytes().chunks(2).map(|two| {
            let text = String::from_utf8_lossy(two).into_owned();
            u8::from_str_radix(&text, 16).unwrap_or(0)
        }));
    }
    tree.add("data.bin".to_owned(), File { bytes: noise, executable: false }).expect("a file");
    archive::pack(name, &tree).expect("an archive")
}

#[test]
fn full_disk_rejects_writes_and_keeps_data() {
    let sandbox = Sandbox::new();
    let Some(server) = server_on_a_small_disk(&sandbox, 12, None) else {
        skipped("no disk of our own can be made here");
        return;
    };
    let token = register(&server, "ada@example.com");
    let mut kept = Vec::new();
    let refused = (0..40).find_map(|number| {
        let name = format!("full-{number}");
        let bytes = large_skill(&name, 900);
        match publish(&server.address, &token, &bytes).expect("an answer") {
            (201, _) => {
                kept.push((name, bytes));
                None
            }
            (status, body) => Some((name, bytes, status, body)),
        }
    });
    let (name, bytes, status, body) = refused.expect("the disk is full at last");
    assert_eq!(status, 503, "{body}");
    assert!(!kept.is_empty());
    assert!(!is_published_everywhere(&server.address, &name, &bytes));
    for (name, bytes) in &kept {
        assert!(is_published_everywhere(&server.address, name, bytes));
    }
    assert_eq!(server.ask("GET", "/health", "", None).status, 200);
}

/// The status and the body of `/ready`. It must respond within a second, whatever else fails.
pub(crate) fn is_ready(server: &TestServer) -> (u16, String) {
    let began = Instant::now();
    let answer = server.ask("GET", "/ready", "", None);
    assert!(began.elapsed() < Duration::from_secs(1), "/ready took {:?}", began.elapsed());
    (answer.status, answer.body)
}

/// Waits until `/ready` has this status.
pub(crate) fn wait_for_ready(server: &TestServer, status: u16) -> String {
    let began = Instant::now();
    loop {
        let (found, body) = is_ready(server);
        if found == status {
            return body;
        }
        assert!(began.elapsed() < Duration::from_secs(15), "/ready stays {found}: {body}");
        thread::sleep(Duration::from_millis(100));
    }
}

pub(crate) fn login(server: &TestServer) -> crate::live_server::HttpResponse {
    let body = serde_json::json!({"email": "ada@example.com", "password": "secret-word"});
    server.ask("POST", "/api/v1/auth/login", "", Some(&body))
}

/// The path of the separate disk of a server.
pub(crate) fn disk_of(server: &TestServer, sandbox: &Sandbox) -> PathBuf {
    format!("/proc/{}/root{}", server.id(), sandbox.path("small").display()).into()
}

/// Fills the separate disk of a server.
pub(crate) fn fill(path: &std::path::Path) {
    let mut file = std::fs::File::create(path).expect("a file");
    for size in [1 << 20, 1 << 12, 1 << 8] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

#[test]
fn server_recovers_from_a_full_disk_without_restart() {
    let sandbox = Sandbox::new();
    let Some(server) = server_on_a_small_disk(&sandbox, 12, None) else {
        skipped("no disk of our own can be made here");
        return;
    };
    let token = register(&server, "ada@example.com");
    wait_for_ready(&server, 200);
    let ballast = disk_of(&server, &sandbox).join("ballast");
    fill(&ballast);
    let failed = (0..200).map(|_| login(&server)).find(|answer| answer.status != 200);
    let failed = failed.expect("the disk is full at last");
    assert_eq!(failed.status, 503, "{}", failed.body);
    assert!(failed.body.contains("disk of the server is full"), "{}", failed.body);
    let (status, body) =
        publish(&server.address, &token, &large_skill("heavy", 300)).expect("an answer");
    assert_eq!(status, 503, "{body}");
    let body = wait_for_ready(&server, 503);
    assert!(body.contains("disk full"), "{body}");

    std::fs::remove_file(&ballast).expect("the ballast goes");
    wait_for_ready(&server, 200);
    let answer = login(&server);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let bytes = large_skill("heavy", 300);
    let (status, body) = publish(&server.address, &token, &bytes).expect("an answer");
    assert_eq!(status, 201, "{body}");
    assert!(is_published_everywhere(&server.address, "heavy", &bytes));
}

#[test]
fn stalled_clients_do_not_block_others() {
    let sandbox = Sandbox::new();
    let server = TestServer::start(&sandbox, &NO_RATE_LIMIT, None);
    let (ada, bob) = (register(&server, "ada@example.com"), register(&server, "bob@example.com"));
    let sleeping: Vec<TcpStream> = (0..12)
        .map(|_| {
            let mut stream = TcpStream::connect(&server.address).expect("a server");
            let head = format!(
                "POST {SKILLS} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {ada}\r\n\
                 content-type: application/zip\r\ncontent-length: 1000000\r\n\r\nPK",
                server.address
            );
            stream.write_all(head.as_bytes()).expect("a request");
            stream
        })
        .collect();
    thread::sleep(Duration::from_millis(300));
    let (status, body) =
        publish(&server.address, &ada, &skill("mine", "1.0.0")).expect("an answer");
    assert_eq!(status, 429, "one person has so many uploads and no more: {body}");
    let bytes = skill("awake", "1.0.0");
    let (status, body) = publish(&server.address, &bob, &bytes).expect("an answer");
    assert_eq!(status, 201, "{body}");
    assert!(is_published_everywhere(&server.address, "awake", &bytes));
    drop(sleeping);
    // A disconnected client frees its slot.
    let began = Instant::now();
    while publish(&server.address, &ada, &skill("mine", "1.0.0")).expect("an answer").0 != 201 {
        assert!(began.elapsed() < Duration::from_secs(20), "the places stay taken");
        thread::sleep(Duration::from_millis(50));
    }
}
