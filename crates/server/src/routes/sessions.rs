//! Routes for stored conversations.

use std::collections::HashMap;

use axum::{Json as JsonResponse, extract::State};
use savoir_store::{Session, SessionMessage, SessionSummary};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::docs;
use crate::{
    app::App,
    auth::{Authenticated, Caller, Json},
    body::{Members, Shape, Text},
    error::{ApiError, ApiResult},
    limits::MAX_SHOWN_MESSAGES,
    params::{Page, Params, Path, Query, QueryPairs},
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get, delete, rename))
        .routes(routes!(messages, truncate))
}

#[derive(Debug, Serialize, ToSchema)]
struct SessionList {
    sessions: Vec<SessionItem>,
}

/// A conversation in a list.
#[derive(Debug, Serialize, ToSchema)]
struct SessionItem {
    session_id: String,
    /// The first message of the user.
    title: Option<String>,
    created_at: String,
    updated_at: String,
    message_count: u64,
    kb_id: Option<String>,
    workflow_id: Option<String>,
    user_id: Option<String>,
    /// The email address of the owner; only in another user's conversation, which administrators
    /// can read.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_email: Option<String>,
}

/// A conversation with its messages.
#[derive(Debug, Serialize, ToSchema)]
struct SessionDetail {
    session_id: String,
    messages: Vec<MessageItem>,
    created_at: String,
    updated_at: String,
    kb_id: Option<String>,
    workflow_id: Option<String>,
    user_id: Option<String>,
    message_count: u64,
    /// The email address of the owner; only in another user's conversation, which administrators
    /// can read.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_email: Option<String>,
}

/// A message of a conversation.
#[derive(Debug, Serialize, ToSchema)]
struct MessageItem {
    /// `user` or `assistant`
    role: &'static str,
    content: String,
    timestamp: String,
    /// Whether the answer was stopped before its end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    stopped: bool,
}

/// A message with its number in the conversation.
#[derive(Debug, Serialize, ToSchema)]
struct NumberedMessage {
    /// The index, from 0.
    index: u64,
    #[serde(flatten)]
    message: MessageItem,
}

