//! HTTP requests to a registry, with limits on size and time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use reqwest::{
    Method, Response,
    header::{AUTHORIZATION, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION},
};
use tokio::time::timeout;
use url::Url;

use super::{PlainHttp, RegistryError, Settings, Token};
use crate::{
    limits::{MAX_ANSWER_BYTES, MAX_REDIRECTS},
    source::{
        Progress, SourceError,
        http::{Http, Reach, check, redirect_url, shown, unreachable},
    },
};

/// Maximum bytes of an error response that are read.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// Longer `ETag`s are not cached.
const MAX_ETAG_BYTES: usize = 256;

pub(super) struct RegistryRequest {
    method: Method,
    url: Url,
    etag: Option<String>,
    body: Option<(String, Vec<u8>)>,
    limit: u64,
    reach: Reach,
    wait: WaitPolicy,
    /// Whether a 404 is an error, because every registry has this path.
    must_exist: bool,
}

/// Minimum rate of an archive download, measured over the timeout for silence.
const MIN_BYTES_PER_SECOND: u64 = 1024;

/// How long to wait for a response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitPolicy {
    /// The timeout of a whole response: the registry may have to do some work.
    Answer,
    /// A short timeout without data: the registry only looks something up.
    Lookup,
    /// As long as data arrives at [`MIN_BYTES_PER_SECOND`] or faster.
    Archive,
}

/// Measures the recent rate of a download, so that a download that becomes slow is stopped too.
struct TransferRate {
    since: Instant,
    bytes: u64,
}

impl TransferRate {
    fn new() -> Self {
        Self { since: Instant::now(), bytes: 0 }
    }

    /// Adds received bytes; fails if fewer than the minimum rate arrived during the window.
    fn add(&mut self, bytes: u64, window: Duration, place: &str) -> Result<(), SourceError> {
        self.bytes += bytes;
        let waited = self.since.elapsed();
        if waited < window {
            return Ok(());
        }
        if u128::from(self.bytes) * 1000 < u128::from(MIN_BYTES_PER_SECOND) * waited.as_millis() {
            let (place, bytes, least) = (place.to_owned(), self.bytes, MIN_BYTES_PER_SECOND);
            return Err(SourceError::TooSlow { place, bytes, waited, least });
        }
        *self = Self::new();
        Ok(())
    }
}

impl RegistryRequest {
    pub(super) fn get(url: Url) -> Self {
        let (method, reach) = (Method::GET, Reach::Anywhere);
        let (limit, wait) = (MAX_ANSWER_BYTES, WaitPolicy::Answer);
        Self { method, url, etag: None, body: None, limit, reach, wait, must_exist: false }
    }

    pub(super) fn post(url: Url, kind: impl Into<String>, body: Vec<u8>) -> Self {
        Self { method: Method::POST, ..Self::get(url) }.with_body(kind, body)
    }

    pub(super) fn put(url: Url, kind: impl Into<String>, body: Vec<u8>) -> Self {
        Self { method: Method::PUT, ..Self::get(url) }.with_body(kind, body)
    }

    pub(super) fn delete(url: Url) -> Self {
        Self { method: Method::DELETE, ..Self::get(url) }
    }

    pub(super) fn with_body(mut self, kind: impl Into<String>, body: Vec<u8>) -> Self {
        self.body = Some((kind.into(), body));
        self
    }

    /// Requests the content only if its `ETag` differs (`If-None-Match`).
    pub(super) fn if_changed_from(mut self, etag: Option<String>) -> Self {
        self.etag = etag;
        self
    }

    /// Limits the bytes of the response.
    pub(super) fn at_most(mut self, limit: u64) -> Self {
        self.limit = limit;
        self
    }

    /// Uses the short timeout of lookups.
    pub(super) fn for_lookup(mut self) -> Self {
        self.wait = WaitPolicy::Lookup;
        self
    }

    /// Treats a 404 as an error.
    pub(super) fn must_exist(mut self) -> Self {
        self.must_exist = true;
        self
    }

    /// Has no total timeout, only a minimum rate.
    pub(super) fn for_archive(mut self) -> Self {
        self.wait = WaitPolicy::Archive;
        self
    }

