//! Chat routes: a model, a skill or a workflow answers a message.

use std::{sync::Arc, time::Duration};

use axum::{Json as JsonResponse, extract::State, http::HeaderMap, response::Response};
use savoir_agent::chat::{ChatService, ChatTurn};
use savoir_engine::manifest::mode;
use savoir_flow::{event::Event, services::explain};
use savoir_skill::dialect::agent_flow::parse_at_skill;
use savoir_store::RunKind;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

use super::docs;
use crate::{
    access::Scope,
    app::App,
    auth::{Authenticated, Caller, Json},
    body::{Members, Shape, Text},
    error::{ApiError, ApiResult},
    executions::{self, RunningExecution},
    library::PersonalLibrary,
    limits::MAX_MESSAGE_CHARS,
    questions::{EXTRA_TIME, StreamAsker},
    run_history::NewRun,
    skill_lookup::PersonalSkills,
    stream::{self, OnDisconnect, StreamKind},
    tool_runner,
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(complete)).routes(routes!(models))
}

/// A message to a model, a skill or a workflow.
#[derive(Debug, Deserialize, ToSchema)]
struct ChatMessage {
    /// The conversation: 1 to 128 letters, digits, `_` and `-`.
    #[schema(pattern = "^[a-zA-Z0-9_-]{1,128}$")]
    session_id: String,
    /// The message. `@skill text` runs a skill.
    #[schema(min_length = 1, max_length = 100_000)]
    message: String,
    /// The workflow that answers.
    workflow_id: Option<String>,
    /// The knowledge base to search.
    kb_id: Option<String>,
    /// `provider:model` or a model's name.
    model: Option<String>,
    /// The mode, which limits the tools of skills that the model can use: `Global`, `Dev`,
    /// `Meeting` or `Writer`. Default: `Global`.
    mode: Option<String>,
    /// Whether the answer continues when the client disconnects.
    #[schema(required = false)]
    detached: bool,
}

impl ChatMessage {
    /// The record of the answer.
    fn new_run(&self, caller: &Caller) -> NewRun {
        let mut inputs = json!({"session_id": self.session_id, "message": self.message});
        for (key, value) in [
            ("workflow_id", &self.workflow_id),
            ("kb_id", &self.kb_id),
            ("model", &self.model),
            ("mode", &self.mode),
        ] {
            if let Some(value) = value {
                inputs[key] = json!(value);
            }
        }
        NewRun {
            id: None,
            kind: RunKind::Chat,
            user_id: caller.user.id,
            name: self.message.clone(),
            target: self.session_id.clone(),
            inputs,
        }
    }
}

impl Shape for ChatMessage {
    fn read(members: &mut Members) -> Self {
        let id = |text: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            (1..=128).contains(&text.len()) && text.chars().all(plain)
        };
        Self {
            session_id: members.pattern("session_id", "^[a-zA-Z0-9_-]{1,128}$", id),
            message: members.text("message", Text::between(1, MAX_MESSAGE_CHARS)),
            workflow_id: members.optional_text("workflow_id", Text::ANY),
            kb_id: members.optional_text("kb_id", Text::ANY),
            model: members.optional_text("model", Text::ANY),
            mode: members.optional_text("mode", Text::ANY),
            detached: members.optional_boolean("detached"),
        }
    }
}

