//! Runs skills and workflows with a scripted model.

use std::sync::Arc;

use futures::{
    StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use savoir_flow::{
    event::{Emitter, Event},
    prompt::{self, PromptRun},
    services::{Services, TimeLimits},
    skill_lookup::NoSkills,
    workflow::{
        self, CodePolicy, Features, Graph, HttpPolicy, NoJournal, WorkflowHost, WorkflowRun,
    },
};
use savoir_model::{ChatRequest, Chunk, Finish, LanguageModel, ModelError, Models};
use savoir_skill::Dialect;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::{OperationError, OperationResult, parse_input, parse_result};

#[derive(Deserialize)]
struct SkillRun {
    skill: String,
    #[serde(default)]
    inputs: Map<String, Value>,
    #[serde(default)]
    llm_tokens: Vec<String>,
}

#[derive(Deserialize)]
struct Execution {
    graph_data: Value,
    input: String,
}

/// A model that always returns the same tokens.
#[derive(Debug, Default)]
pub(super) struct ScriptedModel(Vec<String>);

impl LanguageModel for ScriptedModel {
    fn answer(&self, _: ChatRequest) -> BoxStream<'static, Result<Chunk, ModelError>> {
        let words = self.0.clone().into_iter().map(Chunk::Text);
        stream::iter(words.chain([Chunk::End(Finish::Stop)]).map(Ok)).boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, ModelError>> {
        Box::pin(std::future::ready(Ok(vec!["stub".to_owned()])))
    }
}

/// The events of a run of a skill.
pub(super) fn skill_events(input: &Value) -> OperationResult {
    let SkillRun { skill, inputs, llm_tokens } = parse_input(input)?;
    let skill = parse_result::read_skill(&skill, Dialect::AGENT_FLOW)?.skill;
    let services = services(llm_tokens);
    let events = collect_events(async |out| {
        let (directory, model, user) = (None, None, None);
        let run = PromptRun { skill: &skill, inputs: &inputs, directory, model, user };
        prompt::run(&services, run, &out).await.map(drop)
    })?;
    let event_json = |event: &Event| json!({"event": event.name(), "data": event.data()});
    Ok(events.iter().map(event_json).collect())
}

/// The events of a workflow run, without those that only the HTTP stream adds.
pub(super) fn workflow_events(input: &Value) -> OperationResult {
    let Execution { graph_data, input } = parse_input(input)?;
    let graph = Graph::parse(&graph_data).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        OperationError::BadInput(problems.join("; "))
    })?;
    let host = WorkflowHost {
        services: services(Vec::new()),
        skill_lookup: Arc::new(NoSkills),
        features: Features::default(),
        http: HttpPolicy::default(),
        code: CodePolicy::default(),
        agent: None,
    };
    let events = collect_events(async |out| {
        let run = WorkflowRun {
            workflow_id: "workflow",
            workflow_name: "workflow",
            graph: &graph,
            execution_id: "execution",
            input: &input,
            model: None,
            user: None,
            checkpoint: workflow::Checkpoint::default(),
            resumed: false,
        };
        workflow::run(&host, run, &NoJournal, &out).await.map(drop)
    })?;
    Ok(events.iter().map(event_object).collect())
}

/// An event as one object, with its name as the type.
fn event_object(event: &Event) -> Value {
    let mut members = Map::new();
    members.insert("type".to_owned(), event.name().into());
    if let Value::Object(data) = event.data() {
        members.extend(data);
    }
    Value::Object(members)
}

fn services(words: Vec<String>) -> Services {
    let mut models = Models::default();
    models.add("stub", Arc::new(ScriptedModel(words)), None);
    let limits = TimeLimits::default();
    Services { models: Arc::new(models), knowledge: None, database: None, limits }
}

/// Collects all events of a run.
fn collect_events<E: std::fmt::Display>(
    run: impl AsyncFnOnce(Emitter) -> Result<(), E>,
) -> Result<Vec<Event>, OperationError> {
    let failed = |error: &dyn std::fmt::Display| OperationError::BadInput(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| failed(&error))?;
    runtime.block_on(async {
        let (out, mut heard) = Emitter::channel();
        let listen = async {
            let mut events = Vec::new();
            while let Some(event) = heard.recv().await {
                events.push(event);
            }
            events
        };
        let (ran, events) = tokio::join!(run(out), listen);
        ran.map_err(|error| failed(&error))?;
        Ok(events)
    })
}
