//! Routes for the history of runs, and for files that tools wrote into their run folders.

use std::{collections::HashMap, fs::File, sync::Arc, time::Duration};

use axum::{
    Json as JsonResponse,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use savoir_agent::workspaces::{LeftFile, Workspaces};
use savoir_store::{Run, RunFilter, RunKind, RunState, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::io::ReaderStream;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::docs;
use crate::{
    access::Scope,
    app::App,
    auth::{Authenticated, Caller, Json, StreamReader},
    body::{Members, Shape, Text},
    error::{ApiError, ApiResult},
    params::{Params, Path, Query, QueryPairs},
    prices::Prices,
    questions::{Answer, AnswerError},
    run_history::{
        LiveRun, RecordedEvent, SHORTENED_INPUTS,
        spans::{LogLine, Span, citations, log_lines, spans},
    },
    stream,
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(history))
        .routes(routes!(show, delete))
        .routes(routes!(events))
        .routes(routes!(stop))
        .routes(routes!(answer_question))
        .routes(routes!(list))
        .routes(routes!(download))
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
struct HistoryQuery {
    /// `prompt`, `tool`, `workflow`, `chat` or `mcp`
    kind: Option<String>,
    /// `running`, `ok`, `failed` or `stopped`
    state: Option<String>,
    /// The same as `state`.
    status: Option<String>,
    /// The name or id of a skill or workflow.
    skill: Option<String>,
    /// A part of the name or of the error message.
    q: Option<String>,
    /// Only runs that started after this time, in seconds since 1970.
    #[param(minimum = 0, maximum = 9_223_372_036_854_i64)]
    since: Option<i64>,
    /// Only runs that started before the run with this id.
    before: Option<String>,
    #[param(minimum = 1, maximum = 500)]
    limit: i64,
    #[param(minimum = 0)]
    offset: i64,
}

impl Params for HistoryQuery {
    fn read(pairs: &mut QueryPairs) -> Self {
        Self {
            kind: pairs.optional_text("kind"),
            state: pairs.optional_text("state"),
            status: pairs.optional_text("status"),
            skill: pairs.optional_text("skill"),
            q: pairs.optional_text("q"),
            since: Some(pairs.integer("since", 0, 0, i64::MAX / 1_000_000)),
            before: pairs.optional_text("before"),
            limit: pairs.integer("limit", 100, 1, 500),
            offset: pairs.integer("offset", 0, 0, i64::MAX),
        }
    }
}

impl HistoryQuery {
    fn filter(&self, caller: &Caller) -> ApiResult<RunFilter> {
        let bad = |field, known: String| {
            ApiError::field(StatusCode::BAD_REQUEST, field, format!("Use one of {known}"))
        };
        let words = |all: &[&str]| all.join(", ");
        let kind = self.kind.as_deref().map(|word| {
            RunKind::parse(word)
                .ok_or_else(|| bad("kind", words(&RunKind::ALL.map(RunKind::as_str))))
        });
        let state = self.state.as_deref().or(self.status.as_deref()).map(|word| {
            RunState::parse(word)
                .ok_or_else(|| bad("state", words(&RunState::ALL.map(RunState::as_str))))
        });
        let since = self.since.filter(|seconds| *seconds > 0);
        Ok(RunFilter {
            user_id: (!caller.user.is_admin()).then_some(caller.user.id),
            kind: kind.transpose()?,
            state: state.transpose()?,
            target: self.skill.clone(),
            text: self.q.clone().filter(|text| !text.is_empty()),
            since: since.map(|seconds| Timestamp::from_micros(seconds * 1_000_000)),
            before: self.before.clone(),
            hidden_kinds: hidden_kinds(caller),
        })
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct RunList {
    runs: Vec<RunItem>,
    total: u64,
    /// The value of `before` for the next page, if there is one.
    next: Option<String>,
}

/// A run of a skill, tool, workflow, chat or MCP call.
#[derive(Debug, Serialize, ToSchema)]
struct RunItem {
    id: String,
    /// `prompt`, `tool`, `workflow`, `chat` or `mcp`
    kind: &'static str,
    /// The name of the skill, workflow or tool, or the beginning of the message.
    name: String,
    /// The name of the skill, the id of the workflow, or the conversation.
    target: String,
    /// `running`, `ok`, `failed` or `stopped`
    state: &'static str,
    started_at: String,
    ended_at: Option<String>,
    duration_ms: Option<i64>,
    model: Option<String>,
    input_tokens: u64,
    output_tokens: u64,
    /// The cost in US dollars; null if a model of the run has no price.
    cost_usd: Option<f64>,
    /// Why the model's last answer ended: `stop`, `length`, `tool_calls` or `other`.
    finish_reason: Option<String>,
    error: Option<String>,
    user_id: i64,
    /// The email address of the user; only for administrators.
    user_email: Option<String>,
}

impl RunItem {
    fn new(run: &Run, labels: &Labels) -> Self {
        let end = &run.end;
        let took = end.ended_at.map(|ended| (ended.micros() - run.started_at.micros()) / 1000);
        Self {
            id: run.id.clone(),
            kind: run.kind.as_str(),
            name: run.name.clone(),
            target: run.target.clone(),
            state: end.state.as_str(),
            started_at: run.started_at.to_string(),
            ended_at: end.ended_at.map(|time| time.to_string()),
            duration_ms: took,
            model: end.model.clone(),
            input_tokens: end.input_tokens,
            output_tokens: end.output_tokens,
            cost_usd: labels.prices.cost_of_run(end),
            finish_reason: end.finish_reason.clone(),
            error: end.error.clone(),
            user_id: run.user_id,
            user_email: labels.emails.get(&run.user_id).cloned(),
        }
    }
}

/// A run with its inputs, output and timeline.
#[derive(Debug, Serialize, ToSchema)]
struct RunDetail {
    #[serde(flatten)]
    item: RunItem,
    #[schema(value_type = Object)]
    inputs: Value,
    output: Option<String>,
    spans: Vec<Span>,
    log: Vec<LogLine>,
    #[schema(value_type = Vec<Object>)]
    citations: Vec<Value>,
    /// The request that repeats the run.
    rerun: Option<Rerun>,
}

/// A request.
#[derive(Debug, Serialize, ToSchema)]
struct Rerun {
    path: String,
    #[schema(value_type = Object)]
    body: Value,
}

impl RunDetail {
    fn new(run: Run, labels: &Labels) -> Self {
        let events = recorded(&run);
        Self {
            item: RunItem::new(&run, labels),
            spans: spans(&events),
            log: log_lines(&events),
            citations: citations(&events),
            rerun: rerun(&run),
            output: run.end.output,
            inputs: run.inputs,
        }
    }
}

fn recorded(run: &Run) -> Vec<RecordedEvent> {
    serde_json::from_value(run.end.events.clone()).unwrap_or_default()
}

fn rerun(run: &Run) -> Option<Rerun> {
    if run.inputs.get(SHORTENED_INPUTS).is_some() {
        return None;
    }
    let (path, body) = match run.kind {
        RunKind::Prompt => {
            let path = format!("/api/v1/skills/{}/run", encode_segment(&run.target));
            (path, json!({"inputs": run.inputs}))
        }
        RunKind::Workflow => {
            let path = format!("/api/v1/workflows/{}/execute", encode_segment(&run.target));
            (path, run.inputs.clone())
        }
        RunKind::Chat => ("/api/v1/chat/completions".to_owned(), run.inputs.clone()),
        RunKind::Tool => {
            let (skill, tool) = run.target.split_once('/')?;
            let (skill, tool) = (encode_segment(skill), encode_segment(tool));
            let path = format!("/api/v1/skills/{skill}/tools/{tool}/run");
            (path, json!({"arguments": run.inputs}))
        }
        RunKind::Mcp => return None,
    };
    Some(Rerun { path, body })
}

/// A name as a segment of a path: tools can have any character in their names.
fn encode_segment(name: &str) -> String {
    // The encoding of forms, except for blanks.
    url::form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20")
}

/// List what ran: your own runs, or all for administrators. The newest first.
#[utoipa::path(
    get, path = "/runs", tag = "runs", security(("bearer" = [])), params(HistoryQuery),
    responses(
        (status = 200, body = RunList), docs::BadRequestField, docs::Unauthorized, docs::InvalidBody,
        docs::TooManyRequests
    )
)]
async fn history(
    State(app): State<App>,
    authenticated: Authenticated<Query<HistoryQuery>>,
) -> ApiResult<JsonResponse<RunList>> {
    let Authenticated { caller, body: Query(query) } = authenticated;
    let filter = query.filter(&caller)?;
    let (limit, offset) = (query.limit.unsigned_abs(), query.offset.unsigned_abs());
    // One more than requested, to know whether there is another page.
    let (mut runs, total) = app.database.runs().list(&filter, limit + 1, offset).await?;
    let more = runs.len() as u64 > limit;
    runs.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let labels = Labels::load(&app, &caller).await?;
    Ok(JsonResponse(RunList {
        next: runs.last().filter(|_| more).map(|run| run.id.clone()),
        runs: runs.iter().map(|run| RunItem::new(run, &labels)).collect(),
        total,
    }))
}

/// The data that is shown besides the stored runs.
struct Labels {
    /// The addresses of all accounts, for administrators.
    emails: HashMap<i64, String>,
    prices: Prices,
}

impl Labels {
    async fn load(app: &App, caller: &Caller) -> ApiResult<Self> {
        let users =
            if caller.user.is_admin() { app.database.accounts().list().await? } else { Vec::new() };
        Ok(Self {
            emails: users.into_iter().map(|user| (user.id, user.email)).collect(),
            prices: Prices::load(&app.database).await?,
        })
    }
}

/// Show a run with its inputs, output and timeline.
#[utoipa::path(
    get, path = "/runs/{id}", tag = "runs", security(("bearer" = [])),
    params(("id" = String, Path, description = "The run")),
    responses((status = 200, body = RunDetail), docs::Unauthorized, docs::NotFound, docs::TooManyRequests)
)]
async fn show(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<RunDetail>> {
    let run = find(&app, &authenticated.caller, &id).await?;
    let labels = Labels::load(&app, &authenticated.caller).await?;
    Ok(JsonResponse(RunDetail::new(run, &labels)))
}

/// Delete a run from the history. A run that goes on is stopped.
#[utoipa::path(
    delete, path = "/runs/{id}", tag = "runs", security(("bearer" = [])),
    params(("id" = String, Path, description = "The run")),
    responses(
        (status = 204, description = "Deleted"), docs::Unauthorized, docs::NotFound, docs::TooManyRequests
    )
)]
async fn delete(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<StatusCode> {
    find(&app, &authenticated.caller, &id).await?;
    app.history.remove(&id);
    let deleted = app.database.runs().delete(&id).await?;
    if deleted { Ok(StatusCode::NO_CONTENT) } else { Err(missing(&id)) }
}

/// Attach to a run: its events from the start, or after `Last-Event-ID`, then live.
#[utoipa::path(
    get, path = "/runs/{id}/events", tag = "runs", security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "The run"),
        ("Last-Event-ID" = Option<String>, Header, description = "The last event that was seen")
    ),
    responses(
        (status = 200, description = "The events of the run, and `usage` for each request to a \
         model", body = docs::StreamEvent, content_type = "text/event-stream"),
        docs::Unauthorized, docs::NotFound, docs::TooManyRequests
    )
)]
async fn events(
    State(app): State<App>,
    Path(id): Path<String>,
    headers: HeaderMap,
    authenticated: Authenticated,
) -> ApiResult<Response> {
    let seen = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    let seen = seen.unwrap_or(0);
    let mut run = find(&app, &authenticated.caller, &id).await?;
    let mut reader = StreamReader::new(app.clone(), authenticated.caller);
    if let Some(live) = app.history.find(&id) {
        return Ok(stream::attach(&app, reader, live, seen));
    }
    // The run is in another process, whose events are only available after its end.
    while run.end.state == RunState::Running && !app.stop.is_cancelled() {
        tokio::time::sleep(POLL_INTERVAL).await;
        if !reader.is_allowed().await {
            return Err(ApiError::unauthorized("Invalid or expired token"));
        }
        run = app.database.runs().get(&id).await?.ok_or_else(|| missing(&id))?;
    }
    Ok(stream::replay(&recorded(&run), seen > 0))
}

