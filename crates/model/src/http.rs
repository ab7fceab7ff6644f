//! Implements the HTTP client for one provider, with retries, timeouts and size limits.

mod body;
mod error_response;
mod frames;

use std::{
    error::Error,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{
    Client, Method, Response, StatusCode,
    header::{HeaderMap, RETRY_AFTER},
    redirect::Policy,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};
use url::{Host, Url};

pub(crate) use self::frames::{Frames, Framing};
use self::{body::Body, error_response::MessageSanitizer};
use crate::{ModelError, Secret, limits};

/// How long to wait for the first byte of a response and between bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    pub(crate) first_byte: Duration,
    pub(crate) idle: Duration,
}

/// The HTTP client of one provider. Clones share the connections.
#[derive(Clone, Debug)]
pub(crate) struct Http(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    provider: String,
    base: Url,
    headers: HeaderMap,
    key: Option<Secret>,
    timeouts: Timeouts,
    /// Created with the first request, because reading the system's certificates takes longer than
    /// most commands.
    client: OnceLock<Client>,
}

/// Why an attempt failed, and whether to retry.
struct AttemptError {
    error: ModelError,
    retry: Retry,
}

enum Retry {
    Never,
    Soon,
    After(Duration),
}

impl Http {
    pub(crate) fn new(
        provider: &str,
        base: Url,
        headers: HeaderMap,
        key: Option<Secret>,
        timeouts: Timeouts,
    ) -> Self {
        let client = OnceLock::new();
        Self(Arc::new(Inner {
            provider: provider.to_owned(),
            base,
            headers,
            key,
            timeouts,
            client,
        }))
    }

    pub(crate) fn provider(&self) -> &str {
        &self.0.provider
    }

    /// Fetches a JSON document.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ModelError> {
        self.send_for_json(Method::GET, path, None).await
    }

    /// Sends a JSON document and reads the JSON response.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        content: &Value,
    ) -> Result<T, ModelError> {
        self.send_for_json(Method::POST, path, Some(content)).await
    }

    async fn send_for_json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        content: Option<&Value>,
    ) -> Result<T, ModelError> {
        let body = self.send(method, path, content, limits::MAX_DOCUMENT_BYTES).await?;
        let bytes = body.read_to_end().await?;
        serde_json::from_slice(&bytes).map_err(|error| self.invalid_response(error.to_string()))
    }

    /// Sends a JSON document and reads the response as a stream.
    pub(crate) async fn stream(
        &self,
        path: &str,
        content: &Value,
        framing: Framing,
    ) -> Result<Frames, ModelError> {
        let body = self.send(Method::POST, path, Some(content), limits::MAX_STREAM_BYTES).await?;
        Ok(Frames::new(body, framing))
    }

    pub(crate) fn invalid_response(&self, message: impl Into<String>) -> ModelError {
        let message = self.sanitizer().clean(&message.into());
        ModelError::InvalidResponse { provider: self.0.provider.clone(), message }
    }

    pub(crate) fn too_many_calls(&self) -> ModelError {
        let provider = self.0.provider.clone();
        ModelError::TooManyCalls { provider, max: limits::MAX_TOOL_CALLS }
    }

    pub(crate) fn status_error(&self, status: u16, message: &str) -> ModelError {
        let message = self.sanitizer().clean(message);
        ModelError::Refused { provider: self.0.provider.clone(), status, message }
    }

    fn timed_out(&self, waited: Duration) -> ModelError {
        let seconds = waited.as_secs() + u64::from(waited.subsec_nanos() > 0);
        ModelError::TimedOut { provider: self.0.provider.clone(), seconds }
    }

    fn sanitizer(&self) -> MessageSanitizer<'_> {
        MessageSanitizer { key: self.0.key.as_ref() }
    }

    /// Sends a request with retries. Once a response has started, the request is not sent again.
    async fn send(
        &self,
        method: Method,
        path: &str,
        content: Option<&Value>,
        limit: usize,
    ) -> Result<Body, ModelError> {
        let mut tries = 1;
        loop {
            let attempt_error = match self.attempt(method.clone(), path, content, limit).await {
                Ok(body) => return Ok(body),
                Err(attempt_error) => attempt_error,
            };
            let pause = match attempt_error.retry {
                Retry::Soon if tries < limits::MAX_TRIES => backoff(tries),
                Retry::After(pause) if tries < limits::MAX_TRIES => pause.max(backoff(tries)),
                _ => return Err(attempt_error.error),
            };
            tracing::debug!(provider = self.provider(), tries, ?pause, error = %attempt_error.error, "again");
            sleep(pause).await;
            tries += 1;
        }
    }

    async fn attempt(
        &self,
        method: Method,
        path: &str,
        content: Option<&Value>,
        limit: usize,
    ) -> Result<Body, AttemptError> {
        let url = self.url_for(path);
        let client = self.client().map_err(AttemptError::no_retry)?;
        let mut request = client.request(method, url.clone()).headers(self.0.headers.clone());
        if let Some(content) = content {
            request = request.json(content);
        }
        let deadline = Instant::now() + self.0.timeouts.first_byte;
        match timeout_at(deadline, request.send()).await {
            Err(_) => Err(AttemptError::no_retry(self.timed_out(self.0.timeouts.first_byte))),
            Ok(Err(error)) => Err(self.connect_error(&url, &error)),
            Ok(Ok(response)) if response.status().is_success() => {
                Ok(Body::new(self.clone(), response, deadline, limit))
            }
            Ok(Ok(response)) => Err(self.read_error_response(response, deadline).await),
        }
    }

    fn url_for(&self, path: &str) -> Url {
        let mut url = self.0.base.clone();
        let (path, query) = path.split_once('?').map_or((path, None), |(a, b)| (a, Some(b)));
        url.set_path(&format!("{}/{path}", url.path().trim_end_matches('/')));
        if query.is_some() {
            url.set_query(query);
        }
        url
    }

    fn client(&self) -> Result<Client, ModelError> {
        if let Some(client) = self.0.client.get() {
            return Ok(client.clone());
        }
        // Redirects are not followed, so that a key is never sent to another host.
        let mut builder = Client::builder()
            .connect_timeout(limits::CONNECT_TIMEOUT)
            .redirect(Policy::none())
            .user_agent(concat!("savoir/", env!("CARGO_PKG_VERSION")));
        if self.0.base.scheme() == "http" {
            // Plain HTTP must work on a machine without certificates.
            builder = builder.tls_certs_only([]);
        }
        if is_loopback(&self.0.base) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| {
            let message = format!(
                "{} cannot be asked: {}; are the certificates of the system installed \
                 (package `ca-certificates`)?",
                self.0.provider,
                describe_error_chain(&error)
            );
            ModelError::Setting(message)
        })?;
        Ok(self.0.client.get_or_init(|| client).clone())
    }

    fn connect_error(&self, url: &Url, error: &reqwest::Error) -> AttemptError {
        let retry = if error.is_connect() { Retry::Soon } else { Retry::Never };
        let message = self.sanitizer().clean(&describe_error_chain(error));
        let provider = self.0.provider.clone();
        AttemptError {
            error: ModelError::Unreachable { provider, url: redact_url(url), message },
            retry,
        }
    }

    async fn read_error_response(&self, response: Response, deadline: Instant) -> AttemptError {
        let status = response.status();
        let retry = retry_for_status(status, response.headers());
        if status.is_redirection() {
            let message = error_response::redirect_message(response.headers());
            return AttemptError::no_retry(self.status_error(status.as_u16(), &message));
        }
        let body = Body::new(self.clone(), response, deadline, limits::MAX_ERROR_BODY_BYTES);
        let message = error_response::error_message(&body.read_prefix().await);
        let message = if message.is_empty() {
            status.canonical_reason().unwrap_or("no reason given").to_owned()
        } else {
            message
        };
        AttemptError { error: self.status_error(status.as_u16(), &message), retry }
    }
}

