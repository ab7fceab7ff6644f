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
use crate::{
    event::{Emitter, Event},
    workflow::{graph::Http, host::HttpPolicy, limits, template::TextTooLong},
};

/// The error for clients if the request fails.
const FAILED: &str = "HTTP request failed";

pub(super) async fn run(
    http: &Http,
    context: &NodeContext<'_>,
    out: &Emitter,
) -> Result<NodeResult, NodeError> {
    if !context.host.features.http {
        return Err(NodeError::failed(DISABLED));
    }
    let limit = Duration::from_secs(http.seconds);
    let asked = tokio::time::timeout(limit, ask(http, context)).await;
    let asked = asked.unwrap_or_else(|_| {
        Err(RequestError::Unsent(format!("the server did not answer within {} s", http.seconds)))
    });
    let (result, cut) = match asked {
        Ok(asked) => asked,
        Err(RequestError::Node(error)) => return Err(error),
        Err(RequestError::Unsent(reason)) => {
            // The API defines the text of the error, so the reason is an event of its own.
            out.emit(Event::warning(format!("{FAILED}: {reason}"))).await?;
            return Err(NodeError::failed(FAILED));
        }
    };
    if cut {
        let most = limits::MAX_RESPONSE_BYTES >> 20;
        out.emit(Event::warning(format!("The response was cut after {most} MiB"))).await?;
    }
    Ok(result)
}

/// Why there is no response.
#[derive(Debug)]
pub(super) enum RequestError {
    /// An error with a message that the API defines.
    Node(NodeError),
    /// Any other reason; clients get the general message.
    Unsent(String),
}

impl From<NodeError> for RequestError {
    fn from(error: NodeError) -> Self {
        Self::Node(error)
    }
}

impl From<TextTooLong> for RequestError {
    fn from(error: TextTooLong) -> Self {
        Self::Node(error.into())
    }
}

impl RequestError {
    fn unsent(reason: impl Into<String>) -> Self {
        Self::Unsent(reason.into())
    }

    /// Returns the message without the reason.
    fn into_text(self) -> String {
        match self {
            Self::Node(NodeError::Failed(text)) => text,
            Self::Node(NodeError::ListenerDisconnected) | Self::Unsent(_) => FAILED.to_owned(),
        }
    }
}

/// Sends the request; returns the result, and whether the response was truncated.
async fn ask(http: &Http, context: &NodeContext<'_>) -> Result<(NodeResult, bool), RequestError> {
    let scope = context.scope();
    let method = request::method(&http.method)?;
    let url = request::url(&http.url, &scope)?;
    let headers = request::headers(&http.headers, &scope)?;
    let body = request::body(&http.body, &scope)?;
    let client = target::check_target(&url, &context.host.http).await?.client()?;
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
    let details = Some(answer::details(&response));
    let (text, cut) = answer::read(response).await.map_err(failed)?;
    let output = match &http.response_path {
        Some(path) => answer::part(&text, path),
        None => text.into(),
    };
    Ok((NodeResult { output, status_code, details, ..NodeResult::default() }, cut))
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

/// Reads a page with the same restrictions as an HTTP node. Redirects are returned, not followed.
pub async fn read_page(url: &Url, policy: &HttpPolicy, limit: Duration) -> Result<Page, String> {
    let read = async {
        let client = target::check_target(url, policy).await?.client()?;
        let response = client.get(url.clone()).send().await.map_err(failed)?;
        let status = response.status().as_u16();
        let location = response.headers().get(header::LOCATION);
        let location = location.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let kind = response.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_html = matches!(kind.as_str(), "text/html" | "application/xhtml+xml");
        let (text, _) = answer::read(response).await.map_err(failed)?;
        Ok::<_, RequestError>(Page { status, location, is_html, text })
    };
    match tokio::time::timeout(limit, read).await {
        Ok(Ok(page)) => Ok(page),
        Ok(Err(error)) => Err(error.into_text()),
        Err(_) => Err(FAILED.to_owned()),
    }
}

/// Logs the error, which may contain private addresses, and returns a reason for clients.
fn failed(error: reqwest::Error) -> RequestError {
    let error = error.without_url();
    let source = std::error::Error::source(&error).map(ToString::to_string);
    tracing::warn!(%error, source, "a request of a workflow failed");
    RequestError::unsent(if error.is_connect() {
        "no connection to the server"
    } else if error.is_body() || error.is_decode() {
        "the response ended too early, or cannot be decoded"
    } else {
        "the server did not answer in HTTP"
    })
}
