//! HTTP responses that can be cached, with `ETag` and range requests.

use std::ops::Range;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::Response,
};
use bytes::Bytes;
use savoir_skill::digest::hex;
use sha2::{Digest as _, Sha256};

/// How long clients may cache a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachePolicy {
    /// One minute; then they revalidate.
    Minute,
    /// Forever: the URL contains the digest.
    Immutable,
    /// They revalidate each time.
    Check,
}

impl CachePolicy {
    pub fn header(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Minute => "public, max-age=60, must-revalidate",
            Self::Immutable => "public, max-age=31536000, immutable",
            Self::Check => "public, no-cache",
        })
    }
}

/// A body with its headers.
#[derive(Clone, Debug)]
pub struct CacheableResponse {
    body: Bytes,
    etag: HeaderValue,
    headers: HeaderMap,
}

impl CacheableResponse {
    /// Computes the `ETag` from the body.
    pub fn new(kind: &'static str, caching: CachePolicy, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let etag = short_digest(&body);
        Self::with_etag(kind, caching, &etag, body)
    }

    /// Uses a known `ETag`: letters and digits.
    pub fn with_etag(
        kind: &'static str,
        caching: CachePolicy,
        etag: &str,
        body: impl Into<Bytes>,
    ) -> Self {
        let nothing = HeaderValue::from_static("\"\"");
        let etag = HeaderValue::from_str(&format!("\"{etag}\"")).unwrap_or(nothing);
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(header::CACHE_CONTROL, caching.header());
        headers.insert(header::ETAG, etag.clone());
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        Self { body: body.into(), etag, headers }
    }

    #[must_use]
    pub fn with(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    /// Allows range requests.
    #[must_use]
    pub fn with_ranges(self) -> Self {
        self.with(header::ACCEPT_RANGES, "bytes")
    }

    pub fn memory_bytes(&self) -> usize {
        self.body.len() + 512
    }

    /// The response to a request: 200, 206, 304 or 416.
    pub fn respond(&self, method: &Method, request_headers: &HeaderMap) -> Response {
        if matches_if_none_match(request_headers, &self.etag) {
            return self.build_response(StatusCode::NOT_MODIFIED, Bytes::new());
        }
        let parts = self.headers.contains_key(header::ACCEPT_RANGES);
        match requested_range(method, request_headers, &self.etag, self.body.len() as u64)
            .filter(|_| parts)
        {
            None => self.full_response(method),
            Some(Ok(range)) => self.partial_response(range),
            Some(Err(())) => {
                let mut response =
                    self.build_response(StatusCode::RANGE_NOT_SATISFIABLE, Bytes::new());
                let all = format!("bytes */{}", self.body.len());
                insert(&mut response, header::CONTENT_RANGE, &all);
                response
            }
        }
    }

    fn full_response(&self, method: &Method) -> Response {
        if *method != Method::HEAD {
            return self.build_response(StatusCode::OK, self.body.clone());
        }
        let mut response = self.build_response(StatusCode::OK, Bytes::new());
        insert(&mut response, header::CONTENT_LENGTH, &self.body.len().to_string());
        response
    }

    fn partial_response(&self, range: Range<u64>) -> Response {
        let (start, end) = (range.start as usize, range.end as usize);
        let content_range = format!("bytes {start}-{}/{}", end - 1, self.body.len());
        let mut response =
            self.build_response(StatusCode::PARTIAL_CONTENT, self.body.slice(start..end));
        insert(&mut response, header::CONTENT_RANGE, &content_range);
        response
    }

    fn build_response(&self, status: StatusCode, body: Bytes) -> Response {
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        *response.headers_mut() = self.headers.clone();
        response
    }
}

fn insert(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// The first half of a SHA-256 digest, which is enough for an `ETag`.
pub(super) fn short_digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes)[..16])
}

/// Whether `If-None-Match` contains this `ETag`.
pub fn matches_if_none_match(request_headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let Some(known) =
        request_headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok())
    else {
        return false;
    };
    let Ok(etag) = etag.to_str() else { return false };
    known.split(',').map(str::trim).any(|known| known == "*" || strip_weak_prefix(known) == etag)
}

