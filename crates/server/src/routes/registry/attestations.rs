//! Routes for signed evaluations of versions.

use axum::{extract::State, http::StatusCode, response::Response};
use savoir_package::{
    limits::MAX_EVALUATION_KEYS,
    registry::wire::{Attestations, NewAttestation, PublishedAttestation},
};
use savoir_registry::AttestationError;
use savoir_store::registry::MAX_ATTESTATION_BYTES;
use serde_json::Value;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    docs,
    error::{RegistryApiError, RegistryResult},
    extract::{Query, ReadAccess, RegistryCaller, registry},
    request::{Body, RoutePrefix, VersionPath, respond},
    wait_until_visible,
};
use crate::{
    app::App,
    body::{Members, Shape, ShapeError, Text},
};

/// Maximum length of a public key as text.
const MAX_KEY_LENGTH: usize = 4096;
/// Maximum bytes of a request: the statement and the key.
const MAX_REQUEST_BYTES: usize = MAX_ATTESTATION_BYTES + 2 * MAX_KEY_LENGTH;

pub(super) fn router() -> OpenApiRouter<App> {
    let of_version = || OpenApiRouter::new().routes(routes!(list, add, remove));
    OpenApiRouter::new()
        .merge(RoutePrefix::FLAT.mount(of_version()))
        .merge(RoutePrefix::IN_NAMESPACE.mount(of_version()))
}

impl Shape for NewAttestation {
    fn read(members: &mut Members) -> Self {
        let statement = members.any("statement");
        if !statement.is_object() && members.value("statement").is_some() {
            let (place, message) = (members.location_of("statement"), "Input should be an object");
            members.reject(ShapeError::new("dict_type", place, message, Value::Null));
        }
        let public_key = members.optional_text("public_key", Text::between(1, MAX_KEY_LENGTH));
        Self { statement, public_key }
    }
}

impl From<AttestationError> for RegistryApiError {
    fn from(error: AttestationError) -> Self {
        let code = error.code();
        match error {
            AttestationError::Registry(error) => error.into(),
            error => Self::new(StatusCode::BAD_REQUEST, code, error.to_string()),
        }
    }
}

/// List the newest signed evaluation of each key for a version.
///
/// Each attester is listed by itself, and nothing is averaged: evaluations of different models and
/// cases are different measurements.
#[utoipa::path(
    get, path = "/attestations", tag = "registry", operation_id = "attestations",
    params((
        "key" = Option<Vec<String>>, Query,
        description = "The ids of keys whose evaluations are listed first; at most 50. If there are \
                       too many for one response, the last are left out."
    )),
    responses(
        (status = 200, body = Attestations), docs::Invalid, docs::Unauthorized, docs::NotFound,
        docs::Unavailable
    )
)]
async fn list(
    State(app): State<App>,
    _: ReadAccess,
    VersionPath { package, version }: VersionPath,
    query: Query,
) -> RegistryResult<Response> {
    let known = registry(&app).version(&package, &version).await?;
    let keys: Vec<&str> = query.all("key").take(MAX_EVALUATION_KEYS).collect();
    let found = savoir_registry::attestations(registry(&app), &known, &keys).await?;
    Ok(respond(StatusCode::OK, &found))
}

/// Add a signed evaluation to a version. Everyone with an account can do this.
///
/// The signature counts, not the account. The statement must be about the published files.
#[utoipa::path(
    post, path = "/attestations", tag = "registry", operation_id = "add_attestation",
    security(("bearer" = [])), request_body = NewAttestation,
    responses(
        (status = 201, body = PublishedAttestation), docs::Invalid, docs::Unauthorized,
        docs::Forbidden, docs::NotFound, docs::TooLarge, docs::Unsupported, docs::TooManyRequests,
        docs::Unavailable
    )
)]
async fn add(
    State(app): State<App>,
    RegistryCaller { actor, .. }: RegistryCaller,
    VersionPath { package, version }: VersionPath,
    Body(new): Body<NewAttestation, MAX_REQUEST_BYTES>,
) -> RegistryResult<Response> {
    let known = registry(&app).version(&package, &version).await?;
    let added = savoir_registry::add_attestation(registry(&app), &actor, &known, &new).await?;
    wait_until_visible(&app).await;
    Ok(respond(StatusCode::CREATED, &added))
}

/// Remove a signed evaluation that you added. Administrators can remove that of any account.
#[utoipa::path(
    delete, path = "/attestations", tag = "registry", operation_id = "remove_attestation",
    security(("bearer" = [])),
    params(("id" = String, Query, description = "The `id` of the evaluation")),
    responses(
        (status = 204, description = "The evaluation was removed"), docs::Invalid,
        docs::Unauthorized, docs::Forbidden, docs::NotFound, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn remove(
    State(app): State<App>,
    RegistryCaller { actor, .. }: RegistryCaller,
    VersionPath { package, version }: VersionPath,
    query: Query,
) -> RegistryResult<StatusCode> {
    let id = query.text("id").unwrap_or_default();
    if !registry(&app).remove_attestation(&actor, &package, &version, id).await? {
        return Err(RegistryApiError::not_found("there is no such evaluation"));
    }
    wait_until_visible(&app).await;
    Ok(StatusCode::NO_CONTENT)
}
