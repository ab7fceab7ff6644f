//! Tests points of the Agent Flow contract.

use serde_json::{Value, json};

use crate::{
    harness::{ADMIN, Client, Reply, TestServer},
    model::{Answer, Scripted},
};

const SKILLS: &str = "/api/v1/skills";

fn body(name: &str, content: &str) -> Value {
    json!({"name": name, "content": content})
}

async fn with_skill() -> (TestServer, Client, Reply) {
    let server = TestServer::with(|config| config.limits.routes = 0).await;
    let ada = server.register("ada@example.org").await;
    let made = ada.post(SKILLS, &body("greet", "---\nname: greet\n---\nHello.\n")).await;
    assert_eq!(made.status, 201, "{}", made.text);
    (server, ada, made)
}

#[tokio::test]
async fn posted_skills_are_read_as_agent_flow() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    for (number, content) in [
        "---\ninputs: [{name: q, type: number}]\n---\nAsk {{q}}",
        "---\ninputs: [{name: q, type: json}]\noutputs: {a: b}\npermissions: [x]\n---\nAsk {{q}}",
        "---\ninputs: [{name: q}]\nruntime: z\ndependencies: []\nmodes: [a]\nread_only: true\n---\nAsk {{q}}",
        "---\ninputs: [{name: q}]\n---\nAsk {{q}}\n### deploy\n#### Command\nls\n",
        "---\nversion: 1.0.0\ndescription: d\ninputs: [{name: q, type: number}]\n---\nAsk {{q}}",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("n{number}");
        let made = ada.post(SKILLS, &body(&name, content)).await;
        assert_eq!(made.status, 201, "{content}: {}", made.text);
        assert_eq!(made.json()["inputs"][0]["type"], "text", "{content}");
        let put = ada.put(&format!("{SKILLS}/{name}"), &json!({"content": content})).await;
        assert_eq!(put.status, 200, "{content}: {}", put.text);
        let ran = ada.post(&format!("{SKILLS}/{name}/run"), &json!({"inputs": {"q": "7"}})).await;
        assert!(ran.text.contains("completed successfully"), "{}", ran.text);
    }
    ada.post(SKILLS, &body("m", "---\nmetadata: [a]\n---\nx"))
        .await
        .blames(400, "metadata", "metadata must be an object");
}

#[tokio::test]
async fn users_can_reuse_names_of_examples() {
    let server = TestServer::start().await;
    savoir_server::install_examples(&server.database, &server.storage).await.unwrap();
    let ada = server.register("ada@example.org").await;
    let example = "/api/v1/skills/article-summary";
    assert_eq!(ada.get(example).await.json()["user_id"], Value::Null);
    let mine = body("article-summary", "---\nname: article-summary\n---\nMine\n");
    assert_eq!(ada.post(SKILLS, &mine).await.status, 201);
    assert_eq!(ada.get(example).await.json()["prompt"], "Mine");
    // Other users still get the example, and the user gets it again after deleting the own skill.
    let bob = server.register("bob@example.org").await;
    assert_eq!(bob.get(example).await.json()["user_id"], Value::Null);
    assert_eq!(ada.delete(example).await.status, 204);
    assert_eq!(ada.get(example).await.json()["user_id"], Value::Null);
    assert_eq!(ada.post(SKILLS, &mine).await.status, 201);
    let again =
        bob.post(SKILLS, &body("article-summary", "---\nname: article-summary\n---\nx")).await;
    assert_eq!(again.status, 201, "names are unique per owner");
    assert_eq!(ada.get(example).await.json()["prompt"], "Mine");
    // An example that an administrator changed is not replaced either.
    let admin = server.register(ADMIN).await;
    let changed = json!({"content": "---\nname: plain-words\n---\nChanged\n"});
    assert_eq!(admin.put(&format!("{SKILLS}/plain-words"), &changed).await.status, 200);
    let own = bob.post(SKILLS, &body("plain-words", "---\nname: plain-words\n---\nx")).await;
    assert_eq!(own.status, 201);
    assert_eq!(ada.get(&format!("{SKILLS}/plain-words")).await.json()["prompt"], "Changed");
}

