//! Tests of HTTP nodes.

use std::{net::SocketAddr, time::Duration};

use savoir_flow::workflow::{HttpPolicy, WorkflowHost};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinHandle,
};

use super::{Scripted, error_of, events, fresh, graph, host, lines, output_of};

/// Starts a server that answers one request; the task returns the request.
async fn server(answer: Vec<u8>) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let length = stream.read(&mut buffer).await.unwrap();
            asked.extend_from_slice(&buffer[..length]);
            let text = String::from_utf8_lossy(&asked);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                break;
            }
        }
        // The client may close the connection before the whole response is sent.
        let _ = stream.write_all(&answer).await;
        String::from_utf8(asked).unwrap()
    });
    (address, served)
}

fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes()
}

fn open() -> WorkflowHost {
    let mut host = host(&Scripted::new(&[]));
    host.http.private = true;
    host
}

#[tokio::test]
async fn request_is_sent_to_the_server() {
    let (address, served) = server(answer("201 Created", "", r#"{"a": [{"b": 7}]}"#)).await;
    let data = json!({
        "method": "post",
        "url": format!("http://{address}/x?q={{{{input}}}}"),
        "headers": {"X-Topic": "{{topic}}", "Host": "evil.example"},
        "body": {"text": "{{s.output}}", "n": 5},
        "responsePath": "a.0.b",
    });
    let nodes = [("s", "start", json!({"inputVariable": "topic"})), ("h", "http", data)];
    let graph = graph(&nodes, &["s h"]);
    let all = lines(&events(&open(), fresh(&graph, "cats"), &super::NoJournal).await);
    assert_eq!(
        all[3..5],
        [
            r#"node_start {"node_id":"h","node_type":"http"}"#,
            r#"node_complete {"node_id":"h","output":7,"status_code":201}"#,
        ]
    );
    let asked = served.await.unwrap();
    assert!(asked.starts_with("POST /x?q=cats HTTP/1.1\r\n"), "{asked}");
    assert!(asked.ends_with("\r\n\r\n{\"text\":\"cats\",\"n\":5}"), "{asked}");
    let head = asked.to_lowercase();
    assert!(head.contains("x-topic: cats") && head.contains("content-type: application/json"));
    assert!(head.contains(&format!("host: {address}")) && !head.contains("evil"));
}

#[tokio::test]
async fn response_is_text_of_limited_size() {
    let (address, _) = server(answer("404 Not Found", "", "{\"a\": 1}")).await;
    let data = |address: SocketAddr| json!({"url": format!("http://{address}/")});
    assert_eq!(output_of(&open(), "http", data(address), "x").await, json!("{\"a\": 1}"));
    let (address, _) = server(answer("200 OK", "", &"é".repeat(1 << 20))).await;
    let Value::String(text) = output_of(&open(), "http", data(address), "x").await else {
        panic!("a text")
    };
    assert_eq!(text.len(), 1 << 20);
    let (address, _) = server(answer("200 OK", "", "no JSON")).await;
    let data = json!({"url": format!("http://{address}/"), "responsePath": "a"});
    assert_eq!(output_of(&open(), "http", data, "x").await, json!(""));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (address, _) = server(answer("302 Found", "location: http://127.0.0.1:1/\r\n", "go")).await;
    let data = json!({"url": format!("http://{address}/")});
    assert_eq!(output_of(&open(), "http", data, "x").await, json!("go"));
}

#[tokio::test]
async fn checked_address_is_connected() {
    let (address, served) = server(answer("200 OK", "", "here")).await;
    let data = json!({"url": format!("http://localhost:{}/", address.port())});
    assert_eq!(output_of(&open(), "http", data, "x").await, json!("here"));
    assert!(served.await.unwrap().contains("localhost"));
}

#[tokio::test]
async fn private_addresses_are_blocked_by_default() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let host = host(&Scripted::new(&[]));
    for name in [
        "127.0.0.1", "localhost", "[::1]", "10.0.0.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1",
        "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "169.254.169.254", "user:pw@127.0.0.1",
    ] {
        let data = json!({"url": format!("http://{name}:{port}/"), "timeoutSeconds": 5});
        let error = error_of(&host, "http", data).await;
        assert_eq!(error, "Target host resolves to blocked IP", "{name}");
    }
    let came = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(came.is_err(), "nobody was to come");
}

#[tokio::test]
async fn template_cannot_change_the_host() {
    let mut host = open();
    host.http = HttpPolicy { private: true, ..HttpPolicy::only(["example.invalid"]).unwrap() };
    let data = json!({"url": "http://{{input}}example.invalid/"});
    let graph = graph(&[("s", "start", json!({})), ("n", "http", data)], &["s n"]);
    for input in ["127.0.0.1/", "127.0.0.1#", "127.0.0.1\\", "127.0.0.1?x@", "not"] {
        let all = lines(&events(&host, fresh(&graph, input), &super::NoJournal).await);
        assert!(all[4].contains("A value cannot choose the host"), "{input}: {}", all[4]);
    }
}

#[tokio::test]
async fn status_and_headers_can_be_tested() {
    let (address, _) = server(answer("503 Busy", "retry-after: 7\r\n", "later")).await;
    let nodes = [
        ("s", "start", json!({})),
        ("h", "http", json!({"url": format!("http://{address}/")})),
        (
            "c",
            "condition",
            json!({"expression": "{{h.status}} >= 500 && {{h.headers.retry-after}} == '7'"}),
        ),
        ("bad", "end", json!({})),
        ("good", "end", json!({})),
    ];
    let graph = graph(&nodes, &["s h", "h c", "c bad true", "c good false"]);
    let all = lines(&events(&open(), fresh(&graph, "x"), &super::NoJournal).await);
    let ends = all.iter().filter(|line| line.contains(r#""node_type":"end""#));
    assert_eq!(ends.collect::<Vec<_>>(), [r#"node_start {"node_id":"bad","node_type":"end"}"#]);
}

#[tokio::test]
async fn silent_or_missing_server_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let data = json!({"url": format!("http://{address}/"), "timeoutSeconds": 1});
    assert_eq!(failure(data.clone()).await, "the server did not answer within 1 s");
    drop(listener);
    assert_eq!(failure(data).await, "no connection to the server");
    let bad = json!({"url": format!("http://{address}/"), "headers": {"X": "a\nb: c"}});
    let reason = "the value of the header `x` has a line feed or another control character";
    assert_eq!(failure(bad).await, reason);
    let bad = json!({"url": format!("http://{address}/"), "headers": {"X Y": "a"}});
    assert_eq!(failure(bad).await, "`X Y` cannot be the name of a header");
    let bad = json!({"url": "http://127.0.0.1:99999/"});
    assert_eq!(failure(bad).await, "the URL is not valid: invalid port number");
}

/// Returns the reason in the warning before the general error of a node.
async fn failure(data: Value) -> String {
    assert_eq!(error_of(&open(), "http", data.clone()).await, "HTTP request failed");
    let graph = graph(&[("s", "start", json!({})), ("n", "http", data)], &["s n"]);
    let all = lines(&events(&open(), fresh(&graph, "x"), &super::NoJournal).await);
    let warning = all.iter().find_map(|line| line.split_once("HTTP request failed: "));
    let (_, reason) = warning.unwrap_or_else(|| panic!("no warning: {all:?}"));
    reason.split(['"', '\\']).next().unwrap().to_owned()
}

/// Returns the types of the completed nodes, and the warnings.
async fn passed_on(size: usize, more: usize) -> (Vec<String>, Vec<String>) {
    let (address, _) = server(answer("200 OK", "", &"x".repeat(size))).await;
    let mut nodes = vec![
        ("s".to_owned(), "start", json!({})),
        ("h".to_owned(), "http", json!({"url": format!("http://{address}/")})),
    ];
    let mut edges = vec!["s h".to_owned()];
    for number in 0..=more {
        let id = format!("n{number}");
        let kind = if number == more { "end" } else { "condition" };
        edges.push(format!("{} {id}", nodes.last().unwrap().0));
        nodes.push((id, kind, json!({})));
    }
    let nodes: Vec<_> =
        nodes.iter().map(|(id, kind, data)| (id.as_str(), *kind, data.clone())).collect();
    let edges: Vec<_> = edges.iter().map(String::as_str).collect();
    let graph = graph(&nodes, &edges);
    let all = lines(&events(&open(), fresh(&graph, "x"), &super::NoJournal).await);
    let ended = all.iter().filter(|line| !line.starts_with("node_complete"));
    let ended = ended.filter(|line| line.contains("_error") || line.contains("exceed"));
    let warnings = all.iter().filter(|line| line.contains("was cut"));
    (ended.cloned().collect(), warnings.cloned().collect())
}

#[tokio::test]
async fn one_mebibyte_passes_through_conditions() {
    let (errors, warnings) = passed_on(1 << 20, 3).await;
    assert!(errors.is_empty() && warnings.is_empty(), "{errors:?} {warnings:?}");
    let (errors, warnings) = passed_on(3 << 20, 0).await;
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("The response was cut after 1 MiB"), "{warnings:?}");
    // Copies are stored, too, so there is a limit for them.
    let (errors, _) = passed_on(1 << 20, 20).await;
    let limit = "Workflow outputs exceed 8 MiB together with the nodes that pass them on";
    assert!(errors.iter().any(|error| error.contains(limit)), "{errors:?}");
}
