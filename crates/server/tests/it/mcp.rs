//! Tests `/mcp`: MCP over HTTP.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{ADMIN, Client, Reply, TestServer};

const SKILL: &str = "---\nname: greet\ndescription: Greets someone.\ninputs:\n  - name: who\n    label: Who\n    type: text\n    required: true\n---\n\nGreet {{who}}.\n";

/// Posts a message as an MCP client.
async fn post(client: &Client, session: Option<&str>, body: &Value) -> Reply {
    post_to(client, "/mcp", session, body).await
}

async fn post_to(client: &Client, path: &str, session: Option<&str>, body: &Value) -> Reply {
    let request = client
        .request(Method::POST, path)
        .header("accept", "application/json, text/event-stream")
        .json(body);
    let request = match session {
        Some(session) => {
            request.header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25")
        }
        None => request,
    };
    Reply::of(request).await
}

fn hello() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "tests", "version": "1"},
    }})
}

pub(crate) async fn begin(client: &Client) -> String {
    begin_at(client, "/mcp").await
}

/// The response to the first message, at a path.
pub(crate) async fn greet(client: &Client, path: &str) -> Reply {
    post_to(client, path, None, &hello()).await
}

pub(crate) async fn begin_at(client: &Client, path: &str) -> String {
    let reply = greet(client, path).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let session = reply.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let response = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(client, Some(&session), &response).await.status, 202);
    session
}

/// The response to a request in a session.
pub(crate) async fn ask(client: &Client, session: &str, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let reply = post(client, Some(session), &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    // The response may be plain JSON instead of a stream.
    if let Ok(answer) = serde_json::from_str::<Value>(&reply.text) {
        assert_eq!(answer["id"], 7, "{answer}");
        return answer;
    }
    let data = reply.text.lines().filter_map(|line| line.strip_prefix("data:"));
    let messages = data.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok());
    messages.into_iter().find(|message| message["id"] == 7).expect("an answer")
}

async fn with_skill(server: &TestServer, email: &str) -> Client {
    let client = server.register(email).await;
    let made = client.post("/api/v1/skills", &json!({"name": "greet", "content": SKILL})).await;
    assert_eq!(made.status, 201, "{}", made.text);
    client
}

