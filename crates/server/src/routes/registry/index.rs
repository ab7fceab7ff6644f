//! Serves the package index that resolvers read.

use std::collections::BTreeSet;

use axum::{
    extract::State,
    http::{HeaderMap, Method, Uri},
    response::Response,
};
use savoir_package::registry::{
    Name,
    wire::{self, INDEX_VERSION},
};
use savoir_registry::{CachePolicy, CacheableResponse};
use savoir_skill::version::SkillRef;
use savoir_store::registry::{IndexLine, IndexText, PackageName};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    docs,
    error::{RegistryApiError, RegistryResult},
    extract::{PathParams, Query, ReadAccess, parse_package, registry},
    respond_and_cache,
};
use crate::app::App;

/// Maximum skills in one request for dependencies.
const MAX_REQUESTED_PACKAGES: usize = 100;
/// Maximum skills in one response.
const MAX_CLOSURE_PACKAGES: usize = 5000;
/// Maximum bytes of one response.
const MAX_RESPONSE_BYTES: usize = 32 * 1024 * 1024;

const NDJSON: &str = "application/x-ndjson";

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(config))
        .routes(routes!(closure))
        .routes(routes!(flat))
        .routes(routes!(in_namespace))
}

/// Show the configuration of the registry.
#[utoipa::path(
    get, path = "/index/v1/config.json", tag = "registry",
    responses((status = 200, body = wire::Config), docs::Unauthorized)
)]
async fn config(
    State(app): State<App>,
    _: ReadAccess,
    (method, headers): (Method, HeaderMap),
) -> RegistryResult<Response> {
    let base = super::registry_url(&app);
    let config = wire::Config {
        version: INDEX_VERSION,
        artifacts: wire::Config::ARTIFACTS.to_owned(),
        base: Some(base),
        closure: true,
    };
    let text = serde_json::to_vec(&config).map_err(|error| RegistryApiError::failed(&error))?;
    let answer = CacheableResponse::new("application/json", CachePolicy::Minute, text);
    Ok(answer.respond(&method, &headers))
}

/// List the versions of a skill for a resolver, one JSON object per line.
#[utoipa::path(
    get, path = "/index/v1/{prefix}/{name}", tag = "registry", operation_id = "index",
    params(
        ("prefix" = String, Path, description = "The first two letters of the name"),
        ("name" = String, Path, description = "The name"),
    ),
    responses(docs::Lines, docs::Invalid, docs::Unauthorized, docs::NotFound, docs::Unavailable)
)]
async fn flat(
    State(app): State<App>,
    _: ReadAccess,
    PathParams((prefix, name)): PathParams<(String, String)>,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> RegistryResult<Response> {
    let answer = show(&app, &prefix, &parse_package(None, &name)?, &uri).await?;
    Ok(answer.respond(&method, &headers))
}

/// List the versions of a skill in a namespace for a resolver, one JSON object per line.
#[utoipa::path(
    get, path = "/index/v1/{prefix}/{namespace}/{name}", tag = "registry",
    operation_id = "index_in",
    params(
        ("prefix" = String, Path,
         description = "The first two letters of the name; with `_` if the namespace begins with them"),
        ("namespace" = String, Path, description = "The namespace"),
        ("name" = String, Path, description = "The name"),
    ),
    responses(docs::Lines, docs::Invalid, docs::Unauthorized, docs::NotFound, docs::Unavailable)
)]
async fn in_namespace(
    State(app): State<App>,
    _: ReadAccess,
    PathParams((prefix, namespace, name)): PathParams<(String, String, String)>,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> RegistryResult<Response> {
    let answer = show(&app, &prefix, &parse_package(Some(&namespace), &name)?, &uri).await?;
    Ok(answer.respond(&method, &headers))
}

async fn show(
    app: &App,
    prefix: &str,
    name: &PackageName,
    uri: &Uri,
) -> RegistryResult<CacheableResponse> {
    let missing = || RegistryApiError::not_found(format!("there is no skill {name} here"));
    let place: Name = name.to_string().parse().map_err(|_| missing())?;
    if place.index_path() != format!("{prefix}/{name}") {
        return Err(missing());
    }
    respond_and_cache(app, uri, name, None, async {
        let index = registry(app).index(name).await?.ok_or_else(missing)?;
        Ok(CacheableResponse::with_etag(NDJSON, CachePolicy::Minute, &index.tag, index.text))
    })
    .await
}

/// List the versions of several skills and of all their dependencies.
///
/// A resolver needs only this request. Unknown skills are left out.
#[utoipa::path(
    get, path = "/index/v1/closure", tag = "registry",
    params(("name" = Vec<String>, Query, description = "The skills, at most 100")),
    responses(docs::Lines, docs::Invalid, docs::Unauthorized, docs::Unavailable)
)]
async fn closure(
    State(app): State<App>,
    _: ReadAccess,
    query: Query,
    (method, headers): (Method, HeaderMap),
) -> RegistryResult<Response> {
    let requested: Vec<PackageName> =
        query.all("name").map(|name| Ok(name.parse()?)).collect::<RegistryResult<_>>()?;
    if requested.is_empty() || requested.len() > MAX_REQUESTED_PACKAGES {
        return Err(RegistryApiError::invalid(format!(
            "name 1 to {MAX_REQUESTED_PACKAGES} skills with `name=`"
        )));
    }
    let mut known: BTreeSet<PackageName> = requested.iter().cloned().collect();
    let mut next: Vec<PackageName> = known.iter().cloned().collect();
    let mut text = String::new();
    let too_many =
        || RegistryApiError::invalid("these skills need too many others; ask for them one by one");
    while !next.is_empty() {
        // Index text that exceeds the limit is not read.
        let left = MAX_RESPONSE_BYTES.saturating_sub(text.len());
        let level = registry(&app).indexes_up_to_size(&next, left).await?.ok_or_else(too_many)?;
        next = Vec::new();
        for index in level {
            next.extend(needs(&index).filter(|need| known.insert(need.clone())));
            text.push_str(&index.text);
            if known.len() > MAX_CLOSURE_PACKAGES || text.len() > MAX_RESPONSE_BYTES {
                return Err(too_many());
            }
        }
    }
    let answer = CacheableResponse::new(NDJSON, CachePolicy::Minute, text);
    Ok(answer.respond(&method, &headers))
}

/// The dependencies of all versions.
fn needs(index: &IndexText) -> impl Iterator<Item = PackageName> {
    let lines = index.text.lines().filter_map(|line| serde_json::from_str::<IndexLine>(line).ok());
    lines.flat_map(|line| line.dependencies).filter_map(|need| {
        let need = SkillRef::parse(&need).ok()?;
        need.name.parse().ok()
    })
}
