//! Tests the nodes of workflows, and their error messages.

use serde_json::{Value, json};

use crate::{
    chat::Place,
    harness::{ADMIN, Client, TestServer},
    model::Answer,
    workflows::{assert_events, execute, graph, keep},
};

/// Runs a workflow with one node that must fail; returns the error message.
async fn failing(client: &Client, kind: &str, data: Value) -> String {
    let drawn = graph(&[("s", "start", json!({})), ("x", kind, data)], &["s x"]);
    let id = keep(client, &drawn).await;
    let reply = execute(client, &id, "IN").await;
    let error = reply.text.split("event: workflow_error\ndata: ").nth(1).unwrap_or_else(|| {
        panic!("no error: {}", reply.text);
    });
    let error = error.lines().next().unwrap();
    let message = error.strip_prefix("{\"error\": ").unwrap();
    let of_node =
        format!("event: node_error\ndata: {{\"node_id\": \"x\", \"error\": {message}\n\n");
    let end = format!(
        "{of_node}event: workflow_error\ndata: {error}\n\nevent: done\ndata: {{\"status\": \"error\"}}\n\n"
    );
    assert!(reply.text.ends_with(&end), "{}", reply.text);
    serde_json::from_str::<Value>(error).unwrap()["error"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn failing_nodes_have_fixed_messages() {
    let place = Place::new(&[]).await;
    let bob = place.server.register("bob@example.org").await;
    bob.post("/api/v1/skills", &json!({"name": "secret", "content": "---\na: 1\n---\n"})).await;
    let two = "---\ninputs: [{name: a, required: true}, {name: b, required: true}]\n---\n";
    place.server.write_skill("two", two);
    let disabled = "This feature has been disabled by the administrator";
    for (kind, data, error) in [
        ("skill", json!({}), "Skill not selected"),
        ("skill", json!({"skillName": "no"}), "Failed to load skill 'no': Skill 'no' not found"),
        (
            "skill",
            json!({"skillName": "secret"}),
            "Failed to load skill 'secret': Skill 'secret' not found",
        ),
        (
            "llm",
            json!({"skillName": "secret"}),
            "Failed to load skill 'secret': Skill 'secret' not found",
        ),
        ("skill", json!({"skillName": "two"}), "Missing required input: 'b'"),
        ("knowledge", json!({}), "Knowledge base not configured"),
        ("knowledge", json!({"knowledgeBaseId": "no"}), "Knowledge base not found: no"),
        ("code", json!({"code": "print(1)"}), disabled),
        ("http", json!({"url": "http://127.0.0.1/"}), disabled),
    ] {
        assert_eq!(failing(&place.ada, kind, data).await, error);
    }
    place.model.next(Answer::Fails(&[]));
    let error = failing(&place.ada, "llm", json!({})).await;
    assert!(error.starts_with("LLM call failed: "), "{error}");
    place.model.next(Answer::PanicsAtOnce);
    let error = failing(&place.ada, "llm", json!({})).await;
    assert!(error.starts_with("LLM call failed: "), "{error}");
    place.model.next(Answer::Fails(&["Hel"]));
    assert_eq!(
        failing(&place.ada, "skill", json!({"skillName": "fixed"})).await,
        "Failed to load skill 'fixed': Skill 'fixed' not found"
    );
    place.server.write_skill("fixed", "---\nname: fixed\n---\nHi");
    assert_eq!(
        failing(&place.ada, "skill", json!({"skillName": "fixed"})).await,
        "Generation failed"
    );

    let error = |text: &str| format!(r#"{{"error": "{text}"}}"#);
    let id = keep(&place.ada, &json!({})).await;
    let reply = execute(&place.ada, &id, "x").await;
    assert_events(&reply, &id, &[("workflow_error", &error("Workflow has no start node"))]);
    let nodes = [("s", "start", json!({})), ("a", "end", json!({})), ("b", "end", json!({}))];
    let id = keep(&place.ada, &graph(&nodes, &["a b", "b a"])).await;
    let reply = execute(&place.ada, &id, "x").await;
    assert_events(&reply, &id, &[("workflow_error", &error("Workflow contains a cycle"))]);
}

#[tokio::test]
async fn administrators_enable_optional_nodes() {
    let server = TestServer::with(|config| {
        config.limits.runs = 0;
        config.workflow_http.private = true;
    })
    .await;
    let admin = server.register(ADMIN).await;
    let ada = server.register("ada@example.org").await;
    for flag in ["ENABLE_HTTP_NODE", "ENABLE_CODE_NODE"] {
        let path = format!("/api/v1/settings/feature-flags/{flag}");
        assert_eq!(admin.put(&path, &json!({"enabled": true})).await.status, 200);
    }
    let url = format!("http://{}/health", server.address);
    let drawn = graph(
        &[("s", "start", json!({})), ("h", "http", json!({"url": url, "responsePath": "status"}))],
        &["s h"],
    );
    let id = keep(&ada, &drawn).await;
    let reply = execute(&ada, &id, "x").await;
    assert_events(
        &reply,
        &id,
        &[
            ("node_start", r#"{"node_id": "s", "node_type": "start"}"#),
            ("node_complete", r#"{"node_id": "s", "output": "x"}"#),
            ("node_start", r#"{"node_id": "h", "node_type": "http"}"#),
            ("node_complete", r#"{"node_id": "h", "output": "healthy", "status_code": 200}"#),
            ("workflow_complete", r#"{"final_output": "healthy"}"#),
        ],
    );
    for (data, error) in [
        (json!({"url": "x", "method": "BREW"}), "HTTP method not supported"),
        (json!({}), "URL is required"),
        (json!({"url": "ftp://example.org/"}), "Only http:// and https:// URLs are allowed"),
    ] {
        assert_eq!(failing(&ada, "http", data).await, error);
    }
    assert_eq!(failing(&ada, "code", json!({})).await, "Code is required");
    let code =
        json!({"code": "import os; print(os.environ['WORKFLOW_INPUT'], os.environ['USER_ID'])"});
    let id = keep(&ada, &graph(&[("s", "start", json!({})), ("c", "code", code)], &["s c"])).await;
    let reply = execute(&ada, &id, "x").await;
    if reply.text.contains("event: workflow_error") {
        eprintln!("LEFT OUT: this machine runs no code: {}", reply.text);
    } else {
        let output = format!(r#"{{"node_id": "c", "output": "x {}"}}"#, ada.id());
        assert!(reply.text.contains(&output), "{}", reply.text);
    }
}

#[tokio::test]
async fn private_addresses_are_not_requested() {
    let server = TestServer::with(|config| config.limits.runs = 0).await;
    let admin = server.register(ADMIN).await;
    admin.put("/api/v1/settings/feature-flags/ENABLE_HTTP_NODE", &json!({"enabled": true})).await;
    for url in [
        "http://127.0.0.1/", "http://[::1]/", "http://169.254.169.254/", "http://0x7f.1/",
        "http://[::ffff:10.0.0.1]/",
    ] {
        let error = failing(&admin, "http", json!({"url": url})).await;
        assert_eq!(error, "Target host resolves to blocked IP", "{url}");
    }
}
