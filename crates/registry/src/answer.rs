//! An answer that can be remembered, and asked for in part.

use std::{fmt::Write as _, ops::Range};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::Response,
};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

/// How long others may keep an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachePolicy {
    /// For a minute; then they ask whether it changed.
    Minute,
    /// For ever: the address names the bytes.
    Immutable,
    /// Each time they ask whether it changed.
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

/// Bytes with what is said about them.
#[derive(Clone, Debug)]
pub struct Answer {
    body: Bytes,
    tag: HeaderValue,
    headers: HeaderMap,
}

impl Answer {
    /// With a tag of its own, which changes with its bytes.
    pub fn new(kind: &'static str, caching: CachePolicy, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let tag = short_digest(&body);
        Self::tagged(kind, caching, &tag, body)
    }

    /// With a tag that is known: letters and digits.
    pub fn tagged(
        kind: &'static str,
        caching: CachePolicy,
        tag: &str,
        body: impl Into<Bytes>,
    ) -> Self {
        let nothing = HeaderValue::from_static("\"\"");
        let tag = HeaderValue::from_str(&format!("\"{tag}\"")).unwrap_or(nothing);
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(header::CACHE_CONTROL, caching.header());
        headers.insert(header::ETAG, tag.clone());
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        Self { body: body.into(), tag, headers }
    }

    #[must_use]
    pub fn with(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    /// Parts of it can be asked for.
    #[must_use]
    pub fn in_parts(self) -> Self {
        self.with(header::ACCEPT_RANGES, "bytes")
    }

    /// The bytes that it keeps in memory.
    pub fn weight(&self) -> usize {
        self.body.len() + 512
    }

    /// What the client gets: all, a part, or the word that it has it already.
    pub fn respond(&self, method: &Method, asked: &HeaderMap) -> Response {
        if has_already(asked, &self.tag) {
            return self.response(StatusCode::NOT_MODIFIED, Bytes::new());
        }
        let parts = self.headers.contains_key(header::ACCEPT_RANGES);
        match part(method, asked, &self.tag, self.body.len() as u64).filter(|_| parts) {
            None => self.whole(method),
            Some(Ok(range)) => self.part(range),
            Some(Err(())) => {
                let mut response = self.response(StatusCode::RANGE_NOT_SATISFIABLE, Bytes::new());
                let all = format!("bytes */{}", self.body.len());
                insert(&mut response, header::CONTENT_RANGE, &all);
                response
            }
        }
    }

    fn whole(&self, method: &Method) -> Response {
        if *method != Method::HEAD {
            return self.response(StatusCode::OK, self.body.clone());
        }
        let mut response = self.response(StatusCode::OK, Bytes::new());
        insert(&mut response, header::CONTENT_LENGTH, &self.body.len().to_string());
        response
    }

    fn part(&self, range: Range<u64>) -> Response {
        let (start, end) = (range.start as usize, range.end as usize);
        let told = format!("bytes {start}-{}/{}", end - 1, self.body.len());
        let mut response = self.response(StatusCode::PARTIAL_CONTENT, self.body.slice(start..end));
        insert(&mut response, header::CONTENT_RANGE, &told);
        response
    }

    fn response(&self, status: StatusCode, body: Bytes) -> Response {
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

/// The first half of a digest, which is enough to tell answers apart.
pub(super) fn short_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)[..16].iter().fold(String::with_capacity(32), |mut text, byte| {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether a client has what has this tag.
pub fn has_already(asked: &HeaderMap, tag: &HeaderValue) -> bool {
    let Some(known) = asked.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let Ok(tag) = tag.to_str() else { return false };
    known.split(',').map(str::trim).any(|known| known == "*" || bare(known) == tag)
}

/// A tag of a cache on the way may be weak; for bytes that are compared, that does not matter.
fn bare(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// The part that is asked for, if one part is; an error if there is no such part. Only GET has parts.
pub fn part(
    method: &Method,
    asked: &HeaderMap,
    tag: &HeaderValue,
    length: u64,
) -> Option<Result<Range<u64>, ()>> {
    let asks = *method == Method::GET;
    let text = asked.get(header::RANGE).filter(|_| asks)?.to_str().ok()?;
    // Who has a part of something else needs all of this.
    if asked.get(header::IF_RANGE).is_some_and(|held| held != tag) {
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

    fn asked(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    fn ranges(text: &str) -> Option<Result<Range<u64>, ()>> {
        part(&Method::GET, &asked(header::RANGE, text), &HeaderValue::from_static("\"t\""), 10)
    }

    #[test]
    fn parts_of_an_answer() {
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
    fn a_part_of_something_else_is_not_given() {
        let mut both = asked(header::RANGE, "bytes=0-3");
        both.insert(header::IF_RANGE, HeaderValue::from_static("\"old\""));
        assert_eq!(part(&Method::GET, &both, &HeaderValue::from_static("\"t\""), 10), None);
        let range = asked(header::RANGE, "bytes=0-3");
        assert_eq!(part(&Method::HEAD, &range, &HeaderValue::from_static("\"t\""), 10), None);
    }

    #[test]
    fn who_has_it_already() {
        let tag = HeaderValue::from_static("\"abc\"");
        for known in ["\"abc\"", "\"x\", \"abc\"", "W/\"abc\"", "*"] {
            assert!(has_already(&asked(header::IF_NONE_MATCH, known), &tag), "{known}");
        }
        assert!(!has_already(&asked(header::IF_NONE_MATCH, "\"ab\""), &tag));
        let answer =
            Answer::tagged("text/plain", CachePolicy::Minute, "abc", "0123456789").in_parts();
        let respond = |name, value: &str| answer.respond(&Method::GET, &asked(name, value));
        assert_eq!(respond(header::IF_NONE_MATCH, "\"abc\"").status(), 304);
        assert_eq!(respond(header::RANGE, "bytes=20-").status(), 416);
        let part = respond(header::RANGE, "bytes=2-3");
        assert_eq!(part.status(), 206);
        assert_eq!(part.headers()[header::CONTENT_RANGE], "bytes 2-3/10");
    }
}
