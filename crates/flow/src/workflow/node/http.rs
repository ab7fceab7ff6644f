//! A node that asks a server.
//!
//! Nothing is started for it: the request is made here, under a policy that is held before the
//! first byte leaves. The address that was judged is the one that is dialled.

mod answer;
mod request;
mod target;

use std::time::Duration;

use reqwest::{Url, header};

use super::{DISABLED, Done, Given, Stop};
use crate::workflow::{graph::Http, host::HttpPolicy};

/// What clients are told of everything that goes wrong on the way.
const FAILED: &str = "HTTP request failed";

pub(super) async fn perform(http: &Http, given: &Given<'_>) -> Result<Done, Stop> {
    if !given.host.features.http {
        return Err(Stop::failed(DISABLED));
    }
    let limit = Duration::from_secs(http.seconds);
    let asked = ask(http, given);
    tokio::time::timeout(limit, asked).await.unwrap_or_else(|_| Err(Stop::failed(FAILED)))
}

async fn ask(http: &Http, given: &Given<'_>) -> Result<Done, Stop> {
    let scope = given.scope();
    let method = request::method(&http.method)?;
    let url = request::url(&http.url, &scope)?;
    let headers = request::headers(&http.headers, &scope)?;
    let body = request::body(&http.body, &scope)?;
    let client = target::judge(&url, &given.host.http).await?.client()?;
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
    Ok(Done { output, status_code, ..Done::default() })
}

/// What a server answered to somebody who only reads.
#[derive(Debug)]
pub struct Page {
    pub status: u16,
    /// Where it is instead.
    pub location: Option<String>,
    /// Whether it says that it is HTML.
    pub is_html: bool,
    pub text: String,
}

/// Reads a page under the same rules as a node. Redirects are told, not followed.
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
        Ok(Err(Stop::Failed(reason))) => Err(reason),
        Ok(Err(Stop::Gone)) | Err(_) => Err(FAILED.to_owned()),
    }
}

/// The reason is for the log: it may name addresses that are nobody's business.
fn failed(error: reqwest::Error) -> Stop {
    let error = error.without_url();
    let source = std::error::Error::source(&error).map(ToString::to_string);
    tracing::warn!(%error, source, "a request of a workflow failed");
    Stop::failed(FAILED)
}