impl AttemptError {
    fn no_retry(error: ModelError) -> Self {
        Self { error, retry: Retry::Never }
    }
}

fn retry_for_status(status: StatusCode, headers: &HeaderMap) -> Retry {
    let busy = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    if !busy || status == StatusCode::NOT_IMPLEMENTED {
        return Retry::Never;
    }
    let retry_after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    match retry_after.and_then(|seconds| seconds.trim().parse().ok()).map(Duration::from_secs) {
        Some(pause) if pause > limits::MAX_RETRY_AFTER => Retry::Never,
        Some(pause) => Retry::After(pause),
        None => Retry::Soon,
    }
}

/// Returns whether a server is on this machine, where no proxy can reach it.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(url_for)) => url_for.is_loopback(),
        Some(Host::Ipv6(url_for)) => url_for.is_loopback(),
        None => false,
    }
}

/// Returns the pause before a retry: exponential backoff with up to 50 % jitter, so that clients do
/// not retry at the same time.
fn backoff(tries: u32) -> Duration {
    let pause = limits::FIRST_BACKOFF * 2_u32.pow(tries - 1);
    let jitter = RandomState::new().hash_one(tries) % 512;
    pause + pause * jitter as u32 / 1024
}

/// Returns an error with its causes, without the URL.
fn describe_error_chain(error: &(dyn Error + 'static)) -> String {
    let mut message = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = match error.downcast_ref::<reqwest::Error>() {
            // The text of a request error repeats the URL, which may contain a password.
            Some(_) if error.source().is_some() => String::new(),
            Some(_) => "the request failed".to_owned(),
            None => error.to_string(),
        };
        if !text.is_empty() && !message.contains(&text) {
            if !message.is_empty() {
                message.push_str(": ");
            }
            message.push_str(&text);
        }
        next = error.source();
    }
    message
}

/// Returns the URL without user name, password and query, which may be secret.
pub(crate) fn redact_url(url: &Url) -> String {
    let mut url = url.clone();
    // HTTP URLs always have a host, so neither call can fail.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.to_string()
}
