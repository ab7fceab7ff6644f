//! Tests the client of the native Ollama API.

use savoir_model::{
    ChatRequest, Chunk, Finish, Message, ModelError, ProviderKind, ToolCall, Usage,
};
use serde_json::{Value, json};
use wiremock::{
    Mock, MockServer,
    matchers::{method, path},
};

use crate::support::{Whole, answering, ask, models, ok, provider, question, received, weather};

fn lines(lines: &[Value]) -> String {
    lines.iter().flat_map(|line| [line.to_string(), "\n".to_owned()]).collect()
}

fn said(text: &str) -> Value {
    json!({ "model": "m", "message": { "role": "assistant", "content": text }, "done": false })
}

async fn answer(stream: &str) -> Whole {
    let server = answering(ok(stream)).await;
    ask(&models(provider(ProviderKind::Ollama, &server.uri())), question("hi")).await
}

#[tokio::test]
async fn conversation_is_sent_and_answer_is_streamed() {
    let server = MockServer::start().await;
    let stream = lines(&[
        said("Bon"),
        said("jour"),
        json!({ "message": { "content": "" }, "done": true, "done_reason": "length",
                "prompt_eval_count": 7, "eval_count": 2 }),
    ]);
    Mock::given(method("POST"))
        .and(path("/api/chat"))
        .respond_with(ok(stream))
        .mount(&server)
        .await;
    let call = ToolCall { id: "a".into(), name: "f".into(), arguments: json!({ "x": 1 }) };
    let request = ChatRequest {
        model: "m:latest".into(),
        messages: vec![
            Message::System("be kind".into()),
            Message::User("hi".into()),
            Message::Assistant { text: "so".into(), tool_calls: vec![call] },
            Message::Tool { call_id: "a".into(), content: "1".into() },
        ],
        temperature: Some(0.0),
        max_tokens: Some(9),
        tools: vec![weather()],
    };
    let answer = ask(&models(provider(ProviderKind::Ollama, &server.uri())), request).await;
    assert_eq!(
        answer.chunks,
        [
            Chunk::Text("Bon".into()),
            Chunk::Text("jour".into()),
            Chunk::Usage(Usage { input: 7, output: 2 }),
            Chunk::End(Finish::Length),
        ]
    );
    let body = received(&server).await.remove(0);
    assert_eq!(body["options"], json!({ "temperature": 0.0, "num_predict": 9 }));
    assert_eq!(
        body["messages"],
        json!([
            { "role": "system", "content": "be kind" },
            { "role": "user", "content": "hi" },
            { "role": "assistant", "content": "so",
              "tool_calls": [{ "function": { "name": "f", "arguments": { "x": 1 } } }] },
            { "role": "tool", "content": "1", "tool_name": "f" },
        ])
    );
    assert_eq!(body["tools"][0]["function"]["name"], "get_weather");
}

#[tokio::test]
async fn tool_calls_get_names_of_their_own() {
    let call = |x: u64| json!({ "function": { "name": "f", "arguments": { "x": x } } });
    let stream = lines(&[
        json!({ "message": { "content": "", "tool_calls": [call(1), call(2)] }, "done": false }),
        json!({ "message": { "content": "" }, "done": true, "done_reason": "stop" }),
    ]);
    let answer = answer(&stream).await;
    assert_eq!(answer.finish(), Finish::ToolCalls);
    assert_eq!(
        answer.calls(),
        [("call_1", "f", &json!({ "x": 1 })), ("call_2", "f", &json!({ "x": 2 }))]
    );
    assert_eq!(answer.usage(), None);
}

#[tokio::test]
async fn error_within_the_stream_is_reported() {
    let answer = answer(&lines(&[said("x"), json!({ "error": "out of memory" })])).await;
    assert_eq!(answer.text(), "x");
    assert!(matches!(answer.error(), ModelError::Refused { status: 500, .. }));
}

#[tokio::test]
async fn end_without_done_is_an_invalid_response() {
    assert!(answer(&lines(&[said("x")])).await.invalid_response().contains("ended early"));
}

#[tokio::test]
async fn lines_without_a_message_are_an_invalid_response() {
    assert!(answer("{}\n").await.invalid_response().contains("without a message"));
}