#[tokio::test]
async fn changes_can_have_a_condition() {
    let (_server, ada, made) = with_skill().await;
    let path = format!("{SKILLS}/greet");
    let tag = made.header("etag").to_owned();
    assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
    assert_eq!(ada.get(&path).await.header("etag"), tag);
    let new = json!({"content": "---\nname: greet\n---\nHi.\n"});
    let put = ada.header("if-match", &tag).put(&path, &new).await;
    assert_eq!(put.status, 200, "{}", put.text);
    assert_ne!(put.header("etag"), tag);
    let late = ada
        .header("if-match", &tag)
        .put(&path, &json!({"content": "---\nname: greet\n---\nLost\n"}))
        .await;
    assert_eq!(late.status, 412, "{}", late.text);
    assert!(late.json()["hint"].as_str().unwrap().contains("ETag"), "{}", late.text);
    assert_eq!(ada.header("if-match", &tag).delete(&path).await.status, 412);
    assert_eq!(ada.get(&path).await.json()["prompt"], "Hi.");
    assert_eq!(ada.header("if-match", "*").put(&path, &new).await.status, 200);
    let now = ada.get(&path).await;
    assert_eq!(ada.header("if-match", now.header("etag")).delete(&path).await.status, 204);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_without_condition_succeed_in_turn() {
    let (_server, ada, _) = with_skill().await;
    let path = format!("{SKILLS}/greet");
    for round in 0..10 {
        let puts = (0..4).map(async |number| {
            let content = format!("---\nname: greet\n---\nRound {round}, {number}.\n");
            ada.put(&path, &json!({"content": content})).await.status.as_u16()
        });
        let statuses = futures::future::join_all(puts).await;
        assert_eq!(statuses, [200; 4], "round {round}");
    }
}

#[tokio::test]
async fn largest_skill_can_be_written_back() {
    let (_server, ada, _) = with_skill().await;
    let head = "---\nname: large\n---\n";
    let content = format!("{head}{}", "x".repeat(51_200 - head.len()));
    let made = ada.post(SKILLS, &body("large", &content)).await;
    assert_eq!(made.status, 201);
    let raw = made.json()["raw_content"].clone();
    let put = ada.put(&format!("{SKILLS}/large"), &json!({"content": raw})).await;
    assert_eq!(put.status, 200, "{:.200}", put.text);
    let more = ada.post(SKILLS, &body("larger", &format!("{content}x"))).await;
    assert_eq!(more.status, 400);
}

#[tokio::test]
async fn skill_that_is_not_text_is_reported() {
    let (server, ada, _) = with_skill().await;
    std::fs::write(server.skill_file("greet"), b"---\nname: greet\n---\n\xff\xfe").unwrap();
    for reply in [
        ada.get(&format!("{SKILLS}/greet")).await,
        ada.post(&format!("{SKILLS}/greet/run"), &json!({})).await,
    ] {
        assert_eq!(reply.status, 400, "{}", reply.text);
        assert!(reply.json()["detail"]["message"].as_str().unwrap().contains("not UTF-8"));
        assert!(reply.json()["hint"].as_str().unwrap().contains("UTF-8"));
    }
}

#[tokio::test]
async fn required_must_be_a_boolean() {
    let (_server, ada, _) = with_skill().await;
    let path = format!("{SKILLS}/greet");
    for (value, is) in [("'true'", "a string"), ("1", "a number"), ("[a]", "a list")] {
        let content = format!("---\ninputs: [{{name: a, required: {value}}}]\n---\n{{{{a}}}}");
        let message = format!("`inputs[0].required` is {is}, it must be `true` or `false`");
        ada.post(SKILLS, &body("r", &content)).await.blames(400, "inputs", &message);
        ada.put(&path, &json!({"content": content})).await.blames(400, "inputs", &message);
    }
    let content = "---\ninputs: [{name: a, required: yes}]\n---\n{{a}}";
    assert_eq!(ada.post(SKILLS, &body("r", content)).await.json()["inputs"][0]["required"], true);
}

#[tokio::test]
async fn owner_can_reach_a_file_that_lost_its_owner() {
    let (server, ada, _) = with_skill().await;
    let (admin, bob) = (server.register(ADMIN).await, server.register("bob@example.org").await);
    let path = format!("{SKILLS}/greet");
    let good = json!({"content": "---\nname: greet\n---\nHello again.\n"});
    let frontmatter = "Skill 'greet' has no valid YAML frontmatter";
    for (text, field, message) in [
        (&b"no frontmatter at all"[..], "frontmatter", frontmatter),
        (b"---\nname: greet\n---\n\xff\xfe", "content", "it is not UTF-8"),
        (b"---\nname: [greet\n---\nx", "frontmatter", "Invalid YAML frontmatter"),
    ] {
        std::fs::write(server.skill_file("greet"), text).unwrap();
        for reply in [
            ada.get(&path).await,
            admin.get(&path).await,
            ada.post(&format!("{path}/run"), &json!({})).await,
        ] {
            assert_eq!(reply.status, 400, "{}", reply.text);
            let detail = reply.json()["detail"].clone();
            assert_eq!(detail["field"], field);
            assert!(detail["message"].as_str().unwrap().contains(message), "{detail}");
        }
        // The name stays taken for its owner.
        let taken = ada.post(SKILLS, &body("greet", "---\ndescription: d\n---\nx")).await;
        assert_eq!(taken.status, 409, "{}", taken.text);
        for reply in [
            bob.get(&path).await,
            bob.put(&path, &good).await,
            bob.delete(&path).await,
            bob.post(&format!("{path}/run"), &json!({})).await,
        ] {
            reply.blames(404, "name", "Skill 'greet' not found");
        }
        let fixed = ada.put(&path, &good).await;
        assert_eq!((fixed.status.as_u16(), &fixed.json()["prompt"]), (200, &json!("Hello again.")));
        assert_eq!(fixed.json()["user_id"], ada.id().to_string());
    }
    std::fs::write(server.skill_file("greet"), "no frontmatter at all").unwrap();
    assert_eq!(ada.delete(&path).await.status, 204);
    assert_eq!(ada.post(SKILLS, &body("greet", "---\ndescription: d\n---\nx")).await.status, 201);
}

#[tokio::test]
async fn owner_of_a_second_skill_of_a_name_can_reach_its_broken_file() {
    let (server, _ada, _) = with_skill().await;
    let bob = server.register("bob@example.org").await;
    let path = format!("{SKILLS}/greet");
    let text = "---\nname: greet\n---\nHi.\n";
    assert_eq!(bob.post(SKILLS, &body("greet", text)).await.status, 201);
    std::fs::write(server.skill_file(&format!("greet~{}", bob.id())), "lost").unwrap();
    assert_eq!(bob.get(&path).await.status, 400);
    assert_eq!(bob.put(&path, &json!({"content": text})).await.status, 200);
    assert_eq!(bob.get(&path).await.json()["user_id"], bob.id().to_string());
}

#[tokio::test]
async fn workflows_have_tags() {
    let (_server, ada, _) = with_skill().await;
    let made = ada.post("/api/v1/workflows", &json!({"name": "w"})).await;
    let path = format!("/api/v1/workflows/{}", made.json()["id"].as_str().unwrap());
    let first = made.header("etag").to_owned();
    assert!(first.starts_with('"') && first.ends_with('"'), "{first}");
    assert_eq!(ada.get(&path).await.header("etag"), first);
    let changed = ada.header("if-match", &first).put(&path, &json!({"name": "v"})).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    let second = changed.header("etag").to_owned();
    assert_ne!(first, second);
    for stale in [
        ada.header("if-match", &first).put(&path, &json!({"name": "lost"})).await,
        ada.header("if-match", &first).delete(&path).await,
    ] {
        let hint = "read the workflow again, merge the changes, and send its new ETag";
        let detail = "The workflow was changed since it was read";
        stale.is(412, &json!({"detail": detail, "hint": hint}));
    }
    assert_eq!(ada.get(&path).await.json()["name"], "v");
    let both = format!("{first}, {second}");
    assert_eq!(ada.header("if-match", &both).put(&path, &json!({"name": "u"})).await.status, 200);
    assert_eq!(ada.put(&path, &json!({"name": "t"})).await.status, 200, "without a condition");
    assert_eq!(ada.header("if-match", "*").delete(&path).await.status, 204);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_several_changes_of_one_version_of_a_workflow_one_is_made() {
    let (_server, ada, _) = with_skill().await;
    let made = ada.post("/api/v1/workflows", &json!({"name": "w"})).await;
    let path = format!("/api/v1/workflows/{}", made.json()["id"].as_str().unwrap());
    let writer = ada.header("if-match", made.header("etag"));
    let puts = (0..8).map(async |number| {
        writer.put(&path, &json!({"name": format!("w{number}")})).await.status.as_u16()
    });
    let mut statuses = futures::future::join_all(puts).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412, 412, 412, 412, 412, 412, 412]);
}

