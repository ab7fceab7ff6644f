//! Route that runs a single tool of a skill.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use savoir_agent::tool_run::{self, ToolRun};
use savoir_store::RunKind;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

use super::docs;
use crate::{
    app::App,
    auth::{Authenticated, Json},
    body::{Members, Shape},
    error::{ApiError, ApiResult},
    params::{OwnerQuery, Path},
    questions::StreamAsker,
    run_history::NewRun,
    skill_lookup::SkillRef,
    stream::{self, OnDisconnect, StreamKind},
    tool_runner,
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(run))
}

/// The arguments of a tool.
#[derive(Debug, Deserialize, ToSchema)]
struct ToolArguments {
    /// Values by the names of the parameters.
    #[schema(value_type = Option<Object>)]
    arguments: Map<String, Value>,
    /// Whether the run goes on when the client disconnects.
    #[schema(required = false)]
    detached: bool,
}

impl Shape for ToolArguments {
    fn read(members: &mut Members) -> Self {
        Self {
            arguments: members.object("arguments"),
            detached: members.optional_boolean("detached"),
        }
    }
}

/// Run a tool of a skill and stream its events.
///
/// The tool runs in the sandbox, if the server lets tools run. An administrator in the web app is
/// asked for approval; for others, a tool that is not approved does not run.
#[utoipa::path(
    post, path = "/skills/{name}/tools/{tool}/run", tag = "skills", operation_id = "run_tool",
    security(("bearer" = [])),
    params(
        ("name" = String, Path, description = "The skill"),
        ("tool" = String, Path, description = "The name of the tool in the skill"),
        OwnerQuery
    ),
    request_body = ToolArguments,
    responses(
        (status = 200, description = "Events: thought, approval, token, done",
         body = docs::StreamEvent, content_type = "text/event-stream"),
        docs::BadRequestField, docs::Unauthorized, docs::Forbidden, docs::NotFoundField,
        docs::ConflictingField, docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn run(
    State(app): State<App>,
    Path((name, tool)): Path<(String, String)>,
    owner: OwnerQuery,
    headers: HeaderMap,
    authenticated: Authenticated<Json<ToolArguments>>,
) -> ApiResult<Response> {
    let Authenticated { caller, body: Json(ToolArguments { arguments, detached }) } = authenticated;
    let no_tools = || {
        ApiError::forbidden("This server does not run tools of skills").with_hint(format!(
            "start the server with --skill-tools, or run it on your machine: savoir run {name}/{tool}"
        ))
    };
    if app.config.skill_tools.is_none() {
        return Err(no_tools());
    }
    // Rejects disabled skills.
    let (kept, _) = app.skills.load_stored(&caller, SkillRef::new(&name, &owner)).await?;
    let known = kept.parsed_skill().is_ok_and(|skill| skill.tools.iter().any(|t| t.name == tool));
    if !known {
        let message = format!("Skill '{name}' has no tool '{tool}'");
        return Err(ApiError::field(StatusCode::NOT_FOUND, "tool", message));
    }
    let key = kept.file.key.clone();
    let tools = tool_runner::tools_of(&app, &caller, key).ok_or_else(no_tools)?;
    let id = Uuid::now_v7().to_string();
    let new = NewRun {
        id: Some(id.clone()),
        kind: RunKind::Tool,
        user_id: caller.user.id,
        name: format!("{name}: {tool}"),
        target: format!("{name}/{tool}"),
        inputs: arguments.clone().into(),
    };
    let then = OnDisconnect::new(&headers, detached);
    let asks = StreamAsker::may_ask(&app, &headers, &caller);
    let call = ToolRun { skill: name, tool, arguments };
    let asking = app.clone();
    let response = stream::respond(&app, StreamKind::Skill, new, then, async move |out| {
        let tools = if asks {
            tools.with_asker(StreamAsker::new(asking, &caller, id, out.clone()))
        } else {
            tools
        };
        // Ignored: the client may have disconnected.
        let _ = tool_run::run(&tools, &call, &out).await;
    });
    Ok(response.await)
}
