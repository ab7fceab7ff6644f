//! Extractors: authentication, request body and rate limit.
//!
//! Every route that requires authentication takes [`Authenticated`]. It checks, in the order that
//! the API defines: authentication, the scope of an API token, the request body, the rate limit of
//! the route. The few public routes take [`Anonymous`].

use std::{
    future::Future,
    time::{Duration, Instant},
};

use axum::{
    extract::{FromRequest, MatchedPath, Request},
    http::{HeaderMap, Method, header, request::Parts},
};
use savoir_skill::digest::sha256_hex;
use savoir_store::{AccountsVersion, ApiToken, Role, StoreError, Timestamp, User, registry::Actor};

use crate::{
    access::{self, Scope},
    app::App,
    body::{self, Shape},
    client::{address_key, is_local, peer},
    error::{ApiError, ApiResult},
    keys::{Audience, Claims},
    middleware::RateLimitStatus,
    session_cookie,
};

/// An authenticated request.
#[derive(Debug)]
pub(crate) struct Authenticated<B = ()> {
    pub(crate) caller: Caller,
    pub(crate) body: B,
}

/// The user who sent a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) user: User,
    /// The session token of a logged-in user; `None` for an API token.
    pub(crate) claims: Option<Claims>,
    /// The API token with its scopes; `None` for a logged-in user, who has all scopes.
    pub(crate) token: Option<ApiToken>,
}

impl Caller {
    /// Whether the caller may read and change data of this owner.
    pub(crate) fn may_touch(&self, owner: Option<i64>) -> bool {
        self.user.is_admin() || owner == Some(self.user.id)
    }

    /// The caller in the format of the registry's audit log.
    pub(crate) fn actor(&self) -> Actor {
        match &self.token {
            Some(token) => Actor::program(&self.user, token),
            None => Actor::person(&self.user),
        }
    }

    /// A caller for work that is done without a request of the user, with all scopes.
    pub(crate) fn on_behalf_of(user: User) -> Self {
        Self { user, claims: None, token: None }
    }

    /// Fails if an API token lacks a scope that is needed besides that of the route.
    pub(crate) fn check_scope(&self, scope: Scope) -> ApiResult<()> {
        match &self.token {
            Some(token) if !scope.is_granted_by(&token.scopes) => {
                Err(ApiError::forbidden(scope.missing_scope_message()))
            }
            _ => Ok(()),
        }
    }

    /// Fails unless the caller is an administrator.
    pub(crate) fn check_admin(&self) -> ApiResult<()> {
        if self.user.is_admin() {
            Ok(())
        } else {
            Err(ApiError::forbidden("Admin access required"))
        }
    }

    /// Whether the login or token is still valid, with the same rights.
    async fn is_still_valid(&self, app: &App) -> Result<bool, StoreError> {
        let accounts = app.database.accounts();
        let user = match (&self.claims, &self.token) {
            (Some(claims), _) if claims.expires_at() <= Timestamp::now() => None,
            (Some(claims), _) => {
                accounts.of_token(self.user.id, &claims.jti, claims.issued_at()).await?
            }
            (None, Some(token)) => {
                let tokens = accounts.tokens(self.user.id).await?;
                let over = |end: Option<Timestamp>| end.is_some_and(|end| end <= Timestamp::now());
                let known = tokens.iter().any(|one| one.id == token.id && !over(one.expires_at));
                if known { accounts.by_id(self.user.id).await? } else { None }
            }
            (None, None) => accounts.by_id(self.user.id).await?,
        };
        Ok(user.is_some_and(|user| user.active && (user.is_admin() || !self.user.is_admin())))
    }

    /// The user id in the format that skill files contain.
    pub(crate) fn owner_id(&self) -> String {
        self.user.id.to_string()
    }
}

/// Maximum time between two checks of a stream's reader.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The reader of an open stream, whose login may end before the stream does.
#[derive(Debug)]
pub(crate) struct StreamReader {
    app: App,
    caller: Caller,
    checked_at: Instant,
    /// The version of the accounts at the last check; none for a database that other processes can
    /// change.
    seen: Option<AccountsVersion>,
}

impl StreamReader {
    pub(crate) fn new(app: App, caller: Caller) -> Self {
        // No version: an account may have changed since the request was authenticated.
        Self { app, caller, checked_at: Instant::now(), seen: None }
    }

    /// Whether the caller could still send the request that opened the stream. Asks the database
    /// when an account has changed, and at least once in a second.
    pub(crate) async fn is_allowed(&mut self) -> bool {
        let version = self.app.database.accounts().current_version();
        let is_fresh = self.checked_at.elapsed() < CHECK_INTERVAL;
        if is_fresh && version.is_none_or(|version| Some(version) == self.seen) {
            return true;
        }
        (self.seen, self.checked_at) = (version, Instant::now());
        match self.caller.is_still_valid(&self.app).await {
            Ok(valid) => valid,
            Err(error) => {
                tracing::warn!(%error, "a stream ends: its reader cannot be checked");
                false
            }
        }
    }
}

