//! Gives access only to the user who started `savoir ui`, and rejects other users of the machine
//! and web pages of other origins.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    middleware::Next,
    response::Response,
};
use uuid::Uuid;

use super::{Machine, refusal};

/// A header that only scripts of this app can send: pages of other origins would need permission
/// from this server (CORS).
const APP_HEADER: &str = "x-savoir-app";

/// The header with the key of the session. Browsers send cookies to every port of a host, so the
/// cookie alone is not enough. The key is stored for this origin only, which includes the port.
const KEY_HEADER: &str = "x-savoir-key";

/// The secrets of one start of the app.
#[derive(Debug)]
pub(super) struct Guard {
    /// The token of the printed link.
    token: String,
    state: Mutex<LinkState>,
    /// The name of the cookie. It contains the port, because browsers send cookies to every port of
    /// a host.
    cookie: String,
    hosts: [String; 2],
}

/// The state of the link.
#[derive(Debug)]
enum LinkState {
    Unused,
    Used(Session),
    /// The link was opened twice, and it is unknown which browser belongs to the user.
    OpenedTwice,
}

/// The secrets that a browser gets for the link.
#[derive(Clone, Debug)]
struct Session {
    cookie: String,
    key: String,
}

/// The result of opening the link.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entrance {
    Started {
        set_cookie: String,
        key: String,
    },
    /// The link was used before. That session has now ended.
    OpenedTwice,
    Refused,
}

impl Guard {
    /// Creates the secrets, and the link that opens the app.
    pub(super) fn new(port: u16) -> (Self, String) {
        let token = secret();
        let url = format!("http://127.0.0.1:{port}/enter?token={token}");
        let guard = Self {
            token,
            state: Mutex::new(LinkState::Unused),
            cookie: format!("savoir_machine_{port}"),
            hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")],
        };
        (guard, url)
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a session for the token of the link, once. A second use ends that session: if someone
    /// else opened the link first, they lose access.
    pub(super) fn exchange(&self, token: &str) -> Entrance {
        if self.token != token {
            return Entrance::Refused;
        }
        let mut state = self.state();
        if !matches!(*state, LinkState::Unused) {
            *state = LinkState::OpenedTwice;
            return Entrance::OpenedTwice;
        }
        let session = Session { cookie: secret(), key: secret() };
        let (name, value, key) = (&self.cookie, &session.cookie, session.key.clone());
        // With `Strict`, a browser would leave the cookie out when the user opens the link again
        // from another page. The API also needs the key, which no other page has.
        let set_cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax");
        *state = LinkState::Used(session);
        Entrance::Started { set_cookie, key }
    }

    /// Whether a request has the session cookie.
    pub(super) fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let state = self.state();
        let LinkState::Used(Session { cookie, .. }) = &*state else { return false };
        let cookies =
            headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == self.cookie && value == cookie)
    }

    /// Whether a request has the session cookie and the key.
    fn has_session(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(KEY_HEADER).and_then(|key| key.to_str().ok());
        let has_key = match &*self.state() {
            LinkState::Used(session) => given == Some(session.key.as_str()),
            LinkState::Unused | LinkState::OpenedTwice => false,
        };
        has_key && self.has_cookie(headers)
    }
}

/// 244 random bits.
fn secret() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

/// Rejects requests for other host names, because a malicious page could let its own name resolve
/// to this machine (DNS rebinding).
pub(super) async fn check_host(
    State(machine): State<Arc<Machine>>,
    request: Request,
    next: Next,
) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    if host.is_some_and(|host| machine.guard.hosts.iter().any(|own| own == host)) {
        return next.run(request).await;
    }
    refusal(StatusCode::FORBIDDEN, "this name is not served", "use the link that savoir ui printed")
}

/// Refuses requests without the session cookie and the key, and changes that do not come from the app.
pub(super) async fn check(
    State(machine): State<Arc<Machine>>,
    request: Request,
    next: Next,
) -> Response {
    if !machine.guard.has_session(request.headers()) {
        return refusal(
            StatusCode::UNAUTHORIZED,
            "this browser has not opened the link of savoir ui",
            "stop `savoir ui` and start it again for a new link",
        );
    }
    // Cookies ignore ports, so pages of other servers on this machine could send the cookie, too.
    let site = request.headers().get("sec-fetch-site").and_then(|site| site.to_str().ok());
    if site.is_some_and(|site| site != "same-origin" && site != "none") {
        return refusal(
            StatusCode::FORBIDDEN,
            "another page sent this request",
            "use the app itself",
        );
    }
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if !is_read && !request.headers().contains_key(APP_HEADER) {
        return refusal(
            StatusCode::FORBIDDEN,
            "changes need the header X-Savoir-App",
            "use the app itself",
        );
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(guard: &Guard, url: &str) -> (String, String) {
        match guard.exchange(url.split_once("token=").unwrap().1) {
            Entrance::Started { set_cookie, key } => (set_cookie, key),
            other => panic!("{other:?}"),
        }
    }

    fn headers(cookie: &str, key: &str) -> HeaderMap {
        let mut headers = HeaderMap::from_iter([(header::COOKIE, cookie.parse().unwrap())]);
        if !key.is_empty() {
            headers.insert(KEY_HEADER, key.parse().unwrap());
        }
        headers
    }

    #[test]
    fn second_use_of_the_link_ends_the_session() {
        let (guard, url) = Guard::new(7900);
        assert_eq!(guard.exchange("wrong"), Entrance::Refused);
        let (cookie, key) = enter(&guard, &url);
        assert!(cookie.contains("HttpOnly; SameSite=Lax"), "{cookie}");
        let headers = headers(cookie.split_once(';').unwrap().0, &key);
        assert_eq!(guard.exchange("wrong"), Entrance::Refused);
        assert!(guard.has_session(&headers));
        let token = url.split_once("token=").unwrap().1;
        assert_eq!(guard.exchange(token), Entrance::OpenedTwice);
        assert!(!guard.has_session(&headers) && !guard.has_cookie(&headers));
        assert_eq!(guard.exchange(token), Entrance::OpenedTwice);
    }

    #[test]
    fn session_is_the_cookie_of_this_port_with_its_key() {
        let (guard, url) = Guard::new(7900);
        assert!(!guard.has_session(&headers("savoir_machine_7900=", "x")));
        let (cookie, key) = enter(&guard, &url);
        let pair = cookie.split_once(';').unwrap().0;
        assert!(guard.has_session(&headers(&format!("theme=dark; {pair}"), &key)));
        assert!(!guard.has_session(&headers(&pair.replace("7900", "7901"), &key)));
        assert!(!guard.has_session(&headers("savoir_machine_7900=", &key)));
        // Other ports of the host receive the cookie, but not the key.
        assert!(!guard.has_session(&headers(pair, "")));
        assert!(!guard.has_session(&headers(pair, "1")));
        assert!(!guard.has_session(&HeaderMap::new()));
    }
}
