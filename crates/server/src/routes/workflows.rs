//! Workflow routes: store, run and resume workflows.

use axum::{
    Json as JsonResponse,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use savoir_flow::workflow::{self as workflow, Graph, journal::LEASE};
use savoir_store::{
    ChangedWorkflow, Execution, ExecutionStatus, NewWorkflow, Run, RunEnd, Timestamp, Workflow,
    WorkflowVersion,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::docs;
use crate::{
    app::App,
    auth::{Authenticated, Json},
    body::{self, Members, Shape, ShapeError, Text},
    error::{ApiError, ApiResult},
    executions::{self, RunningExecution},
    limits::{MAX_GRAPH_BYTES, MAX_GRAPH_VALUES, MAX_WORKFLOWS},
    params::{Page, Path, Query},
    skill_lookup::{IfMatch, tag_of},
    stream::{self, OnDisconnect, StreamKind},
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, update, delete))
        .routes(routes!(versions))
        .routes(routes!(version))
        .routes(routes!(execute))
        .routes(routes!(export))
        .routes(routes!(import))
        .routes(routes!(executions_of))
        .routes(routes!(all_executions))
        .routes(routes!(execution))
        .routes(routes!(resume))
}

const NAME_RULE: Text = Text::between(1, 255);
const DESCRIPTION_RULE: Text = Text::between(0, 1000);

/// A new workflow.
#[derive(Debug, Deserialize, ToSchema)]
struct WorkflowBody {
    #[schema(min_length = 1, max_length = 255)]
    name: String,
    #[schema(max_length = 1000)]
    description: Option<String>,
    /// Nodes and edges.
    #[schema(value_type = Option<GraphRequest>)]
    graph_data: Option<Value>,
}

/// Changes of a workflow.
#[derive(Debug, Deserialize, ToSchema)]
struct WorkflowChange {
    #[schema(min_length = 1, max_length = 255)]
    name: Option<String>,
    #[schema(max_length = 1000)]
    description: Option<String>,
    /// Nodes and edges.
    #[schema(value_type = Option<GraphRequest>)]
    graph_data: Option<Value>,
}

/// Nodes and edges. Unknown fields are preserved.
#[derive(Debug, Serialize, ToSchema)]
struct GraphData {
    nodes: Vec<NodeData>,
    edges: Vec<EdgeData>,
}

/// Like `GraphData`; missing lists are empty.
#[derive(Debug, Serialize, ToSchema)]
struct GraphRequest {
    #[schema(required = false)]
    nodes: Vec<NodeData>,
    #[schema(required = false)]
    edges: Vec<EdgeData>,
}

/// A node. Its id is unique in the graph.
#[derive(Debug, Serialize, ToSchema)]
struct NodeData {
    #[schema(min_length = 1, max_length = 255)]
    id: String,
    #[serde(rename = "type")]
    kind: NodeKind,
    data: Option<Map<String, Value>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "describes a node for the OpenAPI document")]
enum NodeKind {
    Start,
    Llm,
    Knowledge,
    Condition,
    Skill,
    Http,
    Code,
    End,
}

/// An edge from one node to another.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EdgeData {
    source: String,
    target: String,
    source_handle: Option<String>,
}

impl Shape for WorkflowBody {
    fn read(members: &mut Members) -> Self {
        Self {
            name: members.text("name", NAME_RULE),
            description: members.optional_text("description", DESCRIPTION_RULE),
            graph_data: graph(members),
        }
    }
}

impl Shape for WorkflowChange {
    fn read(members: &mut Members) -> Self {
        Self {
            name: members.optional_text("name", NAME_RULE),
            description: members.optional_text("description", DESCRIPTION_RULE),
            graph_data: graph(members),
        }
    }
}