    /// Limits which hosts the address may lead to.
    pub(super) fn within(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }
}

/// The response to a request. Error statuses other than 404 and 410 are errors.
pub(super) enum RegistryResponse {
    Body(ResponseBody),
    /// The content did not change (304).
    Same(Reach),
    /// Nothing was found (404 or 410): at the address, or at this target of a redirect.
    Missing(Option<Box<Url>>),
}

pub(super) struct ResponseBody {
    pub(super) bytes: Vec<u8>,
    pub(super) etag: Option<String>,
    /// The hosts that addresses in the body may lead to.
    pub(super) reach: Reach,
}

pub(super) struct RegistryConnection {
    pub(super) settings: Settings,
    pub(super) http: Arc<Http>,
    /// The address of the registry, with a trailing slash.
    pub(super) base: Url,
    pub(super) token: Option<Token>,
}

impl RegistryConnection {
    pub(super) async fn ask(
        &self,
        request: RegistryRequest,
    ) -> Result<RegistryResponse, RegistryError> {
        let place = shown(&request.url);
        if self.settings.is_offline() {
            return Err(RegistryError::Offline(format!("`{place}`")));
        }
        self.settings.report_progress(Progress::Asking { place: place.clone() });
        if request.wait == WaitPolicy::Archive {
            return self.follow(request).await;
        }
        let waited = self.settings.response_timeout;
        let answer = timeout(waited, self.follow(request)).await;
        answer.map_err(|_| SourceError::TimedOut { place, waited })?
    }

    async fn follow(
        &self,
        mut request: RegistryRequest,
    ) -> Result<RegistryResponse, RegistryError> {
        let first = request.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send(&request).await?;
            request.reach = request.reach.after(&request.url, response.remote_addr());
            let status = response.status();
            if status.is_success() {
                return Ok(RegistryResponse::Body(self.read_body(&request, response).await?));
            }
            match status.as_u16() {
                304 if request.etag.is_some() => return Ok(RegistryResponse::Same(request.reach)),
                404 | 410 if request.method == Method::GET && !request.must_exist => {
                    let elsewhere =
                        (request.url.origin() != first.origin()).then(|| request.url.into());
                    return Ok(RegistryResponse::Missing(elsewhere));
                }
                301 | 302 | 303 | 307 | 308 => request.url = redirect_target(&request, &response)?,
                status => {
                    let body = self.wait_with_timeout(&request, read_error_body(response)).await?;
                    return Err(RegistryError::refused(shown(&request.url), status, &body));
                }
            }
        }
        Err(address_error(&request.url, "it was redirected too often").into())
    }

    async fn send(&self, request: &RegistryRequest) -> Result<Response, RegistryError> {
        self.check_may_contact(&request.url)?;
        let client = self.http.client(&request.url, request.reach)?;
        let mut sent = client.request(request.method.clone(), request.url.clone());
        if let Some(token) = self.token.as_ref().filter(|_| self.may_send_token(&request.url)) {
            sent = sent.header(AUTHORIZATION, token.header()?);
        }
        if let Some(etag) = &request.etag {
            sent = sent.header(IF_NONE_MATCH, etag);
        }
        if let Some((kind, body)) = &request.body {
            sent = sent.header(CONTENT_TYPE, kind).body(body.clone());
        }
        let response = self.wait_with_timeout(request, sent.send()).await?;
        Ok(response.map_err(|error| unreachable(&request.url, &error))?)
    }

    /// Waits for the next data, until the timeout for silence.
    async fn wait_with_timeout<T>(
        &self,
        request: &RegistryRequest,
        sign: impl Future<Output = T>,
    ) -> Result<T, SourceError> {
        let waited = self.silence_timeout(request);
        let silent = |_| SourceError::TimedOut { place: shown(&request.url), waited };
        timeout(waited, sign).await.map_err(silent)
    }

    fn silence_timeout(&self, request: &RegistryRequest) -> Duration {
        match request.wait {
            WaitPolicy::Answer => self.settings.response_timeout,
            WaitPolicy::Lookup => self.settings.lookup_idle_timeout,
            WaitPolicy::Archive => self.settings.download_idle_timeout,
        }
    }

    fn check_may_contact(&self, url: &Url) -> Result<(), SourceError> {
        let plain = self.settings.plain == PlainHttp::Anyone && url.scheme() == "http";
        if plain && url.username().is_empty() && url.password().is_none() {
            return Ok(());
        }
        check(url)
    }

    /// Whether the token may be sent to an address: only to the registry itself, and only encrypted.
    fn may_send_token(&self, url: &Url) -> bool {
        url.origin() == self.base.origin() && check(url).is_ok()
    }

    async fn read_body(
        &self,
        request: &RegistryRequest,
        mut response: Response,
    ) -> Result<ResponseBody, SourceError> {
        let place = shown(&request.url);
        let too_large = || SourceError::TooLarge { place: place.clone(), limit: request.limit };
        let of = response.content_length();
        if of.is_some_and(|length| length > request.limit) {
            return Err(too_large());
        }
        let etag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok());
        let etag = etag.filter(|tag| tag.len() <= MAX_ETAG_BYTES).map(str::to_owned);
        let (mut bytes, mut transfer_rate) = (Vec::new(), TransferRate::new());
        loop {
            let chunk = self.wait_with_timeout(request, response.chunk()).await?;
            let chunk = chunk.map_err(|error| unreachable(&request.url, &error))?;
            let Some(chunk) = chunk else {
                return Ok(ResponseBody { bytes, etag, reach: request.reach });
            };
            if (bytes.len() + chunk.len()) as u64 > request.limit {
                return Err(too_large());
            }
            bytes.extend_from_slice(&chunk);
            if request.wait == WaitPolicy::Archive {
                transfer_rate.add(
                    chunk.len() as u64,
                    self.settings.download_idle_timeout,
                    &place,
                )?;
            }
            let so_far = bytes.len() as u64;
            self.settings.report_progress(Progress::Received {
                place: place.clone(),
                bytes: so_far,
                of,
            });
        }
    }
}

