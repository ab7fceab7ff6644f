//! Routes with which administrators add model providers and their API keys. Keys are never
//! returned.

use std::{sync::Arc, time::Duration};

use axum::{Json as JsonResponse, extract::State, http::StatusCode};
use futures::StreamExt as _;
use savoir_model::{ChatRequest, Chunk, LanguageModel, Message, ModelError};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::docs;
use crate::{
    app::App,
    auth::{Authenticated, Json},
    body::{Members, Shape, Text},
    error::{ApiError, ApiResult},
    params::Path,
    providers::{self, AddedProvider, AddedProviders, CHOICES, ProviderChoice},
};

/// How long a model may take for the beginning of its answer in a test. A local model may have to be
/// loaded first.
const TEST_TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum tokens of the answer in a test.
const TEST_TOKENS: u32 = 64;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(put, remove)).routes(routes!(test))
}

/// Settings of a provider. Missing fields stay unchanged, but a new URL requires the key again. An
/// empty URL or model selects the default.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes the body for the OpenAPI document")]
struct ProviderBody {
    #[schema(max_length = 4096)]
    api_key: Option<String>,
    #[schema(max_length = 2048)]
    base_url: Option<String>,
    /// The default model of this provider.
    #[schema(max_length = 256)]
    model: Option<String>,
}

impl Shape for AddedProvider {
    fn read(members: &mut Members) -> Self {
        let mut text = |key, max| {
            let entered = members.optional_text(key, Text::between(0, max))?;
            Some(entered.trim().to_owned())
        };
        Self {
            api_key: text("api_key", 4096).filter(|key| !key.is_empty()),
            base_url: text("base_url", 2048),
            model: text("model", 256),
        }
    }
}

