//! Routes for texts of skills at skillrt's addresses, and for archives without a folder.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, Method, Uri, header},
    response::Response,
};
use savoir_package::archive;
use savoir_registry::{
    CachePolicy, CacheableResponse, PLAIN_ARCHIVE_DIGEST_KEY, matches_if_none_match,
};
use savoir_store::registry::{PackageName, PackageVersion};
use semver::Version;
use serde_json::Value;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    artefacts::{ArtefactBody, CHUNK_BYTES, missing_blob},
    docs,
    error::{RegistryApiError, RegistryResult},
    extract::{PathParams, ReadAccess, parse_package, parse_version, registry},
    respond_and_cache,
};
use crate::app::App;

pub(super) const MARKDOWN: &str = "text/markdown; charset=utf-8";

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(flat))
        .routes(routes!(anonymous))
        .routes(routes!(in_namespace))
        .routes(routes!(plain_flat))
        .routes(routes!(plain_in_namespace))
}

/// Show the SKILL.md of a version.
#[utoipa::path(
    get, path = "/{name}/{version}/SKILL.md", tag = "registry", operation_id = "text",
    params(
        ("name" = String, Path, description = "The skill"),
        ("version" = String, Path, description = "The version"),
    ),
    responses(docs::Markdown, docs::Invalid, docs::Unauthorized, docs::NotFound, docs::Unavailable)
)]
async fn flat(
    State(app): State<App>,
    _: ReadAccess,
    PathParams((name, version)): PathParams<(String, String)>,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> RegistryResult<Response> {
    let answer = text(&app, &parse_package(None, &name)?, &version, &uri).await?;
    Ok(answer.respond(&method, &headers))
}

/// Show a text without frontmatter by the SHA-256 of its bytes: skillrt's address of prose.
#[utoipa::path(
    get, path = "/anon/{sha256}/SKILL.md", tag = "registry", operation_id = "anonymous_text",
    params(("sha256" = String, Path, description = "The digest of the text, in hexadecimal digits")),
    responses(docs::Markdown, docs::Invalid, docs::Unauthorized, docs::NotFound, docs::Unavailable)
)]
async fn anonymous(
    State(app): State<App>,
    _: ReadAccess,
    PathParams(sha256): PathParams<String>,
    (method, headers): (Method, HeaderMap),
) -> RegistryResult<Response> {
    let sha256 = sha256.to_ascii_lowercase();
    if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(RegistryApiError::invalid("give the SHA-256 as 64 hexadecimal digits"));
    }
    let missing = || RegistryApiError::not_found(format!("there is no text {sha256} here"));
    let (package, version) = registry(&app).anonymous_text(&sha256).await?.ok_or_else(missing)?;
    let known = find_unblocked(&app, &package, &version).await?;
    let bytes = registry(&app).blob(&known.skill_md).await?;
    let bytes = bytes.ok_or_else(|| missing_blob(&known.skill_md))?;
    let answer =
        CacheableResponse::with_etag(MARKDOWN, CachePolicy::Immutable, &known.skill_md, bytes);
    Ok(answer.respond(&method, &headers))
}

