use std::time::Duration;

use savoir_store::{
    Chunk, Database, IndexingStatus, IndexingTask, NewDocument, StoreError, Timestamp,
};

use crate::harness::for_each_database;

const MINUTE: Duration = Duration::from_mins(1);

/// Adds a document with a pending task.
pub(crate) async fn add(database: &Database, kb_id: &str, filename: &str) -> IndexingTask {
    let id = uuid::Uuid::now_v7().to_string();
    let new = NewDocument { id: &id, kb_id, filename, file_size: 5 };
    database.knowledge().add_document(new).await.unwrap().1
}

/// Indexes a document with these texts as its chunks.
pub(crate) async fn fill(
    database: &Database,
    task: &IndexingTask,
    chunks: &[(&str, Option<&[f32]>)],
    embedder: Option<&str>,
) -> Result<bool, StoreError> {
    let claimed = database.knowledge().claim_task("w", MINUTE).await?.unwrap();
    assert_eq!(&claimed.task.id, &task.id);
    let chunks: Vec<Chunk> = (0..)
        .zip(chunks)
        .map(|(index, (text, vector))| Chunk {
            id: format!("{}_chunk_{index}", task.doc_id),
            doc_id: task.doc_id.clone(),
            index,
            text: (*text).to_owned(),
            size: text.len() as u64,
            embedding: vector.map(<[f32]>::to_vec),
        })
        .collect();
    database.knowledge().complete_task(&task.id, "w", &chunks, embedder).await
}

