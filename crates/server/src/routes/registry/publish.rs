//! The publish route: validates and scans everything before it is stored.

use axum::{
    Json as JsonResponse,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use savoir_package::{
    Tree,
    registry::wire,
    submission::{PublishOptions, Rejection, Submission},
    trust::PublicKey,
};
use savoir_registry::{PublishPermit, collect_version_facts, vetting::VettingReport};
use savoir_scan::Verdict;
use savoir_skill::digest::sha256_hex;
use savoir_store::registry::{
    Actor, NewSignature, NewVersion, OwnerScope, PackageName, RegistryError, RegistryKey,
    ScanResult, ScanVerdict, Signer, VersionFacts,
};
use semver::Version;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    audit::PublisherScanReport,
    docs,
    error::{RegistryApiError, RegistryResult},
    extract::{Query, RegistryCaller, registry},
    form::Form,
    render,
    skills::permissions_of,
    wait_until_visible,
};
use crate::{app::App, insight::PermissionView};

/// Maximum bytes of a changelog.
const MAX_CHANGELOG_BYTES: usize = 64 * 1024;
/// Maximum number of tries to assign a version number to prose, while others publish at the same
/// time.
const MAX_VERSION_TRIES: usize = 8;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(publish))
}

/// Publish a version of a skill.
///
/// The archive is checked as with `savoir check` and `savoir scan`, and its tools run in a sandbox,
/// before anything is stored. A published version never changes. With `dry_run`, nothing is stored,
/// and the response says what the scan found and whether the version would be published.
#[utoipa::path(
    post, path = "/api/v1/skills", tag = "registry", security(("bearer" = [])),
    params(
        ("namespace" = Option<String>, Query, description = "The namespace, unless the form has it"),
        ("name" = Option<String>, Query, description = "The name of a text without a SKILL.md"),
        ("version" = Option<String>, Query,
         description = "The version, if SKILL.md has none; it must not differ from the one in SKILL.md"),
        ("dry_run" = Option<bool>, Query, description = "true: check and scan, and publish nothing"),
    ),
    request_body(
        content((docs::PublishForm = "multipart/form-data"), (docs::Zip = "application/zip")),
        description = "A form, or the archive alone as application/zip"
    ),
    responses(
        (status = 200, description = "A dry run", body = PublishReport),
        (status = 201, body = wire::Published), docs::Invalid, docs::Unauthorized,
        docs::Forbidden, docs::TooSlow, docs::Conflict, docs::TooLarge, docs::Unsupported,
        docs::TooManyRequests, docs::Unavailable
    )
)]
async fn publish(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    request: Request,
) -> RegistryResult<Response> {
    let dry_run = Query::of(request.uri()).flag("dry_run")?;
    let permit = wait_for_upload_slot(&app, &registry_caller).await?;
    let publish_request = PublishRequest::read(Form::read(request).await?).await?;
    let version = match &publish_request.submission.version {
        Some(version) => version.clone(),
        None => next(&app, &publish_request.package).await?,
    };
    registry(&app).may_publish(&registry_caller.actor, &publish_request.package, &version).await?;
    let integrity = &publish_request.submission.integrity;
    registry(&app)
        .must_not_be_taken_down(&publish_request.package, &publish_request.sha256, integrity)
        .await?;
    if dry_run {
        let report = publish_request.report(&app, permit, version).await?;
        return Ok(JsonResponse(report).into_response());
    }
    let scan = publish_request.vet_package(&app, permit, &version).await?;
    let published =
        publish_request.store_version(&app, &registry_caller.actor, version, scan).await?;
    wait_until_visible(&app).await;
    Ok((StatusCode::CREATED, JsonResponse(published)).into_response())
}

/// Waits for a permit for an upload or a scan.
pub(super) async fn wait_for_upload_slot(
    app: &App,
    registry_caller: &RegistryCaller,
) -> RegistryResult<PublishPermit> {
    app.registry_state.publish_limits.acquire(registry_caller.caller.user.id).await.ok_or_else(
        || {
            let message =
                "too much is being published or scanned at once; wait until yours is done";
            RegistryApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message)
        },
    )
}

/// Vets a package. The permit is released when vetting is done, even if the client disconnects:
/// running tools are not interrupted.
pub(super) async fn vet(
    app: &App,
    permit: Option<PublishPermit>,
    tree: Tree,
) -> RegistryResult<VettingReport> {
    let scan_permit = app.registry_state.publish_limits.wait_for_scan_turn(permit.as_ref()).await;
    let vetting = app.vetting.clone();
    let vetted = tokio::spawn(async move {
        let vetted = vetting.vet(&tree).await;
        drop((permit, scan_permit));
        vetted
    });
    vetted.await.map_err(|error| RegistryApiError::failed(&error))
}

