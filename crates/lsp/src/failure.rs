//! Defines why a request failed.

use lsp_server::ErrorCode;
use url::Url;

/// The error of a request, as the client shows it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    pub(crate) code: i32,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code: code as i32, message: message.into() }
    }

    /// Creates the error of a request that is valid but cannot be fulfilled. The user sees the
    /// message.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::RequestFailed, message)
    }

    pub(crate) fn not_open(uri: &Url) -> Self {
        let message = format!("{uri} is not open; send textDocument/didOpen first");
        Self::new(ErrorCode::InvalidParams, message)
    }
}
