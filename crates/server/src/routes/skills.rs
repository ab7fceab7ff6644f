//! Skill routes: store, read and run skills.

use axum::{
    Json as JsonResponse,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use savoir_flow::prompt::{self as prompt, PromptRun};
use savoir_skill::dialect::agent_flow;
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
    params::Path,
    skill_lookup::{ParsedSkill, SkillDetail, SkillSummary},
    stream::{self, StreamKind},
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
    /// The whole file.
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
    /// The whole file.
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
    /// Texts by the names of the inputs. Names that the skill does not declare are ignored.
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    inputs: Map<String, Value>,
}

impl Shape for RunInputs {
    fn read(members: &mut Members) -> Self {
        Self { inputs: members.text_map("inputs") }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct SkillList {
    skills: Vec<SkillSummary>,
    total: usize,
}

/// List skills: your own, or all for administrators.
#[utoipa::path(
    get, path = "/skills", tag = "skills", security(("bearer" = [])),
    responses((status = 200, body = SkillList), docs::Unauthorized, docs::TooMany)
)]
async fn list(
    State(app): State<App>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<SkillList>> {
    let kept = app.skills.list(&authenticated.caller).await.or_failed("Failed to list skills")?;
    let skills: Vec<SkillSummary> = kept.iter().map(|kept| kept.summary()).collect();
    Ok(JsonResponse(SkillList { total: skills.len(), skills }))
}

/// Create a skill.
#[utoipa::path(
    post, path = "/skills", tag = "skills", security(("bearer" = [])), request_body = NewSkill,
    responses(
        (status = 201, body = SkillDetail), docs::BadField, docs::Unauthorized, docs::Forbidden,
        docs::ConflictingField, docs::TooLarge, docs::BadShape, docs::TooMany
    )
)]
async fn create(
    State(app): State<App>,
    authenticated: Authenticated<Json<NewSkill>>,
) -> ApiResult<Response> {
    let Json(NewSkill { name, content }) = authenticated.body;
    let kept = app.skills.create(&authenticated.caller, &name, &content).await?;
    Ok(detail(StatusCode::CREATED, &kept))
}

/// Show a skill.
#[utoipa::path(
    get, path = "/skills/{name}", tag = "skills", security(("bearer" = [])),
    params(("name" = String, Path, description = "The skill")),
    responses(
        (status = 200, body = SkillDetail), docs::BadField, docs::Unauthorized,
        docs::MissingField, docs::TooMany
    )
)]
async fn get(
    State(app): State<App>,
    Path(name): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<Response> {
    let kept = app.skills.get(&authenticated.caller, &name).await?;
    Ok(detail(StatusCode::OK, &kept))
}

/// Replace the text of a skill.
#[utoipa::path(
    put, path = "/skills/{name}", tag = "skills", security(("bearer" = [])),
    params(("name" = String, Path, description = "The skill")), request_body = NewContent,
    responses(
        (status = 200, body = SkillDetail), docs::BadField, docs::Unauthorized,
        docs::ForbiddenField, docs::MissingField, docs::ConflictingField, docs::TooLarge,
        docs::BadShape, docs::TooMany
    )
)]
async fn update(
    State(app): State<App>,
    Path(name): Path<String>,
    authenticated: Authenticated<Json<NewContent>>,
) -> ApiResult<Response> {
    let Json(NewContent { content }) = authenticated.body;
    let kept = app.skills.update(&authenticated.caller, &name, &content).await?;
    Ok(detail(StatusCode::OK, &kept))
}

/// Delete a skill with its folder.
#[utoipa::path(
    delete, path = "/skills/{name}", tag = "skills", security(("bearer" = [])),
    params(("name" = String, Path, description = "The skill")),
    responses(
        (status = 204, description = "Deleted"), docs::BadField, docs::Unauthorized,
        docs::ForbiddenField, docs::MissingField, docs::ConflictingField, docs::TooMany
    )
)]
async fn delete(
    State(app): State<App>,
    Path(name): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<StatusCode> {
    app.skills.delete(&authenticated.caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Run a skill and stream its events.
#[utoipa::path(
    post, path = "/skills/{name}/run", tag = "skills", security(("bearer" = [])),
    params(("name" = String, Path, description = "The skill")), request_body = RunInputs,
    responses(
        (status = 200, description = "Events: thought, token, citation, error, done",
         body = docs::StreamEvent, content_type = "text/event-stream"),
        docs::BadField, docs::Unauthorized, docs::MissingField, docs::ConflictingField,
        docs::TooLarge, docs::BadShape, docs::TooMany
    )
)]
async fn run(
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
    authenticated: Authenticated<Json<RunInputs>>,
) -> ApiResult<Response> {
    let Json(RunInputs { inputs }) = authenticated.body;
    let kept = app.skills.load(&authenticated.caller, &name).await?;
    // A client that accepts an event stream gets the error for a missing input as an event.
    if !wants_events(&headers) {
        agent_flow::check_inputs(&kept.stored.skill.inputs, &inputs)?;
    }
    let (services, user) = (app.services.clone(), authenticated.caller.user.id);
    Ok(stream::respond(&app, StreamKind::Skill, async move |out| {
        let skill = &kept.stored.skill;
        let (directory, model, user) = (None, None, Some(user));
        let run =
            PromptRun { skill, inputs: &inputs, directory, model, user, held_to_outputs: false };
        // Ignored: the client may have disconnected.
        let _ = prompt::run(&services, run, &out).await;
    }))
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

fn detail(status: StatusCode, kept: &ParsedSkill) -> Response {
    let kind = (header::CONTENT_TYPE, "application/json");
    (status, [kind], kept.detail.clone()).into_response()
}
