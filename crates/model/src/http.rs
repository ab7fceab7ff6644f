//! The way to one provider: when to try again, how long to wait, how much to read.

mod body;
mod frames;
mod refusal;

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
use self::{body::Body, refusal::Words};
use crate::{ModelError, Secret, limits};

/// How long a provider may be silent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) first_byte: Duration,
    pub(crate) idle: Duration,
}

/// The way to one provider. Cloning shares the connections.
#[derive(Clone, Debug)]
pub(crate) struct Http(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    provider: String,
    base: Url,
    headers: HeaderMap,
    key: Option<Secret>,
    patience: Patience,
    /// Made at the first request: reading the system's certificates takes longer than most commands.
    client: OnceLock<Client>,
}

/// Why a try failed, and whether another one may help.
struct Failure {
    error: ModelError,
    again: Again,
}

enum Again {
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
        patience: Patience,
    ) -> Self {
        let client = OnceLock::new();
        Self(Arc::new(Inner {
            provider: provider.to_owned(),
            base,
            headers,
            key,
            patience,
            client,
        }))
    }

    pub(crate) fn provider(&self) -> &str {
        &self.0.provider
    }

    /// Asks for a document.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ModelError> {
        self.document(Method::GET, path, None).await
    }

    /// Sends a document and asks for another one.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        content: &Value,
    ) -> Result<T, ModelError> {
        self.document(Method::POST, path, Some(content)).await
    }

    async fn document<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        content: Option<&Value>,
    ) -> Result<T, ModelError> {
        let body = self.send(method, path, content, limits::DOCUMENT_BYTES).await?;
        let bytes = body.whole().await?;
        serde_json::from_slice(&bytes).map_err(|error| self.garbled(error.to_string()))
    }

    /// Sends a document and asks for a stream.
    pub(crate) async fn stream(
        &self,
        path: &str,
        content: &Value,
        framing: Framing,
    ) -> Result<Frames, ModelError> {
        let body = self.send(Method::POST, path, Some(content), limits::ANSWER_BYTES).await?;
        Ok(Frames::new(body, framing))
    }

    pub(crate) fn garbled(&self, message: impl Into<String>) -> ModelError {
        let message = self.words().clean(&message.into());
        ModelError::Garbled { provider: self.0.provider.clone(), message }
    }

    pub(crate) fn too_many_calls(&self) -> ModelError {
        let provider = self.0.provider.clone();
        ModelError::TooManyCalls { provider, most: limits::TOOL_CALLS }
    }

    pub(crate) fn refused(&self, status: u16, message: &str) -> ModelError {
        let message = self.words().clean(message);
        ModelError::Refused { provider: self.0.provider.clone(), status, message }
    }

    fn timed_out(&self, waited: Duration) -> ModelError {
        let seconds = waited.as_secs() + u64::from(waited.subsec_nanos() > 0);
        ModelError::TimedOut { provider: self.0.provider.clone(), seconds }
    }

    fn words(&self) -> Words<'_> {
        Words { key: self.0.key.as_ref() }
    }

    /// Sends until there is an answer worth reading. Once it begins, nothing is sent again.
    async fn send(
        &self,
        method: Method,
        path: &str,
        content: Option<&Value>,
        limit: usize,
    ) -> Result<Body, ModelError> {
        let mut tries = 1;
        loop {
            let failure = match self.attempt(method.clone(), path, content, limit).await {
                Ok(body) => return Ok(body),
                Err(failure) => failure,
            };
            let pause = match failure.again {
                Again::Soon if tries < limits::TRIES => backoff(tries),
                Again::After(pause) if tries < limits::TRIES => pause.max(backoff(tries)),
                _ => return Err(failure.error),
            };
            tracing::debug!(provider = self.provider(), tries, ?pause, error = %failure.error, "again");
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
    ) -> Result<Body, Failure> {
        let url = self.address(path);
        let client = self.client().map_err(Failure::last)?;
        let mut request = client.request(method, url.clone()).headers(self.0.headers.clone());
        if let Some(content) = content {
            request = request.json(content);
        }
        let deadline = Instant::now() + self.0.patience.first_byte;
        match timeout_at(deadline, request.send()).await {
            Err(_) => Err(Failure::last(self.timed_out(self.0.patience.first_byte))),
            Ok(Err(error)) => Err(self.unreachable(&url, &error)),
            Ok(Ok(response)) if response.status().is_success() => {
                Ok(Body::new(self.clone(), response, deadline, limit))
            }
            Ok(Ok(response)) => Err(self.refusal(response, deadline).await),
        }
    }

    fn address(&self, path: &str) -> Url {
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
        // A key must not follow a redirect to another host.
        let mut builder = Client::builder()
            .connect_timeout(limits::CONNECT)
            .redirect(Policy::none())
            .user_agent(concat!("savoir/", env!("CARGO_PKG_VERSION")));
        if self.0.base.scheme() == "http" {
            // A machine without certificates can still talk to its neighbours.
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
                chain(&error)
            );
            ModelError::Setting(message)
        })?;
        Ok(self.0.client.get_or_init(|| client).clone())
    }

    fn unreachable(&self, url: &Url, error: &reqwest::Error) -> Failure {
        let again = if error.is_connect() { Again::Soon } else { Again::Never };
        let message = self.words().clean(&chain(error));
        let provider = self.0.provider.clone();
        Failure { error: ModelError::Unreachable { provider, url: shown(url), message }, again }
    }

    async fn refusal(&self, response: Response, deadline: Instant) -> Failure {
        let status = response.status();
        let again = again(status, response.headers());
        if status.is_redirection() {
            let message = refusal::redirect(response.headers());
            return Failure::last(self.refused(status.as_u16(), &message));
        }
        let body = Body::new(self.clone(), response, deadline, limits::REFUSAL_BYTES);
        let message = refusal::message(&body.beginning().await);
        let message = if message.is_empty() {
            status.canonical_reason().unwrap_or("no reason given").to_owned()
        } else {
            message
        };
        Failure { error: self.refused(status.as_u16(), &message), again }
    }
}

impl Failure {
    fn last(error: ModelError) -> Self {
        Self { error, again: Again::Never }
    }
}

fn again(status: StatusCode, headers: &HeaderMap) -> Again {
    let busy = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    if !busy || status == StatusCode::NOT_IMPLEMENTED {
        return Again::Never;
    }
    let asked = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    match asked.and_then(|seconds| seconds.trim().parse().ok()).map(Duration::from_secs) {
        Some(pause) if pause > limits::RETRY_AFTER => Again::Never,
        Some(pause) => Again::After(pause),
        None => Again::Soon,
    }
}

/// Whether a server is on this machine, where no proxy can reach it.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Twice as long each time, and up to half as long again, so that many do not come back at once.
fn backoff(tries: u32) -> Duration {
    let pause = limits::BACKOFF * 2_u32.pow(tries - 1);
    let jitter = RandomState::new().hash_one(tries) % 512;
    pause + pause * jitter as u32 / 1024
}

/// An error with what is behind it, without the address.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut message = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = match error.downcast_ref::<reqwest::Error>() {
            // It repeats the address, which may hold a password.
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

/// An address without what may be secret in it.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Addresses of HTTP always have a host, so neither can fail.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.to_string()
}
