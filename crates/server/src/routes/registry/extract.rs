//! Extractors of registry routes: caller, path and query.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, Method, Uri, request::Parts},
};
use savoir_skill::{permission::Tier, version::VersionRange};
use savoir_store::{
    Timestamp,
    registry::{Actor, Namespace, PackageName, Registry, Right},
};
use semver::Version;
use serde::de::DeserializeOwned;

use super::error::{RegistryApiError, RegistryResult};
use crate::{
    app::App,
    auth::{Caller, authenticate_caller, count_request, has_credentials},
    client::address_key,
    config::Readers,
    middleware::RateLimitStatus,
};

/// The read limit per address is this many times the request limit per user. Cached responses are
/// cheap and not counted.
const READ_LIMIT_FACTOR: u32 = 10;

/// An authenticated caller of a registry route.
#[derive(Debug)]
pub(super) struct RegistryCaller {
    pub(super) caller: Caller,
    pub(super) actor: Actor,
}

impl RegistryCaller {
    /// Authenticates the caller, and counts the request for the rate limit.
    pub(super) async fn find(
        app: &App,
        method: &Method,
        headers: &HeaderMap,
        budget: Option<&RateLimitStatus>,
    ) -> RegistryResult<Self> {
        let caller = authenticate_caller(app, method, headers).await?;
        let key = format!("registry user:{}", caller.user.id);
        count_request(app, &key, app.config.limits.all, budget).await?;
        let actor = caller.actor();
        Ok(Self { caller, actor })
    }
}

impl FromRequestParts<App> for RegistryCaller {
    type Rejection = RegistryApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> RegistryResult<Self> {
        Self::find(app, &parts.method, &parts.headers, parts.extensions.get()).await
    }
}

/// The caller of a route that does not require authentication, if the request has a token.
#[derive(Debug)]
pub(super) struct OptionalCaller(pub(super) Option<RegistryCaller>);

impl FromRequestParts<App> for OptionalCaller {
    type Rejection = RegistryApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> RegistryResult<Self> {
        if !has_credentials(app, &parts.headers) {
            return Ok(Self(None));
        }
        RegistryCaller::from_request_parts(parts, app)
            .await
            .map(|registry_caller| Self(Some(registry_caller)))
    }
}

/// Checks that the client may read: everyone may, unless the registry requires an account.
#[derive(Debug)]
pub(super) struct ReadAccess;

impl FromRequestParts<App> for ReadAccess {
    type Rejection = RegistryApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> RegistryResult<Self> {
        if app.config.registry.readers == Readers::Everyone {
            let who = address_key(&app.config, &parts.headers, &parts.extensions);
            let limit = app.config.limits.all.saturating_mul(READ_LIMIT_FACTOR);
            match count_request(app, &format!("registry {who}"), limit, None).await {
                // Reads still work if the counter cannot be written.
                Err(error) if error.status().is_server_error() => {
                    tracing::warn!("reads are not counted: {}", error.text());
                }
                counted => counted?,
            }
            return Ok(Self);
        }
        let RegistryCaller { actor, .. } =
            RegistryCaller::find(app, &parts.method, &parts.headers, parts.extensions.get())
                .await?;
        actor.check_right(Right::Read, None)?;
        Ok(Self)
    }
}

/// Path parameters, with errors in the format of the registry.
#[derive(Debug)]
pub(super) struct PathParams<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for PathParams<T> {
    type Rejection = RegistryApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> RegistryResult<Self> {
        let found = axum::extract::Path::from_request_parts(parts, app).await;
        let wrong = |_| {
            RegistryApiError::invalid("the path is not valid UTF-8; check its percent-encoding")
        };
        found.map(|axum::extract::Path(value)| Self(value)).map_err(wrong)
    }
}

/// Query parameters.
#[derive(Debug)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn of(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        Self(url::form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// A value that is not empty.
    pub(super) fn text<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next_back().filter(|value| !value.is_empty())
    }

    /// A flag: `true`, `1` or nothing after the name.
    pub(super) fn flag(&self, name: &str) -> RegistryResult<bool> {
        match self.all(name).next_back() {
            None | Some("false" | "0") => Ok(false),
            Some("" | "true" | "1") => Ok(true),
            Some(_) => Err(RegistryApiError::invalid(format!("`{name}` is true or false"))),
        }
    }

    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn number(&self, name: &str, most: u64) -> RegistryResult<Option<u64>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if (1..=most).contains(&number) => Ok(Some(number)),
            _ => Err(RegistryApiError::invalid(format!(
                "`{name}` is a whole number from 1 to {most}"
            ))),
        }
    }

    pub(super) fn tier(&self) -> RegistryResult<Option<Tier>> {
        let Some(text) = self.text("tier") else { return Ok(None) };
        let found = Tier::ALL.into_iter().find(|tier| tier.as_str() == text);
        found.map(Some).ok_or_else(|| {
            RegistryApiError::invalid("`tier` is experimental, community or verified")
        })
    }

    pub(super) fn time(&self, name: &str) -> RegistryResult<Option<Timestamp>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let wrong = || {
            RegistryApiError::invalid(format!("`{name}` is a time such as 2026-01-31T12:00:00Z"))
        };
        Timestamp::parse(text).map(Some).ok_or_else(wrong)
    }

    pub(super) fn range(&self, name: &str) -> RegistryResult<VersionRange> {
        let text = self.text(name).unwrap_or("*");
        VersionRange::parse(text).map_err(|error| {
            RegistryApiError::invalid(format!("`{name}` is not a version range: {error}"))
        })
    }
}

impl FromRequestParts<App> for Query {
    type Rejection = RegistryApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> RegistryResult<Self> {
        Ok(Self::of(&parts.uri))
    }
}

/// Parses the name of a package in the default or another namespace.
pub(super) fn parse_package(namespace: Option<&str>, name: &str) -> RegistryResult<PackageName> {
    let namespace = match namespace {
        Some(namespace) => Namespace::parse(namespace)?,
        None => Namespace::default_namespace(),
    };
    Ok(PackageName::new(namespace, name)?)
}

pub(super) fn parse_version(text: &str) -> RegistryResult<Version> {
    savoir_skill::version::parse_version(text)
        .map_err(|error| RegistryApiError::invalid(format!("this is not a version: {error}")))
}

pub(super) fn registry(app: &App) -> Registry<'_> {
    app.database.registry(&app.storage)
}
