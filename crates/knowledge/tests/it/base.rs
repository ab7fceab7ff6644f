//! Tests knowledge bases with a database and a storage.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use savoir_knowledge::{
    Indexer, Knowledge, Mode, Reprocessing, SearchError, UploadError, extract::Extractor,
};
use savoir_model::{Embedder, ModelError};
use savoir_store::{Database, IndexingStatus, IndexingTask, KnowledgeBase, Storage};
use tempfile::TempDir;

use super::isolated::{HELVETICA, pdf, reader};

/// An embedder that counts letters, so that texts with the same letters have similar vectors.
#[derive(Debug)]
struct Letters {
    identity: &'static str,
    fails: Arc<AtomicBool>,
}

impl Embedder for Letters {
    fn identity(&self) -> &str {
        self.identity
    }

    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, ModelError>> {
        let fails = self.fails.load(Ordering::Relaxed);
        async move {
            if fails {
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

struct Place {
    database: Database,
    storage: Storage,
    fails: Arc<AtomicBool>,
    #[expect(dead_code, reason = "held until the end")]
    folder: TempDir,
}

impl Place {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open_folder(folder.path()).await.unwrap();
        let storage = Storage::folder(&folder.path().join("storage")).unwrap();
        Self { database, storage, fails: Arc::default(), folder }
    }

    fn words(&self) -> Knowledge {
        Knowledge::new(self.database.clone(), self.storage.clone(), None)
    }

    fn hybrid(&self, identity: &'static str) -> Knowledge {
        let embedder = Letters { identity, fails: Arc::clone(&self.fails) };
        Knowledge::new(self.database.clone(), self.storage.clone(), Some(Arc::new(embedder)))
    }
}

fn indexer(knowledge: &Knowledge) -> Indexer {
    Indexer::new(knowledge.clone(), Extractor::new(reader()))
}

/// Uploads and indexes a document.
async fn add(
    knowledge: &Knowledge,
    base: &KnowledgeBase,
    name: &str,
    bytes: impl Into<Bytes>,
) -> IndexingTask {
    let (document, task) = knowledge.add(&base.id, name, bytes.into()).await.unwrap();
    assert_eq!((document.status, task.status), (IndexingStatus::Pending, IndexingStatus::Pending));
    assert!(indexer(knowledge).run_one().await.unwrap());
    knowledge.task(&task.id).await.unwrap().unwrap()
}

const RETURNS: &str = "# Returns\n\nGoods may be returned within thirty days.\n";
const SHIPPING: &str = "# Shipping\n\nParcels above fifty euros travel free of charge.\n";

#[tokio::test]
async fn uploaded_document_is_found_by_keywords() {
    let place = Place::new().await;
    let knowledge = place.words();
    assert_eq!(knowledge.mode(), Mode::Words);
    let base = knowledge.create("manual", None).await.unwrap();
    assert!(knowledge.search("manual", None, "returned", 5).await.unwrap().is_empty());
    let task = add(&knowledge, &base, "returns.md", RETURNS).await;
    assert_eq!((task.status, task.progress), (IndexingStatus::Completed, 100));
    add(&knowledge, &base, "shipping.md", SHIPPING).await;
    let found = knowledge.search("manual", None, "returned goods", 5).await.unwrap();
    assert_eq!(found[0].doc_id, task.doc_id);
    assert_eq!(found[0].chunk_id, format!("{}_chunk_0", task.doc_id));
    assert_eq!(found[0].text, RETURNS.trim_end());
    assert!(found[0].score > 0.99 && found[0].score <= 1.0);
    let info = knowledge.info(&base.id).await.unwrap().unwrap();
    assert_eq!((info.base.document_count, info.vectors, info.mode), (2, 0, Mode::Words));
    let unknown = knowledge.search("nowhere", None, "x", 5).await.unwrap_err();
    assert_eq!(unknown.to_string(), "Knowledge base not found: nowhere");
}

#[tokio::test]
async fn vector_search_finds_synonyms() {
    let place = Place::new().await;
    let knowledge = place.hybrid("test:letters");
    let base = knowledge.create("manual", None).await.unwrap();
    add(&knowledge, &base, "returns.md", RETURNS).await;
    let task = add(&knowledge, &base, "shipping.md", SHIPPING).await;
    assert_eq!(knowledge.info(&base.id).await.unwrap().unwrap().vectors, 2);
    let question = SHIPPING.replace([' ', '\n'], "");
    let found = knowledge.search(&base.id, None, &question, 1).await.unwrap();
    assert_eq!(found[0].doc_id, task.doc_id);
    // If the question cannot be embedded, full-text search is used.
    place.fails.store(true, Ordering::Relaxed);
    assert!(!knowledge.search(&base.id, None, "parcels", 5).await.unwrap().is_empty());
}

#[tokio::test]
async fn vectors_of_two_models_are_not_mixed() {
    let place = Place::new().await;
    let (first, second) = (place.hybrid("test:first"), place.hybrid("test:second"));
    let base = first.create("manual", None).await.unwrap();
    add(&first, &base, "returns.md", RETURNS).await;
    let error = second.search(&base.id, None, "goods", 5).await.unwrap_err();
    assert!(matches!(error, SearchError::OtherModel));
    let task = add(&second, &base, "shipping.md", SHIPPING).await;
    assert_eq!(task.status, IndexingStatus::Failed);
    assert!(task.error.unwrap().starts_with("Knowledge base index is incompatible"));
    // Full-text search works whichever model made the vectors.
    assert_eq!(place.words().search(&base.id, None, "goods", 5).await.unwrap().len(), 1);
    // A base that was indexed without an embedder is found by full-text search.
    let plain = place.words().create("plain", None).await.unwrap();
    add(&place.words(), &plain, "returns.md", RETURNS).await;
    assert_eq!(first.search(&plain.id, None, "goods", 5).await.unwrap().len(), 1);
}

#[tokio::test]
async fn broken_document_has_a_reason() {
    let place = Place::new().await;
    let knowledge = place.hybrid("test:letters");
    let base = knowledge.create("manual", None).await.unwrap();
    let task = add(&knowledge, &base, "old.txt", &b"caf\xe9"[..]).await;
    assert_eq!(task.status, IndexingStatus::Failed);
    assert!(task.error.unwrap().contains("0xe9 at position 3"));
    let document = &knowledge.documents(&base.id).await.unwrap()[0];
    assert_eq!(document.status, IndexingStatus::Failed);
    assert!(document.error.as_deref().unwrap().contains("not UTF-8"));

    place.fails.store(true, Ordering::Relaxed);
    let task = add(&knowledge, &base, "returns.md", RETURNS).await;
    assert!(task.error.unwrap().ends_with("the local model failed"));
    place.fails.store(false, Ordering::Relaxed);
    let again = knowledge.reprocess(&base, &task.doc_id).await.unwrap().unwrap();
    let Reprocessing::Started(again) = again else { panic!("{again:?}") };
    let underway = knowledge.reprocess(&base, &task.doc_id).await.unwrap();
    assert_eq!(underway, Some(Reprocessing::Underway));
    assert!(indexer(&knowledge).run_one().await.unwrap());
    let again = knowledge.task(&again.id).await.unwrap().unwrap();
    assert_eq!(again.status, IndexingStatus::Completed);
    let done = knowledge.reprocess(&base, &task.doc_id).await.unwrap();
    assert_eq!(done, Some(Reprocessing::Done));
    assert_eq!(knowledge.reprocess(&base, "nothing").await.unwrap(), None);
}

#[tokio::test]
async fn pdfs_are_read_or_refused_with_a_reason() {
    let place = Place::new().await;
    let knowledge = place.words();
    let base = knowledge.create("manual", None).await.unwrap();
    let whole = pdf(HELVETICA, "BT /F1 12 Tf 50 800 Td (Returns policy) Tj ET");
    let broken = add(&knowledge, &base, "broken.pdf", whole.slice(..whole.len() / 2)).await;
    let task = add(&knowledge, &base, "whole.pdf", whole).await;
    if reader().is_some() {
        assert_eq!(task.status, IndexingStatus::Completed);
        assert!(broken.error.unwrap().starts_with("this PDF is damaged: "));
        assert_eq!(knowledge.search(&base.id, None, "policy", 5).await.unwrap().len(), 1);
    } else {
        assert!(task.error.unwrap().starts_with("PDFs are not read on this machine"));
    }
}

#[tokio::test]
async fn removed_documents_are_not_found() {
    let place = Place::new().await;
    let knowledge = place.words();
    let base = knowledge.create("manual", None).await.unwrap();
    let task = add(&knowledge, &base, "returns.md", RETURNS).await;
    add(&knowledge, &base, "shipping.md", SHIPPING).await;
    assert_eq!(place.storage.list("knowledge/").await.unwrap().len(), 2);
    assert!(knowledge.remove_document(&base.id, &task.doc_id).await.unwrap());
    assert!(!knowledge.remove_document(&base.id, &task.doc_id).await.unwrap());
    assert!(knowledge.search(&base.id, None, "returned", 5).await.unwrap().is_empty());
    assert_eq!(place.storage.list("knowledge/").await.unwrap().len(), 1);
    assert!(knowledge.remove_base(&base.id).await.unwrap());
    assert!(!knowledge.remove_base(&base.id).await.unwrap());
    assert!(place.storage.list("knowledge/").await.unwrap().is_empty());
}

#[tokio::test]
async fn invalid_uploads_are_not_stored() {
    let place = Place::new().await;
    let knowledge = place.words();
    let base = knowledge.create("manual", None).await.unwrap();
    let add = async |kb: &str, name: &str| {
        knowledge.add(kb, name, Bytes::from_static(b"x")).await.unwrap_err()
    };
    assert!(matches!(add(&base.id, "a.exe").await, UploadError::Type));
    assert!(matches!(add(&base.id, "../a.txt").await, UploadError::Name(_)));
    assert!(matches!(add("nowhere", "a.txt").await, UploadError::UnknownBase));
    assert!(place.storage.list("").await.unwrap().is_empty());
}

#[tokio::test]
async fn upload_wakes_worker_and_shutdown_stops_it() {
    let place = Place::new().await;
    let knowledge = place.words();
    let base = knowledge.create("manual", None).await.unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = indexer(&knowledge);
    let worker = tokio::spawn(async move { worker.run(stopped.map(drop)).await });
    // Long enough for the worker to use its longest poll interval.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (_, task) = knowledge.add(&base.id, "a.md", Bytes::from_static(b"word")).await.unwrap();
    let done = async {
        while knowledge.task(&task.id).await.unwrap().unwrap().status != IndexingStatus::Completed {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), done).await.unwrap();
    stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(5), worker).await.unwrap().unwrap();
}

#[tokio::test]
async fn document_that_crashes_workers_is_given_up() {
    let place = Place::new().await;
    let knowledge = place.words();
    let base = knowledge.create("manual", None).await.unwrap();
    let (_, task) = knowledge.add(&base.id, "a.md", Bytes::from_static(b"word")).await.unwrap();
    for attempt in 1..=3 {
        let rows = place.database.knowledge();
        let claimed = rows.claim_task("dead", Duration::from_millis(1)).await.unwrap().unwrap();
        assert_eq!(claimed.attempt, attempt);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(indexer(&knowledge).run_one().await.unwrap());
    let task = knowledge.task(&task.id).await.unwrap().unwrap();
    assert_eq!(task.error.as_deref(), Some("reading it stopped the worker three times"));
}
