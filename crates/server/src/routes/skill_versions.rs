//! Routes for the texts that a skill had before.

use axum::{Json as JsonResponse, extract::State};
use savoir_skill::dialect::agent_flow::without_owner;
use savoir_store::{SkillVersion, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::docs;
use crate::{
    app::App,
    auth::Authenticated,
    error::{ApiError, ApiResult},
    params::{OwnerQuery, Path},
    skill_lookup::SkillRef,
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(versions)).routes(routes!(version))
}

/// A text that a skill had, or has now.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SkillVersion)]
struct VersionItem {
    id: String,
    #[schema(value_type = String, format = DateTime)]
    saved_at: Timestamp,
    /// Who saved it; null if the file was changed without the server.
    user_email: Option<String>,
    /// Whether it is the present text. Only set in a list.
    current: bool,
}

/// A version with its text.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SkillVersionText)]
struct VersionText {
    #[serde(flatten)]
    version: VersionItem,
    /// The whole SKILL.md, without the owner.
    content: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SkillVersionList)]
struct VersionList {
    versions: Vec<VersionItem>,
}

impl VersionItem {
    async fn new(app: &App, version: SkillVersion) -> ApiResult<Self> {
        let SkillVersion { id, user_id, saved_at } = version;
        let user = match user_id {
            Some(user_id) => app.database.accounts().by_id(user_id).await?,
            None => None,
        };
        Ok(Self { id, saved_at, user_email: user.map(|user| user.email), current: false })
    }
}

/// List the saved versions of a skill, newest first: those of SKILL.md.
///
/// For users who may change the skill. The last 30 are stored.
#[utoipa::path(
    get, path = "/skills/{name}/versions", tag = "skills", security(("bearer" = [])),
    params(("name" = String, Path, description = "The skill"), OwnerQuery),
    responses(
        (status = 200, body = VersionList), docs::BadRequestField, docs::Unauthorized,
        docs::ForbiddenField, docs::NotFoundField, docs::ConflictingField, docs::TooManyRequests
    )
)]
async fn versions(
    State(app): State<App>,
    Path(name): Path<String>,
    owner: OwnerQuery,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<VersionList>> {
    let wanted = SkillRef::new(&name, &owner);
    let file = app.skills.find_for_versions(&authenticated.caller, wanted).await?;
    let mut versions = Vec::new();
    for version in app.database.skill_facts().versions(&file.key).await? {
        versions.push(VersionItem::new(&app, version).await?);
    }
    if let Some(newest) = versions.first_mut() {
        let stored = app.database.skill_facts().version(&file.key, &newest.id).await?;
        newest.current = stored.is_some_and(|(_, text)| text == without_owner(&file.text));
    }
    Ok(JsonResponse(VersionList { versions }))
}

/// Show a saved version of a skill. To restore it, replace the text of the skill with it.
#[utoipa::path(
    get, path = "/skills/{name}/versions/{version}", tag = "skills", security(("bearer" = [])),
    params(
        ("name" = String, Path, description = "The skill"),
        ("version" = String, Path, description = "The id of the version"),
        OwnerQuery
    ),
    responses(
        (status = 200, body = VersionText), docs::BadRequestField, docs::Unauthorized,
        docs::ForbiddenField, docs::NotFoundField, docs::ConflictingField, docs::TooManyRequests
    )
)]
async fn version(
    State(app): State<App>,
    Path((name, version)): Path<(String, String)>,
    owner: OwnerQuery,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<VersionText>> {
    let wanted = SkillRef::new(&name, &owner);
    let file = app.skills.find_for_versions(&authenticated.caller, wanted).await?;
    let found = app.database.skill_facts().version(&file.key, &version).await?;
    let (found, content) = found.ok_or_else(|| {
        ApiError::not_found(format!("Skill '{name}' has no version {version}"))
            .with_hint("old versions are removed; list the versions again")
    })?;
    let version = VersionItem::new(&app, found).await?;
    Ok(JsonResponse(VersionText { version, content }))
}
