use std::{sync::Arc, time::Duration};

use futures::{
    StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use savoir_model::{ChatRequest, Chunk, LanguageModel, ModelError, Models};
use serde_json::json;

use super::*;
use crate::{
    services::{Services, TimeLimits},
    skill_lookup::NoSkills,
    workflow::{CodePolicy, Features, HttpPolicy, NoJournal},
};

/// A model that starts to answer and then hangs.
#[derive(Debug)]
struct Silent;

impl LanguageModel for Silent {
    fn answer(&self, _: ChatRequest) -> BoxStream<'static, Result<Chunk, ModelError>> {
        let first = stream::iter([Ok(Chunk::Text("I".to_owned()))]);
        first.chain(stream::pending()).boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, ModelError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

fn host() -> WorkflowHost {
    let mut models = Models::default();
    models.add("stub", Arc::new(Silent), Some("silent".to_owned()));
    let workflow = Duration::from_millis(1050);
    let limits = TimeLimits { workflow, ..TimeLimits::default() };
    WorkflowHost {
        services: Services { models: Arc::new(models), knowledge: None, database: None, limits },
        skill_lookup: Arc::new(NoSkills),
        features: Features::default(),
        http: HttpPolicy::default(),
        code: CodePolicy::default(),
        agent: None,
    }
}

/// Servers run it on several threads, so the future must be `Send`.
fn sendable<F: Future + Send>(run: F) -> F {
    run
}

#[tokio::test]
async fn run_times_out() {
    let graph = json!({
        "nodes": [{"id": "s", "type": "start"}, {"id": "m", "type": "llm"}],
        "edges": [{"source": "s", "target": "m"}],
    });
    let graph = Graph::parse(&graph).unwrap();
    let context = WorkflowRun {
        workflow_id: "w",
        workflow_name: "W",
        graph: &graph,
        execution_id: "e",
        input: "x",
        model: None,
        user: None,
        checkpoint: Checkpoint::default(),
        resumed: false,
    };
    let (out, mut events) = Emitter::channel();
    let host = host();
    let outcome = sendable(run(&host, context, &NoJournal, &out)).await.unwrap();
    assert_eq!(outcome, WorkflowOutcome::TimedOut);
    drop(out);
    let mut last = None;
    while let Some(event) = events.recv().await {
        last = Some(event);
    }
    let error = "Workflow execution timed out (1s)".to_owned();
    assert_eq!(last, Some(Event::WorkflowError { error }));
    assert_eq!(TimeLimits::default().workflow.as_secs(), 300);
}
