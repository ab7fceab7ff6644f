use savoir_store::{ChunkHit, Database, StoreError, VectorSearch};

use crate::{
    harness::for_each_database,
    knowledge::{add, fill},
};

async fn words(database: &Database, kb_id: &str, words: &str) -> Vec<String> {
    texts(database.knowledge().find_words(kb_id, words, 10).await.unwrap())
}

async fn near(database: &Database, kb_id: &str, vector: &[f32]) -> Vec<String> {
    texts(database.knowledge().find_vector(kb_id, vector, 10).await.unwrap())
}

fn texts(hits: Vec<ChunkHit>) -> Vec<String> {
    hits.into_iter().map(|hit| hit.chunk.text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn words_are_found_and_ranked() {
    for_each_database(async |place| {
        let database = &place.database;
        let base = database.knowledge().create("b", None).await.unwrap();
        let other = database.knowledge().create("other", None).await.unwrap();
        let chunks = [
            ("The server is running on the machine", None),
            ("A café in the town; the town has a café", None),
            ("Run it: path/to/file.txt and user_name@example.org", None),
            ("知识库的搜索 and version 2.5", None),
            ("nothing of interest in the end", None),
        ];
        let task = add(database, &base.id, "1").await;
        fill(database, &task, &chunks, None).await.unwrap();
        let task = add(database, &other.id, "2").await;
        fill(database, &task, &[("the server of others", None)], None).await.unwrap();

        assert_eq!(words(database, &base.id, "SERVER").await, [chunks[0].0]);
        assert_eq!(words(database, &base.id, "runs").await.len(), 2, "stems");
        assert_eq!(words(database, &base.id, "cafe").await, [chunks[1].0]);
        assert_eq!(words(database, &base.id, "Cafés").await, [chunks[1].0]);
        assert_eq!(words(database, &base.id, "file").await, [chunks[2].0]);
        assert_eq!(words(database, &base.id, "user-name").await, [chunks[2].0]);
        assert_eq!(words(database, &base.id, "搜索").await, [chunks[3].0]);
        assert_eq!(words(database, &base.id, "2.5").await, [chunks[3].0]);
        assert_eq!(words(database, &base.id, "the").await.len(), 3, "every word counts");
        let any = words(database, &base.id, "the town zebra").await;
        assert_eq!(
            (any.len(), any[0].as_str()),
            (3, chunks[1].0),
            "any word; rare ones count more"
        );
        assert!(words(database, "none", "server").await.is_empty());

        let hits = database.knowledge().find_words(&base.id, "the town", 2).await.unwrap();
        assert_eq!(hits.len(), 2);
        assert!(hits[0].score > hits[1].score && hits[1].score > 0.0);
        let chunk = &hits[0].chunk;
        assert_eq!((chunk.index, chunk.size), (1, chunks[1].0.len() as u64));
        assert_eq!(chunk.embedding, None);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn query_operators_are_plain_words() {
    for_each_database(async |place| {
        let database = &place.database;
        let base = database.knowledge().create("b", None).await.unwrap();
        let task = add(database, &base.id, "1").await;
        let text = "near or not and o'neill \\ \u{1f600} \0 end";
        fill(database, &task, &[(text, None)], None).await.unwrap();
        for found in
            ["NEAR(", "\" OR \"", "NOT", "AND *", "o'neill", "words: near", "end\0", "^near"]
        {
            assert_eq!(words(database, &base.id, found).await.len(), 1, "{found:?}");
        }
        for nothing in
            ["", " ", "\"", "*", ":", "\u{1f600}", "(((", "' OR 1=1 --".get(..1).unwrap()]
        {
            assert!(words(database, &base.id, nothing).await.is_empty(), "{nothing:?}");
        }
        let long = "x'\"\\ & | ! <-> :* ".repeat(10_000);
        assert!(words(database, &base.id, &long).await.is_empty());
        let many: Vec<String> = (0..5000).map(|n| format!("w{n}")).collect();
        assert!(words(database, &base.id, &many.join(" ")).await.is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_chunks_are_stored() {
    for_each_database(async |place| {
        let database = &place.database;
        let base = database.knowledge().create("b", None).await.unwrap();
        let task = add(database, &base.id, "1").await;
        let many: Vec<String> = (0..60_000).map(|n| format!("wörd{n}")).collect();
        let (many, long) = (many.join(" "), "z".repeat(500_000));
        fill(database, &task, &[(&many, None), (&long, None)], None).await.unwrap();
        assert_eq!(words(database, &base.id, "word7").await.len(), 1);
        assert_eq!(words(database, &base.id, &long).await.len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_are_found_by_cosine() {
    for_each_database(async |place| {
        let database = &place.database;
        let knowledge = database.knowledge();
        let expected = if place.pgvector { VectorSearch::Pgvector } else { VectorSearch::Scan };
        assert_eq!(knowledge.vector_search(), expected);
        let base = knowledge.create("b", None).await.unwrap();
        let task = add(database, &base.id, "1").await;
        let chunks: [(&str, Option<&[f32]>); 6] = [
            ("east", Some(&[10.0, 0.0])),
            ("north", Some(&[0.0, 0.1])),
            ("north-east", Some(&[1.0, 1.0])),
            ("west", Some(&[-1.0, 0.0])),
            ("long", Some(&[1.0, 0.0, 0.0])),
            ("without", None),
        ];
        fill(database, &task, &chunks, Some("e")).await.unwrap();
        assert_eq!(knowledge.vector_count(&base.id).await.unwrap(), 5);
        assert_eq!(
            near(database, &base.id, &[2.0, 0.2]).await,
            ["east", "north-east", "north", "west"]
        );
        assert_eq!(near(database, &base.id, &[0.0, 0.0, 1.0]).await, ["long"]);
        assert!(near(database, &base.id, &[1.0]).await.is_empty());
        assert!(near(database, "none", &[1.0, 0.0]).await.is_empty());
        let hits = knowledge.find_vector(&base.id, &[3.0, 3.0], 2).await.unwrap();
        assert_eq!(hits.len(), 2);
        assert!((hits[0].score - 1.0).abs() < 1e-5, "{}", hits[0].score);
        assert!((hits[1].score - 0.5_f64.sqrt()).abs() < 1e-5, "{}", hits[1].score);
        let zero = knowledge.find_vector(&base.id, &[0.0, 0.0], 9).await.unwrap();
        assert!(zero.iter().all(|hit| hit.score.abs() < 1e-9));
        for bad in [&[] as &[f32], &[f32::NAN, 1.0], &[f32::INFINITY, 1.0]] {
            assert!(knowledge.find_vector(&base.id, bad, 1).await.is_err());
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_vectors_are_rejected() {
    for_each_database(async |place| {
        let base = place.database.knowledge().create("b", None).await.unwrap();
        let task = add(&place.database, &base.id, "1").await;
        let chunks: [(&str, Option<&[f32]>); 1] = [("x", Some(&[f32::NAN]))];
        let refused = fill(&place.database, &task, &chunks, Some("e")).await;
        assert!(matches!(refused, Err(StoreError::Damaged { .. })));
        assert!(words(&place.database, &base.id, "x").await.is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_other_processes_are_seen() {
    for_each_database(async |place| {
        let (database, other) = (&place.database, place.again().await);
        let base = database.knowledge().create("b", None).await.unwrap();
        let task = add(database, &base.id, "1").await;
        let vector: &[f32] = &[1.0, 0.0];
        fill(database, &task, &[("old words", Some(vector))], Some("e")).await.unwrap();
        assert_eq!(near(&other, &base.id, vector).await, ["old words"]);
        assert_eq!(near(&other, &base.id, vector).await, ["old words"]);

        let again = database.knowledge().add_task(&base.id, &task.doc_id).await.unwrap();
        fill(database, &again, &[("new words", Some(vector))], Some("e")).await.unwrap();
        assert_eq!(near(&other, &base.id, vector).await, ["new words"], "chunks are replaced");
        assert_eq!(words(&other, &base.id, "words").await, ["new words"]);
        assert!(words(&other, &base.id, "old").await.is_empty());

        assert!(database.knowledge().delete_document(&base.id, &task.doc_id).await.unwrap());
        assert!(near(&other, &base.id, vector).await.is_empty());
        assert!(words(&other, &base.id, "words").await.is_empty());
        assert_eq!(other.knowledge().vector_count(&base.id).await.unwrap(), 0);

        let task = add(database, &base.id, "2").await;
        fill(database, &task, &[("more words", Some(vector))], Some("f")).await.unwrap();
        assert_eq!(near(&other, &base.id, vector).await, ["more words"]);
        database.knowledge().delete(&base.id).await.unwrap();
        assert!(near(&other, &base.id, vector).await.is_empty());
        assert!(words(&other, &base.id, "words").await.is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_migrate_to_pgvector() {
    for_each_database(async |place| {
        if place.is_sqlite() || !place.pgvector {
            return;
        }
        let base = place.database.knowledge().create("b", None).await.unwrap();
        let task = add(&place.database, &base.id, "1").await;
        fill(&place.database, &task, &[("x", Some(&[1.0, -2.5]))], Some("e")).await.unwrap();
        // As stored before pgvector was installed: 1.0 and -2.5 as little-endian bytes.
        place
            .raw(
                r"UPDATE vectors SET embedding = '\x0000803f000020c0';
                  ALTER TABLE vectors DROP COLUMN point; DROP EXTENSION vector",
            )
            .await;
        let again = place.again().await;
        assert_eq!(again.knowledge().vector_search(), VectorSearch::Pgvector);
        let hits = again.knowledge().find_vector(&base.id, &[2.0, -5.0], 1).await.unwrap();
        assert!((hits[0].score - 1.0).abs() < 1e-5);
    })
    .await;
}
