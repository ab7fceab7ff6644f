//! Starts and resumes executions of workflows.

use std::sync::Arc;

use savoir_engine::workflow::{Features, Graph, Host, StoreJournal, WorkflowRun, journal::LEASE};
use savoir_store::{Execution, Workflow};
use uuid::Uuid;

use crate::{
    app::App,
    auth::Caller,
    error::{ApiError, ApiResult},
    routes::settings::{Flag, flag},
    skill_lookup::PersonalSkills,
};

/// An execution that this process holds.
#[derive(Debug)]
pub(crate) struct RunningExecution {
    pub(crate) host: Host,
    pub(crate) journal: StoreJournal,
    workflow: Workflow,
    graph: Graph,
    execution: Execution,
    /// Whether it goes on, rather than begins.
    resumed: bool,
}

impl RunningExecution {
    /// What the engine is to run.
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

/// A workflow that a person may see: their own, one of nobody, or any for an administrator.
pub(crate) async fn find(app: &App, caller: &Caller, id: &str) -> ApiResult<Option<Workflow>> {
    let workflow = app.database.workflows().get(id).await?;
    let visible =
        |workflow: &Workflow| workflow.user_id.is_none() || caller.may_touch(workflow.user_id);
    Ok(workflow.filter(visible))
}

/// Begins an execution of a workflow that this person may see.
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
    held(app, caller, workflow, execution, worker).await
}

/// Takes an execution that stopped, to go on with it; `None` if another process has it.
pub(crate) async fn resume(app: &App, execution: Execution) -> ApiResult<Option<RunningExecution>> {
    let Some(caller) = owner_of(app, &execution).await? else {
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
    // What was read before the claim may be old.
    let fresh = app.database.workflows().execution(&execution.id).await?;
    let begun = held(app, &caller, workflow, fresh.unwrap_or(execution), worker).await?;
    Ok(Some(RunningExecution { resumed: true, ..begun }))
}

/// Who began an execution: it goes on with their skills, whoever has it go on.
async fn owner_of(app: &App, execution: &Execution) -> ApiResult<Option<Caller>> {
    let Some(id) = execution.user_id else { return Ok(None) };
    let user = app.database.accounts().by_id(id).await?;
    Ok(user.filter(|user| user.active).map(Caller::on_behalf_of))
}

/// An execution that begins, as far as its events tell.
async fn held(
    app: &App,
    caller: &Caller,
    workflow: Workflow,
    execution: Execution,
    worker: String,
) -> ApiResult<RunningExecution> {
    // It was checked when it was kept.
    let graph = Graph::parse(&workflow.graph)
        .map_err(|_| ApiError::internal("The workflow is damaged", &workflow.id))?;
    let journal = StoreJournal::new(app.database.clone(), execution.id.clone(), worker, LEASE);
    let host = host(app, caller).await?;
    Ok(RunningExecution { host, journal, workflow, graph, execution, resumed: false })
}

/// One for each run: a run that lost its lease must not pass for the one that has it.
fn new_worker() -> String {
    Uuid::new_v4().to_string()
}

/// What workflows of a person may use.
pub(crate) async fn host(app: &App, caller: &Caller) -> ApiResult<Host> {
    let features =
        Features { http: flag(app, Flag::HttpNode).await?, code: flag(app, Flag::CodeNode).await? };
    Ok(Host {
        services: app.services.clone(),
        shelf: Arc::new(PersonalSkills { app: app.clone(), caller: caller.clone() }),
        features,
        http: app.config.workflow_http.clone(),
        code: app.code.clone(),
    })
}
