//! Routes for the current account and its registry tokens.

use axum::{extract::State, http::StatusCode, response::Response};
use savoir_package::registry::wire;
use savoir_store::{
    ApiToken,
    registry::{Grant, OwnerScope, Right},
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    docs,
    error::{RegistryApiError, RegistryResult},
    extract::{PathParams, RegistryCaller, registry},
    request::{Body, respond},
};
use crate::{
    access::Scope,
    app::App,
    body::{Members, Shape, ShapeError, Text},
    routes::tokens::{self, CreatedToken, MAX_SCOPES, TokenSpec},
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(whoami)).routes(routes!(list, create)).routes(routes!(end))
}

/// The name of a right without the prefix `registry:`.
fn short_name(right: Right) -> &'static str {
    right.as_str().strip_prefix("registry:").unwrap_or(right.as_str())
}

/// Parses `publish`, `registry:publish` or `registry:publish:acme`. A right without a namespace or
/// skill gets `place`.
fn parse_grant(text: &str, place: Option<&OwnerScope>) -> Option<Grant> {
    let long = Right::ALL.into_iter().find(|right| short_name(*right) == text);
    let grant = match long {
        Some(right) => Grant { right, place: None },
        None => text.parse().ok()?,
    };
    match (grant.place, place) {
        // The right to read is always for the whole registry.
        (None, _) if grant.right == Right::Read => Some(Grant { right: grant.right, place: None }),
        (None, place) => Some(Grant { right: grant.right, place: place.cloned() }),
        (own, None) => Some(Grant { right: grant.right, place: own }),
        (Some(own), Some(place)) if own == *place => {
            Some(Grant { right: grant.right, place: Some(own) })
        }
        _ => None,
    }
}

/// A new token for a program that publishes skills, or reads a private registry.
#[derive(Debug, ToSchema)]
struct CreateRegistryTokenRequest {
    /// The purpose of the token.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// `read`, `publish`, `yank`, `owner`; also as `registry:publish` or `registry:publish:acme`.
    #[schema(value_type = Vec<String>, min_items = 1, max_items = 50)]
    scopes: Vec<Grant>,
    /// The only namespace in which the token is valid, or the only skill, as `_/name`. Default:
    /// everywhere.
    #[schema(value_type = Option<String>)]
    #[expect(dead_code, reason = "it is in the scopes, and described for the OpenAPI document")]
    namespace: Option<OwnerScope>,
    /// Default: never expires.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 366)]
    expires_in_days: Option<u64>,
}

impl Shape for CreateRegistryTokenRequest {
    fn read(members: &mut Members) -> Self {
        let name = members.text("name", Text::between(1, 100));
        let place = members.optional_text("namespace", Text::between(1, 200));
        let place = place.and_then(|text| match text.parse::<OwnerScope>() {
            Ok(place) => Some(place),
            Err(error) => {
                let at = members.location_of("namespace");
                let value = Value::from(text);
                members.reject(ShapeError::new("value_error", at, error.to_string(), value));
                None
            }
        });
        let scopes = scopes(members, place.as_ref());
        let days = members.optional_integer("expires_in_days", 1, 366);
        let expires_in_days = days.and_then(|days| u64::try_from(days).ok());
        Self { name, scopes, namespace: place, expires_in_days }
    }
}

fn scopes(members: &mut Members, place: Option<&OwnerScope>) -> Vec<Grant> {
    let wanted = members.optional_texts("scopes").unwrap_or_default();
    let given = members.value("scopes").and_then(Value::as_array).map_or(0, Vec::len);
    if !(1..=MAX_SCOPES).contains(&given) {
        let (at, message) =
            (members.location_of("scopes"), format!("name 1 to {MAX_SCOPES} scopes"));
        members.reject(ShapeError::new("too_long", at, message, Value::Null));
        return Vec::new();
    }
    let mut grants = Vec::new();
    for (n, text) in wanted.iter().enumerate() {
        match parse_grant(text, place) {
            Some(grant) if grants.contains(&grant) => {}
            Some(grant) => grants.push(grant),
            None => {
                let mut at = members.location_of("scopes");
                at.push(n.into());
                let message = "read, publish, yank or owner; also as registry:publish:acme, if no \
                    other namespace is named";
                members.reject(ShapeError::new("enum", at, message, text.as_str().into()));
            }
        }
    }
    grants
}