/// A graph that the engine can parse. Missing lists are added as empty ones.
fn graph(members: &mut Members) -> Option<Value> {
    let mut graph = members.value("graph_data")?.clone();
    if values(&graph) > MAX_GRAPH_VALUES || graph.to_string().len() > MAX_GRAPH_BYTES {
        let place = members.location_of("graph_data");
        let message = "The graph is too large";
        members.reject(ShapeError::new("value_error", place, message, graph.clone()));
    } else if let Err(problems) = Graph::parse(&graph) {
        for problem in problems {
            let mut place = members.location_of("graph_data");
            place.extend(problem.location.iter().map(|step| json!(step)));
            let error = ShapeError::new(problem.kind, place, problem.message, problem.input);
            members.reject(error);
        }
    } else if let Value::Object(lists) = &mut graph {
        for list in ["nodes", "edges"] {
            lists.entry(list).or_insert_with(|| json!([]));
        }
    }
    Some(graph)
}

/// The number of JSON values inside a value, which determines its size in memory.
fn values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(members) => members.values().map(values).sum(),
        _ => 0,
    }
}

/// An exported workflow.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
struct WorkflowExport {
    #[schema(minimum = 1, maximum = 1)]
    version: i64,
    workflow: ExportedWorkflow,
}

/// The parts of a workflow that are exported.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
struct ExportedWorkflow {
    #[schema(min_length = 1, max_length = 255)]
    name: String,
    #[schema(max_length = 1000)]
    description: Option<String>,
    #[schema(value_type = GraphData)]
    graph_data: Value,
}

/// A workflow to import, for the OpenAPI document.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes a body for the OpenAPI document")]
struct WorkflowImport {
    #[schema(minimum = 1, maximum = 1)]
    version: i64,
    workflow: WorkflowBody,
}

/// An imported workflow.
struct ImportBody {
    version: Value,
    workflow: Option<WorkflowBody>,
}

impl Shape for ImportBody {
    fn read(members: &mut Members) -> Self {
        let version = members.any("version");
        Self { version, workflow: members.nested("workflow") }
    }
}

/// The input of a workflow.
#[derive(Debug, Deserialize, ToSchema)]
struct ExecuteBody {
    input: String,
    /// `provider:model` or a model's name.
    model: Option<String>,
    /// Whether the run continues when the client disconnects.
    #[schema(required = false)]
    detached: bool,
}

impl Shape for ExecuteBody {
    fn read(members: &mut Members) -> Self {
        Self {
            input: members.text("input", Text::ANY),
            model: members.optional_text("model", Text::ANY),
            detached: members.optional_boolean("detached"),
        }
    }
}

/// A workflow.
#[derive(Debug, Serialize, ToSchema)]
struct WorkflowItem {
    name: String,
    description: Option<String>,
    #[schema(value_type = GraphData)]
    graph_data: Value,
    id: String,
    created_at: String,
    updated_at: String,
}

