//! Routes for rescans, appeals and clearances.

use axum::{extract::State, http::StatusCode, response::Response};
use savoir_package::{archive, registry::wire};
use savoir_registry::PublishPermit;
use savoir_store::{
    Timestamp,
    registry::{Actor, PackageName, PackageVersion, RegistryError, ScanResult, ScanVerdict},
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    change::same_content,
    docs,
    error::{RegistryApiError, RegistryResult},
    extract::{PathParams, Query, RegistryCaller, registry},
    publish::{scan_result, vet, wait_for_upload_slot},
    render,
    request::{Body, RoutePrefix, VersionPath, respond},
    wait_until_visible,
};
use crate::{
    app::App,
    body::{Members, Shape, Text},
};

/// Maximum length of a message or a reason.
const MAX_REASON_LENGTH: usize = 4096;
const VERDICTS: [ScanVerdict; 3] = [ScanVerdict::Allow, ScanVerdict::Review, ScanVerdict::Block];

pub(super) fn router() -> OpenApiRouter<App> {
    let of_version = || {
        OpenApiRouter::new().routes(routes!(rescan)).routes(routes!(appeal)).routes(routes!(judge))
    };
    OpenApiRouter::new()
        .merge(RoutePrefix::FLAT.mount(of_version()))
        .merge(RoutePrefix::IN_NAMESPACE.mount(of_version()))
        .routes(routes!(clear, unclear))
}

/// The result of a scan.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RegistryScanned)]
struct Scanned {
    name: String,
    version: String,
    /// The current tier.
    security_tier: String,
    audit: wire::Audit,
    /// If an administrator blocks the version: other versions with the same content, as
    /// `name@version`, which are still available.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    same_content: Vec<String>,
}

/// An appeal against a scan.
#[derive(Debug, ToSchema)]
#[schema(as = RegistryAppeal)]
struct Appeal {
    /// The message for the administrators.
    #[schema(min_length = 1, max_length = 4096)]
    message: String,
    /// The SHA-256 of the archive in hexadecimal digits, if it was rejected and not published.
    sha256: Option<String>,
}

impl Shape for Appeal {
    fn read(members: &mut Members) -> Self {
        Self {
            message: members.text("message", Text::between(1, MAX_REASON_LENGTH)),
            sha256: members.optional_text("sha256", Text::between(64, 64)),
        }
    }
}

/// The decision of an administrator about a version.
#[derive(Debug, ToSchema)]
#[schema(as = RegistryJudgement)]
struct Judgement {
    /// allow, review or block
    #[schema(value_type = String, pattern = "^(allow|review|block)$")]
    verdict: ScanVerdict,
    /// The reason.
    #[schema(min_length = 1, max_length = 4096)]
    reason: String,
}

impl Shape for Judgement {
    fn read(members: &mut Members) -> Self {
        let named = |text: &str| VERDICTS.into_iter().find(|verdict| verdict.as_str() == text);
        let verdict =
            members.pattern("verdict", "^(allow|review|block)$", |text| named(text).is_some());
        Self {
            verdict: named(&verdict).unwrap_or(ScanVerdict::Block),
            reason: members.text("reason", Text::between(1, MAX_REASON_LENGTH)),
        }
    }
}

/// The permission to publish an archive despite its scan.
#[derive(Debug, ToSchema)]
#[schema(as = RegistryClearance)]
struct Clearance {
    #[schema(min_length = 1, max_length = 4096)]
    reason: String,
    /// The skill that may be published with the archive. Default: the one in the appeal.
    package: Option<String>,
}

impl Shape for Clearance {
    fn read(members: &mut Members) -> Self {
        Self {
            reason: members.text("reason", Text::between(1, MAX_REASON_LENGTH)),
            package: members.optional_text("package", Text::between(1, MAX_REASON_LENGTH)),
        }
    }
}

