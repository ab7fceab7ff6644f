//! Routes for the skills of users: import, export, enable, disable and pin.

use std::time::{Duration, Instant};

use axum::{
    Json as JsonResponse,
    body::Body,
    extract::{DefaultBodyLimit, FromRequest as _, Multipart, Request, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use http_body_util::Limited;
use savoir_package::limits::MAX_ARCHIVE_BYTES;
use savoir_skill::dialect::personal_agent::Lifecycle;
use savoir_store::{SkillFacts, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    docs,
    knowledge::{form_error, missing_file},
};
use crate::{
    app::App,
    auth::{Authenticated, Json, Raw},
    body::{self, Members, Shape},
    error::{ApiError, ApiResult},
    insight,
    limits::BODY_TIMEOUT_SECONDS,
    params::{OwnerQuery, Path},
    personal::{
        Exported, ImportSource, Item, PackageError, StoreSkillError, from_bytes, to_others,
    },
    skill_lookup::{ParsedSkill, SkillRef},
};

/// Maximum bytes of the form: the file and the multipart framing.
const MAX_FORM_BYTES: usize = MAX_ARCHIVE_BYTES as usize + 64 * 1024;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(import))
        .routes(routes!(export))
        .routes(routes!(change))
}

/// How long a list may scan skills whose verdict is unknown. Later lists scan the others.
const MAX_SCAN_TIME: Duration = Duration::from_millis(300);

/// Skills with their state for agents.
#[derive(Debug, Serialize, ToSchema)]
struct ItemList {
    skills: Vec<Item>,
    total: usize,
}

