//! Tokens for programs: made by a person, with fewer rights than the person has.

use std::time::Duration;

use axum::{Json as Answer, extract::State, http::StatusCode};
use savoir_store::{ApiToken, NewToken, Time};
use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::docs;
use crate::{
    access::Scope,
    accounts::random_secret,
    app::App,
    asked::{API_TOKEN_PREFIX, Asked, Json, digest},
    body::{Members, Shape, ShapeError, Text},
    error::{ApiError, ApiResult},
    keys::Claims,
    limits::MAX_TOKENS,
    params::Path,
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(delete))
}

/// A token that is wanted.
#[derive(Debug, ToSchema)]
struct WantedToken {
    /// What it is for.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// What it may do; everything but administration if nothing is said.
    #[schema(schema_with = scopes_schema, required = false)]
    scopes: Vec<Scope>,
    /// Without end if nothing is said.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 366)]
    expires_in_days: Option<u64>,
}

impl Shape for WantedToken {
    fn read(members: &mut Members) -> Self {
        let days = |days: i64| u64::try_from(days).ok();
        Self {
            name: members.text("name", Text::between(1, 100)),
            scopes: scopes(members),
            expires_in_days: members.optional_integer("expires_in_days", 1, 366).and_then(days),
        }
    }
}

fn scopes_schema() -> Schema {
    let names = Scope::GRANTABLE.iter().map(|scope| scope.as_str());
    let name = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).build();
    ArrayBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Array, Type::Null]))
        .description(Some("What it may do; everything but administration if nothing is said."))
        .items(name)
        .min_items(Some(1))
        .build()
        .into()
}

fn scopes(members: &mut Members) -> Vec<Scope> {
    let grantable = Scope::GRANTABLE.iter().copied();
    let Some(wanted) = members.optional_texts("scopes") else {
        return grantable.filter(|scope| *scope != Scope::Admin).collect();
    };
    if members.value("scopes").and_then(|value| value.as_array()).is_some_and(Vec::is_empty) {
        let message = "List should have at least 1 item after validation, not 0";
        let place = members.place("scopes");
        members.reject(ShapeError::new("too_short", place, message, serde_json::json!([])));
    }
    for (at, text) in wanted.iter().enumerate() {
        if !grantable.clone().any(|scope| scope.as_str() == text) {
            let mut place = members.place("scopes");
            place.push(at.into());
            let names: Vec<String> =
                grantable.clone().map(|scope| format!("'{}'", scope.as_str())).collect();
            let message = format!("Input should be one of {}", names.join(", "));
            members.reject(ShapeError::new("enum", place, message, text.as_str().into()));
        }
    }
    grantable.filter(|scope| scope.is_in(&wanted)).collect()
}

/// A token with its secret.
#[derive(Debug, Serialize, ToSchema)]
struct MadeToken {
    id: String,
    name: String,
    scopes: Vec<String>,
    /// For `Authorization: Bearer …`. It is shown this once.
    token: String,
    created_at: String,
    expires_at: Option<String>,
}

/// A token without its secret.
#[derive(Debug, Serialize, ToSchema)]
struct ListedToken {
    id: String,
    name: String,
    scopes: Vec<String>,
    created_at: String,
    expires_at: Option<String>,
    /// To the minute.
    last_used_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct TokenList {
    tokens: Vec<ListedToken>,
    total: usize,
}

impl From<ApiToken> for ListedToken {
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

/// List one's tokens for programs, newest first.
#[utoipa::path(
    get, path = "/auth/tokens", tag = "tokens", security(("bearer" = [])),
    responses((status = 200, body = TokenList), docs::Unauthorized, docs::Forbidden, docs::TooMany)
)]
async fn list(State(app): State<App>, asked: Asked) -> ApiResult<Answer<TokenList>> {
    let tokens = app.database.accounts().tokens(asked.caller.user.id).await?;
    let tokens: Vec<ListedToken> = tokens.into_iter().map(Into::into).collect();
    Ok(Answer(TokenList { total: tokens.len(), tokens }))
}

/// Make a token for a program.
///
/// Its secret is shown this once. Rights: `skills:read`, `skills:write`, `skills:run`, `chat`,
/// `knowledge:read`, `knowledge:write`, `workflows:read`, `workflows:write`, `workflows:run`, and,
/// of administrators, `admin`.
#[utoipa::path(
    post, path = "/auth/tokens", tag = "tokens", security(("bearer" = [])),
    request_body = WantedToken,
    responses(
        (status = 201, body = MadeToken), docs::Bad, docs::Unauthorized, docs::Forbidden,
        docs::TooLarge, docs::BadShape, docs::TooMany
    )
)]
async fn create(
    State(app): State<App>,
    asked: Asked<Json<WantedToken>>,
) -> ApiResult<(StatusCode, Answer<MadeToken>)> {
    let Asked { caller, body: Json(WantedToken { name, scopes, expires_in_days }) } = asked;
    if scopes.contains(&Scope::Admin) {
        caller.must_be_admin()?;
    }
    let accounts = app.database.accounts();
    if accounts.tokens(caller.user.id).await?.len() >= MAX_TOKENS {
        let text = format!("At most {MAX_TOKENS} tokens. Delete one that is not used any more.");
        return Err(ApiError::bad_request(text));
    }
    let secret = format!("{API_TOKEN_PREFIX}{}", random_secret()?);
    let scopes: Vec<String> = scopes.iter().map(|scope| scope.as_str().to_owned()).collect();
    let kept = accounts
        .add_token(NewToken {
            user_id: caller.user.id,
            name: &name,
            scopes: &scopes,
            digest: &digest(&secret),
            expires_at: expires_in_days
                .map(|days| Time::now().plus(Duration::from_hours(24 * days))),
            since: caller.claims.as_ref().map_or_else(Time::now, Claims::issued_at),
        })
        .await?;
    let kept = kept.ok_or_else(|| ApiError::unauthorized("Invalid or expired token"))?;
    let ListedToken { id, name, scopes, created_at, expires_at, .. } = kept.into();
    let made = MadeToken { id, name, scopes, token: secret, created_at, expires_at };
    Ok((StatusCode::CREATED, Answer(made)))
}

/// End a token for a program.
#[utoipa::path(
    delete, path = "/auth/tokens/{id}", tag = "tokens", security(("bearer" = [])),
    params(("id" = String, Path, description = "The token, by its id")),
    responses(
        (status = 204, description = "It has ended"), docs::Unauthorized, docs::Forbidden,
        docs::Missing, docs::TooMany
    )
)]
async fn delete(
    State(app): State<App>,
    Path(id): Path<String>,
    asked: Asked,
) -> ApiResult<StatusCode> {
    if app.database.accounts().remove_token(asked.caller.user.id, &id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::not_found("Token not found"))
    }
}
