//! Tests the client of the Messages API.

use savoir_model::{
    ChatRequest, Chunk, Finish, Message, ModelError, ProviderKind, ToolCall, Usage,
};
use serde_json::{Value, json};
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{header, method, path},
};

use crate::support::{
    KEY, Whole, answering, ask, events, models, ok, provider, question, received, weather,
};

fn start() -> Value {
    json!({ "type": "message_start", "message": { "usage": {
        "input_tokens": 5, "cache_read_input_tokens": 3, "output_tokens": 1,
    } } })
}

fn text(text: &str) -> Value {
    let delta = json!({ "type": "text_delta", "text": text });
    json!({ "type": "content_block_delta", "index": 0, "delta": delta })
}

fn stop(reason: &str) -> [Value; 2] {
    [
        json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 4 } }),
        json!({ "type": "message_stop" }),
    ]
}

async fn answer(stream: &[Value]) -> Whole {
    let server = answering(ok(events(stream))).await;
    ask(&models(provider(ProviderKind::Anthropic, &server.uri())), question("hi")).await
}

#[tokio::test]
async fn conversation_is_sent_and_answer_is_streamed() {
    let server = MockServer::start().await;
    let [delta, end] = stop("end_turn");
    let stream = events(&[
        start(),
        json!({ "type": "ping" }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        text("Bon"),
        text("jour"),
        json!({ "type": "something_new", "x": 1 }),
        json!({ "type": "content_block_stop", "index": 0 }),
        delta,
        end,
    ]);
    Mock::given(method("POST"))
        .and(path("/v1/messages"))
        .and(header("x-api-key", KEY))
        .and(header("anthropic-version", "2023-06-01"))
        .respond_with(ok(stream))
        .mount(&server)
        .await;
    let call = |id: &str| ToolCall { id: id.into(), name: "f".into(), arguments: json!({}) };
    let tool_calls = vec![call("a"), call("b")];
    let request = ChatRequest {
        model: "m".into(),
        messages: vec![
            Message::System("be kind".into()),
            Message::System("be brief".into()),
            Message::User("hi".into()),
            Message::Assistant { text: String::new(), tool_calls },
            Message::Tool { call_id: "a".into(), content: "1".into() },
            Message::Tool { call_id: "b".into(), content: "2".into() },
        ],
        temperature: None,
        max_tokens: None,
        tools: vec![weather()],
    };
    let url = format!("{}/v1", server.uri());
    let answer = ask(&models(provider(ProviderKind::Anthropic, &url)), request).await;
    assert_eq!(
        answer.chunks,
        [
            Chunk::Text("Bon".into()),
            Chunk::Text("jour".into()),
            Chunk::Usage(Usage { input: 8, output: 4 }),
            Chunk::End(Finish::Stop),
        ]
    );
    let tool = weather();
    assert_eq!(
        received(&server).await,
        [json!({
            "model": "m",
            "max_tokens": 4096,
            "messages": [
                { "role": "user", "content": [{ "type": "text", "text": "hi" }] },
                { "role": "assistant", "content": [
                    { "type": "tool_use", "id": "a", "name": "f", "input": {} },
                    { "type": "tool_use", "id": "b", "name": "f", "input": {} },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "a", "content": "1" },
                    { "type": "tool_result", "tool_use_id": "b", "content": "2" },
                ] },
            ],
            "stream": true,
            "system": "be kind\n\nbe brief",
            "tools": [{ "name": tool.name, "description": tool.description, "input_schema": tool.parameters }],
        })]
    );
}

fn tool_use(parts: &[&str]) -> Vec<Value> {
    let block = json!({ "type": "tool_use", "id": "t", "name": "f", "input": {} });
    let mut events =
        vec![start(), json!({ "type": "content_block_start", "index": 1, "content_block": block })];
    events.extend(parts.iter().map(|part| {
        let delta = json!({ "type": "input_json_delta", "partial_json": part });
        json!({ "type": "content_block_delta", "index": 1, "delta": delta })
    }));
    events
}

#[tokio::test]
async fn a_tool_call_comes_when_it_is_whole() {
    for (parts, arguments) in
        [(&["{\"x\"", ": 1}"][..], json!({ "x": 1 })), (&[""][..], json!({})), (&[], json!({}))]
    {
        let mut events = tool_use(parts);
        events.push(json!({ "type": "content_block_stop", "index": 1 }));
        events.extend(stop("tool_use"));
        let answer = answer(&events).await;
        assert_eq!(answer.finish(), Finish::ToolCalls);
        assert_eq!(answer.calls(), [("t", "f", &arguments)]);
    }
}

#[tokio::test]
async fn a_tool_call_that_the_limit_cut_off_is_left_out() {
    let mut events = tool_use(&["{\"x\""]);
    events.push(json!({ "type": "content_block_stop", "index": 1 }));
    events.extend(stop("max_tokens"));
    let answer = answer(&events).await;
    assert_eq!(answer.finish(), Finish::Length);
    assert!(answer.calls().is_empty());
}

#[tokio::test]
async fn unclosed_tool_call_is_an_invalid_response() {
    let mut events = tool_use(&["{}"]);
    events.extend(stop("tool_use"));
    assert!(answer(&events).await.invalid_response().contains("within a tool call"));
}

#[tokio::test]
async fn error_within_the_stream_is_reported() {
    let error = json!({ "type": "overloaded_error", "message": "Overloaded" });
    let answer = answer(&[start(), text("x"), json!({ "type": "error", "error": error })]).await;
    assert_eq!(answer.text(), "x");
    assert!(matches!(answer.error(), ModelError::Refused { status: 529, .. }), "{answer:?}");
}

#[tokio::test]
async fn end_without_finish_reason_is_an_invalid_response() {
    let end = json!({ "type": "message_stop" });
    assert!(answer(&[start(), text("x"), end]).await.invalid_response().contains("ended early"));
}

#[tokio::test]
async fn reasons_to_finish_are_known() {
    for (reason, finish) in [
        ("end_turn", Finish::Stop),
        ("stop_sequence", Finish::Stop),
        ("max_tokens", Finish::Length),
        ("refusal", Finish::Other),
    ] {
        let mut events = vec![start(), text("x")];
        events.extend(stop(reason));
        assert_eq!(answer(&events).await.finish(), finish);
    }
}

#[tokio::test]
async fn unsupported_temperature_is_dropped() {
    let server = MockServer::start().await;
    let message = "`temperature` is deprecated for this model.";
    let refusal = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": message } });
    Mock::given(wiremock::matchers::body_partial_json(json!({ "temperature": 0.1 })))
        .respond_with(ResponseTemplate::new(400).set_body_json(refusal))
        .mount(&server)
        .await;
    let mut stream = vec![start(), text("x")];
    stream.extend(stop("end_turn"));
    Mock::given(method("POST")).respond_with(ok(events(&stream))).mount(&server).await;
    let request = ChatRequest { temperature: Some(0.1), ..question("hi") };
    let models = models(provider(ProviderKind::Anthropic, &server.uri()));
    assert_eq!(ask(&models, request).await.finish(), Finish::Stop);
}
