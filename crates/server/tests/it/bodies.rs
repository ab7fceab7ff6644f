//! Fuzzes every route with malformed bodies: each gets a response, and never 500. (A missing model
//! or source may still cause 502 to 504.)
//!
//! A body is generated from the schema of the route, then one or two parts are replaced by unusual
//! values, and some bodies are damaged byte by byte. `SAVOIR_TEST_BODIES_SECONDS` sets how many
//! seconds the test runs.

use std::time::{Duration, Instant};

use reqwest::Method;
use savoir_server::{RateLimits, openapi};
use serde_json::{Map, Value, json};

use crate::harness::{ADMIN, Client, TestServer};

/// Number of bodies for each route if `SAVOIR_TEST_BODIES_SECONDS` is not set.
const ROUNDS: usize = 10;

/// A random number generator whose numbers repeat for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.roll() % end.max(1) as u64) as usize
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// A route that accepts a body.
struct Route {
    method: Method,
    path: String,
    media_type: String,
    schema: Value,
}

fn routes(document: &Value) -> Vec<Route> {
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let content = operation["requestBody"]["content"].as_object();
            for (media_type, content) in content.into_iter().flatten() {
                found.push(Route {
                    method: method.to_uppercase().parse().unwrap(),
                    path: path.clone(),
                    media_type: media_type.clone(),
                    schema: content["schema"].clone(),
                });
            }
        }
    }
    let message = json!({"type": "object", "properties": {
        "jsonrpc": {"enum": ["2.0", "1.0"]},
        "id": {"type": ["integer", "string", "null"]},
        "method": {"enum": ["initialize", "tools/list", "tools/call", "resources/read", "ping"]},
        "params": {"type": "object", "properties": {
            "name": {"type": "string"},
            "uri": {"type": "string"},
            "arguments": {"type": "object"},
        }},
    }});
    found.push(Route {
        method: Method::POST,
        path: "/mcp".to_owned(),
        media_type: "application/json".to_owned(),
        schema: message,
    });
    found
}

/// A value that matches a schema, approximately.
fn fitting(schema: &Value, document: &Value, dice: &mut Dice, depth: usize) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(&reference[1..]).unwrap();
        return fitting(target, document, dice, depth + 1);
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        if let Some(choices) = schema[key].as_array() {
            return fitting(dice.pick(choices), document, dice, depth + 1);
        }
    }
    if let Some(choices) = schema["enum"].as_array() {
        return dice.pick(choices).clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => dice.pick(kinds).as_str(),
        kind => kind.as_str(),
    };
    match kind {
        Some("object") => {
            let mut members = Map::new();
            let properties = schema["properties"].as_object();
            for (name, inner) in properties.into_iter().flatten().filter(|_| depth < 12) {
                if !dice.one_in(12) {
                    let fitting = match apt(name, dice) {
                        Some(text) if !dice.one_in(8) => json!(text),
                        _ => fitting(inner, document, dice, depth + 1),
                    };
                    members.insert(name.clone(), fitting);
                }
            }
            Value::Object(members)
        }
        Some("array") if depth < 12 => {
            let length = dice.below(3);
            let item = |_| fitting(&schema["items"], document, dice, depth + 1);
            Value::Array((0..length).map(item).collect())
        }
        Some("integer") => json!(dice.below(5)),
        Some("number") => json!(0.5),
        Some("boolean") => json!(dice.one_in(2)),
        Some("string") => json!(dice.pick(&TEXTS)),
        _ => Value::Null,
    }
}

/// A realistic value for a field of this name.
fn apt(field: &str, dice: &mut Dice) -> Option<String> {
    Some(match field {
        "name" | "title" => format!("n{}", dice.below(1_000_000)),
        "email" => format!("e{}@example.org", dice.below(1_000_000)),
        "password" => "correct horse".to_owned(),
        "description" | "reason" | "message" | "text" => "Some words.".to_owned(),
        "content" | "prompt" => "---\nname: seed\ndescription: A seed.\n---\nGrow.\n".to_owned(),
        "role" => dice.pick(&["owner", "publisher", "reader"]).to_string(),
        _ => return None,
    })
}

/// Strings that occur in requests.
const TEXTS: [&str; 12] = [
    "seed",
    "admin@example.org",
    // Not the password of the tests, because changing it would revoke the token.
    "wrong horse",
    "1.0.0",
    "https://127.0.0.1:9/x.git",
    "---\nname: seed\ndescription: A seed.\n---\n{{x}} {{#each y}}\n",
    "---\nname: [\n",
    "publisher",
    "2026-01-01T00:00:00Z",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "",
];

/// An unexpected value.
fn odd(dice: &mut Dice) -> Value {
    match dice.below(16) {
        0 => Value::Null,
        1 => json!(i64::MIN),
        2 => json!(u64::MAX),
        3 => json!(1e308),
        4 => json!(-0.0),
        5 => json!("\0"),
        6 => json!("a".repeat(70_000)),
        7 => json!("\u{202e}\u{200b}\u{feff}"),
        8 => json!("../../../etc/passwd"),
        9 => json!("'; DROP TABLE accounts; --"),
        10 => json!({"$ref": "#"}),
        11 => (0..100).fold(json!(1), |inner, _| json!([inner])),
        12 => (0..100).fold(json!(1), |inner, _| json!({"a": inner})),
        13 => json!(vec![0; 2_000]),
        14 => json!("\u{10ffff}\r\n\r\nHTTP/1.1 200 OK"),
        _ => json!(true),
    }
}

