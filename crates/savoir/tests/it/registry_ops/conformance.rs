//! Tests that every conformance check can fail.

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

use serde_json::Value;

use crate::support::{Sandbox, Transcript};

/// How a server misbehaves.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Accepts everything and returns empty responses.
    AgreesToAll,
    /// Accepts every upload, even invalid ones, and stores nothing.
    TakesAll,
    /// Reports everything as not found, in the correct format.
    KnowsNothing,
    /// Fails without the error format of the API.
    Fails,
    /// Responds with control characters, which affect terminals and are invalid in XML.
    Babbles,
}

impl Fault {
    fn answer(self, method: &str) -> (&'static str, Vec<u8>) {
        let problem = br#"{"error":{"code":"not_found","message":"no"}}"#.to_vec();
        match self {
            Self::AgreesToAll => ("200 OK", b"{}".to_vec()),
            Self::TakesAll if method == "POST" => ("201 Created", br#"{"published":{}}"#.to_vec()),
            Self::TakesAll => ("200 OK", br#"{"items":[],"next_cursor":null}"#.to_vec()),
            Self::KnowsNothing => ("404 Not Found", problem),
            Self::Fails => ("500 Internal Server Error", b"panicked".to_vec()),
            Self::Babbles => ("400 Bad Request", b"]]>\x00\x1b[2J<&\xff\"'\r\n".repeat(2000)),
        }
    }
}

/// Starts a server with this fault; returns its URL.
fn broken(fault: Fault) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream, fault));
        }
    });
    format!("http://{address}/registry")
}

fn answer(stream: TcpStream, fault: Fault) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line).ok()?;
        let line = String::from_utf8_lossy(&line).to_lowercase();
        match line.trim_end().split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink()).ok()?;
    let method = first.split(' ').next()?;
    let (status, body) = fault.answer(method);
    let mut out = stream;
    let size = body.len();
    write!(out, "HTTP/1.1 {status}\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n").ok()?;
    if method == "HEAD" { Some(()) } else { out.write_all(&body).ok() }
}

fn check(sandbox: &Sandbox, url: &str, more: &[&str]) -> Transcript {
    let args = [&["registry", "conformance", url], more].concat();
    sandbox.run(&args)
}

fn ids(report: &Value, status: &str) -> BTreeSet<String> {
    let all = report["checks"].as_array().expect("a list").iter();
    let wanted = all.filter(|check| check["status"] == status);
    wanted.map(|check| check["id"].as_str().expect("an id").to_owned()).collect()
}

/// Every check must fail for some fault, because a check that cannot fail proves nothing.
#[test]
fn every_check_can_fail() {
    let faults =
        [Fault::AgreesToAll, Fault::TakesAll, Fault::KnowsNothing, Fault::Fails, Fault::Babbles];
    let args = ["--token", "t", "--other-token", "o", "--namespace", "acme", "--json"];
    let reports: Vec<Value> = thread::scope(|scope| {
        let runs = faults.map(|fault| {
            scope.spawn(move || {
                let sandbox = Sandbox::new();
                let args = [&args[..], &["--junit", "report.xml"]].concat();
                let done = check(&sandbox, &broken(fault), &args);
                assert_eq!(done.code, 1, "{fault:?}: {done}");
                let xml = sandbox.read("report.xml");
                let mut reader = quick_xml::Reader::from_str(&xml);
                while reader.read_event().expect("XML") != quick_xml::events::Event::Eof {}
                done.json()
            })
        });
        runs.into_iter().map(|run| run.join().expect("a report")).collect()
    });
    let all = ids(&reports[0], "failed").len()
        + ids(&reports[0], "passed").len()
        + ids(&reports[0], "skipped").len();
    let failed: BTreeSet<String> =
        reports.iter().flat_map(|report| ids(report, "failed")).collect();
    let passed_always: BTreeSet<String> = ids(&reports[0], "passed")
        .union(&ids(&reports[0], "skipped"))
        .filter(|id| !failed.contains(*id))
        .cloned()
        .collect();
    assert!(passed_always.is_empty(), "these never fail: {passed_always:?}");
    assert!(failed.len() == all && all > 100, "{} of {all}", failed.len());
}

#[test]
fn only_requested_checks_run() {
    let sandbox = Sandbox::new();
    let listed = sandbox.run(&["registry", "conformance", "--list", "--only", "search"]);
    assert_eq!(listed.code, 0, "{listed}");
    assert!(listed.stdout.lines().all(|line| line.starts_with("search/")), "{listed}");

    let url = broken(Fault::KnowsNothing);
    let done = check(&sandbox, &url, &["--only", "errors"]);
    assert_eq!(done.code, 1, "{done}");
    assert!(done.stdout.contains("✓ errors/not-found: "), "{done}");
    assert!(done.stdout.contains("✗ errors/method: "), "{done}");
    assert!(done.stdout.contains("- errors/manifest: skipped: it needs --token"), "{done}");
    assert!(done.stdout.contains(" passed, "), "{done}");
    let readers = check(&sandbox, &url, &["--token", "t", "--read-only", "--json"]);
    let skipped = ids(&readers.json(), "skipped");
    assert!(skipped.contains("publish/created") && !skipped.contains("publish/no-token"));

    for wrong in [
        &["registry", "conformance"][..],
        &["registry", "conformance", "nowhere"],
        &["registry", "conformance", "http://127.0.0.1:1/registry"],
        &["registry", "conformance", &url, "--only", "nothing"],
        &["registry", "conformance", &url, "--email", "a@example.org"],
    ] {
        let done = sandbox.run(wrong);
        assert_eq!(done.code, 2, "{wrong:?}: {done}");
    }
}
