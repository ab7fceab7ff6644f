//! A real registry behind a proxy that breaks one promise: the check of that promise must see it.

use std::{
    io::{BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

use serde_json::Value;

use crate::{cluster::register, live_server::House, support::Sandbox};

/// An answer on its way, and what was asked.
struct Passing {
    method: String,
    path: String,
    status: u16,
    /// Names in small letters.
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Passing {
    fn set(&mut self, name: &str, value: &str) {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    fn replace(&mut self, from: &str, to: &str) {
        self.body = String::from_utf8_lossy(&self.body).replace(from, to).into_bytes();
    }

    fn is_index(&self) -> bool {
        self.path.starts_with("/registry/index/v1/") && !self.path.ends_with("config.json")
    }
}

type Break = fn(&mut Passing);

/// A broken promise, the group that is run, and the checks that must fail.
const DEFECTS: &[(&str, Break, &str, &[&str])] = &[
    ("other bytes", other_bytes, "pull", &["pull/artifact-digest", "pull/skill-md"]),
    ("no tags", no_tags, "pull", &["pull/index-etag", "pull/artifact-etag", "pull/download"]),
    ("no caching", no_caching, "pull", &["pull/index-caching", "pull/artifact-immutable"]),
    (
        "whole instead of parts",
        whole,
        "pull",
        &["pull/artifact-range", "pull/artifact-range-outside"],
    ),
    ("another version", version, "pull", &["pull/download", "pull/download-range"]),
    ("lost lines", lost_lines, "pull", &["pull/detail", "pull/closure"]),
    (
        "lists without what was published",
        lost,
        "discovery",
        &["discovery/listed", "discovery/filter-tag"],
    ),
    ("a cursor that stands still", stuck, "discovery", &["discovery/cursor"]),
    ("searches find nothing", blind, "search", &["search/exact", "search/body", "search/typo"]),
    (
        "everything is taken",
        takes,
        "publish",
        &[
            "publish/same-bytes",
            "publish/other-bytes",
            "publish/no-token",
            "publish/forged-tokens",
            "publish/not-a-zip",
        ],
    ),
    (
        "everything is taken in a race",
        takes,
        "immutability",
        &["immutability/race", "immutability/race-forms"],
    ),
    (
        "errors of another shape",
        shapeless,
        "errors",
        &["errors/not-found", "errors/json", "errors/artifact"],
    ),
];

fn other_bytes(passing: &mut Passing) {
    if passing.path.contains("/artifacts/") || passing.path.ends_with("SKILL.md") {
        passing.body.iter_mut().rev().take(1).for_each(|last| *last ^= 1);
    }
}

fn no_tags(passing: &mut Passing) {
    passing.headers.retain(|(name, _)| name != "etag");
}

fn no_caching(passing: &mut Passing) {
    passing.set("cache-control", "no-store");
}

fn whole(passing: &mut Passing) {
    if [206, 416].contains(&passing.status) {
        passing.status = 200;
    }
}

fn version(passing: &mut Passing) {
    if passing.path.contains("/download") {
        passing.set("x-skill-version", "2.0.0-rc.1");
    }
}

fn lost_lines(passing: &mut Passing) {
    if passing.path.contains("/closure") {
        passing.body.clear();
    }
    if passing.path.contains("/api/v1/skills/") {
        passing.replace("\"version\":\"1.0.0\"", "\"version\":\"0.9.0\"");
    }
}

fn lost(passing: &mut Passing) {
    if passing.method == "GET" && passing.path.starts_with("/registry/api/v1/skills?") {
        passing.body = br#"{"items":[],"next_cursor":null}"#.to_vec();
    }
}

fn stuck(passing: &mut Passing) {
    if passing.path.starts_with("/registry/api/v1/skills?") {
        passing.replace("\"next_cursor\":null", "\"next_cursor\":\"again\"");
    }
}

fn blind(passing: &mut Passing) {
    if passing.path.contains("/search") {
        passing.body = br#"{"query":"","items":[],"total":0}"#.to_vec();
    }
}

fn takes(passing: &mut Passing) {
    if passing.method == "POST" {
        passing.status = 201;
    }
}

fn shapeless(passing: &mut Passing) {
    if passing.status >= 400 {
        passing.body = br#"{"detail":"no"}"#.to_vec();
    }
}

/// Puts a proxy before a server; gives the address of the registry there.
fn proxy(server: &str, defect: Break) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = server.to_owned();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let server = server.clone();
            thread::spawn(move || pass(stream, &server, defect));
        }
    });
    format!("http://{address}/registry")
}

fn head(reader: &mut impl std::io::BufRead) -> Option<(String, Vec<(String, String)>)> {
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut headers = Vec::new();
    loop {
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    Some((first.trim_end().to_owned(), headers))
}

fn written(first: &str, headers: &[(String, String)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{first}\r\n").into_bytes();
    let apart = ["connection", "content-length", "transfer-encoding", "expect"];
    for (name, value) in headers.iter().filter(|(name, _)| !apart.contains(&name.as_str())) {
        bytes.extend(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend(format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len()).as_bytes());
    bytes.extend(body);
    bytes
}

fn length(headers: &[(String, String)]) -> Option<u64> {
    headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()
}

fn pass(stream: TcpStream, server: &str, defect: Break) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (first, headers) = head(&mut reader)?;
    let mut body = Vec::new();
    reader.take(length(&headers).unwrap_or(0)).read_to_end(&mut body).ok()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut there = TcpStream::connect(server).ok()?;
    // A server that has seen enough does not read on.
    let _ = there.write_all(&written(&first, &headers, &body));
    let mut answer = BufReader::new(there);
    let (first, headers) = head(&mut answer)?;
    let size = length(&headers);
    let mut body = Vec::new();
    let _ = answer.read_to_end(&mut body);
    let status = first.split(' ').nth(1)?.parse().ok()?;
    let is_head = method == "HEAD";
    let mut passing = Passing { method, path, status, headers, body };
    defect(&mut passing);
    let first = format!("HTTP/1.1 {} So", passing.status);
    let mut bytes = written(&first, &passing.headers, &passing.body);
    if is_head && let Some(size) = size {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        bytes = text.replace("content-length: 0", &format!("content-length: {size}")).into_bytes();
    }
    let mut out = stream;
    out.write_all(&bytes).ok()
}

fn failed(report: &Value) -> Vec<&str> {
    let checks = report["checks"].as_array().expect("a list").iter();
    checks
        .filter(|check| check["status"] == "failed")
        .map(|check| check["id"].as_str().expect("an id"))
        .collect()
}

#[test]
fn a_broken_promise_is_seen() {
    let sandbox = Sandbox::new();
    let house = House::start(&sandbox, &["--rate-limit", "off"], None);
    let token = register(&house, "ada@example.com");
    for (what, defect, group, expected) in DEFECTS {
        let url = proxy(&house.address, *defect);
        let args = ["registry", "conformance", &url, "--token", &token, "--only", group, "--json"];
        let done = sandbox.run(&args);
        let report = done.json();
        let failed = failed(&report);
        for id in *expected {
            assert!(failed.contains(id), "{what}: {id} passed; these failed: {failed:?}");
        }
    }
    // Nothing is seen where nothing is broken.
    let url = proxy(&house.address, |passing| assert!(!passing.is_index() || passing.status < 500));
    for group in ["discovery", "search"] {
        let args = ["registry", "conformance", &url, "--token", &token, "--only", group, "--json"];
        let done = sandbox.run(&args);
        assert_eq!(failed(&done.json()), [""; 0], "{done}");
    }
}
