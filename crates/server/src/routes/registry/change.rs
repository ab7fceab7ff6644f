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
    request::{Below, Body, OneOrAll, OneVersion, respond},
    settled,
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
    let all = Below {
        prefix: "/api/v1/skills/{name}",
        suffix: "_all",
        parameters: &[("name", "The skill")],
    };
    OpenApiRouter::new()
        .merge(Below::FLAT.put(of_version()))
        .merge(Below::IN_NAMESPACE.put(of_version()))
        .merge(all.put(OpenApiRouter::new().routes(routes!(deprecate))))
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
    /// What everybody is told who asks for it.
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
    /// For whom the key signs: `publisher` or `auditor`.
    #[schema(value_type = String)]
    signer: Signer,
    /// The record, as it would be in `signature.json`.
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
            let (place, message) = (members.place("record"), "Input should be an object");
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
    /// Why it is blocked by an administrator or a scan.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<String>,
}

/// The deprecation message of a version or of all versions.
#[derive(Debug, Serialize, ToSchema)]
struct Deprecated {
    name: String,
    /// None means all.
    version: Option<String>,
    message: Option<String>,
}

/// A version that was taken away.
#[derive(Debug, Serialize, ToSchema)]
struct GoneVersion {
    name: String,
    version: String,
    withdrawn: bool,
    /// Other versions with the same content, as `name@version`, which everybody is still given.
    same_content: Vec<String>,
}

/// A version that was signed.
#[derive(Debug, Serialize, ToSchema)]
struct Signed {
    name: String,
    version: String,
    /// `publisher` or `auditor`.
    signer: &'static str,
    key_id: String,
    /// How far the registry trusts it now.
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
    /// `active`; or `unknown` or `revoked`, which vouch for nothing.
    state: &'static str,
    /// The record, as it would be in `signature.json`.
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
        docs::Missing, docs::TooLarge, docs::Unsupported, docs::TooMany, docs::Unavailable
    )
)]
async fn yank(
    State(app): State<App>,
    RegistryCaller { actor, .. }: RegistryCaller,
    OneVersion { package, version }: OneVersion,
    Body(wire::Yank { yanked, reason }): Body<wire::Yank>,
) -> RegistryResult<Response> {
    if yanked {
        registry(&app).yank(&actor, &package, &version, reason.as_deref()).await?;
    } else {
        registry(&app).unyank(&actor, &package, &version).await?;
    }
    settled(&app).await;
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
        docs::Missing, docs::TooLarge, docs::Unsupported, docs::TooMany, docs::Unavailable
    )
)]
async fn deprecate(
    State(app): State<App>,
    RegistryCaller { actor, .. }: RegistryCaller,
    OneOrAll { package, version }: OneOrAll,
    Body(wire::Deprecate { message }): Body<wire::Deprecate>,
) -> RegistryResult<Response> {
    registry(&app).deprecate(&actor, &package, version.as_ref(), message.as_deref()).await?;
    settled(&app).await;
    let (name, version) = (package.to_string(), version.map(|version| version.to_string()));
    Ok(respond(StatusCode::OK, &Deprecated { name, version, message }))
}

/// Other versions with the content that an administrator took down; they may have to be taken down,
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
        (status = 200, body = GoneVersion), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::Missing, docs::TooLarge, docs::Unsupported, docs::TooMany, docs::Unavailable
    )
)]
async fn withdraw(
    State(app): State<App>,
    RegistryCaller { actor, .. }: RegistryCaller,
    OneVersion { package, version }: OneVersion,
    Body(Withdraw { why }): Body<Withdraw>,
) -> RegistryResult<Response> {
    registry(&app).withdraw(&actor, &package, &version, &why).await?;
    settled(&app).await;
    let same_content = same_content(&app, &package, &version).await?;
    let (name, version) = (package.to_string(), version.to_string());
    Ok(respond(StatusCode::OK, &GoneVersion { name, version, withdrawn: true, same_content }))
}

