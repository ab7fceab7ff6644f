//! Registry routes: publish, find, install and manage skills.
//!
//! - `index` and `artifacts` serve resolvers and installers, `skills` and `search` serve users,
//!   `texts` and `well_known` serve tools that do not support this registry's own API.
//! - `publish` stores a version: `form` reads the upload, `audit` the scan report of the publisher.
//!   `review` has rescans, appeals and clearances, `reviews` has ratings by users,
//!   `attestations` signed evaluations.
//! - `change` yanks, deprecates, withdraws and signs versions. `people` manages namespaces and
//!   their members, `keys` their signing keys, `account` the current account and its tokens, `log`
//!   the audit log.
//! - `extract` has the extractors for caller, path and query, `request` those for bodies and names.
//!   `render` converts stored data to responses, `error` errors to responses. `docs` has the shared
//!   parts of the OpenAPI document.

mod account;
mod artefacts;
mod attestations;
mod audit;
mod change;
mod docs;
mod error;
mod extract;
mod form;
mod index;
mod keys;
mod log;
mod people;
mod publish;
mod render;
mod request;
mod review;
mod reviews;
mod search;
mod skills;
mod texts;
mod well_known;

use std::future::Future;

use axum::{
    Json,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use savoir_registry::{CacheableResponse, MAX_CACHE_AGE, ResponseCacheEntry};
use savoir_store::{DatabaseKind, registry::PackageName};
use semver::Version;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use self::{
    error::{RegistryApiError, RegistryResult},
    extract::registry,
};
use crate::{app::App, config::Readers, web};

pub(super) use self::docs::describe;
pub(crate) use self::review::scan_backlog;
use self::well_known::WELL_KNOWN;
pub(super) use self::well_known::{at_root, files};

/// The path of the registry on the server. Paths of its routes are relative to this path.
const REGISTRY_PATH: &str = "/registry";

/// All routes below [`REGISTRY_PATH`].
pub(super) fn router() -> OpenApiRouter<App> {
    let mut routes = OpenApiRouter::new()
        .merge(index::router())
        .merge(artefacts::router())
        .merge(skills::router())
        .merge(search::router())
        .merge(texts::router())
        .merge(well_known::router())
        .merge(publish::router())
        .merge(review::router())
        .merge(reviews::router())
        .merge(attestations::router())
        .merge(change::router())
        .merge(people::router())
        .merge(keys::router())
        .merge(account::router())
        .merge(log::router())
        .fallback(not_found);
    docs::add_patterns(routes.get_openapi_mut());
    OpenApiRouter::new().nest(REGISTRY_PATH, routes)
}

async fn not_found(State(app): State<App>, request: Request) -> Response {
    let headers = request.headers();
    let is_get = *request.method() == Method::GET;
    if is_get && web::prefers_html(headers) {
        return web::index_page(headers);
    }
    if is_get && request.uri().path() == "/" {
        return overview(&app);
    }
    RegistryApiError::not_found("there is nothing at this address").into_response()
}

/// The response to a client other than a browser that opens the URL of the registry itself.
fn overview(app: &App) -> Response {
    let body = json!({
        "name": "Savoir registry",
        "skills": format!("{}/api/v1/skills", registry_url(app)),
        "documentation": format!("{}/docs", app.config.public_url),
    });
    ([(header::VARY, "accept")], Json(body)).into_response()
}

/// The response to a method that a path of the registry does not support; `None` for paths outside
/// of the registry.
pub(super) fn method_not_allowed(uri: &Uri) -> Option<Response> {
    let message = "this address does not take this method";
    let refused =
        RegistryApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
    is_registry_path(uri.path()).then(|| refused.into_response())
}

/// Whether a path is below [`REGISTRY_PATH`].
fn is_registry_path(path: &str) -> bool {
    path.strip_prefix(REGISTRY_PATH).is_some_and(|rest| rest.starts_with('/'))
}

/// The public URL of the registry.
fn registry_url(app: &App) -> String {
    format!("{}{REGISTRY_PATH}", app.config.public_url)
}

/// Middleware: returns the cached response, if there is one, before any other code sees the
/// request. Marks responses of a private registry as private.
pub(super) async fn serve_cached(State(app): State<App>, request: Request, next: Next) -> Response {
    if is_public_read(&app, &request) {
        // If the database cannot be reached, the route reports the error.
        let fresh = app.registry_state.refresh(registry(&app)).await.is_ok();
        if let Some(response) = fresh.then(|| cached_response(&app, &request)).flatten() {
            return response;
        }
    }
    let path = request.uri().path();
    let ours = path.starts_with(REGISTRY_PATH) || path.starts_with(WELL_KNOWN);
    let private = ours && app.config.registry.readers != Readers::Everyone;
    let mut response = next.run(request).await;
    if private {
        keep_private(response.headers_mut());
    }
    response
}

/// Forbids shared caches to store responses that only users with an account may read.
fn keep_private(headers: &mut HeaderMap) {
    headers.append(header::VARY, HeaderValue::from_static("authorization"));
    headers.append(header::VARY, HeaderValue::from_static("cookie"));
    let policy = headers.get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok());
    let policy = policy.map(|policy| policy.replace("public", "private"));
    if let Some(policy) = policy.and_then(|policy| HeaderValue::from_str(&policy).ok()) {
        headers.insert(header::CACHE_CONTROL, policy);
    }
}

