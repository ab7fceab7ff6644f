//! Routes for administrators: users and their access.

use axum::{Json as JsonResponse, extract::State, http::StatusCode};
use savoir_store::{Role, User};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{auth::Person, docs};
use crate::{
    accounts::{NewAccount, NewPassword},
    app::App,
    auth::{Authenticated, Caller, Json},
    body::{Members, Shape, Text},
    error::{ApiError, ApiResult},
    params::{Page, Path, Query},
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(change, delete))
        .routes(routes!(password))
        .routes(routes!(disable))
        .routes(routes!(enable))
}

/// A new account.
#[derive(Debug, ToSchema)]
struct NewUser {
    email: String,
    #[schema(min_length = 6)]
    password: String,
    /// `user` or `admin`
    #[schema(pattern = "^(user|admin)$")]
    role: String,
}

impl Shape for NewUser {
    fn read(members: &mut Members) -> Self {
        Self {
            email: members.text("email", Text::ANY),
            password: members.text("password", Text::ANY),
            role: members.pattern("role", "^(user|admin)$", is_role),
        }
    }
}

/// The new role of an account.
#[derive(Debug, ToSchema)]
struct NewRole {
    /// `user` or `admin`
    #[schema(pattern = "^(user|admin)$")]
    role: String,
}

impl Shape for NewRole {
    fn read(members: &mut Members) -> Self {
        Self { role: members.pattern("role", "^(user|admin)$", is_role) }
    }
}

fn is_role(word: &str) -> bool {
    matches!(word, "user" | "admin")
}

fn role(word: &str) -> Role {
    if word == "admin" { Role::Admin } else { Role::User }
}

/// The new password of an account.
#[derive(Debug, ToSchema)]
#[schema(as = ResetPassword)]
struct PasswordRequest {
    #[schema(min_length = 6)]
    password: String,
}

impl Shape for PasswordRequest {
    fn read(members: &mut Members) -> Self {
        Self { password: members.text("password", Text::ANY) }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct UserList {
    users: Vec<Person>,
    total: usize,
}

/// Whether the change succeeded.
#[derive(Debug, Serialize, ToSchema)]
struct UserChanged {
    success: bool,
    message: String,
}

impl UserChanged {
    fn with(user: &User, what: &str, by: &Caller) -> JsonResponse<Self> {
        tracing::info!(user = user.id, by = by.user.id, "an account was {what}");
        let message = format!("User {} has been {what}", user.email);
        JsonResponse(Self { success: true, message })
    }
}

/// List all accounts, newest first.
#[utoipa::path(
    get, path = "/admin/users", tag = "admin", security(("bearer" = [])), params(Page),
    responses(
        (status = 200, body = UserList), docs::Unauthorized, docs::Forbidden, docs::InvalidBody,
        docs::TooManyRequests
    )
)]
async fn list(
    State(app): State<App>,
    authenticated: Authenticated<Query<Page>>,
) -> ApiResult<JsonResponse<UserList>> {
    let Authenticated { caller, body: Query(page) } = authenticated;
    caller.check_admin()?;
    let all = app.database.accounts().list().await?;
    let users = page.of(&all).iter().cloned().map(Into::into).collect();
    Ok(JsonResponse(UserList { users, total: all.len() }))
}

