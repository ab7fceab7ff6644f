//! `/mcp`: MCP over HTTP, for users with an account.
//!
//! Requests are authenticated before a message is read. Sessions belong to one token of one user; a
//! session of another caller is reported as not found. Requests without a session, which the newest
//! protocol revision allows, are not limited by the sessions of the same token.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::any,
};
use http_body_util::BodyExt as _;
use rmcp::{
    ErrorData,
    model::{ClientRequest, ErrorCode, JsonRpcMessage},
    transport::{
        StreamableHttpServerConfig, StreamableHttpService,
        streamable_http_server::{
            SessionId, SessionManager as _, session::local::LocalSessionManager,
        },
    },
};
use savoir_agent::allowed_tools::AllowedTools;
use savoir_engine::manifest::{MODES, mode};
use savoir_store::Role;
use serde_json::Value;
use tokio::sync::{Mutex as Turn, Semaphore};

use super::{
    CallHistory, McpContext,
    elicitation::PendingCalls,
    message::{self, InvalidMessage},
    session::{Session, SessionState},
    session_activity::{SessionActivity, SessionRequest},
};
use crate::{
    app::App,
    auth::{Authenticated, Caller, Raw},
    body,
    error::{ApiError, ApiResult},
    library::PersonalLibrary,
    tool_runner,
};

/// The path of the route.
pub(crate) const PATH: &str = "/mcp";
/// Maximum bytes of a message.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// The header with the session id.
const SESSION_HEADER: &str = "mcp-session-id";
/// The header with the protocol revision of a request.
const VERSION_HEADER: &str = "mcp-protocol-version";
/// The first revision without sessions, and the methods that it no longer has.
const STATELESS_VERSION: &str = "2026-07-28";
const METHODS_OF_SESSIONS: [&str; 5] =
    ["initialize", "logging/setLevel", "ping", "resources/subscribe", "resources/unsubscribe"];
/// Maximum sessions of one token.
const MAX_SESSIONS_PER_CALLER: usize = 16;
/// Maximum concurrent requests of one token, with or without a session.
const MAX_CONCURRENT_REQUESTS: usize = 64;
/// How long a session stays open without a message.
const SESSION_IDLE_TIMEOUT: Duration = Duration::from_mins(10);
/// Maximum callers that are stored; those without sessions are dropped first.
const MAX_CALLERS: usize = 1000;

/// The key of a caller: one token of one user, with the same role.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    user: i64,
    role: Role,
    token: Option<String>,
}

type Service = StreamableHttpService<Session, LocalSessionManager>;