impl From<Workflow> for WorkflowItem {
    fn from(workflow: Workflow) -> Self {
        Self {
            name: workflow.name,
            description: workflow.description,
            graph_data: workflow.graph,
            id: workflow.id,
            created_at: workflow.created_at.to_string(),
            updated_at: workflow.updated_at.to_string(),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct WorkflowList {
    items: Vec<WorkflowItem>,
    total: usize,
}

/// One run of a workflow.
#[derive(Debug, Serialize, ToSchema)]
struct ExecutionItem {
    id: String,
    workflow_id: String,
    user_id: Option<String>,
    /// `running`, `completed` or `failed`
    status: &'static str,
    initial_input: String,
    model: Option<String>,
    executed_nodes: Vec<String>,
    queue: Vec<String>,
    created_at: String,
    updated_at: String,
    /// The output of each node that ran.
    #[schema(value_type = Object)]
    outputs: Map<String, Value>,
    /// The output of the workflow, if it is completed.
    output: Option<Value>,
    /// The error message.
    error: Option<String>,
    /// The tokens of all requests to models.
    usage: Option<ExecutionUsage>,
    /// Why the model's last answer ended: `stop`, `length`, `tool_calls` or `other`.
    finish_reason: Option<String>,
}

/// Tokens as providers report them.
#[derive(Debug, Serialize, ToSchema)]
struct ExecutionUsage {
    input_tokens: u64,
    output_tokens: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct ExecutionList {
    items: Vec<ExecutionItem>,
    total: u64,
}

impl ExecutionItem {
    /// An execution with the record of its run.
    fn with_run(execution: Execution, run: Option<Run>) -> Self {
        let failed = execution.status == ExecutionStatus::Failed;
        let mut item = Self::from(execution);
        if let Some(RunEnd { error, input_tokens, output_tokens, finish_reason, .. }) =
            run.map(|run| run.end)
        {
            item.error = error.filter(|_| failed);
            item.usage = Some(ExecutionUsage { input_tokens, output_tokens });
            item.finish_reason = finish_reason;
        }
        item
    }
}

impl From<Execution> for ExecutionItem {
    fn from(execution: Execution) -> Self {
        let checkpoint = &execution.checkpoint;
        let last = checkpoint.executed_nodes.last().and_then(|id| checkpoint.outputs.get(id));
        let completed = execution.status == ExecutionStatus::Completed;
        Self {
            output: last.cloned().filter(|_| completed),
            error: None,
            usage: None,
            finish_reason: None,
            id: execution.id,
            workflow_id: execution.workflow_id,
            user_id: execution.user_id.map(|id| id.to_string()),
            status: execution.status.as_str(),
            initial_input: execution.initial_input,
            model: execution.model,
            executed_nodes: execution.checkpoint.executed_nodes,
            queue: execution.checkpoint.queue,
            created_at: execution.created_at.to_string(),
            updated_at: execution.updated_at.to_string(),
            outputs: execution.checkpoint.outputs,
        }
    }
}

/// The user whose workflows are listed; `None` for all.
fn owner_filter(caller: &crate::auth::Caller) -> Option<i64> {
    (!caller.user.is_admin()).then_some(caller.user.id)
}

/// List workflows: your own and those without an owner.
#[utoipa::path(
    get, path = "/workflows", tag = "workflows", security(("bearer" = [])), params(Page),
    responses(
        (status = 200, body = WorkflowList), docs::Unauthorized, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn list(
    State(app): State<App>,
    authenticated: Authenticated<Query<Page>>,
) -> ApiResult<JsonResponse<WorkflowList>> {
    let Authenticated { caller, body: Query(page) } = authenticated;
    let all = app.database.workflows().list(owner_filter(&caller)).await?;
    let items = page.of(&all).iter().cloned().map(Into::into).collect();
    Ok(JsonResponse(WorkflowList { total: all.len(), items }))
}

/// Create a workflow.
#[utoipa::path(
    post, path = "/workflows", tag = "workflows", security(("bearer" = [])),
    request_body = WorkflowBody,
    responses(
        (status = 201, body = WorkflowItem), docs::Unauthorized, docs::Conflict, docs::TooLarge, docs::InvalidBody,
        docs::TooManyRequests
    )
)]
async fn create(
    State(app): State<App>,
    authenticated: Authenticated<Json<WorkflowBody>>,
) -> ApiResult<Response> {
    let Json(body) = authenticated.body;
    keep(&app, authenticated.caller.user.id, body).await
}

async fn keep(app: &App, user_id: i64, body: WorkflowBody) -> ApiResult<Response> {
    if app.database.workflows().count(user_id).await? >= MAX_WORKFLOWS {
        let detail = format!("You have {MAX_WORKFLOWS} workflows; remove some first");
        return Err(ApiError::conflict(detail));
    }
    let graph = body.graph_data.unwrap_or_else(|| json!({"nodes": [], "edges": []}));
    let workflow =
        NewWorkflow { name: Some(body.name), description: body.description, graph: Some(graph) };
    let workflow = app.database.workflows().create(workflow, Some(user_id)).await?;
    Ok(with_tag(StatusCode::CREATED, workflow))
}

/// Show a workflow.
#[utoipa::path(
    get, path = "/workflows/{id}", tag = "workflows", security(("bearer" = [])),
    params(("id" = String, Path, description = "The workflow")),
    responses(
        (status = 200, body = WorkflowItem), docs::Unauthorized, docs::NotFound, docs::TooManyRequests
    )
)]
async fn get(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<Response> {
    let found = executions::find(&app, &authenticated.caller, &id).await?;
    Ok(with_tag(StatusCode::OK, found.ok_or_else(|| not_found(&id))?))
}

/// Update a workflow. Missing or null fields stay unchanged.
#[utoipa::path(
    put, path = "/workflows/{id}", tag = "workflows", security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "The workflow"),
        ("If-Match" = Option<String>, Header, description = "The ETag of the workflow to change")
    ),
    request_body = WorkflowChange,
    responses(
        (status = 200, body = WorkflowItem), docs::Unauthorized, docs::NotFound, docs::Changed,
        docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn update(
    State(app): State<App>,
    Path(id): Path<String>,
    headers: HeaderMap,
    authenticated: Authenticated<Json<WorkflowChange>>,
) -> ApiResult<Response> {
    changeable(&app, &authenticated.caller, &id).await?;
    let Json(WorkflowChange { name, description, graph_data }) = authenticated.body;
    let change = NewWorkflow { name, description, graph: graph_data };
    let (user_id, condition) = (authenticated.caller.user.id, IfMatch::new(&headers));
    let is_expected = |workflow: &Workflow| condition.accepts(&tag_of_workflow(workflow));
    let workflows = app.database.workflows();
    let changed = workflows.update(&id, change, Some(user_id), is_expected).await?;
    Ok(with_tag(StatusCode::OK, done(changed, &id)?))
}

/// The workflow after a change, or the response if it was not changed.
fn done(changed: ChangedWorkflow, id: &str) -> ApiResult<Workflow> {
    match changed {
        ChangedWorkflow::Done(workflow) => Ok(workflow),
        ChangedWorkflow::Missing => Err(not_found(id)),
        ChangedWorkflow::Unexpected => Err(IfMatch::failed("workflow")),
    }
}

/// The entity tag of what a user can change in a workflow.
fn tag_of_workflow(workflow: &Workflow) -> String {
    let Workflow { name, description, graph, .. } = workflow;
    tag_of(&json!([name, description, graph]).to_string())
}

fn with_tag(status: StatusCode, workflow: Workflow) -> Response {
    let tag = [(header::ETAG, tag_of_workflow(&workflow))];
    (status, tag, JsonResponse(WorkflowItem::from(workflow))).into_response()
}

/// A saved version of a workflow.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowVersion)]
struct VersionItem {
    id: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// The email address of the user who saved it.
    user_email: Option<String>,
    /// The number of nodes.
    nodes: usize,
    /// The number of edges.
    edges: usize,
    /// Only in the response for a single version.
    #[serde(skip_serializing_if = "Option::is_none")]
    graph_data: Option<Value>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowVersionList)]
