//! The session cookie of the web app, and its protection against requests of other sites.
//!
//! Browsers send the cookie to every port of the host. Its token is therefore accepted only as the
//! cookie of this server, and not as `Authorization: Bearer`.

use axum::http::{HeaderMap, HeaderValue, Method, header};
use url::Url;

use crate::{
    client::is_own_origin,
    config::Config,
    error::{ApiError, ApiResult},
    keys::TOKEN_LIFETIME,
};

/// The header that only our own pages can send: other sites would need our permission first.
pub(crate) const APP_HEADER: &str = "x-savoir-app";

/// How long a login at a provider may take.
const LOGIN_SECONDS: u64 = 10 * 60;

/// Cookies are shared by all ports of a host, so that the name contains the port. The prefix makes
/// browsers accept the cookie only over HTTPS, and from this host.
fn name(config: &Config) -> String {
    let url = Url::parse(&config.public_url).ok();
    let port = url.as_ref().and_then(Url::port);
    let port = port.map(|port| format!("_{port}")).unwrap_or_default();
    let prefix = if is_https(config) { "__Host-" } else { "" };
    format!("{prefix}savoir_session{port}")
}

/// The cookie for the time at the provider.
fn login_name(config: &Config) -> String {
    format!("{}_login", name(config))
}

fn is_https(config: &Config) -> bool {
    config.public_url.starts_with("https://")
}

/// The session token of a request.
pub(crate) fn token<'a>(config: &Config, headers: &'a HeaderMap) -> Option<&'a str> {
    find(&name(config), headers)
}

/// The login with a provider that the browser started.
pub(crate) fn started_login<'a>(config: &Config, headers: &'a HeaderMap) -> Option<&'a str> {
    find(&login_name(config), headers)
}

fn find<'a>(name: &str, headers: &'a HeaderMap) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|value| value.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .find(|(known, value)| *known == name && !value.is_empty())
        .map(|(_, value)| value)
}

/// A `Set-Cookie` header that starts a session.
pub(crate) fn start(config: &Config, token: &str) -> Option<HeaderValue> {
    set_cookie(config, token, TOKEN_LIFETIME.as_secs())
}

/// A `Set-Cookie` header that ends the session.
pub(crate) fn end(config: &Config) -> Option<HeaderValue> {
    set_cookie(config, "", 0)
}

fn set_cookie(config: &Config, value: &str, seconds: u64) -> Option<HeaderValue> {
    let secure = if is_https(config) { "; Secure" } else { "" };
    let name = name(config);
    let cookie =
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::from_str(&cookie).ok()
}

/// A `Set-Cookie` header with a login that the browser starts; an empty value removes it. The
/// browser also sends it when the provider sends the user back.
pub(crate) fn login(config: &Config, value: &str) -> Option<HeaderValue> {
    let secure = if is_https(config) { "; Secure" } else { "" };
    let (name, seconds) = (login_name(config), if value.is_empty() { 0 } else { LOGIN_SECONDS });
    let cookie =
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::from_str(&cookie).ok()
}

/// Fails unless a request comes from a page of this server, and has the header of the app if it
/// changes something. Browsers send the cookie by themselves, so that it does not prove the intent
/// of the user; and pages on other ports of this host count as the same site.
pub(crate) fn check_origin(config: &Config, method: &Method, headers: &HeaderMap) -> ApiResult<()> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let refuse = |detail: &str, hint: &str| Err(ApiError::forbidden(detail).with_hint(hint));
    let is_ours = match text("sec-fetch-site") {
        Some(site) => ["same-origin", "none"].contains(&site),
        None => text("origin").is_none_or(|origin| is_own_origin(config, headers, origin)),
    };
    if !is_ours {
        return refuse(
            "A page of another site cannot use the session cookie",
            "open the web app of this server, or use a token: `Authorization: Bearer …`",
        );
    }
    let changes = ![Method::GET, Method::HEAD, Method::OPTIONS].contains(method);
    if changes && text(APP_HEADER) != Some("1") {
        return refuse(
            "A request with a session cookie needs the header X-Savoir-App",
            "send `X-Savoir-App: 1`, or use a token: `Authorization: Bearer …`",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> Config {
        Config { public_url: url.to_owned(), ..Config::default() }
    }

    #[test]
    fn cookie_is_secure_over_https() {
        let cookie = start(&config("https://skills.example.org"), "t").unwrap();
        assert_eq!(
            cookie,
            "__Host-savoir_session=t; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict; Secure"
        );
        let cookie = end(&config("http://127.0.0.1:7878")).unwrap();
        assert_eq!(cookie, "savoir_session_7878=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
    }

    #[test]
    fn token_is_found_among_cookies() {
        let config = config("http://127.0.0.1:7878");
        let headers = |value: &'static str| {
            HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static(value))])
        };
        let found = |value| token(&config, &headers(value)).map(str::to_owned);
        assert_eq!(found("a=b; savoir_session_7878=x.y.z").as_deref(), Some("x.y.z"));
        assert_eq!(found("savoir_session_7878="), None);
        assert_eq!(found("savoir_session_1=x; xsavoir_session_7878=y"), None);
    }
}
