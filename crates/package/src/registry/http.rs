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
        http::{Http, Reach, check, sent, shown, unreachable},
    },
};

/// Most bytes of an answer that refuses.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// Longest tag that is kept.
const MAX_ETAG_BYTES: usize = 256;

/// A question.
pub(super) struct RegistryRequest {
    method: Method,
    url: Url,
    etag: Option<String>,
    body: Option<(String, Vec<u8>)>,
    limit: u64,
    reach: Reach,
    wait: WaitPolicy,
    /// Whether it is always there.
    there: bool,
}

/// Bytes of an archive in a second, over as long as a registry may be silent: nobody waits for a drip.
const MIN_BYTES_PER_SECOND: u64 = 1024;

/// How long an answer is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitPolicy {
    /// As long as a whole answer may take: something may have to be done for it.
    Answer,
    /// Not much longer than a registry is silent: it only has to look something up.
    Lookup,
    /// As long as something comes that is more than a drip.
    Archive,
}

/// How much of an archive came lately. One that began fast may not drip for ever, either.
struct TransferRate {
    since: Instant,
    bytes: u64,
}

impl TransferRate {
    fn new() -> Self {
        Self { since: Instant::now(), bytes: 0 }
    }

    /// Counts what came; an error if that was too little for too long.
    fn came(&mut self, bytes: u64, window: Duration, place: &str) -> Result<(), SourceError> {
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
    /// For a file, or a list.
    pub(super) fn get(url: Url) -> Self {
        let (method, reach) = (Method::GET, Reach::Anywhere);
        let (limit, wait) = (MAX_ANSWER_BYTES, WaitPolicy::Answer);
        Self { method, url, etag: None, body: None, limit, reach, wait, there: false }
    }

    /// To do something.
    pub(super) fn post(url: Url, kind: impl Into<String>, body: Vec<u8>) -> Self {
        Self { method: Method::POST, ..Self::get(url) }.with(kind, body)
    }

    /// To put something in its place.
    pub(super) fn put(url: Url, kind: impl Into<String>, body: Vec<u8>) -> Self {
        Self { method: Method::PUT, ..Self::get(url) }.with(kind, body)
    }

    /// To undo something.
    pub(super) fn delete(url: Url) -> Self {
        Self { method: Method::DELETE, ..Self::get(url) }
    }

    /// With something to read.
    pub(super) fn with(mut self, kind: impl Into<String>, body: Vec<u8>) -> Self {
        self.body = Some((kind.into(), body));
        self
    }

    /// Only if it is not what is known already.
    pub(super) fn unless(mut self, etag: Option<String>) -> Self {
        self.etag = etag;
        self
    }

    /// With at most so many bytes.
    pub(super) fn at_most(mut self, limit: u64) -> Self {
        self.limit = limit;
        self
    }

    /// For something that a registry only has to look up.
    pub(super) fn looked_up(mut self) -> Self {
        self.wait = WaitPolicy::Lookup;
        self
    }

    /// For something that is always there: that it is not is a refusal, which says why.
    pub(super) fn known_to_be_there(mut self) -> Self {
        self.there = true;
        self
    }

    /// For an archive, which takes as long as the line is slow.
    pub(super) fn archive(mut self) -> Self {
        self.wait = WaitPolicy::Archive;
        self
    }

    /// Because somebody gave the address who may not name every host.
    pub(super) fn within(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }
}

/// What came back. Refusals are errors, except that something is not there.
pub(super) enum RegistryResponse {
    Body(ResponseBody),
    /// What is known already still holds.
    Same(Reach),
    /// There is no such thing: at the address, or where the registry sent who asked.
    Missing(Option<Box<Url>>),
}

/// The bytes of an answer.
pub(super) struct ResponseBody {
    pub(super) bytes: Vec<u8>,
    pub(super) etag: Option<String>,
    /// Whom the answer may name.
    pub(super) reach: Reach,
}

/// The line to one registry.
pub(super) struct RegistryConnection {
    pub(super) settings: Settings,
    pub(super) http: Arc<Http>,
    /// With a slash at its end.
    pub(super) base: Url,
    pub(super) token: Option<Token>,
}

impl RegistryConnection {
    pub(super) async fn ask(
        &self,
        ask: RegistryRequest,
    ) -> Result<RegistryResponse, RegistryError> {
        let place = shown(&ask.url);
        if self.settings.is_offline() {
            return Err(RegistryError::Offline(format!("`{place}`")));
        }
        self.settings.tell(Progress::Asking { place: place.clone() });
        if ask.wait == WaitPolicy::Archive {
            return self.follow(ask).await;
        }
        let waited = self.settings.patience;
        let answer = timeout(waited, self.follow(ask)).await;
        answer.map_err(|_| SourceError::TimedOut { place, waited })?
    }

    async fn follow(&self, mut ask: RegistryRequest) -> Result<RegistryResponse, RegistryError> {
        let first = ask.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send(&ask).await?;
            ask.reach = ask.reach.after(&ask.url, response.remote_addr());
            let status = response.status();
            if status.is_success() {
                return Ok(RegistryResponse::Body(self.given(&ask, response).await?));
            }
            match status.as_u16() {
                304 if ask.etag.is_some() => return Ok(RegistryResponse::Same(ask.reach)),
                404 | 410 if ask.method == Method::GET && !ask.there => {
                    let elsewhere = (ask.url.origin() != first.origin()).then(|| ask.url.into());
                    return Ok(RegistryResponse::Missing(elsewhere));
                }
                301 | 302 | 303 | 307 | 308 => ask.url = next(&ask, &response)?,
                status => {
                    let body = self.heard(&ask, beginning(response)).await?;
                    return Err(RegistryError::refused(shown(&ask.url), status, &body));
                }
            }
        }
        Err(refused(&ask.url, "it was sent elsewhere too often").into())
    }