/// Replaces or adds one part of a value.
fn disturb(value: &mut Value, dice: &mut Dice) {
    let is_leaf = match &*value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    };
    if is_leaf || dice.one_in(8) {
        *value = odd(dice);
        return;
    }
    match value {
        Value::Array(items) => {
            let at = dice.below(items.len());
            disturb(&mut items[at], dice);
        }
        Value::Object(members) if dice.one_in(8) => {
            members.insert("unexpected".to_owned(), odd(dice));
        }
        Value::Object(members) => {
            let at = dice.below(members.len());
            if let Some(inner) = members.values_mut().nth(at) {
                disturb(inner, dice);
            }
        }
        _ => {}
    }
}

/// The bytes of a body, possibly damaged.
fn body(route: &Route, document: &Value, dice: &mut Dice) -> Vec<u8> {
    let mut value = fitting(&route.schema, document, dice, 0);
    for _ in 0..dice.below(3) {
        // One third of the bodies stay undisturbed.
        disturb(&mut value, dice);
    }
    let mut bytes = match route.media_type.as_str() {
        "multipart/form-data" => form(&value, dice),
        "application/x-www-form-urlencoded" => format!("a=%zz&{value}").into_bytes(),
        _ => value.to_string().into_bytes(),
    };
    if dice.one_in(6) && !bytes.is_empty() {
        let at = dice.below(bytes.len());
        match dice.below(4) {
            0 => bytes.truncate(at),
            1 => bytes[at] = 0xff,
            2 => bytes[at] = b'"',
            _ => bytes.splice(at..at, *b"\\ud800").for_each(drop),
        }
    }
    bytes
}

const BOUNDARY: &str = "edge";

fn form(value: &Value, dice: &mut Dice) -> Vec<u8> {
    let mut text = Vec::new();
    let members = value.as_object().cloned().unwrap_or_default();
    for (name, inner) in &members {
        let file = dice.pick(&["SKILL.md", "x.zip", "../x.pdf", "", "a\"b.txt", "x.docx"]);
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{file}\"\r\n\r\n"
        );
        text.extend_from_slice(head.as_bytes());
        match inner.as_str() {
            Some(inner) => text.extend_from_slice(inner.as_bytes()),
            None => text.extend_from_slice(b"PK\x03\x04\x14\0\0\0\x08\0\xff\xff"),
        }
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    text
}

/// Ids of resources that the test created.
struct Ids {
    base: String,
    workflow: String,
}

/// The path of a route, with ids that exist and some that do not.
fn address(path: &str, ids: &Ids, dice: &mut Dice) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        parts.push(match part.strip_prefix('{') {
            Some(_) if dice.one_in(4) => *dice.pick(&["%00", "..%2f", "%f0%9f%a6%80", "-1", "0"]),
            Some("version}") => "1.0.0",
            Some("kb}") => &ids.base,
            Some("id}") => &ids.workflow,
            Some(_) => "seed",
            None => part,
        });
    }
    parts.join("/")
}

/// Sends one body; returns the status of the response.
async fn send(client: &Client, ids: &Ids, route: &Route, document: &Value, seed: u64) -> u16 {
    let dice = &mut Dice(seed);
    let path = address(&route.path, ids, dice);
    let bytes = body(route, document, dice);
    let media_type = match route.media_type.as_str() {
        "multipart/form-data" => format!("multipart/form-data; boundary={BOUNDARY}"),
        other => other.to_owned(),
    };
    let request = client.request(route.method.clone(), &path).header("content-type", media_type);
    let request = request.header("accept", "application/json, text/event-stream");
    let request = request.timeout(Duration::from_secs(30)).body(bytes.clone());
    let context = || {
        let shown: String = String::from_utf8_lossy(&bytes).chars().take(400).collect();
        format!("seed {seed}: {} {path}: {shown}", route.method)
    };
    let response = request.send().await.unwrap_or_else(|error| panic!("{error}: {}", context()));
    let status = response.status().as_u16();
    let text = response.text().await.unwrap_or_else(|error| panic!("{error}: {}", context()));
    assert!(status != 500, "{text}: {}", context());
    status
}

#[tokio::test]
async fn every_route_answers_any_body() {
    let seconds = std::env::var("SAVOIR_TEST_BODIES_SECONDS").ok().and_then(|s| s.parse().ok());
    let server = TestServer::with(|config| {
        config.limits = RateLimits { runs: 0, routes: 0, all: 0 };
    });
    let server = server.await;
    let admin = server.register(ADMIN).await;
    let content = "---\nname: seed\ndescription: A seed.\n---\nGrow.\n";
    let reply = admin.post("/api/v1/skills", &json!({"name": "seed", "content": content})).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let base = admin.post("/api/v1/knowledge", &json!({"name": "seed"})).await.json();
    let workflow = json!({"name": "seed", "graph_data": {"nodes": [], "edges": []}});
    let workflow = admin.post("/api/v1/workflows", &workflow).await.json();
    let id = |made: &Value| made["id"].to_string().trim_matches('"').to_owned();
    let ids = Ids { base: id(&base), workflow: id(&workflow) };
    let document = serde_json::to_value(openapi()).unwrap();
    let routes = routes(&document);
    assert!(routes.len() > 40);
    let begun = Instant::now();
    let again = |round: usize| match seconds {
        Some(seconds) => begun.elapsed() < Duration::from_secs(seconds),
        None => round < ROUNDS,
    };
    let (mut accepted, mut sent) = (0, 0);
    for round in (0..).take_while(|round| again(*round)) {
        for (index, route) in routes.iter().enumerate() {
            let seed = (round * 1_000 + index) as u64;
            let status = send(&admin, &ids, route, &document, seed).await;
            accepted += usize::from(status < 300);
            sent += 1;
        }
    }
    assert!(accepted * 30 > sent, "only {accepted} of {sent} bodies came past the checks");
    assert_eq!(admin.get("/api/v1/auth/me").await.status, 200, "it still serves");
}
