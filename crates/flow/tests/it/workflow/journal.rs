//! Tests which progress of a run is stored, and how the run resumes.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::BoxFuture;
use savoir_flow::{
    event::{Emitter, Event, ListenerDisconnected},
    workflow::{Graph, Journal, JournalError, WorkflowOutcome, WorkflowRun, run, run_to_end},
};
use savoir_store::{Checkpoint, ExecutionStatus};
use serde_json::{Value, json};

use super::{Scripted, events, fresh, graph, host, lines};

/// A journal that stores everything, and loses its lease after a number of checkpoints, or after a
/// while.
#[derive(Debug, Default)]
struct Memory {
    kept: Mutex<Vec<(ExecutionStatus, Checkpoint)>>,
    taken_after: Option<usize>,
    taken_soon: bool,
    broken: bool,
}

impl Memory {
    fn statuses(&self) -> Vec<&'static str> {
        self.kept.lock().unwrap().iter().map(|(status, _)| status.as_str()).collect()
    }

    fn last(&self) -> Checkpoint {
        self.kept.lock().unwrap().last().expect("a checkpoint").1.clone()
    }
}

impl Journal for Memory {
    fn save<'a>(
        &'a self,
        status: ExecutionStatus,
        checkpoint: &'a Checkpoint,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        let mut kept = self.kept.lock().unwrap();
        let result = if self.taken_after == Some(kept.len()) {
            Err(JournalError::TakenOver)
        } else if self.broken {
            Err(JournalError::Failed("the disk is full".to_owned()))
        } else {
            kept.push((status, checkpoint.clone()));
            Ok(())
        };
        Box::pin(std::future::ready(result))
    }

    fn lease_lost(&self) -> BoxFuture<'_, ()> {
        if self.taken_soon {
            Box::pin(tokio::time::sleep(Duration::from_millis(20)))
        } else {
            Box::pin(std::future::pending())
        }
    }
}

fn chain() -> Graph {
    let nodes = [
        ("s", "start", json!({"inputVariable": "v"})),
        ("a", "llm", json!({})),
        ("b", "llm", json!({"inheritChatHistory": true})),
        ("e", "end", json!({})),
    ];
    graph(&nodes, &["s a", "a b", "b e"])
}

#[tokio::test]
async fn a_checkpoint_after_each_node() {
    let (graph, journal) = (chain(), Memory::default());
    events(&host(&Scripted::new(&["one", "two"])), fresh(&graph, "IN"), &journal).await;
    assert_eq!(journal.statuses(), ["running", "running", "running", "completed"]);
    let kept = journal.kept.lock().unwrap();
    let queues: Vec<&[String]> = kept.iter().map(|(_, kept)| kept.queue.as_slice()).collect();
    assert_eq!(queues, [&["a".to_owned()][..], &["b".to_owned()], &["e".to_owned()], &[]]);
    let last = &kept[3].1;
    assert_eq!(last.executed_nodes, ["s", "a", "b", "e"]);
    assert_eq!(
        Value::from(last.outputs.clone()),
        json!({"s": "IN", "a": "one", "b": "two", "e": "two"})
    );
    assert_eq!(Value::from(last.variables.clone()), json!({"v": "IN"}));
    assert_eq!(
        last.history,
        [
            json!({"role": "user", "content": "IN"}),
            json!({"role": "assistant", "content": "one"}),
            json!({"role": "user", "content": "one"}),
            json!({"role": "assistant", "content": "two"}),
        ]
    );
}

#[tokio::test]
async fn failed_node_runs_again_on_resume() {
    let (graph, journal) = (chain(), Memory::default());
    let model = Scripted::new(&["one", "half !no", "two"]);
    let first = lines(&events(&host(&model), fresh(&graph, "IN"), &journal).await);
    let error = r#"{"error":"LLM call failed: the local model failed"}"#;
    assert_eq!(first[first.len() - 2], format!("workflow_error {error}"));
    assert_eq!(journal.statuses(), ["running", "running", "failed"]);
    let kept = journal.last();
    assert_eq!((kept.queue.as_slice(), kept.executed_nodes.len()), (&["b".to_owned()][..], 2));
    let again = WorkflowRun { checkpoint: kept, resumed: true, ..fresh(&graph, "IN") };
    let second = lines(&events(&host(&model), again, &journal).await);
    assert_eq!(
        second,
        [
            r#"workflow_start {"workflow_id":"w","workflow_name":"W","execution_id":"e","resumed":true}"#,
            r#"node_start {"node_id":"b","node_type":"llm"}"#,
            r#"token {"node_id":"b","content":"two"}"#,
            r#"node_complete {"node_id":"b","output":"two"}"#,
            r#"node_start {"node_id":"e","node_type":"end"}"#,
            r#"node_complete {"node_id":"e","output":"two"}"#,
            r#"workflow_complete {"final_output":"two"}"#,
            r#"done {"status":"complete"}"#,
        ]
    );
    assert_eq!(journal.statuses().last(), Some(&"completed"));
    // The history contains the messages before the failure, but not the failed one.
    assert_eq!(model.asked()[2].messages.len(), 4);
}

