//! Converts errors to HTTP responses.
//!
//! Each module has its own error types. At a route they become an [`ApiError`]: a status and a body
//! in one of the formats of the API. Internal errors are logged with their cause; the client gets a
//! fixed text, never the text of the internal error.

use axum::{
    Json,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use savoir_flow::skill_lookup::LoadError;
use savoir_skill::dialect::agent_flow::Refusal;
use savoir_store::{QuotaReached, StoreError, name_of_key};
use serde_json::{Value, json};

use crate::body::ShapeError;

/// An error response.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    body: Value,
    headers: Vec<(HeaderName, HeaderValue)>,
}

pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    /// `{"detail": "…"}`
    pub(crate) fn plain(status: StatusCode, detail: impl Into<String>) -> Self {
        Self::new(status, json!({"detail": detail.into()}))
    }

    /// `{"detail": {"field": "…", "message": "…"}}`
    pub(crate) fn field(status: StatusCode, field: &str, message: impl Into<String>) -> Self {
        Self::new(status, json!({"detail": {"field": field, "message": message.into()}}))
    }

    /// `{"detail": [{"type", "loc", "msg", "input"}]}`
    pub(crate) fn shape(errors: Vec<ShapeError>) -> Self {
        let detail = serde_json::to_value(errors).unwrap_or_default();
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, json!({"detail": detail}))
    }

    /// `{"error": "Rate limit exceeded: …"}`
    pub(crate) fn rate(limit: u32) -> Self {
        let message = format!("Rate limit exceeded: {limit} per 1 minute");
        Self::new(StatusCode::TOO_MANY_REQUESTS, json!({"error": message}))
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::plain(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::plain(StatusCode::BAD_REQUEST, detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::plain(StatusCode::FORBIDDEN, detail)
    }

    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::plain(StatusCode::CONFLICT, detail)
    }

    /// 401 with a `WWW-Authenticate` header.
    pub(crate) fn unauthorized(detail: &str) -> Self {
        Self::plain(StatusCode::UNAUTHORIZED, detail)
            .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// 413, with the limit in bytes.
    pub(crate) fn too_large(limit: usize) -> Self {
        let limit = match limit >> 20 {
            0 => format!("{} KiB", limit >> 10),
            mebibytes => format!("{mebibytes} MiB"),
        };
        Self::plain(StatusCode::PAYLOAD_TOO_LARGE, "Request body too large")
            .with_hint(format!("send at most {limit}"))
    }

    pub(crate) fn too_slow() -> Self {
        Self::plain(StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time")
    }

    /// The response to a failure of the database or the storage: 503 if it may pass, else as
    /// [`Self::internal`].
    pub(crate) fn stored(text: &str, error: &StoreError) -> Self {
        Self::temporary(error).unwrap_or_else(|| Self::internal(text, error))
    }

    /// The response to a failure that ends without a change of the request.
    fn temporary(error: &StoreError) -> Option<Self> {
        let (text, seconds) = match error {
            StoreError::Quota(reached) => return Some((*reached).into()),
            StoreError::Full { .. } => (DISK_FULL_MESSAGE, 30),
            StoreError::Denied { .. } => (DENIED_MESSAGE, 30),
            StoreError::Unavailable { .. } => (UNAVAILABLE_MESSAGE, 5),
            StoreError::Locked { path } => return Some(locked(path)),
            _ => return None,
        };
        tracing::error!(%error, "a request failed");
        let response = Self::plain(StatusCode::SERVICE_UNAVAILABLE, text);
        Some(response.with_header(header::RETRY_AFTER, HeaderValue::from(seconds)))
    }

    /// 500: logs the cause, and returns a fixed text to the client.
    pub(crate) fn internal(text: &str, cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "{text}");
        Self::plain(StatusCode::INTERNAL_SERVER_ERROR, text)
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The message without its JSON structure.
    pub(crate) fn text(&self) -> String {
        let text = [&self.body["detail"], &self.body["detail"]["message"], &self.body["error"]];
        let text = text.into_iter().find_map(|value| value.as_str().map(str::to_owned));
        text.unwrap_or_else(|| "the request has another shape".to_owned())
    }

    /// Converts the error for a run that could not load a skill.
    pub(crate) fn into_load_error(self) -> LoadError {
        let text = |member: &str| self.body["detail"][member].as_str().map(str::to_owned);
        let message = text("message").or_else(|| self.body["detail"].as_str().map(str::to_owned));
        LoadError { message: message.unwrap_or_default() }
    }

    fn new(status: StatusCode, body: Value) -> Self {
        Self { status, body, headers: Vec::new() }
    }

    /// Adds the findings of a skill that was rejected.
    #[must_use]
    pub(crate) fn with_findings(mut self, findings: Vec<Value>) -> Self {
        self.body["detail"]["findings"] = findings.into();
        self
    }

    /// Adds what the user can do about the error.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.body["hint"] = hint.into().into();
        self
    }

    #[must_use]
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }
}

/// Converts a failure of the database or the storage to a response with the text of the route.
pub(crate) trait WithRouteMessage<T> {
    fn or_failed(self, text: &str) -> ApiResult<T>;
}

impl<T> WithRouteMessage<T> for Result<T, StoreError> {
    fn or_failed(self, text: &str) -> ApiResult<T> {
        self.map_err(|error| ApiError::stored(text, &error))
    }
}

/// The message when the disk is full.
pub(crate) const DISK_FULL_MESSAGE: &str = "The disk of the server is full, and the request was not \
    completed. Try again once its operator has freed some space.";

/// The message when the database or the storage refuses writes.
pub(crate) const DENIED_MESSAGE: &str = "The database or the storage of the server refuses \
    access, and the request was not completed. Try again once its operator has restored the permissions.";

/// The message when the database or the storage cannot be reached.
const UNAVAILABLE_MESSAGE: &str =
    "The database or the storage of the server does not answer. Try again later.";

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::stored("Internal server error", &error)
    }
}

/// The response while another program holds a lock.
fn locked(path: &str) -> ApiError {
    tracing::error!(path, "another program holds a lock for too long");
    // The path of the folder on the server is not for clients; its last part names the skill.
    let skill = path.rsplit('/').find(|part| !["", ".lock", "SKILL.md.lock"].contains(part));
    let skill = name_of_key(skill.unwrap_or_default());
    let message =
        format!("Another program holds the lock of '{skill}' in the storage. Try again later.");
    ApiError::plain(StatusCode::SERVICE_UNAVAILABLE, message)
        .with_header(header::RETRY_AFTER, HeaderValue::from(5))
}

impl From<QuotaReached> for ApiError {
    fn from(reached: QuotaReached) -> Self {
        Self::forbidden(reached.to_string())
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self::field(StatusCode::BAD_REQUEST, refusal.field, refusal.message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body)).into_response();
        response.headers_mut().extend(self.headers);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_reported_with_the_skill() {
        for path in ["/data/skills/tea", "/data/skills/tea~7/SKILL.md.lock"] {
            let error = ApiError::from(StoreError::Locked { path: path.to_owned() });
            assert_eq!(error.status(), StatusCode::SERVICE_UNAVAILABLE);
            let message =
                "Another program holds the lock of 'tea' in the storage. Try again later.";
            assert_eq!(error.text(), message, "{path}");
        }
    }
}