#[tokio::test]
async fn lists_have_pages() {
    let (_server, ada, _) = with_skill().await;
    for number in 0..3 {
        ada.post(SKILLS, &body(&format!("s{number}"), "---\ndescription: d\n---\nx")).await;
        let chat = json!({"session_id": format!("c{number}"), "message": "Hello"});
        ada.post("/api/v1/chat/completions", &chat).await;
        ada.post("/api/v1/workflows", &json!({"name": format!("w{number}")})).await;
        ada.post("/api/v1/knowledge", &json!({"name": format!("k{number}")})).await;
    }
    for (path, key, total) in [
        (SKILLS, "skills", 4),
        ("/api/v1/chat/sessions", "sessions", 3),
        ("/api/v1/workflows", "items", 3),
        ("/api/v1/knowledge", "items", 3),
    ] {
        let all = ada.get(path).await.json();
        assert_eq!(all[key].as_array().unwrap().len(), total, "{path}");
        let page = ada.get(&format!("{path}?limit=2&offset=1")).await.json();
        assert_eq!(page[key].as_array().unwrap()[..], all[key].as_array().unwrap()[1..3], "{path}");
        assert_eq!(page["total"], all["total"], "{path}");
        let past = ada.get(&format!("{path}?offset=100")).await.json();
        assert_eq!(past[key], json!([]), "{path}");
        assert_eq!(ada.get(&format!("{path}?limit=0")).await.status, 422, "{path}");
    }
}