/// The sessions and limits of one caller.
#[derive(Clone)]
struct McpSession {
    /// One service for each mode. They share the sessions: each session stays in the mode in which
    /// it started.
    services: Arc<[(&'static str, Service)]>,
    sessions: Arc<LocalSessionManager>,
    visits: SessionActivity,
    /// Limits concurrent requests.
    places: Arc<Semaphore>,
    /// Locked while a session is created, so that sessions are created one after the other.
    beginning: Arc<Turn<()>>,
}

#[derive(Default)]
struct McpSessions(Mutex<HashMap<Key, McpSession>>);

pub(crate) fn router() -> Router<App> {
    let sessions = Arc::<McpSessions>::default();
    let route = move |State(app): State<App>, authenticated: Authenticated<Raw>| {
        let sessions = Arc::clone(&sessions);
        async move { sessions.answer(app, authenticated).await }
    };
    Router::new().route(PATH, any(route))
}

impl McpSessions {
    async fn answer(&self, app: App, authenticated: Authenticated<Raw>) -> ApiResult<Response> {
        let Authenticated { caller, body: Raw(request) } = authenticated;
        let mode = wanted_mode(&request)?;
        let is_end = request.method() == Method::DELETE;
        let session = self.session_of(&app, caller);
        let Ok(place) = Arc::clone(&session.places).try_acquire_owned() else {
            let message =
                format!("{MAX_CONCURRENT_REQUESTS} requests are under way: wait for an answer");
            return Err(ApiError::plain(StatusCode::TOO_MANY_REQUESTS, message));
        };
        let (request, begins) = match read_message(request).await? {
            Ok(looked) => looked,
            Err(wrong) => return Ok(invalid_message_response(*wrong)),
        };
        let service = session.service(mode)?;
        let visit = session.track_request(request.headers()).await;
        let response = if begins {
            let _turn = session.beginning.lock().await;
            session.close_idle_session().await?;
            let response = service.handle(request).await;
            // Records the new session as idle from now on.
            drop(session.track_request(response.headers()).await);
            response
        } else {
            service.handle(request).await
        };
        let held = (place, visit);
        let mut response = response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                let _ = &held;
                frame
            }))
        });
        if is_end && response.status() == StatusCode::ACCEPTED {
            // Clients expect that the session is gone, not that it will be.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        // Responses are only for the caller.
        let private = header::HeaderValue::from_static("no-store");
        response.headers_mut().entry(header::CACHE_CONTROL).or_insert(private);
        Ok(response)
    }

    fn session_of(&self, app: &App, caller: Caller) -> McpSession {
        let token = caller.token.as_ref().map(|token| token.id.clone());
        let key = Key { user: caller.user.id, role: caller.user.role, token };
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = sessions.get(&key) {
            return session.clone();
        }
        if sessions.len() >= MAX_CALLERS {
            sessions.retain(|_, session| {
                session.sessions.sessions.try_read().map_or(true, |sessions| !sessions.is_empty())
            });
        }
        let session = McpSession::new(app, caller);
        sessions.insert(key, session.clone());
        session
    }
}

impl McpSession {
    fn new(app: &App, caller: Caller) -> Self {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(SESSION_IDLE_TIMEOUT);
        let sessions = Arc::new(sessions);
        let tools = tool_runner::tools(app, &caller);
        let lacking = tool_runner::missing_scope_message(app, &caller);
        let history = CallHistory::new(app, caller.user.id);
        let skills = Arc::new(PersonalLibrary::new(app.clone(), caller));
        let pending_calls = Arc::new(PendingCalls::default());
        let lasting = Arc::new(ExpiringSession::default());
        let service = |mode| {
            let tools = tools.as_ref().map(|tools| Arc::new(tools.with_mode(mode)));
            let (skills, lacking) = (Arc::clone(&skills), lacking.clone());
            let (pending_calls, lasting) = (Arc::clone(&pending_calls), Arc::clone(&lasting));
            let history = history.clone();
            let new = move || {
                let context = || {
                    let (library, files) = (Arc::clone(&skills), Arc::clone(&skills));
                    let (tools, lacking) = (tools.clone(), lacking.clone());
                    let history = Some(history.clone());
                    McpContext { library, files, tools, lacking, pinned: Vec::new(), history }
                };
                let shared =
                    lasting.get(mode, |list| SessionState::with_allowed_tools(context(), list));
                Ok(Session::new(context(), Arc::clone(&pending_calls)).with_shared_state(shared))
            };
            (mode, StreamableHttpService::new(new, Arc::clone(&sessions), settings(app)))
        };
        Self {
            services: MODES.into_iter().map(service).collect(),
            sessions,
            visits: SessionActivity::default(),
            places: Arc::new(Semaphore::new(MAX_CONCURRENT_REQUESTS)),
            beginning: Arc::default(),
        }
    }

    /// The service for a mode.
    fn service(&self, mode: &str) -> ApiResult<&Service> {
        let found = self.services.iter().find(|(known, _)| *known == mode);
        found.map(|(_, service)| service).ok_or_else(|| ApiError::bad_request("no such mode"))
    }

    /// Records a request in the session that its headers name, if that session exists.
    async fn track_request(&self, headers: &HeaderMap) -> Option<SessionRequest> {
        let session: SessionId = headers.get(SESSION_HEADER)?.to_str().ok()?.into();
        let there = self.sessions.sessions.read().await.contains_key(&session);
        there.then(|| self.visits.begin(session))
    }

