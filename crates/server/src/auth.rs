//! Extractors: authentication, request body and rate limit.
//!
//! Every route of the API that is not open to strangers takes [`Authenticated`]. It checks in the order of
//! the contract: authentication, the right of a program's token, the shape of the body, the rate
//! limit of the route. Those few that are open take [`Anonymous`].

use std::{future::Future, time::Duration};

use axum::{
    extract::{FromRequest, MatchedPath, Request},
    http::{HeaderMap, Method, header, request::Parts},
};
use savoir_store::{ApiToken, Role, User, registry::Actor};
use sha2::{Digest as _, Sha256};

use crate::{
    access::{self, Scope},
    app::App,
    body::{self, Shape},
    client::{address_key, is_local, peer},
    error::{ApiError, ApiResult},
    keys::Claims,
    middleware::RateLimitStatus,
};

/// A request of a known person.
#[derive(Debug)]
pub(crate) struct Authenticated<B = ()> {
    pub(crate) caller: Caller,
    pub(crate) body: B,
}

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) user: User,
    /// The token of a person; a program has none.
    pub(crate) claims: Option<Claims>,
    /// The token of a program, with its rights; a person has all of their own.
    pub(crate) token: Option<ApiToken>,
}

impl Caller {
    /// Whether something of an owner is theirs to see and to change.
    pub(crate) fn may_touch(&self, owner: Option<i64>) -> bool {
        self.user.is_admin() || owner == Some(self.user.id)
    }

    /// Who acts, as the registry's log has them.
    pub(crate) fn actor(&self) -> Actor {
        match &self.token {
            Some(token) => Actor::program(&self.user, token),
            None => Actor::person(&self.user),
        }
    }

    /// Someone who is asked for in their absence, with all that is theirs.
    pub(crate) fn on_behalf_of(user: User) -> Self {
        Self { user, claims: None, token: None }
    }

    /// A program needs a right beyond that of its route.
    pub(crate) fn must_have(&self, scope: Scope) -> ApiResult<()> {
        match &self.token {
            Some(token) if !scope.is_in(&token.scopes) => Err(ApiError::forbidden(scope.lacking())),
            _ => Ok(()),
        }
    }

    /// Only administrators pass.
    pub(crate) fn must_be_admin(&self) -> ApiResult<()> {
        if self.user.is_admin() {
            Ok(())
        } else {
            Err(ApiError::forbidden("Admin access required"))
        }
    }

    /// Their number, as skills write it.
    pub(crate) fn owner_id(&self) -> String {
        self.user.id.to_string()
    }
}

/// What a body becomes.
pub(crate) trait FromBody: Sized + Send {
    fn from_body(request: Request, app: &App) -> impl Future<Output = ApiResult<Self>> + Send;
}

impl FromBody for () {
    async fn from_body(_: Request, _: &App) -> ApiResult<Self> {
        Ok(())
    }
}

/// A body that is JSON of a shape.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Shape> FromBody for Json<T> {
    async fn from_body(request: Request, _: &App) -> ApiResult<Self> {
        body::from_request(request).await.map(Self)
    }
}

/// A body that is read by the route, such as an upload.
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
        let use_of = RouteUse::new(&request);
        let scope = access::scope(&use_of.method, &use_of.route);
        let caller = authenticate(app, request.headers(), scope).await?;
        let body = B::from_body(request, app).await?;
        use_of.spend(app, &format!("user:{}", caller.user.id)).await?;
        Ok(Self { caller, body })
    }
}

/// A request of someone who need not be known.
#[derive(Debug)]
pub(crate) struct Anonymous<B> {
    /// What they are counted by.
    pub(crate) address: String,
    /// Whether they are on this machine.
    pub(crate) local: bool,
    pub(crate) body: B,
}

impl<B: FromBody> FromRequest<App> for Anonymous<B> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> ApiResult<Self> {
        let use_of = RouteUse::new(&request);
        let address = address_key(&app.config, request.headers(), request.extensions());
        let local = is_local(&app.config, request.headers(), peer(request.extensions()));
        let body = B::from_body(request, app).await?;
        use_of.spend(app, &address).await?;
        Ok(Self { address, local, body })
    }
}

/// One use of a route, before it is counted.
struct RouteUse {
    method: Method,
    route: String,
    budget: Option<RateLimitStatus>,
}