#[tokio::test]
async fn executions_can_be_listed_and_read() {
    let model = Scripted::new(&[Answer::Says(&["fine"]), Answer::Fails(&[])]);
    let server = TestServer::with_model(model, |config| config.limits.runs = 0).await;
    let ada = server.register("ada@example.org").await;
    let graph = json!({
        "nodes": [{"id": "s", "type": "start"}, {"id": "m", "type": "llm"}],
        "edges": [{"source": "s", "target": "m"}],
    });
    let workflow =
        ada.post("/api/v1/workflows", &json!({"name": "Ask", "graph_data": graph})).await;
    let path = format!("/api/v1/workflows/{}", workflow.json()["id"].as_str().unwrap());
    for input in ["first", "second"] {
        ada.post(&format!("{path}/execute"), &json!({"input": input})).await;
    }
    let list = ada.get(&format!("{path}/executions")).await.json();
    assert_eq!(list["total"], 2, "{list}");
    let [failed, fine] = [&list["items"][0], &list["items"][1]];
    assert_eq!((&failed["status"], &failed["output"]), (&json!("failed"), &Value::Null), "{list}");
    assert!(failed["error"].as_str().unwrap().contains("stub answered 500"), "{failed}");
    assert_eq!((&fine["status"], &fine["output"]), (&json!("completed"), &json!("fine")));
    assert_eq!(fine["outputs"], json!({"s": "first", "m": "fine"}));
    assert_eq!(fine["usage"], json!({"input_tokens": 7, "output_tokens": 2}));
    assert_eq!(fine["finish_reason"], "stop");
    let one =
        ada.get(&format!("/api/v1/workflows/executions/{}", fine["id"].as_str().unwrap())).await;
    assert_eq!(one.json(), *fine);
    let all = ada.get("/api/v1/workflows/executions?limit=1").await.json();
    assert_eq!((all["items"].as_array().unwrap().len(), &all["total"]), (1, &json!(2)));
    let bob = server.register("bob@example.org").await;
    assert_eq!(bob.get("/api/v1/workflows/executions").await.json()["total"], 0);
    assert_eq!(bob.get(&format!("{path}/executions")).await.status, 404);
    // The record of the run has the same id.
    let run = ada.get(&format!("/api/v1/runs/{}", fine["id"].as_str().unwrap())).await.json();
    assert_eq!(run["name"], "Ask");
}

#[tokio::test]
async fn name_is_released_after_a_crash() {
    let (server, ada, _) = with_skill().await;
    // A process crashed while it changed the skill.
    let lease = std::time::Duration::from_secs(2);
    let held = server.database.leases().acquire("skill fresh", "dead", lease).await.unwrap();
    assert!(held.is_some());
    std::fs::create_dir(server.skills_folder().join(".tmp-left")).unwrap();
    let began = std::time::Instant::now();
    let made = ada.post(SKILLS, &body("fresh", "---\nname: fresh\n---\nx")).await;
    assert_eq!(made.status, 201, "{}", made.text);
    assert!(began.elapsed() < std::time::Duration::from_secs(4));
    assert!(!server.skills_folder().join(".tmp-left").exists());
}
