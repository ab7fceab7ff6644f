//! Routes for API tokens, which have fewer rights than their user.

use std::time::Duration;

use axum::{Json as JsonResponse, extract::State, http::StatusCode};
use savoir_store::{ApiToken, NewToken, Timestamp, registry::Grant};
use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::RefOr,
    openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::docs;
use crate::{
    access::Scope,
    accounts::random_secret,
    app::App,
    auth::{API_TOKEN_PREFIX, Authenticated, Caller, Json, token_digest},
    body::{Members, Shape, ShapeError, Text},
    error::{ApiError, ApiResult},
    keys::Claims,
    limits::MAX_API_TOKENS,
    params::Path,
};

/// Maximum scopes of one token.
pub(super) const MAX_SCOPES: usize = 50;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(delete))
}

/// A new API token.
#[derive(Debug, ToSchema)]
struct CreateTokenRequest {
    /// The purpose of the token.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// The scopes; default: everything except administration and the registry.
    #[schema(schema_with = scopes_schema, required = false)]
    scopes: Vec<String>,
    /// Default: never expires.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 366)]
    expires_in_days: Option<u64>,
}

impl Shape for CreateTokenRequest {
    fn read(members: &mut Members) -> Self {
        let days = |days: i64| u64::try_from(days).ok();
        Self {
            name: members.text("name", Text::between(1, 100)),
            scopes: parse_scopes(members),
            expires_in_days: members.optional_integer("expires_in_days", 1, 366).and_then(days),
        }
    }
}

/// The regular expression of registry scopes.
const GRANT_PATTERN: &str =
    "^registry:(read|(publish|yank|owner)(:((_/|anon/)?[a-z0-9]+(-[a-z0-9]+)*))?)$";

fn scopes_schema() -> Schema {
    let names = Scope::GRANTABLE.iter().map(|scope| scope.as_str());
    let fixed = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
    let granted = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(GRANT_PATTERN))
        // `registry:yank:` (14 bytes, the shortest prefix that takes a namespace) and a namespace of
        // 64 characters. The server also accepts longer scopes, such as `registry:publish:` with
        // such a namespace, but with a larger limit the schema would allow invalid scopes.
        .max_length(Some(78))
        .description(Some(
            "A registry permission, for all namespaces, one namespace or one skill.",
        ));
    let name = RefOr::T(Schema::from(AnyOfBuilder::new().item(fixed).item(granted)));
    let about = "The scopes; default: everything except administration and the registry.";
    ArrayBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Array, Type::Null]))
        .description(Some(about))
        .items(name)
        .min_items(Some(1))
        .max_items(Some(MAX_SCOPES))
        .build()
        .into()
}

fn parse_scopes(members: &mut Members) -> Vec<String> {
    let grantable = || Scope::GRANTABLE.iter().copied();
    let Some(wanted) = members.optional_texts("scopes") else {
        let usual = grantable().filter(|scope| scope.is_default());
        return usual.map(|scope| scope.as_str().to_owned()).collect();
    };
    if members.value("scopes").and_then(|value| value.as_array()).is_some_and(Vec::is_empty) {
        let message = "List should have at least 1 item after validation, not 0";
        let location = members.location_of("scopes");
        members.reject(ShapeError::new("too_short", location, message, serde_json::json!([])));
    }
    let mut grants: Vec<String> = Vec::new();
    for (at, text) in wanted.iter().enumerate() {
        if grantable().any(|scope| scope.as_str() == text) {
            continue;
        }
        match text.parse::<Grant>() {
            Ok(grant) => {
                let grant = grant.to_string();
                if !grants.contains(&grant) && grants.len() < MAX_SCOPES {
                    grants.push(grant);
                }
            }
            Err(_) => members.reject(unknown_scope_error(members.location_of("scopes"), at, text)),
        }
    }
    if wanted.len() > MAX_SCOPES {
        let message = format!("List should have at most {MAX_SCOPES} items after validation");
        let (location, count) = (members.location_of("scopes"), wanted.len());
        members.reject(ShapeError::new("too_long", location, message, count.into()));
    }
    let named = grantable().filter(|scope| scope.is_granted_by(&wanted));
    named.map(|scope| scope.as_str().to_owned()).chain(grants).collect()
}

fn unknown_scope_error(
    mut location: Vec<serde_json::Value>,
    index: usize,
    text: &str,
) -> ShapeError {
    location.push(index.into());
    let names = Scope::GRANTABLE.iter().map(|scope| format!("'{}'", scope.as_str()));
    let names: Vec<String> = names.collect();
    let names = names.join(", ");
    let message = if text.starts_with("registry:read:") {
        "Read access cannot be limited to a namespace: use 'registry:read'".to_owned()
    } else {
        format!(
            "Input should be one of {names}, or a right in the registry such as \
             'registry:publish' or 'registry:publish:acme'"
        )
    };
    ShapeError::new("enum", location, message, text.into())
}

/// A token with its secret.
#[derive(Debug, Serialize, ToSchema)]
struct CreateTokenResponse {
    id: String,
    name: String,
    scopes: Vec<String>,
    /// For `Authorization: Bearer …`. It is shown only once.
    token: String,
    created_at: String,
    expires_at: Option<String>,
}

