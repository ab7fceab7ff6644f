//! Tests knowledge bases with embeddings.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures::{FutureExt as _, future::BoxFuture};
use savoir_knowledge::Knowledge;
use savoir_model::{Embedder, ModelError, Models};
use serde_json::json;

use crate::{
    harness::TestServer,
    knowledge::{BASES, read_all_of, upload},
    model::Scripted,
};

/// An embedder that counts letters, so texts with the same letters are similar.
#[derive(Debug)]
struct Letters {
    identity: &'static str,
    fails: AtomicBool,
}

impl Embedder for Letters {
    fn identity(&self) -> &str {
        self.identity
    }

    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, ModelError>> {
        async move {
            if self.fails.load(Ordering::Relaxed) {
                return Err(ModelError::Local("out of order".to_owned()));
            }
            Ok(texts.iter().map(|text| vector(text)).collect())
        }
        .boxed()
    }
}

fn vector(text: &str) -> Vec<f32> {
    let mut vector = [0.01_f32; 26];
    for byte in text.to_ascii_lowercase().bytes().filter(u8::is_ascii_lowercase) {
        vector[usize::from(byte - b'a')] += 1.0;
    }
    let length = vector.iter().map(|part| part * part).sum::<f32>().sqrt();
    vector.iter().map(|part| part / length).collect()
}

fn models(identity: &'static str) -> (Models, Arc<Letters>) {
    let mut models = Models::default();
    models.add("stub", Arc::new(Scripted::default()), Some("stub-1".to_owned()));
    let embedder = Arc::new(Letters { identity, fails: AtomicBool::new(false) });
    models.set_embedder(embedder.clone());
    (models, embedder)
}

#[tokio::test]
async fn embeddings_find_passages_without_common_words() {
    let (models_one, embedder) = models("test:one");
    let server = TestServer::with_models(models_one, |config| config.limits.runs = 0).await;
    let ada = server.register("ada@example.org").await;
    let kb = ada.post(BASES, &json!({"name": "kb"})).await.json();
    let kb = kb["id"].as_str().unwrap();
    for (name, text) in [("a.txt", "zebra zebra"), ("b.txt", "moonlight")] {
        upload(&ada, kb, name, text.as_bytes()).await;
    }
    let (database, storage) = (server.database.clone(), server.storage.clone());
    read_all_of(Knowledge::new(database, storage, Some(embedder.clone()))).await;
    let info = ada.get(&format!("{BASES}/{kb}/info")).await;
    info.is(
        200,
        &json!({
            "kb_id": kb, "collection_name": format!("kb_{kb}"), "document_count": 2,
            "vector_count": 2, "collection_exists": true,
        }),
    );
    let search = format!("{BASES}/{kb}/search?query=braze");
    let found = ada.get(&search).await.json();
    assert_eq!(found["results"][0]["text"], "zebra zebra");
    for hit in found["results"].as_array().unwrap() {
        let score = hit["score"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&score) && (score * 1e4).fract().abs() < 1e-6, "{score}");
    }
    // If the query has no embedding, the search uses words only.
    embedder.fails.store(true, Ordering::Relaxed);
    assert_eq!(ada.get(&search).await.json()["total"], 0);
    let words = ada.get(&format!("{BASES}/{kb}/search?query=zebra")).await.json();
    assert_eq!(words["total"], 1);

    // Vectors of different models are not compared.
    let other = server.beside_with(models("test:two").0).await;
    let there = other.client(&ada.token);
    let text = "Knowledge base index is incompatible with current embedding model. Rebuild the \
        knowledge base index and re-upload documents.";
    there.get(&search).await.refuses(409, text);
    server.write_skill("look", &format!("---\nknowledge_base: {kb}\n---\nzebra"));
    let reply = there.post("/api/v1/skills/look/run", &json!({})).await;
    assert!(reply.text.contains(r#""error": "Retrieval failed"}"#), "{}", reply.text);
    assert!(reply.text.ends_with("completed successfully\"}\n\n"), "{}", reply.text);
    let setting = there.get("/api/v1/settings/embedding").await;
    setting.is(200, &json!({"provider": "test", "model": "two"}));
}
