//! Skill routes: store, read and run skills.

use std::sync::Arc;

use axum::{
    Json as JsonResponse,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use savoir_flow::prompt::{self as prompt, PromptRun};
use savoir_skill::dialect::agent_flow;
use savoir_store::RunKind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::docs;
use crate::{
    app::App,
    auth::{Authenticated, Json},
    body::{Members, Shape, Text},
    error::{ApiResult, WithRouteMessage as _},
    params::{OwnerQuery, Page, Path, Query},
    run_history::NewRun,
    skill_lookup::{IfMatch, ParsedSkill, SkillDetail, SkillRef, SkillSummary, tag_of},
    stream::{self, OnDisconnect, StreamKind},
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, update, delete))
        .routes(routes!(run))
}

/// A new skill.
#[derive(Debug, Deserialize, ToSchema)]
struct NewSkill {
    /// Lower-case letters, digits and hyphens.
    name: String,
    /// The text of SKILL.md.
    content: String,
}

impl Shape for NewSkill {
    fn read(members: &mut Members) -> Self {
        Self { name: members.text("name", Text::ANY), content: members.text("content", Text::ANY) }
    }
}

/// The new text of a skill.
#[derive(Debug, Deserialize, ToSchema)]
struct NewContent {
    /// The text of SKILL.md.
    content: String,
}

impl Shape for NewContent {
    fn read(members: &mut Members) -> Self {
        Self { content: members.text("content", Text::ANY) }
    }
}

/// The inputs of a skill.
#[derive(Debug, Deserialize, ToSchema)]
struct RunInputs {
    /// The values of the inputs and of undeclared placeholders, by name. A skill without any takes
    /// `request`: what it should work on. Other names are ignored.
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    inputs: Map<String, Value>,
    /// Whether the run continues when the client disconnects.
    #[schema(required = false)]
    detached: bool,
}

impl Shape for RunInputs {
    fn read(members: &mut Members) -> Self {
        Self { inputs: members.text_map("inputs"), detached: members.optional_boolean("detached") }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct SkillList {
    skills: Vec<SkillSummary>,
    total: usize,
}

/// List skills: your own, or all for administrators.
#[utoipa::path(
    get, path = "/skills", tag = "skills", security(("bearer" = [])), params(Page),
    responses((status = 200, body = SkillList), docs::Unauthorized, docs::InvalidBody, docs::TooManyRequests)
)]
async fn list(
    State(app): State<App>,
    authenticated: Authenticated<Query<Page>>,
) -> ApiResult<JsonResponse<SkillList>> {
    let Authenticated { caller, body: Query(page) } = authenticated;
    let kept = app.skills.list(&caller).await.or_failed("Failed to list skills")?;
    let is_admin = caller.user.is_admin();
    let summary = |kept: &Arc<ParsedSkill>| {
        if is_admin { kept.summary_with_owner() } else { kept.summary() }
    };
    let skills = page.of(&kept).iter().map(summary).collect();
    Ok(JsonResponse(SkillList { total: kept.len(), skills }))
}

/// Create a skill.
///
/// If an API token creates it and the scan finds something, it is disabled until a user enables it.
/// Then the response has a `verdict`, and `GET /api/v1/skills/{name}/insight` explains the findings.
#[utoipa::path(
    post, path = "/skills", tag = "skills", security(("bearer" = [])), request_body = NewSkill,
    responses(
        (status = 201, body = SkillDetail), docs::BadRequestField, docs::Unauthorized, docs::Forbidden,
        docs::ConflictingField, docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn create(
    State(app): State<App>,
    authenticated: Authenticated<Json<NewSkill>>,
) -> ApiResult<Response> {
    let Json(NewSkill { name, content }) = authenticated.body;
    let kept = app.skills.create(&authenticated.caller, &name, &content).await?;
    Ok(detail(StatusCode::CREATED, &kept.skill, kept.detail()))
}

/// Show a skill.
#[utoipa::path(
    get, path = "/skills/{name}", tag = "skills", security(("bearer" = [])),
    params(("name" = String, Path, description = "The skill"), OwnerQuery),
    responses(
        (status = 200, body = SkillDetail), docs::BadRequestField, docs::Unauthorized,
        docs::NotFoundField, docs::ConflictingField, docs::TooManyRequests
    )
)]
async fn get(
    State(app): State<App>,
    Path(name): Path<String>,
    owner: OwnerQuery,
    authenticated: Authenticated,
) -> ApiResult<Response> {
    let kept = app.skills.get(&authenticated.caller, SkillRef::new(&name, &owner)).await?;
    Ok(detail(StatusCode::OK, &kept, kept.detail.clone()))
}

