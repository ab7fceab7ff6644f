//! Tests the client of the chat completions API.

use savoir_model::{
    ChatRequest, Chunk, Finish, Message, ModelError, ProviderKind, ToolCall, Usage,
};
use serde_json::{Value, json};
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{body_partial_json, header, method, path},
};

use crate::support::{
    KEY, answering, ask, events, models, ok, provider, question, received, weather,
};

fn delta(delta: &Value, finish: Option<&str>) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}

async fn answer(stream: &str) -> crate::support::Whole {
    let server = answering(ok(stream)).await;
    ask(&models(provider(ProviderKind::OpenAi, &server.uri())), question("hi")).await
}

#[tokio::test]
async fn conversation_is_sent_and_answer_is_streamed() {
    let server = MockServer::start().await;
    let stream = events(&[
        delta(&json!({ "role": "assistant", "content": null }), None),
        delta(&json!({ "content": "Bon" }), None),
        delta(&json!({ "content": "jour" }), None),
        delta(&json!({}), Some("stop")),
        json!({ "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 2 } }),
    ]);
    Mock::given(method("POST"))
        .and(path("/v1/chat/completions"))
        .and(header("authorization", format!("Bearer {KEY}")))
        .respond_with(ok(format!(": comment\n\n{stream}data: [DONE]\n\n")))
        .mount(&server)
        .await;
    let arguments = json!({ "city": "Paris" });
    let call = ToolCall { id: "a".into(), name: "get_weather".into(), arguments };
    let request = ChatRequest {
        model: "m".into(),
        messages: vec![
            Message::System("be kind".into()),
            Message::User("hi".into()),
            Message::Assistant { text: String::new(), tool_calls: vec![call] },
            Message::Tool { call_id: "a".into(), content: "sunny".into() },
        ],
        temperature: Some(0.5),
        max_tokens: Some(9),
        tools: vec![weather()],
    };
    let answer = ask(&models(provider(ProviderKind::OpenAi, &server.uri())), request).await;
    assert_eq!(
        answer.chunks,
        [
            Chunk::Text("Bon".into()),
            Chunk::Text("jour".into()),
            Chunk::Usage(Usage { input: 7, output: 2 }),
            Chunk::End(Finish::Stop),
        ]
    );
    let tool = weather();
    let function = json!({
        "name": tool.name, "description": tool.description, "parameters": tool.parameters,
    });
    assert_eq!(
        received(&server).await,
        [json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": "be kind" },
                { "role": "user", "content": "hi" },
                { "role": "assistant", "content": null, "tool_calls": [{
                    "id": "a", "type": "function",
                    "function": { "name": "get_weather", "arguments": "{\"city\":\"Paris\"}" },
                }] },
                { "role": "tool", "tool_call_id": "a", "content": "sunny" },
            ],
            "stream": true,
            "stream_options": { "include_usage": true },
            "temperature": 0.5,
            "max_tokens": 9,
            "tools": [{ "type": "function", "function": function }],
        })]
    );
}

#[tokio::test]
async fn tool_call_fragments_are_joined_by_index() {
    let part = |index: u64, rest: Value| {
        let mut part = json!({ "index": index });
        part.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        delta(&json!({ "tool_calls": [part] }), None)
    };
    let stream = events(&[
        part(0, json!({ "id": "a", "function": { "name": "one", "arguments": "" } })),
        part(1, json!({ "id": "b", "function": { "name": "two", "arguments": "{\"x\"" } })),
        part(0, json!({ "function": { "arguments": "{\"y\":" } })),
        part(1, json!({ "function": { "arguments": ":1}" } })),
        part(0, json!({ "function": { "arguments": "2}" } })),
        part(2, json!({ "function": { "name": "three" } })),
        delta(&json!({}), Some("tool_calls")),
    ]);
    let answer = answer(&(stream + "data: [DONE]\n\n")).await;
    assert_eq!(answer.finish(), Finish::ToolCalls);
    assert_eq!(
        answer.calls(),
        [
            ("a", "one", &json!({ "y": 2 })),
            ("b", "two", &json!({ "x": 1 })),
            ("call_3", "three", &json!({})),
        ]
    );
}