/// A token without its secret.
#[derive(Debug, Serialize, ToSchema)]
struct RegistryToken {
    id: String,
    name: String,
    /// The rights, such as `publish` if all are limited to `namespace` or none is limited;
    /// otherwise `registry:publish:acme`. Rights outside of the registry are unchanged.
    scopes: Vec<String>,
    /// The only namespace or skill in which it is valid.
    namespace: Option<String>,
    created_at: String,
    expires_at: Option<String>,
    /// Rounded to the minute.
    last_used_at: Option<String>,
}

impl From<ApiToken> for RegistryToken {
    fn from(token: ApiToken) -> Self {
        let grants: Vec<Grant> = grants(&token);
        let place = grants.iter().find_map(|grant| grant.place.clone());
        // The right to read is not limited to a place.
        let fits = |grant: &Grant| grant.right == Right::Read || grant.place == place;
        let one = grants.len() == token.scopes.len() && grants.iter().all(fits);
        let scopes = if one {
            grants.iter().map(|grant| short_name(grant.right).to_owned()).collect()
        } else {
            token.scopes
        };
        Self {
            id: token.id,
            name: token.name,
            scopes,
            namespace: place.filter(|_| one).map(|place| place.to_string()),
            created_at: token.created_at.to_string(),
            expires_at: token.expires_at.map(|time| time.to_string()),
            last_used_at: token.last_used_at.map(|time| time.to_string()),
        }
    }
}

fn grants(token: &ApiToken) -> Vec<Grant> {
    token.scopes.iter().filter_map(|scope| scope.parse().ok()).collect()
}

/// A token with its secret.
#[derive(Debug, Serialize, ToSchema)]
struct CreateRegistryTokenResponse {
    #[serde(flatten)]
    known: RegistryToken,
    /// For `Authorization: Bearer …`. It is shown only once.
    token: String,
}

/// Tokens, newest first.
#[derive(Debug, Serialize, ToSchema)]
struct RegistryTokenList {
    items: Vec<RegistryToken>,
}

/// Show the current account, the scopes of its token and the namespaces it can publish to.
#[utoipa::path(
    get, path = "/api/v1/whoami", tag = "registry", security(("bearer" = [])),
    responses(
        (status = 200, body = wire::WhoAmI), docs::Unauthorized, docs::Forbidden, docs::TooManyRequests,
        docs::Unavailable
    )
)]
async fn whoami(
    State(app): State<App>,
    RegistryCaller { caller, actor }: RegistryCaller,
) -> RegistryResult<Response> {
    let memberships = registry(&app).memberships(caller.user.id).await?;
    // A token without the scope admin acts as a user, but its account keeps its role.
    let account = app.database.accounts().by_id(caller.user.id).await?;
    let role = account.map_or(caller.user.role, |account| account.role).as_str();
    let scopes = match &caller.token {
        None => Right::ALL.into_iter().map(|right| short_name(right).to_owned()).collect(),
        Some(token) => grants(token)
            .into_iter()
            .map(|grant| match grant.place {
                None => short_name(grant.right).to_owned(),
                Some(place) => format!("{}:{place}", short_name(grant.right)),
            })
            .chain(actor.is_admin().then(|| Scope::Admin.as_str().to_owned()))
            .collect(),
    };
    let who = wire::WhoAmI {
        token_id: caller.token.as_ref().map(|token| token.id.clone()),
        email: Some(caller.user.email),
        role: Some(role.to_owned()),
        scopes,
        namespaces: memberships.into_iter().map(|member| member.owner_scope.to_string()).collect(),
    };
    Ok(respond(StatusCode::OK, &who))
}

