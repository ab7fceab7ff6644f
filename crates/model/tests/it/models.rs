//! Tests how model names are resolved and listed.

use savoir_model::{ModelError, Models, ProviderKind, Settings};
use serde_json::json;
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{method, path},
};

use crate::support::{models, provider};

async fn listing(at: &str, list: serde_json::Value) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("GET"))
        .and(path(at))
        .respond_with(ResponseTemplate::new(200).set_body_json(list))
        .mount(&server)
        .await;
    server
}

#[tokio::test]
async fn each_format_lists_its_models() {
    let data = json!({ "data": [{ "id": "a" }, { "id": "b" }] });
    let tags = json!({ "models": [{ "name": "a" }, { "name": "b" }] });
    for (kind, at, list) in [
        (ProviderKind::OpenAi, "/v1/models", data.clone()),
        (ProviderKind::Anthropic, "/v1/models", data),
        (ProviderKind::Ollama, "/api/tags", tags),
    ] {
        let server = listing(at, list).await;
        let listed = models(provider(kind, &server.uri())).list().await.remove(0);
        assert_eq!(listed.provider, "test");
        assert_eq!(listed.models.unwrap(), ["a", "b"]);
    }
}

#[tokio::test]
async fn the_first_model_is_the_default_and_is_asked_for_once() {
    let server = listing("/v1/models", json!({ "data": [{ "id": "a" }] })).await;
    let models = models(provider(ProviderKind::OpenAi, &server.uri()));
    let (one, two) = tokio::join!(models.choose(None), models.choose(Some("test:")));
    assert_eq!((one.unwrap().model, two.unwrap().model), ("a".to_owned(), "a".to_owned()));
    assert_eq!(models.clone().choose(None).await.unwrap().model, "a");
    assert_eq!(server.received_requests().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_provider_without_models_says_so() {
    let server = listing("/v1/models", json!({ "data": [] })).await;
    let error =
        models(provider(ProviderKind::OpenAi, &server.uri())).choose(None).await.unwrap_err();
    assert_eq!(error.to_string(), "test offers no model; name one");
}

#[tokio::test]
async fn names_find_their_provider() {
    let mut one = provider(ProviderKind::OpenAi, "http://127.0.0.1:1");
    one.name = "one".to_owned();
    one.model = Some("m1".to_owned());
    let mut two = provider(ProviderKind::Ollama, "http://127.0.0.1:1");
    two.name = "two".to_owned();
    let chosen = async |default: Option<&str>, wanted: Option<&str>| {
        let providers = vec![one.clone(), two.clone()];
        let default = default.map(str::to_owned);
        let settings = Settings { providers, default, embedding: None };
        let choice = Models::from_settings(&settings).unwrap().choose(wanted).await.unwrap();
        format!("{} {}", choice.provider, choice.model)
    };
    assert_eq!(chosen(None, None).await, "one m1");
    assert_eq!(chosen(None, Some("x")).await, "one x");
    assert_eq!(chosen(None, Some("two:x:8b")).await, "two x:8b");
    assert_eq!(chosen(None, Some("x:8b")).await, "one x:8b");
    assert_eq!(chosen(Some("two:y"), None).await, "two y");
    assert_eq!(chosen(Some("two:y"), Some("one:")).await, "one m1");
    assert_eq!(chosen(Some("one"), None).await, "one m1");
    assert_eq!(chosen(Some("y:8b"), None).await, "one y:8b");
}

#[tokio::test]
async fn missing_provider_is_reported_with_a_hint() {
    let error = Models::default().choose(None).await.unwrap_err();
    assert!(matches!(error, ModelError::NoProvider));
    assert!(error.help().unwrap().contains("OPENAI_API_KEY"));
}

#[tokio::test]
async fn local_ollama_needs_no_configuration() {
    let mut models = Models::default();
    models.allow_local_ollama().unwrap();
    let chosen = models.choose(Some("ollama:qwen3")).await.unwrap();
    assert_eq!((chosen.provider.as_str(), chosen.model.as_str()), ("ollama", "qwen3"));
    assert!(matches!(models.choose(None).await, Err(ModelError::NoProvider)));
    assert!(matches!(models.choose(Some("qwen3:8b")).await, Err(ModelError::NoProvider)));
}
