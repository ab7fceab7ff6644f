//! Registry routes: publish, find, install and manage skills.
//!
//! - `index` and `artefacts` are what resolvers and installers ask, `skills` and `search` what people
//!   look at, `texts` what other tools read.
//! - `publish` takes what `form` reads, with the report that `audit` reads; `review` scans again.
//! - `change` is what becomes of a version, `people` and `keys` are who may do that, `account` tells
//!   who one is, and `log` what was done. `told` reads what they say and answers them.
//! - `asked` tells who asks and what, `refused` what they are told if they may not, `shown` is what
//!   goes over the line, `docs` describes it.

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

/// Where the registry is on the server. Its routes see only what comes after it.
const REGISTRY_PATH: &str = "/registry";

/// Everything below `/registry`.
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

/// The answer to a method that an address of the registry does not take; nothing if it is another's.
pub(super) fn wrong_method(uri: &Uri) -> Option<Response> {
    let message = "this address does not take this method";
    let refused =
        RegistryApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
    uri.path().starts_with("/registry/").then(|| refused.into_response())
}

/// Where the registry is.
fn base(app: &App) -> String {
    format!("{}{REGISTRY_PATH}", app.config.public_url)
}

/// Answers what is remembered, before anything else looks at the request.
pub(super) async fn recall(State(app): State<App>, request: Request, next: Next) -> Response {
    if is_public_reading(&app, &request) {
        // If the database is gone, the route says so.
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

/// What only those get who have an account is for no cache on the way.
fn keep_private(headers: &mut HeaderMap) {
    headers.append(header::VARY, HeaderValue::from_static("authorization"));
    let said = headers.get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok());
    let said = said.map(|said| said.replace("public", "private"));
    if let Some(said) = said.and_then(|said| HeaderValue::from_str(&said).ok()) {
        headers.insert(header::CACHE_CONTROL, said);
    }
}

/// Answers what is remembered and known to be new enough: nothing has to be waited for.
pub(crate) fn recall_now<B>(app: &App, request: &Request<B>) -> Option<Response> {
    (is_public_reading(app, request) && app.registry_state.is_fresh())
        .then(|| known(app, request))
        .flatten()
}

/// Whether everybody would get the same answer.
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

/// Returns when no process answers any more with what was before a change of ours.
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