/// Fails for API tokens: some actions are only for logged-in users, whatever the scopes of a token.
pub(super) fn check_logged_in(registry_caller: &RegistryCaller) -> RegistryResult<()> {
    match registry_caller.caller.token {
        None => Ok(()),
        Some(_) => Err(RegistryApiError::forbidden("only a person who logged in can do this")),
    }
}

/// List your registry tokens, newest first.
#[utoipa::path(
    get, path = "/api/v1/tokens", tag = "registry", operation_id = "tokens",
    security(("bearer" = [])),
    responses(
        (status = 200, body = RegistryTokenList), docs::Unauthorized, docs::Forbidden,
        docs::TooManyRequests, docs::Unavailable
    )
)]
async fn list(State(app): State<App>, registry_caller: RegistryCaller) -> RegistryResult<Response> {
    check_logged_in(&registry_caller)?;
    let all = app.database.accounts().tokens(registry_caller.caller.user.id).await?;
    let ours = all.into_iter().filter(|token| !grants(token).is_empty());
    Ok(respond(StatusCode::OK, &RegistryTokenList { items: ours.map(Into::into).collect() }))
}

/// Create a registry token. Its secret is shown only once.
#[utoipa::path(
    post, path = "/api/v1/tokens", tag = "registry", operation_id = "make_token",
    security(("bearer" = [])), request_body = CreateRegistryTokenRequest,
    responses(
        (status = 201, body = CreateRegistryTokenResponse), docs::Invalid, docs::Unauthorized,
        docs::Forbidden, docs::TooLarge, docs::Unsupported, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn create(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    Body(wanted): Body<CreateRegistryTokenRequest>,
) -> RegistryResult<Response> {
    check_logged_in(&registry_caller)?;
    let wanted = TokenSpec {
        name: wanted.name,
        scopes: wanted.scopes.iter().map(ToString::to_string).collect(),
        expires_in_days: wanted.expires_in_days,
    };
    let CreatedToken { token, secret } =
        tokens::create_token(&app, &registry_caller.caller, wanted).await?;
    let created = CreateRegistryTokenResponse { known: token.into(), token: secret };
    Ok(respond(StatusCode::CREATED, &created))
}

/// Revoke a registry token. A token can revoke itself.
#[utoipa::path(
    delete, path = "/api/v1/tokens/{id}", tag = "registry", operation_id = "end_token",
    security(("bearer" = [])),
    params(("id" = String, Path, description = "The token, by its id")),
    responses(
        (status = 204, description = "The token was revoked"), docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn end(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    PathParams(id): PathParams<String>,
) -> RegistryResult<StatusCode> {
    if registry_caller.caller.token.as_ref().is_none_or(|own| own.id != id) {
        check_logged_in(&registry_caller)?;
    }
    if tokens::revoke_token(&app, &registry_caller.caller, &id).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(RegistryApiError::not_found("you have no such token; list yours to see their ids"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_in_short_and_in_full() {
        let acme: OwnerScope = "acme".parse().unwrap();
        for (text, place, full) in [
            ("publish", None, Some("registry:publish")),
            ("publish", Some(&acme), Some("registry:publish:acme")),
            ("registry:owner", Some(&acme), Some("registry:owner:acme")),
            ("registry:yank:_/tool", None, Some("registry:yank:_/tool")),
            ("registry:yank:acme", Some(&acme), Some("registry:yank:acme")),
            ("registry:yank:other", Some(&acme), None),
            ("admin", None, None),
            ("publish:acme", None, None),
        ] {
            let grant = parse_grant(text, place).map(|grant| grant.to_string());
            assert_eq!(grant.as_deref(), full, "{text}");
        }
    }
}
