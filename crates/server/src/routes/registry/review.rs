//! Scanning again, and what becomes of those who do not agree.

use axum::{
    Json as Answer,
    extract::{Request, State},
    http::StatusCode,
};
use savoir_package::{archive, registry::wire};
use savoir_store::registry::{
    Actor, PackageName, PackageVersion, RegistryError, ScanResult, ScanVerdict,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    asked::{Acting, At, Query, package, registry, version},
    docs, json_body,
    publish::result,
    refused::{Given, Refused},
    settled, shown,
};
use crate::app::App;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(rescan))
        .routes(routes!(rescan_in))
        .routes(routes!(appeal))
        .routes(routes!(appeal_in))
        .routes(routes!(judge))
        .routes(routes!(judge_in))
        .routes(routes!(clear, unclear))
}

/// What a scan came to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RegistryScanned)]
struct Scanned {
    name: String,
    version: String,
    /// The tier that it has now.
    security_tier: String,
    audit: wire::Audit,
}

/// Why a scan is wrong.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = RegistryAppeal)]
struct Appeal {
    /// What an administrator should know.
    #[schema(min_length = 1, max_length = 4096)]
    message: String,
    /// The archive, if it was refused and not published: its SHA-256 in hexadecimal digits.
    sha256: Option<String>,
}

/// What an administrator thinks of a version.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = RegistryJudgement)]
struct Judgement {
    /// allow, review or block
    verdict: String,
    /// Why.
    #[schema(min_length = 1, max_length = 4096)]
    reason: String,
}

/// Why an archive may be published.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = RegistryClearance)]
struct Clearance {
    #[schema(min_length = 1, max_length = 4096)]
    reason: String,
}

/// Scan a version again, with the rules of today.
#[utoipa::path(
    post, path = "/api/v1/skills/{name}/{version}/rescan", tag = "registry",
    security(("bearer" = [])),
    params(
        ("name" = String, Path, description = "Its name"),
        ("version" = String, Path, description = "The version"),
    ),
    responses(
        (status = 200, body = Scanned), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::Missing, docs::TooMany, docs::Unavailable
    )
)]
async fn rescan(
    State(app): State<App>,
    acting: Acting,
    At((name, number)): At<(String, String)>,
) -> Given<Answer<Scanned>> {
    scan_again(&app, &acting, &package(None, &name)?, &number).await
}

/// Scan a version of a skill of a namespace again, with the rules of today.
#[utoipa::path(
    post, path = "/api/v1/skills/{namespace}/{name}/{version}/rescan", tag = "registry",
    security(("bearer" = [])),
    params(
        ("namespace" = String, Path, description = "The namespace"),
        ("name" = String, Path, description = "Its name"),
        ("version" = String, Path, description = "The version"),
    ),
    responses(
        (status = 200, body = Scanned), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::Missing, docs::TooMany, docs::Unavailable
    )
)]
async fn rescan_in(
    State(app): State<App>,
    acting: Acting,
    At((namespace, name, number)): At<(String, String, String)>,
) -> Given<Answer<Scanned>> {
    scan_again(&app, &acting, &package(Some(&namespace), &name)?, &number).await
}

async fn scan_again(
    app: &App,
    acting: &Acting,
    package: &PackageName,
    number: &str,
) -> Given<Answer<Scanned>> {
    registry(app).may_speak_for(&acting.actor, package).await?;
    let _pass = app.desk.gate.enter(acting.caller.user.id).ok_or_else(|| {
        let message = "too much is being scanned at once; wait until your others are done";
        Refused::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message)
    })?;
    let known = registry(app).version(package, &version(number)?).await?;
    let scan = scan(app, &known).await?;
    let scanned = keep(app, &Actor::operator(), &known, scan).await?;
    settled(app).await?;
    Ok(Answer(scanned))
}

/// Scans a version that was published.
pub(super) async fn scan(app: &App, known: &PackageVersion) -> Given<ScanResult> {
    let lost = || Refused::failed(&format!("the artefact {} is lost", known.sha256));
    let bytes = registry(app).blob(&known.sha256).await?.ok_or_else(lost)?;
    let tree =
        tokio::task::spawn_blocking(move || archive::unpack(&bytes).and_then(archive::one_skill));
    let tree = tree.await.map_err(|error| Refused::failed(&error))?;
    let (_, tree) = tree.map_err(|error| Refused::failed(&error))?;
    let _turn = app.desk.gate.turn().await;
    Ok(result(&app.vetting.vet(&tree).await))
}