#[tokio::test]
async fn checkpoint_resumes_in_a_changed_graph() {
    let kept = Checkpoint {
        outputs: json!({"s": "IN", "removed": "x"}).as_object().cloned().unwrap(),
        executed_nodes: vec!["s".into(), "removed".into()],
        queue: vec!["vanished".into(), "s".into(), "e".into()],
        ..Checkpoint::default()
    };
    let graph = graph(&[("s", "start", json!({})), ("e", "end", json!({}))], &["s e"]);
    let run = WorkflowRun { checkpoint: kept, resumed: true, ..fresh(&graph, "IN") };
    let events = events(&host(&Scripted::new(&[])), run, &Memory::default()).await;
    let expected = Event::WorkflowComplete { final_output: "IN".into() };
    assert_eq!(events[events.len() - 2], expected);
    assert_eq!(events.len(), 5);
}

#[tokio::test]
async fn run_taken_over_by_other_worker_stops() {
    let graph = chain();
    for journal in [
        Memory { taken_after: Some(1), ..Memory::default() },
        Memory { taken_soon: true, ..Memory::default() },
    ] {
        let (out, mut listener) = Emitter::channel();
        // More tokens than the event buffer holds: the run is blocked when the lease is lost.
        let host = host(&Scripted::new(&["word ".repeat(50).as_str()]));
        let listen = async {
            if journal.taken_soon {
                tokio::time::sleep(Duration::from_millis(60)).await;
            }
            let mut last = None;
            while let Some(event) = listener.recv().await {
                last = Some(event);
            }
            last
        };
        let running = async {
            let outcome = run(&host, fresh(&graph, "IN"), &journal, &out).await;
            drop(out);
            outcome
        };
        let (outcome, last) = tokio::join!(running, listen);
        assert_eq!(outcome, Ok(WorkflowOutcome::TakenOver));
        assert_eq!(journal.statuses(), ["running"]);
        let error = "Execution was taken over by another worker".to_owned();
        assert_eq!(last, Some(Event::WorkflowError { error }));
    }
}

/// A journal that releases its lease with the last checkpoint, and notices that before the
/// checkpoint is stored.
#[derive(Debug)]
struct Slow;

impl Journal for Slow {
    fn save<'a>(
        &'a self,
        _: ExecutionStatus,
        _: &'a Checkpoint,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(60)).await;
            Ok(())
        })
    }

    fn lease_lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(20)))
    }
}

#[tokio::test]
async fn released_lease_is_not_lost() {
    let graph = graph(&[("s", "start", json!({}))], &[]);
    let (out, _listener) = Emitter::channel();
    let outcome = run(&host(&Scripted::new(&[])), fresh(&graph, "IN"), &Slow, &out).await;
    assert_eq!(outcome, Ok(WorkflowOutcome::Completed { output: "IN".into() }));
}

#[tokio::test]
async fn run_stops_if_checkpoints_cannot_be_stored() {
    let (graph, journal) = (chain(), Memory { broken: true, ..Memory::default() });
    let all = lines(&events(&host(&Scripted::new(&[])), fresh(&graph, "IN"), &journal).await);
    assert_eq!(
        all[all.len() - 2],
        r#"workflow_error {"error":"Execution state could not be saved"}"#
    );
}

#[tokio::test]
async fn run_without_a_listener_can_be_resumed() {
    let (graph, journal) = (chain(), Arc::new(Memory::default()));
    let (out, mut listener) = Emitter::channel();
    let host = host(&Scripted::new(&["one ".repeat(100).as_str()]));
    let leave = async move {
        while let Some(event) = listener.recv().await {
            if matches!(event, Event::Token { .. }) {
                break;
            }
        }
    };
    let running = run_to_end(&host, fresh(&graph, "IN"), &*journal, &out);
    let (ended, ()) = tokio::join!(running, leave);
    assert_eq!(ended, Err(ListenerDisconnected));
    assert_eq!(journal.statuses(), ["running", "failed"]);
    assert_eq!(journal.last().queue, ["a"]);
}
