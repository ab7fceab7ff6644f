//! Starts and resumes executions of workflows.

use std::sync::Arc;

use savoir_agent::node_agent::WorkflowAgent;
use savoir_flow::workflow::{
    Features, Graph, NodeAgent, StoreJournal, WorkflowHost, WorkflowRun, journal::LEASE,
};
use savoir_store::{Execution, RunKind, Workflow};
use serde_json::json;
use uuid::Uuid;

use crate::{
    access::Scope,
    app::App,
    auth::Caller,
    error::{ApiError, ApiResult},
    library::PersonalLibrary,
    routes::settings::{Flag, is_flag_on},
    run_history::NewRun,
    skill_lookup::PersonalSkills,
    tool_runner,
};

/// A workflow execution that this process has claimed.
#[derive(Debug)]
pub(crate) struct RunningExecution {
    pub(crate) host: WorkflowHost,
    pub(crate) journal: StoreJournal,
    workflow: Workflow,
    graph: Graph,
    execution: Execution,
    /// Whether the execution continues an earlier run.
    resumed: bool,
}

impl RunningExecution {
    pub(crate) fn id(&self) -> &str {
        &self.execution.id
    }

    /// The record of this run.
    pub(crate) fn new_run(&self, caller: &Caller) -> NewRun {
        let mut inputs = json!({"input": self.execution.initial_input});
        if let Some(model) = &self.execution.model {
            inputs["model"] = json!(model);
        }
        NewRun {
            id: Some(self.execution.id.clone()),
            kind: RunKind::Workflow,
            user_id: caller.user.id,
            name: self.workflow.name.clone(),
            target: self.workflow.id.clone(),
            inputs,
        }
    }

    /// The input for the workflow engine.
    pub(crate) fn run(&self) -> WorkflowRun<'_> {
        WorkflowRun {
            workflow_id: &self.workflow.id,
            workflow_name: &self.workflow.name,
            graph: &self.graph,
            execution_id: &self.execution.id,
            input: &self.execution.initial_input,
            model: self.execution.model.as_deref(),
            user: self.execution.user_id,
            checkpoint: self.execution.checkpoint.clone(),
            resumed: self.resumed,
        }
    }
}

/// A workflow that the caller may see: their own, one without an owner, or any for an
/// administrator.
pub(crate) async fn find(app: &App, caller: &Caller, id: &str) -> ApiResult<Option<Workflow>> {
    let workflow = app.database.workflows().get(id).await?;
    let visible =
        |workflow: &Workflow| workflow.user_id.is_none() || caller.may_touch(workflow.user_id);
    Ok(workflow.filter(visible))
}

/// Starts an execution of a workflow that the caller may see.
pub(crate) async fn begin(
    app: &App,
    caller: &Caller,
    workflow: Workflow,
    input: &str,
    model: Option<&str>,
) -> ApiResult<RunningExecution> {
    let user = Some(caller.user.id);
    let worker = new_worker();
    let executions = app.database.workflows();
    let execution = executions.begin(&workflow.id, user, input, model, &worker, LEASE).await?;
    restore_execution(app, caller, workflow, execution, worker).await
}

/// Claims an interrupted execution to resume it; `None` if another process has claimed it.
pub(crate) async fn resume(
    app: &App,
    resumed_by: &Caller,
    execution: Execution,
) -> ApiResult<Option<RunningExecution>> {
    let Some(caller) = owner_of(app, resumed_by, &execution).await? else {
        return Err(ApiError::not_found(format!("Execution {} not found", execution.id)));
    };
    let workflow = app.database.workflows().get(&execution.workflow_id).await?;
    let Some(workflow) = workflow else {
        return Err(ApiError::not_found(format!("Workflow {} not found", execution.workflow_id)));
    };
    let worker = new_worker();
    if !app.database.workflows().claim(&execution.id, &worker, LEASE).await? {
        return Ok(None);
    }
    // Read again: data from before the claim may be outdated.
    let fresh = app.database.workflows().execution(&execution.id).await?;
    let begun =
        restore_execution(app, &caller, workflow, fresh.unwrap_or(execution), worker).await?;
    Ok(Some(RunningExecution { resumed: true, ..begun }))
}

/// The user who started an execution. It resumes with the skills of this user, even if another user
/// resumes it, but with no more rights than the resuming caller has.
async fn owner_of(
    app: &App,
    resumed_by: &Caller,
    execution: &Execution,
) -> ApiResult<Option<Caller>> {
    let Some(id) = execution.user_id else { return Ok(None) };
    if id == resumed_by.user.id {
        return Ok(Some(resumed_by.clone()));
    }
    let user = app.database.accounts().by_id(id).await?;
    let owner = user.filter(|user| user.active).map(Caller::on_behalf_of);
    Ok(owner.map(|owner| Caller { token: resumed_by.token.clone(), ..owner }))
}

/// An execution with the state that its stored events describe.
async fn restore_execution(
    app: &App,
    caller: &Caller,
    workflow: Workflow,
    execution: Execution,
    worker: String,
) -> ApiResult<RunningExecution> {
    // The graph was validated when it was stored.
    let graph = Graph::parse(&workflow.graph)
        .map_err(|_| ApiError::internal("The workflow is damaged", &workflow.id))?;
    let journal = StoreJournal::new(app.database.clone(), execution.id.clone(), worker, LEASE);
    let host = host(app, caller).await?;
    Ok(RunningExecution { host, journal, workflow, graph, execution, resumed: false })
}

/// A new worker id for each run: a run that lost its lease must not be mistaken for the one that
/// has it now.
fn new_worker() -> String {
    Uuid::new_v4().to_string()
}

/// The agent for LLM nodes, under the same conditions as for chat.
fn node_agent(app: &App, caller: &Caller) -> Option<Arc<dyn NodeAgent>> {
    if !app.config.chat_tools || caller.check_scope(Scope::SkillsRun).is_err() {
        return None;
    }
    Some(Arc::new(WorkflowAgent {
        services: app.services.clone(),
        library: Arc::new(PersonalLibrary::new(app.clone(), caller.clone())),
        skill_tools: tool_runner::tools(app, caller),
    }))
}

/// The resources that workflows of a user may use.
pub(crate) async fn host(app: &App, caller: &Caller) -> ApiResult<WorkflowHost> {
    let features = Features {
        http: is_flag_on(app, Flag::HttpNode).await?,
        code: is_flag_on(app, Flag::CodeNode).await?,
    };
    Ok(WorkflowHost {
        services: app.services.clone(),
        skill_lookup: Arc::new(PersonalSkills { app: app.clone(), caller: caller.clone() }),
        features,
        http: app.config.workflow_http.clone(),
        code: app.code.clone(),
        agent: node_agent(app, caller),
    })
}