    async fn send(&self, ask: &RegistryRequest) -> Result<Response, RegistryError> {
        self.may_be_asked(&ask.url)?;
        let client = self.http.client(&ask.url, ask.reach)?;
        let mut request = client.request(ask.method.clone(), ask.url.clone());
        if let Some(token) = self.token.as_ref().filter(|_| self.may_know(&ask.url)) {
            request = request.header(AUTHORIZATION, token.header()?);
        }
        if let Some(etag) = &ask.etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        if let Some((kind, body)) = &ask.body {
            request = request.header(CONTENT_TYPE, kind).body(body.clone());
        }
        let sent = self.heard(ask, request.send()).await?;
        Ok(sent.map_err(|error| unreachable(&ask.url, &error))?)
    }

    /// Waits for the next sign of life.
    async fn heard<T>(
        &self,
        ask: &RegistryRequest,
        sign: impl Future<Output = T>,
    ) -> Result<T, SourceError> {
        let waited = self.silence(ask);
        let silent = |_| SourceError::TimedOut { place: shown(&ask.url), waited };
        timeout(waited, sign).await.map_err(silent)
    }

    fn silence(&self, ask: &RegistryRequest) -> Duration {
        match ask.wait {
            WaitPolicy::Answer => self.settings.patience,
            WaitPolicy::Lookup => self.settings.lookup_silence,
            WaitPolicy::Archive => self.settings.download_silence,
        }
    }

    fn may_be_asked(&self, url: &Url) -> Result<(), SourceError> {
        let plain = self.settings.plain == PlainHttp::Anyone && url.scheme() == "http";
        if plain && url.username().is_empty() && url.password().is_none() {
            return Ok(());
        }
        check(url)
    }

    /// Whether an address may have the token: only the registry itself, and nobody on the way.
    fn may_know(&self, url: &Url) -> bool {
        url.origin() == self.base.origin() && check(url).is_ok()
    }

    async fn given(
        &self,
        ask: &RegistryRequest,
        mut response: Response,
    ) -> Result<ResponseBody, SourceError> {
        let place = shown(&ask.url);
        let too_large = || SourceError::TooLarge { place: place.clone(), limit: ask.limit };
        let of = response.content_length();
        if of.is_some_and(|length| length > ask.limit) {
            return Err(too_large());
        }
        let etag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok());
        let etag = etag.filter(|tag| tag.len() <= MAX_ETAG_BYTES).map(str::to_owned);
        let (mut bytes, mut flow) = (Vec::new(), TransferRate::new());
        loop {
            let chunk = self.heard(ask, response.chunk()).await?;
            let chunk = chunk.map_err(|error| unreachable(&ask.url, &error))?;
            let Some(chunk) = chunk else {
                return Ok(ResponseBody { bytes, etag, reach: ask.reach });
            };
            if (bytes.len() + chunk.len()) as u64 > ask.limit {
                return Err(too_large());
            }
            bytes.extend_from_slice(&chunk);
            if ask.wait == WaitPolicy::Archive {
                flow.came(chunk.len() as u64, self.settings.download_silence, &place)?;
            }
            let so_far = bytes.len() as u64;
            self.settings.tell(Progress::Received { place: place.clone(), bytes: so_far, of });
        }
    }
}

fn refused(url: &Url, why: &'static str) -> SourceError {
    SourceError::Address { address: shown(url), why }
}

/// Where an answer sends a question. What is to be done is done here or nowhere.
fn next(ask: &RegistryRequest, response: &Response) -> Result<Url, SourceError> {
    if ask.method != Method::GET {
        return Err(refused(&ask.url, "it sends elsewhere what was meant for it"));
    }
    let target = response.headers().get(LOCATION).and_then(|target| target.to_str().ok());
    let target = target.ok_or_else(|| refused(&ask.url, "it was sent to no address"))?;
    sent(&ask.url, target)
}

/// The first bytes of an answer that nobody needs in full.
async fn beginning(mut response: Response) -> Vec<u8> {
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
    fn who_may_be_asked_and_who_may_know() {
        let url = |text| Url::parse(text).unwrap();
        let strict = line("https://x.example/registry/", PlainHttp::ThisMachine);
        let loose = line("http://x.example/registry/", PlainHttp::Anyone);
        assert!(strict.may_be_asked(&url("http://x.example/a")).is_err());
        assert!(loose.may_be_asked(&url("http://x.example/a")).is_ok());
        assert!(loose.may_be_asked(&url("http://me:pw@x.example/a")).is_err());
        assert!(loose.may_be_asked(&url("ftp://x.example/a")).is_err());
        assert!(strict.may_know(&url("https://x.example/elsewhere")));
        for other in ["https://x.example:444/", "https://y.example/", "http://x.example/"] {
            assert!(!strict.may_know(&url(other)), "{other}");
        }
        assert!(!loose.may_know(&url("http://x.example/a")), "everyone on the way would know, too");
    }
}
