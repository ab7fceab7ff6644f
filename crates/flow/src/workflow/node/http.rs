//! Runs HTTP nodes, which send a request to a server.
//!
//! The request is sent from this process. The policy is checked before the first byte is sent, and
//! the connection goes to the address that was checked.

mod answer;
mod request;
mod target;

use std::time::Duration;

use reqwest::{Url, header};

use super::{DISABLED, NodeContext, NodeError, NodeResult};
use crate::workflow::{graph::Http, host::HttpPolicy};

/// The error for clients if the request fails.
const FAILED: &str = "HTTP request failed";

pub(super) async fn run(http: &Http, context: &NodeContext<'_>) -> Result<NodeResult, NodeError> {
    if !context.host.features.http {
        return Err(NodeError::failed(DISABLED));
    }
    let limit = Duration::from_secs(http.seconds);
    let asked = ask(http, context);
    tokio::time::timeout(limit, asked).await.unwrap_or_else(|_| Err(NodeError::failed(FAILED)))
}

async fn ask(http: &Http, context: &NodeContext<'_>) -> Result<NodeResult, NodeError> {
    let scope = context.scope();
    let method = request::method(&http.method)?;
    let url = request::url(&http.url, &scope)?;
    let headers = request::headers(&http.headers, &scope)?;
    let body = request::body(&http.body, &scope)?;
    let client = target::judge(&url, &context.host.http).await?.client()?;
    let mut request = client.request(method, url).headers(headers.clone());
    if let Some(body) = body {
        if let Some(kind) = body.kind
            && !headers.contains_key(reqwest::header::CONTENT_TYPE)
        {
            request = request.header(reqwest::header::CONTENT_TYPE, kind);
        }
        request = request.body(body.text);
    }
    let response = request.send().await.map_err(failed)?;
    let status_code = Some(response.status().as_u16());
    let text = answer::read(response).await.map_err(failed)?;
    let output = match &http.response_path {
        Some(path) => answer::part(&text, path),
        None => text.into(),
    };
    Ok(NodeResult { output, status_code, ..NodeResult::default() })
}

/// The response to a GET request.
#[derive(Debug)]
pub struct Page {
    pub status: u16,
    /// The target of a redirect.
    pub location: Option<String>,
    /// Whether the content type is HTML.
    pub is_html: bool,
    pub text: String,
}

/// Reads a page under the same rules as a node. Redirects are returned, not followed.
pub async fn read_page(url: &Url, policy: &HttpPolicy, limit: Duration) -> Result<Page, String> {
    let read = async {
        let client = target::judge(url, policy).await?.client()?;
        let response = client.get(url.clone()).send().await.map_err(failed)?;
        let status = response.status().as_u16();
        let location = response.headers().get(header::LOCATION);
        let location = location.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let kind = response.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_html = matches!(kind.as_str(), "text/html" | "application/xhtml+xml");
        let text = answer::read(response).await.map_err(failed)?;
        Ok(Page { status, location, is_html, text })
    };
    match tokio::time::timeout(limit, read).await {
        Ok(Ok(page)) => Ok(page),
        Ok(Err(NodeError::Failed(reason))) => Err(reason),
        Ok(Err(NodeError::Gone)) | Err(_) => Err(FAILED.to_owned()),
    }
}

/// Logs the reason, which may contain private addresses, and returns the error for clients.
fn failed(error: reqwest::Error) -> NodeError {
    let error = error.without_url();
    let source = std::error::Error::source(&error).map(ToString::to_string);
    tracing::warn!(%error, source, "a request of a workflow failed");
    NodeError::failed(FAILED)
}
