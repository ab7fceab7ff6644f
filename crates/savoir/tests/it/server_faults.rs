//! Tests a server whose database or bucket disappears, hangs and comes back: it reports the
//! failure and needs no restart.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    cluster::register,
    live_server::TestServer,
    registry_faults::{NO_RATE_LIMIT, Publishers, login, publish, skill, wait_for_ready},
    services::{RunEnvironment, skipped},
    support::Sandbox,
};

/// A PostgreSQL server that a test can stop and start.
pub(crate) struct OwnPostgres {
    programs: PathBuf,
    folder: TempDir,
    port: u16,
    server: Option<Child>,
}

/// Runs a command as an ordinary user, because PostgreSQL refuses to run as root.
fn as_postgres(program: &Path) -> Command {
    let is_root = Command::new("id").arg("-u").output().expect("id runs").stdout == b"0\n";
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]).arg(program);
    command
}

impl OwnPostgres {
    /// Returns `None` with a note if PostgreSQL is not installed.
    pub(crate) fn start() -> Option<Self> {
        let found = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let Some(programs) = found.map(|entry| entry.path().join("bin")).max() else {
            skipped("PostgreSQL that goes down: it is not installed in /usr/lib/postgresql");
            return None;
        };
        let folder = TempDir::new().expect("a folder");
        let taken = Command::new("chown").arg("postgres").arg(folder.path()).status();
        if !taken.is_ok_and(|status| status.success()) {
            skipped("PostgreSQL that goes down: there is no user postgres");
            return None;
        }
        let made = as_postgres(&programs.join("initdb"))
            .args(["--username=postgres", "--auth=trust", "--no-sync", "--encoding=UTF8"])
            .args(["--locale=C", "--pgdata"])
            .arg(folder.path().join("db"))
            .current_dir("/")
            .output()
            .expect("initdb runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let mut postgres = Self { programs, folder, port, server: None };
        postgres.start_postgres();
        Some(postgres)
    }

    pub(crate) fn start_postgres(&mut self) {
        let server = as_postgres(&self.programs.join("postgres"))
            .arg("-D")
            .arg(self.folder.path().join("db"))
            .args(["-p", &self.port.to_string(), "-c", "listen_addresses=127.0.0.1"])
            .args(["-c", "unix_socket_directories="])
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.server = Some(server.expect("postgres starts"));
        let began = Instant::now();
        while !self.is_postgres_ready() {
            assert!(began.elapsed() < Duration::from_secs(30), "PostgreSQL does not start");
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn is_postgres_ready(&self) -> bool {
        let port = self.port.to_string();
        let asked = Command::new(self.programs.join("pg_isready"))
            .args(["-q", "-h", "127.0.0.1", "-U", "postgres", "-p", &port])
            .status();
        asked.is_ok_and(|status| status.success())
    }

    /// Stops the server with a signal, like an operator or a crash.
    pub(crate) fn stop_postgres(&mut self, signal: &str) {
        let Some(mut server) = self.server.take() else { return };
        let id = server.id().to_string();
        let _ = Command::new("kill").args([signal, &id]).status();
        let _ = server.wait();
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for OwnPostgres {
    fn drop(&mut self) {
        self.stop_postgres("-INT");
    }
}

#[test]
fn server_recovers_when_postgresql_returns() {
    let Some(mut postgres) = OwnPostgres::start() else { return };
    let sandbox = Sandbox::new();
    let server = TestServer::start(
        &sandbox,
        &[&["--database", &postgres.url()], &NO_RATE_LIMIT[..]].concat(),
        None,
    );
    let token = register(&server, "ada@example.com");
    wait_for_ready(&server, 200);

    postgres.stop_postgres("-INT");
    let answer = login(&server);
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(answer.body.contains("does not answer"), "{}", answer.body);
    assert!(answer.head.contains("\nretry-after: "), "{}", answer.head);
    let body = wait_for_ready(&server, 503);
    assert!(body.contains("\"database\":\"unreachable\""), "{body}");

    postgres.start_postgres();
    wait_for_ready(&server, 200);
    assert_eq!(login(&server).status, 200);
    let (status, body) =
        publish(&server.address, &token, &skill("patient", "1.0.0")).expect("an answer");
    assert_eq!(status, 201, "{body}");
}

#[test]
fn server_recovers_from_a_hanging_database() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let line = run_env.database_line();
    let server = run_env.server_through(&line, &NO_RATE_LIMIT);
    register(&server, "ada@example.com");
    wait_for_ready(&server, 200);
    line.hang(true);
    wait_for_ready(&server, 503);
    // Connections that were idle for some seconds are tested before use.
    thread::sleep(Duration::from_secs(2));
    let began = Instant::now();
    let answer = login(&server);
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    line.hang(false);
    wait_for_ready(&server, 200);
    assert_eq!(login(&server).status, 200);
}

#[test]
fn hanging_bucket_does_not_block_other_requests() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let server = run_env.server(&NO_RATE_LIMIT, None);
    let token = register(&server, "ada@example.com");
    wait_for_ready(&server, 200);
    run_env.line.hang(true);
    let bytes = skill("patient", "1.0.0");
    thread::scope(|scope| {
        let hanging = scope.spawn(|| publish(&server.address, &token, &bytes).expect("an answer"));
        let body = wait_for_ready(&server, 503);
        assert!(body.contains("\"storage\":\"unreachable\""), "{body}");
        assert_eq!(login(&server).status, 200, "the database is well");
        let (status, body) = hanging.join().expect("a thread");
        assert_eq!(status, 503, "{body}");
    });
    run_env.line.hang(false);
    wait_for_ready(&server, 200);
    let (status, body) = publish(&server.address, &token, &bytes).expect("an answer");
    assert_eq!(status, 201, "{body}");
}

/// Runs a script with a separate disk of a few megabytes.
fn on_a_small_disk(sandbox: &Sandbox, script: &str) -> Option<String> {
    let folder = sandbox.path("small");
    std::fs::create_dir_all(&folder).expect("a folder");
    let alone = Command::new("unshare").args(["-rm", "true"]).status();
    if !alone.is_ok_and(|status| status.success()) {
        skipped("no disk of our own can be made here");
        return None;
    }
    let program = sandbox.command(&[]);
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c"]).arg(format!(
        "disk={}; savoir={}; mount -t tmpfs -o size=4m,mode=700 none $disk || exit 9\n{script}",
        folder.display(),
        program.get_program().display()
    ));
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.current_dir(sandbox.path(".")).output().expect("unshare runs");
    let text = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn kb_add_reports_a_full_disk() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("note.md"), "Some words.\n".repeat(400)).expect("a file");
    let script = "$savoir kb create notes --data $disk/data || exit 8
        cat /dev/zero > $disk/ballast 2> /dev/null
        $savoir kb add notes note.md --data $disk/data";
    let began = Instant::now();
    let Some(text) = on_a_small_disk(&sandbox, script) else { return };
    assert!(text.contains("the disk is full"), "{text}");
    assert!(!text.contains("timed out"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

/// Runs only in `make soak`.
#[test]
fn repeatedly_killed_postgresql_loses_no_data() {
    if std::env::var_os("SAVOIR_TEST_SOAK").is_none() {
        skipped("a PostgreSQL that is killed again and again, since SAVOIR_TEST_SOAK is not set");
        return;
    }
    let Some(mut postgres) = OwnPostgres::start() else { return };
    let sandbox = Sandbox::new();
    let server = TestServer::start(
        &sandbox,
        &[&["--database", &postgres.url()], &NO_RATE_LIMIT[..]].concat(),
        None,
    );
    let token = register(&server, "ada@example.com");
    let publishers = Publishers::new(token, &[&server]);
    publishers.spawn_publishers(3, || {
        for round in 0..10 {
            publishers.wait_for(2);
            postgres.stop_postgres(if round % 2 == 0 { "-INT" } else { "-QUIT" });
            thread::sleep(Duration::from_secs(round % 4));
            postgres.start_postgres();
        }
        publishers.wait_for(2);
    });
    publishers.check(&[&server.address]);
}