async fn keep(
    app: &App,
    actor: &Actor,
    known: &PackageVersion,
    scan: ScanResult,
) -> Given<Scanned> {
    let tier = registry(app).set_scan(actor, &known.package, &known.version, &scan).await?;
    Ok(Scanned {
        name: known.package.to_string(),
        version: known.version.to_string(),
        security_tier: tier.as_str().to_owned(),
        audit: shown::audit(&scan, savoir_store::Time::now()),
    })
}

/// Tell the administrators why a scan is wrong: of this version, or of an archive that was refused.
#[utoipa::path(
    post, path = "/api/v1/skills/{name}/{version}/appeal", tag = "registry",
    security(("bearer" = [])), request_body = Appeal,
    params(
        ("name" = String, Path, description = "Its name"),
        ("version" = String, Path, description = "The version"),
    ),
    responses(
        (status = 202, description = "It is noted"), docs::Invalid, docs::Unauthorized,
        docs::Forbidden, docs::Missing, docs::TooLarge, docs::WrongType, docs::TooMany,
        docs::Unavailable
    )
)]
async fn appeal(
    State(app): State<App>,
    acting: Acting,
    At((name, number)): At<(String, String)>,
    request: Request,
) -> Given<StatusCode> {
    speak(&app, &acting, &package(None, &name)?, &number, json_body(request).await?).await
}

/// Tell the administrators why a scan is wrong, of a skill of a namespace.
#[utoipa::path(
    post, path = "/api/v1/skills/{namespace}/{name}/{version}/appeal", tag = "registry",
    security(("bearer" = [])), request_body = Appeal,
    params(
        ("namespace" = String, Path, description = "The namespace"),
        ("name" = String, Path, description = "Its name"),
        ("version" = String, Path, description = "The version"),
    ),
    responses(
        (status = 202, description = "It is noted"), docs::Invalid, docs::Unauthorized,
        docs::Forbidden, docs::Missing, docs::TooLarge, docs::WrongType, docs::TooMany,
        docs::Unavailable
    )
)]
async fn appeal_in(
    State(app): State<App>,
    acting: Acting,
    At((namespace, name, number)): At<(String, String, String)>,
    request: Request,
) -> Given<StatusCode> {
    let package = package(Some(&namespace), &name)?;
    speak(&app, &acting, &package, &number, json_body(request).await?).await
}

async fn speak(
    app: &App,
    acting: &Acting,
    package: &PackageName,
    number: &str,
    appeal: Appeal,
) -> Given<StatusCode> {
    if appeal.message.trim().is_empty() {
        return Err(Refused::invalid("`message` says why the scan is wrong"));
    }
    let number = version(number)?;
    let sha256 = match appeal.sha256 {
        Some(sha256) => sha256,
        None => registry(app).version(package, &number).await?.sha256,
    };
    registry(app).appeal(&acting.actor, package, &number, &sha256, &appeal.message).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Decide what becomes of a version. For administrators.
#[utoipa::path(
    put, path = "/api/v1/skills/{name}/{version}/verdict", tag = "registry",
    security(("bearer" = [])), request_body = Judgement,
    params(
        ("name" = String, Path, description = "Its name"),
        ("version" = String, Path, description = "The version"),
    ),
    responses(
        (status = 200, body = Scanned), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::Missing, docs::TooLarge, docs::WrongType, docs::TooMany, docs::Unavailable
    )
)]
async fn judge(
    State(app): State<App>,
    acting: Acting,
    At((name, number)): At<(String, String)>,
    request: Request,
) -> Given<Answer<Scanned>> {
    decide(&app, &acting, &package(None, &name)?, &number, json_body(request).await?).await
}

