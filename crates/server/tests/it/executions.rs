//! Tests resuming interrupted workflow runs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    chat::Place,
    harness::ADMIN,
    model::Answer,
    run::read_until,
    workflows::{WORKFLOWS, assert_events, execute, execution_of, graph, keep},
};

fn chain() -> Value {
    graph(
        &[
            ("s", "start", json!({})),
            ("m", "llm", json!({})),
            ("n", "llm", json!({"systemPrompt": "After {{m.output}}"})),
            ("e", "end", json!({})),
        ],
        &["s m", "m n", "n e"],
    )
}

#[tokio::test]
async fn execution_has_inputs_outputs_and_status() {
    let place = Place::new(&[]).await;
    let id = keep(&place.ada, &chain()).await;
    let body = json!({"input": "é", "model": "stub:large"});
    let reply = place.ada.post(&format!("{WORKFLOWS}/{id}/execute"), &body).await;
    assert!(place.model.asked().iter().all(|request| request.model == "large"));
    let execution = execution_of(&reply.text);
    let path = format!("{WORKFLOWS}/executions/{execution}");
    let seen = place.ada.get(&path).await;
    let (created, updated) = (&seen.json()["created_at"], &seen.json()["updated_at"]);
    seen.is(
        200,
        &json!({
            "id": execution, "workflow_id": id, "user_id": place.ada.id().to_string(),
            "status": "completed", "initial_input": "é", "model": "stub:large",
            "executed_nodes": ["s", "m", "n", "e"], "queue": [],
            "created_at": created, "updated_at": updated,
            "outputs": seen.json()["outputs"], "output": seen.json()["output"], "error": null,
            "usage": {"input_tokens": 14, "output_tokens": 4}, "finish_reason": "stop",
        }),
    );
    assert_eq!(seen.json()["outputs"].as_object().unwrap().len(), 4);
    assert_eq!(seen.json()["output"], seen.json()["outputs"]["e"]);
    let resume = format!("{path}/resume");
    place.ada.call(&resume).await.refuses(400, "Execution already completed");

    let admin = place.server.register(ADMIN).await;
    let bob = place.server.register("bob@example.org").await;
    let text = format!("Execution {execution} not found");
    bob.get(&path).await.refuses(404, &text);
    bob.call(&resume).await.refuses(404, &text);
    assert_eq!(admin.get(&path).await.status, 200);
    place
        .ada
        .get(&format!("{WORKFLOWS}/executions/no"))
        .await
        .refuses(404, "Execution no not found");
    place
        .ada
        .call(&format!("{WORKFLOWS}/executions/no/resume"))
        .await
        .refuses(404, "Execution no not found");
    place.ada.delete(&format!("{WORKFLOWS}/{id}")).await;
    place.ada.get(&path).await.refuses(404, &text);
}