#[derive(Debug, Serialize, ToSchema)]
struct MessageList {
    messages: Vec<NumberedMessage>,
    total: u64,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
struct MessageQuery {
    /// Only messages before this index. Default: the newest messages.
    #[param(minimum = 0, required = false, value_type = Option<i64>)]
    before: i64,
    #[param(minimum = 1, maximum = 1000, required = false, value_type = Option<i64>)]
    limit: i64,
}

impl Params for MessageQuery {
    fn read(pairs: &mut QueryPairs) -> Self {
        Self {
            before: pairs.integer("before", i64::MAX, 0, i64::MAX),
            limit: pairs.integer("limit", 1000, 1, 1000),
        }
    }
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
struct TruncateQuery {
    /// The index of the first message to delete.
    #[param(minimum = 0)]
    from: i64,
}

impl Params for TruncateQuery {
    fn read(pairs: &mut QueryPairs) -> Self {
        let from = pairs.text("from");
        Self { from: if from.is_empty() { 0 } else { pairs.integer("from", 0, 0, i64::MAX) } }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct MessageCount {
    message_count: u64,
}

/// The title of a conversation.
#[derive(Debug, ToSchema)]
struct NewTitle {
    /// At most 200 characters. An empty title resets it to the first message.
    #[schema(max_length = 200)]
    title: String,
}

impl Shape for NewTitle {
    fn read(members: &mut Members) -> Self {
        Self { title: members.text("title", Text::between(0, 200)) }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct Deleted {
    status: &'static str,
    message: String,
}

impl SessionItem {
    fn new(
        SessionSummary { session, title }: SessionSummary,
        viewer: i64,
        owners: &Owners,
    ) -> Self {
        Self {
            user_email: owners.email(&session, viewer),
            session_id: shown_id(&session, viewer),
            title,
            created_at: session.created_at.to_string(),
            updated_at: session.updated_at.to_string(),
            message_count: session.message_count,
            kb_id: session.kb_id,
            workflow_id: session.workflow_id,
            user_id: session.user_id.map(|id| id.to_string()),
        }
    }
}

impl From<SessionMessage> for MessageItem {
    fn from(message: SessionMessage) -> Self {
        Self {
            role: message.speaker.as_str(),
            content: message.content,
            timestamp: message.at.to_string(),
            stopped: message.is_stopped,
        }
    }
}

/// List conversations: your own, or all for administrators.
#[utoipa::path(
    get, path = "/chat/sessions", tag = "chat", security(("bearer" = [])), params(Page),
    responses(
        (status = 200, body = SessionList), docs::Unauthorized, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn list(
    State(app): State<App>,
    authenticated: Authenticated<Query<Page>>,
) -> ApiResult<JsonResponse<SessionList>> {
    let sessions = app.database.sessions().list(owner(&authenticated.caller)).await?;
    let Authenticated { caller, body: Query(page) } = authenticated;
    let owners = Owners::load(&app, &caller).await?;
    let item =
        |session: &SessionSummary| SessionItem::new(session.clone(), caller.user.id, &owners);
    Ok(JsonResponse(SessionList { sessions: page.of(&sessions).iter().map(item).collect() }))
}

/// Show a conversation.
#[utoipa::path(
    get, path = "/chat/sessions/{id}", tag = "chat", security(("bearer" = [])),
    params(("id" = String, Path, description = "The conversation")),
    responses(
        (status = 200, body = SessionDetail), docs::Unauthorized, docs::Forbidden, docs::NotFound,
        docs::TooManyRequests
    )
)]
async fn get(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<SessionDetail>> {
    let session = find(&app, &authenticated.caller, &id).await?;
    let messages = app.database.sessions().messages(&session.id, Some(MAX_SHOWN_MESSAGES)).await?;
    let owners = Owners::load(&app, &authenticated.caller).await?;
    Ok(JsonResponse(SessionDetail {
        user_email: owners.email(&session, authenticated.caller.user.id),
        session_id: shown_id(&session, authenticated.caller.user.id),
        message_count: session.message_count,
        messages: messages.into_iter().map(Into::into).collect(),
        created_at: session.created_at.to_string(),
        updated_at: session.updated_at.to_string(),
        kb_id: session.kb_id,
        workflow_id: session.workflow_id,
        user_id: session.user_id.map(|id| id.to_string()),
    }))
}

/// Delete a conversation with its messages.
#[utoipa::path(
    delete, path = "/chat/sessions/{id}", tag = "chat", security(("bearer" = [])),
    params(("id" = String, Path, description = "The conversation")),
    responses(
        (status = 200, body = Deleted), docs::Unauthorized, docs::Forbidden, docs::NotFound,
        docs::TooManyRequests
    )
)]
async fn delete(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<Deleted>> {
    let session = find(&app, &authenticated.caller, &id).await?;
    // The owner is checked again, because another conversation may have got this id meanwhile.
    if !app.database.sessions().delete(&session.id, owner(&authenticated.caller)).await? {
        return Err(not_found(&id));
    }
    let message = format!("Session '{id}' deleted successfully");
    Ok(JsonResponse(Deleted { status: "success", message }))
}

/// Read a part of the messages of a conversation, oldest first.
#[utoipa::path(
    get, path = "/chat/sessions/{id}/messages", tag = "chat", security(("bearer" = [])),
    params(("id" = String, Path, description = "The conversation"), MessageQuery),
    responses(
        (status = 200, body = MessageList), docs::Unauthorized, docs::NotFound, docs::InvalidBody,
        docs::TooManyRequests
    )
)]
async fn messages(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated<Query<MessageQuery>>,
) -> ApiResult<JsonResponse<MessageList>> {
    let Authenticated { caller, body: Query(query) } = authenticated;
    let session = find(&app, &caller, &id).await?;
    let (before, limit) = (query.before.unsigned_abs(), query.limit.unsigned_abs());
    let limit = u32::try_from(limit).unwrap_or(MAX_SHOWN_MESSAGES);
    let found = app.database.sessions().messages_before(&session.id, Some(before), limit).await?;
    let numbered = found
        .into_iter()
        .map(|(index, message)| NumberedMessage { index, message: message.into() });
    Ok(JsonResponse(MessageList { messages: numbered.collect(), total: session.message_count }))
}

/// Delete a message and all after it, for example to get another answer.
#[utoipa::path(
    delete, path = "/chat/sessions/{id}/messages", tag = "chat", security(("bearer" = [])),
    params(("id" = String, Path, description = "The conversation"), TruncateQuery),
    responses(
        (status = 200, body = MessageCount), docs::Unauthorized, docs::NotFound, docs::InvalidBody,
        docs::TooManyRequests
    )
)]
async fn truncate(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated<Query<TruncateQuery>>,
) -> ApiResult<JsonResponse<MessageCount>> {
    let Authenticated { caller, body: Query(query) } = authenticated;
    let session = find(&app, &caller, &id).await?;
    let from = query.from.unsigned_abs();
    let message_count = app.database.sessions().remove_messages(&session.id, from).await?;
    Ok(JsonResponse(MessageCount { message_count }))
}

/// Rename a conversation.
#[utoipa::path(
    patch, path = "/chat/sessions/{id}", tag = "chat", security(("bearer" = [])),
    params(("id" = String, Path, description = "The conversation")), request_body = NewTitle,
    responses(
        (status = 200, body = SessionItem), docs::Unauthorized, docs::NotFound, docs::TooLarge,
        docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn rename(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated<Json<NewTitle>>,
) -> ApiResult<JsonResponse<SessionItem>> {
    let Authenticated { caller, body: Json(new) } = authenticated;
    let session = find(&app, &caller, &id).await?;
    let title = Some(new.title.trim()).filter(|title| !title.is_empty());
    if !app.database.sessions().rename(&session.id, title).await? {
        return Err(not_found(&id));
    }
    let title = title.map(str::to_owned);
    let owners = Owners::load(&app, &caller).await?;
    let summary = SessionSummary { session, title };
    Ok(JsonResponse(SessionItem::new(summary, caller.user.id, &owners)))
}

/// The email addresses of all accounts, for administrators.
struct Owners(HashMap<i64, String>);

impl Owners {
    async fn load(app: &App, caller: &Caller) -> ApiResult<Self> {
        let users =
            if caller.user.is_admin() { app.database.accounts().list().await? } else { Vec::new() };
        Ok(Self(users.into_iter().map(|user| (user.id, user.email)).collect()))
    }

    /// The address of the owner, if the conversation belongs to another user.
    fn email(&self, session: &Session, viewer: i64) -> Option<String> {
        session.user_id.filter(|id| *id != viewer).and_then(|id| self.0.get(&id).cloned())
    }
}

/// The owner filter: the caller, or none for an administrator, who sees all conversations.
fn owner(caller: &Caller) -> Option<i64> {
    if caller.user.is_admin() { None } else { Some(caller.user.id) }
}

/// A conversation of the caller, or any for an administrator. Conversations of others are reported
/// as not found.
async fn find(app: &App, caller: &Caller, id: &str) -> ApiResult<Session> {
    let (sessions, user) = (app.database.sessions(), &caller.user);
    let found = match sessions.own(id, user.id).await? {
        None if user.is_admin() => sessions.get(id).await?,
        found => found,
    };
    found.ok_or_else(|| not_found(id))
}

/// The id that the owner chose; an administrator sees the unique id, because several users may have
/// chosen the same one.
fn shown_id(session: &Session, viewer: i64) -> String {
    let own = session.user_id == Some(viewer);
    if own { session.own_id() } else { &session.id }.to_owned()
}

fn not_found(id: &str) -> ApiError {
    ApiError::not_found(format!("Session '{id}' not found"))
}
