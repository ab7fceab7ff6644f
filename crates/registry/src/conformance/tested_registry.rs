//! The registry that is checked, and the client for it.

use std::{
    fmt::Write as _,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use reqwest::{
    Method,
    header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
};
use savoir_lint::{visible, words::shorten};
use savoir_package::registry::Name;
use serde_json::Value;
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::{CheckFailure, CheckRequirement, fail, sample::PublishedSample};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 << 20;
/// Maximum number of tries after 429 responses.
const MAX_TRIES: usize = 4;
/// Maximum wait between two tries, in seconds.
const MAX_RETRY_AFTER_SECONDS: u64 = 61;

/// Path of the index configuration.
const CONFIG_PATH: &str = "index/v1/config.json";

fn why(miss: CheckFailure) -> String {
    match miss {
        CheckFailure::Failed(why) | CheckFailure::Skipped(why) => why,
    }
}

/// The registry to check, and the tokens for it.
#[derive(Clone, Debug, Default)]
pub struct TestSettings {
    /// Address of the registry, with or without `/registry`.
    pub url: String,
    /// A token that may publish.
    pub token: Option<String>,
    /// A token of another account.
    pub other: Option<String>,
    /// The namespace to publish in.
    pub namespace: Option<String>,
    /// Whether nothing is published.
    pub read_only: bool,
    /// The skill to download if nothing is published. Default: the first listed skill.
    pub skill: Option<Name>,
}

/// The registry that is checked.
#[derive(Debug)]
pub struct TestedRegistry {
    /// Without a slash at the end.
    pub(super) base: String,
    http: reqwest::Client,
    /// Uses a new connection for each request: a server may close a connection after it refused a request,
    /// and requests that change something cannot be repeated.
    fresh: reqwest::Client,
    settings: TestSettings,
    /// Makes the names of this run unique.
    pub(super) run: String,
    /// All server errors (5xx).
    server_errors: Mutex<Vec<String>>,
    /// Whether reading needs an account.
    private: bool,
    /// Whether it is a mirror: only files, without an API.
    files: bool,
    pub(super) sample: OnceCell<Result<PublishedSample, CheckFailure>>,
}

pub(super) struct TestRequest<'a> {
    registry: &'a TestedRegistry,
    method: Method,
    url: String,
    headers: HeaderMap,
    body: Vec<u8>,
}

#[derive(Clone, Debug)]
pub(super) struct TestResponse {
    /// Method and address of the request, for messages.
    asked: String,
    pub(super) status: u16,
    headers: HeaderMap,
    pub(super) bytes: Vec<u8>,
}

