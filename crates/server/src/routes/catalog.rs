//! Catalog routes: skills in repositories that administrators configure.

use std::collections::{HashMap, HashSet};

use axum::{
    Json as JsonResponse,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use futures::future::join_all;
use savoir_package::Tree;
use savoir_scan::{Finding, Verdict};
use savoir_skill::dialect::personal_agent::Provenance;
use savoir_store::{CatalogSource, NewCatalogSource, SkillFacts, Timestamp, name_of_key};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{docs, personal};
use crate::{
    app::App,
    auth::{Authenticated, Caller, Json},
    body::{Members, Shape, ShapeError, Text},
    error::{ApiError, ApiResult},
    params::Path,
    personal::{
        ConflictReason, ImportedSkill, Item, Package, ReplacedSkill, ResourceSelection,
        SkillToStore, StoreSkillError, StoredSkill,
        catalog::{FetchError, ListedSkill, Repository},
        digest, from_tree,
    },
};

/// Maximum findings in the error for a rejected skill.
const MAX_FINDINGS: usize = 20;
/// Maximum number of sources.
const MAX_SOURCES: usize = 100;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(browse))
        .routes(routes!(install))
        .routes(routes!(list, add))
        .routes(routes!(replace, remove))
}

/// The skills of all sources.
#[derive(Debug, Serialize, ToSchema)]
struct CatalogListing {
    items: Vec<CatalogItem>,
    /// Sources that did not respond.
    errors: Vec<SourceFailure>,
}

/// A skill of the catalog.
#[derive(Debug, Serialize, ToSchema)]
struct CatalogItem {
    source_id: String,
    label: String,
    repo: String,
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// The folder in the repository; empty for the root.
    folder: String,
    name: String,
    description: String,
    /// The Git object id of SKILL.md.
    sha: String,
    installed: bool,
    /// The name of your installed copy.
    installed_as: Option<String>,
    update_available: bool,
}

/// A skill that was installed from the catalog.
pub(super) struct Installed {
    pub(super) name: String,
    version: Option<String>,
    /// The digest of the files after the installation.
    pub(super) digest: Option<String>,
}

/// A source that did not respond.
#[derive(Debug, Serialize, ToSchema)]
struct SourceFailure {
    source_id: String,
    label: String,
    error: String,
}

/// Browse the skills of all sources.
#[utoipa::path(
    get, path = "/skills/catalog", tag = "catalog", security(("bearer" = [])),
    responses((status = 200, body = CatalogListing), docs::Unauthorized, docs::TooManyRequests)
)]
async fn browse(
    State(app): State<App>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<CatalogListing>> {
    let mut sources = app.database.catalog_sources().list().await?;
    sources.retain(|source| source.enabled);
    let installed = installed(&app, &authenticated.caller).await?;
    let answers = join_all(sources.iter().map(|source| app.catalog.list(source))).await;
    let mut shelves = CatalogListing { items: Vec::new(), errors: Vec::new() };
    for (source, answer) in sources.iter().zip(answers) {
        let repository = app.catalog.repository(&source.repo_url, source.reference.as_deref());
        match (answer, repository) {
            (Ok(listed), Ok(repository)) => {
                let item = |listed| CatalogItem::new(source, &repository, listed, &installed);
                shelves.items.extend(listed.iter().map(item));
            }
            (Err(error), _) => shelves.fail(source, error),
            (_, Err(error)) => shelves.fail(source, error.to_string()),
        }
    }
    Ok(JsonResponse(shelves))
}

impl CatalogListing {
    fn fail(&mut self, source: &CatalogSource, error: String) {
        tracing::warn!(source = source.id, error, "a catalog source did not respond");
        let (source_id, label) = (source.id.clone(), source.label.clone());
        self.errors.push(SourceFailure { source_id, label, error });
    }
}

impl CatalogItem {
    fn new(
        source: &CatalogSource,
        repository: &Repository,
        listed: &ListedSkill,
        installed: &HashMap<String, Installed>,
    ) -> Self {
        let own = installed.get(&repository.skill_id(&listed.folder));
        Self {
            source_id: source.id.clone(),
            label: source.label.clone(),
            repo: repository.name.clone(),
            reference: source.reference.clone(),
            folder: listed.folder.clone(),
            name: listed.offer.name.clone(),
            description: listed.offer.description.clone().unwrap_or_default(),
            sha: listed.sha.clone(),
            installed: own.is_some(),
            installed_as: own.map(|own| own.name.clone()),
            update_available: own.is_some_and(|own| own.version.as_ref() != Some(&listed.sha)),
        }
    }
}

/// The skills of a user that came from the catalog, by source id.
pub(super) async fn installed(app: &App, caller: &Caller) -> ApiResult<HashMap<String, Installed>> {
    let noted = app.database.skill_facts().all().await?;
    let names = app.skills.skill_writer().files().keys().await?;
    let names: HashSet<&str> = names.iter().map(String::as_str).collect();
    let own = noted.into_iter().filter(|(name, facts)| {
        facts.source == Provenance::Catalog
            && facts.owner == Some(caller.owner_id())
            && names.contains(name.as_str())
    });
    let installed = own.filter_map(|(name, facts)| {
        let name = name_of_key(&name).to_owned();
        Some((
            facts.source_id?,
            Installed { name, version: facts.source_version, digest: facts.digest },
        ))
    });
    Ok(installed.collect())
}

/// A skill of the catalog.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct CatalogSkillRequest {
    #[schema(min_length = 1)]
    source_id: String,
    /// The folder in the repository; empty for the root.
    folder: String,
    /// Whether to replace your own skill even if it was edited here. Default: false.
    overwrite: Option<bool>,
}