/// Replace the text of a skill.
///
/// If an API token does it and the scan finds something, the skill is disabled until a user enables
/// it, as for a new skill.
#[utoipa::path(
    put, path = "/skills/{name}", tag = "skills", security(("bearer" = [])),
    params(
        ("name" = String, Path, description = "The skill"),
        OwnerQuery,
        ("If-Match" = Option<String>, Header, description = "The ETag of the text to replace")
    ),
    request_body = NewContent,
    responses(
        (status = 200, body = SkillDetail), docs::Changed, docs::BadRequestField, docs::Unauthorized,
        docs::ForbiddenField, docs::NotFoundField, docs::ConflictingField, docs::TooLarge,
        docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn update(
    State(app): State<App>,
    Path(name): Path<String>,
    owner: OwnerQuery,
    headers: HeaderMap,
    authenticated: Authenticated<Json<NewContent>>,
) -> ApiResult<Response> {
    let Json(NewContent { content }) = authenticated.body;
    let (wanted, condition) = (SkillRef::new(&name, &owner), IfMatch::new(&headers));
    let kept = app.skills.update(&authenticated.caller, wanted, &content, &condition).await?;
    Ok(detail(StatusCode::OK, &kept.skill, kept.detail()))
}

/// Delete a skill with its folder.
#[utoipa::path(
    delete, path = "/skills/{name}", tag = "skills", security(("bearer" = [])),
    params(("name" = String, Path, description = "The skill"), OwnerQuery),
    responses(
        (status = 204, description = "Deleted"), docs::BadRequestField, docs::Unauthorized,
        docs::ForbiddenField, docs::NotFoundField, docs::ConflictingField, docs::TooManyRequests
    )
)]
async fn delete(
    State(app): State<App>,
    Path(name): Path<String>,
    owner: OwnerQuery,
    headers: HeaderMap,
    authenticated: Authenticated,
) -> ApiResult<StatusCode> {
    let wanted = SkillRef::new(&name, &owner);
    app.skills.delete(&authenticated.caller, wanted, &IfMatch::new(&headers)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Run a skill and stream its events.
#[utoipa::path(
    post, path = "/skills/{name}/run", tag = "skills", security(("bearer" = [])),
    params(("name" = String, Path, description = "The skill"), OwnerQuery),
    request_body = RunInputs,
    responses(
        (status = 200, description = "Events: thought, token, citation, error, done",
         body = docs::StreamEvent, content_type = "text/event-stream"),
        docs::BadRequestField, docs::Unauthorized, docs::NotFoundField, docs::ConflictingField,
        docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn run(
    State(app): State<App>,
    Path(name): Path<String>,
    owner: OwnerQuery,
    headers: HeaderMap,
    authenticated: Authenticated<Json<RunInputs>>,
) -> ApiResult<Response> {
    let Json(RunInputs { inputs, detached }) = authenticated.body;
    let skill = app.skills.load(&authenticated.caller, SkillRef::new(&name, &owner)).await?;
    // A client that accepts an event stream gets this error as an event instead.
    if !wants_events(&headers) {
        agent_flow::check_inputs(&skill.inputs, &inputs)?;
    }
    let (services, user) = (app.services.clone(), authenticated.caller.user.id);
    let new = NewRun {
        id: None,
        kind: RunKind::Prompt,
        user_id: user,
        target: name.clone(),
        name,
        inputs: inputs.clone().into(),
    };
    let then = OnDisconnect::new(&headers, detached);
    let response = stream::respond(&app, StreamKind::Skill, new, then, async move |out| {
        let skill = &skill;
        let (directory, model, user) = (None, None, Some(user));
        let run = PromptRun { skill, inputs: &inputs, directory, model, user };
        // Ignored: the client may have disconnected.
        let _ = prompt::run(&services, run, &out).await;
    });
    Ok(response.await)
}

fn wants_events(headers: &HeaderMap) -> bool {
    headers.get_all(header::ACCEPT).iter().any(|value| {
        value.to_str().is_ok_and(|value| {
            value.split(',').any(|kind| {
                let kind = kind.split(';').next().unwrap_or_default().trim();
                kind.eq_ignore_ascii_case("text/event-stream")
            })
        })
    })
}

fn detail(status: StatusCode, kept: &ParsedSkill, body: Bytes) -> Response {
    let kind = (header::CONTENT_TYPE, "application/json".to_owned());
    let tag = (header::ETAG, tag_of(&kept.file.text));
    (status, [kind, tag], body).into_response()
}
