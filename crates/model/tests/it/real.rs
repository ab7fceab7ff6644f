//! Tests third-party servers (llama.cpp, aimock) and real model weights.

use std::time::{Duration, Instant};

use savoir_model::{
    ChatRequest, EmbeddingSettings, Finish, Message, ModelError, Models, ProviderKind,
    ProviderSettings, Settings,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncWriteExt as _, copy},
    net::{TcpListener, TcpStream},
};

use crate::support::{Whole, ask, models, question, read_request, real, weather};

fn provider(kind: ProviderKind, url: &str) -> ProviderSettings {
    let mut provider = ProviderSettings::new("real", kind);
    provider.base_url = Some(url.to_owned());
    provider
}

fn hello() -> ChatRequest {
    ChatRequest { temperature: Some(0.0), max_tokens: Some(12), ..question("Say hello.") }
}

fn forecast() -> ChatRequest {
    let request = question("What is the weather in Paris?");
    let tools = vec![weather()];
    ChatRequest { temperature: Some(0.0), max_tokens: Some(80), tools, ..request }
}

/// Sends a request to the model that the server offers.
async fn ask_offered(models: &Models, request: ChatRequest) -> Whole {
    let model = models.choose(None).await.unwrap().model;
    ask(models, ChatRequest { model, ..request }).await
}

fn is_spoken(answer: &Whole) {
    assert!(matches!(answer.finish(), Finish::Stop | Finish::Length));
    assert!(!answer.text().is_empty());
    let usage = answer.usage().unwrap();
    assert!(usage.input > 0 && (1..=12).contains(&usage.output), "{usage:?}");
}

fn is_forecast(answer: &Whole) {
    assert_eq!(answer.finish(), Finish::ToolCalls);
    let calls = answer.calls();
    let (id, name, arguments) = calls.first().unwrap();
    assert!(!id.is_empty());
    assert_eq!(*name, "get_weather");
    assert!(arguments["city"].is_string(), "{arguments}");
}

/// Starts a proxy that adds `tool_choice` to each request, because our clients cannot set it.
async fn demanding(server: &str, choice: Value) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = server.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (head, content) = read_request(&mut client).await;
            let line = head.lines().next().unwrap();
            let body = serde_json::from_slice::<Value>(&content).map_or_else(
                |_| String::new(),
                |mut content| {
                    content["tool_choice"] = choice.clone();
                    content.to_string()
                },
            );
            let request = format!(
                "{line}\r\nhost: {server}\r\nconnection: close\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            let mut upstream = TcpStream::connect(&server).await.unwrap();
            upstream.write_all(request.as_bytes()).await.unwrap();
            let _ = copy(&mut upstream, &mut client).await;
        }
    });
    url
}

#[tokio::test]
async fn llama_speaks_chat_completions() {
    let Some(url) = real("SAVOIR_TEST_MODEL", "chat completions of a real model") else { return };
    for url in [url.as_str(), url.trim_end_matches("/v1")] {
        is_spoken(&ask_offered(&models(provider(ProviderKind::OpenAi, url)), hello()).await);
    }
}

#[tokio::test]
async fn llama_speaks_messages() {
    let Some(url) = real("SAVOIR_TEST_MODEL", "messages of a real model") else { return };
    let models = models(provider(ProviderKind::Anthropic, &url));
    let mut request = hello();
    request.messages.insert(0, Message::System("You are kind.".to_owned()));
    is_spoken(&ask_offered(&models, request).await);
}

#[tokio::test]
async fn llama_calls_tools_in_both_formats() {
    let Some(url) = real("SAVOIR_TEST_MODEL", "tool calls of a real model") else { return };
    for (kind, choice) in [
        (ProviderKind::OpenAi, json!("required")),
        (ProviderKind::Anthropic, json!({ "type": "any" })),
    ] {
        let url = demanding(&url, choice).await;
        let models = models(provider(kind, &url));
        let first = ask_offered(&models, forecast()).await;
        is_forecast(&first);
        let (id, name, arguments) = first.calls()[0];
        let call = savoir_model::ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.clone(),
        };
        let mut next = hello();
        next.messages.push(Message::Assistant { text: String::new(), tool_calls: vec![call] });
        next.messages.push(Message::Tool { call_id: id.to_owned(), content: "sunny".to_owned() });
        next.tools = vec![weather()];
        // The proxy demands a tool call again, and the token limit cuts it off.
        let second = ask_offered(&models, next).await;
        assert_eq!(second.finish(), Finish::Length);
        assert!(second.calls().is_empty(), "{second:?}");
    }
}