/// Proxies may weaken an `ETag`; the bytes are the same.
fn strip_weak_prefix(etag: &str) -> &str {
    etag.strip_prefix("W/").unwrap_or(etag)
}

/// The range of a request, if it has exactly one; an error if it is outside of the body. Only for GET.
pub fn requested_range(
    method: &Method,
    request_headers: &HeaderMap,
    etag: &HeaderValue,
    length: u64,
) -> Option<Result<Range<u64>, ()>> {
    let asks = *method == Method::GET;
    let text = request_headers.get(header::RANGE).filter(|_| asks)?.to_str().ok()?;
    // The client has a part of another version and needs the full body.
    if request_headers.get(header::IF_RANGE).is_some_and(|held| held != etag) {
        return None;
    }
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    if last.contains(',') {
        return None;
    }
    let number = |text: &str| text.trim().parse::<u64>();
    let range = match (first.trim(), last.trim()) {
        ("", "") => return None,
        ("", last) => {
            let wanted = number(last).ok()?.min(length);
            length - wanted..length
        }
        (first, "") => number(first).ok()?..length,
        (first, last) => {
            let (first, last) = (number(first).ok()?, number(last).ok()?);
            if last < first {
                return None;
            }
            first..last.saturating_add(1).min(length)
        }
    };
    Some(if range.start < range.end { Ok(range) } else { Err(()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    fn ranges(text: &str) -> Option<Result<Range<u64>, ()>> {
        requested_range(
            &Method::GET,
            &headers(header::RANGE, text),
            &HeaderValue::from_static("\"t\""),
            10,
        )
    }

    #[test]
    fn range_headers_are_parsed() {
        for (text, range) in [
            ("bytes=0-3", 0..4),
            ("bytes=4-", 4..10),
            ("bytes=-3", 7..10),
            ("bytes=-30", 0..10),
            ("bytes=9-99999999999999999999", 0..0),
            ("bytes=5-18446744073709551615", 5..10),
        ] {
            let expected = (!range.is_empty()).then_some(Ok(range));
            assert_eq!(ranges(text), expected, "{text}");
        }
        for beyond in ["bytes=10-", "bytes=10-11", "bytes=-0"] {
            assert_eq!(ranges(beyond), Some(Err(())), "{beyond}");
        }
        for none in ["bytes=3-1", "bytes=a-b", "lines=0-1", "bytes=0-1,3-4", "bytes=-", "bytes"] {
            assert_eq!(ranges(none), None, "{none}");
        }
    }

    #[test]
    fn range_is_ignored_for_another_etag_or_head() {
        let mut both = headers(header::RANGE, "bytes=0-3");
        both.insert(header::IF_RANGE, HeaderValue::from_static("\"old\""));
        assert_eq!(
            requested_range(&Method::GET, &both, &HeaderValue::from_static("\"t\""), 10),
            None
        );
        let range = headers(header::RANGE, "bytes=0-3");
        assert_eq!(
            requested_range(&Method::HEAD, &range, &HeaderValue::from_static("\"t\""), 10),
            None
        );
    }

    #[test]
    fn matching_etag_is_not_modified() {
        let etag = HeaderValue::from_static("\"abc\"");
        for known in ["\"abc\"", "\"x\", \"abc\"", "W/\"abc\"", "*"] {
            assert!(
                matches_if_none_match(&headers(header::IF_NONE_MATCH, known), &etag),
                "{known}"
            );
        }
        assert!(!matches_if_none_match(&headers(header::IF_NONE_MATCH, "\"ab\""), &etag));
        let answer =
            CacheableResponse::with_etag("text/plain", CachePolicy::Minute, "abc", "0123456789")
                .with_ranges();
        let respond = |name, value: &str| answer.respond(&Method::GET, &headers(name, value));
        assert_eq!(respond(header::IF_NONE_MATCH, "\"abc\"").status(), 304);
        assert_eq!(respond(header::RANGE, "bytes=20-").status(), 416);
        let partial = respond(header::RANGE, "bytes=2-3");
        assert_eq!(partial.status(), 206);
        assert_eq!(partial.headers()[header::CONTENT_RANGE], "bytes 2-3/10");
    }
}
