//! Middleware of every request: request id, global rate limit, metrics.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    middleware::Next,
    response::Response,
};
use savoir_store::{RateCount, Timestamp};
use tracing::Instrument as _;
use uuid::Uuid;

use crate::{
    app::App,
    auth::{count_request, rate_key, route_of},
    error::ApiResult,
};

/// The remaining requests of a rate limit, once they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateLimitStatus(Arc<OnceLock<(u32, RateCount)>>);

impl RateLimitStatus {
    /// Sets the limit for the response headers. Only the first call has an effect.
    pub(crate) fn set(&self, limit: u32, hits: RateCount) {
        let _ = self.0.set((limit, hits));
    }

    fn write(&self, status: StatusCode, headers: &mut HeaderMap) {
        let Some((limit, hits)) = self.0.get() else { return };
        let left = u64::from(*limit).saturating_sub(hits.count);
        let reset = hits.resets_at.seconds();
        for (name, value) in [
            ("x-ratelimit-limit", i64::from(*limit)),
            ("x-ratelimit-remaining", i64::try_from(left).unwrap_or(0)),
            ("x-ratelimit-reset", reset),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from(value));
        }
        if status == StatusCode::TOO_MANY_REQUESTS {
            let wait = (reset - Timestamp::now().seconds()).max(1);
            // A route may have set its own `Retry-After` for too many attempts.
            headers.entry(header::RETRY_AFTER).or_insert(HeaderValue::from(wait));
        }
    }
}

pub(crate) const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Wraps every request: request id, log line, metrics and headers.
pub(crate) async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let id = request_id(request.headers());
    let method = request.method().clone();
    let route = route_of(&request);
    let path = without_secrets(request.uri().path());
    let span = tracing::info_span!("request", id = %id, %method, path = %path);
    let budget = RateLimitStatus::default();
    request.extensions_mut().insert(budget.clone());
    let mut response = async {
        let response = next.run(request).await;
        let (status, took) = (response.status(), began.elapsed());
        tracing::info!(status = status.as_u16(), milliseconds = took.as_millis(), "answered");
        app.metrics.record_request(&method, &route, status, took);
        response
    }
    .instrument(span)
    .await;
    let status = response.status();
    budget.write(status, response.headers_mut());
    if path.starts_with("/api/") {
        // Responses are only for the user who sent the request.
        let private = HeaderValue::from_static("no-store");
        response.headers_mut().entry(header::CACHE_CONTROL).or_insert(private);
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID_HEADER, id);
    }
    response
        .headers_mut()
        .entry(header::X_CONTENT_TYPE_OPTIONS)
        .or_insert(HeaderValue::from_static("nosniff"));
    response
}

/// Enforces the rate limit for all routes together.
pub(crate) async fn limit_all(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> ApiResult<Response> {
    let limit = app.config.limits.all;
    let path = request.uri().path();
    if limit == 0 || !(path.starts_with("/api/") || path == crate::mcp::PATH) {
        return Ok(next.run(request).await);
    }
    let (parts, body) = request.into_parts();
    let key = format!("all {}", rate_key(&app, &parts).await?);
    // The headers show the limit of the route, unless the limit for all routes is exceeded.
    let unseen = RateLimitStatus::default();
    let outcome = count_request(&app, &key, limit, Some(&unseen)).await;
    if outcome.is_err()
        && let (Some((limit, hits)), Some(budget)) = (unseen.0.get(), parts.extensions.get())
    {
        RateLimitStatus::set(budget, *limit, *hits);
    }
    outcome?;
    Ok(next.run(Request::from_parts(parts, body)).await)
}

/// The request id from a proxy, if it is safe to log; else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID_HEADER).and_then(|value| value.to_str().ok());
    let fits = |id: &&str| {
        // Characters with a meaning in log formats and in HTML.
        let plain = |c: char| c.is_ascii_graphic() && !r#""'`\<>{}"#.contains(c);
        (1..=128).contains(&id.len()) && id.chars().all(plain)
    };
    given.filter(fits).map_or_else(|| Uuid::now_v7().to_string(), str::to_owned)
}

/// Removes the token of a published workflow from a path, for the log.
fn without_secrets(path: &str) -> String {
    let place = "/publish/embed/";
    let path = match path.find(place) {
        Some(at) => format!("{}{{token}}", &path[..at + place.len()]),
        None => path.to_owned(),
    };
    // All tokens that the server signs start with this text.
    let masked = |part| if str::starts_with(part, "eyJ") { "{token}" } else { part };
    path.split('/').map(masked).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_request_ids_of_proxies_are_used() {
        let used = |id: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID_HEADER, HeaderValue::from_str(id).unwrap());
            request_id(&headers) == id
        };
        let longest = "x".repeat(128);
        for id in [
            "abc-1",
            "a",
            "abc.def",
            "Root=1-67891233-abcdef012345678912345678",
            "Root=1-1;Parent=2;Sampled=1",
            "00-4bf92f-00f067-01",
            "a+b/c==",
            "a:b@c",
            &longest,
        ] {
            assert!(used(id), "{id}");
        }
        let too_long = "x".repeat(129);
        for id in ["", "a b", "a\tb", "<b>", "a\"b", "a\\b", "a}b", &too_long] {
            assert!(!used(id), "{id}");
        }
    }

    #[test]
    fn tokens_in_paths_are_not_logged() {
        let masked = "/api/v1/publish/embed/{token}";
        for rest in ["eyJhbGciOi.x.y", "eyJhbGciOi.x.y/", "eyJhbGciOi.x.y/more", "other"] {
            assert_eq!(without_secrets(&format!("/api/v1/publish/embed/{rest}")), masked);
        }
        let encoded = "/api/v1/publish/%65mbed/eyJhbGciOi.x.y";
        assert_eq!(without_secrets(encoded), "/api/v1/publish/%65mbed/{token}");
        for plain in ["/", "/api/v1/publish/embed", "/api/v1/skills/eye"] {
            assert_eq!(without_secrets(plain), plain);
        }
    }
}