/// Show the SKILL.md of a version of a skill in a namespace. Texts without a SKILL.md are in
/// `anon`.
#[utoipa::path(
    get, path = "/{namespace}/{name}/{version}/SKILL.md", tag = "registry",
    operation_id = "text_in",
    params(
        ("namespace" = String, Path, description = "The namespace"),
        ("name" = String, Path, description = "The skill"),
        ("version" = String, Path, description = "The version"),
    ),
    responses(docs::Markdown, docs::Invalid, docs::Unauthorized, docs::NotFound, docs::Unavailable)
)]
async fn in_namespace(
    State(app): State<App>,
    _: ReadAccess,
    PathParams((namespace, name, version)): PathParams<(String, String, String)>,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> RegistryResult<Response> {
    let answer = text(&app, &parse_package(Some(&namespace), &name)?, &version, &uri).await?;
    Ok(answer.respond(&method, &headers))
}

async fn text(
    app: &App,
    name: &PackageName,
    number: &str,
    uri: &Uri,
) -> RegistryResult<CacheableResponse> {
    let number = parse_version(number)?;
    respond_and_cache(app, uri, name, None, async {
        let known = find_unblocked(app, name, &number).await?;
        let bytes = registry(app).blob(&known.skill_md).await?;
        let missing_blob =
            || RegistryApiError::failed(&format!("the SKILL.md of {name} {number} is lost"));
        let bytes = bytes.ok_or_else(missing_blob)?;
        Ok(CacheableResponse::with_etag(MARKDOWN, CachePolicy::Immutable, &known.skill_md, bytes))
    })
    .await
}

/// A version, unless it is blocked: like downloads, blocked versions are not served to new users.
/// Users with a lockfile still get the archive by its digest.
pub(super) async fn find_unblocked(
    app: &App,
    name: &PackageName,
    number: &Version,
) -> RegistryResult<PackageVersion> {
    let known = registry(app).version(name, number).await?;
    match known.why_blocked() {
        None => Ok(known),
        Some(why) => Err(RegistryApiError::not_found(format!("{name} {number} is blocked: {why}"))),
    }
}

/// Download a version as an archive without a top-level folder, as listed in the well-known index.
#[utoipa::path(
    get, path = "/{name}/{version}/skill.zip", tag = "registry",
    params(
        ("name" = String, Path, description = "The skill"),
        ("version" = String, Path, description = "The version"),
    ),
    responses(docs::Archive, docs::Invalid, docs::Unauthorized, docs::NotFound, docs::Unavailable)
)]
async fn plain_flat(
    State(app): State<App>,
    _: ReadAccess,
    PathParams((name, version)): PathParams<(String, String)>,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> RegistryResult<Response> {
    plain(&app, &parse_package(None, &name)?, &version, (method, uri, headers)).await
}

/// Download a version of a skill in a namespace as an archive without a top-level folder.
#[utoipa::path(
    get, path = "/{namespace}/{name}/{version}/skill.zip", tag = "registry",
    params(
        ("namespace" = String, Path, description = "The namespace"),
        ("name" = String, Path, description = "The skill"),
        ("version" = String, Path, description = "The version"),
    ),
    responses(docs::Archive, docs::Invalid, docs::Unauthorized, docs::NotFound, docs::Unavailable)
)]
async fn plain_in_namespace(
    State(app): State<App>,
    _: ReadAccess,
    PathParams((namespace, name, version)): PathParams<(String, String, String)>,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> RegistryResult<Response> {
    plain(&app, &parse_package(Some(&namespace), &name)?, &version, (method, uri, headers)).await
}

async fn plain(
    app: &App,
    name: &PackageName,
    number: &str,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> RegistryResult<Response> {
    let number = parse_version(number)?;
    let known = find_unblocked(app, name, &number).await?;
    let digest =
        known.facts.more.get(PLAIN_ARCHIVE_DIGEST_KEY).and_then(Value::as_str).map(str::to_owned);
    let large = known.facts.files.iter().map(|file| file.size).sum::<u64>() > CHUNK_BYTES;
    let counts = method == Method::GET && !headers.contains_key(header::RANGE);
    let response = if let Some(sha256) = digest.filter(|_| large) {
        let size = if has_tag(&headers, &sha256) {
            0
        } else {
            store_repacked(app, &known.sha256, &sha256).await?
        };
        let artefact = ArtefactBody { sha256: &sha256, size, caching: CachePolicy::Immutable };
        artefact.send(app.clone(), &method, &headers).await?
    } else {
        let packing = async {
            // Check again after the refresh: only a version that is not blocked may be cached.
            let known = find_unblocked(app, name, &number).await?;
            let packed = repack(app, &known.sha256).await?;
            Ok(CacheableResponse::new("application/zip", CachePolicy::Immutable, packed)
                .with_ranges())
        };
        let answer = respond_and_cache(app, &uri, name, Some(&number), packing).await?;
        answer.respond(&method, &headers)
    };
    if counts && response.status().is_success() {
        app.registry_state.downloads.count(name, &number);
    }
    Ok(response)
}

/// Repacks an archive without its top-level folder.
async fn repack(app: &App, artefact: &str) -> RegistryResult<Vec<u8>> {
    let bytes = registry(app).blob(artefact).await?.ok_or_else(|| missing_blob(artefact))?;
    let packed = tokio::task::spawn_blocking(move || {
        let (_, skill) = archive::one_skill(archive::unpack(&bytes)?)?;
        archive::pack_plain(&skill)
    });
    let packed = packed.await.map_err(|error| RegistryApiError::failed(&error))?;
    packed.map_err(|error| RegistryApiError::failed(&error))
}

/// Whether the client already has the archive (`If-None-Match`).
pub(super) fn has_tag(headers: &HeaderMap, sha256: &str) -> bool {
    let tag = HeaderValue::from_str(&format!("\"{sha256}\""));
    tag.is_ok_and(|tag| matches_if_none_match(headers, &tag))
}

/// Stores a large repacked archive as a blob, from which it can be streamed, and returns its size.
/// The blob is not deleted.
async fn store_repacked(app: &App, artefact: &str, sha256: &str) -> RegistryResult<u64> {
    if let Some(size) = registry(app).blob_size(sha256).await? {
        return Ok(size);
    }
    // One at a time, even if the client disconnects: each archive is in memory twice.
    let alone = Arc::clone(&app.registry_state.packing_lock).lock_owned().await;
    let (app, artefact, sha256) = (app.clone(), artefact.to_owned(), sha256.to_owned());
    let laying = tokio::spawn(async move {
        let _alone = alone;
        if let Some(size) = registry(&app).blob_size(&sha256).await? {
            return Ok(size);
        }
        let packed = repack(&app, &artefact).await?;
        let size = packed.len() as u64;
        if registry(&app).put_blob(packed.into()).await? != sha256 {
            return Err(RegistryApiError::failed(&format!(
                "{artefact} is packed otherwise than it was"
            )));
        }
        Ok(size)
    });
    laying.await.map_err(|error| RegistryApiError::failed(&error))?
}
