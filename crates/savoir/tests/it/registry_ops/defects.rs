//! Tests the conformance checks: a proxy adds one defect to a real registry, and the check must
//! find it.

use std::{
    io::{BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

use serde_json::Value;

use crate::{cluster::register, live_server::TestServer, support::Sandbox};

/// A response that the proxy can change, and its request.
struct ProxiedResponse {
    method: String,
    path: String,
    status: u16,
    /// The names are in lower case.
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl ProxiedResponse {
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

type Defect = fn(&mut ProxiedResponse);

/// Name, change, the group of checks to run, and the checks that must fail.
const DEFECTS: &[(&str, Defect, &str, &[&str])] = &[
    ("other bytes", change_bytes, "pull", &["pull/artifact-digest", "pull/skill-md"]),
    ("no tags", drop_etags, "pull", &["pull/index-etag", "pull/artifact-etag", "pull/download"]),
    ("no caching", disable_caching, "pull", &["pull/index-caching", "pull/artifact-immutable"]),
    (
        "whole instead of parts",
        ignore_ranges,
        "pull",
        &["pull/artifact-range", "pull/artifact-range-outside"],
    ),
    ("another version", wrong_version_header, "pull", &["pull/download", "pull/download-range"]),
    ("lost lines", change_versions, "pull", &["pull/detail", "pull/closure"]),
    (
        "lists without what was published",
        empty_skill_list,
        "discovery",
        &["discovery/listed", "discovery/filter-tag"],
    ),
    ("a cursor that stands still", endless_pagination, "discovery", &["discovery/cursor"]),
    (
        "searches find nothing",
        empty_search_results,
        "search",
        &["search/exact", "search/body", "search/typo"],
    ),
    (
        "everything is taken",
        accept_every_post,
        "publish",
        &[
            "publish/same-bytes", "publish/other-bytes", "publish/no-token",
            "publish/forged-tokens", "publish/not-a-zip",
        ],
    ),
    (
        "everything is taken in a race",
        accept_every_post,
        "immutability",
        &["immutability/race", "immutability/race-forms"],
    ),
    (
        "errors of another shape",
        wrong_error_format,
        "errors",
        &["errors/not-found", "errors/json", "errors/artifact"],
    ),
];

fn change_bytes(response: &mut ProxiedResponse) {
    if response.path.contains("/artifacts/") || response.path.ends_with("SKILL.md") {
        response.body.iter_mut().rev().take(1).for_each(|last| *last ^= 1);
    }
}

fn drop_etags(response: &mut ProxiedResponse) {
    response.headers.retain(|(name, _)| name != "etag");
}

fn disable_caching(response: &mut ProxiedResponse) {
    response.set("cache-control", "no-store");
}

fn ignore_ranges(response: &mut ProxiedResponse) {
    if [206, 416].contains(&response.status) {
        response.status = 200;
    }
}

fn wrong_version_header(response: &mut ProxiedResponse) {
    if response.path.contains("/download") {
        response.set("x-skill-version", "2.0.0-rc.1");
    }
}

fn change_versions(response: &mut ProxiedResponse) {
    if response.path.contains("/closure") {
        response.body.clear();
    }
    if response.path.contains("/api/v1/skills/") {
        response.replace("\"version\":\"1.0.0\"", "\"version\":\"0.9.0\"");
    }
}

fn empty_skill_list(response: &mut ProxiedResponse) {
    if response.method == "GET" && response.path.starts_with("/registry/api/v1/skills?") {
        response.body = br#"{"items":[],"next_cursor":null}"#.to_vec();
    }
}

fn endless_pagination(response: &mut ProxiedResponse) {
    if response.path.starts_with("/registry/api/v1/skills?") {
        response.replace("\"next_cursor\":null", "\"next_cursor\":\"again\"");
    }
}

fn empty_search_results(response: &mut ProxiedResponse) {
    if response.path.contains("/search") {
        response.body = br#"{"query":"","items":[],"total":0}"#.to_vec();
    }
}

fn accept_every_post(response: &mut ProxiedResponse) {
    if response.method == "POST" {
        response.status = 201;
    }
}

fn wrong_error_format(response: &mut ProxiedResponse) {
    if response.status >= 400 {
        response.body = br#"{"detail":"no"}"#.to_vec();
    }
}

/// Starts a proxy for a server; returns the URL of the registry behind it.
fn proxy(server: &str, defect: Defect) -> String {
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

fn pass(stream: TcpStream, server: &str, defect: Defect) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (first, headers) = head(&mut reader)?;
    let mut body = Vec::new();
    reader.take(length(&headers).unwrap_or(0)).read_to_end(&mut body).ok()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut there = TcpStream::connect(server).ok()?;
    // The server may close the connection before it has read everything.
    let _ = there.write_all(&written(&first, &headers, &body));
    let mut answer = BufReader::new(there);
    let (first, headers) = head(&mut answer)?;
    let size = length(&headers);
    let mut body = Vec::new();
    let _ = answer.read_to_end(&mut body);
    let status = first.split(' ').nth(1)?.parse().ok()?;
    let is_head = method == "HEAD";
    let mut response = ProxiedResponse { method, path, status, headers, body };
    defect(&mut response);
    let first = format!("HTTP/1.1 {} So", response.status);
    let mut bytes = written(&first, &response.headers, &response.body);
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
fn every_defect_is_found() {
    let sandbox = Sandbox::new();
    let server = TestServer::start(&sandbox, &["--rate-limit", "off"], None);
    let token = register(&server, "ada@example.com");
    for (what, defect, group, expected) in DEFECTS {
        let url = proxy(&server.address, *defect);
        let args = ["registry", "conformance", &url, "--token", &token, "--only", group, "--json"];
        let done = sandbox.run(&args);
        let report = done.json();
        let failed = failed(&report);
        for id in *expected {
            assert!(failed.contains(id), "{what}: {id} passed; these failed: {failed:?}");
        }
    }
    // Without a defect, all checks pass.
    let url =
        proxy(&server.address, |response| assert!(!response.is_index() || response.status < 500));
    for group in ["discovery", "search"] {
        let args = ["registry", "conformance", &url, "--token", &token, "--only", group, "--json"];
        let done = sandbox.run(&args);
        assert_eq!(failed(&done.json()), [""; 0], "{done}");
    }
}
