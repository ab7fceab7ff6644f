//! Routes for the login with an OpenID Connect provider. The browser opens both.

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use savoir_store::Timestamp;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{docs, session::start_session};
use crate::{
    app::App,
    auth::Anonymous,
    error::{ApiError, ApiResult},
    oidc::{self, OidcConfig, OidcError, Provider, StartedLogin, safe_next},
    params::{Params, Query, QueryPairs},
    session_cookie,
};

/// The path to which the provider sends the browser.
const CALLBACK_PATH: &str = "/api/v1/auth/oidc/callback";

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(start)).routes(routes!(callback))
}

/// The page to open afterwards.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
struct StartQuery {
    /// A path of the web app.
    #[param(required = false)]
    next: Option<String>,
}

impl Params for StartQuery {
    fn read(pairs: &mut QueryPairs) -> Self {
        Self { next: pairs.optional_text("next") }
    }
}

/// Log in with the provider that the server is configured with.
#[utoipa::path(
    get, path = "/auth/oidc/start", tag = "auth", operation_id = "oidc_start", params(StartQuery),
    responses(
        (status = 303, description = "To the provider, or to the login page with an error"),
        docs::NotFound, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn start(
    State(app): State<App>,
    anonymous: Anonymous<Query<StartQuery>>,
) -> ApiResult<Response> {
    let config = config(&app)?;
    let Query(StartQuery { next }) = anonymous.body;
    let started = async {
        let provider = Provider::discover(config, redirect_uri(&app)).await?;
        provider.start(safe_next(next.as_deref()))
    };
    match started.await {
        Ok((login, url)) => {
            let value = serde_json::to_vec(&login).unwrap_or_default();
            let cookie = session_cookie::login(&app.config, &URL_SAFE_NO_PAD.encode(value));
            redirect(&url, cookie)
        }
        Err(error) => failed(&app, &error),
    }
}

/// What the provider answers.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
struct CallbackQuery {
    #[param(required = false)]
    code: Option<String>,
    #[param(required = false)]
    state: Option<String>,
    #[param(required = false)]
    error: Option<String>,
}

impl Params for CallbackQuery {
    fn read(pairs: &mut QueryPairs) -> Self {
        Self {
            code: pairs.optional_text("code"),
            state: pairs.optional_text("state"),
            error: pairs.optional_text("error"),
        }
    }
}

/// Finish the login: the provider sends the browser here.
#[utoipa::path(
    get, path = "/auth/oidc/callback", tag = "auth", operation_id = "oidc_callback",
    params(CallbackQuery),
    responses(
        (status = 303, description = "To the web app, or to the login page with an error"),
        docs::NotFound, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn callback(
    State(app): State<App>,
    headers: HeaderMap,
    anonymous: Anonymous<Query<CallbackQuery>>,
) -> ApiResult<Response> {
    let config = config(&app)?;
    let Anonymous { local, body: Query(CallbackQuery { code, state, error }), .. } = anonymous;
    // A login that this browser did not start is refused, whoever asks for it.
    let started = session_cookie::started_login(&app.config, &headers).and_then(read_login);
    let Some(login) = started.filter(|login| state.as_deref() == Some(login.state.as_str())) else {
        return to_login(&app, "expired");
    };
    let Some(code) = code.filter(|_| error.is_none()) else {
        let error = error.unwrap_or_default();
        tracing::info!(error, "a login at the provider was not completed");
        return to_login(&app, if error == "access_denied" { "denied" } else { "failed" });
    };
    let user = async {
        let provider = Provider::discover(config, redirect_uri(&app)).await?;
        let identity = provider.finish(&login, &code).await?;
        let may_register = app.config.registration.allows(local);
        oidc::account_of(&app.database, &app.config, config, identity, may_register).await
    };
    match user.await {
        Ok(user) => {
            // Other servers on this host can set the cookie, so that its path is checked again.
            let next = safe_next(Some(&login.next));
            let response = redirect(&next, session_cookie::login(&app.config, ""))?;
            // After the link, which ends all sessions that started before it.
            start_session(&app, user.id, Timestamp::now(), response).await
        }
        Err(error) => failed(&app, &error),
    }
}

fn config(app: &App) -> ApiResult<&OidcConfig> {
    app.config.oidc.as_ref().ok_or_else(|| {
        ApiError::not_found("This server has no provider for logins")
            .with_hint("start it with --oidc-issuer and --oidc-client-id")
    })
}

fn redirect_uri(app: &App) -> String {
    format!("{}{CALLBACK_PATH}", app.config.public_url)
}

fn read_login(cookie: &str) -> Option<StartedLogin> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(cookie).ok()?).ok()
}

fn failed(app: &App, error: &OidcError) -> ApiResult<Response> {
    tracing::warn!(%error, "a login with the provider failed");
    to_login(app, error.code())
}

/// The login page, which explains the error.
fn to_login(app: &App, code: &str) -> ApiResult<Response> {
    redirect(&format!("/login?error={code}"), session_cookie::login(&app.config, ""))
}

fn redirect(to: &str, cookie: Option<HeaderValue>) -> ApiResult<Response> {
    let to = HeaderValue::from_str(to);
    let to = to.map_err(|error| ApiError::internal("Failed to log in", &error))?;
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(cookie) = cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}
