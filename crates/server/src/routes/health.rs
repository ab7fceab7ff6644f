//! Routes for health checks and metrics.

use std::net::SocketAddr;

use axum::{
    Json, Router,
    extract::{ConnectInfo, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use serde_json::{Value, json};

use crate::{
    access::Scope,
    app::App,
    auth::{authenticate, has_credentials},
    client::is_local,
    error::{ApiError, ApiResult},
    readiness, web,
};

/// Routes that are not part of the OpenAPI document.
pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/", get(identity))
        .route("/health", get(health))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
}

/// Returns the web app to browsers, and the name and version of the server to other clients.
async fn identity(headers: HeaderMap) -> Response {
    if web::prefers_html(&headers) {
        return web::index_page(&headers);
    }
    let body = json!({"name": "Agent Flow Lite API", "version": "0.1.0", "status": "running"});
    ([(header::VARY, "accept")], Json(body)).into_response()
}

async fn health() -> Json<Value> {
    Json(json!({"status": "healthy"}))
}

/// Whether requests can be served: the database and the storage take a small write.
async fn ready(State(app): State<App>) -> Response {
    let health = readiness::check(&app).await;
    let good = health.is_good();
    let status = if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({
        "status": if good { "ready" } else { "not ready" },
        "database": health.database.as_str(),
        "storage": health.storage.as_str(),
    });
    (status, Json(body)).into_response()
}

/// Metrics, for clients on this machine and for administrators.
async fn metrics(
    State(app): State<App>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    if !is_local(&app.config, &headers, Some(peer)) {
        if !has_credentials(&app, &headers) {
            return Err(ApiError::forbidden(
                "Metrics are only for this machine and for administrators",
            ));
        }
        authenticate(&app, &Method::GET, &headers, Scope::Admin).await?.check_admin()?;
    }
    let kind = (header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
    let search = app.registry_state.search().map(|index| (index.skill_count(), index.applied()));
    Ok(([kind], app.metrics.to_prometheus_text(search)).into_response())
}