impl Shape for CatalogSkillRequest {
    fn read(members: &mut Members) -> Self {
        Self {
            source_id: members.text("source_id", Text::SOME),
            folder: members.text("folder", Text::ANY),
            overwrite: members.value("overwrite").is_some().then(|| members.boolean("overwrite")),
        }
    }
}

/// Install a skill from the catalog, or update it. It is disabled until a user enables it.
///
/// A skill that was edited here is not replaced (409) unless `overwrite` is true.
#[utoipa::path(
    post, path = "/skills/catalog/install", tag = "catalog", security(("bearer" = [])),
    request_body = CatalogSkillRequest,
    responses(
        (status = 201, description = "It is new, and disabled.", body = Item),
        (status = 200, description = "It took the place of an older version.", body = Item),
        docs::BadRequestField, docs::Unauthorized, docs::NotFound, docs::ConflictingField,
        docs::TooLarge, docs::InvalidBody, docs::TooManyRequests,
        (status = 502, description = "The source did not answer.", body = docs::Detail)
    )
)]
async fn install(
    State(app): State<App>,
    authenticated: Authenticated<Json<CatalogSkillRequest>>,
) -> ApiResult<Response> {
    let Authenticated { caller, body: Json(wanted) } = authenticated;
    let FetchedSkill { name, source_id, sha, tree } = fetch(&app, &wanted).await?;
    let package = checked(tree, name).await?;
    let arrival = ImportedSkill {
        package,
        owner: Some(caller.owner_id()),
        source: Provenance::Catalog,
        source_id,
    };
    let settled = store(&app, arrival, sha, wanted.overwrite.unwrap_or(false)).await;
    let settled = settled.map_err(|error| personal::store_error(&error))?;
    let status = if settled.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let paths = app.skills.skill_writer().paths(&settled.file.key).await?;
    Ok((status, JsonResponse(Item::new(&settled.file, &settled.facts, paths))).into_response())
}

/// The files of a skill of the catalog.
pub(super) struct FetchedSkill {
    /// The name of its folder.
    pub(super) name: String,
    /// Its id among the skills of all sources.
    pub(super) source_id: String,
    /// The Git object id of SKILL.md.
    sha: String,
    pub(super) tree: Tree,
}