/// The next version number of prose.
async fn next(app: &App, package: &PackageName) -> RegistryResult<Version> {
    // Includes withdrawn versions: their numbers are never used again.
    let numbers = registry(app).numbers(package).await?;
    let is_written = |version: &&Version| (version.major, version.minor) != (0, 0);
    if let Some(written) = numbers.iter().find(is_written)
        && !package.namespace().is_shared()
    {
        let message = format!(
            "{package} has versions that its SKILL.md counts, such as {written}, and this text has no \
             frontmatter; add it with a name and a version, or give the text another name"
        );
        return Err(RegistryApiError::invalid(message).with_reason("version_mismatch"));
    }
    let last = numbers.iter().map(|version| version.patch).max();
    Ok(Version::new(0, 0, last.map_or(1, |last| last.saturating_add(1))))
}

/// The version that would be published, and the result of its scan.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RegistryPublishReport)]
struct PublishReport {
    name: String,
    version: String,
    claimed_tier: Option<String>,
    dialect: String,
    files: usize,
    /// The size of the archive in bytes.
    size: u64,
    sha256: String,
    integrity: String,
    /// What the skill may do, in plain language.
    permissions: Vec<PermissionView>,
    audit: wire::Audit,
    /// Whether the version would be published.
    accepted: bool,
}

/// The result of a scan, with the reasons if it forbids publishing.
struct PackageScan {
    result: ScanResult,
    refused: Option<String>,
}

/// A valid package to publish.
struct PublishRequest {
    bytes: Bytes,
    sha256: String,
    package: PackageName,
    submission: Submission,
    facts: VersionFacts,
    reported: Option<Bytes>,
}

impl PublishRequest {
    async fn read(form: Form) -> RegistryResult<Self> {
        if form.changelog.as_ref().is_some_and(|text| text.len() > MAX_CHANGELOG_BYTES) {
            let message = format!("the changelog has more than {MAX_CHANGELOG_BYTES} bytes");
            return Err(RegistryApiError::invalid(message));
        }
        let options = PublishOptions {
            namespace: form.namespace,
            name: form.name,
            version: form.version,
            skill_md: form.skill.map(Into::into),
        };
        let bytes = form.artifact;
        let read = tokio::task::spawn_blocking(move || {
            let submission = Submission::read(&bytes, &options)?;
            let facts = collect_version_facts(&submission)?;
            Ok::<_, Rejection>((bytes, submission, facts))
        });
        let read = read.await.map_err(|error| RegistryApiError::failed(&error))?;
        let (bytes, submission, mut facts) = read.map_err(|rejection| rejected(&rejection))?;
        if let Some(changelog) = form.changelog {
            facts.more.insert(render::CHANGELOG.to_owned(), changelog.into());
        }
        Ok(Self {
            sha256: sha256_hex(&bytes),
            package: submission.name.to_string().parse::<PackageName>()?,
            bytes,
            submission,
            facts,
            reported: form.audit,
        })
    }

    /// Vets the package without publishing it.
    async fn report(
        &self,
        app: &App,
        permit: PublishPermit,
        version: Version,
    ) -> RegistryResult<PublishReport> {
        let PackageScan { result, refused } = self.scan_package(app, permit, &version).await?;
        let text = String::from_utf8_lossy(&self.submission.skill_md).into_owned();
        Ok(PublishReport {
            name: self.submission.name.to_string(),
            version: version.to_string(),
            claimed_tier: self.submission.claimed.map(|tier| tier.as_str().to_owned()),
            dialect: self.submission.dialect.clone(),
            files: self.submission.files.len(),
            size: self.bytes.len() as u64,
            sha256: self.sha256.clone(),
            integrity: self.submission.integrity.clone(),
            permissions: permissions_of(text).await?,
            audit: render::audit(&result, savoir_store::Timestamp::now()),
            accepted: refused.is_none(),
        })
    }

    /// Vets the package; an error if the result forbids publishing it.
    async fn vet_package(
        &self,
        app: &App,
        permit: PublishPermit,
        version: &Version,
    ) -> RegistryResult<ScanResult> {
        let PackageScan { result: mut scan, refused } =
            self.scan_package(app, permit, version).await?;
        let Some(why) = refused else { return Ok(scan) };
        let message = format!(
            "{} is not published: {why}. Fix what is found, or appeal with the digest {}",
            self.package, self.sha256,
        );
        let findings = scan.report["findings"].take();
        let noted = registry(app).note_refused(&self.package, &self.sha256, &findings).await;
        if let Err(error) = noted {
            tracing::warn!(%error, "what was found in a refused archive is not kept for an appeal");
        }
        let refused = RegistryApiError::new(StatusCode::FORBIDDEN, "audit_blocked", message);
        Err(refused.with_findings(findings))
    }