    /// Closes the session that is idle for the longest time, if there are too many.
    async fn close_idle_session(&self) -> ApiResult<()> {
        let there: Vec<SessionId> = self.sessions.sessions.read().await.keys().cloned().collect();
        let silent = self.visits.longest_idle(&there, Instant::now());
        if there.len() < MAX_SESSIONS_PER_CALLER {
            return Ok(());
        }
        let Some(silent) = silent else {
            let message =
                format!("There are {MAX_SESSIONS_PER_CALLER} sessions already: end one, or wait");
            return Err(ApiError::plain(StatusCode::TOO_MANY_REQUESTS, message));
        };
        let ended = self.sessions.close_session(&silent).await;
        ended.map_err(|error| ApiError::internal("Failed to end a session", &error))
    }
}

/// The state for requests of one token that belong to no session. Without it, the tool list of a
/// skill would restrict only the request that loads the skill. It expires like a session.
#[derive(Default)]
struct ExpiringSession(Mutex<Option<(Instant, ActiveSession)>>);

/// The state of each mode, and the allowed tools of the skill in use. The allowed tools are shared
/// by all modes, so that switching the mode does not lift the restriction.
#[derive(Default)]
struct ActiveSession {
    list: Arc<AllowedTools>,
    by_mode: HashMap<&'static str, Arc<SessionState>>,
}

impl ExpiringSession {
    fn get(
        &self,
        mode: &'static str,
        new: impl FnOnce(Arc<AllowedTools>) -> SessionState,
    ) -> Arc<SessionState> {
        let mut lasting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lasting.take().filter(|(last, _)| last.elapsed() < SESSION_IDLE_TIMEOUT);
        let (_, mut kept) = known.unwrap_or_else(|| (Instant::now(), ActiveSession::default()));
        let list = Arc::clone(&kept.list);
        let state = Arc::clone(kept.by_mode.entry(mode).or_insert_with(|| Arc::new(new(list))));
        *lasting = Some((Instant::now(), kept));
        state
    }
}

/// The mode in the query: `/mcp?mode=dev`.
fn wanted_mode(request: &Request) -> ApiResult<&'static str> {
    let query = request.uri().query().unwrap_or_default();
    let mut named =
        url::form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "mode");
    let (written, again) = (named.next(), named.next());
    if again.is_some() {
        return Err(ApiError::bad_request("`mode` must be there once"));
    }
    let found = mode(written.as_ref().map(|(_, mode)| mode.as_ref()));
    found.map_err(|why| ApiError::bad_request(format!("`mode`: {why}")))
}

/// Reads a message and whether it starts a session. Only `initialize` does, whatever revision it
/// names. The inner error is an invalid message.
async fn read_message(request: Request) -> ApiResult<Result<(Request, bool), Box<InvalidMessage>>> {
    if request.method() != Method::POST || !is_json(request.headers()) {
        return Ok(Ok((request, false)));
    }
    let (head, body) = request.into_parts();
    let bytes = body::bytes(Request::from_parts(head.clone(), body), MAX_BODY_BYTES).await?;
    if let Some(removed) = removed_method(&head.headers, &bytes) {
        return Ok(Err(Box::new(removed)));
    }
    let begins = match message::read(&bytes) {
        Ok(JsonRpcMessage::Request(request)) => {
            matches!(request.request, ClientRequest::InitializeRequest(_))
                && !head.headers.contains_key(SESSION_HEADER)
        }
        Ok(_) => false,
        Err(wrong) => return Ok(Err(wrong)),
    };
    Ok(Ok((Request::from_parts(head, Body::from(bytes)), begins)))
}

/// The error for a method that the revision of a request no longer has.
fn removed_method(headers: &HeaderMap, bytes: &[u8]) -> Option<InvalidMessage> {
    // Revisions are dates, so that later ones are greater.
    let version = headers.get(VERSION_HEADER)?.to_str().ok()?;
    if version < STATELESS_VERSION {
        return None;
    }
    let message: Value = serde_json::from_slice(bytes).ok()?;
    let method = message.get("method")?.as_str()?;
    if !METHODS_OF_SESSIONS.contains(&method) {
        return None;
    }
    let id = message.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    let text = format!("there is no method `{method}` in the revision {STATELESS_VERSION}");
    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None);
    Some(InvalidMessage { error, id })
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

