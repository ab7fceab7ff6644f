//! What a skill of the catalogue would bring, before it is installed.

use axum::{Json as JsonResponse, extract::State};
use savoir_package::Tree;
use savoir_scan::Report;
use savoir_skill::{Source, dialect::agent_flow::without_owner, read};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    catalog::{self, FetchedSkill, Wanted},
    docs,
};
use crate::{
    app::App,
    auth::{Authenticated, Caller, Json},
    error::{ApiError, ApiResult},
    insight::{PermissionView, permissions},
    personal::digest,
};

/// Maximum findings in one answer.
const MAX_FINDINGS: usize = 100;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(preview))
}

/// What a skill of the catalogue would bring.
#[derive(Debug, Serialize, ToSchema)]
struct CatalogPreview {
    name: String,
    /// Its SKILL.md.
    text: String,
    files: Vec<PreviewFile>,
    permissions: Vec<PermissionView>,
    /// `allow`, `review` or `block`
    verdict: &'static str,
    findings: Vec<PreviewFinding>,
    /// Your installed copy.
    installed: Option<InstalledCopy>,
}

#[derive(Debug, Serialize, ToSchema)]
struct PreviewFile {
    path: String,
    size: usize,
}

/// Something that the scan found.
#[derive(Debug, Serialize, ToSchema)]
struct PreviewFinding {
    rule: &'static str,
    severity: String,
    blocks: bool,
    file: String,
    line: usize,
    message: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct InstalledCopy {
    name: String,
    text: String,
    /// Whether it was edited here after its installation.
    edited: bool,
}

/// Show what a skill of the catalogue would bring, without installing it.
#[utoipa::path(
    post, path = "/skills/catalog/preview", tag = "catalog", security(("bearer" = [])),
    request_body = Wanted,
    responses(
        (status = 200, body = CatalogPreview), docs::Bad, docs::Unauthorized, docs::Missing,
        docs::TooLarge, docs::BadShape, docs::TooMany,
        (status = 502, description = "The source did not answer.", body = docs::Detail)
    )
)]
async fn preview(
    State(app): State<App>,
    authenticated: Authenticated<Json<Wanted>>,
) -> ApiResult<JsonResponse<CatalogPreview>> {
    let Authenticated { caller, body: Json(wanted) } = authenticated;
    let FetchedSkill { name, source_id, tree, .. } = catalog::fetch(&app, &wanted).await?;
    let installed = installed_copy(&app, &caller, &source_id).await?;
    let describing = tokio::task::spawn_blocking(move || describe(name, &tree));
    let described = describing.await;
    let described = described.map_err(|error| ApiError::internal("The scan failed", &error))?;
    Ok(JsonResponse(CatalogPreview { installed, ..described }))
}

fn describe(name: String, tree: &Tree) -> CatalogPreview {
    let text = tree.get("SKILL.md").map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
    let text = text.unwrap_or_default();
    let reading = read(Source::new(text.clone()), None);
    let report = tree.scan();
    let files = tree
        .files()
        .map(|(path, file)| PreviewFile { path: path.to_owned(), size: file.bytes.len() });
    CatalogPreview {
        name: if reading.skill.name.is_empty() { name } else { reading.skill.name.clone() },
        files: files.collect(),
        permissions: permissions(&reading.skill),
        verdict: report.verdict.as_str(),
        findings: findings(&report),
        installed: None,
        text,
    }
}

fn findings(report: &Report) -> Vec<PreviewFinding> {
    let told = report.findings.iter().take(MAX_FINDINGS).map(|finding| PreviewFinding {
        rule: finding.rule.id,
        severity: finding.severity.as_str().to_owned(),
        blocks: finding.blocks(),
        file: finding.path.clone(),
        line: finding.line,
        message: finding.message.clone(),
    });
    told.collect()
}

async fn installed_copy(
    app: &App,
    caller: &Caller,
    source_id: &str,
) -> ApiResult<Option<InstalledCopy>> {
    let installed = catalog::installed(app, caller).await?;
    let Some(copy) = installed.get(source_id) else { return Ok(None) };
    let Some(kept) = app.skills.personal_one(caller, &copy.name).await? else { return Ok(None) };
    let writer = app.skills.skill_writer();
    let now = digest(&kept.file.text, &writer.resources(&kept.file.key).await?);
    Ok(Some(InstalledCopy {
        name: copy.name.clone(),
        text: without_owner(&kept.file.text),
        edited: copy.digest.as_ref() != Some(&now),
    }))
}
