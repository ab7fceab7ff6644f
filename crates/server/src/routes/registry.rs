//! Registry routes: publish, find, install and manage skills.
//!
//! - `index` and `artefacts` serve resolvers and installers, `skills` and `search` serve people,
//!   `texts` and `well_known` serve tools that do not know this registry.
//! - `publish` stores a version: `form` reads the upload, `audit` the scan report of the publisher.
//!   `review` has rescans, appeals and clearances.
//! - `change` yanks, deprecates, withdraws and signs versions. `people` manages namespaces and
//!   their members, `keys` their signing keys, `account` the current account and its tokens, `log`
//!   the audit log.
//! - `extract` has the extractors for caller, path and query, `request` those for bodies and names.
//!   `render` converts stored data to responses, `error` errors to responses. `docs` has the shared
//!   parts of the OpenAPI document.

mod account;
mod artefacts;
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
mod search;
mod skills;
mod texts;
mod well_known;

use std::future::Future;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use savoir_registry::{CacheableResponse, CachedResponse, MAX_CACHE_AGE};
use savoir_store::{DatabaseKind, registry::PackageName};
use semver::Version;
use utoipa_axum::router::OpenApiRouter;

use self::{
    error::{RegistryApiError, RegistryResult},
    extract::registry,
};
use crate::{app::App, config::Readers};

pub(super) use self::docs::describe;
pub(crate) use self::review::scan_backlog;
use self::well_known::WELL_KNOWN;
pub(super) use self::well_known::{at_root, files};

/// The path of the registry on the server. Paths of its routes are relative to this path.
const REGISTRY_PATH: &str = "/registry";

/// All routes below `/registry`.
pub(super) fn router() -> OpenApiRouter<App> {
    let routes = OpenApiRouter::new()
        .merge(index::router())
        .merge(artefacts::router())
        .merge(skills::router())
        .merge(search::router())
        .merge(texts::router())
        .merge(well_known::below())
        .merge(publish::router())
        .merge(review::router())
        .merge(change::router())
        .merge(people::router())
        .merge(keys::router())
        .merge(account::router())
        .merge(log::router())
        .fallback(nothing);
    OpenApiRouter::new().nest(REGISTRY_PATH, routes)
}

async fn nothing() -> RegistryApiError {
    RegistryApiError::not_found("there is nothing at this address")
}

/// The response to a method that a path of the registry does not support; `None` for paths outside
/// of the registry.
pub(super) fn wrong_method(uri: &Uri) -> Option<Response> {
    let message = "this address does not take this method";
    let refused =
        RegistryApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
    uri.path().starts_with("/registry/").then(|| refused.into_response())
}

/// The public URL of the registry.
fn base(app: &App) -> String {
    format!("{}{REGISTRY_PATH}", app.config.public_url)
}

/// Middleware: returns the cached response, if there is one, before any other code sees the
/// request. Marks responses of a private registry as private.
pub(super) async fn recall(State(app): State<App>, request: Request, next: Next) -> Response {
    if is_public_reading(&app, &request) {
        // If the database cannot be reached, the route reports the error.
        let fresh = app.registry_state.refresh(registry(&app)).await.is_ok();
        if let Some(response) = fresh.then(|| known(&app, &request)).flatten() {
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
    let said = headers.get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok());
    let said = said.map(|said| said.replace("public", "private"));
    if let Some(said) = said.and_then(|said| HeaderValue::from_str(&said).ok()) {
        headers.insert(header::CACHE_CONTROL, said);
    }
}

/// Returns the cached response if it is known to be fresh, without waiting for the database.
pub(crate) fn recall_now<B>(app: &App, request: &Request<B>) -> Option<Response> {
    (is_public_reading(app, request) && app.registry_state.is_fresh())
        .then(|| known(app, request))
        .flatten()
}

/// Whether every client would get the same response.
fn is_public_reading<B>(app: &App, request: &Request<B>) -> bool {
    let (method, uri) = (request.method(), request.uri());
    (*method == Method::GET || *method == Method::HEAD)
        && uri.path().starts_with("/registry/")
        && uri.query().is_none()
        && app.config.registry.readers == Readers::Everyone
        && !request.headers().contains_key(header::ORIGIN)
}

fn known<B>(app: &App, request: &Request<B>) -> Option<Response> {
    let known = app.registry_state.get_cached(request.uri().path().strip_prefix(REGISTRY_PATH)?)?;
    let response = known.response.respond(request.method(), request.headers());
    if let Some(download) = &known.download
        && *request.method() == Method::GET
        && response.status() == StatusCode::OK
    {
        download.count();
    }
    app.metrics.cache_hit();
    Some(response)
}

/// Waits until no process returns responses from before a change that this process made. Other
/// processes may return cached responses for [`MAX_CACHE_AGE`].
async fn settled(app: &App) {
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
        let download = download.map(|version| app.registry_state.downloads.tally(package, version));
        let cached =
            CachedResponse { response: answer.clone(), package: package.clone(), download, seq };
        app.registry_state.cache_response(uri.path(), cached);
    }
    Ok(answer)
}
