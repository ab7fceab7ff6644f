//! Tests of whole workflow runs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod code;
mod http;
mod journal;
mod nodes;
mod skillrt;
mod stream;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use futures::{
    StreamExt as _,
    future::BoxFuture,
    stream::{BoxStream, iter},
};
use savoir_flow::{
    event::{Emitter, Event},
    services::{Services, TimeLimits},
    skill_lookup::{LoadError, SkillLookup},
    workflow::{
        CodePolicy, Features, Graph, HttpPolicy, Journal, NoJournal, WorkflowHost, WorkflowRun,
        run_to_end,
    },
};
use savoir_model::{ChatRequest, Chunk, Finish, LanguageModel, ModelError, Models};
use savoir_skill::{Dialect, Skill, Source, read_as};
use savoir_store::Checkpoint;
use serde_json::{Value, json};

/// A model with prepared answers, which records the questions.
#[derive(Debug, Default)]
struct Scripted {
    answers: Mutex<VecDeque<Vec<String>>>,
    asked: Mutex<Vec<ChatRequest>>,
}

impl Scripted {
    /// Each text is an answer, streamed word by word. One that starts with `!` is an error.
    fn new(answers: &[&str]) -> Arc<Self> {
        let pieces = |text: &&str| text.split_inclusive(' ').map(str::to_owned).collect();
        Arc::new(Self {
            answers: Mutex::new(answers.iter().map(pieces).collect()),
            ..Self::default()
        })
    }

    fn asked(&self) -> Vec<ChatRequest> {
        self.asked.lock().unwrap().clone()
    }
}

impl LanguageModel for Scripted {
    fn answer(&self, request: ChatRequest) -> BoxStream<'static, Result<Chunk, ModelError>> {
        self.asked.lock().unwrap().push(request);
        let answer = self.answers.lock().unwrap().pop_front().expect("an answer was written");
        let pieces = answer.into_iter().map(|piece| match piece.strip_prefix('!') {
            Some(failure) => Err(ModelError::Local(failure.to_owned())),
            None => Ok(Chunk::Text(piece)),
        });
        iter(pieces.chain([Ok(Chunk::End(Finish::Stop))])).boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, ModelError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

/// A collection that returns the same skill for every name.
#[derive(Debug)]
struct OneSkill(&'static str, &'static str);

impl SkillLookup for OneSkill {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Skill, LoadError>> {
        let found = if name == self.0 {
            let source = Source::from_bytes(self.1.as_bytes().to_vec()).unwrap();
            Ok(read_as(source, Dialect::AGENT_FLOW, None).skill)
        } else {
            let message = format!("Skill '{name}' not found");
            Err(LoadError { message })
        };
        Box::pin(std::future::ready(found))
    }
}

const SUMMARY: OneSkill = OneSkill(
    "summary",
    "---\nname: summary\ndescription: Sums up\ninputs:\n  - name: style\n  - name: article\n    required: \
     true\nmodel:\n  temperature: 0.2\n---\nSum up {{article}} in a {{style}} way\n",
);

fn host(model: &Arc<Scripted>) -> WorkflowHost {
    let mut models = Models::default();
    models.add("stub", Arc::<Scripted>::clone(model), Some("small".to_owned()));
    WorkflowHost {
        services: Services {
            models: Arc::new(models),
            knowledge: None,
            database: None,
            limits: TimeLimits::default(),
        },
        skill_lookup: Arc::new(SUMMARY),
        features: Features { http: true, code: true },
        http: HttpPolicy::default(),
        code: CodePolicy::default(),
        agent: None,
    }
}

/// Creates a graph from nodes as `(id, type, data)` and edges as `from to` or `from to handle`.
fn graph(nodes: &[(&str, &str, Value)], edges: &[&str]) -> Graph {
    let nodes: Vec<Value> = nodes
        .iter()
        .map(|(id, kind, data)| json!({"id": id, "type": kind, "data": data}))
        .collect();
    let edges: Vec<Value> = edges
        .iter()
        .map(|edge| {
            let words: Vec<&str> = edge.split(' ').collect();
            json!({"source": words[0], "target": words[1], "sourceHandle": words.get(2)})
        })
        .collect();
    Graph::parse(&json!({"nodes": nodes, "edges": edges})).expect("a graph")
}

fn fresh<'a>(graph: &'a Graph, input: &'a str) -> WorkflowRun<'a> {
    WorkflowRun {
        workflow_id: "w",
        workflow_name: "W",
        graph,
        execution_id: "e",
        input,
        model: None,
        user: None,
        checkpoint: Checkpoint::default(),
        resumed: false,
    }
}

/// Returns all events of a run.
async fn events(host: &WorkflowHost, run: WorkflowRun<'_>, journal: &dyn Journal) -> Vec<Event> {
    let (out, mut events) = Emitter::channel();
    let run = async move {
        run_to_end(host, run, journal, &out).await.expect("a listener");
    };
    let listen = async {
        let mut all = Vec::new();
        while let Some(event) = events.recv().await {
            all.push(event);
        }
        all
    };
    tokio::join!(run, listen).1
}

/// Formats events as lines of name and data.
fn lines(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| format!("{} {}", event.name(), event.data())).collect()
}

/// Returns the events of a run without a journal as lines, without the first and last ones.
async fn inner_lines(host: &WorkflowHost, graph: &Graph, input: &str) -> Vec<String> {
    let all = lines(&events(host, fresh(graph, input), &NoJournal).await);
    let start = r#"workflow_start {"workflow_id":"w","workflow_name":"W","execution_id":"e"}"#;
    assert_eq!(all.first().map(String::as_str), Some(start));
    let failed = all.iter().any(|line| line.starts_with("workflow_error "));
    let done = if failed { r#"done {"status":"error"}"# } else { r#"done {"status":"complete"}"# };
    assert_eq!(all.last().map(String::as_str), Some(done));
    all[1..all.len() - 1].to_vec()
}

/// Returns the error of a run with one node after the start.
async fn error_of(host: &WorkflowHost, kind: &str, data: Value) -> String {
    let graph = graph(&[("s", "start", json!({})), ("n", kind, data)], &["s n"]);
    let lines = inner_lines(host, &graph, "IN").await;
    let [.., node, workflow] = lines.as_slice() else { panic!("two errors: {lines:?}") };
    let node: Value =
        serde_json::from_str(node.strip_prefix("node_error ").expect("a node error")).unwrap();
    let workflow: Value =
        serde_json::from_str(workflow.strip_prefix("workflow_error ").expect("its error")).unwrap();
    assert_eq!(node["error"], workflow["error"]);
    assert_eq!(node["node_id"], "n");
    node["error"].as_str().unwrap().to_owned()
}

/// Returns the output of one node after the start.
async fn output_of(host: &WorkflowHost, kind: &str, data: Value, input: &str) -> Value {
    let graph = graph(&[("s", "start", json!({})), ("n", kind, data)], &["s n"]);
    let events = events(host, fresh(&graph, input), &NoJournal).await;
    let output = events.iter().find_map(|event| match event {
        Event::WorkflowComplete { final_output } => Some(final_output.clone()),
        _ => None,
    });
    output.unwrap_or_else(|| panic!("no output: {:?}", lines(&events)))
}