/// List skills with their state for agents: enabled, pinned, source and last use.
///
/// Your own and those without an owner, or all for administrators; the most recently changed first.
#[utoipa::path(
    get, path = "/personal-skills", tag = "skills", operation_id = "personal",
    security(("bearer" = [])),
    responses((status = 200, body = ItemList), docs::Unauthorized, docs::TooManyRequests)
)]
async fn list(
    State(app): State<App>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<ItemList>> {
    let kept = app.skills.list_for_agents(&authenticated.caller).await?;
    let noted = app.database.skill_facts().all().await?;
    let mut skills = Vec::with_capacity(kept.len());
    let deadline = Instant::now() + MAX_SCAN_TIME;
    for kept in kept {
        let facts = kept.facts(noted.get(&kept.file.key));
        let verdict = app.skills.verdict(&kept, &facts, Some(deadline)).await;
        skills.push(item(&app, &kept, &facts).await?.with_verdict(verdict));
    }
    Ok(JsonResponse(ItemList { total: skills.len(), skills }))
}

/// A SKILL.md or a zip.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the form for the OpenAPI document")]
struct ImportForm {
    /// `name@version` if the file is a version of the registry. It precedes the file.
    registry_version: Option<String>,
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// Import a skill: a SKILL.md or a zip of its folder. It replaces your own skill of the same name.
///
/// Names are unique per owner: other users may have a skill with this name. A skill that is imported
/// with an API token is disabled until a user enables it, and so is one in which the scan found
/// something; then the response has a `verdict`, and `GET /api/v1/skills/{name}/insight` explains
/// what was found.
///
/// The file may also be sent alone, as `text/markdown` or `application/zip`.
#[utoipa::path(
    post, path = "/skills/import", tag = "skills", security(("bearer" = [])),
    request_body(content = ImportForm, content_type = "multipart/form-data"),
    responses(
        (status = 201, description = "It is new.", body = Item),
        (status = 200, description = "It took the place of another.", body = Item),
        docs::BadRequestField, docs::Unauthorized, docs::ConflictingField, docs::TooLarge,
        docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn import(State(app): State<App>, authenticated: Authenticated<Raw>) -> ApiResult<Response> {
    let Authenticated { caller, body: Raw(request) } = authenticated;
    let deadline = Duration::from_secs(BODY_TIMEOUT_SECONDS);
    let given = tokio::time::timeout(deadline, given(request)).await;
    let given = given.map_err(|_| ApiError::too_slow())?.map_err(about_the_file)?;
    let Given { file, bytes, registry_version } = given;
    let read = move || from_bytes(file.as_deref(), &bytes);
    let package = tokio::task::spawn_blocking(read).await;
    let package = package.map_err(|error| ApiError::internal("Failed to import skill", &error))?;
    let package = package.map_err(|error| unfit(&error))?;
    let mut notes = package.notes.clone();
    let by = ImportSource::of(&caller);
    let writer = app.skills.skill_writer();
    let settled = writer.import(package, Some(caller.owner_id()), by, registry_version).await;
    let (settled, report) = settled.map_err(|error| store_error(&error))?;
    let verdict = report.verdict;
    let (skill, user) = (&settled.file.key, caller.user.id);
    tracing::info!(skill, by = user, %verdict, "a skill was imported");
    let status = if settled.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let paths = app.skills.skill_writer().paths(&settled.file.key).await?;
    if let Ok(kept) = app.skills.parse_stored(settled.file.clone()) {
        let undeclared = insight::undeclared_inputs(&kept, &settled.facts);
        if !undeclared.is_empty() {
            let names = undeclared.iter().map(|name| format!("{{{{{name}}}}}"));
            let names = names.collect::<Vec<_>>().join(", ");
            notes.push(format!(
                "The instructions use {names}, but SKILL.md declares no such input: a run asks for \
                 it as an optional text"
            ));
        }
    }
    let item = Item::new(&settled.file, &settled.facts, paths)
        .with_notes(notes)
        .with_verdict(Some(verdict));
    Ok((status, JsonResponse(item)).into_response())
}

/// Reports errors of the form as errors of its only part, `file`.
fn about_the_file(error: ApiError) -> ApiError {
    match error.status() {
        StatusCode::BAD_REQUEST => ApiError::field(StatusCode::BAD_REQUEST, "file", error.text()),
        _ => error,
    }
}

/// The file of a request.
#[derive(Debug, Default)]
struct Given {
    /// Its name, if it has one.
    file: Option<String>,
    bytes: Bytes,
    /// `name@version` if the file is a version of the registry.
    registry_version: Option<String>,
}

/// Maximum bytes of `name@version`.
const MAX_REGISTRY_VERSION_BYTES: usize = 256;

async fn given(request: Request) -> ApiResult<Given> {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "text/markdown" | "text/plain" | "text/x-markdown" => {
            let bytes = body::bytes(request, MAX_ARCHIVE_BYTES as usize).await?;
            Ok(Given { bytes, ..Given::default() })
        }
        "application/zip" | "application/x-zip-compressed" => {
            let bytes = body::bytes(request, MAX_ARCHIVE_BYTES as usize).await?;
            Ok(Given { file: Some("skill.zip".to_owned()), bytes, ..Given::default() })
        }
        "multipart/form-data" => part(request).await,
        _ => {
            let message =
                "Send multipart/form-data with a part `file`, text/markdown or application/zip";
            Err(ApiError::field(StatusCode::BAD_REQUEST, "file", message))
        }
    }
}

async fn part(request: Request) -> ApiResult<Given> {
    let mut request = request.map(|body| Body::new(Limited::new(body, MAX_FORM_BYTES)));
    // The default limit of axum is lower.
    DefaultBodyLimit::disable().apply(&mut request);
    let form = Multipart::from_request(request, &()).await;
    let mut form = form.map_err(|_| missing_file())?;
    let mut registry_version = None;
    while let Some(part) = form.next_field().await.map_err(|error| form_error(&error))? {
        if part.name() == Some("registry_version") {
            let text = part.text().await.map_err(|error| form_error(&error))?;
            let is_version = text.len() <= MAX_REGISTRY_VERSION_BYTES
                && text.contains('@')
                && text.chars().all(|c| c.is_ascii_alphanumeric() || "/@.+-_".contains(c));
            registry_version = is_version.then_some(text);
        } else if part.name() == Some("file") {
            let file = part.file_name().map(str::to_owned);
            let bytes = part.bytes().await.map_err(|error| form_error(&error))?;
            return Ok(Given { file, bytes, registry_version });
        }
    }
    Err(missing_file())
}

/// Export a skill: its SKILL.md, or a zip if it has other files.
#[utoipa::path(
    get, path = "/skills/{name}/export", tag = "skills", security(("bearer" = [])),
    params(("name" = String, Path, description = "The skill"), OwnerQuery),
    responses(
        (status = 200, description = "The file", content(
            (String = "text/markdown"), (Vec<u8> = "application/zip")
        )),
        docs::BadRequestField, docs::Unauthorized, docs::NotFoundField, docs::ConflictingField,
        docs::TooManyRequests
    )
)]
async fn export(
    State(app): State<App>,
    Path(name): Path<String>,
    owner: OwnerQuery,
    authenticated: Authenticated,
) -> ApiResult<Response> {
    let wanted = SkillRef::new(&name, &owner);
    let kept = app.skills.get(&authenticated.caller, wanted).await?;
    let resources = app.skills.skill_writer().resources(&kept.file.key).await?;
    let packing = {
        let name = name.clone();
        move || to_others(&name, &kept.file.text, resources)
    };
    let exported = tokio::task::spawn_blocking(packing).await;
    let exported =
        exported.map_err(|error| ApiError::internal("Failed to export skill", &error))?;
    let (kind, file, bytes) = match exported.map_err(|error| unfit(&error))? {
        Exported::Text(text) => {
            ("text/markdown; charset=utf-8", "SKILL.md".to_owned(), text.into_bytes())
        }
        Exported::Zip(bytes) => ("application/zip", format!("{name}.zip"), bytes),
    };
    let named = HeaderValue::from_str(&format!("attachment; filename=\"{file}\""));
    let named = named.map_err(|error| ApiError::internal("Failed to export skill", &error))?;
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(([kind, (header::CONTENT_DISPOSITION, named)], bytes).into_response())
}

