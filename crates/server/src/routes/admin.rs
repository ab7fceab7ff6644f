//! Routes for administrators: users and their access.

use axum::{Json as JsonResponse, extract::State};
use savoir_store::User;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{auth::Person, docs};
use crate::{
    app::App,
    auth::{Authenticated, Caller},
    error::{ApiError, ApiResult},
    params::Path,
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(disable))
        .routes(routes!(enable))
        .routes(routes!(delete))
}

#[derive(Debug, Serialize, ToSchema)]
struct UserList {
    users: Vec<Person>,
    total: usize,
}

/// Done.
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
    get, path = "/admin/users", tag = "admin", security(("bearer" = [])),
    responses((status = 200, body = UserList), docs::Unauthorized, docs::Forbidden, docs::TooMany)
)]
async fn list(
    State(app): State<App>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<UserList>> {
    authenticated.caller.check_admin()?;
    let users = app.database.accounts().list().await?;
    let users: Vec<Person> = users.into_iter().map(Into::into).collect();
    Ok(JsonResponse(UserList { total: users.len(), users }))
}

/// Disable an account. Its tokens stop working.
#[utoipa::path(
    post, path = "/admin/users/{id}/disable", tag = "admin", security(("bearer" = [])),
    params(("id" = i64, Path, description = "The account")),
    responses(
        (status = 200, body = UserChanged), docs::Bad, docs::Unauthorized, docs::Forbidden,
        docs::Missing, docs::TooMany
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
        (status = 200, body = UserChanged), docs::Bad, docs::Unauthorized, docs::Forbidden,
        docs::Missing, docs::TooMany
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
        (status = 200, body = UserChanged), docs::Bad, docs::Unauthorized, docs::Forbidden,
        docs::Missing, docs::TooMany
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
        return Err(missing());
    }
    Ok(UserChanged::with(&user, "deleted", &authenticated.caller))
}

/// The account with this id. A text that is not a number is reported as not found.
async fn find(app: &App, id: &str) -> ApiResult<User> {
    let id = id.parse().map_err(|_| missing())?;
    app.database.accounts().by_id(id).await?.ok_or_else(missing)
}

fn missing() -> ApiError {
    ApiError::not_found("User not found")
}