/// Returns the cached response if it is known to be fresh, without waiting for the database.
pub(crate) fn serve_fresh_cached<B>(app: &App, request: &Request<B>) -> Option<Response> {
    (is_public_read(app, request) && app.registry_state.is_fresh())
        .then(|| cached_response(app, request))
        .flatten()
}

/// Whether every client would get the same response.
fn is_public_read<B>(app: &App, request: &Request<B>) -> bool {
    let (method, uri) = (request.method(), request.uri());
    (*method == Method::GET || *method == Method::HEAD)
        && is_registry_path(uri.path())
        && uri.query().is_none()
        && app.config.registry.readers == Readers::Everyone
        && !request.headers().contains_key(header::ORIGIN)
}

fn cached_response<B>(app: &App, request: &Request<B>) -> Option<Response> {
    let known = app.registry_state.get_cached(request.uri().path().strip_prefix(REGISTRY_PATH)?)?;
    let response = known.response.respond(request.method(), request.headers());
    if let Some(download) = &known.download
        && *request.method() == Method::GET
        && response.status() == StatusCode::OK
    {
        download.count();
    }
    app.metrics.record_cache_hit();
    Some(response)
}

/// Waits until no process returns responses from before a change that this process made. Other
/// processes may return cached responses for [`MAX_CACHE_AGE`].
async fn wait_until_visible(app: &App) {
    let learned = app.registry_state.apply_own_change(registry(app)).await;
    if let Err(error) = &learned {
        tracing::warn!(%error, "a change is not known here yet");
    }
    if learned.is_err() || app.database.kind() == DatabaseKind::Postgres {
        tokio::time::sleep(MAX_CACHE_AGE).await;
    }
}

/// Builds a response about a package and caches it for its path below [`REGISTRY_PATH`].
async fn respond_and_cache(
    app: &App,
    uri: &Uri,
    package: &PackageName,
    download: Option<&Version>,
    make: impl Future<Output = RegistryResult<CacheableResponse>>,
) -> RegistryResult<CacheableResponse> {
    let seq = app.registry_state.refresh(registry(app)).await?;
    let answer = make.await?;
    if uri.query().is_none() {
        let download =
            download.map(|version| app.registry_state.downloads.counter_of(package, version));
        let cached = ResponseCacheEntry {
            response: answer.clone(),
            package: package.clone(),
            download,
            seq,
        };
        app.registry_state.cache_response(uri.path(), cached);
    }
    Ok(answer)
}
