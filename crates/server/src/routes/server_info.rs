//! Routes that show administrators the settings of the server and its log.

use std::{convert::Infallible, time::Duration};

use axum::{
    Json as JsonResponse,
    extract::State,
    http::HeaderMap,
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::{Stream, StreamExt as _, stream};
use savoir_store::DatabaseKind;
use serde::Serialize;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::docs;
use crate::{
    app::App,
    auth::{Authenticated, StreamReader},
    error::{ApiError, ApiResult},
    log_tail::{LogLine, LogTail},
    params::{Params, Query, QueryPairs},
};

/// How often an idle stream checks that its reader is still an administrator.
const READER_CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(show_server))
        .routes(routes!(show_log))
        .routes(routes!(follow_log))
}

/// The settings of the server.
#[derive(Debug, Serialize, ToSchema)]
struct ServerInfo {
    version: &'static str,
    #[schema(format = DateTime)]
    started_at: String,
    public_url: String,
    database: Component,
    storage: Component,
    /// Who may create an account: `local`, `open` or `closed`.
    registration: &'static str,
    limits: RequestLimits,
    quotas: AccountQuotas,
    run_retention_days: u64,
    /// Settings that only the options of `savoir serve` change.
    locked: [&'static str; 4],
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ServerComponent)]
struct Component {
    kind: &'static str,
}

/// Maximum requests of one user in a minute; 0 means unlimited.
#[derive(Debug, Serialize, ToSchema)]
struct RequestLimits {
    runs: u32,
    routes: u32,
    all: u32,
}

/// Maximum data of one account; 0 means unlimited.
#[derive(Debug, Serialize, ToSchema)]
struct AccountQuotas {
    skills: u64,
    documents: u64,
    versions: u64,
    bytes: u64,
}

/// Show the settings of the server.
#[utoipa::path(
    get, path = "/admin/server", tag = "admin", security(("bearer" = [])),
    responses(
        (status = 200, body = ServerInfo), docs::Unauthorized, docs::Forbidden, docs::TooManyRequests
    )
)]
async fn show_server(
    State(app): State<App>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<ServerInfo>> {
    authenticated.caller.check_admin()?;
    let (limits, quotas) = (app.config.limits, app.config.quotas);
    let database = match app.database.kind() {
        DatabaseKind::Sqlite => "sqlite",
        DatabaseKind::Postgres => "postgres",
    };
    Ok(JsonResponse(ServerInfo {
        version: env!("CARGO_PKG_VERSION"),
        started_at: app.started_at.to_string(),
        public_url: app.config.public_url.clone(),
        database: Component { kind: database },
        storage: Component { kind: if app.storage.is_bucket() { "s3" } else { "folder" } },
        registration: app.config.registration.as_str(),
        limits: RequestLimits { runs: limits.runs, routes: limits.routes, all: limits.all },
        quotas: AccountQuotas {
            skills: quotas.skills,
            documents: quotas.documents,
            versions: quotas.versions,
            bytes: quotas.bytes,
        },
        run_retention_days: app.config.run_retention.as_secs() / 86_400,
        locked: ["registration", "limits", "quotas", "run_retention_days"],
    }))
}

#[derive(Debug)]
struct LogQuery {
    limit: i64,
    level: String,
}

impl Params for LogQuery {
    fn read(pairs: &mut QueryPairs) -> Self {
        Self {
            limit: pairs.integer("limit", 500, 1, 2000),
            level: pairs.optional_text("level").unwrap_or_else(|| "info".to_owned()),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct LogLines {
    lines: Vec<LogLine>,
}

/// Show the newest lines of the log, oldest first.
#[utoipa::path(
    get, path = "/admin/log", tag = "admin", security(("bearer" = [])),
    params(
        ("limit" = Option<i64>, Query, minimum = 1, maximum = 2000,
            description = "Maximum lines; the default is 500"),
        ("level" = Option<String>, Query,
            description = "The least severe level: `error`, `warn`, `info`, `debug`, or `trace`")
    ),
    responses(
        (status = 200, body = LogLines), docs::Unauthorized, docs::Forbidden, docs::NotFound,
        docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn show_log(
    State(app): State<App>,
    authenticated: Authenticated<Query<LogQuery>>,
) -> ApiResult<JsonResponse<LogLines>> {
    authenticated.caller.check_admin()?;
    let Query(LogQuery { limit, level }) = authenticated.body;
    let (mut lines, _) = log_of(&app)?.read(0, &level);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    lines.drain(..lines.len().saturating_sub(limit));
    Ok(JsonResponse(LogLines { lines }))
}

/// Follow the log as server-sent events named `line`. `Last-Event-ID` continues after a line.
///
/// The stream ends when your login or token ends, or when you are no longer an administrator.
#[utoipa::path(
    get, path = "/admin/log/stream", tag = "admin", security(("bearer" = [])),
    params(
        ("level" = Option<String>, Query,
            description = "The least severe level: `error`, `warn`, `info`, `debug`, or `trace`")
    ),
    responses(
        (status = 200, description = "Lines", body = docs::StreamEvent,
            content_type = "text/event-stream"),
        docs::Unauthorized, docs::Forbidden, docs::NotFound, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn follow_log(
    State(app): State<App>,
    headers: HeaderMap,
    authenticated: Authenticated<Query<LogQuery>>,
) -> ApiResult<Response> {
    authenticated.caller.check_admin()?;
    let Authenticated { caller, body: Query(LogQuery { level, .. }) } = authenticated;
    let reader = StreamReader::new(app.clone(), caller);
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    // Without an id, only new lines are sent: the client has already read the others.
    let (missed, receiver) = log_of(&app)?.read(last.unwrap_or(u64::MAX), &level);
    let lines = stream::iter(missed).chain(following(reader, receiver, level));
    let events = lines.map(|line| {
        let data = serde_json::to_string(&line).unwrap_or_default();
        Ok::<_, Infallible>(Event::default().event("line").id(line.id.to_string()).data(data))
    });
    let stop = app.stop.clone();
    let events = events.take_until(async move { stop.cancelled().await });
    let keep_alive = KeepAlive::new().interval(app.config.heartbeat.max(Duration::from_secs(1)));
    Ok(Sse::new(events).keep_alive(keep_alive).into_response())
}

/// New lines, as long as the reader is an administrator. A slow reader may miss lines.
fn following(
    reader: StreamReader,
    receiver: Receiver<LogLine>,
    level: String,
) -> impl Stream<Item = LogLine> {
    stream::unfold((reader, receiver, level), async |(mut reader, mut receiver, level)| {
        loop {
            let received = tokio::time::timeout(READER_CHECK_INTERVAL, receiver.recv()).await;
            if !reader.is_allowed().await {
                return None;
            }
            match received {
                Ok(Ok(line)) if line.is_at_least(&level) => {
                    return Some((line, (reader, receiver, level)));
                }
                Ok(Err(RecvError::Closed)) => return None,
                // A line of another level, missed lines, or a timeout.
                Ok(Ok(_) | Err(RecvError::Lagged(_))) | Err(_) => {}
            }
        }
    })
}

fn log_of(app: &App) -> ApiResult<&LogTail> {
    app.config.log_tail.as_ref().ok_or_else(|| {
        ApiError::not_found("This server keeps no log").with_hint("read its standard error")
    })
}