#[tokio::test]
async fn everyone_has_their_own_skills_and_sessions() {
    let server = TestServer::start().await;
    let ada = with_skill(&server, "ada@example.org").await;
    let bob = server.register("bob@example.org").await;
    let (of_ada, of_bob) = (begin(&ada).await, begin(&bob).await);
    let query = json!({"name": "search_skills", "arguments": {"query": "greets"}});
    let found = ask(&ada, &of_ada, "tools/call", query.clone()).await;
    assert_eq!(found["result"]["structuredContent"]["skills"][0]["name"], "greet", "{found}");
    let found = ask(&bob, &of_bob, "tools/call", query).await;
    assert_eq!(found["result"]["structuredContent"]["of"], 0, "{found}");
    let used = json!({"name": "use_skill", "arguments": {"name": "greet"}});
    let refused = ask(&bob, &of_bob, "tools/call", used.clone()).await;
    assert_eq!(refused["result"]["structuredContent"]["error"]["code"], "unknown-skill");
    let used = ask(&ada, &of_ada, "tools/call", used).await;
    assert_eq!(used["result"]["isError"], false, "{used}");
    let made =
        ask(&ada, &of_ada, "prompts/get", json!({"name": "greet", "arguments": {"who": "Eve"}}));
    let made = made.await;
    let text = made["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert_eq!(text.trim(), "Greet Eve.");
    let read = ask(&bob, &of_bob, "resources/read", json!({"uri": "skill://greet/SKILL.md"})).await;
    assert_eq!(read["error"]["code"], -32002, "{read}");
    // The session of another user is reported as not found.
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(post(&bob, Some(&of_ada), &list).await.status, 404);
}

#[tokio::test]
async fn user_only_skills_are_prompts_and_not_tools() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    for (name, fields, body) in [
        ("deploy", "disable-model-invocation: true\n", "Deploy it."),
        (
            "ask",
            "disable-model-invocation: true\ninputs:\n  - {name: who, type: text, required: true}\n",
            "Ask {{who}}.",
        ),
        ("knows", "user-invocable: false\n", "Know $ARGUMENTS."),
        ("all", "", "Mend $ARGUMENTS."),
        ("plain", "", "Do it."),
    ] {
        let content = format!("---\nname: {name}\ndescription: Tries it.\n{fields}---\n{body}\n");
        let made = ada.post("/api/v1/skills", &json!({"name": name, "content": content})).await;
        assert_eq!(made.status, 201, "{name}: {}", made.text);
    }
    let session = begin(&ada).await;
    let listed = ask(&ada, &session, "prompts/list", json!({})).await;
    let prompts = listed["result"]["prompts"].as_array().unwrap();
    let names: Vec<&str> = prompts.iter().map(|prompt| prompt["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["all", "ask", "deploy"], "{listed}");
    let get = async |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        let response = ask(&ada, &session, "prompts/get", params).await;
        let text = response["result"]["messages"][0]["content"]["text"].as_str();
        text.map_or_else(|| response["error"]["code"].to_string(), |text| text.trim().to_owned())
    };
    assert_eq!(get("deploy", json!({})).await, "Deploy it.");
    assert_eq!(get("ask", json!({"who": "Eve"})).await, "Ask Eve.");
    assert_eq!(get("all", json!({"ARGUMENTS": "it"})).await, "Mend it.");
    assert_eq!(get("knows", json!({})).await, "-32602");
    let call = async |tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        ask(&ada, &session, "tools/call", params).await["result"].clone()
    };
    let found = call("search_skills", json!({"query": "tries it"})).await;
    assert_eq!(found["structuredContent"]["of"], 3, "{found}");
    for name in ["deploy", "ask"] {
        let refused = call("use_skill", json!({"name": name})).await;
        assert_eq!(refused["structuredContent"]["error"]["code"], "not-callable", "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_names_are_handled_fast_and_not_echoed() {
    let server = TestServer::start().await;
    let ada = with_skill(&server, "ada@example.org").await;
    let session = begin(&ada).await;
    let long = "x".repeat(900_000);
    let clock = Instant::now();
    let call = |tool: &str, arguments: Value| json!({"name": tool, "arguments": arguments});
    let who = json!({long.clone(): "Eve"});
    for (method, params) in [
        ("tools/call", call("use_skill", json!({"name": long}))),
        ("tools/call", call("read_skill_file", json!({"name": long, "path": "a.md"}))),
        ("tools/call", call("read_skill_file", json!({"name": "greet", "path": long}))),
        ("tools/call", call("run_skill_tool", json!({"skill": long, "tool": "x"}))),
        ("tools/call", call("search_skills", json!({"query": "xq ".repeat(300_000)}))),
        ("tools/call", call(&long, json!({}))),
        ("prompts/get", json!({"name": long})),
        ("prompts/get", json!({"name": "greet", "arguments": who})),
        ("resources/read", json!({"uri": long})),
        ("resources/read", json!({"uri": format!("skill://{long}/SKILL.md")})),
        ("resources/read", json!({"uri": format!("skill://greet/{long}")})),
        ("resources/directory/read", json!({"uri": format!("skill://{long}")})),
        ("resources/directory/read", json!({"uri": format!("skill://greet/{long}")})),
        ("skills/get", json!({"uri": format!("skill://{long}/SKILL.md")})),
        ("skills/get", json!({"uri": long})),
        (&long, json!({})),
    ] {
        let answer = ask(&ada, &session, method, params).await.to_string();
        assert!(answer.len() < 2_000, "{}: {} bytes", &method[..4], answer.len());
    }
    assert!(clock.elapsed() < Duration::from_secs(20), "{:?}", clock.elapsed());
}

#[tokio::test]
async fn unknown_cursor_is_an_error() {
    let server = TestServer::start().await;
    let ada = with_skill(&server, "ada@example.org").await;
    let session = begin(&ada).await;
    for method in ["tools/list", "prompts/list", "resources/list", "skills/list"] {
        for cursor in [json!("nowhere"), json!(5), json!([])] {
            let wrong = ask(&ada, &session, method, json!({"cursor": cursor})).await;
            assert_eq!(wrong["error"]["code"], -32602, "{method} {cursor}: {wrong}");
        }
    }
}

#[tokio::test]
async fn requests_need_a_token_with_the_scope() {
    let server = TestServer::start().await;
    let _ = server.register(ADMIN).await;
    let ada = with_skill(&server, "ada@example.org").await;
    assert_eq!(post(&server.stranger(), None, &hello()).await.status, 401);
    assert_eq!(post(&server.client("sav_nonsense"), None, &hello()).await.status, 401);
    for (scope, status) in [("skills:read", 200), ("chat", 403)] {
        let made =
            ada.post("/api/v1/auth/tokens", &json!({"name": scope, "scopes": [scope]})).await;
        let token = made.json()["token"].as_str().unwrap().to_owned();
        assert_eq!(post(&server.client(&token), None, &hello()).await.status, status, "{scope}");
    }
}

#[tokio::test]
async fn foreign_origins_and_floods_are_rejected() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    for (name, value) in
        [("origin", "https://evil.example"), ("origin", "null"), ("host", "evil.example")]
    {
        let reply = post(&ada.header(name, value), None, &hello()).await;
        assert_eq!(reply.status, 403, "{name}: {value}: {}", reply.text);
    }
    let own = format!("http://{}", server.address);
    assert_eq!(post(&ada.header("origin", &own), None, &hello()).await.status, 200);
    let huge = json!({"jsonrpc": "2.0", "id": 1, "method": "x".repeat(2_000_000)});
    assert_eq!(post(&ada, None, &huge).await.status, 413);
    let session = begin(&ada).await;
    for (named, garbage) in [(None, "garbage"), (None, "{\"jsonrpc\":"), (Some(session), "garbage")]
    {
        let request = ada.request(Method::POST, "/mcp");
        let request = request.header("accept", "application/json, text/event-stream");
        let request = request.header("content-type", "application/json").body(garbage);
        let request = match named {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        };
        let reply = Reply::of(request).await;
        assert_eq!(reply.status, 400, "{}", reply.text);
        assert_eq!(reply.json()["error"]["code"], -32700, "{}", reply.text);
        assert_eq!(reply.json()["id"], Value::Null, "{}", reply.text);
    }
    let other = ada.request(Method::POST, "/mcp").header("content-type", "text/plain");
    let other = other.header("accept", "application/json, text/event-stream").body("garbage");
    assert_eq!(Reply::of(other).await.status, 415, "it is no JSON at all");
    for _ in 0..14 {
        assert_eq!(post(&ada, None, &hello()).await.status, 200);
    }
    let full = post(&ada, None, &hello()).await;
    assert_eq!(full.status, 429, "{}", full.text);
}

/// A request of the protocol revision without sessions.
pub(crate) fn modern(client: &Client, method: &str, params: Value) -> reqwest::RequestBuilder {
    modern_at(client, "/mcp", method, params)
}

pub(crate) fn modern_at(
    client: &Client,
    path: &str,
    method: &str,
    mut params: Value,
) -> reqwest::RequestBuilder {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    });
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    client
        .request(Method::POST, path)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method)
        .json(&body)
}