#[tokio::test]
async fn arguments_that_are_not_an_object_are_passed_unchanged() {
    let call = |id: &str, arguments: Value| json!({ "id": id, "function": { "name": "f", "arguments": arguments } });
    let calls = [call("a", json!("{\"x\": ")), call("b", json!("[1]")), call("c", json!("7"))];
    let stream = events(&[
        delta(&json!({ "tool_calls": calls }), None),
        delta(&json!({}), Some("tool_calls")),
    ]);
    let answer = answer(&(stream + "data: [DONE]\n\n")).await;
    let sent: Vec<_> =
        answer.calls().into_iter().map(|(_, _, arguments)| arguments.clone()).collect();
    assert_eq!(sent, [json!("{\"x\": "), json!("[1]"), json!("7")]);
}

#[tokio::test]
async fn tool_calls_without_indexes_are_joined_by_id() {
    let stream = events(&[
        delta(
            &json!({ "tool_calls": [
                { "id": "a", "function": { "name": "one", "arguments": "{}" } },
                { "id": "b", "function": { "name": "two", "arguments": { "x": 1 } } },
            ] }),
            None,
        ),
        // This server reports `stop` although there are tool calls.
        delta(&json!({}), Some("stop")),
    ]);
    let answer = answer(&stream).await;
    assert_eq!(answer.finish(), Finish::ToolCalls);
    assert_eq!(answer.calls(), [("a", "one", &json!({})), ("b", "two", &json!({ "x": 1 }))]);
}

#[tokio::test]
async fn a_call_that_the_limit_cut_off_is_left_out() {
    for arguments in ["", "{\"x\":"] {
        let whole =
            json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": "{\"x\":1}" } });
        let cut =
            json!({ "index": 1, "id": "b", "function": { "name": "f", "arguments": arguments } });
        let stream = events(&[
            delta(&json!({ "tool_calls": [whole, cut] }), None),
            delta(&json!({}), Some("length")),
        ]);
        let answer = answer(&stream).await;
        assert_eq!(answer.finish(), Finish::Length);
        assert_eq!(answer.calls(), [("a", "f", &json!({ "x": 1 }))]);
    }
}

#[tokio::test]
async fn reasons_to_finish_are_known() {
    for (reason, finish) in [
        ("stop", Finish::Stop),
        ("length", Finish::Length),
        ("tool_calls", Finish::ToolCalls),
        ("content_filter", Finish::Other),
    ] {
        let answer = answer(&events(&[delta(&json!({ "content": "x" }), Some(reason))])).await;
        assert_eq!(answer.finish(), finish);
        assert_eq!(answer.usage(), None);
    }
}

#[tokio::test]
async fn nonstandard_servers_are_supported() {
    let parts = json!([{ "type": "thinking", "thinking": [] }, { "type": "text", "text": "x" }]);
    let stream = events(&[
        json!({ "choices": [{ "index": null, "delta": { "content": parts }, "finish_reason": "" }], "usage": null }),
        json!({ "choices": [{ "index": 1, "delta": { "content": "another choice" } }] }),
        json!({ "choices": [{ "delta": { "content": "y", "tool_calls": null }, "finish_reason": "stop" }],
                "usage": { "prompt_tokens": 3, "completion_tokens": null }, "error": null }),
    ]);
    let answer = answer(&stream).await;
    assert_eq!((answer.finish(), answer.text().as_str()), (Finish::Stop, "xy"));
    assert_eq!(answer.usage(), Some(Usage { input: 3, output: 0 }));
}

#[tokio::test]
async fn done_marker_without_finish_reason_ends_the_answer() {
    let stream = events(&[delta(&json!({ "content": "x" }), None)]) + "data: [DONE]";
    assert_eq!(answer(&stream).await.finish(), Finish::Stop);
}