struct VersionList {
    versions: Vec<VersionItem>,
}

impl VersionItem {
    async fn new(app: &App, version: WorkflowVersion, with_graph: bool) -> ApiResult<Self> {
        let WorkflowVersion { id, user_id, graph, updated_at } = version;
        let user = match user_id {
            Some(user_id) => app.database.accounts().by_id(user_id).await?,
            None => None,
        };
        let count = |key: &str| graph.get(key).and_then(Value::as_array).map_or(0, Vec::len);
        Ok(Self {
            id,
            created_at: updated_at,
            user_email: user.map(|user| user.email),
            nodes: count("nodes"),
            edges: count("edges"),
            graph_data: with_graph.then_some(graph),
        })
    }
}

/// List the saved states of a workflow, newest first.
#[utoipa::path(
    get, path = "/workflows/{id}/versions", tag = "workflows", security(("bearer" = [])),
    params(("id" = String, Path, description = "The workflow")),
    responses(
        (status = 200, body = VersionList), docs::Unauthorized, docs::NotFound, docs::TooManyRequests
    )
)]
async fn versions(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<VersionList>> {
    let found = executions::find(&app, &authenticated.caller, &id).await?;
    let workflow = found.ok_or_else(|| not_found(&id))?;
    let mut versions = Vec::new();
    for version in app.database.workflows().versions(&workflow.id).await? {
        versions.push(VersionItem::new(&app, version, false).await?);
    }
    Ok(JsonResponse(VersionList { versions }))
}

/// Show a saved state of a workflow.
#[utoipa::path(
    get, path = "/workflows/{id}/versions/{version}", tag = "workflows",
    security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "The workflow"),
        ("version" = String, Path, description = "The id of the saved state")
    ),
    responses(
        (status = 200, body = VersionItem), docs::Unauthorized, docs::NotFound, docs::TooManyRequests
    )
)]
async fn version(
    State(app): State<App>,
    Path((id, version)): Path<(String, String)>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<VersionItem>> {
    let found = executions::find(&app, &authenticated.caller, &id).await?;
    let workflow = found.ok_or_else(|| not_found(&id))?;
    let found = app.database.workflows().version(&workflow.id, &version).await?;
    let found = found.ok_or_else(|| {
        ApiError::not_found(format!("Workflow {id} has no version {version}"))
            .with_hint("old versions are removed; list the versions again")
    })?;
    Ok(JsonResponse(VersionItem::new(&app, found, true).await?))
}

/// Delete a workflow with its executions.
#[utoipa::path(
    delete, path = "/workflows/{id}", tag = "workflows", security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "The workflow"),
        ("If-Match" = Option<String>, Header, description = "The ETag of the workflow to delete")
    ),
    responses(
        (status = 204, description = "Deleted"), docs::Unauthorized, docs::NotFound, docs::Changed,
        docs::TooManyRequests
    )
)]
async fn delete(
    State(app): State<App>,
    Path(id): Path<String>,
    headers: HeaderMap,
    authenticated: Authenticated,
) -> ApiResult<StatusCode> {
    changeable(&app, &authenticated.caller, &id).await?;
    let condition = IfMatch::new(&headers);
    let is_expected = |workflow: &Workflow| condition.accepts(&tag_of_workflow(workflow));
    done(app.database.workflows().delete(&id, is_expected).await?, &id)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Run a workflow and stream its events.
#[utoipa::path(
    post, path = "/workflows/{id}/execute", tag = "workflows", security(("bearer" = [])),
    params(("id" = String, Path, description = "The workflow")), request_body = ExecuteBody,
    responses(
        (status = 200, description = "Events: workflow_start, node_start, token, thought, \
         citation, node_complete, node_error, workflow_error, workflow_complete, done",
         body = docs::StreamEvent, content_type = "text/event-stream"),
        docs::Unauthorized, docs::NotFound, docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn execute(
    State(app): State<App>,
    Path(id): Path<String>,
    headers: HeaderMap,
    authenticated: Authenticated<Json<ExecuteBody>>,
) -> ApiResult<Response> {
    let Json(ExecuteBody { input, model, detached }) = authenticated.body;
    let found =
        executions::find(&app, &authenticated.caller, &id).await?.ok_or_else(|| not_found(&id))?;
    let begun =
        executions::begin(&app, &authenticated.caller, found, &input, model.as_deref()).await?;
    Ok(run(&app, &authenticated.caller, begun, OnDisconnect::new(&headers, detached)).await)
}

async fn run(
    app: &App,
    caller: &crate::auth::Caller,
    begun: RunningExecution,
    then: OnDisconnect,
) -> Response {
    let new = begun.new_run(caller);
    stream::respond(app, StreamKind::Workflow, new, then, async move |out| {
        // Ignored: the client may have disconnected.
        let _ = workflow::run_to_end(&begun.host, begun.run(), &begun.journal, &out).await;
    })
    .await
}

/// Export a workflow.
#[utoipa::path(
    get, path = "/workflows/{id}/export", tag = "workflows", security(("bearer" = [])),
    params(("id" = String, Path, description = "The workflow")),
    responses(
        (status = 200, body = WorkflowExport), docs::Unauthorized, docs::NotFound, docs::TooManyRequests
    )
)]
async fn export(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<WorkflowExport>> {
    let found =
        executions::find(&app, &authenticated.caller, &id).await?.ok_or_else(|| not_found(&id))?;
    let Workflow { name, description, graph, .. } = found;
    let workflow = ExportedWorkflow { name, description, graph_data: graph };
    Ok(JsonResponse(WorkflowExport { version: 1, workflow }))
}

const TEMPLATE_NAME_KEY: &str = "x-template-name";

/// Import an exported workflow.
#[utoipa::path(
    post, path = "/workflows/import", tag = "workflows", security(("bearer" = [])),
    params((
        "X-Template-Name" = Option<String>, Header, max_length = 200,
        description = "Another name; a blank one is none"
    )),
    request_body = WorkflowImport,
    responses(
        (status = 201, body = WorkflowItem), docs::Unauthorized, docs::Conflict, docs::TooLarge, docs::InvalidBodyOrVersion,
        docs::TooManyRequests
    )
)]
async fn import(
    State(app): State<App>,
    headers: HeaderMap,
    authenticated: Authenticated<Json<ImportBody>>,
) -> ApiResult<Response> {
    let Json(ImportBody { version, workflow }) = authenticated.body;
    let Some(mut workflow) = workflow.filter(|_| body::integer(&version) == Some(1)) else {
        let detail = format!("Unsupported workflow export version: {version}");
        return Err(ApiError::plain(StatusCode::UNPROCESSABLE_ENTITY, detail));
    };
    if let Some(name) = headers.get(TEMPLATE_NAME_KEY) {
        let name = String::from_utf8_lossy(name.as_bytes());
        template_name(name.trim(), &mut workflow.name)?;
    }
    keep(&app, authenticated.caller.user.id, workflow).await
}