/// A type that can be read from a request body.
pub(crate) trait FromBody: Sized + Send {
    fn from_body(request: Request, app: &App) -> impl Future<Output = ApiResult<Self>> + Send;
}

impl FromBody for () {
    async fn from_body(_: Request, _: &App) -> ApiResult<Self> {
        Ok(())
    }
}

/// A JSON body that is validated as `T`.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Shape> FromBody for Json<T> {
    async fn from_body(request: Request, _: &App) -> ApiResult<Self> {
        body::from_request(request).await.map(Self)
    }
}

/// A body that the route reads itself, such as an upload.
#[derive(Debug)]
pub(crate) struct Raw(pub(crate) Request);

impl FromBody for Raw {
    async fn from_body(request: Request, _: &App) -> ApiResult<Self> {
        Ok(Self(request))
    }
}

impl<B: FromBody> FromRequest<App> for Authenticated<B> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> ApiResult<Self> {
        let use_of = RouteUse::new(app, &request);
        let scope = access::scope(&use_of.method, &use_of.route);
        let caller = authenticate(app, &use_of.method, request.headers(), scope).await?;
        let body = B::from_body(request, app).await?;
        use_of.count_request(app, &format!("user:{}", caller.user.id)).await?;
        Ok(Self { caller, body })
    }
}

/// A request that needs no authentication.
#[derive(Debug)]
pub(crate) struct Anonymous<B> {
    /// The key for rate limits: the address of the client.
    pub(crate) address: String,
    /// Whether the client is on this machine.
    pub(crate) local: bool,
    pub(crate) body: B,
}

impl<B: FromBody> FromRequest<App> for Anonymous<B> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> ApiResult<Self> {
        // An unverified cookie must not raise the limit.
        let use_of = RouteUse { from_app: false, ..RouteUse::new(app, &request) };
        let address = address_key(&app.config, request.headers(), request.extensions());
        let local = is_local(&app.config, request.headers(), peer(request.extensions()));
        let body = B::from_body(request, app).await?;
        use_of.count_request(app, &address).await?;
        Ok(Self { address, local, body })
    }
}

/// One request to a route, before it is counted for the rate limit.
struct RouteUse {
    method: Method,
    route: String,
    budget: Option<RateLimitStatus>,
    /// Whether a page of the web app sent it, with the session cookie.
    from_app: bool,
}

impl RouteUse {
    fn new(app: &App, request: &Request) -> Self {
        let method = request.method().clone();
        Self {
            // HEAD costs as much as GET.
            method: if method == Method::HEAD { Method::GET } else { method },
            route: route_of(request),
            budget: request.extensions().get().cloned(),
            from_app: has_cookie_only(app, request.headers()),
        }
    }

    async fn count_request(&self, app: &App, who: &str) -> ApiResult<()> {
        let limit = access::limit(&app.config.limits, &self.route, self.from_app);
        let key = format!("{} {} {who}", self.method, self.route);
        count_request(app, &key, limit, self.budget.as_ref()).await
    }
}

/// The route pattern of a request, with parameter names instead of values.
pub(crate) fn route_of(request: &Request) -> String {
    let route = request.extensions().get::<MatchedPath>();
    route.map_or_else(|| "unmatched".to_owned(), |route| route.as_str().to_owned())
}

const MINUTE: Duration = Duration::from_mins(1);

/// Counts a request for a rate limit. A limit of 0 means unlimited.
pub(crate) async fn count_request(
    app: &App,
    key: &str,
    limit: u32,
    budget: Option<&RateLimitStatus>,
) -> ApiResult<()> {
    if limit == 0 {
        return Ok(());
    }
    let hits = app.database.rate_limits().hit(key, MINUTE).await?;
    if let Some(budget) = budget {
        budget.set(limit, hits);
    }
    if hits.count > u64::from(limit) { Err(ApiError::rate(limit)) } else { Ok(()) }
}

/// Authenticates a request and returns its user.
pub(crate) async fn authenticate(
    app: &App,
    method: &Method,
    headers: &HeaderMap,
    scope: Scope,
) -> ApiResult<Caller> {
    let mut caller = find_caller(app, method, headers).await?;
    caller.check_scope(scope)?;
    // Without the scope admin, the token of an administrator sees only the data of its owner.
    if caller.check_scope(Scope::Admin).is_err() {
        caller.user.role = Role::User;
    }
    if !caller.user.active {
        return Err(ApiError::forbidden("User account is disabled"));
    }
    Ok(caller)
}