#[tokio::test]
async fn open_sessions_do_not_block_stateless_requests() {
    let server = TestServer::with(|config| {
        config.limits = savoir_server::RateLimits { runs: 0, routes: 0, all: 0 };
    })
    .await;
    let ada = with_skill(&server, "ada@example.org").await;
    for _ in 0..16 {
        begin(&ada).await;
    }
    assert_eq!(post(&ada, None, &hello()).await.status, 429);
    // `initialize` starts a session, even if it names the revision without sessions.
    let mut newest = hello();
    newest["params"]["protocolVersion"] = json!("2026-07-28");
    let refused = post(&ada, None, &newest).await;
    assert_eq!(refused.status, 429, "{}", refused.text);
    // A request of that revision has no `initialize`.
    let newest = post(&ada.header("mcp-protocol-version", "2026-07-28"), None, &newest).await;
    assert_eq!(newest.status, 404, "{}", newest.text);
    assert_eq!(newest.json()["error"]["code"], -32601, "{}", newest.text);
    for _ in 0..3 {
        let listed = Reply::of(modern(&ada, "tools/list", json!({}))).await;
        assert_eq!(listed.status, 200, "{}", listed.text);
        assert!(listed.text.contains("search_skills"), "{}", listed.text);
    }
    // Open requests have a limit of their own.
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let mut open = Vec::new();
    loop {
        let listening = modern(&ada, "subscriptions/listen", wanted.clone()).send().await.unwrap();
        if listening.status() == 429 {
            break;
        }
        assert_eq!(listening.status(), 200, "{}", open.len());
        open.push(listening);
        assert!(open.len() <= 64, "there is no limit");
    }
    assert_eq!(open.len(), 64);
    assert_eq!(Reply::of(modern(&ada, "tools/list", json!({}))).await.status, 429);
    drop(open);
    for _ in 0..100 {
        if Reply::of(modern(&ada, "tools/list", json!({}))).await.status == 200 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("those who hung up still count");
}

#[tokio::test]
async fn saving_drafts_needs_its_own_scope() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let draft = json!({"name": "save_skill", "arguments": {
        "name": "tea", "description": "Makes tea. Use it for tea.", "instructions": "Boil it.",
    }});
    for (scopes, kept) in
        [(vec!["skills:read"], false), (vec!["skills:read", "skills:draft"], true)]
    {
        let made = ada.post("/api/v1/auth/tokens", &json!({"name": "p", "scopes": scopes})).await;
        let agent = server.client(made.json()["token"].as_str().unwrap());
        let session = begin(&agent).await;
        let response = ask(&agent, &session, "tools/call", draft.clone()).await;
        assert_eq!(response["result"]["isError"], json!(!kept), "{scopes:?}: {response}");
    }
    let run = ada.post("/api/v1/skills/tea/run", &json!({"inputs": {}})).await;
    assert_eq!(run.status, 409, "nobody looked at it: {}", run.text);
}
