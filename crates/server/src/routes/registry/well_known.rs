//! Serves tools that do not support this registry's own API: an index at a well-known address, and
//! the files that the index lists.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::Path,
    sync::Arc,
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, Method},
    response::Response,
    routing::get,
};
use savoir_package::archive;
use savoir_registry::{CachePolicy, CacheableResponse, PLAIN_ARCHIVE_DIGEST_KEY};
use savoir_store::registry::{Filter, Order, PackageName, SearchablePackage, VersionFacts};
use serde_json::{Value, json};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    artefacts::missing_blob,
    docs,
    error::{RegistryApiError, RegistryResult},
    extract::{PathParams, ReadAccess, registry},
    texts::{MARKDOWN, find_unblocked, has_tag},
};
use crate::app::App;

/// Maximum skills in the index: the most recently changed ones.
const MAX_LISTED_SKILLS: u64 = 1000;
/// Maximum bytes of the index that other tools accept.
const MAX_INDEX_BYTES: usize = 1_500_000;
/// Maximum bytes of one skill in the index, so that a skill with thousands of files does not crowd
/// out others.
const MAX_ENTRY_BYTES: usize = 100_000;
/// Number of skills that are read with one query.
const READ_BATCH: usize = 50;
/// The path at which other tools look for the index.
pub(super) const WELL_KNOWN: &str = "/.well-known/agent-skills/";
const MANIFEST: &str = "SKILL.md";
/// Maximum length of a name in the specification of skills.
const MAX_NAME_BYTES: usize = 64;

/// The route at the root of the server, where other tools look.
pub(in crate::routes) fn at_root() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(root_index))
}

/// The route below the registry, for clients that know its address.
pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(index))
}

/// Routes for the files of indexed skills. They are not in the OpenAPI document, which has no
/// wildcard paths.
pub(in crate::routes) fn files() -> Router<App> {
    let add_routes = |router: Router<App>, place: &str| {
        let folder = format!("{place}{WELL_KNOWN}");
        router
            .route(&format!("{folder}{{name}}/{{*path}}"), get(file))
            .route(&format!("{folder}{{name}}"), get(not_found))
            .route(&folder, get(not_found))
    };
    add_routes(add_routes(Router::new(), ""), super::REGISTRY_PATH)
}

/// The response for all other paths below the well-known address.
async fn not_found(State(app): State<App>, _: ReadAccess) -> RegistryApiError {
    not_found_error(&app)
}

fn not_found_error(app: &App) -> RegistryApiError {
    let base = super::registry_url(app);
    RegistryApiError::not_found(format!(
        "there is no such file; {base}{WELL_KNOWN}index.json has all names"
    ))
}

/// List the skills that changed last, as other tools read them.
///
/// The index of draft 0.2.0, with the files that clients of draft 0.1 ask for.
#[utoipa::path(
    get, path = "/.well-known/agent-skills/index.json", tag = "registry", operation_id = "well_known",
    responses(
        (status = 200, body = Value), docs::Invalid, docs::Unauthorized, docs::Unavailable
    )
)]
async fn index(
    State(app): State<App>,
    _: ReadAccess,
    (method, headers): (Method, HeaderMap),
) -> RegistryResult<Response> {
    Ok(build_index(&app).await?.respond(&method, &headers))
}

/// List the skills that changed last, as other tools read them.
///
/// The same index as that below the registry.
#[utoipa::path(
    get, path = "/.well-known/agent-skills/index.json", tag = "registry",
    operation_id = "well_known_at_root",
    responses(
        (status = 200, body = Value), docs::Invalid, docs::Unauthorized, docs::Unavailable
    )
)]
async fn root_index(
    State(app): State<App>,
    _: ReadAccess,
    (method, headers): (Method, HeaderMap),
) -> RegistryResult<Response> {
    Ok(build_index(&app).await?.respond(&method, &headers))
}