/// Renames a workflow; an empty name changes nothing.
fn template_name(wanted: &str, name: &mut String) -> ApiResult<()> {
    if wanted.chars().count() > 200 {
        let place = vec!["header".into(), TEMPLATE_NAME_KEY.into()];
        let message = "String should have at most 200 characters";
        let error = ShapeError::new("string_too_long", place, message, wanted.into());
        return Err(ApiError::shape(vec![error]));
    }
    if !wanted.is_empty() {
        wanted.clone_into(name);
    }
    Ok(())
}

/// List the executions of a workflow: your own, or all for administrators. The newest first.
#[utoipa::path(
    get, path = "/workflows/{id}/executions", tag = "workflows", security(("bearer" = [])),
    params(("id" = String, Path, description = "The workflow"), Page),
    responses(
        (status = 200, body = ExecutionList), docs::Unauthorized, docs::NotFound, docs::InvalidBody,
        docs::TooManyRequests
    )
)]
async fn executions_of(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated<Query<Page>>,
) -> ApiResult<JsonResponse<ExecutionList>> {
    let Authenticated { caller, body: Query(page) } = authenticated;
    executions::find(&app, &caller, &id).await?.ok_or_else(|| not_found(&id))?;
    list_executions(&app, &caller, Some(&id), page).await
}

