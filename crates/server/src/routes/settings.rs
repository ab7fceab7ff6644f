//! Routes for shared settings and token usage.

use std::{collections::BTreeMap, time::Duration};

use axum::{Json as JsonResponse, extract::State};
use savoir_store::{Timestamp, TokenSums};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::docs;
use crate::{
    app::App,
    auth::{Authenticated, Json},
    body::{Members, Shape},
    error::{ApiError, ApiResult},
    params::{Params, Path, Query, QueryPairs},
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_flags))
        .routes(routes!(set_flag))
        .routes(routes!(show_embedding_model))
        .routes(routes!(token_usage))
}

/// A feature flag that administrators can turn on. All are off by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flag {
    CodeNode,
    HttpNode,
    OpenAiApi,
    PublicEmbed,
}

impl Flag {
    const ALL: [Self; 4] = [Self::CodeNode, Self::HttpNode, Self::OpenAiApi, Self::PublicEmbed];

    fn key(self) -> &'static str {
        match self {
            Self::CodeNode => "ENABLE_CODE_NODE",
            Self::HttpNode => "ENABLE_HTTP_NODE",
            Self::OpenAiApi => "ENABLE_OPENAI_API",
            Self::PublicEmbed => "ENABLE_PUBLIC_EMBED",
        }
    }

    fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flag| flag.key().eq_ignore_ascii_case(key))
    }

    fn setting_key(self) -> String {
        format!("flag:{}", self.key())
    }
}

/// Whether a feature flag is on.
pub(crate) async fn is_flag_on(app: &App, flag: Flag) -> ApiResult<bool> {
    let value = app.database.settings().get(&flag.setting_key()).await?;
    Ok(value.as_deref() == Some("true"))
}

/// The state of a feature flag.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Switch)]
struct FlagState {
    key: &'static str,
    enabled: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SwitchList)]
struct FlagStateList {
    items: Vec<FlagState>,
    total: usize,
}

/// Whether a feature flag is on.
#[derive(Debug, ToSchema)]
#[schema(as = Enabled)]
struct SetFlagRequest {
    enabled: bool,
}

impl Shape for SetFlagRequest {
    fn read(members: &mut Members) -> Self {
        Self { enabled: members.boolean("enabled") }
    }
}

/// List the feature flags.
#[utoipa::path(
    get, path = "/settings/feature-flags", tag = "settings", security(("bearer" = [])),
    responses((status = 200, body = FlagStateList), docs::Unauthorized, docs::TooManyRequests)
)]
async fn list_flags(
    State(app): State<App>,
    _: Authenticated,
) -> ApiResult<JsonResponse<FlagStateList>> {
    let mut items = Vec::with_capacity(Flag::ALL.len());
    for flag in Flag::ALL {
        items.push(FlagState { key: flag.key(), enabled: is_flag_on(&app, flag).await? });
    }
    Ok(JsonResponse(FlagStateList { total: items.len(), items }))
}

/// Set a feature flag.
#[utoipa::path(
    put, path = "/settings/feature-flags/{key}", tag = "settings", security(("bearer" = [])),
    params(("key" = String, Path, description = "The flag, in any case")),
    request_body = SetFlagRequest,
    responses(
        (status = 200, body = FlagState), docs::BadRequest, docs::Unauthorized, docs::Forbidden,
        docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn set_flag(
    State(app): State<App>,
    Path(key): Path<String>,
    authenticated: Authenticated<Json<SetFlagRequest>>,
) -> ApiResult<JsonResponse<FlagState>> {
    let Authenticated { caller, body: Json(SetFlagRequest { enabled }) } = authenticated;
    caller.check_admin()?;
    let unknown = || ApiError::bad_request(format!("Unsupported feature flag: {key}"));
    let flag = Flag::from_key(&key).ok_or_else(unknown)?;
    let value = if enabled { "true" } else { "false" };
    app.database.settings().put(&flag.setting_key(), value).await?;
    tracing::info!(flag = flag.key(), enabled, user = caller.user.id, "feature flag set");
    Ok(JsonResponse(FlagState { key: flag.key(), enabled }))
}

/// The embedding model.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Embedding)]
struct EmbeddingModel {
    provider: String,
    model: String,
}

/// Show the embedding model, if there is one.
#[utoipa::path(
    get, path = "/settings/embedding", tag = "settings", operation_id = "embedding",
    security(("bearer" = [])),
    responses((status = 200, body = EmbeddingModel), docs::Unauthorized, docs::TooManyRequests)
)]
async fn show_embedding_model(
    State(app): State<App>,
    _: Authenticated,
) -> JsonResponse<EmbeddingModel> {
    let identity =
        app.services.models.embedder().map_or("none:bm25", |embedder| embedder.identity());
    let (provider, model) = identity.split_once(':').unwrap_or(("", identity));
    JsonResponse(EmbeddingModel { provider: provider.to_owned(), model: model.to_owned() })
}

/// The query parameters of the token usage.
#[derive(Debug)]
struct TokenUsageQuery {
    hours: u64,
}

impl Params for TokenUsageQuery {
    fn read(pairs: &mut QueryPairs) -> Self {
        Self { hours: pairs.integer("hours", 24, 1, 720).unsigned_abs() }
    }
}

/// The token usage of all requests to models.
#[derive(Debug, Serialize, ToSchema)]
struct TokenUsage {
    total_input_tokens: u64,
    total_output_tokens: u64,
    total_requests: u64,
    by_provider: BTreeMap<String, UsageSums>,
    by_model: BTreeMap<String, UsageSums>,
}

/// The token usage of one provider or model.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Sums)]
struct UsageSums {
    input_tokens: u64,
    output_tokens: u64,
    requests: u64,
}

impl From<TokenSums> for UsageSums {
    fn from(tokens: TokenSums) -> Self {
        let TokenSums { input_tokens, output_tokens, requests } = tokens;
        Self { input_tokens, output_tokens, requests }
    }
}

/// Show the token usage of models.
#[utoipa::path(
    get, path = "/observability/token-usage", tag = "settings", security(("bearer" = [])),
    params((
        "hours" = Option<i64>, Query, minimum = 1, maximum = 720,
        description = "How far back; the default is 24"
    )),
    responses(
        (status = 200, body = TokenUsage), docs::Unauthorized, docs::Forbidden, docs::InvalidBody,
        docs::TooManyRequests
    )
)]
async fn token_usage(
    State(app): State<App>,
    authenticated: Authenticated<Query<TokenUsageQuery>>,
) -> ApiResult<JsonResponse<TokenUsage>> {
    authenticated.caller.check_admin()?;
    let Query(TokenUsageQuery { hours }) = authenticated.body;
    let since = Timestamp::now().minus(Duration::from_hours(hours));
    let summary = app.database.usage().summary(since, None).await?;
    let sums = |groups: BTreeMap<String, TokenSums>| {
        groups.into_iter().map(|(name, tokens)| (name, tokens.into())).collect()
    };
    Ok(JsonResponse(TokenUsage {
        total_input_tokens: summary.total.input_tokens,
        total_output_tokens: summary.total.output_tokens,
        total_requests: summary.total.requests,
        by_provider: sums(summary.by_provider),
        by_model: sums(summary.by_model),
    }))
}
