//! Session routes of the web app: log in and out with a cookie.

use axum::{
    Json as JsonResponse,
    extract::State,
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use savoir_store::{Timestamp, User};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    auth::{Credentials, Person, check_password},
    docs,
};
use crate::{
    app::App,
    auth::{Anonymous, Json, find_caller, find_cookie_owner},
    error::ApiResult,
    keys::Audience,
    oidc::OidcConfig,
    session_cookie,
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show, start, end))
}

/// The account that is logged in.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SessionUser)]
pub(super) struct LoggedInUser {
    user: Person,
}

/// The data that a page needs before a user logs in.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SessionState)]
struct CurrentSession {
    /// The account that is logged in; null for a visitor.
    user: Option<Person>,
    /// Whether the first administrator must still be created.
    setup: bool,
    /// Who may create an account: `local`, `open` or `closed`.
    registration: &'static str,
    /// Whether this client may create an account.
    can_register: bool,
    /// Whether the client is on the machine of the server.
    local: bool,
    version: &'static str,
    /// Other ways to log in.
    providers: Vec<LoginProvider>,
}

/// Another way to log in.
#[derive(Debug, Serialize, ToSchema)]
struct LoginProvider {
    id: String,
    name: String,
    /// The URL that starts the login.
    url: String,
}

impl LoginProvider {
    fn new(config: &OidcConfig) -> Self {
        let url = "/api/v1/auth/oidc/start".to_owned();
        Self { id: "oidc".to_owned(), name: config.name.clone(), url }
    }
}

/// Show the current session.
#[utoipa::path(
    get, path = "/auth/session", tag = "auth",
    responses((status = 200, body = CurrentSession), docs::TooManyRequests)
)]
async fn show(
    State(app): State<App>,
    headers: HeaderMap,
    anonymous: Anonymous<()>,
) -> ApiResult<JsonResponse<CurrentSession>> {
    let caller = find_caller(&app, &Method::GET, &headers).await;
    let caller = match caller {
        Err(error) if error.status() != StatusCode::UNAUTHORIZED => return Err(error),
        caller => caller.ok().filter(|caller| caller.user.active),
    };
    let registration = app.config.registration;
    Ok(JsonResponse(CurrentSession {
        user: caller.map(|caller| caller.user.into()),
        setup: !app.database.accounts().has_admin().await?,
        registration: registration.as_str(),
        can_register: registration.allows(anonymous.local),
        local: anonymous.local,
        version: env!("CARGO_PKG_VERSION"),
        providers: app.config.oidc.iter().map(LoginProvider::new).collect(),
    }))
}

/// Log in with a session cookie, for browsers.
///
/// The request needs the header `X-Savoir-App: 1`, and so does each later request with the cookie
/// that changes something. Failed attempts count as for `POST /auth/login`.
#[utoipa::path(
    post, path = "/auth/session", tag = "auth", request_body = Credentials,
    responses(
        (status = 200, body = LoggedInUser), docs::BadRequest, docs::Unauthorized, docs::Forbidden,
        docs::TooLarge, docs::InvalidBody, docs::TooManyWrongPasswords
    )
)]
async fn start(
    State(app): State<App>,
    method: Method,
    headers: HeaderMap,
    anonymous: Anonymous<Json<Credentials>>,
) -> ApiResult<Response> {
    session_cookie::check_origin(&app.config, &method, &headers)?;
    let Anonymous { address, body: Json(credentials), .. } = anonymous;
    let (user, since) = check_password(&app, credentials, &address).await?;
    logged_in(&app, user, since).await
}

/// The response that starts a session.
pub(super) async fn logged_in(app: &App, user: User, since: Timestamp) -> ApiResult<Response> {
    let id = user.id;
    let response = JsonResponse(LoggedInUser { user: user.into() }).into_response();
    start_session(app, id, since, response).await
}

/// Adds the session cookie to a response.
pub(super) async fn start_session(
    app: &App,
    user_id: i64,
    since: Timestamp,
    mut response: Response,
) -> ApiResult<Response> {
    let audience = Audience::Cookie(&app.config.public_url);
    let token = app.keys.issue(&app.database, audience, user_id, since).await?;
    if let Some(cookie) = session_cookie::start(&app.config, &token) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Log out and revoke the session.
#[utoipa::path(
    delete, path = "/auth/session", tag = "auth",
    responses((status = 204, description = "Logged out"), docs::Forbidden, docs::TooManyRequests)
)]
async fn end(
    State(app): State<App>,
    method: Method,
    headers: HeaderMap,
    _: Anonymous<()>,
) -> ApiResult<Response> {
    if session_cookie::token(&app.config, &headers).is_some() {
        session_cookie::check_origin(&app.config, &method, &headers)?;
    }
    if let Some(claims) = find_cookie_owner(&app, &headers).await?.and_then(|caller| caller.claims)
    {
        app.database.accounts().revoke(&claims.jti, claims.expires_at()).await?;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Some(cookie) = session_cookie::end(&app.config) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}