impl TestedRegistry {
    /// Finds the registry at an address; an error message if nothing answers.
    pub async fn find(settings: TestSettings) -> Result<Self, String> {
        let url = settings.url.trim_end_matches('/').to_owned();
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(format!("`{url}` is not an address; write it as https://…/registry"));
        }
        let client = || reqwest::Client::builder().timeout(REQUEST_TIMEOUT);
        let http = client().build().map_err(|error| error.to_string())?;
        let fresh = client().pool_max_idle_per_host(0).build();
        let fresh = fresh.map_err(|error| error.to_string())?;
        let letters = Uuid::new_v4().simple().to_string();
        // A name must start with a letter.
        let run = format!("x{}", &letters[..7]);
        let mut registry = Self {
            base: url.clone(),
            http,
            fresh,
            settings,
            run,
            server_errors: Mutex::default(),
            private: false,
            files: false,
            sample: OnceCell::new(),
        };
        let mut config = registry.get(CONFIG_PATH).send().await.map_err(why)?;
        if config.status == 404 && !url.ends_with("/registry") {
            registry.base = format!("{url}/registry");
            config = registry.get(CONFIG_PATH).send().await.map_err(why)?;
        }
        registry.private = config.status == 401;
        registry.files = registry.has_files_alone(&config).await.map_err(why)?;
        Ok(registry)
    }

    /// Whether the configuration has no address of an API, and there is no API.
    async fn has_files_alone(&self, config: &TestResponse) -> Result<bool, CheckFailure> {
        let said = config.value().unwrap_or_default();
        if config.status != 200 || said["version"] != 1 || !said["base"].is_null() {
            return Ok(false);
        }
        Ok(self.get("api/v1/skills").send().await?.status == 404)
    }

    /// The error if a private registry refuses all requests.
    pub async fn unavailable_reason(&self) -> Option<&'static str> {
        if !self.private {
            return None;
        }
        if self.settings.token.is_none() {
            return Some("the registry is private and needs an account");
        }
        let answer = self.get(CONFIG_PATH).send().await.ok()?;
        (answer.status == 401).then_some("the registry is private and rejects this token")
    }

    /// Whether it is a mirror.
    pub(super) fn is_files(&self) -> bool {
        self.files
    }

    /// The skill of --skill.
    pub(super) fn named(&self) -> Option<&Name> {
        self.settings.skill.as_ref()
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    /// Prefix of the names of this run.
    pub fn prefix(&self) -> String {
        format!("conf-{}-", self.run)
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.settings.namespace.as_deref()
    }

    /// Whether the checks may publish.
    pub fn publishes(&self) -> bool {
        self.settings.token.is_some() && !self.settings.read_only && !self.files
    }

    /// Why a check cannot run.
    pub(super) fn missing_requirement(&self, needs: CheckRequirement) -> Option<&'static str> {
        match needs {
            CheckRequirement::NoToken => None,
            _ if self.settings.read_only => Some("--read-only: nothing is published"),
            _ if self.settings.token.is_none() => Some("it needs --token"),
            CheckRequirement::TwoAccounts if self.settings.other.is_none() => {
                Some("it needs --other-token")
            }
            CheckRequirement::Token | CheckRequirement::TwoAccounts => None,
        }
    }

    /// All server errors (5xx).
    pub(super) fn server_errors(&self) -> Vec<String> {
        self.server_errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn ask(&self, method: Method, url: String) -> TestRequest<'_> {
        TestRequest { registry: self, method, url, headers: HeaderMap::new(), body: Vec::new() }
    }

    /// A request to a path below the address of the registry.
    pub(super) fn get(&self, path: &str) -> TestRequest<'_> {
        self.look(Method::GET, format!("{}/{path}", self.base))
    }

    /// A request that changes nothing. For a private registry it has the token, which is sent only to the
    /// server of the registry.
    pub(super) fn look(&self, method: Method, url: String) -> TestRequest<'_> {
        let own = self.private && url.starts_with(&self.at_server(""));
        let ask = self.ask(method, url);
        if own { ask.with_publisher_token() } else { ask }
    }

    pub(super) fn post(&self, path: &str) -> TestRequest<'_> {
        self.ask(Method::POST, format!("{}/{path}", self.base))
    }

    /// A path below the address of the server that the registry is part of.
    pub(super) fn at_server(&self, path: &str) -> String {
        format!("{}/{path}", self.base.strip_suffix("/registry").unwrap_or(&self.base))
    }
}

impl TestRequest<'_> {
    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }

    pub(super) fn query(mut self, key: &str, value: &str) -> Self {
        let mark = if self.url.contains('?') { '&' } else { '?' };
        let _ = write!(self.url, "{mark}{key}=");
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                self.url.push(char::from(byte));
            } else {
                let _ = write!(self.url, "%{byte:02X}");
            }
        }
        self
    }

    pub(super) fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    /// Uses the token that may publish.
    pub(super) fn with_publisher_token(self) -> Self {
        let token = self.registry.settings.token.clone().unwrap_or_default();
        self.bearer(&token)
    }

    /// Uses the token of the other account.
    pub(super) fn with_other_token(self) -> Self {
        let token = self.registry.settings.other.clone().unwrap_or_default();
        self.bearer(&token)
    }

    pub(super) fn body(mut self, kind: &str, bytes: Vec<u8>) -> Self {
        self.body = bytes;
        self.header("content-type", kind)
    }

    pub(super) fn json(self, value: &Value) -> Self {
        self.body("application/json", value.to_string().into_bytes())
    }

    /// Sends the request; waits and tries again after a 429 response.
    pub(super) async fn send(self) -> Result<TestResponse, CheckFailure> {
        let asked = format!("{} {}", self.method, short(&self.url, 200));
        let mut tries = 0;
        loop {
            let answer = self.once(&asked).await?;
            tries += 1;
            if answer.status != 429 || tries == MAX_TRIES {
                if answer.status >= 500 {
                    let mut server_errors =
                        self.registry.server_errors.lock().unwrap_or_else(PoisonError::into_inner);
                    server_errors.push(format!("{asked}: {}", answer.status));
                }
                return Ok(answer);
            }
            let wait = answer.header(RETRY_AFTER.as_str()).and_then(|wait| wait.parse().ok());
            tokio::time::sleep(Duration::from_secs(wait.unwrap_or(1).min(MAX_RETRY_AFTER_SECONDS)))
                .await;
        }
    }

    async fn once(&self, asked: &str) -> Result<TestResponse, CheckFailure> {
        let wrong =
            |error: reqwest::Error| fail(format!("{asked}: no response: {}", error.without_url()));
        let safe = self.method.is_safe();
        let http = if safe { &self.registry.http } else { &self.registry.fresh };
        let request = http
            .request(self.method.clone(), &self.url)
            .headers(self.headers.clone())
            .body(self.body.clone());
        let again = request.try_clone().filter(|_| safe);
        let mut response = match (request.send().await, again) {
            // The server may have closed the connection after the previous request.
            (Err(error), Some(again)) if error.is_request() => again.send().await.map_err(wrong)?,
            (sent, _) => sent.map_err(wrong)?,
        };
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(wrong)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_RESPONSE_BYTES {
                return Err(fail(format!(
                    "{asked}: the response has more than {MAX_RESPONSE_BYTES} bytes"
                )));
            }
        }
        Ok(TestResponse { asked: asked.to_owned(), status, headers, bytes })
    }
}