/// The changes; missing fields stay unchanged.
#[derive(Debug, Deserialize, ToSchema)]
struct Change {
    /// Whether agents can use the skill.
    enabled: Option<bool>,
    /// Whether the skill is listed first and never archived.
    pinned: Option<bool>,
}

impl Shape for Change {
    fn read(members: &mut Members) -> Self {
        let mut boolean = |key| members.value(key).is_some().then(|| members.boolean(key));
        Self { enabled: boolean("enabled"), pinned: boolean("pinned") }
    }
}

impl Change {
    /// Enabling or pinning a skill makes it active again.
    fn apply(&self, facts: &mut SkillFacts) {
        facts.enabled = self.enabled.unwrap_or(facts.enabled);
        facts.pinned = self.pinned.unwrap_or(facts.pinned);
        if self.enabled == Some(true) || self.pinned == Some(true) {
            facts.lifecycle = Lifecycle::Active;
            facts.active_since = Timestamp::now();
        }
    }
}

/// Enable, disable or pin a skill.
///
/// Only a logged-in user can enable a disabled skill, not an API token.
#[utoipa::path(
    patch, path = "/skills/{name}", tag = "skills", security(("bearer" = [])),
    params(("name" = String, Path, description = "The skill"), OwnerQuery),
    request_body = Change,
    responses(
        (status = 200, body = Item), docs::BadRequestField, docs::Unauthorized, docs::ForbiddenField,
        docs::NotFoundField, docs::ConflictingField, docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn change(
    State(app): State<App>,
    Path(name): Path<String>,
    owner: OwnerQuery,
    authenticated: Authenticated<Json<Change>>,
) -> ApiResult<JsonResponse<Item>> {
    let Authenticated { caller, body: Json(change) } = authenticated;
    let wanted = SkillRef::new(&name, &owner);
    app.skills.check_changeable(&caller, wanted).await?;
    let kept = app.skills.get(&caller, wanted).await?;
    // The skill is locked, because an upload at the same time may disable the skill, and this
    // change must not undo that.
    let facts = app.skills.skill_writer().with_skill_lock(&name, async {
        let facts_of = app.database.skill_facts();
        let key = kept.file.key.as_str();
        let mut facts = kept.facts(facts_of.get(key).await?.as_ref());
        if change.enabled == Some(true) && !facts.enabled && caller.token.is_some() {
            return Ok(None);
        }
        change.apply(&mut facts);
        facts_of.put(key, &facts).await?;
        Ok(Some(facts))
    });
    let facts = facts.await.map_err(|error: StoreSkillError| store_error(&error))?;
    let facts = facts.ok_or_else(for_a_person)?;
    let verdict = app.skills.verdict(&kept, &facts, None).await;
    Ok(JsonResponse(item(&app, &kept, &facts).await?.with_verdict(verdict)))
}

/// The error for an API token that enables a skill: only a user can confirm a review.
fn for_a_person() -> ApiError {
    let message = "Only a person who logged in can enable a skill: look at it, and enable it there";
    ApiError::field(StatusCode::FORBIDDEN, "enabled", message)
}

/// The description of a skill for API responses.
pub(super) async fn item(app: &App, kept: &ParsedSkill, facts: &SkillFacts) -> ApiResult<Item> {
    let paths = app.skills.skill_writer().paths(&kept.file.key).await?;
    Ok(Item::new(&kept.file, facts, paths))
}

/// The error for an upload that is not a valid skill.
pub(super) fn unfit(error: &PackageError) -> ApiError {
    ApiError::field(StatusCode::BAD_REQUEST, "file", error.to_string())
}

pub(super) fn store_error(error: &StoreSkillError) -> ApiError {
    let status = match error {
        StoreSkillError::Store(error) => return ApiError::stored("Failed to keep skill", error),
        StoreSkillError::Quota(reached) => return (*reached).into(),
        StoreSkillError::Reserved(_) | StoreSkillError::Unfit(_) => StatusCode::BAD_REQUEST,
        StoreSkillError::Taken(_)
        | StoreSkillError::Busy(_)
        | StoreSkillError::Conflict(_)
        | StoreSkillError::Edited(_) => StatusCode::CONFLICT,
    };
    let field = if matches!(error, StoreSkillError::Unfit(_)) { "content" } else { "name" };
    ApiError::field(status, field, error.to_string())
}