/// The interval of checks whether the run of another process has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Stop a run.
#[utoipa::path(
    post, path = "/runs/{id}/stop", tag = "runs", security(("bearer" = [])),
    params(("id" = String, Path, description = "The run")),
    responses(
        (status = 204, description = "It stops"), docs::Unauthorized, docs::NotFound,
        docs::Conflict, docs::TooManyRequests
    )
)]
async fn stop(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<StatusCode> {
    let run = find(&app, &authenticated.caller, &id).await?;
    match app.history.find(&id) {
        Some(live) => live.stop.cancel(),
        None if run.end.state == RunState::Running => {
            return Err(ApiError::conflict("The run goes on in another process of the server")
                .with_hint("send the request to that process, or wait for its time limit"));
        }
        None => {}
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The answer to a question of a run.
#[derive(Debug, Deserialize, ToSchema)]
struct ApprovalAnswer {
    /// `once`, `always` or `deny`
    #[schema(pattern = "^(once|always|deny)$")]
    answer: String,
}

impl Shape for ApprovalAnswer {
    fn read(members: &mut Members) -> Self {
        Self { answer: members.text("answer", Text::SOME) }
    }
}

/// Answer whether a tool may run. The question is an event `approval` of the run.
///
/// Only the user of the run can answer, logged in and not with an API token. A question without an
/// answer for two minutes counts as denied.
#[utoipa::path(
    post, path = "/runs/{id}/approvals/{question}", tag = "runs", security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "The run"),
        ("question" = String, Path, description = "The question")
    ),
    request_body = ApprovalAnswer,
    responses(
        (status = 204, description = "Answered"), docs::BadRequestField, docs::Unauthorized,
        docs::Forbidden, docs::NotFound, docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn answer_question(
    State(app): State<App>,
    Path((id, question)): Path<(String, String)>,
    authenticated: Authenticated<Json<ApprovalAnswer>>,
) -> ApiResult<StatusCode> {
    let Authenticated { caller, body: Json(given) } = authenticated;
    let bad = |message: &str| ApiError::field(StatusCode::BAD_REQUEST, "answer", message);
    let answer = Answer::parse(&given.answer);
    let answer = answer.ok_or_else(|| bad("Use one of once, always, deny"))?;
    match app.questions.answer(&id, &question, caller.user.id, answer) {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(AnswerError::NotLasting) => {
            Err(bad("This skill is asked about before every run: use once or deny"))
        }
        Err(AnswerError::Missing) => {
            Err(ApiError::not_found("There is no such question, or it is over")
                .with_hint("send the message again; a question waits for two minutes"))
        }
    }
}

/// A run that the caller may see: their own, or any for an administrator.
async fn find(app: &App, caller: &Caller, id: &str) -> ApiResult<Run> {
    let live = app.history.find(id).map(|live: Arc<LiveRun>| live.snapshot());
    let run = match live {
        Some(run) => Some(run),
        None => app.database.runs().get(id).await?,
    };
    let is_visible = |run: &Run| {
        caller.may_touch(Some(run.user_id)) && !hidden_kinds(caller).contains(&run.kind)
    };
    run.filter(is_visible).ok_or_else(|| missing(id))
}

/// The kinds of runs that the scopes of the caller's token do not cover.
fn hidden_kinds(caller: &Caller) -> Vec<RunKind> {
    let kinds = [(RunKind::Chat, Scope::Chat), (RunKind::Workflow, Scope::WorkflowsRead)];
    let hidden = kinds.into_iter().filter(|(_, scope)| caller.check_scope(*scope).is_err());
    hidden.map(|(kind, _)| kind).collect()
}

fn missing(id: &str) -> ApiError {
    ApiError::not_found(format!("Run {id} not found")).with_hint(
        "check the id; the runs of other accounts are not shown, and old runs are deleted",
    )
}

#[derive(Debug, Serialize, ToSchema)]
struct FileList {
    files: Vec<FileItem>,
    total: usize,
}

/// A file that a tool created.
#[derive(Debug, Serialize, ToSchema)]
struct FileItem {
    /// The path in the folder in which the tool ran.
    path: String,
    size: u64,
}

impl From<LeftFile> for FileItem {
    fn from(LeftFile { path, size }: LeftFile) -> Self {
        Self { path, size }
    }
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
struct FileQuery {
    /// The path, as in the list of files.
    #[param(min_length = 1)]
    path: String,
}

impl Params for FileQuery {
    fn read(pairs: &mut QueryPairs) -> Self {
        Self { path: pairs.text("path") }
    }
}

/// List the files that a tool of a skill wrote, by the `run` of its response. They are kept for the
/// user who ran it, until 50 later runs have written files.
#[utoipa::path(
    get, path = "/runs/{id}/files", tag = "runs", security(("bearer" = [])),
    params(("id" = String, Path, description = "The run")),
    responses((status = 200, body = FileList), docs::Unauthorized, docs::NotFound, docs::TooManyRequests)
)]
async fn list(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<FileList>> {
    let files = look(&app, &authenticated.caller, move |all| all.files(&id)).await?;
    let files: Vec<FileItem> = files.into_iter().map(Into::into).collect();
    Ok(JsonResponse(FileList { total: files.len(), files }))
}

/// Download a file that a tool of a skill wrote.
#[utoipa::path(
    get, path = "/runs/{id}/file", tag = "runs", security(("bearer" = [])),
    params(("id" = String, Path, description = "The run"), FileQuery),
    responses(
        (status = 200, description = "The file", content((Vec<u8> = "application/octet-stream"))),
        docs::Unauthorized, docs::NotFound, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn download(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated<Query<FileQuery>>,
) -> ApiResult<Response> {
    let Query(FileQuery { path }) = authenticated.body;
    let file = look(&app, &authenticated.caller, move |all| all.open(&id, &path)).await?;
    Ok(attachment(file))
}

/// A download, so that a browser does not show the file as a page of this server.
fn attachment(file: File) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    let body = Body::from_stream(ReaderStream::new(tokio::fs::File::from_std(file)));
    (headers, body).into_response()
}

/// Reads the stored run folders of a user on a blocking thread.
async fn look<T: Send + 'static>(
    app: &App,
    caller: &Caller,
    find: impl FnOnce(&Workspaces) -> Option<T> + Send + 'static,
) -> ApiResult<T> {
    let missing = || ApiError::not_found("There is no such run, or it left no such file");
    let tool_config = app.config.skill_tools.clone().ok_or_else(missing)?;
    let caller = caller.clone();
    let found = tokio::task::spawn_blocking(move || {
        tool_config.workspaces(&caller).map(|workspaces| find(&workspaces))
    });
    let failed = |error: &dyn std::fmt::Display| ApiError::internal("Failed to read files", error);
    let found = found.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
    found.ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_paths_are_percent_encoded() {
        assert_eq!(encode_segment("add-two"), "add-two");
        assert_eq!(encode_segment("a b/c?d+ü"), "a%20b%2Fc%3Fd%2B%C3%BC");
    }
}
