//! Routes that change a published version: yank, deprecate, withdraw, sign.

use axum::{extract::State, http::StatusCode, response::Response};
use savoir_package::{
    File, Tree, archive,
    registry::wire,
    trust::{self, PublicKey, SignatureKind, TrustStore, TrustedKey},
};
use savoir_store::registry::{
    NewSignature, OwnerScope, PackageName, PackageVersion, RegistryError, RegistryKey, Right,
    Signature, Signer,
};
use semver::Version;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    docs,
    error::{RegistryApiError, RegistryResult},
    extract::{ReadAccess, RegistryCaller, registry},
    people,
    request::{Body, PackageOrVersionPath, RoutePrefix, VersionPath, respond},
    wait_until_visible,
};
use crate::{
    app::App,
    body::{Members, Shape, ShapeError, Text},
};

/// Maximum bytes of a signature request: the record names every file.
const MAX_SIGNATURE_BYTES: usize = 600 * 1024;
/// Maximum length of a message or a reason.
const MAX_MESSAGE_BYTES: usize = 4096;
/// Signature files. A record does not sign them.
const SIGNATURE_FILES: [&str; 3] = ["signature.json", "SIGNATURE.json", "signature.asc"];

pub(super) fn router() -> OpenApiRouter<App> {
    let of_version = || {
        OpenApiRouter::new()
            .routes(routes!(yank))
            .routes(routes!(deprecate))
            .routes(routes!(withdraw))
            .routes(routes!(signatures, countersign))
    };
    let all = RoutePrefix {
        prefix: "/api/v1/skills/{name}",
        suffix: "_all",
        parameters: &[("name", "The skill")],
    };
    OpenApiRouter::new()
        .merge(RoutePrefix::FLAT.mount(of_version()))
        .merge(RoutePrefix::IN_NAMESPACE.mount(of_version()))
        .merge(all.mount(OpenApiRouter::new().routes(routes!(deprecate))))
}

impl Shape for wire::Yank {
    fn read(members: &mut Members) -> Self {
        Self {
            yanked: members.boolean("yanked"),
            reason: members.optional_text("reason", Text::between(0, MAX_MESSAGE_BYTES)),
        }
    }
}

impl Shape for wire::Deprecate {
    fn read(members: &mut Members) -> Self {
        // The field is required: null must be explicit.
        members.any("message");
        Self { message: members.optional_text("message", Text::between(1, MAX_MESSAGE_BYTES)) }
    }
}

/// Why a version is withdrawn.
#[derive(Debug, ToSchema)]
struct Withdraw {
    /// The reason, which is shown to everyone who requests the version.
    #[schema(min_length = 1, max_length = 4096)]
    why: String,
}

impl Shape for Withdraw {
    fn read(members: &mut Members) -> Self {
        Self { why: members.text("why", Text::between(1, MAX_MESSAGE_BYTES)) }
    }
}

/// A signature for a version that was published.
#[derive(Debug, ToSchema)]
struct Countersign {
    /// The role of the signer: `publisher` or `auditor`.
    #[schema(value_type = String)]
    signer: Signer,
    /// The record, in the format of `signature.json`.
    #[schema(value_type = Object)]
    record: Value,
}

impl Shape for Countersign {
    fn read(members: &mut Members) -> Self {
        let known = [Signer::Publisher, Signer::Auditor];
        let named = |text: &str| known.into_iter().find(|signer| signer.as_str() == text);
        let signer =
            members.pattern("signer", "^(publisher|auditor)$", |text| named(text).is_some());
        let record = members.any("record");
        if !record.is_object() && members.value("record").is_some() {
            let (place, message) = (members.location_of("record"), "Input should be an object");
            members.reject(ShapeError::new("dict_type", place, message, Value::Null));
        }
        Self { signer: named(&signer).unwrap_or(Signer::Publisher), record }
    }
}

/// Whether a version is yanked.
#[derive(Debug, Serialize, ToSchema)]
struct YankState {
    name: String,
    version: String,
    yanked: bool,
    /// The reason, if an administrator or a scan blocks the version.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<String>,
}

/// The deprecation message of a version or of all versions.
#[derive(Debug, Serialize, ToSchema)]
struct Deprecated {
    name: String,
    /// The version; none means all versions.
    version: Option<String>,
    message: Option<String>,
}

/// A withdrawn version.
#[derive(Debug, Serialize, ToSchema)]
struct WithdrawnVersion {
    name: String,
    version: String,
    withdrawn: bool,
    /// Other versions with the same content, as `name@version`, which are still available.
    same_content: Vec<String>,
}

/// A signed version.
#[derive(Debug, Serialize, ToSchema)]
struct Signed {
    name: String,
    version: String,
    /// `publisher` or `auditor`.
    signer: &'static str,
    key_id: String,
    /// The tier of the version after this signature.
    security_tier: &'static str,
}

/// The signatures of a version, oldest first.
#[derive(Debug, Serialize, ToSchema)]
struct SignatureList {
    items: Vec<ListedSignature>,
}