/// List executions of all workflows: your own, or all for administrators. The newest first.
#[utoipa::path(
    get, path = "/workflows/executions", tag = "workflows", security(("bearer" = [])),
    params(Page),
    responses(
        (status = 200, body = ExecutionList), docs::Unauthorized, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn all_executions(
    State(app): State<App>,
    authenticated: Authenticated<Query<Page>>,
) -> ApiResult<JsonResponse<ExecutionList>> {
    let Authenticated { caller, body: Query(page) } = authenticated;
    list_executions(&app, &caller, None, page).await
}

/// Maximum executions in one response.
const MAX_LISTED_EXECUTIONS: usize = 100;

async fn list_executions(
    app: &App,
    caller: &crate::auth::Caller,
    workflow: Option<&str>,
    page: Page,
) -> ApiResult<JsonResponse<ExecutionList>> {
    let (limit, offset) = (page.limit().min(MAX_LISTED_EXECUTIONS), page.offset());
    let workflows = app.database.workflows();
    let (found, total) =
        workflows.executions(workflow, owner_filter(caller), limit as u64, offset as u64).await?;
    let mut items = Vec::with_capacity(found.len());
    for execution in found {
        let run = app.database.runs().get(&execution.id).await?;
        items.push(ExecutionItem::with_run(execution, run));
    }
    Ok(JsonResponse(ExecutionList { items, total }))
}

/// Show an execution of a workflow.
#[utoipa::path(
    get, path = "/workflows/executions/{id}", tag = "workflows", security(("bearer" = [])),
    params(("id" = String, Path, description = "The execution")),
    responses(
        (status = 200, body = ExecutionItem), docs::Unauthorized, docs::NotFound, docs::TooManyRequests
    )
)]
async fn execution(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<ExecutionItem>> {
    let execution = find_execution(&app, &authenticated.caller, &id).await?;
    let run = app.database.runs().get(&id).await?;
    Ok(JsonResponse(ExecutionItem::with_run(execution, run)))
}

/// Resume an execution that stopped.
#[utoipa::path(
    post, path = "/workflows/executions/{id}/resume", tag = "workflows",
    security(("bearer" = [])),
    params(("id" = String, Path, description = "The execution")),
    responses(
        (status = 200, description = "Events, as of a run", body = docs::StreamEvent,
         content_type = "text/event-stream"),
        docs::BadRequest, docs::Unauthorized, docs::NotFound, docs::Conflict, docs::TooManyRequests
    )
)]
async fn resume(
    State(app): State<App>,
    Path(id): Path<String>,
    headers: HeaderMap,
    authenticated: Authenticated,
) -> ApiResult<Response> {
    let execution = find_execution(&app, &authenticated.caller, &id).await?;
    if execution.status == ExecutionStatus::Completed {
        return Err(ApiError::bad_request("Execution already completed"));
    }
    let begun = executions::resume(&app, &authenticated.caller, execution).await?;
    let begun = begun.ok_or_else(still_running)?;
    Ok(run(&app, &authenticated.caller, begun, OnDisconnect::new(&headers, false)).await)
}

/// The response while a process owns the execution. After a crash of that process, this ends with
/// its lease.
fn still_running() -> ApiError {
    let seconds = LEASE.as_secs();
    ApiError::conflict("Execution is still running")
        .with_header(header::RETRY_AFTER, HeaderValue::from(seconds))
}

async fn find_execution(app: &App, caller: &crate::auth::Caller, id: &str) -> ApiResult<Execution> {
    let found = app.database.workflows().execution(id).await?;
    found
        .filter(|execution| caller.may_touch(execution.user_id))
        .ok_or_else(|| ApiError::not_found(format!("Execution {id} not found")))
}

/// Fails unless the caller may change a workflow: the owner or an administrator. Workflows of
/// others are reported as not found.
async fn changeable(app: &App, caller: &crate::auth::Caller, id: &str) -> ApiResult<()> {
    let found = executions::find(app, caller, id).await?;
    match found {
        Some(workflow) if caller.may_touch(workflow.user_id) => Ok(()),
        Some(_) => {
            Err(ApiError::forbidden("Only an administrator can modify a workflow without an owner"))
        }
        None => Err(not_found(id)),
    }
}

fn not_found(id: &str) -> ApiError {
    ApiError::not_found(format!("Workflow {id} not found"))
}
