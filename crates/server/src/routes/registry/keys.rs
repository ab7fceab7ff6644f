//! Routes for the signing keys of teams and auditors.

use std::collections::HashMap;

use axum::{extract::State, http::StatusCode, response::Response};
use savoir_package::trust::{
    KeyKind, PublicKey,
    possession::{Purpose, is_proved},
};
use savoir_store::registry::{NewKey, OwnerScope, RegistryError, RegistryKey, Right};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    docs,
    error::{RegistryApiError, RegistryResult},
    extract::{OptionalCaller, PathParams, Query, ReadAccess, RegistryCaller, registry},
    people::{MAX_EMAIL_LENGTH, account, check_owner, emails},
    request::{Body, OwnerScopePath, RoutePrefix, respond},
    wait_until_visible,
};
use crate::{
    app::App,
    body::{Members, Shape, Text},
};

/// Maximum length of the label of a key.
const MAX_LABEL_LENGTH: usize = 100;
/// Maximum length of a public key as text.
const MAX_KEY_LENGTH: usize = 4096;
/// Maximum length of the reason for a revocation.
const MAX_REASON_LENGTH: usize = 1000;
/// Maximum keys of a team, including revoked ones.
const MAX_KEYS: usize = 100;

/// Routes for the keys of a team, below the path of the team.
pub(super) fn team_router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, add)).routes(routes!(revoke))
}

/// Routes for the keys of the auditors of the registry.
pub(super) fn router() -> OpenApiRouter<App> {
    let auditors =
        RoutePrefix { prefix: "/api/v1/auditors", suffix: "_of_auditors", parameters: &[] };
    auditors.mount(team_router())
}

/// A key to register.
#[derive(Debug, ToSchema)]
struct AddKeyRequest {
    /// Base64 of the 32 bytes of an Ed25519 key, or a line `ssh-ed25519 AAAA…`.
    #[schema(min_length = 1, max_length = 4096)]
    public_key: String,
    /// A name for the key.
    #[schema(max_length = 100)]
    label: Option<String>,
    /// The email address of the auditor who uses the key; only for auditors.
    email: Option<String>,
    /// Proves that you have the private key: an OpenSSH signature, in the namespace
    /// `savoir-skill@v1`, of the line `On 2026-02-03 this key signs for acme in the registry
    /// https://skills.example.com/registry.` with today's date, your namespace, the URL of this
    /// registry, and a line feed. A proved key replaces the same key that someone else registered
    /// without a proof.
    #[schema(max_length = 4096)]
    proof: Option<String>,
}

impl Shape for AddKeyRequest {
    fn read(members: &mut Members) -> Self {
        Self {
            public_key: members.text("public_key", Text::between(1, MAX_KEY_LENGTH)),
            label: members.optional_text("label", Text::between(0, MAX_LABEL_LENGTH)),
            email: members.optional_text("email", Text::between(1, MAX_EMAIL_LENGTH)),
            proof: members.optional_text("proof", Text::between(1, MAX_KEY_LENGTH)),
        }
    }
}

/// Keys, oldest first.
#[derive(Debug, Serialize, ToSchema)]
struct KeyList {
    items: Vec<ListedKey>,
}

/// A key that is or was registered.
#[derive(Debug, Serialize, ToSchema)]
struct ListedKey {
    key_id: String,
    public_key: String,
    label: String,
    added_at: String,
    /// Whether the owner has proved that they have the private key.
    proved: bool,
    /// The time of the revocation. Since then, signatures of the key no longer count.
    revoked_at: Option<String>,
    /// The reason for the revocation.
    reason: Option<String>,
    /// The auditor who uses the key; only for administrators.
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<String>,
}

impl ListedKey {
    fn new(key: RegistryKey, email: Option<String>) -> Self {
        let (revoked_at, reason) = key.revoked.unzip();
        Self {
            key_id: key.key_id,
            public_key: key.public_key,
            label: key.label,
            added_at: key.added_at.to_string(),
            proved: key.proved,
            revoked_at: revoked_at.map(|time| time.to_string()),
            reason: reason.filter(|reason| !reason.is_empty()),
            email,
        }
    }
}

/// A revoked key.
#[derive(Debug, Serialize, ToSchema)]
struct RevokedKey {
    key_id: String,
    /// Number of versions whose signatures by this key no longer count.
    lowered: u64,
}

/// List signing keys, including revoked ones.
#[utoipa::path(
    get, path = "/keys", tag = "registry",
    responses(
        (status = 200, body = KeyList), docs::Invalid, docs::Unauthorized, docs::Unavailable
    )
)]
async fn list(
    State(app): State<App>,
    _: ReadAccess,
    OptionalCaller(registry_caller): OptionalCaller,
    OwnerScopePath(owner_scope): OwnerScopePath,
) -> RegistryResult<Response> {
    let keys = registry(&app).keys(&owner_scope).await?;
    let sees = registry_caller.is_some_and(|registry_caller| registry_caller.actor.is_admin());
    let accounts = keys.iter().filter_map(|key| key.account).filter(|_| sees);
    let emails = emails(&app, accounts.collect()).await?;
    let listed = |key: RegistryKey| {
        let email = key.account.and_then(|account| emails.get(&account).cloned());
        ListedKey::new(key, email)
    };
    let items = keys.into_iter().map(listed).collect();
    Ok(respond(StatusCode::OK, &KeyList { items }))
}