    async fn scan_package(
        &self,
        app: &App,
        permit: PublishPermit,
        version: &Version,
    ) -> RegistryResult<PackageScan> {
        let reported = self.reported.as_deref();
        let reported =
            reported.map(|text| PublisherScanReport::read(text, &self.submission, version));
        let reported = reported.transpose()?;
        let vetted = vet(app, Some(permit), self.submission.tree.clone()).await?;
        let mut scan = scan_result(&vetted);
        let is_found_here = scan.verdict == ScanVerdict::Block;
        if let Some(reported) = reported {
            reported.make_stricter(&mut scan);
        }
        if scan.verdict != ScanVerdict::Block {
            return Ok(PackageScan { result: scan, refused: None });
        }
        if let Some(why) = registry(app).cleared(&self.sha256, &self.package).await? {
            // An administrator allowed the archive; users should still review it before they
            // install it.
            scan.verdict = ScanVerdict::Review;
            scan.report["cleared"] = json!(why);
            return Ok(PackageScan { result: scan, refused: None });
        }
        let why = if is_found_here {
            vetted.summary()
        } else {
            "the report that came with it has the verdict BLOCK".to_owned()
        };
        Ok(PackageScan { result: scan, refused: Some(why) })
    }

    async fn store_version(
        self,
        app: &App,
        actor: &Actor,
        mut version: Version,
        scan: ScanResult,
    ) -> RegistryResult<wire::Published> {
        let signatures = self.signatures(app).await?;
        let counted = self.submission.version.is_none();
        let mut tries = 0;
        let published = loop {
            let new = NewVersion {
                package: &self.package,
                version: &version,
                artefact: self.bytes.clone(),
                skill_md: self.submission.skill_md.clone().into(),
                integrity: &self.submission.integrity,
                claimed: self.submission.claimed,
                facts: &self.facts,
                signatures: &signatures,
                scan: Some(&scan),
                published_at: None,
            };
            match registry(app).publish(actor, new).await {
                Err(RegistryError::VersionExists { .. })
                    if counted && tries < MAX_VERSION_TRIES =>
                {
                    tries += 1;
                    version = next(app, &self.package).await?;
                }
                done => break done?,
            }
        };
        Ok(wire::Published {
            published: wire::Publication {
                name: self.submission.name.clone(),
                security_tier: published.attested,
                audit: Some(render::audit(&scan, savoir_store::Timestamp::now())),
                artifact: Some(wire::Artifact {
                    filename: self.package.filename(&version),
                    size: self.bytes.len() as u64,
                    sha256: published.sha256,
                    integrity: Some(self.submission.integrity),
                }),
                latest_version: published.latest.map(|latest| latest.to_string()),
                version,
            },
        })
    }

    /// Valid signatures by registered keys, and valid signatures by other keys. The latter do not
    /// count until the key is registered and signs again.
    async fn signatures(&self, app: &App) -> RegistryResult<Vec<NewSignature>> {
        if self.submission.signatures.is_empty() {
            return Ok(Vec::new());
        }
        let owners = public_keys(registry(app).keys(&self.package.owner_scope()).await?);
        let auditors = public_keys(registry(app).keys(&OwnerScope::auditors()).await?);
        let known: Vec<PublicKey> = owners.iter().chain(&auditors).cloned().collect();
        let submission = self.submission.clone();
        let attested = tokio::task::spawn_blocking(move || submission.attested_by(&known));
        let attested = attested.await.map_err(|error| RegistryApiError::failed(&error))?;
        let attested = attested.map_err(|error| rejected(&Rejection::Signature(error)))?;
        let mut found = Vec::new();
        for one in &self.submission.signatures {
            let Some(key_id) = &one.record.key_id else { continue };
            let is_it = |key: &PublicKey| key.key_id() == *key_id;
            let under = attested.signatures.iter().any(|signer| signer.key_id == *key_id);
            if !under && !one.holds {
                continue;
            }
            let signer =
                if auditors.iter().any(is_it) { Signer::Auditor } else { Signer::Publisher };
            let (key_id, record) = (key_id.clone(), one.record.text.clone());
            found.push(NewSignature { signer, key_id, record });
        }
        Ok(found)
    }
}

/// The keys that are not revoked.
fn public_keys(keys: Vec<RegistryKey>) -> Vec<PublicKey> {
    let keys = keys.into_iter().filter(|key| key.revoked.is_none());
    keys.filter_map(|key| PublicKey::parse(&key.public_key).ok()).collect()
}

fn rejected(rejection: &Rejection) -> RegistryApiError {
    let status = match rejection.api_code() {
        "artifact_too_large" => StatusCode::PAYLOAD_TOO_LARGE,
        _ => StatusCode::BAD_REQUEST,
    };
    let refused = RegistryApiError::new(status, rejection.api_code(), rejection.message());
    let refused = refused.with_reason(rejection.code());
    match serde_json::to_value(rejection.findings()) {
        Ok(findings) if !rejection.findings().is_empty() => refused.with_findings(findings),
        _ => refused,
    }
}

/// The vetting result in the format that is stored.
pub(super) fn scan_result(vetted: &VettingReport) -> ScanResult {
    let verdict = match vetted.verdict {
        Verdict::Allow => ScanVerdict::Allow,
        Verdict::Review => ScanVerdict::Review,
        Verdict::Block => ScanVerdict::Block,
    };
    let engine = format!("savoir {}", env!("CARGO_PKG_VERSION"));
    let report = json!({
        "engine": engine,
        "summary": vetted.summary(),
        "findings": vetted.findings,
        "engines": vetted.engines,
    });
    ScanResult { verdict, report }
}