/// A signature of a version.
#[derive(Debug, Serialize, ToSchema)]
struct ListedSignature {
    /// `publisher` or `auditor`.
    signer: &'static str,
    key_id: String,
    /// `active`, `unknown` or `revoked`. Only active signatures count.
    state: &'static str,
    /// The record, in the format of `signature.json`.
    #[schema(value_type = Object)]
    record: Value,
    added_at: String,
}

impl From<Signature> for ListedSignature {
    fn from(signature: Signature) -> Self {
        Self {
            signer: signature.signer.as_str(),
            key_id: signature.key_id,
            state: signature.state.as_str(),
            record: serde_json::from_str(&signature.record).unwrap_or_default(),
            added_at: signature.added_at.to_string(),
        }
    }
}

/// Yank a version, so that only existing installs use it, or undo that.
#[utoipa::path(
    post, path = "/yank", tag = "registry", security(("bearer" = [])), request_body = wire::Yank,
    responses(
        (status = 200, body = YankState), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooLarge, docs::Unsupported, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn yank(
    State(app): State<App>,
    RegistryCaller { actor, .. }: RegistryCaller,
    VersionPath { package, version }: VersionPath,
    Body(wire::Yank { yanked, reason }): Body<wire::Yank>,
) -> RegistryResult<Response> {
    if yanked {
        registry(&app).yank(&actor, &package, &version, reason.as_deref()).await?;
    } else {
        registry(&app).unyank(&actor, &package, &version).await?;
    }
    wait_until_visible(&app).await;
    let blocked = registry(&app).version(&package, &version).await?.why_blocked();
    let (name, version) = (package.to_string(), version.to_string());
    Ok(respond(StatusCode::OK, &YankState { name, version, yanked, blocked }))
}

/// Deprecate a version or a skill with a message, or undo that.
///
/// `/{name}/{version}/deprecate` is for a version; `/{namespace}/{name}/deprecate` and
/// `/{name}/deprecate` are for all versions.
#[utoipa::path(
    post, path = "/deprecate", tag = "registry", security(("bearer" = [])),
    request_body = wire::Deprecate,
    responses(
        (status = 200, body = Deprecated), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooLarge, docs::Unsupported, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn deprecate(
    State(app): State<App>,
    RegistryCaller { actor, .. }: RegistryCaller,
    PackageOrVersionPath { package, version }: PackageOrVersionPath,
    Body(wire::Deprecate { message }): Body<wire::Deprecate>,
) -> RegistryResult<Response> {
    registry(&app).deprecate(&actor, &package, version.as_ref(), message.as_deref()).await?;
    wait_until_visible(&app).await;
    let (name, version) = (package.to_string(), version.map(|version| version.to_string()));
    Ok(respond(StatusCode::OK, &Deprecated { name, version, message }))
}

/// Other versions with the content that an administrator withdrew; they may have to be withdrawn,
/// too.
pub(super) async fn same_content(
    app: &App,
    package: &PackageName,
    version: &Version,
) -> RegistryResult<Vec<String>> {
    let others = registry(app).same_content(package, version).await?;
    Ok(others.into_iter().map(|(name, version)| format!("{name}@{version}")).collect())
}

/// Withdraw a version permanently. For administrators; owners can yank.
///
/// Its number cannot be used again. Its bytes are deleted later and cannot be published again under
/// any name.
#[utoipa::path(
    post, path = "/withdraw", tag = "registry", security(("bearer" = [])), request_body = Withdraw,
    responses(
        (status = 200, body = WithdrawnVersion), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooLarge, docs::Unsupported, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn withdraw(
    State(app): State<App>,
    RegistryCaller { actor, .. }: RegistryCaller,
    VersionPath { package, version }: VersionPath,
    Body(Withdraw { why }): Body<Withdraw>,
) -> RegistryResult<Response> {
    registry(&app).withdraw(&actor, &package, &version, &why).await?;
    wait_until_visible(&app).await;
    let same_content = same_content(&app, &package, &version).await?;
    let (name, version) = (package.to_string(), version.to_string());
    Ok(respond(StatusCode::OK, &WithdrawnVersion { name, version, withdrawn: true, same_content }))
}

/// List the signatures of a version, oldest first.
#[utoipa::path(
    get, path = "/signatures", tag = "registry",
    responses(
        (status = 200, body = SignatureList), docs::Invalid, docs::Unauthorized, docs::NotFound,
        docs::Unavailable
    )
)]
async fn signatures(
    State(app): State<App>,
    _: ReadAccess,
    VersionPath { package, version }: VersionPath,
) -> RegistryResult<Response> {
    // Fails for a version that does not exist or was withdrawn, unlike an unsigned one.
    registry(&app).version(&package, &version).await?;
    let items = registry(&app).signatures(&package, &version).await?;
    let items = items.into_iter().map(Into::into).collect();
    Ok(respond(StatusCode::OK, &SignatureList { items }))
}

/// Add a signature to a published version.
///
/// It must sign the published files, with a key that is registered for the owner of the skill or
/// for the auditors of the registry. The response has the new tier of the version.
#[utoipa::path(
    post, path = "/signatures", tag = "registry", security(("bearer" = [])),
    request_body = Countersign,
    responses(
        (status = 201, body = Signed), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::Conflict, docs::TooLarge, docs::Unsupported, docs::TooManyRequests,
        docs::Unavailable
    )
)]
async fn countersign(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    VersionPath { package, version }: VersionPath,
    Body(Countersign { signer, record }): Body<Countersign, MAX_SIGNATURE_BYTES>,
) -> RegistryResult<Response> {
    registry_caller.actor.check_right(Right::Publish, Some(&package.owner_scope()))?;
    let known = registry(&app).version(&package, &version).await?;
    let keys = signer_keys(&app, &registry_caller, &package, signer).await?;
    let key_id = check(&app, &known, &record, keys).await?;
    let new = NewSignature { signer, key_id: key_id.clone(), record: record.to_string() };
    let tier =
        registry(&app).add_signature(&registry_caller.actor, &package, &version, &new).await?;
    wait_until_visible(&app).await;
    let signed = Signed {
        name: package.to_string(),
        version: known.version.to_string(),
        signer: signer.as_str(),
        key_id,
        security_tier: tier.as_str(),
    };
    Ok(respond(StatusCode::CREATED, &signed))
}