impl TestResponse {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// A header that is required.
    pub(super) fn need(&self, name: &str) -> Result<&str, CheckFailure> {
        self.header(name).ok_or_else(|| fail(format!("{}: no header {name}", self.asked)))
    }

    /// Fails unless the status is one of these.
    pub(super) fn is(self, statuses: &[u16]) -> Result<Self, CheckFailure> {
        if statuses.contains(&self.status) {
            return Ok(self);
        }
        let wanted: Vec<String> = statuses.iter().map(ToString::to_string).collect();
        let (asked, status) = (&self.asked, self.status);
        let said = short(&self.text(), 200);
        Err(fail(format!("{asked}: {status} instead of {}: {said}", wanted.join(" or "))))
    }

    /// Fails unless the status is a client error (4xx).
    pub(super) fn refused(self) -> Result<Self, CheckFailure> {
        if (400..500).contains(&self.status) && self.status != 429 {
            return Ok(self);
        }
        let (asked, status) = (&self.asked, self.status);
        Err(fail(format!("{asked}: {status} instead of 4xx: {}", short(&self.text(), 200))))
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub(super) fn value(&self) -> Result<Value, CheckFailure> {
        serde_json::from_slice(&self.bytes).map_err(|error| {
            fail(format!("{}: not JSON ({error}): {}", self.asked, short(&self.text(), 100)))
        })
    }

    /// The lines of an index.
    pub(super) fn lines(&self) -> Result<Vec<Value>, CheckFailure> {
        let read = |line: &str| {
            serde_json::from_str(line).map_err(|error| {
                fail(format!("{}: a line is not JSON ({error}): {}", self.asked, short(line, 100)))
            })
        };
        self.text().lines().filter(|line| !line.trim().is_empty()).map(read).collect()
    }

    /// The code of an error; fails if the format of the error is wrong.
    pub(super) fn code(&self) -> Result<String, CheckFailure> {
        let value = self.value()?;
        let error = &value["error"];
        let word = |text: &&str| {
            text.starts_with(|c: char| c.is_ascii_lowercase())
                && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        };
        let code = error["code"].as_str().filter(word);
        let message = error["message"].as_str().filter(|text| !text.trim().is_empty());
        match (code, message) {
            (Some(code), Some(_)) => Ok(code.to_owned()),
            _ => Err(fail(format!(
                "{}: an error is {{\"error\":{{\"code\",\"message\"}}}}, not {}",
                self.asked,
                short(&self.text(), 200)
            ))),
        }
    }

    /// Fails unless it is an error with this status and this code.
    pub(super) fn error(self, status: u16, code: &str) -> Result<Self, CheckFailure> {
        let answer = self.is(&[status])?;
        let found = answer.code()?;
        if found == code {
            return Ok(answer);
        }
        Err(fail(format!("{}: the error code is `{found}` instead of `{code}`", answer.asked)))
    }
}

/// The beginning of a text, escaped for a terminal.
pub(super) fn short(text: &str, max_chars: usize) -> String {
    visible(&shorten(text, max_chars)).into_owned()
}