/// Register a signing key. For owners; keys of auditors for administrators.
///
/// The server computes the key id. A revoked key cannot be registered again.
#[utoipa::path(
    post, path = "/keys", tag = "registry", security(("bearer" = [])), request_body = AddKeyRequest,
    responses(
        (status = 201, body = ListedKey), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::Conflict, docs::TooLarge, docs::Unsupported, docs::TooManyRequests,
        docs::Unavailable
    )
)]
async fn add(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    OwnerScopePath(owner_scope): OwnerScopePath,
    Body(AddKeyRequest { public_key, label, email, proof }): Body<AddKeyRequest>,
) -> RegistryResult<Response> {
    check_may_change(&app, &registry_caller, &owner_scope).await?;
    let (key, public_key) = parse_key(&public_key)?;
    let key_id = key.key_id();
    if let Some(proof) = &proof {
        check_proof(&app, &key, &owner_scope, proof)?;
    }
    let account = match email {
        None => None,
        Some(_) if owner_scope != OwnerScope::auditors() => {
            return Err(RegistryApiError::invalid("`email` is for keys of auditors; leave it out"));
        }
        Some(email) => Some(account(&app, &email).await?),
    };
    if registry(&app).keys(&owner_scope).await?.len() >= MAX_KEYS {
        let message = format!("`{owner_scope}` has {MAX_KEYS} keys; no more can be registered");
        return Err(RegistryApiError::new(StatusCode::CONFLICT, "too_many_keys", message));
    }
    let new = NewKey {
        owner_scope: &owner_scope,
        key_id: &key_id,
        public_key: &public_key,
        label: label.as_deref().unwrap_or_default(),
        account: account.as_ref().map(|account| account.id),
        proved: proof.is_some(),
    };
    registry(&app).add_key(&registry_caller.actor, new).await?;
    wait_until_visible(&app).await;
    let keys = registry(&app).keys(&owner_scope).await?;
    let missing_blob = || RegistryApiError::failed(&format!("the key {key_id} is gone again"));
    let kept = keys.into_iter().find(|key| key.key_id == key_id).ok_or_else(missing_blob)?;
    Ok(respond(StatusCode::CREATED, &ListedKey::new(kept, account.map(|account| account.email))))
}

/// Revoke a key permanently. Versions that it signed lose their signature at once.
#[utoipa::path(
    delete, path = "/keys/{key_id}", tag = "registry", security(("bearer" = [])),
    params(
        ("key_id" = String, Path, description = "The key"),
        ("reason" = Option<String>, Query, description = "The reason; it is public"),
    ),
    responses(
        (status = 200, body = RevokedKey), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn revoke(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    OwnerScopePath(owner_scope): OwnerScopePath,
    PathParams(mut parts): PathParams<HashMap<String, String>>,
    query: Query,
) -> RegistryResult<Response> {
    check_may_change(&app, &registry_caller, &owner_scope).await?;
    let key_id = parts.remove("key_id").unwrap_or_default();
    let reason = query.text("reason").unwrap_or_default();
    if reason.chars().count() > MAX_REASON_LENGTH {
        let message = format!("`reason` has more than {MAX_REASON_LENGTH} characters");
        return Err(RegistryApiError::invalid(message));
    }
    let lowered =
        registry(&app).revoke_key(&registry_caller.actor, &owner_scope, &key_id, reason).await?;
    wait_until_visible(&app).await;
    Ok(respond(StatusCode::OK, &RevokedKey { key_id, lowered }))
}

async fn check_may_change(
    app: &App,
    registry_caller: &RegistryCaller,
    owner_scope: &OwnerScope,
) -> RegistryResult<()> {
    if *owner_scope != OwnerScope::auditors() {
        return check_owner(app, registry_caller, owner_scope).await.map(drop);
    }
    if !registry_caller.actor.is_admin() {
        return Err(RegistryError::NotAdmin.into());
    }
    Ok(registry_caller.actor.check_right(Right::Own, Some(owner_scope))?)
}

/// Rejects an invalid proof of possession.
fn check_proof(
    app: &App,
    key: &PublicKey,
    owner_scope: &OwnerScope,
    proof: &str,
) -> RegistryResult<()> {
    let (owner_scope, registry) = (owner_scope.to_string(), super::registry_url(app));
    if is_proved(key, Purpose { owner_scope: &owner_scope, registry: &registry }, proof) {
        return Ok(());
    }
    let message = format!(
        "`proof` is not a signature of the key {} that says that it signs for {owner_scope} today in the \
         registry {registry}",
        key.key_id()
    );
    Err(RegistryApiError::invalid(message).with_reason("wrong_proof"))
}

/// Parses a key that can sign records. Also returns the text that is stored.
fn parse_key(text: &str) -> RegistryResult<(PublicKey, String)> {
    let wrong =
        |why: &dyn std::fmt::Display| RegistryApiError::invalid(format!("`public_key`: {why}"));
    let key = PublicKey::parse(text).map_err(|error| wrong(&error))?;
    match key.kind() {
        KeyKind::Ed25519 => {
            let text = key.to_base64();
            Ok((key, text))
        }
        KeyKind::Ssh => Ok((key, text.trim().to_owned())),
        _ => Err(wrong(
            &"a registry checks only Ed25519 keys of Savoir and keys of OpenSSH: register one of these",
        )),
    }
}
