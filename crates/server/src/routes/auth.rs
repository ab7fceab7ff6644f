//! Account routes: register, log in, log out, change the password.

use axum::{
    Json as JsonResponse,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse as _, Response},
};
use savoir_store::{Role, Timestamp, User, verify_password};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{docs, session::start_session};
use crate::{
    accounts::{AccountError, Email, NewAccount, NewPassword, is_of_admin},
    app::App,
    auth::{Anonymous, Authenticated, Json, has_cookie_only},
    body::{Members, Shape, Text},
    error::{ApiError, ApiResult},
    keys::Audience,
    throttle::{Attempt, NewcomerAttempt},
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(register))
        .routes(routes!(login))
        .routes(routes!(me))
        .routes(routes!(logout))
        .routes(routes!(password))
}

/// An email address and a password.
#[derive(Debug, ToSchema)]
pub(super) struct Credentials {
    #[schema(pattern = r"^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$")]
    email: String,
    /// At least 6 characters.
    #[schema(min_length = 1)]
    password: String,
}

impl Shape for Credentials {
    fn read(members: &mut Members) -> Self {
        Self {
            email: members.text("email", Text::ANY),
            password: members.text("password", Text::ANY),
        }
    }
}

/// The old password and the new one.
#[derive(Debug, ToSchema)]
struct Passwords {
    current: String,
    #[schema(min_length = 6)]
    new: String,
}

impl Shape for Passwords {
    fn read(members: &mut Members) -> Self {
        Self { current: members.text("current", Text::ANY), new: members.text("new", Text::ANY) }
    }
}

/// A user account.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = User)]
pub(super) struct Person {
    id: i64,
    email: String,
    /// `user` or `admin`.
    role: &'static str,
    is_active: bool,
    created_at: String,
}

impl From<User> for Person {
    fn from(user: User) -> Self {
        Self {
            id: user.id,
            role: user.role.as_str(),
            is_active: user.active,
            created_at: user.created_at.to_string(),
            email: user.email,
        }
    }
}

/// A session token and its user.
#[derive(Debug, Serialize, ToSchema)]
struct LoggedIn {
    /// The session token for `Authorization: Bearer …`, valid for seven days.
    token: String,
    user: Person,
}

/// Whether the token was active.
#[derive(Debug, Serialize, ToSchema)]
struct LoggedOut {
    success: bool,
}

/// The result of changing a password.
#[derive(Debug, Serialize, ToSchema)]
struct PasswordChanged {
    success: bool,
    /// The new token. All earlier tokens are revoked. A browser gets a new session cookie instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl From<AccountError> for ApiError {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Email | AccountError::Password => Self::bad_request(error.to_string()),
            AccountError::Taken => Self::conflict(error.to_string()),
            AccountError::Store(error) => error.into(),
        }
    }
}

/// Create an account.
///
/// The configuration of the server decides who can register; by default only clients on the same
/// machine.
#[utoipa::path(
    post, path = "/auth/register", tag = "auth", request_body = Credentials,
    responses(
        (status = 200, body = LoggedIn), docs::BadRequest, docs::Forbidden, docs::Conflict,
        docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn register(
    State(app): State<App>,
    anonymous: Anonymous<Json<Credentials>>,
) -> ApiResult<JsonResponse<LoggedIn>> {
    let Anonymous { address, local, body: Json(Credentials { email, password }) } = anonymous;
    // Unknown clients must not find out which email addresses have accounts.
    if !app.config.registration.allows(local) {
        return Err(closed());
    }
    let account = NewAccount::check(&email, &password)?;
    let role = match is_of_admin(&app.config, &account.email) {
        false => Role::User,
        true if local => Role::Admin,
        true => return Err(closed()),
    };
    let attempt = NewcomerAttempt::count_attempt(&app, &address).await?;
    let user = match account.create(&app.database, role).await {
        Err(AccountError::Taken) => {
            attempt.record_failed(&app).await?;
            return Err(AccountError::Taken.into());
        }
        created => created?,
    };
    logged_in(&app, user, Timestamp::now()).await
}

fn closed() -> ApiError {
    ApiError::forbidden("Registration is closed. Ask an administrator for an account.")
}

/// Log in.
///
/// After five failed attempts in 15 minutes, further ones are rejected; `Retry-After` says for how
/// long.
#[utoipa::path(
    post, path = "/auth/login", tag = "auth", request_body = Credentials,
    responses(
        (status = 200, body = LoggedIn), docs::BadRequest, docs::Unauthorized, docs::Forbidden,
        docs::TooLarge, docs::InvalidBody, docs::TooManyWrongPasswords
    )
)]
async fn login(
    State(app): State<App>,
    anonymous: Anonymous<Json<Credentials>>,
) -> ApiResult<JsonResponse<LoggedIn>> {
    let Anonymous { address, body: Json(credentials), .. } = anonymous;
    let (user, since) = check_password(&app, credentials, &address).await?;
    logged_in(&app, user, since).await
}

