//! Serves the setup page, on which the first administrator is created with a link from the log.

use std::time::Duration;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    response::Response,
    routing::get,
};
use savoir_store::{Role, StoreError, Timestamp};

use crate::{
    accounts::{AccountError, NewAccount, random_secret},
    app::App,
    auth::token_digest,
    body,
    client::address_key,
    error::{ApiError, ApiResult},
    limits::MAX_FORM_BYTES,
    pages::{escape, page},
};

/// The setting with the digest of the setup token.
const SETUP_SETTING: &str = "setup";

/// Maximum forms of one client in a minute. The token cannot be guessed, but hashing passwords
/// costs time.
const MAX_TRIES_PER_WINDOW: u64 = 30;

pub(super) fn router() -> Router<App> {
    Router::new().route("/setup", get(show).post(submit))
}

/// Creates a link with which the first administrator can be created, once; `None` if there is one.
/// Earlier links become invalid.
pub async fn setup_link(app: &App) -> Result<Option<String>, StoreError> {
    if app.database.accounts().has_admin().await? {
        return Ok(None);
    }
    let token = random_secret()?;
    app.database.settings().put(SETUP_SETTING, &token_digest(&token)).await?;
    Ok(Some(format!("{}/setup?token={token}", app.config.public_url)))
}

/// The fields of the form.
#[derive(Debug, Default)]
struct Form {
    token: String,
    email: String,
    password: String,
    again: String,
}

impl Form {
    fn parse(bytes: &[u8]) -> Self {
        let mut form = Self::default();
        for (name, value) in url::form_urlencoded::parse(bytes) {
            let field = match &*name {
                "token" => &mut form.token,
                "email" => &mut form.email,
                "password" => &mut form.password,
                "again" => &mut form.again,
                _ => continue,
            };
            *field = value.into_owned();
        }
        form
    }
}

async fn show(State(app): State<App>, request: Request) -> ApiResult<Response> {
    let form = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    if !is_open(&app, &form.token).await? {
        return Ok(refused());
    }
    Ok(form_page(StatusCode::OK, &form, None))
}

async fn submit(State(app): State<App>, request: Request) -> ApiResult<Response> {
    let address = address_key(&app.config, request.headers(), request.extensions());
    let bytes = body::bytes(request, MAX_FORM_BYTES).await?;
    let key = format!("setup {address}");
    let hits = app.database.rate_limits().hit(&key, Duration::from_mins(1)).await?;
    if hits.count > MAX_TRIES_PER_WINDOW {
        return Ok(too_many(hits.resets_at));
    }
    let form = Form::parse(&bytes);
    if !is_open(&app, &form.token).await? {
        return Ok(refused());
    }
    if form.password != form.again {
        let text = "The two passwords differ.";
        return Ok(form_page(StatusCode::BAD_REQUEST, &form, Some(text)));
    }
    match make_administrator(&app, &form).await {
        Ok(Some(email)) => Ok(done(&app, &email)),
        Ok(None) => Ok(refused()),
        Err(AccountError::Store(error)) => Err(ApiError::from(error)),
        Err(error) => {
            let text = format!("{error}.");
            Ok(form_page(StatusCode::BAD_REQUEST, &form, Some(&text)))
        }
    }
}

/// Creates the administrator and invalidates the token; `None` if another request was faster. An
/// invalid form does not invalidate the token.
async fn make_administrator(app: &App, form: &Form) -> Result<Option<String>, AccountError> {
    // Hash the password first, so that nothing slow happens between invalidating the token and
    // creating the account.
    let account = NewAccount::check(&form.email, &form.password)?.hashed().await?;
    let (settings, token) = (app.database.settings(), token_digest(&form.token));
    if !settings.take(SETUP_SETTING, &token).await? {
        return Ok(None);
    }
    match account.create(&app.database, Role::Admin).await {
        Ok(user) => {
            tracing::info!(user = user.id, "the first administrator was made");
            Ok(Some(user.email))
        }
        Err(error) => {
            settings.put_if_absent(SETUP_SETTING, &token).await?;
            Err(error)
        }
    }
}

/// Whether a setup token is valid.
async fn is_open(app: &App, token: &str) -> Result<bool, StoreError> {
    // Digests are compared, so that the time of the comparison reveals nothing about the token.
    let expected = app.database.settings().get(SETUP_SETTING).await?;
    Ok(expected == Some(token_digest(token)) && !app.database.accounts().has_admin().await?)
}

fn form_page(status: StatusCode, form: &Form, problem: Option<&str>) -> Response {
    let problem = problem
        .map(|text| format!("<p class=\"error\" role=\"alert\">{}</p>\n", escape(text)))
        .unwrap_or_default();
    let (token, email) = (escape(&form.token), escape(&form.email));
    let body = format!(
        "<p>This server has no administrator yet. Make the account that administers it.</p>\n\
         {problem}<form method=\"post\" action=\"/setup\">\n\
         <input type=\"hidden\" name=\"token\" value=\"{token}\">\n\
         <label for=\"email\">Email address</label>\n\
         <input id=\"email\" name=\"email\" type=\"email\" value=\"{email}\" \
         autocomplete=\"username\" maxlength=\"254\" required autofocus>\n\
         <label for=\"password\">Password, at least 6 characters</label>\n\
         <input id=\"password\" name=\"password\" type=\"password\" autocomplete=\"new-password\" \
         minlength=\"6\" required>\n\
         <label for=\"again\">The same password again</label>\n\
         <input id=\"again\" name=\"again\" type=\"password\" autocomplete=\"new-password\" \
         minlength=\"6\" required>\n\
         <div><button>Make the account</button></div>\n</form>"
    );
    page(status, "Welcome to Savoir", &body)
}

fn refused() -> Response {
    page(
        StatusCode::FORBIDDEN,
        "This link does not work",
        "<p>It was used, replaced by a newer one, or not copied as a whole.</p>\n\
         <p>If there is no administrator yet, start the server again: <code>savoir serve</code> \
         prints a new link. Or make an administrator on the machine of the server:</p>\n\
         <pre>savoir admin create EMAIL</pre>",
    )
}

fn too_many(resets_at: Timestamp) -> Response {
    let wait = (resets_at.seconds() - Timestamp::now().seconds()).max(1);
    let body = format!("<p>Wait {wait} seconds, then send the form again.</p>");
    let mut response = page(StatusCode::TOO_MANY_REQUESTS, "Too many tries", &body);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait));
    response
}

fn done(app: &App, email: &str) -> Response {
    let (url, email) = (escape(&app.config.public_url), escape(email));
    let body = format!(
        "<p>{email} is the administrator now. This link does not work any more.</p>\n\
         <h2>Log in</h2>\n\
         <pre>curl {url}/api/v1/auth/login \\\n  \
         -H 'Content-Type: application/json' \\\n  \
         -d '{{\"email\":\"{email}\",\"password\":\"…\"}}'</pre>\n\
         <p>The answer holds a token. Send it with every request:</p>\n\
         <pre>curl {url}/api/v1/skills -H \"Authorization: Bearer $TOKEN\"</pre>\n\
         <h2>Go on</h2>\n\
         <p><a href=\"/docs\">All routes</a>, each with an example.</p>"
    );
    page(StatusCode::OK, "The administrator was made", &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let form = Form::parse(b"token=t&email=a%2Bb%40c.de&password=p+%C3%A4&again=x&other=1");
        assert_eq!((form.token.as_str(), form.email.as_str()), ("t", "a+b@c.de"));
        assert_eq!((form.password.as_str(), form.again.as_str()), ("p ä", "x"));
    }
}