/// Send a message and stream the answer.
#[utoipa::path(
    post, path = "/chat/completions", tag = "chat", security(("bearer" = [])),
    request_body = ChatMessage,
    responses(
        (status = 200, description = "Events: thought, token, citation, approval, error, done",
         body = docs::StreamEvent, content_type = "text/event-stream"),
        docs::BadRequest, docs::Unauthorized, docs::Forbidden, docs::TooLarge, docs::InvalidBody,
        docs::TooManyRequests
    )
)]
async fn complete(
    State(app): State<App>,
    headers: HeaderMap,
    authenticated: Authenticated<Json<ChatMessage>>,
) -> ApiResult<Response> {
    let Authenticated { caller, body: Json(said) } = authenticated;
    if said.message.trim().is_empty() {
        return Err(ApiError::bad_request("Message cannot be empty"));
    }
    let mode = mode(said.mode.as_deref());
    let mode = mode.map_err(|why| ApiError::bad_request(format!("`mode`: {why}")))?;
    if said.workflow_id.is_some() {
        caller.check_scope(Scope::WorkflowsRun)?;
    } else if parse_at_skill(&said.message).0.is_some() {
        caller.check_scope(Scope::SkillsRun)?;
    }
    // If the user cannot see the workflow, its id is not stored in the conversation.
    let workflow = match &said.workflow_id {
        Some(id) => executions::find(&app, &caller, id).await?,
        None => None,
    };
    check_own(&app, &caller, &said.session_id).await?;
    // Each user has separate ids, so a message never goes into another user's conversation.
    let session = app.database.sessions().ensure(&said.session_id, caller.user.id).await?;
    let (new, then) = (said.new_run(&caller), OnDisconnect::new(&headers, said.detached));
    let skill_lookup = Arc::new(PersonalSkills { app: app.clone(), caller: caller.clone() });
    let chat = ChatService {
        services: app.services.clone(),
        skill_lookup,
        database: app.database.clone(),
    };
    let turn = ChatTurn {
        session: session.id,
        message: said.message,
        kb_id: said.kb_id,
        model: said.model,
        user: caller.user.id,
        extra_time: Duration::ZERO,
    };
    chat.store_message(&turn, workflow.as_ref().map(|workflow| workflow.id.as_str())).await?;
    let Some(workflow_id) = said.workflow_id else {
        // A token without the scope to run skills must not run them through a model.
        if app.config.chat_tools && caller.check_scope(Scope::SkillsRun).is_ok() {
            let tools = tool_runner::tools(&app, &caller).map(|tools| tools.with_mode(mode));
            let asks = tools.is_some() && StreamAsker::may_ask(&app, &headers, &caller);
            let run = Uuid::now_v7().to_string();
            let new = NewRun { id: Some(run.clone()), ..new };
            let turn =
                ChatTurn { extra_time: if asks { EXTRA_TIME } else { turn.extra_time }, ..turn };
            let library = Arc::new(PersonalLibrary::new(app.clone(), caller.clone()));
            let asking = app.clone();
            let answered = stream::respond(&app, StreamKind::Chat, new, then, async move |out| {
                let asker = asks.then(|| StreamAsker::new(asking, &caller, run, out.clone()));
                let tools = tools.map(|tools| match asker {
                    Some(asker) => tools.with_asker(asker),
                    None => tools,
                });
                chat.answer_with_tools(&turn, library, tools, &out).await;
            });
            return Ok(answered.await);
        }
        let answered = stream::respond(&app, StreamKind::Chat, new, then, async move |out| {
            chat.answer(&turn, &out).await;
        });
        return Ok(answered.await);
    };
    let Some(workflow) = workflow else {
        let answered = stream::respond(&app, StreamKind::Chat, new, then, async move |out| {
            let message = format!("Workflow {workflow_id} not found");
            // Ignored: the client may have disconnected.
            let _ = out.emit(Event::error(message.clone())).await;
            let _ = out.emit(Event::failed(message)).await;
        });
        return Ok(answered.await);
    };
    let begun =
        executions::begin(&app, &caller, workflow, &turn.message, turn.model.as_deref()).await?;
    let new = NewRun { id: Some(begun.id().to_owned()), ..new };
    let answered = stream::respond(&app, StreamKind::Chat, new, then, async move |out| {
        let RunningExecution { host, journal, .. } = &begun;
        chat.answer_by_workflow(&turn, host, begun.run(), journal, &out).await;
    });
    Ok(answered.await)
}

/// Administrators can read the conversations of others. A message to one of them is an error, not
/// the start of a second conversation with the same id.
async fn check_own(app: &App, caller: &Caller, id: &str) -> ApiResult<()> {
    let sessions = app.database.sessions();
    if !caller.user.is_admin() || sessions.own(id, caller.user.id).await?.is_some() {
        return Ok(());
    }
    match sessions.get(id).await?.and_then(|session| session.user_id) {
        Some(owner) if owner != caller.user.id => {
            Err(ApiError::forbidden("This conversation belongs to another user")
                .with_hint("start a conversation of your own, with another id"))
        }
        _ => Ok(()),
    }
}

/// A model that can answer messages.
#[derive(Debug, Serialize, ToSchema)]
struct ModelItem {
    /// `provider:model`
    id: String,
    provider: String,
    model: String,
    enabled: bool,
}

#[derive(Debug, Serialize, ToSchema)]
struct ModelList {
    items: Vec<ModelItem>,
    default_model: Option<String>,
    total: usize,
    /// Providers whose models cannot be listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    unavailable: Vec<UnavailableProvider>,
}

/// A provider whose models cannot be listed.
#[derive(Debug, Serialize, ToSchema)]
struct UnavailableProvider {
    provider: String,
    /// The reason, with a hint.
    message: String,
}

/// List the available models.
#[utoipa::path(
    get, path = "/chat/models", tag = "chat", security(("bearer" = [])),
    responses((status = 200, body = ModelList), docs::Unauthorized, docs::TooManyRequests)
)]
async fn models(State(app): State<App>, _: Authenticated) -> JsonResponse<ModelList> {
    let (mut items, mut unavailable) = (Vec::new(), Vec::new());
    let all = app.services.models.list().await;
    // The first provider has the default model. It is not asked again: that takes seconds if it
    // cannot be reached.
    let default_model = all.first().and_then(|first| {
        let listed = || first.models.as_ref().ok()?.first();
        let set = first.default_model.as_ref().filter(|model| !model.is_empty());
        Some(format!("{}:{}", first.provider, set.or_else(listed)?))
    });
    for listed in all {
        let provider = &listed.provider;
        match listed.models {
            Ok(models) => items.extend(models.into_iter().map(|model| ModelItem {
                id: format!("{provider}:{model}"),
                provider: provider.clone(),
                model,
                enabled: true,
            })),
            Err(error) => {
                tracing::warn!(provider, %error, "the models cannot be listed");
                let (provider, message) = (provider.clone(), explain(&error));
                unavailable.push(UnavailableProvider { provider, message });
            }
        }
    }
    JsonResponse(ModelList { total: items.len(), items, default_model, unavailable })
}
