//! Tests how a server stops: immediately when it is idle, otherwise after running work has ended.

use std::{
    io::{BufRead as _, Read as _, Write as _},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    live_server::{Provider, ProviderBehavior, TestServer},
    support::Sandbox,
};

#[test]
fn server_without_streams_stops_immediately() {
    let sandbox = Sandbox::new();
    let server = TestServer::start(&sandbox, &[], None);
    // Browsers keep connections open.
    let mut idle = TcpStream::connect(&server.address).expect("a server");
    write!(idle, "GET /health HTTP/1.1\r\nhost: {}\r\n\r\n", server.address).expect("a request");
    let mut start = [0; 12];
    idle.read_exact(&mut start).expect("an answer");
    assert_eq!(&start, b"HTTP/1.1 200");
    let output = Instant::now();
    server.signal("-TERM");
    let (code, log) = server.wait();
    assert_eq!(code, Some(0), "{log}");
    assert!(output.elapsed() < Duration::from_secs(3), "{:?}", output.elapsed());
}

#[test]
fn requests_that_finish_in_time_succeed() {
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Slowly(&["It ", "rained ", "all ", "day."]));
    let server = TestServer::start(&sandbox, &["--grace", "20"], Some(&provider));
    let token = server.log_in(&sandbox);
    let inputs = json!({"inputs": {"article": "Rain fell."}});
    let path = "/api/v1/skills/article-summary/run";
    let mut stream = server.send_streaming("POST", path, &token, Some(&inputs));
    let mut text = String::new();
    while !text.contains("event: token") {
        assert_ne!(stream.reader.read_line(&mut text).expect("a line"), 0, "{text}");
    }
    server.signal("-TERM");
    let output = Instant::now();
    thread::sleep(Duration::from_millis(200));
    // New connections are rejected.
    assert!(TestServer::try_ask(&server.address, "GET", "/health", "", None).is_none());
    while stream.reader.read_line(&mut text).expect("a line") > 0 {}
    assert!(text.contains("day.") && text.contains("completed successfully"), "{text}");
    assert!(!text.contains("event: error"), "{text}");
    let (code, log) = server.wait();
    assert_eq!(code, Some(0), "{log}");
    assert!(output.elapsed() < Duration::from_secs(8), "{:?}", output.elapsed());
}

#[test]
fn stopped_workflow_can_be_resumed() {
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Dawdles);
    let server = TestServer::start(&sandbox, &["--grace", "1"], Some(&provider));
    let token = server.log_in(&sandbox);
    let graph = json!({
        "nodes": [{"id": "s", "type": "start"}, {"id": "m", "type": "llm"}],
        "edges": [{"source": "s", "target": "m"}],
    });
    let workflow = json!({"name": "long", "graph_data": graph});
    let made = server.ask("POST", "/api/v1/workflows", &token, Some(&workflow)).json();
    let path = format!("/api/v1/workflows/{}/execute", made["id"].as_str().expect("an id"));
    let mut stream =
        server.send_streaming("POST", &path, &token, Some(&json!({"input": "Tell me."})));
    let mut text = String::new();
    while !text.contains("event: token") {
        assert_ne!(stream.reader.read_line(&mut text).expect("a line"), 0, "{text}");
    }
    server.signal("-TERM");
    let output = Instant::now();
    while stream.reader.read_line(&mut text).expect("a line") > 0 {}
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(&names[names.len() - 2..], ["workflow_error", "done"], "{text}");
    let (code, log) = server.wait();
    assert_eq!(code, Some(0), "{log}");
    assert!(output.elapsed() < Duration::from_secs(8), "{:?}", output.elapsed());

    // It released its lease, so other servers need not wait.
    let id = text.split("\"execution_id\": \"").nth(1).and_then(|rest| rest.split('"').next());
    let path = format!("/api/v1/workflows/executions/{}/resume", id.expect("an id"));
    let quick = Provider::new(ProviderBehavior::Says(&["Done."]));
    let server = TestServer::start(&sandbox, &[], Some(&quick));
    let answer = server.ask("POST", &path, &token, None);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.body.contains("\"final_output\": \"Done.\""), "{}", answer.body);
}

#[test]
fn killed_workflow_can_be_resumed_within_seconds() {
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Dawdles);
    let server = TestServer::start(&sandbox, &["--rate-limit", "off"], Some(&provider));
    let token = server.log_in(&sandbox);
    let graph = json!({
        "nodes": [{"id": "s", "type": "start"}, {"id": "m", "type": "llm"}],
        "edges": [{"source": "s", "target": "m"}],
    });
    let workflow = json!({"name": "long", "graph_data": graph});
    let made = server.ask("POST", "/api/v1/workflows", &token, Some(&workflow)).json();
    let path = format!("/api/v1/workflows/{}/execute", made["id"].as_str().expect("an id"));
    let mut stream =
        server.send_streaming("POST", &path, &token, Some(&json!({"input": "Tell me."})));
    let mut text = String::new();
    while !text.contains("event: token") {
        assert_ne!(stream.reader.read_line(&mut text).expect("a line"), 0, "{text}");
    }
    let id = text.split("\"execution_id\": \"").nth(1).and_then(|rest| rest.split('"').next());
    let path = format!("/api/v1/workflows/executions/{}/resume", id.expect("an id"));
    let running = server.ask("POST", &path, &token, None);
    assert_eq!(running.status, 409, "{}", running.body);
    assert!(running.head.contains("retry-after: 2"), "{}", running.head);
    server.signal("-KILL");
    let killed = Instant::now();
    assert_eq!(server.wait().0, None, "it was killed");

    let quick = Provider::new(ProviderBehavior::Says(&["Done."]));
    let server = TestServer::start(&sandbox, &["--rate-limit", "off"], Some(&quick));
    let answer = loop {
        let answer = server.ask("POST", &path, &token, None);
        if answer.status != 409 {
            break answer;
        }
        // Two seconds for the lease, and some for a slow machine.
        assert!(killed.elapsed() < Duration::from_secs(8), "{:?}", killed.elapsed());
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.body.contains("\"final_output\": \"Done.\""), "{}", answer.body);
}