/// A token without its secret.
#[derive(Debug, Serialize, ToSchema)]
struct TokenInfo {
    id: String,
    name: String,
    scopes: Vec<String>,
    created_at: String,
    expires_at: Option<String>,
    /// Rounded to the minute.
    last_used_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct TokenList {
    tokens: Vec<TokenInfo>,
    total: usize,
}

impl From<ApiToken> for TokenInfo {
    fn from(token: ApiToken) -> Self {
        Self {
            id: token.id,
            name: token.name,
            scopes: token.scopes,
            created_at: token.created_at.to_string(),
            expires_at: token.expires_at.map(|time| time.to_string()),
            last_used_at: token.last_used_at.map(|time| time.to_string()),
        }
    }
}

/// List your API tokens, newest first.
#[utoipa::path(
    get, path = "/auth/tokens", tag = "tokens", security(("bearer" = [])),
    responses((status = 200, body = TokenList), docs::Unauthorized, docs::Forbidden, docs::TooManyRequests)
)]
async fn list(
    State(app): State<App>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<TokenList>> {
    let tokens = app.database.accounts().tokens(authenticated.caller.user.id).await?;
    let tokens: Vec<TokenInfo> = tokens.into_iter().map(Into::into).collect();
    Ok(JsonResponse(TokenList { total: tokens.len(), tokens }))
}

/// Create an API token.
///
/// Its secret is shown only once. Scopes: `skills:read`, `skills:write`, `skills:draft` (for
/// agents: skills that they save wait for a user), `skills:run`, `chat`, `knowledge:read`,
/// `knowledge:write`, `workflows:read`, `workflows:write`, `workflows:run`, and, for
/// administrators, `admin`; in the registry `registry:read`, `registry:publish`, `registry:yank`
/// and `registry:owner`, also for one namespace only, such as `registry:publish:acme`.
#[utoipa::path(
    post, path = "/auth/tokens", tag = "tokens", security(("bearer" = [])),
    request_body = CreateTokenRequest,
    responses(
        (status = 201, body = CreateTokenResponse), docs::BadRequest, docs::Unauthorized, docs::Forbidden,
        docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn create(
    State(app): State<App>,
    authenticated: Authenticated<Json<CreateTokenRequest>>,
) -> ApiResult<(StatusCode, JsonResponse<CreateTokenResponse>)> {
    let Authenticated { caller, body: Json(CreateTokenRequest { name, scopes, expires_in_days }) } =
        authenticated;
    if scopes.iter().any(|scope| scope == Scope::Admin.as_str()) {
        caller.check_admin()?;
    }
    let CreatedToken { token, secret } =
        create_token(&app, &caller, TokenSpec { name, scopes, expires_in_days }).await?;
    let TokenInfo { id, name, scopes, created_at, expires_at, .. } = token.into();
    let created = CreateTokenResponse { id, name, scopes, token: secret, created_at, expires_at };
    Ok((StatusCode::CREATED, JsonResponse(created)))
}

/// The data of a new API token, for the API or the registry.
#[derive(Debug)]
pub(super) struct TokenSpec {
    pub(super) name: String,
    pub(super) scopes: Vec<String>,
    pub(super) expires_in_days: Option<u64>,
}

/// A token and the secret that is shown once.
#[derive(Debug)]
pub(super) struct CreatedToken {
    pub(super) token: ApiToken,
    pub(super) secret: String,
}

/// Creates an API token for a user.
pub(super) async fn create_token(
    app: &App,
    caller: &Caller,
    spec: TokenSpec,
) -> ApiResult<CreatedToken> {
    let accounts = app.database.accounts();
    if accounts.tokens(caller.user.id).await?.len() >= MAX_API_TOKENS {
        let text = format!(
            "You have the maximum of {MAX_API_TOKENS} API tokens. Delete one that you no longer use."
        );
        return Err(ApiError::bad_request(text));
    }
    let secret = format!("{API_TOKEN_PREFIX}{}", random_secret()?);
    let end = |days| Timestamp::now().plus(Duration::from_hours(24 * days));
    let new = NewToken {
        user_id: caller.user.id,
        name: &spec.name,
        scopes: &spec.scopes,
        digest: &token_digest(&secret),
        expires_at: spec.expires_in_days.map(end),
        since: caller.claims.as_ref().map_or_else(Timestamp::now, Claims::issued_at),
    };
    let token = accounts.add_token(&caller.actor(), new).await?;
    let token = token.ok_or_else(|| ApiError::unauthorized("Invalid or expired token"))?;
    Ok(CreatedToken { token, secret })
}

/// Revokes an API token of a user; returns false if there is none with this id.
pub(super) async fn revoke_token(app: &App, caller: &Caller, id: &str) -> ApiResult<bool> {
    Ok(app.database.accounts().remove_token(&caller.actor(), caller.user.id, id).await?)
}

/// Revoke an API token.
#[utoipa::path(
    delete, path = "/auth/tokens/{id}", tag = "tokens", security(("bearer" = [])),
    params(("id" = String, Path, description = "The token, by its id")),
    responses(
        (status = 204, description = "The token was revoked"), docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooManyRequests
    )
)]
async fn delete(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<StatusCode> {
    if revoke_token(&app, &authenticated.caller, &id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::not_found("Token not found"))
    }
}