#[tokio::test]
async fn failed_execution_can_be_resumed() {
    let place = Place::new(&[Answer::Says(&["one"]), Answer::Fails(&["tw"])]).await;
    let id = keep(&place.ada, &chain()).await;
    let reply = execute(&place.ada, &id, "x").await;
    let execution = execution_of(&reply.text);
    let path = format!("{WORKFLOWS}/executions/{execution}");
    let seen = place.ada.get(&path).await.json();
    assert_eq!(seen["status"], "failed");
    assert_eq!((&seen["executed_nodes"], &seen["queue"]), (&json!(["s", "m"]), &json!(["n"])));

    let reply = place.ada.call(&format!("{path}/resume")).await;
    let start = format!(
        r#"{{"workflow_id": "{id}", "workflow_name": "W", "execution_id": "{execution}", "resumed": true}}"#
    );
    reply.streams(&[
        ("workflow_start", &start),
        ("node_start", r#"{"node_id": "n", "node_type": "llm"}"#),
        ("token", r#"{"node_id": "n", "content": "Hello"}"#),
        ("token", r#"{"node_id": "n", "content": " you"}"#),
        ("node_complete", r#"{"node_id": "n", "output": "Hello you"}"#),
        ("node_start", r#"{"node_id": "e", "node_type": "end"}"#),
        ("node_complete", r#"{"node_id": "e", "output": "Hello you"}"#),
        ("workflow_complete", r#"{"final_output": "Hello you"}"#),
        ("done", r#"{"status": "complete"}"#),
    ]);
    assert_eq!(place.model.last(), ("After one".to_owned(), "one".to_owned()));
    assert_eq!(place.ada.get(&path).await.json()["status"], "completed");
    place.ada.call(&format!("{path}/resume")).await.refuses(400, "Execution already completed");
}

#[tokio::test]
async fn running_execution_cannot_be_resumed() {
    let place = Place::new(&[Answer::Says(&["one"]), Answer::Hangs(&["two"])]).await;
    let id = keep(&place.ada, &chain()).await;
    let run = format!("{WORKFLOWS}/{id}/execute");
    let (stream, response) = read_until(&place.ada, &run, &json!({"input": "x"}), "two").await;
    let path = format!("{WORKFLOWS}/executions/{}", execution_of(&response));
    let seen = place.ada.get(&path).await.json();
    assert_eq!(seen["status"], "running");
    assert_eq!((&seen["executed_nodes"], &seen["queue"]), (&json!(["s", "m"]), &json!(["n"])));
    place.ada.call(&format!("{path}/resume")).await.refuses(409, "Execution is still running");
    drop(stream);
    place.model.has_open(0).await;
    // The user who disconnected can resume the execution.
    let mut seen = place.ada.get(&path).await.json();
    for _ in 0..100 {
        if seen["status"] == "failed" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        seen = place.ada.get(&path).await.json();
    }
    assert_eq!((&seen["status"], &seen["queue"]), (&json!("failed"), &json!(["n"])));
    let reply = place.ada.call(&format!("{path}/resume")).await;
    assert!(reply.text.contains(r#"{"final_output": "Hello you"}"#), "{}", reply.text);
}

#[tokio::test]
async fn interrupted_execution_is_resumed_only_once() {
    let place = Place::new(&[Answer::Hangs(&["one"])]).await;
    let id = keep(&place.ada, &chain()).await;
    let reply = execute(&place.ada, &id, "x").await;
    assert_events(
        &reply,
        &id,
        &[
            ("node_start", r#"{"node_id": "s", "node_type": "start"}"#),
            ("node_complete", r#"{"node_id": "s", "output": "x"}"#),
            ("node_start", r#"{"node_id": "m", "node_type": "llm"}"#),
            ("token", r#"{"node_id": "m", "content": "one"}"#),
            ("workflow_error", r#"{"error": "Workflow execution timed out (1s)"}"#),
        ],
    );
    let path = format!("{WORKFLOWS}/executions/{}", execution_of(&reply.text));
    assert_eq!(place.ada.get(&path).await.json()["queue"], json!(["m"]));
    place.model.next(Answer::Hangs(&["again"]));
    // Only one of several concurrent resume requests succeeds.
    let resumed = (0..4).map(async |_| place.ada.call(&format!("{path}/resume")).await);
    let replies = futures::future::join_all(resumed).await;
    let busy = replies.iter().filter(|reply| reply.status == 409).count();
    assert_eq!(busy, 3);
    assert_eq!(place.ada.get(&path).await.json()["status"], "failed");
    // Resuming uses the changed graph, and does not run completed nodes again.
    let drawn = graph(&[("s", "start", json!({})), ("m", "end", json!({}))], &["s m"]);
    place.ada.put(&format!("{WORKFLOWS}/{id}"), &json!({"graph_data": drawn})).await;
    let reply = place.ada.call(&format!("{path}/resume")).await;
    assert!(reply.text.contains(r#"{"final_output": "x"}"#), "{}", reply.text);
    assert!(!reply.text.contains(r#""node_id": "s""#), "{}", reply.text);
}