async fn build_index(app: &App) -> RegistryResult<CacheableResponse> {
    let recent = Order::Recent { since: None };
    let page = registry(app).list(&Filter::default(), recent, None, MAX_LISTED_SKILLS).await?;
    let names: Vec<PackageName> = page.items.into_iter().map(|item| item.package).collect();
    let (mut skills, mut bytes) = (BTreeMap::new(), 0);
    let base = super::registry_url(app);
    for some in names.chunks(READ_BATCH) {
        for found in registry(app).searchable_packages(some).await? {
            let Some(entry) = entry(&base, &found) else { continue };
            let length = entry.to_string().len();
            if length > MAX_ENTRY_BYTES || bytes + length > MAX_INDEX_BYTES {
                continue;
            }
            bytes += length;
            // Imported skills may share a short name. Then the index lists the first one in
            // alphabetical order, namespaces before the default one, not the most recent one.
            let package = found.summary.package;
            let rank = (package.namespace().is_default(), package.to_string());
            match skills.entry(package.short()) {
                Entry::Vacant(free) => drop(free.insert((rank, entry))),
                Entry::Occupied(mut taken) if rank < taken.get().0 => {
                    taken.insert((rank, entry));
                }
                Entry::Occupied(_) => {}
            }
        }
    }
    let skills: Vec<Value> = skills.into_values().map(|(_, entry)| entry).collect();
    let index = json!({
        "$schema": "https://schemas.agentskills.io/discovery/0.2.0/schema.json",
        "skills": skills,
    });
    Ok(CacheableResponse::new("application/json", CachePolicy::Minute, index.to_string()))
}

/// How other tools get a skill: the text if it is the only file, else an archive.
fn archive_or_text(facts: &VersionFacts) -> Option<(&'static str, &'static str, &str)> {
    match facts.files.as_slice() {
        [file] if file.path == MANIFEST => Some(("skill-md", MANIFEST, &file.sha256)),
        _ => Some(("archive", "skill.zip", facts.more.get(PLAIN_ARCHIVE_DIGEST_KEY)?.as_str()?)),
    }
}

/// A skill in the index; `None` if other tools would reject it.
fn entry(base: &str, found: &SearchablePackage) -> Option<Value> {
    let (package, latest) = (&found.summary.package, found.summary.latest.as_ref()?);
    // Other tools reject the whole list if one skill in it is invalid.
    if package.short().len() > MAX_NAME_BYTES || found.summary.description.trim().is_empty() {
        return None;
    }
    let (kind, file, digest) = archive_or_text(&found.facts)?;
    let files: Vec<&str> = found.facts.files.iter().map(|file| file.path.as_str()).collect();
    Some(json!({
        "name": package.short(),
        "type": kind,
        "description": found.summary.description,
        "url": format!("{base}/{package}/{latest}/{file}"),
        "digest": format!("sha256:{digest}"),
        "version": latest.to_string(),
        "files": files,
    }))
}

/// A file of the latest version of a skill, by the name of the skill in the index.
async fn file(
    State(app): State<App>,
    _: ReadAccess,
    PathParams((short, path)): PathParams<(String, String)>,
    (method, headers): (Method, HeaderMap),
) -> RegistryResult<Response> {
    let not_found = || not_found_error(&app);
    if short.len() > MAX_NAME_BYTES {
        return Err(not_found());
    }
    let named = registry(&app).by_short_name(&short).await?;
    let (package, latest) = named.ok_or_else(not_found)?;
    let known = find_unblocked(&app, &package, &latest).await?;
    let file = known.facts.files.iter().find(|file| file.path == path).ok_or_else(not_found)?;
    let bytes = if has_tag(&headers, &file.sha256) {
        Vec::new()
    } else if path == MANIFEST {
        let text = registry(&app).blob(&known.skill_md).await?;
        text.ok_or_else(|| missing_blob(&known.skill_md))?.into()
    } else {
        // Only one archive at a time, because each is in memory as a whole.
        let alone = Arc::clone(&app.registry_state.packing_lock).lock_owned().await;
        let bytes =
            registry(&app).blob(&known.sha256).await?.ok_or_else(|| missing_blob(&known.sha256))?;
        let unpacked = tokio::task::spawn_blocking(move || {
            let _alone = alone;
            file_in_archive(&bytes, &path)
        });
        unpacked.await.map_err(|error| RegistryApiError::failed(&error))??
    };
    // Browsers must not execute a file of a skill.
    let is_text = Path::new(&file.path).extension().is_some_and(|end| end == "md");
    let kind = if is_text { MARKDOWN } else { "application/octet-stream" };
    Ok(CacheableResponse::with_etag(kind, CachePolicy::Minute, &file.sha256, bytes)
        .respond(&method, &headers))
}

fn file_in_archive(bytes: &[u8], path: &str) -> RegistryResult<Vec<u8>> {
    let unpacked = archive::unpack(bytes).and_then(archive::one_skill);
    let (_, skill) = unpacked.map_err(|error| RegistryApiError::failed(&error))?;
    let missing_blob = || RegistryApiError::failed(&format!("an archive has no {path}"));
    skill.get(path).map(|file| file.bytes.clone()).ok_or_else(missing_blob)
}
