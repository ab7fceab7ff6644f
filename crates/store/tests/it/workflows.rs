use std::time::Duration;

use savoir_store::{ChangedWorkflow, Checkpoint, ExecutionStatus, NewWorkflow, Timestamp};
use serde_json::json;

use crate::harness::for_each_database;

const MINUTE: Duration = Duration::from_mins(1);
const NONE: Duration = Duration::ZERO;

fn named(name: &str) -> NewWorkflow {
    NewWorkflow { name: Some(name.to_owned()), ..NewWorkflow::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn workflow_lifecycle() {
    for_each_database(async |place| {
        let workflows = place.database.workflows();
        assert!(workflows.create(NewWorkflow::default(), None).await.is_err());
        let mine = workflows.create(named("mine"), Some(1)).await.unwrap();
        assert_eq!(mine.graph, json!({"nodes": [], "edges": []}));
        let ours = workflows.create(named("ours"), None).await.unwrap();
        let theirs = workflows.create(named("theirs"), Some(2)).await.unwrap();
        let ids = async |user| -> Vec<String> {
            workflows.list(user).await.unwrap().into_iter().map(|w| w.name).collect()
        };
        assert_eq!(ids(Some(1)).await, ["ours", "mine"]);
        assert_eq!(ids(None).await, ["theirs", "ours", "mine"]);

        let graph = json!({"nodes": [{"z": 1, "a": "\u{0}"}], "edges": []});
        let change = NewWorkflow { graph: Some(graph.clone()), ..NewWorkflow::default() };
        let changed = workflows.update(&mine.id, change, Some(1), |_| true).await.unwrap();
        let ChangedWorkflow::Done(changed) = changed else { panic!("{changed:?}") };
        assert_eq!((changed.name.as_str(), &changed.graph), ("mine", &graph));
        assert!(changed.updated_at > mine.updated_at);
        assert_eq!(workflows.get(&mine.id).await.unwrap(), Some(changed));
        let missing = workflows.update("none", named("x"), None, |_| true).await.unwrap();
        assert_eq!(missing, ChangedWorkflow::Missing);

        let run = workflows.begin(&theirs.id, None, "in", None, "w", MINUTE).await.unwrap();
        let kept =
            workflows.delete(&theirs.id, |workflow| workflow.name != "theirs").await.unwrap();
        assert_eq!(kept, ChangedWorkflow::Unexpected);
        let deleted = workflows.delete(&theirs.id, |_| true).await.unwrap();
        assert_eq!(deleted, ChangedWorkflow::Done(theirs.clone()));
        let missing = workflows.delete(&theirs.id, |_| true).await.unwrap();
        assert_eq!(missing, ChangedWorkflow::Missing);
        assert_eq!(workflows.execution(&run.id).await.unwrap(), None);
        assert!(workflows.get(&ours.id).await.unwrap().is_some());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_concurrent_changes_of_an_expected_workflow_one_is_made() {
    for_each_database(async |place| {
        let workflows = place.database.workflows();
        let workflow = workflows.create(named("0"), None).await.unwrap();
        let changes = (1..=8).map(|number| {
            let (database, id) = (place.database.clone(), workflow.id.clone());
            tokio::spawn(async move {
                let is_expected = |before: &savoir_store::Workflow| before.name == "0";
                let change = named(&number.to_string());
                database.workflows().update(&id, change, None, is_expected).await.unwrap()
            })
        });
        let changes = futures::future::join_all(changes.collect::<Vec<_>>()).await;
        let done = changes
            .into_iter()
            .filter(|changed| matches!(changed, Ok(ChangedWorkflow::Done(_))))
            .count();
        assert_eq!(done, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn execution_is_claimed_by_one_worker() {
    for_each_database(async |place| {
        let workflows = place.database.workflows();
        let workflow = workflows.create(named("w"), None).await.unwrap();
        let short = Duration::from_millis(200);
        let run =
            workflows.begin(&workflow.id, Some(7), "in", Some("m"), "a", short).await.unwrap();
        assert_eq!((run.status, run.user_id), (ExecutionStatus::Running, Some(7)));
        assert!(!workflows.claim(&run.id, "b", MINUTE).await.unwrap());
        assert!(!workflows.claim(&run.id, "a", MINUTE).await.unwrap(), "it runs already");
        tokio::time::sleep(short).await;

        let other = place.again().await;
        let tasks: Vec<_> = (0..10)
            .map(|n| {
                let database = if n % 2 == 0 { place.database.clone() } else { other.clone() };
                let id = run.id.clone();
                tokio::spawn(async move {
                    let worker = format!("w{n}");
                    let claimed = database.workflows().claim(&id, &worker, MINUTE).await.unwrap();
                    claimed.then_some(worker)
                })
            })
            .collect();
        let mut holders = Vec::new();
        for task in tasks {
            holders.extend(task.await.unwrap());
        }
        assert_eq!(holders.len(), 1);
        let holder = holders.remove(0);

        let checkpoint = Checkpoint {
            executed_nodes: vec!["n1".into()],
            queue: vec!["n2".into()],
            history: vec![json!({"role": "user", "content": "hello"})],
            ..Checkpoint::default()
        };
        let save = async |worker: &str, status| {
            workflows.save(&run.id, worker, status, &checkpoint).await.unwrap()
        };
        assert!(!save("a", ExecutionStatus::Running).await, "its lease is over");
        assert!(!workflows.renew(&run.id, "a", MINUTE).await.unwrap());
        assert!(workflows.renew(&run.id, &holder, MINUTE).await.unwrap());
        assert!(save(&holder, ExecutionStatus::Running).await);
        assert!(save(&holder, ExecutionStatus::Failed).await);
        assert!(!save(&holder, ExecutionStatus::Running).await, "it was given back");
        let kept = workflows.execution(&run.id).await.unwrap().unwrap();
        assert_eq!((kept.status, &kept.checkpoint), (ExecutionStatus::Failed, &checkpoint));

        assert!(workflows.claim(&run.id, "c", MINUTE).await.unwrap());
        assert!(save("c", ExecutionStatus::Completed).await);
        assert!(!workflows.claim(&run.id, "d", MINUTE).await.unwrap(), "it is done");
        assert!(!workflows.claim("none", "d", MINUTE).await.unwrap());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn old_executions_are_deleted() {
    for_each_database(async |place| {
        let workflows = place.database.workflows();
        let workflow = workflows.create(named("w"), None).await.unwrap();
        let begin = async |lease| {
            workflows.begin(&workflow.id, None, "in", None, "a", lease).await.unwrap().id
        };
        let end = async |id: &str, status| {
            assert!(workflows.save(id, "a", status, &Checkpoint::default()).await.unwrap());
        };
        let (done, failed, left) = (begin(MINUTE).await, begin(MINUTE).await, begin(NONE).await);
        let held = begin(MINUTE).await;
        end(&done, ExecutionStatus::Completed).await;
        end(&failed, ExecutionStatus::Failed).await;
        let (now, later) = (Timestamp::now(), begin(NONE).await);
        assert_eq!(workflows.sweep_executions(now.minus(MINUTE)).await.unwrap(), 0);
        assert_eq!(workflows.sweep_executions(now).await.unwrap(), 3);
        for (id, there) in
            [(done, false), (failed, false), (left, false), (held, true), (later, true)]
        {
            assert_eq!(workflows.execution(&id).await.unwrap().is_some(), there);
        }
    })
    .await;
}
