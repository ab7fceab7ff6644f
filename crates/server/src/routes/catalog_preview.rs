//! Shows a skill of the catalog before it is installed.

use std::collections::{BTreeMap, BTreeSet};

use axum::{Json as JsonResponse, extract::State};
use bytes::Bytes;
use savoir_package::Tree;
use savoir_skill::{Source, dialect::agent_flow::without_owner, read};
use savoir_store::Resource;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    catalog::{self, CatalogSkillRequest, FetchedSkill},
    docs,
};
use crate::{
    app::App,
    auth::{Authenticated, Caller, Json},
    error::{ApiError, ApiResult},
    insight::{PermissionView, permissions},
    personal::{ResourceSelection, digest, from_tree},
    skill_scan::{self, FindingView},
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(preview))
}

/// A skill of the catalog and, if it is installed, what an update would change.
#[derive(Debug, Serialize, ToSchema)]
struct CatalogPreview {
    name: String,
    /// The text of SKILL.md.
    text: String,
    files: Vec<PreviewFile>,
    permissions: Vec<PermissionView>,
    /// `allow`, `review` or `block`
    verdict: &'static str,
    findings: Vec<FindingView>,
    /// Your installed copy.
    installed: Option<InstalledCopy>,
}

#[derive(Debug, Serialize, ToSchema)]
struct PreviewFile {
    path: String,
    size: usize,
}

#[derive(Debug, Serialize, ToSchema)]
struct InstalledCopy {
    name: String,
    text: String,
    /// Whether the copy was edited after its installation.
    edited: bool,
    /// What an update would change, besides the text of SKILL.md.
    difference: UpdateDifference,
}

/// What an update would change.
#[derive(Debug, Default, Serialize, ToSchema)]
struct UpdateDifference {
    files: Vec<FileDifference>,
    permissions_added: Vec<PermissionView>,
    permissions_removed: Vec<PermissionView>,
}

/// A file that an update would add, change or remove.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
struct FileDifference {
    path: String,
    /// `added`, `changed` or `removed`
    change: &'static str,
    /// The current size in bytes.
    before: Option<usize>,
    after: Option<usize>,
}

impl FileDifference {
    /// The differences between the files of two versions, sorted by path.
    fn between(before: &[Resource], after: &[Resource]) -> Vec<Self> {
        let by_path = |resources: &[Resource]| -> BTreeMap<String, Bytes> {
            let files = resources.iter();
            files.map(|file| (file.path.clone(), file.bytes.clone())).collect()
        };
        let (before, after) = (by_path(before), by_path(after));
        let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let compare = |path: &String| {
            let (was, is) = (before.get(path), after.get(path));
            let change = match (was, is) {
                (None, _) => "added",
                (_, None) => "removed",
                (Some(was), Some(is)) if was != is => "changed",
                _ => return None,
            };
            let (before, after) = (was.map(Bytes::len), is.map(Bytes::len));
            Some(Self { path: path.clone(), change, before, after })
        };
        paths.into_iter().filter_map(compare).collect()
    }
}

/// Show what a skill of the catalog would bring, without installing it.
#[utoipa::path(
    post, path = "/skills/catalog/preview", tag = "catalog", security(("bearer" = [])),
    request_body = CatalogSkillRequest,
    responses(
        (status = 200, body = CatalogPreview), docs::BadRequest, docs::Unauthorized, docs::NotFound,
        docs::TooLarge, docs::InvalidBody, docs::TooManyRequests,
        (status = 502, description = "The source did not answer.", body = docs::Detail)
    )
)]
async fn preview(
    State(app): State<App>,
    authenticated: Authenticated<Json<CatalogSkillRequest>>,
) -> ApiResult<JsonResponse<CatalogPreview>> {
    let Authenticated { caller, body: Json(wanted) } = authenticated;
    let FetchedSkill { name, source_id, tree, .. } = catalog::fetch(&app, &wanted).await?;
    let describing = tokio::task::spawn_blocking(move || {
        // Files that cannot be stored are shown, but not compared.
        let package = from_tree(Some(&name), &tree, ResourceSelection::All).ok();
        (describe(name, &tree), package)
    });
    let described = describing.await;
    let (described, package) =
        described.map_err(|error| ApiError::internal("The scan failed", &error))?;
    let resources = package.map(|package| package.resources).unwrap_or_default();
    let installed =
        installed_copy(&app, &caller, &source_id, &resources, &described.permissions).await?;
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
        findings: skill_scan::explain(&report),
        installed: None,
        text,
    }
}

async fn installed_copy(
    app: &App,
    caller: &Caller,
    source_id: &str,
    coming: &[Resource],
    coming_permissions: &[PermissionView],
) -> ApiResult<Option<InstalledCopy>> {
    let installed = catalog::installed(app, caller).await?;
    let Some(copy) = installed.get(source_id) else { return Ok(None) };
    let Some(kept) = app.skills.personal_one(caller, &copy.name).await? else { return Ok(None) };
    let writer = app.skills.skill_writer();
    let resources = writer.resources(&kept.file.key).await?;
    let now = digest(&kept.file.text, &resources);
    let text = without_owner(&kept.file.text);
    let own = permissions(&read(Source::new(text.clone()), None).skill);
    Ok(Some(InstalledCopy {
        name: copy.name.clone(),
        edited: copy.digest.as_ref() != Some(&now),
        difference: UpdateDifference {
            files: FileDifference::between(&resources, coming),
            permissions_added: missing_in(&own, coming_permissions),
            permissions_removed: missing_in(coming_permissions, &own),
        },
        text,
    }))
}

/// The permissions of the second list that the first one does not have.
fn missing_in(known: &[PermissionView], all: &[PermissionView]) -> Vec<PermissionView> {
    let is_new =
        |one: &&PermissionView| !known.iter().any(|other| other.permission == one.permission);
    all.iter().filter(is_new).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_differences_are_sorted_and_leave_out_equal_files() {
        let file = |path: &str, text: &'static str| Resource {
            path: path.to_owned(),
            bytes: Bytes::from_static(text.as_bytes()),
            executable: false,
        };
        let before = [file("a.md", "a"), file("b.md", "b"), file("c.md", "c")];
        let after = [file("d.md", "dd"), file("b.md", "other"), file("c.md", "c")];
        let change = |path: &str, change, before, after| FileDifference {
            path: path.to_owned(),
            change,
            before,
            after,
        };
        assert_eq!(
            FileDifference::between(&before, &after),
            [
                change("a.md", "removed", Some(1), None),
                change("b.md", "changed", Some(1), Some(5)),
                change("d.md", "added", None, Some(2)),
            ]
        );
    }
}