#[tokio::test]
async fn llama_is_interrupted() {
    use futures::StreamExt as _;

    let Some(url) = real("SAVOIR_TEST_MODEL", "interruption of a real model") else { return };
    let models = models(provider(ProviderKind::OpenAi, &url));
    let choice = models.choose(None).await.unwrap();
    let long = ChatRequest {
        max_tokens: Some(2000),
        temperature: Some(0.0),
        ..question("Count from one to one thousand in words.")
    };
    let mut answer = choice.client.answer(ChatRequest { model: choice.model, ..long });
    answer.next().await.unwrap().unwrap();
    drop(answer);
    // The server has one slot, which becomes free only if the server noticed the disconnect.
    let begin = Instant::now();
    is_spoken(&ask_offered(&models, hello()).await);
    assert!(begin.elapsed() < Duration::from_secs(25), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn llama_says_that_it_has_no_vectors() {
    let Some(url) = real("SAVOIR_TEST_MODEL", "embeddings of a real server") else { return };
    let error = embed(provider(ProviderKind::OpenAi, &url)).await.unwrap_err();
    assert!(matches!(error, ModelError::Refused { status: 501, .. }), "{error}");
}

async fn embed(provider: ProviderSettings) -> Result<Vec<Vec<f32>>, ModelError> {
    let (name, model) = (provider.name.clone(), "e".to_owned());
    let embedding = Some(EmbeddingSettings::Provider { provider: name, model });
    let settings = Settings { providers: vec![provider], embedding, default: None };
    let models = Models::from_settings(&settings).unwrap();
    let texts = ["one", "two", "one"].map(str::to_owned).to_vec();
    models.embedder().unwrap().embed(texts).await
}

#[tokio::test]
async fn aimock_answers_like_ollama() {
    let Some(url) = real("SAVOIR_TEST_AIMOCK", "the format of Ollama") else { return };
    let models = models(provider(ProviderKind::Ollama, &url));
    assert!(!models.list().await.remove(0).models.unwrap().is_empty());
    let answer = ask_offered(&models, hello()).await;
    assert_eq!(answer.finish(), Finish::Stop);
    assert_eq!(answer.text(), "Hello from a script, in several pieces.");
    assert!(answer.chunks.len() > 4);
    is_forecast(&ask_offered(&models, forecast()).await);
    let failed = ask_offered(&models, question("Fail.")).await;
    assert!(failed.error().to_string().contains("400: scripted failure"), "{failed:?}");
}

#[tokio::test]
async fn aimock_answers_like_openai_and_anthropic() {
    let Some(url) = real("SAVOIR_TEST_AIMOCK", "scripted answers") else { return };
    for kind in [ProviderKind::OpenAi, ProviderKind::Anthropic] {
        let models = models(provider(kind, &url));
        let ask = async |request: ChatRequest| {
            ask(&models, ChatRequest { model: "gpt-4o".to_owned(), ..request }).await
        };
        let answer = ask(hello()).await;
        assert_eq!(answer.finish(), Finish::Stop);
        assert_eq!(answer.text(), "Hello from a script, in several pieces.");
        is_forecast(&ask(forecast()).await);
        assert!(matches!(
            ask(question("Fail.")).await.error(),
            ModelError::Refused { status: 400, .. }
        ));
    }
}

#[tokio::test]
async fn aimock_makes_vectors_in_two_formats() {
    let Some(url) = real("SAVOIR_TEST_AIMOCK", "vectors of a server") else { return };
    for kind in [ProviderKind::OpenAi, ProviderKind::Ollama] {
        let vectors = embed(provider(kind, &url)).await.unwrap();
        assert_eq!(vectors.len(), 3);
        assert_eq!(vectors[0], vectors[2]);
        assert!((cosine(&vectors[0], &vectors[0]) - 1.0).abs() < 1e-5);
        assert!(cosine(&vectors[0], &vectors[1]) < 0.9999);
    }
}

fn cosine(one: &[f32], two: &[f32]) -> f32 {
    one.iter().zip(two).map(|(x, y)| x * y).sum()
}

#[tokio::test]
async fn local_embeddings_of_similar_texts_are_close() {
    let variable = "SAVOIR_TEST_EMBEDDING_FOLDER";
    let Some(path) = real(variable, "real embedding weights") else { return };
    let vectors = async |path: &str, texts: &[&str]| {
        let embedding = Some(EmbeddingSettings::Folder(path.into()));
        let settings = Settings { embedding, ..Settings::default() };
        let models = Models::from_settings(&settings).unwrap();
        let embedder = models.embedder().unwrap();
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        (embedder.identity().to_owned(), embedder.embed(texts).await.unwrap())
    };
    let long = "word ".repeat(3000);
    let cut = "word ".repeat(254);
    let texts = [
        "A man is eating food.",
        "A man is eating a piece of bread.",
        "The girl is carrying a baby.",
        "",
        &long,
        &cut,
    ];
    let (identity, found) = vectors(&path, &texts).await;
    assert!(found.iter().all(|vector| vector.len() == 384));
    assert!(found.iter().all(|vector| (cosine(vector, vector) - 1.0).abs() < 1e-5));
    assert!((cosine(&found[0], &found[1]) - 0.755).abs() < 0.001);
    assert!((cosine(&found[0], &found[2]) + 0.105).abs() < 0.001);
    assert!(cosine(&found[4], &found[5]) > 0.9999, "texts are cut at 256 tokens");
    // The parent folder of `model` is accepted, too.
    let above = path.trim_end_matches("/model");
    let (retry, same) = vectors(above, &texts[..1]).await;
    assert_eq!((retry, &same[0]), (identity, &found[0]));
}