/// Authenticates a request, whatever the scopes of its token.
pub(crate) async fn authenticate_caller(
    app: &App,
    method: &Method,
    headers: &HeaderMap,
) -> ApiResult<Caller> {
    let caller = find_caller(app, method, headers).await?;
    if caller.user.active {
        Ok(caller)
    } else {
        Err(ApiError::forbidden("User account is disabled"))
    }
}

/// The owner of the token in the `Authorization` header; without this header, of the session
/// cookie. The account may be disabled.
pub(crate) async fn find_caller(
    app: &App,
    method: &Method,
    headers: &HeaderMap,
) -> ApiResult<Caller> {
    let invalid = || ApiError::unauthorized("Invalid or expired token");
    if has_cookie_only(app, headers) {
        let caller = find_cookie_owner(app, headers).await?.ok_or_else(invalid)?;
        session_cookie::check_origin(&app.config, method, headers)?;
        return Ok(caller);
    }
    find_token_owner(app, bearer_token(headers)?, Audience::Bearer).await?.ok_or_else(invalid)
}

/// Whether a request has credentials, valid or not.
pub(crate) fn has_credentials(app: &App, headers: &HeaderMap) -> bool {
    headers.contains_key(header::AUTHORIZATION) || has_cookie_only(app, headers)
}

/// Whether the session cookie is the only credential of a request.
pub(crate) fn has_cookie_only(app: &App, headers: &HeaderMap) -> bool {
    !headers.contains_key(header::AUTHORIZATION)
        && session_cookie::token(&app.config, headers).is_some()
}

/// The owner of the session cookie, if the session is valid. The account may be disabled.
pub(crate) async fn find_cookie_owner(app: &App, headers: &HeaderMap) -> ApiResult<Option<Caller>> {
    match session_cookie::token(&app.config, headers) {
        // Only sessions are sent as cookies: an API token in a cookie is a mistake.
        Some(token) if !token.starts_with(API_TOKEN_PREFIX) => {
            find_token_owner(app, token, Audience::Cookie(&app.config.public_url)).await
        }
        _ => Ok(None),
    }
}

/// The owner of a token, if the token is valid. The account may be disabled.
async fn find_token_owner(
    app: &App,
    token: &str,
    audience: Audience<'_>,
) -> ApiResult<Option<Caller>> {
    let accounts = app.database.accounts();
    if token.starts_with(API_TOKEN_PREFIX) {
        let found = accounts.by_token_digest(&token_digest(token)).await?;
        let to_caller =
            |(token, user): (ApiToken, User)| Caller { user, claims: None, token: Some(token) };
        return Ok(found.map(to_caller));
    }
    let Some(claims) = app.keys.read(&app.database, token, audience).await? else {
        return Ok(None);
    };
    let Some(id) = claims.user_id() else { return Ok(None) };
    let user = accounts.of_token(id, &claims.jti, claims.issued_at()).await?;
    Ok(user.map(|user| Caller { user, claims: Some(claims), token: None }))
}

/// The prefix of API tokens.
pub(crate) const API_TOKEN_PREFIX: &str = "sav_";

fn bearer_token(headers: &HeaderMap) -> ApiResult<&str> {
    let missing = || ApiError::unauthorized("Missing or invalid Authorization header");
    let value = headers.get(header::AUTHORIZATION).ok_or_else(missing)?;
    let value = value.to_str().map_err(|_| missing())?;
    // HTTP strips blanks at the end of a header, so the blank after `Bearer` may be missing.
    let (scheme, rest) = value.split_at_checked("Bearer".len()).ok_or_else(missing)?;
    if !scheme.eq_ignore_ascii_case("Bearer") {
        return Err(missing());
    }
    if !(rest.is_empty() || rest.starts_with(' ')) {
        return Err(missing());
    }
    let token = rest.trim();
    if token.is_empty() { Err(ApiError::unauthorized("Missing token")) } else { Ok(token) }
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn token_digest(secret: &str) -> String {
    sha256_hex(secret.as_bytes())
}

/// The key for the rate limit of all routes, before the request is authenticated: the user of a
/// valid token, else the client address. Unverified tokens are not used as keys: a client could
/// invent tokens to get a new counter for each, or use an old token to exhaust the limit of its
/// owner.
pub(crate) async fn rate_key(app: &App, request: &Parts) -> ApiResult<String> {
    let caller = match bearer_token(&request.headers) {
        Ok(token) => find_token_owner(app, token, Audience::Bearer).await?,
        Err(_) => find_cookie_owner(app, &request.headers).await?,
    };
    Ok(match caller.filter(|caller| caller.user.active) {
        Some(caller) => format!("user:{}", caller.user.id),
        None => address_key(&app.config, &request.headers, &request.extensions),
    })
}