pub(super) async fn fetch(app: &App, wanted: &CatalogSkillRequest) -> ApiResult<FetchedSkill> {
    let folder = &wanted.folder;
    let source = app.database.catalog_sources().get(&wanted.source_id).await?;
    let source = source.filter(|source| source.enabled);
    let source = source.ok_or_else(|| ApiError::not_found("Catalog source not found"))?;
    let repository = app.catalog.repository(&source.repo_url, source.reference.as_deref());
    let repository = repository.map_err(|error| ApiError::bad_request(error.to_string()))?;
    let listed = app.catalog.list(&source).await.map_err(unreachable)?;
    let listed = listed.iter().find(|listed| listed.folder == *folder).cloned();
    let listed = listed.ok_or_else(|| ApiError::not_found("Catalog skill not found"))?;
    let tree = app.catalog.fetch(&listed).await.map_err(|why| match why {
        FetchError::NoAnswer(why) => unreachable(why),
        FetchError::Rejected(why) => refused(folder, &why),
    })?;
    let name = folder.rsplit('/').next().filter(|name| !name.is_empty());
    Ok(FetchedSkill {
        name: name.unwrap_or_else(|| repository.root_skill_name()).to_owned(),
        source_id: repository.skill_id(folder),
        sha: listed.sha,
        tree,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "it is the way of an error")]
fn unreachable(why: String) -> ApiError {
    ApiError::plain(StatusCode::BAD_GATEWAY, format!("The source did not respond: {why}"))
}

/// The error for files that are not a valid skill.
fn refused(folder: &str, why: &str) -> ApiError {
    let place = vec![json!("body"), json!("folder")];
    let message = format!("The skill is refused: {why}");
    ApiError::shape(vec![ShapeError::new("value_error", place, message, json!(folder))])
}

/// Reads and scans a skill on a blocking thread.
async fn checked(tree: Tree, called: String) -> ApiResult<Package> {
    let work = move || {
        let report = tree.scan();
        if report.verdict == Verdict::Block {
            return Err(blocked(&report.findings));
        }
        from_tree(Some(&called), &tree, ResourceSelection::All)
            .map_err(|error| personal::unfit(&error))
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ApiError::internal("Failed to install skill", &error))?
}

/// The error for a skill that the scan blocks.
fn blocked(findings: &[Finding]) -> ApiError {
    let blocking: Vec<_> = findings.iter().filter(|finding| finding.blocks()).collect();
    let findings_json: Vec<_> = blocking
        .iter()
        .take(MAX_FINDINGS)
        .map(|finding| {
            json!({"rule": finding.rule.id, "path": finding.path, "line": finding.line,
                   "message": finding.message})
        })
        .collect();
    let message = "The skill does what harmful skills do; it is not installed";
    ApiError::field(StatusCode::BAD_REQUEST, "content", message).with_findings(findings_json)
}

async fn store(
    app: &App,
    arrival: ImportedSkill,
    version: String,
    overwrite: bool,
) -> Result<StoredSkill, StoreSkillError> {
    let id = arrival.source_id.clone();
    let decide = move |new: &SkillToStore| {
        let fresh = SkillFacts {
            enabled: false,
            source: Provenance::Catalog,
            source_id: Some(id.clone()),
            source_version: Some(version.clone()),
            digest: Some(digest(&new.text, &new.resources)),
            ..SkillFacts::authored(None, Timestamp::now())
        };
        move |before: Option<&ReplacedSkill>| renewed(before, fresh, overwrite)
    };
    app.skills.skill_writer().store_import(arrival, decide).await
}

/// The metadata of a skill of the catalog. Fails if the skill must not replace the existing one.
fn renewed(
    before: Option<&ReplacedSkill>,
    fresh: SkillFacts,
    overwrite: bool,
) -> Result<SkillFacts, ConflictReason> {
    let Some(before) = before else { return Ok(fresh) };
    let was = &before.facts;
    if was.source != Provenance::Catalog || was.source_id != fresh.source_id {
        return Err(ConflictReason::There);
    }
    if !overwrite && !before.is_untouched(&fresh) {
        return Err(ConflictReason::Changed);
    }
    // The user enabled the existing files, so changed files are disabled again.
    let enabled = was.enabled && before.is_already(&fresh);
    Ok(SkillFacts { enabled, pinned: was.pinned, last_used: was.last_used, ..fresh })
}

/// A repository of the catalog.
#[derive(Debug, Serialize, ToSchema)]
struct SourceItem {
    id: String,
    label: String,
    repo_url: String,
    #[serde(rename = "ref")]
    reference: Option<String>,
    enabled: bool,
}

impl From<CatalogSource> for SourceItem {
    fn from(source: CatalogSource) -> Self {
        let CatalogSource { id, label, repo_url, reference, enabled } = source;
        Self { id, label, repo_url, reference, enabled }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct SourceList {
    items: Vec<SourceItem>,
}

/// A repository for the catalog.
#[derive(Debug, Deserialize, ToSchema)]
struct SourceBody {
    #[schema(min_length = 1, max_length = 255)]
    label: String,
    /// `https://github.com/owner/repo`, or another that the operator allows.
    #[schema(min_length = 1, max_length = 1024)]
    repo_url: String,
    /// A branch, a tag or a commit; the default branch if there is none.
    #[serde(rename = "ref")]
    #[schema(max_length = 255)]
    reference: Option<String>,
    /// Default: true.
    enabled: Option<bool>,
}

impl Shape for SourceBody {
    fn read(members: &mut Members) -> Self {
        Self {
            label: members.text("label", Text::between(1, 255)),
            repo_url: members.text("repo_url", Text::between(1, 1024)),
            reference: members.optional_text("ref", Text::between(0, 255)),
            enabled: members.value("enabled").is_some().then(|| members.boolean("enabled")),
        }
    }
}

impl SourceBody {
    fn check(self, app: &App) -> ApiResult<NewCatalogSource> {
        let reference = self.reference.filter(|reference| !reference.is_empty());
        let wrong =
            |field: &str, message: String| ApiError::field(StatusCode::BAD_REQUEST, field, message);
        if reference.as_ref().is_some_and(|text| {
            text.starts_with('-') || text.contains(|c: char| c.is_control() || c.is_whitespace())
        }) {
            return Err(wrong(
                "ref",
                "It is not the name of a branch, a tag or a commit".to_owned(),
            ));
        }
        let repository = app.catalog.repository(&self.repo_url, reference.as_deref());
        repository.map_err(|error| wrong("repo_url", error.to_string()))?;
        Ok(NewCatalogSource {
            label: self.label,
            repo_url: self.repo_url,
            reference,
            enabled: self.enabled.unwrap_or(true),
        })
    }
}

/// List the repositories of the catalog.
#[utoipa::path(
    get, path = "/admin/skill-catalog", tag = "catalog", security(("bearer" = [])),
    responses((status = 200, body = SourceList), docs::Unauthorized, docs::Forbidden, docs::TooManyRequests)
)]
async fn list(
    State(app): State<App>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<SourceList>> {
    authenticated.caller.check_admin()?;
    let sources = app.database.catalog_sources().list().await?;
    Ok(JsonResponse(SourceList { items: sources.into_iter().map(Into::into).collect() }))
}

/// Add a repository to the catalog.
#[utoipa::path(
    post, path = "/admin/skill-catalog", tag = "catalog", security(("bearer" = [])),
    request_body = SourceBody,
    responses(
        (status = 201, body = SourceItem), docs::BadRequestField, docs::Unauthorized, docs::Forbidden,
        docs::Conflict, docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn add(
    State(app): State<App>,
    authenticated: Authenticated<Json<SourceBody>>,
) -> ApiResult<(StatusCode, JsonResponse<SourceItem>)> {
    let Authenticated { caller, body: Json(body) } = authenticated;
    caller.check_admin()?;
    let new = body.check(&app)?;
    let sources = app.database.catalog_sources();
    if sources.list().await?.len() >= MAX_SOURCES {
        return Err(ApiError::conflict(format!("There are {MAX_SOURCES} sources already")));
    }
    let added = sources.add(&new).await?;
    tracing::info!(source = added.id, by = caller.user.id, "a source of the catalog was added");
    Ok((StatusCode::CREATED, JsonResponse(added.into())))
}

/// Replace a repository of the catalog.
#[utoipa::path(
    put, path = "/admin/skill-catalog/{id}", tag = "catalog", security(("bearer" = [])),
    params(("id" = String, Path, description = "The source")), request_body = SourceBody,
    responses(
        (status = 200, body = SourceItem), docs::BadRequestField, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn replace(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated<Json<SourceBody>>,
) -> ApiResult<JsonResponse<SourceItem>> {
    let Authenticated { caller, body: Json(body) } = authenticated;
    caller.check_admin()?;
    let new = body.check(&app)?;
    let replaced = app.database.catalog_sources().replace(&id, &new).await?;
    let replaced = replaced.ok_or_else(|| ApiError::not_found("Catalog source not found"))?;
    app.catalog.clear_cache();
    Ok(JsonResponse(replaced.into()))
}

/// Remove a repository from the catalog. Skills that came from it stay.
#[utoipa::path(
    delete, path = "/admin/skill-catalog/{id}", tag = "catalog", security(("bearer" = [])),
    params(("id" = String, Path, description = "The source")),
    responses(
        (status = 204, description = "Deleted"), docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooManyRequests
    )
)]
async fn remove(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<StatusCode> {
    authenticated.caller.check_admin()?;
    let removed = app.database.catalog_sources().remove(&id).await?;
    if removed {
        app.catalog.clear_cache();
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::not_found("Catalog source not found"))
    }
}