#[tokio::test]
async fn error_within_the_stream_is_reported() {
    let stream = events(&[
        delta(&json!({ "content": "x" }), None),
        json!({ "error": { "code": 503, "message": format!("no more, {KEY}") } }),
    ]);
    let answer = answer(&stream).await;
    assert_eq!(answer.text(), "x");
    match answer.error() {
        ModelError::Refused { status: 503, message, .. } => assert_eq!(message, "no more, ***"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn unsupported_fields_are_dropped_and_remembered() {
    let server = MockServer::start().await;
    let refuse = |field: &str, message: &str| {
        let body = json!({ "error": { "message": message } });
        Mock::given(body_partial_json(json!({ field: if field == "max_tokens" { json!(5) }
            else if field == "temperature" { json!(0.1) } else { json!({}) } })))
        .respond_with(ResponseTemplate::new(400).set_body_json(body))
    };
    refuse("stream_options", "Unknown parameter: 'stream_options'").mount(&server).await;
    refuse("max_tokens", "Use 'max_completion_tokens' instead.").mount(&server).await;
    refuse("temperature", "Unsupported value: 'temperature'").mount(&server).await;
    Mock::given(method("POST"))
        .respond_with(ok(events(&[delta(&json!({ "content": "x" }), Some("stop"))])))
        .mount(&server)
        .await;
    let models = models(provider(ProviderKind::OpenAi, &server.uri()));
    let request = ChatRequest { temperature: Some(0.1), max_tokens: Some(5), ..question("hi") };
    assert_eq!(ask(&models, request.clone()).await.finish(), Finish::Stop);
    let tries = received(&server).await;
    assert_eq!(tries.len(), 4, "{tries:?}");
    let last = tries.last().unwrap();
    assert_eq!(last["max_completion_tokens"], 5);
    for gone in ["stream_options", "max_tokens", "temperature"] {
        assert_eq!(last.get(gone), None);
    }
    assert_eq!(ask(&models, request).await.finish(), Finish::Stop);
    assert_eq!(received(&server).await.len(), 5);
}

#[tokio::test]
async fn a_wrong_value_is_not_left_out() {
    let body = json!({ "error": { "message": "temperature must be at most 2" } });
    let server = answering(ResponseTemplate::new(400).set_body_json(body)).await;
    let request = ChatRequest { temperature: Some(3.0), ..question("hi") };
    let answer = ask(&models(provider(ProviderKind::OpenAi, &server.uri())), request).await;
    assert!(matches!(answer.error(), ModelError::Refused { status: 400, .. }));
    assert_eq!(received(&server).await.len(), 1);
}

#[tokio::test]
async fn base_urls_are_taken_with_and_without_their_version() {
    for (base, expected) in [
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("/api/openai", "/api/openai/chat/completions"),
    ] {
        let server =
            answering(ok(events(&[delta(&json!({ "content": "x" }), Some("stop"))]))).await;
        let url = format!("{}{base}", server.uri());
        ask(&models(provider(ProviderKind::OpenAi, &url)), question("hi")).await.finish();
        assert_eq!(server.received_requests().await.unwrap()[0].url.path(), expected);
    }
}

#[tokio::test]
async fn an_answer_with_too_many_calls_says_so() {
    let calls: Vec<Value> = (0..300)
        .map(|index| json!({"index": index, "id": format!("c{index}"), "function": {"name": "f", "arguments": "{}"}}))
        .collect();
    let stream = events(&[delta(&json!({ "tool_calls": calls }), Some("tool_calls"))]);
    let answer = answer(&stream).await;
    let error = answer.error();
    for words in [error.to_string(), error.public_message()] {
        assert!(words.contains("too many tool calls") && words.contains("128"), "{words}");
        assert!(!words.contains("invalid response"), "{words}");
    }
    assert!(error.help().is_some());
}