/// List the signatures of a version, oldest first.
#[utoipa::path(
    get, path = "/signatures", tag = "registry",
    responses(
        (status = 200, body = SignatureList), docs::Invalid, docs::Unauthorized, docs::Missing,
        docs::Unavailable
    )
)]
async fn signatures(
    State(app): State<App>,
    _: ReadAccess,
    OneVersion { package, version }: OneVersion,
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
        docs::Missing, docs::Conflict, docs::TooLarge, docs::Unsupported, docs::TooMany,
        docs::Unavailable
    )
)]
async fn countersign(
    State(app): State<App>,
    acting: RegistryCaller,
    OneVersion { package, version }: OneVersion,
    Body(Countersign { signer, record }): Body<Countersign, MAX_SIGNATURE_BYTES>,
) -> RegistryResult<Response> {
    acting.actor.must_have(Right::Publish, Some(&package.holding()))?;
    let known = registry(&app).version(&package, &version).await?;
    let keys = keys_of(&app, &acting, &package, signer).await?;
    let key_id = check(&app, &known, &record, keys).await?;
    let new = NewSignature { signer, key_id: key_id.clone(), record: record.to_string() };
    let tier = registry(&app).add_signature(&acting.actor, &package, &version, &new).await?;
    settled(&app).await;
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
async fn keys_of(
    app: &App,
    acting: &RegistryCaller,
    package: &PackageName,
    signer: Signer,
) -> RegistryResult<(OwnerScope, Vec<RegistryKey>)> {
    let holding = match signer {
        Signer::Publisher => {
            people::must_be_member(app, acting, &package.holding()).await?;
            package.holding()
        }
        Signer::Auditor => OwnerScope::auditors(),
    };
    let keys = registry(app).keys(&holding).await?;
    let own = |key: &RegistryKey| key.account == Some(acting.caller.user.id);
    if signer == Signer::Auditor && !acting.actor.is_admin() && !keys.iter().any(own) {
        return Err(RegistryError::NotAdmin.into());
    }
    Ok((holding, keys))
}

/// Verifies a record with the published files, and returns the key that signed them.
async fn check(
    app: &App,
    known: &PackageVersion,
    record: &Value,
    (holding, keys): (OwnerScope, Vec<RegistryKey>),
) -> RegistryResult<String> {
    let lost = || RegistryApiError::failed(&format!("the artefact {} is lost", known.sha256));
    let bytes = registry(app).blob(&known.sha256).await?.ok_or_else(lost)?;
    let (name, version) = (known.package.name().to_owned(), known.version.to_string());
    let store: TrustStore =
        keys.iter().filter(|key| key.revoked.is_none()).filter_map(trusted).collect();
    let record = record.to_string();
    let checked = tokio::task::spawn_blocking(move || {
        let tree = published(&bytes, record).map_err(|error| RegistryApiError::failed(&error))?;
        trust::verify(&tree, &name, &version, &store).map_err(|error| wrong(&error.to_string()))
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
        return Err(RegistryError::KeyRevoked { holding, key_id: key.key_id.clone() }.into());
    }
    let message =
        format!("no key that signed this is registered for `{holding}`; register it first");
    Err(RegistryApiError::new(StatusCode::FORBIDDEN, "unknown_key", message))
}

fn trusted(key: &RegistryKey) -> Option<TrustedKey> {
    Some(TrustedKey {
        key: PublicKey::parse(&key.public_key).ok()?,
        publisher: key.holding.to_string(),
        role: trust::Role::Publisher,
        namespaces: None,
    })
}

fn wrong(why: &str) -> RegistryApiError {
    let message = format!("this signature does not hold: {why}; sign what was published, again");
    RegistryApiError::new(StatusCode::BAD_REQUEST, "invalid_signature", message)
}

/// The published files, with a record instead of the signatures in the archive.
fn published(bytes: &[u8], record: String) -> Result<Tree, archive::ArchiveError> {
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