#[tokio::test(flavor = "multi_thread")]
async fn knowledge_base_and_document_lifecycle() {
    for_each_database(async |place| {
        let knowledge = place.database.knowledge();
        let base = knowledge.create("b", Some(1)).await.unwrap();
        assert_eq!((base.document_count, base.embedder.clone()), (0, None));
        let later = knowledge.create("c", None).await.unwrap();
        assert_eq!(knowledge.list().await.unwrap(), [later.clone(), base.clone()]);
        let one = add(&place.database, &base.id, "one.md").await;
        let two = add(&place.database, &base.id, "two.md").await;
        assert_eq!(knowledge.get(&base.id).await.unwrap().unwrap().document_count, 2);
        let documents = knowledge.documents(&base.id).await.unwrap();
        let names: Vec<_> = documents.iter().map(|d| d.filename.as_str()).collect();
        assert_eq!(names, ["two.md", "one.md"]);
        assert_eq!((documents[0].status, documents[0].file_size), (IndexingStatus::Pending, 5));
        assert_eq!(knowledge.document(&later.id, &one.doc_id).await.unwrap(), None);
        let missing = NewDocument { id: "x", kb_id: "none", filename: "f", file_size: 0 };
        assert!(knowledge.add_document(missing).await.is_err());

        assert!(!knowledge.delete_document(&later.id, &one.doc_id).await.unwrap());
        assert!(knowledge.delete_document(&base.id, &one.doc_id).await.unwrap());
        assert!(!knowledge.delete_document(&base.id, &one.doc_id).await.unwrap());
        assert_eq!(knowledge.task(&one.id).await.unwrap(), None);
        assert_eq!(knowledge.delete(&base.id).await.unwrap(), Some(vec![two.doc_id]));
        assert_eq!(knowledge.delete(&base.id).await.unwrap(), None);
        assert_eq!(knowledge.task(&two.id).await.unwrap(), None);
        assert_eq!(knowledge.delete(&later.id).await.unwrap(), Some(Vec::new()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn base_resolves_by_id_then_owner_then_age() {
    for_each_database(async |place| {
        let knowledge = place.database.knowledge();
        let oldest = knowledge.create("same", Some(1)).await.unwrap();
        let own = knowledge.create("same", Some(2)).await.unwrap();
        let newest = knowledge.create("same", Some(2)).await.unwrap();
        let tricky = knowledge.create(&oldest.id, Some(2)).await.unwrap();
        let find = async |name: &str, user| {
            knowledge.resolve(name, user).await.unwrap().map(|base| base.id)
        };
        assert_eq!(find("same", None).await.as_ref(), Some(&oldest.id));
        assert_eq!(find("same", Some(2)).await.as_ref(), Some(&own.id));
        assert_eq!(find("same", Some(3)).await.as_ref(), Some(&oldest.id));
        assert_eq!(find(&newest.id, Some(1)).await.as_ref(), Some(&newest.id));
        assert_eq!(find(&oldest.id, Some(2)).await.as_ref(), Some(&oldest.id), "an id is first");
        assert_eq!(find(&tricky.id, None).await.as_ref(), Some(&tricky.id));
        assert_eq!(find("SAME", None).await, None);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_released_task_was_no_attempt() {
    for_each_database(async |place| {
        let knowledge = place.database.knowledge();
        let base = knowledge.create("b", None).await.unwrap();
        let task = add(&place.database, &base.id, "1").await;
        for _ in 0..5 {
            let claimed = knowledge.claim_task("a", MINUTE).await.unwrap().expect("a task");
            assert_eq!((&claimed.task.id, claimed.attempt), (&task.id, 1));
            assert!(
                !knowledge.release_task(&task.id, "b", Duration::ZERO).await.unwrap(),
                "it is not b's"
            );
            assert!(knowledge.release_task(&task.id, "a", Duration::ZERO).await.unwrap());
        }
        assert_eq!(knowledge.claim_task("b", MINUTE).await.unwrap().unwrap().attempt, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn task_taken_from_a_live_worker_was_no_attempt() {
    for_each_database(async |place| {
        let knowledge = place.database.knowledge();
        let base = knowledge.create("b", None).await.unwrap();
        let task = add(&place.database, &base.id, "1").await;
        knowledge.claim_task("a", Duration::ZERO).await.unwrap().expect("a task");
        knowledge.claim_task("b", Duration::ZERO).await.unwrap().expect("the lease has ended");
        knowledge.forgive_attempt(&task.id, "a").await.unwrap();
        assert_eq!(knowledge.claim_task("c", MINUTE).await.unwrap().unwrap().attempt, 2);
        // The worker that has the task cannot uncount its own attempt.
        knowledge.forgive_attempt(&task.id, "c").await.unwrap();
        assert!(knowledge.release_task(&task.id, "c", MINUTE).await.unwrap());
        assert!(knowledge.claim_task("d", MINUTE).await.unwrap().is_none(), "the pause goes on");
    })
    .await;
}

/// A crash between two steps would leave documents without vectors that nobody indexes again.
#[tokio::test(flavor = "multi_thread")]
async fn all_documents_are_indexed_again_or_none() {
    for_each_database(async |place| {
        let knowledge = place.database.knowledge();
        let base = knowledge.create("b", None).await.unwrap();
        for name in ["1", "2", "3"] {
            let task = add(&place.database, &base.id, name).await;
            assert_eq!(knowledge.claim_task("a", MINUTE).await.unwrap().unwrap().task.id, task.id);
            assert!(knowledge.complete_task(&task.id, "a", &[], None).await.unwrap());
        }
        assert_eq!(knowledge.index_again(&base.id).await.unwrap(), 3);
        let documents = knowledge.documents(&base.id).await.unwrap();
        assert!(documents.iter().all(|document| document.status == IndexingStatus::Pending));
        for _ in 0..3 {
            knowledge.claim_task("a", MINUTE).await.unwrap().expect("a task");
        }
        assert!(knowledge.claim_task("a", MINUTE).await.unwrap().is_none());
        assert_eq!(knowledge.index_again("none").await.unwrap(), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn indexing_task_lifecycle() {
    for_each_database(async |place| {
        let knowledge = place.database.knowledge();
        let base = knowledge.create("b", None).await.unwrap();
        let first = add(&place.database, &base.id, "1").await;
        let second = add(&place.database, &base.id, "2").await;
        assert_eq!((first.status, first.progress), (IndexingStatus::Pending, 0));

        let claimed = knowledge.claim_task("a", Duration::from_millis(150)).await.unwrap().unwrap();
        assert_eq!((&claimed.task.id, claimed.attempt), (&first.id, 1), "the oldest");
        assert_eq!(claimed.document.status, IndexingStatus::Processing);
        let same = knowledge.add_task(&base.id, &first.doc_id).await.unwrap();
        assert_eq!(same.id, first.id, "it is being worked on");
        assert!(knowledge.report_progress(&first.id, "a", 40, MINUTE / 400).await.unwrap());
        assert_eq!(knowledge.task(&first.id).await.unwrap().unwrap().progress, 40);
        assert!(!knowledge.report_progress(&first.id, "b", 50, MINUTE).await.unwrap());
        tokio::time::sleep(Duration::from_millis(200)).await;

        let again = knowledge.claim_task("b", MINUTE).await.unwrap().unwrap();
        assert_eq!((&again.task.id, again.attempt), (&first.id, 2), "its worker died");
        assert!(!knowledge.report_progress(&first.id, "a", 90, MINUTE).await.unwrap());
        assert!(!knowledge.complete_task(&first.id, "a", &[], None).await.unwrap());
        assert!(!knowledge.fail_task(&first.id, "a", "late").await.unwrap());
        let document = knowledge.document(&base.id, &first.doc_id).await.unwrap().unwrap();
        assert_eq!(document.status, IndexingStatus::Processing, "nothing of it was kept");
        assert!(knowledge.complete_task(&first.id, "b", &[], None).await.unwrap());
        let done = knowledge.task(&first.id).await.unwrap().unwrap();
        assert_eq!((done.status, done.progress), (IndexingStatus::Completed, 100));

        knowledge.claim_task("b", MINUTE).await.unwrap().unwrap();
        assert!(knowledge.fail_task(&second.id, "b", "no words").await.unwrap());
        let document = knowledge.document(&base.id, &second.doc_id).await.unwrap().unwrap();
        assert_eq!(
            (document.status, document.error.as_deref()),
            (IndexingStatus::Failed, Some("no words"))
        );
        assert_eq!(knowledge.claim_task("b", MINUTE).await.unwrap(), None);
        let retry = knowledge.add_task(&base.id, &second.doc_id).await.unwrap();
        assert_ne!(retry.id, second.id);
        let document = knowledge.document(&base.id, &second.doc_id).await.unwrap().unwrap();
        assert_eq!((document.status, document.error), (IndexingStatus::Pending, None));
        assert!(knowledge.add_task(&base.id, "none").await.is_err());

        assert_eq!(knowledge.sweep_tasks(Timestamp::now().minus(MINUTE)).await.unwrap(), 0);
        assert_eq!(knowledge.sweep_tasks(Timestamp::now()).await.unwrap(), 2);
        assert!(knowledge.task(&retry.id).await.unwrap().is_some(), "it has not ended");
        assert!(!knowledge.complete_task("none", "b", &[], None).await.unwrap());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_take_turns_in_the_indexing_queue() {
    for_each_database(async |place| {
        let knowledge = place.database.knowledge();
        for (name, owner, documents) in [
            ("a", Some(1), 3),
            ("b", Some(1), 2),
            ("c", Some(2), 2),
            ("d", None, 2),
            ("e", Some(3), 1),
        ] {
            let base = knowledge.create(name, owner).await.unwrap();
            for n in 0..documents {
                add(&place.database, &base.id, &format!("{name}{n}")).await;
            }
        }
        assert_eq!(knowledge.waiting(1).await.unwrap(), 5);
        assert_eq!(knowledge.waiting(4).await.unwrap(), 0);
        let mut order = Vec::new();
        while let Some(claimed) = knowledge.claim_task("w", MINUTE).await.unwrap() {
            order.push(claimed.document.filename);
        }
        assert_eq!(order, ["a0", "c0", "d0", "e0", "a1", "c1", "d1", "a2", "b0", "b1"]);
        assert_eq!(knowledge.waiting(1).await.unwrap(), 0, "they are being read");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn task_is_claimed_by_one_worker() {
    for_each_database(async |place| {
        let base = place.database.knowledge().create("b", None).await.unwrap();
        let mut expected = Vec::new();
        for n in 0..6 {
            expected.push(add(&place.database, &base.id, &n.to_string()).await.id);
        }
        let other = place.again().await;
        let tasks: Vec<_> = (0..12)
            .map(|n| {
                let database = if n % 2 == 0 { place.database.clone() } else { other.clone() };
                tokio::spawn(async move {
                    let worker = n.to_string();
                    let claimed =
                        database.knowledge().claim_task(&worker, MINUTE).await.unwrap()?;
                    Some(claimed.task.id)
                })
            })
            .collect();
        let mut claimed = Vec::new();
        for task in tasks {
            claimed.extend(task.await.unwrap());
        }
        claimed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(claimed, expected);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_and_deletions_do_not_deadlock() {
    for_each_database(async |place| {
        let base = place.database.knowledge().create("b", None).await.unwrap();
        let mut tasks = Vec::new();
        for n in 0..12 {
            let task = add(&place.database, &base.id, &n.to_string()).await;
            let (database, kb_id) = (place.database.clone(), base.id.clone());
            tasks.push(tokio::spawn(async move {
                let knowledge = database.knowledge();
                if n % 3 == 0 {
                    knowledge.delete_document(&kb_id, &task.doc_id).await.unwrap();
                } else if let Some(claimed) =
                    knowledge.claim_task(&n.to_string(), MINUTE).await.unwrap()
                {
                    let id = &claimed.task.id;
                    knowledge.complete_task(id, &n.to_string(), &[], None).await.unwrap();
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(place.database.knowledge().documents(&base.id).await.unwrap().len(), 8);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_of_another_embedder_are_rejected() {
    for_each_database(async |place| {
        let knowledge = place.database.knowledge();
        let base = knowledge.create("b", None).await.unwrap();
        let embedder = async || knowledge.get(&base.id).await.unwrap().unwrap().embedder;
        let first = add(&place.database, &base.id, "1").await;
        fill(&place.database, &first, &[("words", None)], Some("x")).await.unwrap();
        assert_eq!(embedder().await, None, "there are no vectors");
        let second = add(&place.database, &base.id, "2").await;
        fill(&place.database, &second, &[("a", Some(&[1.0, 0.0]))], Some("x")).await.unwrap();
        assert_eq!(embedder().await.as_deref(), Some("x"));
        let third = add(&place.database, &base.id, "3").await;
        let refused = fill(&place.database, &third, &[("b", Some(&[1.0, 0.0]))], Some("y")).await;
        assert!(matches!(refused, Err(StoreError::Setting(_))));
        let task = knowledge.task(&third.id).await.unwrap().unwrap();
        assert_eq!(task.status, IndexingStatus::Processing, "nothing of it was kept");
        assert!(knowledge.fail_task(&third.id, "w", "another embedder").await.unwrap());
        knowledge.delete_document(&base.id, &second.doc_id).await.unwrap();
        assert_eq!(embedder().await, None, "the last vector is gone");
    })
    .await;
}
