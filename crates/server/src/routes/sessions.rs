//! Routes for stored conversations.

use axum::{Json as JsonResponse, extract::State};
use savoir_store::{Session, SessionMessage, SessionSummary};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::docs;
use crate::{
    app::App,
    auth::Authenticated,
    error::{ApiError, ApiResult},
    limits::MAX_SHOWN_MESSAGES,
    params::Path,
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get, delete))
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
}

/// Something that was said.
#[derive(Debug, Serialize, ToSchema)]
struct MessageItem {
    /// `user` or `assistant`
    role: &'static str,
    content: String,
    timestamp: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct Deleted {
    status: &'static str,
    message: String,
}

impl SessionItem {
    fn new(SessionSummary { session, title }: SessionSummary, viewer: i64) -> Self {
        Self {
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
        }
    }
}

/// List conversations: your own, or all for administrators.
#[utoipa::path(
    get, path = "/chat/sessions", tag = "chat", security(("bearer" = [])),
    responses((status = 200, body = SessionList), docs::Unauthorized, docs::TooMany)
)]
async fn list(
    State(app): State<App>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<SessionList>> {
    let sessions = app.database.sessions().list(owner(&authenticated)).await?;
    let viewer = authenticated.caller.user.id;
    let item = |session| SessionItem::new(session, viewer);
    Ok(JsonResponse(SessionList { sessions: sessions.into_iter().map(item).collect() }))
}

/// Show a conversation.
#[utoipa::path(
    get, path = "/chat/sessions/{id}", tag = "chat", security(("bearer" = [])),
    params(("id" = String, Path, description = "The conversation")),
    responses(
        (status = 200, body = SessionDetail), docs::Unauthorized, docs::Forbidden, docs::Missing,
        docs::TooMany
    )
)]
async fn get(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<SessionDetail>> {
    let session = find(&app, &authenticated, &id).await?;
    let messages = app.database.sessions().messages(&session.id, Some(MAX_SHOWN_MESSAGES)).await?;
    Ok(JsonResponse(SessionDetail {
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
        (status = 200, body = Deleted), docs::Unauthorized, docs::Forbidden, docs::Missing,
        docs::TooMany
    )
)]
async fn delete(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<Deleted>> {
    let session = find(&app, &authenticated, &id).await?;
    // Delete by owner, too: another conversation may have got the id since.
    if !app.database.sessions().delete(&session.id, owner(&authenticated)).await? {
        return Err(not_found(&id));
    }
    let message = format!("Session '{id}' deleted successfully");
    Ok(JsonResponse(Deleted { status: "success", message }))
}

/// The owner filter: the caller, or none for an administrator, who sees all conversations.
fn owner(authenticated: &Authenticated) -> Option<i64> {
    let user = &authenticated.caller.user;
    if user.is_admin() { None } else { Some(user.id) }
}

/// A conversation of the caller, or any for an administrator. Conversations of others are reported
/// as not found.
async fn find(app: &App, authenticated: &Authenticated, id: &str) -> ApiResult<Session> {
    let (sessions, user) = (app.database.sessions(), &authenticated.caller.user);
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