/// The account with these credentials, and the time at which its password was read. Failed attempts
/// are counted.
pub(super) async fn check_password(
    app: &App,
    credentials: Credentials,
    address: &str,
) -> ApiResult<(User, Timestamp)> {
    let Credentials { email, password } = credentials;
    let email = Email::parse(&email).ok_or(AccountError::Email)?;
    if password.is_empty() {
        return Err(ApiError::bad_request("Password is required"));
    }
    let attempt = Attempt::login(app, &email, address).await?;
    let since = Timestamp::now();
    let found = app.database.accounts().by_email(email.as_str()).await?;
    // Verify a password even without an account, so that the time reveals nothing.
    let hash = found.as_ref().map(|(_, hash)| hash.as_str());
    let right = verify_password(&password, hash).await?;
    let Some((user, _)) = found.filter(|_| right) else {
        attempt.record_failed(app).await?;
        return Err(ApiError::unauthorized("Invalid email or password"));
    };
    attempt.record_success(app).await?;
    if !user.active {
        return Err(ApiError::forbidden("User account is disabled"));
    }
    Ok((user, since))
}

async fn logged_in(app: &App, user: User, since: Timestamp) -> ApiResult<JsonResponse<LoggedIn>> {
    let token = app.keys.issue(&app.database, Audience::Bearer, user.id, since).await?;
    Ok(JsonResponse(LoggedIn { token, user: user.into() }))
}

/// Show the current user.
#[utoipa::path(
    get, path = "/auth/me", tag = "auth", security(("bearer" = [])),
    responses((status = 200, body = Person), docs::Unauthorized, docs::Forbidden, docs::TooManyRequests)
)]
async fn me(authenticated: Authenticated) -> JsonResponse<Person> {
    JsonResponse(authenticated.caller.user.into())
}

/// Log out and revoke the token.
#[utoipa::path(
    post, path = "/auth/logout", tag = "auth", security(("bearer" = [])),
    responses(
        (status = 200, body = LoggedOut), docs::Unauthorized, docs::Forbidden, docs::TooManyRequests
    )
)]
async fn logout(
    State(app): State<App>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<LoggedOut>> {
    let success = match authenticated.caller.claims {
        Some(claims) => app.database.accounts().revoke(&claims.jti, claims.expires_at()).await?,
        None => false,
    };
    Ok(JsonResponse(LoggedOut { success }))
}

/// Change your password. All earlier tokens are revoked.
#[utoipa::path(
    post, path = "/auth/password", tag = "auth", security(("bearer" = [])),
    request_body = Passwords,
    responses(
        (status = 200, body = PasswordChanged), docs::BadRequest, docs::Unauthorized, docs::Forbidden,
        docs::TooLarge, docs::InvalidBody, docs::TooManyWrongPasswords
    )
)]
async fn password(
    State(app): State<App>,
    headers: HeaderMap,
    authenticated: Authenticated<Json<Passwords>>,
) -> ApiResult<Response> {
    let Authenticated { caller, body: Json(Passwords { current, new }) } = authenticated;
    let new = NewPassword::check(&new)?;
    let attempt = Attempt::confirm(&app, caller.user.id).await?;
    let accounts = app.database.accounts();
    let found = accounts.by_email(&caller.user.email).await?;
    let hash = found.as_ref().map(|(_, hash)| hash.as_str());
    if !verify_password(&current, hash).await? {
        attempt.record_failed(&app).await?;
        return Err(ApiError::bad_request("Current password is incorrect"));
    }
    attempt.record_success(&app).await?;
    if !accounts.set_password(&caller.actor(), caller.user.id, &new.hash().await?).await? {
        return Err(ApiError::unauthorized("Invalid or expired token"));
    }
    let now = Timestamp::now();
    let changed = |token| JsonResponse(PasswordChanged { success: true, token }).into_response();
    if has_cookie_only(&app, &headers) {
        return start_session(&app, caller.user.id, now, changed(None)).await;
    }
    let token = app.keys.issue(&app.database, Audience::Bearer, caller.user.id, now).await?;
    Ok(changed(Some(token)))
}
