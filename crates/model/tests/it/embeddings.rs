//! Tests embeddings from servers and from model folders.

use std::{fs, path::Path, sync::Arc};

use savoir_model::{
    Embedder, EmbeddingSettings, ModelError, Models, ProviderKind, ProviderSettings, Settings,
};
use serde_json::{Value, json};
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate, matchers::path};

use crate::support::{answering, provider, received};

fn embedder(provider: ProviderSettings) -> Arc<dyn Embedder> {
    let model = "e".to_owned();
    let embedding = EmbeddingSettings::Provider { provider: provider.name.clone(), model };
    let settings =
        Settings { providers: vec![provider], embedding: Some(embedding), default: None };
    Models::from_settings(&settings).unwrap().embedder().unwrap().clone()
}

fn folder(path: &Path) -> Result<Models, ModelError> {
    let embedding = Some(EmbeddingSettings::Folder(path.to_owned()));
    Models::from_settings(&Settings { embedding, ..Settings::default() })
}

/// Returns a vector for each text that starts with the text's length, in the wrong order.
struct Lengths;

impl Respond for Lengths {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let texts = body["input"].as_array().unwrap().iter().enumerate().rev();
        let data: Vec<_> = texts
            .map(|(index, text)| {
                let length = text.as_str().unwrap().len();
                json!({ "index": index, "embedding": [length, 0.0, 4.0] })
            })
            .collect();
        ResponseTemplate::new(200).set_body_json(json!({ "data": data }))
    }
}

#[tokio::test]
async fn many_texts_go_in_bounded_batches_and_come_back_in_order() {
    let server = MockServer::start().await;
    Mock::given(path("/v1/embeddings")).respond_with(Lengths).mount(&server).await;
    let embedder = embedder(provider(ProviderKind::OpenAi, &server.uri()));
    assert_eq!(embedder.identity(), "test:e");
    let texts: Vec<_> = (0..70).map(|length| "x".repeat(length)).collect();
    let vectors = embedder.embed(texts).await.unwrap();
    assert_eq!(vectors.len(), 70);
    assert_eq!(vectors[3], [0.6, 0.0, 0.8]);
    assert!(vectors.is_sorted_by(|a, b| a[0] < b[0]));
    let sizes: Vec<_> = received(&server)
        .await
        .iter()
        .map(|body| body["input"].as_array().unwrap().len())
        .collect();
    assert_eq!(sizes, [32, 32, 6]);
    assert!(embedder.embed(Vec::new()).await.unwrap().is_empty());
}

#[tokio::test]
async fn both_embedding_responses_of_ollama_are_read() {
    let texts = || vec!["a".to_owned(), "b".to_owned()];
    let many = json!({ "embeddings": [[3.0, 4.0], [0.0, 2.0]] });
    let server = answering(ResponseTemplate::new(200).set_body_json(many)).await;
    let vectors = embedder(provider(ProviderKind::Ollama, &server.uri())).embed(texts()).await;
    assert_eq!(vectors.unwrap(), [[0.6, 0.8], [0.0, 1.0]]);
    let one = json!({ "embedding": [3.0, 4.0] });
    let server = answering(ResponseTemplate::new(200).set_body_json(one)).await;
    let vectors = embedder(provider(ProviderKind::Ollama, &server.uri())).embed(texts()).await;
    assert_eq!(vectors.unwrap(), [[0.6, 0.8], [0.6, 0.8]]);
}

#[tokio::test]
async fn vectors_of_another_dimension_are_an_invalid_response() {
    for vectors in [json!([[1.0]]), json!([[1.0], [1.0, 2.0]]), json!([[0.0], [1.0]]), json!("x")] {
        let body = json!({ "embeddings": vectors });
        let server = answering(ResponseTemplate::new(200).set_body_json(body)).await;
        let embedder = embedder(provider(ProviderKind::Ollama, &server.uri()));
        let error = embedder.embed(vec!["a".to_owned(), "b".to_owned()]).await.unwrap_err();
        assert!(matches!(error, ModelError::InvalidResponse { .. }), "{error}");
    }
}

#[test]
fn unsupported_model_folders_are_rejected_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let error = folder(dir.path()).unwrap_err().to_string();
    assert!(error.contains("config.json is missing") && error.contains("MiniLM"), "{error}");
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        fs::write(dir.path().join(name), "{}").unwrap();
    }
    let refused = |config: Value| {
        fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
        folder(dir.path()).unwrap_err().to_string()
    };
    let error = refused(json!({ "model_type": "llama" }));
    assert!(error.contains("`llama`") && error.contains("BERT"), "{error}");
    assert!(refused(json!({ "model_type": "bert" })).contains("missing field"));
    let mut config = config();
    config["hidden_act"] = json!("relu");
    assert!(refused(config).contains("`relu`"));
    let mut config = self::config();
    config["num_attention_heads"] = json!(3);
    assert!(refused(config).contains("3 heads"));
}

fn config() -> Value {
    json!({
        "model_type": "bert", "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 8, "max_position_embeddings": 16, "vocab_size": 3,
        "type_vocab_size": 2, "layer_norm_eps": 1e-12,
    })
}

#[tokio::test]
async fn broken_weights_are_reported_on_first_use() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("model")).unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join("model").join(name), text);
    write("config.json", &config().to_string()).unwrap();
    write("model.safetensors", "garbage").unwrap();
    write("tokenizer.json", "{}").unwrap();
    let embedder = folder(dir.path()).unwrap().embedder().unwrap().clone();
    let error = embedder.embed(vec!["x".to_owned()]).await.unwrap_err().to_string();
    assert!(error.contains("tokenizer.json"), "{error}");
    let words = json!({ "[UNK]": 0, "[CLS]": 1, "[SEP]": 2 });
    let model = json!({ "type": "WordPiece", "vocab": words, "unk_token": "[UNK]" });
    write("tokenizer.json", &json!({ "version": "1.0", "model": model }).to_string()).unwrap();
    let error = embedder.embed(vec!["x".to_owned()]).await.unwrap_err().to_string();
    assert!(error.contains("model.safetensors"), "{error}");
}
