//! Registry errors as HTTP responses, in the format of GAIA's hub.

use std::borrow::Cow;

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use savoir_store::{StoreError, registry::RegistryError};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::error::{ApiError, DENIED_MESSAGE, DISK_FULL_MESSAGE};

/// An error response.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RegistryProblem)]
pub(super) struct Problem {
    error: ProblemDetail,
}

/// The error code and message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RegistryProblemDetail)]
struct ProblemDetail {
    /// The error code.
    code: String,
    /// The error and a hint.
    message: String,
    /// A more specific error code.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The findings of the scan: rule, file, line, message, fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Value>,
}

/// An error response.
#[derive(Debug)]
pub(super) struct RegistryApiError {
    status: StatusCode,
    code: Cow<'static, str>,
    message: String,
    reason: Option<&'static str>,
    /// Boxed, because few errors have findings.
    findings: Option<Box<Value>>,
}

pub(super) type RegistryResult<T> = Result<T, RegistryApiError>;

impl RegistryApiError {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code: code.into(), message: message.into(), reason: None, findings: None }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(super) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden_scope", message)
    }

    /// Adds a more specific code.
    #[must_use]
    pub(super) fn with_reason(self, reason: &'static str) -> Self {
        Self { reason: Some(reason), ..self }
    }

    #[must_use]
    pub(super) fn with_findings(self, findings: Value) -> Self {
        Self { findings: Some(Box::new(findings)), ..self }
    }

    /// 500: the cause is logged.
    pub(super) fn failed(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "the registry failed");
        Self::unavailable()
    }

    fn unavailable() -> Self {
        let message = "the registry cannot do this at the moment; try again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
    }
}

impl From<StoreError> for RegistryApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Quota(reached) => {
                Self::new(StatusCode::FORBIDDEN, "quota_reached", reached.to_string())
            }
            StoreError::Full { .. } => {
                Self { message: DISK_FULL_MESSAGE.to_owned(), ..Self::failed(&error) }
            }
            StoreError::Denied { .. } => {
                Self { message: DENIED_MESSAGE.to_owned(), ..Self::failed(&error) }
            }
            error => Self::failed(&error),
        }
    }
}

impl From<RegistryError> for RegistryApiError {
    fn from(error: RegistryError) -> Self {
        let status = match &error {
            RegistryError::Name { .. } | RegistryError::Invalid { .. } => {
                return Self::invalid(error.to_string());
            }
            RegistryError::NobodyActs => return Self::unauthorized(error.to_string()),
            RegistryError::MissingScope { .. }
            | RegistryError::NotMember { .. }
            | RegistryError::NotOwner { .. } => return Self::forbidden(error.to_string()),
            // Clients give other hints for these than for a name that belongs to others.
            RegistryError::NotAdmin | RegistryError::Reserved { .. } => {
                return Self::forbidden(error.to_string()).with_reason(error.code());
            }
            RegistryError::NotFound { .. } | RegistryError::Withdrawn { .. } => {
                return Self::not_found(error.to_string());
            }
            RegistryError::TakenDown { .. } => StatusCode::FORBIDDEN,
            RegistryError::VersionExists { .. }
            | RegistryError::KeyTaken { .. }
            | RegistryError::Exists { .. }
            | RegistryError::KeyRevoked { .. }
            | RegistryError::LastOwner { .. }
            | RegistryError::TooManyNames { .. }
            | RegistryError::LooksAlike { .. }
            | RegistryError::AccountsExist { .. }
            | RegistryError::SharedStorage { .. } => StatusCode::CONFLICT,
            RegistryError::TooOften { .. } => StatusCode::TOO_MANY_REQUESTS,
            RegistryError::TooSlow | RegistryError::Busy | RegistryError::Store(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        match error {
            RegistryError::Store(cause) => cause.into(),
            error => Self::new(status, error.code(), error.to_string()),
        }
    }
}

/// Converts errors of the rest of the server: authentication, rate limits and bodies.
impl From<ApiError> for RegistryApiError {
    fn from(error: ApiError) -> Self {
        let (status, message) = (error.status(), error.text());
        if status.is_server_error() {
            // The cause was already logged.
            return Self::unavailable();
        }
        let code = match status {
            StatusCode::UNAUTHORIZED => "unauthorized",
            StatusCode::FORBIDDEN => "forbidden_scope",
            StatusCode::NOT_FOUND => "not_found",
            StatusCode::PAYLOAD_TOO_LARGE => "artifact_too_large",
            StatusCode::REQUEST_TIMEOUT => "too_slow",
            StatusCode::TOO_MANY_REQUESTS => "too_many_requests",
            _ => "invalid_request",
        };
        Self::new(status, code, message)
    }
}

impl IntoResponse for RegistryApiError {
    fn into_response(self) -> Response {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(reason) = self.reason {
            error["reason"] = reason.into();
        }
        if let Some(findings) = self.findings {
            error["findings"] = *findings;
        }
        let mut response = (self.status, Json(json!({"error": error}))).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_errors_become_http_errors() {
        let name: RegistryApiError =
            "A B".parse::<savoir_store::registry::PackageName>().unwrap_err().into();
        assert_eq!((name.status, &*name.code), (StatusCode::BAD_REQUEST, "invalid_request"));
        let last: RegistryApiError =
            RegistryError::LastOwner { owner_scope: "acme".parse().unwrap() }.into();
        assert_eq!((last.status, &*last.code), (StatusCode::CONFLICT, "last_owner"));
        let secret = StoreError::Setting("password=x".to_owned());
        let failed: RegistryApiError = RegistryError::Store(secret).into();
        assert_eq!(failed.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(!failed.message.contains("password"));
        let rate: RegistryApiError = ApiError::rate(5).into();
        assert_eq!(&*rate.code, "too_many_requests");
        assert!(rate.message.contains("5 per 1 minute"), "{}", rate.message);
    }
}