/// Decide what becomes of a version of a skill of a namespace. For administrators.
#[utoipa::path(
    put, path = "/api/v1/skills/{namespace}/{name}/{version}/verdict", tag = "registry",
    security(("bearer" = [])), request_body = Judgement,
    params(
        ("namespace" = String, Path, description = "The namespace"),
        ("name" = String, Path, description = "Its name"),
        ("version" = String, Path, description = "The version"),
    ),
    responses(
        (status = 200, body = Scanned), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::Missing, docs::TooLarge, docs::WrongType, docs::TooMany, docs::Unavailable
    )
)]
async fn judge_in(
    State(app): State<App>,
    acting: Acting,
    At((namespace, name, number)): At<(String, String, String)>,
    request: Request,
) -> Given<Answer<Scanned>> {
    let package = package(Some(&namespace), &name)?;
    decide(&app, &acting, &package, &number, json_body(request).await?).await
}

async fn decide(
    app: &App,
    acting: &Acting,
    package: &PackageName,
    number: &str,
    judgement: Judgement,
) -> Given<Answer<Scanned>> {
    let all = [ScanVerdict::Allow, ScanVerdict::Review, ScanVerdict::Block];
    let verdict = all.into_iter().find(|verdict| verdict.as_str() == judgement.verdict);
    let verdict = verdict.ok_or_else(|| Refused::invalid("`verdict` is allow, review or block"))?;
    if judgement.reason.trim().is_empty() || judgement.reason.len() > 4096 {
        return Err(Refused::invalid("`reason` has 1 to 4096 bytes"));
    }
    let known = registry(app).version(package, &version(number)?).await?;
    // What was found stays, beside what a person makes of it.
    let found = known.scan.as_ref().map(|(scan, _)| scan.report.clone());
    let mut report = found.filter(serde_json::Value::is_object).unwrap_or_else(|| json!({}));
    report["judged"] = json!({"verdict": verdict.as_str(), "reason": judgement.reason});
    let scanned = keep(app, &acting.actor, &known, ScanResult { verdict, report }).await?;
    settled(app).await?;
    Ok(Answer(scanned))
}

/// Let an archive be published although a scan says that it should not be. For administrators.
#[utoipa::path(
    put, path = "/api/v1/clearances/{sha256}", tag = "registry", security(("bearer" = [])),
    request_body = Clearance,
    params(("sha256" = String, Path, description = "The digest of the archive")),
    responses(
        (status = 204, description = "It may be published"), docs::Invalid, docs::Unauthorized,
        docs::Forbidden, docs::TooLarge, docs::WrongType, docs::TooMany, docs::Unavailable
    )
)]
async fn clear(
    State(app): State<App>,
    acting: Acting,
    At(sha256): At<String>,
    request: Request,
) -> Given<StatusCode> {
    let Clearance { reason } = json_body(request).await?;
    if reason.trim().is_empty() {
        return Err(Refused::invalid("`reason` says why it may be published"));
    }
    registry(&app).clear(&acting.actor, &sha256, &reason).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Take a clearance back. What was published stays.
#[utoipa::path(
    delete, path = "/api/v1/clearances/{sha256}", tag = "registry", security(("bearer" = [])),
    params(("sha256" = String, Path, description = "The digest of the archive")),
    responses(
        (status = 204, description = "It may not be published any more"), docs::Unauthorized,
        docs::Forbidden, docs::Missing, docs::TooMany, docs::Unavailable
    )
)]
async fn unclear(
    State(app): State<App>,
    acting: Acting,
    At(sha256): At<String>,
    _: Query,
) -> Given<StatusCode> {
    if registry(&app).unclear(&acting.actor, &sha256).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Refused::not_found("this archive was not cleared"))
}

/// Scans what came without being scanned, such as an import. Returns how many there were.
pub(crate) async fn scan_backlog(app: &App, most: u64) -> Result<usize, RegistryError> {
    let waiting = registry(app).unscanned(most).await?;
    for (package, version) in &waiting {
        let known = match registry(app).version(package, version).await {
            Ok(known) => known,
            // It was withdrawn meanwhile.
            Err(RegistryError::Withdrawn { .. } | RegistryError::NotFound { .. }) => continue,
            Err(error) => return Err(error),
        };
        let Ok(scan) = scan(app, &known).await else { continue };
        registry(app).set_scan(&Actor::operator(), package, version, &scan).await?;
    }
    Ok(waiting.len())
}