/// The response to an invalid message.
fn invalid_message_response(InvalidMessage { error, id }: InvalidMessage) -> Response {
    // A request with wrong parameters can still be answered with a JSON-RPC error.
    let status = match error.code {
        ErrorCode::INVALID_PARAMS => StatusCode::OK,
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::BAD_REQUEST,
    };
    let message = serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error});
    (status, axum::Json(message)).into_response()
}

/// Allows only web origins that may use the API, and only host names of this server. This prevents
/// DNS rebinding.
fn settings(app: &App) -> StreamableHttpServerConfig {
    let own = app.config.public_url.as_str();
    let host = url::Url::parse(own).ok().and_then(|url| url.host_str().map(str::to_owned));
    let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let origins = app.config.cors_origins.iter().map(String::as_str).chain([own]);
    StreamableHttpServerConfig::default()
        .with_allowed_hosts(local.into_iter().chain(host))
        .with_allowed_origins(origins.flat_map(loopback_origins).map(|own| with_port(&own)))
        .enforce_origin_validation()
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        .with_cancellation_token(app.stop.child_token())
}

/// An origin, with all names of this machine if it is on this machine.
fn loopback_origins(origin: &str) -> Vec<String> {
    const LOOPBACK_HOSTS: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];
    let Ok(url) = url::Url::parse(origin) else { return vec![origin.to_owned()] };
    match (url.host_str(), url.port_or_known_default()) {
        (Some(host), Some(port)) if LOOPBACK_HOSTS.contains(&host) => {
            LOOPBACK_HOSTS.map(|host| format!("{}://{host}:{port}", url.scheme())).to_vec()
        }
        _ => vec![origin.to_owned()],
    }
}

/// An origin with an explicit port; without one, any port would match.
fn with_port(origin: &str) -> String {
    let Ok(url) = url::Url::parse(origin) else { return origin.to_owned() };
    match (url.host_str(), url.port_or_known_default()) {
        (Some(host), Some(port)) => format!("{}://{host}:{port}", url.scheme()),
        _ => origin.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_origin_stands_for_all_names_of_this_machine() {
        let all = ["http://127.0.0.1:8000", "http://localhost:8000", "http://[::1]:8000"];
        for origin in all {
            assert_eq!(loopback_origins(origin), all, "{origin}");
        }
        for origin in ["https://skills.example.org", "http://192.168.0.1:8000", "null"] {
            assert_eq!(loopback_origins(origin), [origin], "{origin}");
        }
    }

    #[test]
    fn methods_of_sessions_do_not_exist_in_the_stateless_revision() {
        let call = |version: &str, method: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(VERSION_HEADER, version.parse().unwrap());
            let message = serde_json::json!({"jsonrpc": "2.0", "id": 7, "method": method});
            removed_method(&headers, message.to_string().as_bytes())
        };
        for method in METHODS_OF_SESSIONS {
            let removed = call("2026-07-28", method).unwrap();
            assert_eq!(removed.error.code, ErrorCode::METHOD_NOT_FOUND, "{method}");
            assert_eq!(invalid_message_response(removed).status(), StatusCode::NOT_FOUND);
            assert!(call("2025-11-25", method).is_none(), "{method}");
        }
        assert!(call("2026-07-28", "tools/list").is_none());
        assert!(removed_method(&HeaderMap::new(), b"{\"method\":\"initialize\"}").is_none());
    }

    #[test]
    fn an_origin_has_one_port() {
        assert_eq!(with_port("http://localhost:5173"), "http://localhost:5173");
        assert_eq!(with_port("https://skills.example.org"), "https://skills.example.org:443");
        assert_eq!(with_port("http://[::1]:80/"), "http://[::1]:80");
    }
}
