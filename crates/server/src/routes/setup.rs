//! The first administrator, who is created with a link from the log. The link opens the web app.

use std::time::Duration;

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::Response,
};
use savoir_store::{Role, StoreError, Timestamp, User};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{docs, session};
use crate::{
    accounts::{AccountError, NewAccount, random_secret},
    app::App,
    auth::{Anonymous, Json, token_digest},
    body::{Members, Shape, Text},
    error::{ApiError, ApiResult},
    session_cookie,
};

/// The setting with the digest of the setup token.
const SETUP_SETTING: &str = "setup";

/// Maximum attempts of one client in a minute. The token cannot be guessed, but hashing passwords
/// costs time.
const MAX_TRIES_PER_WINDOW: u64 = 30;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(create))
}

/// Creates a link with which the first administrator can be created, once; `None` if there is one.
/// Earlier links become invalid. The token is in the fragment of the URL, which browsers send to no
/// server, so no proxy can log it.
pub async fn setup_link(app: &App) -> Result<Option<String>, StoreError> {
    if app.database.accounts().has_admin().await? {
        return Ok(None);
    }
    let token = random_secret()?;
    app.database.settings().put(SETUP_SETTING, &token_digest(&token)).await?;
    Ok(Some(format!("{}/setup#token={token}", app.config.public_url)))
}

/// The first administrator.
#[derive(Debug, Deserialize, ToSchema)]
struct FirstAdministrator {
    /// The token of the link that `savoir serve` prints.
    token: String,
    #[schema(pattern = r"^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$")]
    email: String,
    #[schema(min_length = 6)]
    password: String,
}

impl Shape for FirstAdministrator {
    fn read(members: &mut Members) -> Self {
        Self {
            token: members.text("token", Text::ANY),
            email: members.text("email", Text::ANY),
            password: members.text("password", Text::ANY),
        }
    }
}

/// Create the first administrator with the token of the setup link, and log in.
///
/// The request needs the header `X-Savoir-App: 1`.
#[utoipa::path(
    post, path = "/setup", tag = "auth", request_body = FirstAdministrator,
    responses(
        (status = 200, body = session::LoggedInUser), docs::BadRequest, docs::Forbidden, docs::Conflict,
        docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn create(
    State(app): State<App>,
    method: Method,
    headers: HeaderMap,
    anonymous: Anonymous<Json<FirstAdministrator>>,
) -> ApiResult<Response> {
    session_cookie::check_origin(&app.config, &method, &headers)?;
    let Anonymous { address, body: Json(wanted), .. } = anonymous;
    let key = format!("setup {address}");
    let hits = app.database.rate_limits().hit(&key, Duration::from_mins(1)).await?;
    if hits.count > MAX_TRIES_PER_WINDOW {
        return Err(too_many(hits.resets_at));
    }
    if !is_open(&app, &wanted.token).await? {
        return Err(refused());
    }
    let since = Timestamp::now();
    let user = make_administrator(&app, &wanted).await?.ok_or_else(refused)?;
    session::logged_in(&app, user, since).await
}

/// Creates the administrator and invalidates the token; `None` if another request was faster. An
/// invalid request does not invalidate the token.
async fn make_administrator(
    app: &App,
    wanted: &FirstAdministrator,
) -> Result<Option<User>, AccountError> {
    // Hash the password first, so that nothing slow happens between invalidating the token and
    // creating the account.
    let account = NewAccount::check(&wanted.email, &wanted.password)?.hashed().await?;
    let (settings, token) = (app.database.settings(), token_digest(&wanted.token));
    if !settings.take(SETUP_SETTING, &token).await? {
        return Ok(None);
    }
    match account.create(&app.database, Role::Admin).await {
        Ok(user) => {
            tracing::info!(user = user.id, "the first administrator was made");
            Ok(Some(user))
        }
        Err(error) => {
            settings.put_if_absent(SETUP_SETTING, &token).await?;
            Err(error)
        }
    }
}

/// Whether a setup token is valid.
async fn is_open(app: &App, token: &str) -> Result<bool, StoreError> {
    // Digests are compared, so that the time of the comparison reveals nothing about the token.
    let expected = app.database.settings().get(SETUP_SETTING).await?;
    Ok(expected == Some(token_digest(token)) && !app.database.accounts().has_admin().await?)
}

fn refused() -> ApiError {
    ApiError::forbidden(
        "This setup link was used, replaced by a newer one, or not copied as a whole",
    )
    .with_hint(
        "start the server again: `savoir serve` prints a new link while there is no \
             administrator; or run `savoir admin create EMAIL` on the machine of the server",
    )
}

fn too_many(resets_at: Timestamp) -> ApiError {
    let wait = (resets_at.seconds() - Timestamp::now().seconds()).max(1);
    ApiError::plain(StatusCode::TOO_MANY_REQUESTS, "Too many attempts")
        .with_hint(format!("wait {wait} seconds, then send the form again"))
        .with_header(header::RETRY_AFTER, HeaderValue::from(wait))
}