fn address_error(url: &Url, why: &'static str) -> SourceError {
    SourceError::Address { address: shown(url), why }
}

/// Returns the target of a redirect. Only `GET` requests follow redirects.
fn redirect_target(request: &RegistryRequest, response: &Response) -> Result<Url, SourceError> {
    if request.method != Method::GET {
        return Err(address_error(&request.url, "it redirects a request that changes data"));
    }
    let target = response.headers().get(LOCATION).and_then(|target| target.to_str().ok());
    let target =
        target.ok_or_else(|| address_error(&request.url, "it redirects without an address"))?;
    redirect_url(&request.url, target)
}

/// Reads the beginning of an error response.
async fn read_error_body(mut response: Response) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = MAX_REFUSAL_BYTES - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if bytes.len() == MAX_REFUSAL_BYTES {
            break;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(base: &str, plain: PlainHttp) -> RegistryConnection {
        let settings = Settings { plain, ..Settings::new("unused".into()) };
        let token = Some(Token::new("secret").unwrap());
        RegistryConnection {
            settings,
            http: Arc::default(),
            base: Url::parse(base).unwrap(),
            token,
        }
    }

    #[test]
    fn plain_http_and_token_rules() {
        let url = |text| Url::parse(text).unwrap();
        let strict = line("https://x.example/registry/", PlainHttp::ThisMachine);
        let loose = line("http://x.example/registry/", PlainHttp::Anyone);
        assert!(strict.check_may_contact(&url("http://x.example/a")).is_err());
        assert!(loose.check_may_contact(&url("http://x.example/a")).is_ok());
        assert!(loose.check_may_contact(&url("http://me:pw@x.example/a")).is_err());
        assert!(loose.check_may_contact(&url("ftp://x.example/a")).is_err());
        assert!(strict.may_send_token(&url("https://x.example/elsewhere")));
        for other in ["https://x.example:444/", "https://y.example/", "http://x.example/"] {
            assert!(!strict.may_send_token(&url(other)), "{other}");
        }
        assert!(
            !loose.may_send_token(&url("http://x.example/a")),
            "everyone on the way would know, too"
        );
    }
}