/// Scan a version again with the current rules.
#[utoipa::path(
    post, path = "/rescan", tag = "registry", security(("bearer" = [])),
    responses(
        (status = 200, body = Scanned), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn rescan(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    VersionPath { package, version }: VersionPath,
) -> RegistryResult<Response> {
    registry(&app).may_appeal_for(&registry_caller.actor, &package).await?;
    let permit = wait_for_upload_slot(&app, &registry_caller).await?;
    let known = registry(&app).version(&package, &version).await?;
    let scan = scan(&app, Some(permit), &known).await?;
    let scanned = store_scan(&app, &registry_caller.actor, &known, scan).await?;
    Ok(respond(StatusCode::OK, &scanned))
}

/// Scans a published version again.
async fn scan(
    app: &App,
    permit: Option<PublishPermit>,
    known: &PackageVersion,
) -> RegistryResult<ScanResult> {
    let missing_blob =
        || RegistryApiError::failed(&format!("the artifact {} is lost", known.sha256));
    let bytes = registry(app).blob(&known.sha256).await?.ok_or_else(missing_blob)?;
    let tree =
        tokio::task::spawn_blocking(move || archive::unpack(&bytes).and_then(archive::one_skill));
    let tree = tree.await.map_err(|error| RegistryApiError::failed(&error))?;
    let (_, tree) = tree.map_err(|error| RegistryApiError::failed(&error))?;
    Ok(scan_result(&vet(app, permit, tree).await?))
}

async fn store_scan(
    app: &App,
    actor: &Actor,
    known: &PackageVersion,
    scan: ScanResult,
) -> RegistryResult<Scanned> {
    let kept = registry(app).set_scan(actor, &known.package, &known.version, &scan).await?;
    let (tier, scan) = kept;
    wait_until_visible(app).await;
    Ok(Scanned {
        name: known.package.to_string(),
        version: known.version.to_string(),
        security_tier: tier.as_str().to_owned(),
        audit: render::audit(&scan, Timestamp::now()),
        same_content: Vec::new(),
    })
}

/// Appeal against the scan of a version or of a refused archive.
#[utoipa::path(
    post, path = "/appeal", tag = "registry", security(("bearer" = [])), request_body = Appeal,
    responses(
        (status = 202, description = "The appeal was recorded"), docs::Invalid, docs::Unauthorized,
        docs::Forbidden, docs::NotFound, docs::Conflict, docs::TooLarge, docs::Unsupported, docs::TooManyRequests,
        docs::Unavailable
    )
)]
async fn appeal(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    VersionPath { package, version }: VersionPath,
    Body(Appeal { message, sha256 }): Body<Appeal>,
) -> RegistryResult<StatusCode> {
    let sha256 = match sha256 {
        Some(sha256) => sha256,
        None => registry(&app).version(&package, &version).await?.sha256,
    };
    registry(&app).appeal(&registry_caller.actor, &package, &version, &sha256, &message).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Set the verdict of a version. For administrators.
#[utoipa::path(
    put, path = "/verdict", tag = "registry", security(("bearer" = [])), request_body = Judgement,
    responses(
        (status = 200, body = Scanned), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooLarge, docs::Unsupported, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn judge(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    VersionPath { package, version }: VersionPath,
    Body(Judgement { verdict, reason }): Body<Judgement>,
) -> RegistryResult<Response> {
    if !registry_caller.actor.is_admin() {
        return Err(RegistryError::NotAdmin.into());
    }
    let known = registry(&app).version(&package, &version).await?;
    // The findings of the scan are stored with the decision of the administrator.
    let found = known.scan.as_ref().map(|(scan, _)| scan.report.clone());
    let mut report = found.filter(Value::is_object).unwrap_or_else(|| json!({}));
    report["judged"] = json!({"verdict": verdict.as_str(), "reason": reason});
    let mut scanned =
        store_scan(&app, &registry_caller.actor, &known, ScanResult { verdict, report }).await?;
    if verdict == ScanVerdict::Block {
        scanned.same_content = same_content(&app, &package, &version).await?;
    }
    Ok(respond(StatusCode::OK, &scanned))
}

/// An archive that may be published despite its scan.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RegistryClearedArchive)]
struct ClearedArchive {
    sha256: String,
    /// The only skill that may be published with the archive.
    name: String,
}

/// Allow an archive to be published as a version of one skill despite its scan. For administrators.
#[utoipa::path(
    put, path = "/api/v1/clearances/{sha256}", tag = "registry", security(("bearer" = [])),
    request_body = Clearance,
    params(("sha256" = String, Path, description = "The digest of the archive")),
    responses(
        (status = 200, body = ClearedArchive), docs::Invalid, docs::Unauthorized,
        docs::Forbidden, docs::TooLarge, docs::Unsupported, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn clear(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    PathParams(sha256): PathParams<String>,
    Body(Clearance { reason, package }): Body<Clearance>,
) -> RegistryResult<Response> {
    let package = package.map(|name| name.parse::<PackageName>()).transpose()?;
    let package =
        registry(&app).clear(&registry_caller.actor, &sha256, package.as_ref(), &reason).await?;
    Ok(respond(StatusCode::OK, &ClearedArchive { sha256, name: package.to_string() }))
}

/// Revoke a clearance, for one skill or for all. Published versions stay.
#[utoipa::path(
    delete, path = "/api/v1/clearances/{sha256}", tag = "registry", security(("bearer" = [])),
    params(
        ("sha256" = String, Path, description = "The digest of the archive"),
        ("package" = Option<String>, Query, description = "The skill; all of them without one"),
    ),
    responses(
        (status = 204, description = "It may not be published any more"), docs::Invalid,
        docs::Unauthorized, docs::Forbidden, docs::NotFound, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn unclear(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    PathParams(sha256): PathParams<String>,
    query: Query,
) -> RegistryResult<StatusCode> {
    let actor = &registry_caller.actor;
    let done = match query.text("package") {
        Some(name) => registry(&app).unclear_for(actor, &sha256, &name.parse()?).await?,
        None => registry(&app).unclear(actor, &sha256).await?,
    };
    if done {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(RegistryApiError::not_found("this archive was not cleared"))
}

/// Scans versions that were stored without a scan, such as imports. Returns their number.
pub(crate) async fn scan_backlog(app: &App, most: u64) -> Result<usize, RegistryError> {
    let waiting = registry(app).unscanned(most).await?;
    for (package, version) in &waiting {
        let known = match registry(app).version(package, version).await {
            Ok(known) => known,
            // The version was withdrawn after it was listed.
            Err(RegistryError::Withdrawn { .. } | RegistryError::NotFound { .. }) => continue,
            Err(error) => return Err(error),
        };
        let Ok(scan) = scan(app, None, &known).await else { continue };
        registry(app).set_scan(&Actor::operator(), package, version, &scan).await?;
    }
    Ok(waiting.len())
}