/// A provider of models.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ModelProvider)]
struct ProviderItem {
    /// The prefix of model ids, as in `openai:gpt-4o`.
    id: &'static str,
    label: &'static str,
    needs_key: bool,
    /// Whether an API key is stored. The key itself is never returned.
    has_key: bool,
    base_url: Option<String>,
    model: Option<String>,
    /// `environment` if the server configuration sets it, `settings` if it was added here.
    #[schema(pattern = "^(environment|settings)$")]
    from: Option<&'static str>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ModelProviderList)]
struct ProviderList {
    providers: Vec<ProviderItem>,
}

/// Whether a provider responds.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ProviderTest)]
struct TestResult {
    ok: bool,
    /// The model that would be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The number of models that the provider lists.
    models: usize,
    /// Whether the model answered a question. Without a chosen model, none is asked.
    answered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

fn describe(app: &App, choice: ProviderChoice, added: &AddedProviders) -> ProviderItem {
    let ProviderChoice { id, label, needs_key, usual_url, .. } = choice;
    let is_configured = app.services.models.is_configured(id);
    let own = added.get(id).filter(|_| !is_configured);
    let from = match (is_configured, own) {
        (true, _) => Some("environment"),
        (false, Some(_)) => Some("settings"),
        (false, None) => None,
    };
    let usual_url = usual_url.filter(|_| !is_configured).map(str::to_owned);
    ProviderItem {
        id,
        label,
        needs_key,
        has_key: (is_configured && needs_key) || own.is_some_and(|own| own.api_key.is_some()),
        base_url: own.and_then(|own| own.base_url.clone()).or(usual_url),
        model: own.and_then(|own| own.model.clone()),
        from,
    }
}

/// List the model providers.
#[utoipa::path(
    get, path = "/admin/providers", tag = "admin", operation_id = "list_providers",
    security(("bearer" = [])),
    responses(
        (status = 200, body = ProviderList), docs::Unauthorized, docs::Forbidden, docs::TooManyRequests
    )
)]
async fn list(
    State(app): State<App>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<ProviderList>> {
    authenticated.caller.check_admin()?;
    let added = providers::stored(&app).await?;
    let providers = CHOICES.into_iter().map(|choice| describe(&app, choice, &added)).collect();
    Ok(JsonResponse(ProviderList { providers }))
}

/// Add a model provider, or change it.
#[utoipa::path(
    put, path = "/admin/providers/{id}", tag = "admin", operation_id = "put_provider",
    security(("bearer" = [])), params(("id" = String, Path)), request_body = ProviderBody,
    responses(
        (status = 200, body = ProviderItem), docs::BadRequest, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::Conflict, docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn put(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated<Json<AddedProvider>>,
) -> ApiResult<JsonResponse<ProviderItem>> {
    let Authenticated { caller, body: Json(entered) } = authenticated;
    caller.check_admin()?;
    let choice = ProviderChoice::find(&id)?;
    if app.services.models.is_configured(choice.id) {
        return Err(ApiError::conflict(format!(
            "{} is configured by the settings of the server",
            choice.label
        ))
        .with_hint("change its variable or settings file and start the server again"));
    }
    let added = providers::change(&app, |added| {
        let entered = entered.clone().over(added.get(choice.id), choice.usual_url);
        entered.settings(choice)?.client().map_err(|error| invalid(&error))?;
        added.insert(choice.id.to_owned(), entered);
        Ok(())
    });
    let added = added.await?;
    tracing::info!(provider = choice.id, user = caller.user.id, "a model provider was changed");
    Ok(JsonResponse(describe(&app, choice, &added)))
}

/// Remove an added model provider and its key.
#[utoipa::path(
    delete, path = "/admin/providers/{id}", tag = "admin", operation_id = "remove_provider",
    security(("bearer" = [])), params(("id" = String, Path)),
    responses(
        (status = 204), docs::Unauthorized, docs::Forbidden, docs::NotFound, docs::TooManyRequests
    )
)]
async fn remove(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<StatusCode> {
    authenticated.caller.check_admin()?;
    let choice = ProviderChoice::find(&id)?;
    providers::change(&app, |added| match added.remove(choice.id) {
        Some(_) => Ok(()),
        None => Err(ApiError::not_found(format!("{} was not added here", choice.label))
            .with_hint("what the server's environment configures is removed there")),
    })
    .await?;
    let user = authenticated.caller.user.id;
    tracing::info!(provider = choice.id, user, "a model provider was removed");
    Ok(StatusCode::NO_CONTENT)
}

/// Ask a provider for its models, without storing anything.
///
/// If a model is chosen, or there is only one, it gets a short question, too.
#[utoipa::path(
    post, path = "/admin/providers/{id}/test", tag = "admin", operation_id = "test_provider",
    security(("bearer" = [])), params(("id" = String, Path)), request_body = ProviderBody,
    responses(
        (status = 200, body = TestResult), docs::BadRequest, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn test(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated<Json<AddedProvider>>,
) -> ApiResult<JsonResponse<TestResult>> {
    let Authenticated { caller, body: Json(entered) } = authenticated;
    caller.check_admin()?;
    let choice = ProviderChoice::find(&id)?;
    let added = providers::stored(&app).await?;
    let entered = entered.over(added.get(choice.id), choice.usual_url);
    let settings = entered.settings(choice)?;
    let client = settings.client().map_err(|error| invalid(&error))?;
    let answer = match client.models().await {
        Ok(offered) => {
            let is_chosen = entered.model.is_some() || offered.len() == 1;
            let found = judge(&offered, entered.model);
            match found.model.clone().filter(|_| found.ok && is_chosen) {
                Some(model) => match ask(client, model).await {
                    Ok(()) => TestResult { answered: true, ..found },
                    Err(error) => failed(&error, offered.len()),
                },
                None => found,
            }
        }
        Err(error) => failed(&error, 0),
    };
    Ok(JsonResponse(answer))
}

fn failed(error: &ModelError, models: usize) -> TestResult {
    TestResult {
        ok: false,
        model: None,
        models,
        answered: false,
        error: Some(error.to_string()),
        hint: error.help().or_else(|| Some("check the key and the address".to_owned())),
    }
}

/// Asks a model a short question and waits for the beginning of its answer.
async fn ask(client: Arc<dyn LanguageModel>, model: String) -> Result<(), ModelError> {
    let request = ChatRequest {
        model: model.clone(),
        messages: vec![Message::User("Answer with the word yes.".to_owned())],
        temperature: None,
        max_tokens: Some(TEST_TOKENS),
        tools: Vec::new(),
    };
    let mut answer = client.answer(request);
    let beginning = async {
        while let Some(chunk) = answer.next().await {
            if matches!(chunk?, Chunk::Text(_) | Chunk::End(_)) {
                break;
            }
        }
        Ok(())
    };
    let late = |_| ModelError::TimedOut { provider: model, seconds: TEST_TIMEOUT.as_secs() };
    tokio::time::timeout(TEST_TIMEOUT, beginning).await.map_err(late)?
}

/// Checks whether a provider offers the wanted model, or any model if none is wanted.
fn judge(offered: &[String], wanted: Option<String>) -> TestResult {
    let model = match wanted {
        Some(wanted) if offered.is_empty() || offered.contains(&wanted) => Some(wanted),
        Some(wanted) => {
            let nearest = savoir_lint::words::nearest(&wanted, offered.iter().map(String::as_str));
            let hint = match nearest {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("it has {}", shortened(offered)),
            };
            return TestResult {
                ok: false,
                model: None,
                models: offered.len(),
                answered: false,
                error: Some(format!("the server answers, but has no model `{wanted}`")),
                hint: Some(hint),
            };
        }
        None => offered.first().cloned(),
    };
    if model.is_none() {
        let error = Some("the server answers, but has no model".to_owned());
        let hint = Some("install or enable one there, or enter its name".to_owned());
        return TestResult { ok: false, model, models: 0, answered: false, error, hint };
    }
    TestResult { ok: true, model, models: offered.len(), answered: false, error: None, hint: None }
}

/// The first few names of a list.
fn shortened(names: &[String]) -> String {
    let first: Vec<_> = names.iter().take(5).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > first.len() { " and more" } else { "" };
    format!("{}{more}", first.join(", "))
}

fn invalid(error: &ModelError) -> ApiError {
    let answer = ApiError::bad_request(error.to_string());
    match error.help() {
        Some(hint) => answer.with_hint(hint),
        None => answer,
    }
}
