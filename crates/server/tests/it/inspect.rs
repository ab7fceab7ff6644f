//! Checking, converting and describing skills.

use serde_json::{Value, json};

use crate::harness::{Client, TestServer};

const SKILL: &str = "---\nname: demo\ndescription: Use for: demos\n---\n# Demo\n";

async fn check(client: &Client, body: &Value) -> Value {
    let reply = client.post("/api/v1/check", body).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()
}

#[tokio::test]
async fn check_reports_positions_and_fixes() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let checked = check(&ada, &json!({"text": SKILL})).await;
    let found = &checked["diagnostics"][0];
    assert_eq!(found["rule"], "unquoted-colon");
    assert_eq!((&found["line"], &found["severity"]), (&json!(3), &json!("error")));
    let edit = &found["fixes"][0]["edits"][0];
    assert!(edit["start"].is_u64() && edit["text"].is_string(), "{found}");
    // The fix repairs the text.
    let units: Vec<u16> = SKILL.encode_utf16().collect();
    let mut fixed = units.clone();
    let edits = found["fixes"][0]["edits"].as_array().unwrap();
    for edit in edits.iter().rev() {
        let at = |key: &str| usize::try_from(edit[key].as_u64().unwrap()).unwrap();
        let text = edit["text"].as_str().unwrap().encode_utf16();
        fixed.splice(at("start")..at("end"), text);
    }
    let fixed = String::from_utf16(&fixed).unwrap();
    let again = check(&ada, &json!({"text": fixed})).await;
    let rules = again["diagnostics"].as_array().unwrap().iter().map(|found| &found["rule"]);
    assert!(rules.clone().all(|rule| rule != "unquoted-colon"), "{again}");
}

#[tokio::test]
async fn positions_count_code_units() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let plain = check(&ada, &json!({"text": SKILL})).await;
    let text = SKILL.replace("name: demo", "name: demo # 😀ä");
    let shifted = check(&ada, &json!({"text": text})).await;
    let start = |checked: &Value| checked["diagnostics"][0]["start"].as_u64().unwrap();
    assert_eq!(start(&shifted), start(&plain) + " # 😀ä".encode_utf16().count() as u64);
}

#[tokio::test]
async fn check_takes_dialect_and_agent() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let text = "---\nname: demo\ndescription: Shows it. Use when learning.\n---\nHello.\n";
    let checked = check(&ada, &json!({"text": text, "dialect": "gaia"})).await;
    assert_eq!((&checked["dialect"], &checked["name"]), (&json!("gaia"), &json!("demo")));
    let reply = ada.post("/api/v1/check", &json!({"text": text, "dialect": "nonsense"})).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["detail"]["field"], "dialect");
    let reply = ada.post("/api/v1/check", &json!({"text": text, "agent": "nobody"})).await;
    assert_eq!(reply.json()["detail"]["field"], "agent");
    assert_eq!(server.stranger().post("/api/v1/check", &json!({"text": text})).await.status, 401);
}

#[tokio::test]
async fn convert_reports_what_is_lost() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let text = "---\nname: greet\ndescription: Greets.\nknowledge_base: people\n---\nHello!\n";
    let reply = ada.post("/api/v1/convert", &json!({"text": text, "to": "claude-code"})).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let converted = reply.json();
    assert!(converted["text"].as_str().unwrap().contains("savoir-from: agent-flow"));
    assert!(converted["lost"].is_array());
    let back = json!({"text": converted["text"], "to": "agent-flow"});
    assert_eq!(ada.post("/api/v1/convert", &back).await.json()["text"], text);
    let reply = ada.post("/api/v1/convert", &json!({"text": text, "to": "word"})).await;
    assert_eq!(reply.json()["detail"]["field"], "to");
    let broken = json!({"text": "---\nname: [\n---\n", "to": "codex"});
    let reply = ada.post("/api/v1/convert", &broken).await;
    assert_eq!(reply.status, 400);
    assert!(reply.json()["hint"].as_str().unwrap().contains("/api/v1/check"));
}

#[tokio::test]
async fn dialects_have_fields() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let dialects = ada.get("/api/v1/dialects").await.json();
    let dialects = dialects["dialects"].as_array().unwrap().clone();
    assert_eq!(dialects.len(), 10);
    let flow = dialects.iter().find(|dialect| dialect["id"] == "agent-flow").unwrap();
    let names: Vec<&str> = flow["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"knowledge_base"), "{names:?}");
}

#[tokio::test]
async fn insight_describes_a_skill() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let content = "---\nname: look\ndescription: Looks. Use when looking.\nallowed-tools: Read Bash(git log:*)\n---\nLook.\n";
    let made = ada.post("/api/v1/skills", &json!({"name": "look", "content": content})).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let seen = ada.get("/api/v1/skills/look/insight").await.json();
    assert!(seen["tokens"]["description"].as_u64().unwrap() > 3);
    let agents = seen["agents"].as_array().unwrap();
    assert!(agents.iter().any(|agent| agent["agent"] == "claude-code" && agent["reads"] == true));
    let permissions = seen["permissions"].as_array().unwrap();
    assert!(permissions.iter().all(|one| one["phrase"].as_str().unwrap().starts_with("may ")));
    assert!(permissions.iter().any(|one| one["level"] == "high"), "{seen}");
    assert_eq!(seen["provenance"]["source"], "authored");
    let bob = server.register("bob@example.org").await;
    assert_eq!(bob.get("/api/v1/skills/look/insight").await.status, 404);
    let file = ada.get("/api/v1/skills/look/file?path=SKILL.md").await;
    assert_eq!(file.header("content-type"), "text/plain; charset=utf-8");
    assert!(file.text.ends_with("Look.\n"));
    assert_eq!(ada.get("/api/v1/skills/look/file?path=../x").await.status, 404);
    assert_eq!(bob.get("/api/v1/skills/look/file?path=SKILL.md").await.status, 404);
}