/// Create an account.
#[utoipa::path(
    post, path = "/admin/users", tag = "admin", security(("bearer" = [])), request_body = NewUser,
    responses(
        (status = 201, body = Person), docs::BadRequest, docs::Unauthorized, docs::Forbidden,
        docs::Conflict, docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn create(
    State(app): State<App>,
    authenticated: Authenticated<Json<NewUser>>,
) -> ApiResult<(StatusCode, JsonResponse<Person>)> {
    let Authenticated { caller, body: Json(new) } = authenticated;
    caller.check_admin()?;
    let account = NewAccount::check(&new.email, &new.password)?;
    let user = account.create(&app.database, role(&new.role)).await?;
    tracing::info!(user = user.id, by = caller.user.id, "an account was created");
    Ok((StatusCode::CREATED, JsonResponse(user.into())))
}

/// Change the role of an account.
#[utoipa::path(
    patch, path = "/admin/users/{id}", tag = "admin", security(("bearer" = [])),
    params(("id" = i64, Path, description = "The account")), request_body = NewRole,
    responses(
        (status = 200, body = Person), docs::BadRequest, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::Conflict, docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn change(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated<Json<NewRole>>,
) -> ApiResult<JsonResponse<Person>> {
    let Authenticated { caller, body: Json(new) } = authenticated;
    caller.check_admin()?;
    let user = find(&app, &id).await?;
    // Otherwise there might be no administrator left.
    if user.id == caller.user.id {
        return Err(ApiError::bad_request("Cannot change your own role")
            .with_hint("ask another administrator"));
    }
    let role = role(&new.role);
    if !app.database.accounts().set_role(user.id, role).await? {
        check_can_lose_rights(&app, &user, role == Role::Admin).await?;
    }
    tracing::info!(user = user.id, by = caller.user.id, role = new.role, "a role was changed");
    Ok(JsonResponse(find(&app, &id).await?.into()))
}

/// Set the password of an account. All its logins and tokens end.
#[utoipa::path(
    post, path = "/admin/users/{id}/password", tag = "admin", security(("bearer" = [])),
    params(("id" = i64, Path, description = "The account")), request_body = PasswordRequest,
    responses(
        (status = 204, description = "Set"), docs::BadRequest, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn password(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated<Json<PasswordRequest>>,
) -> ApiResult<StatusCode> {
    let Authenticated { caller, body: Json(given) } = authenticated;
    caller.check_admin()?;
    let user = find(&app, &id).await?;
    let hash = NewPassword::check(&given.password)?.hash().await?;
    if !app.database.accounts().set_password(&caller.actor(), user.id, &hash).await? {
        return Err(missing());
    }
    tracing::info!(user = user.id, by = caller.user.id, "a password was set");
    Ok(StatusCode::NO_CONTENT)
}

/// Disable an account. Its tokens stop working.
#[utoipa::path(
    post, path = "/admin/users/{id}/disable", tag = "admin", security(("bearer" = [])),
    params(("id" = i64, Path, description = "The account")),
    responses(
        (status = 200, body = UserChanged), docs::BadRequest, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::Conflict, docs::TooManyRequests
    )
)]
async fn disable(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<UserChanged>> {
    set(&app, &id, Access::Disabled, &authenticated.caller).await
}

/// Enable an account.
///
/// The user must log in again: earlier logins stay ended. API tokens work again.
#[utoipa::path(
    post, path = "/admin/users/{id}/enable", tag = "admin", security(("bearer" = [])),
    params(("id" = i64, Path, description = "The account")),
    responses(
        (status = 200, body = UserChanged), docs::BadRequest, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooManyRequests
    )
)]
async fn enable(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<UserChanged>> {
    set(&app, &id, Access::Enabled, &authenticated.caller).await
}

/// Whether an account may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Enabled,
    Disabled,
}

async fn set(
    app: &App,
    id: &str,
    access: Access,
    by: &Caller,
) -> ApiResult<JsonResponse<UserChanged>> {
    by.check_admin()?;
    let user = find(app, id).await?;
    if access == Access::Disabled && user.id == by.user.id {
        return Err(ApiError::bad_request("Cannot disable yourself"));
    }
    let word = match access {
        Access::Enabled => "enabled",
        Access::Disabled => "disabled",
    };
    if !app.database.accounts().set_active(user.id, access == Access::Enabled).await? {
        check_can_lose_rights(app, &user, access == Access::Enabled).await?;
        return Err(ApiError::bad_request(format!("User is already {word}")));
    }
    Ok(UserChanged::with(&user, word, by))
}

/// Delete an account. Its tokens are revoked and its email address can be used again; its skills
/// and other data stay.
#[utoipa::path(
    delete, path = "/admin/users/{id}", tag = "admin", security(("bearer" = [])),
    params(("id" = i64, Path, description = "The account")),
    responses(
        (status = 200, body = UserChanged), docs::BadRequest, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::Conflict, docs::TooManyRequests
    )
)]
async fn delete(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<UserChanged>> {
    authenticated.caller.check_admin()?;
    let user = find(&app, &id).await?;
    if user.id == authenticated.caller.user.id {
        return Err(ApiError::bad_request("Cannot delete yourself"));
    }
    if !app.database.accounts().delete(&authenticated.caller.actor(), user.id).await? {
        check_can_lose_rights(&app, &user, false).await?;
        return Err(missing());
    }
    Ok(UserChanged::with(&user, "deleted", &authenticated.caller))
}

/// Explains a change that had no effect: fails if the account is the only active administrator.
async fn check_can_lose_rights(app: &App, user: &User, gains: bool) -> ApiResult<()> {
    let user = app.database.accounts().by_id(user.id).await?;
    if !gains && user.is_some_and(|user| user.active && user.is_admin()) {
        return Err(ApiError::conflict("This is the only active administrator")
            .with_hint("make another account an administrator first"));
    }
    Ok(())
}

/// The account with this id. A text that is not a number is reported as not found.
async fn find(app: &App, id: &str) -> ApiResult<User> {
    let id = id.parse().map_err(|_| missing())?;
    app.database.accounts().by_id(id).await?.ok_or_else(missing)
}

fn missing() -> ApiError {
    ApiError::not_found("User not found")
}