/// The keys that may have signed. Callers who cannot use any are rejected before the archive is
/// read.
async fn signer_keys(
    app: &App,
    registry_caller: &RegistryCaller,
    package: &PackageName,
    signer: Signer,
) -> RegistryResult<(OwnerScope, Vec<RegistryKey>)> {
    let owner_scope = match signer {
        Signer::Publisher => {
            people::check_member(app, registry_caller, &package.owner_scope()).await?;
            package.owner_scope()
        }
        Signer::Auditor => OwnerScope::auditors(),
    };
    let keys = registry(app).keys(&owner_scope).await?;
    let own = |key: &RegistryKey| key.account == Some(registry_caller.caller.user.id);
    if signer == Signer::Auditor && !registry_caller.actor.is_admin() && !keys.iter().any(own) {
        return Err(RegistryError::NotAdmin.into());
    }
    Ok((owner_scope, keys))
}

/// Verifies a record with the published files, and returns the key that signed them.
async fn check(
    app: &App,
    known: &PackageVersion,
    record: &Value,
    (owner_scope, keys): (OwnerScope, Vec<RegistryKey>),
) -> RegistryResult<String> {
    let missing_blob =
        || RegistryApiError::failed(&format!("the artifact {} is lost", known.sha256));
    let bytes = registry(app).blob(&known.sha256).await?.ok_or_else(missing_blob)?;
    let (name, version) = (known.package.name().to_owned(), known.version.to_string());
    let store: TrustStore =
        keys.iter().filter(|key| key.revoked.is_none()).filter_map(to_trusted_key).collect();
    let record = record.to_string();
    let checked = tokio::task::spawn_blocking(move || {
        let tree =
            tree_with_record(&bytes, record).map_err(|error| RegistryApiError::failed(&error))?;
        trust::verify(&tree, &name, &version, &store)
            .map_err(|error| signature_error(&error.to_string()))
    });
    let attestation = checked.await.map_err(|error| RegistryApiError::failed(&error))??;
    // Signatures of other kinds may come from the archive, and are not part of this record.
    let kinds = [SignatureKind::Ed25519, SignatureKind::SshSig];
    let signers = || attestation.signatures.iter().filter(|signer| kinds.contains(&signer.kind));
    if let Some(signer) = signers().find(|signer| signer.role.is_some()) {
        return Ok(signer.key_id.clone());
    }
    let revoked = |key: &&RegistryKey| signers().any(|signer| signer.key_id == key.key_id);
    if let Some(key) = keys.iter().find(revoked) {
        return Err(RegistryError::KeyRevoked { owner_scope, key_id: key.key_id.clone() }.into());
    }
    let message =
        format!("no key that signed this is registered for `{owner_scope}`; register it first");
    Err(RegistryApiError::new(StatusCode::FORBIDDEN, "unknown_key", message))
}

fn to_trusted_key(key: &RegistryKey) -> Option<TrustedKey> {
    Some(TrustedKey {
        key: PublicKey::parse(&key.public_key).ok()?,
        publisher: key.owner_scope.to_string(),
        role: trust::Role::Publisher,
        namespaces: None,
    })
}

fn signature_error(why: &str) -> RegistryApiError {
    let message = format!("this signature does not hold: {why}; sign what was published, again");
    RegistryApiError::new(StatusCode::BAD_REQUEST, "invalid_signature", message)
}

/// The published files, with a record instead of the signatures in the archive.
fn tree_with_record(bytes: &[u8], record: String) -> Result<Tree, archive::ArchiveError> {
    let (_, skill) = archive::one_skill(archive::unpack(bytes)?)?;
    let mut tree = Tree::default();
    for (path, file) in skill.into_files().filter(|(path, _)| !SIGNATURE_FILES.contains(&&**path)) {
        tree.add(path, file)?;
    }
    tree.add(
        SIGNATURE_FILES[0].to_owned(),
        File { bytes: record.into_bytes(), executable: false },
    )?;
    Ok(tree)
}