impl RouteUse {
    fn new(request: &Request) -> Self {
        let method = request.method().clone();
        Self {
            // The head of an answer costs as much as the whole.
            method: if method == Method::HEAD { Method::GET } else { method },
            route: route_of(request),
            budget: request.extensions().get().cloned(),
        }
    }

    async fn spend(&self, app: &App, who: &str) -> ApiResult<()> {
        let limit = access::limit(&app.config.limits, &self.route);
        let key = format!("{} {} {who}", self.method, self.route);
        spend(app, &key, limit, self.budget.as_ref()).await
    }
}

/// The route of a request, with its parameters unfilled.
pub(crate) fn route_of(request: &Request) -> String {
    let route = request.extensions().get::<MatchedPath>();
    route.map_or_else(|| "unmatched".to_owned(), |route| route.as_str().to_owned())
}

const MINUTE: Duration = Duration::from_mins(1);

/// Counts a request against a limit. 0 is no limit.
pub(crate) async fn spend(
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

/// Finds out who asks.
pub(crate) async fn authenticate(
    app: &App,
    headers: &HeaderMap,
    scope: Scope,
) -> ApiResult<Caller> {
    let mut caller = known(app, headers).await?;
    caller.must_have(scope)?;
    // A token without that right sees what is its owner's, not what is everyone's.
    if caller.must_have(Scope::Admin).is_err() {
        caller.user.role = Role::User;
    }
    if !caller.user.active {
        return Err(ApiError::forbidden("User account is disabled"));
    }
    Ok(caller)
}

/// Finds out who asks, whatever their token is for.
pub(crate) async fn caller(app: &App, headers: &HeaderMap) -> ApiResult<Caller> {
    let caller = known(app, headers).await?;
    if caller.user.active {
        Ok(caller)
    } else {
        Err(ApiError::forbidden("User account is disabled"))
    }
}

async fn known(app: &App, headers: &HeaderMap) -> ApiResult<Caller> {
    let invalid = || ApiError::unauthorized("Invalid or expired token");
    holder(app, bearer(headers)?).await?.ok_or_else(invalid)
}

/// Whose a token is, if it is good. They may be disabled.
async fn holder(app: &App, token: &str) -> ApiResult<Option<Caller>> {
    let accounts = app.database.accounts();
    if token.starts_with(API_TOKEN_PREFIX) {
        let found = accounts.by_token_digest(&digest(token)).await?;
        let caller =
            |(token, user): (ApiToken, User)| Caller { user, claims: None, token: Some(token) };
        return Ok(found.map(caller));
    }
    let Some(claims) = app.keys.read(&app.database, token).await? else { return Ok(None) };
    let Some(id) = claims.user_id() else { return Ok(None) };
    let user = accounts.of_token(id, &claims.jti, claims.issued_at()).await?;
    Ok(user.map(|user| Caller { user, claims: Some(claims), token: None }))
}

/// What the token of a program begins with.
pub(crate) const API_TOKEN_PREFIX: &str = "sav_";

fn bearer(headers: &HeaderMap) -> ApiResult<&str> {
    let missing = || ApiError::unauthorized("Missing or invalid Authorization header");
    let value = headers.get(header::AUTHORIZATION).ok_or_else(missing)?;
    let value = value.to_str().map_err(|_| missing())?;
    // Blanks at the end of a header do not arrive.
    let rest = value.strip_prefix("Bearer").ok_or_else(missing)?;
    if !(rest.is_empty() || rest.starts_with(' ')) {
        return Err(missing());
    }
    let token = rest.trim();
    if token.is_empty() { Err(ApiError::unauthorized("Missing token")) } else { Ok(token) }
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn digest(secret: &str) -> String {
    use std::fmt::Write as _;

    Sha256::digest(secret.as_bytes()).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whom a limit for all routes is counted for, before it is known who asks: the person of the token,
/// else the address. A stranger who made up tokens would get a counter for each of them, and one who
/// found an old token could use up what its person may ask.
pub(crate) async fn rate_key(app: &App, request: &Parts) -> ApiResult<String> {
    let caller = match bearer(&request.headers) {
        Ok(token) => holder(app, token).await?,
        Err(_) => None,
    };
    Ok(match caller.filter(|caller| caller.user.active) {
        Some(caller) => format!("user:{}", caller.user.id),
        None => address_key(&app.config, &request.headers, &request.extensions),
    })
}
