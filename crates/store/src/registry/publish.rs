//! Publishes versions of packages.

use bytes::Bytes;
use savoir_skill::permission::Tier;
use semver::Version;
use serde_json::json;

use super::{
    Actor, NewSignature, PackageName, Registry, RegistryError, RegistryTransaction, Right, RowLock,
    ScanResult, Signer, TeamRole, VersionFacts,
    blobs::check_claims,
    facts::{attested, read_version, tier_number},
    index::{VersionEntry, renew},
    keys::KeyState,
    log::{AuditAction, NewAuditEvent, note},
    owners::{check_may_publish, check_prefix, put_member},
    signatures::{SignedFiles, put_signature},
    taken_down::{self, ContentDigests},
    version_order::{self, sort_key},
};
use crate::{StoreError, Timestamp, quota::Addition, sql::sql};

/// A version to be published. The caller has checked that its parts belong together, and that its
/// signatures are valid.
#[derive(Clone, Debug)]
pub struct NewVersion<'a> {
    pub package: &'a PackageName,
    pub version: &'a Version,
    /// The archive that users download.
    pub artefact: Bytes,
    /// The text of the SKILL.md.
    pub skill_md: Bytes,
    /// The hash that lockfiles pin.
    pub integrity: &'a str,
    /// The tier that the publisher claims.
    pub claimed: Option<Tier>,
    /// Metadata from the files of the version.
    pub facts: &'a VersionFacts,
    /// The signatures. Those of unregistered keys are stored but do not raise the tier; the same is
    /// true of auditors' signatures, unless the auditor publishes.
    pub signatures: &'a [NewSignature],
    /// The result of the scan; none if the version is scanned later.
    pub scan: Option<&'a ScanResult>,
    /// The time of publication in another registry; only the operator can set it.
    pub published_at: Option<Timestamp>,
}

/// The result of publishing a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// SHA-256 of the artifact, in hexadecimal digits.
    pub sha256: String,
    /// The tier that signatures and scan attest.
    pub attested: Tier,
    /// The version that is now installed when none is named.
    pub latest: Option<Version>,
    /// The sequence number of the change in the log.
    pub seq: u64,
}

impl Registry<'_> {
    /// Publishes a version completely or not at all. If several actors publish the same version
    /// concurrently, one succeeds; the others get an error that it exists. The first actor who
    /// publishes in a free namespace, or who publishes a new package in a shared namespace, becomes
    /// its owner.
    pub async fn publish(
        &self,
        actor: &Actor,
        new: NewVersion<'_>,
    ) -> Result<Published, RegistryError> {
        let facts = new.facts.to_text()?;
        self.may_publish(actor, new.package, new.version).await?;
        let addition = Addition::Version { bytes: new.artefact.len() as u64 };
        // The quota is checked before the bytes are written, and again in the transaction.
        self.check_quota(actor, addition).await?;
        let blobs = self.write_blobs([new.artefact.clone(), new.skill_md.clone()]).await?;
        let mut work = self.begin().await?;
        self.database.take_quota(work.connection(), actor.account, addition).await?;
        let (now, mut events) = (Timestamp::now(), Vec::new());
        check_prefix(work.connection(), actor, new.package.reserved_prefix()).await?;
        if !new.package.namespace().is_shared() {
            events.extend(work.take_namespace(actor, new.package.namespace(), now).await?);
        }
        let files = SignedFiles { integrity: new.integrity, skill_md: &blobs[1] };
        let states = work.key_states(actor, new.package, new.signatures, files).await?;
        work.take_package(actor, new.package, now).await?;
        let tier = earned(&new, &states);
        work.insert_version(actor, &new, &facts, &blobs, tier, now).await?;
        check_may_publish(work.connection(), actor, new.package).await?;
        check_claims(work.connection(), &blobs).await?;
        for (signature, state) in new.signatures.iter().zip(states) {
            let at = (new.package, new.version);
            put_signature(work.connection(), actor, at, signature, state.signature(), now).await?;
        }
        renew(work.connection(), new.package, now).await?;
        let latest = work.latest(new.package).await?;
        events.push(published(&new, &blobs, tier));
        let seq = note(work.connection(), actor, now, events).await?;
        let content = ContentDigests { sha256: &blobs[0], integrity: new.integrity };
        taken_down::check(work.connection(), new.package, content).await?;
        work.commit().await?;
        let [sha256, _] = blobs;
        Ok(Published { sha256, attested: tier, latest, seq })
    }

    async fn check_quota(&self, actor: &Actor, addition: Addition) -> Result<(), RegistryError> {
        let reader = &mut *self.reader().acquire().await?;
        Ok(self.database.check_quota(reader, actor.account, addition).await?)
    }

    /// All versions that a package has or had: none of these numbers can be used again.
    pub async fn numbers(&self, package: &PackageName) -> Result<Vec<Version>, StoreError> {
        let rows = sql("SELECT version FROM versions WHERE package = $1 ORDER BY sort_key DESC")
            .text(&package.id())
            .all(self.reader())
            .await?;
        rows.iter().map(|row| read_version(&row.text(0)?)).collect()
    }

    /// Checks early whether [`Self::publish`] would refuse a version, before its bytes are read.
    /// The transaction checks again.
    pub async fn may_publish(
        &self,
        actor: &Actor,
        package: &PackageName,
        version: &Version,
    ) -> Result<(), RegistryError> {
        actor.check_right(Right::Publish, Some(&package.owner_scope()))?;
        version_order::check(version)?;
        let connection = &mut *self.reader().acquire().await?;
        check_prefix(connection, actor, package.reserved_prefix()).await?;
        exists(connection, package, version).await?;
        let allowed = may_change(connection, actor, package).await;
        if allowed.is_err() {
            // Another request may have published this version a moment ago and become the owner;
            // then the error should say that the version exists.
            exists(connection, package, version).await?;
        }
        allowed
    }
}

/// Whether a package or its namespace has or had an owner: names that were used are not free, even
/// if no owner is left.
pub(super) async fn is_taken(
    connection: &mut sqlx::AnyConnection,
    package: &PackageName,
) -> Result<bool, RegistryError> {
    let found = sql("SELECT 1 WHERE EXISTS (SELECT 1 FROM members WHERE holding = $1)
            OR EXISTS (SELECT 1 FROM namespaces WHERE name = $2)
            OR EXISTS (SELECT 1 FROM packages WHERE id = $3)")
    .text(package.owner_scope().as_str())
    .text(package.namespace().as_str())
    .text(&package.id())
    .optional(connection)
    .await?;
    Ok(found.is_some())
}

/// Checks that the actor may publish the package, whether it is owned or free.
async fn may_change(
    connection: &mut sqlx::AnyConnection,
    actor: &Actor,
    package: &PackageName,
) -> Result<(), RegistryError> {
    if is_taken(connection, package).await? {
        check_may_publish(connection, actor, package).await?;
    } else if actor.account.is_none() && !actor.is_admin() {
        return Err(RegistryError::NobodyActs);
    }
    Ok(())
}

fn earned(new: &NewVersion<'_>, states: &[KeyState]) -> Tier {
    let has = |signer: Signer| {
        let mut pairs = new.signatures.iter().zip(states);
        pairs.any(|(signature, state)| signature.signer == signer && *state == KeyState::Active)
    };
    let verdict = new.scan.map(|scan| scan.verdict);
    attested(verdict, has(Signer::Publisher), has(Signer::Auditor))
}

fn published(new: &NewVersion<'_>, blobs: &[String; 2], tier: Tier) -> NewAuditEvent {
    let keys: Vec<_> = new.signatures.iter().map(|signature| &signature.key_id).collect();
    NewAuditEvent::new(AuditAction::Published).version(new.package, new.version).details(json!({
        "sha256": blobs[0],
        "integrity": new.integrity,
        "attested": tier.as_str(),
        "verdict": new.scan.map(|scan| scan.verdict.as_str()),
        "keys": keys,
    }))
}

/// Fails if the version exists or existed.
async fn exists(
    connection: &mut sqlx::AnyConnection,
    package: &PackageName,
    version: &Version,
) -> Result<(), RegistryError> {
    let row = sql("SELECT version, sha256 FROM versions WHERE package = $1 AND sort_key = $2")
        .text(&package.id())
        .bytes(&sort_key(version))
        .optional(connection)
        .await?;
    let Some(row) = row else { return Ok(()) };
    Err(RegistryError::VersionExists {
        package: package.clone(),
        version: read_version(&row.text(0)?)?,
        sha256: row.text(1)?,
    })
}

impl RegistryTransaction {
    /// Creates the row of a package if there is none, and locks it.
    async fn take_package(
        &mut self,
        actor: &Actor,
        package: &PackageName,
        now: Timestamp,
    ) -> Result<(), RegistryError> {
        let made = sql("INSERT INTO packages (id, created_by, created_at, updated_at, tier,
                description, tags, index_text, index_tag)
             VALUES ($1, $2, $3, $3, 0, '', '[]', '', '') ON CONFLICT (id) DO NOTHING")
        .text(&package.id())
        .maybe_number(actor.account)
        .time(now)
        .run(self.connection())
        .await?;
        if made == 0 {
            self.lock_package(package).await?;
            // While the package had no installable version, older releases of Savoir let others
            // take its short name.
            if self.has_live_versions(package).await? {
                return Ok(());
            }
            return self.check_restored_short_name(package).await;
        }
        self.check_short_name_is_free(actor, package).await?;
        match actor.account.filter(|_| package.namespace().is_shared()) {
            Some(account) => {
                let owner = (account, TeamRole::Owner);
                put_member(self.connection(), actor, &package.owner_scope(), owner, now).await?;
                Ok(())
            }
            None => Ok(()),
        }
    }

    async fn has_live_versions(&mut self, package: &PackageName) -> Result<bool, RegistryError> {
        let text = "SELECT 1 FROM versions WHERE package = $1 AND withdrawn_at IS NULL LIMIT 1";
        let row = sql(text).text(&package.id()).optional(self.connection()).await?;
        Ok(row.is_some())
    }

    /// Locks a package and its versions for this transaction.
    pub(super) async fn lock_package(
        &mut self,
        package: &PackageName,
    ) -> Result<(), RegistryError> {
        let statement = self.locking("SELECT 1 FROM packages WHERE id = $1", RowLock::Alone);
        let row = statement.text(&package.id()).optional(self.connection()).await?;
        row.map(drop).ok_or_else(|| RegistryError::no_package(package))
    }

    async fn insert_version(
        &mut self,
        actor: &Actor,
        new: &NewVersion<'_>,
        facts: &str,
        blobs: &[String; 2],
        tier: Tier,
        now: Timestamp,
    ) -> Result<(), RegistryError> {
        let [sha256, skill_md] = blobs;
        let published_at = new.published_at.filter(|_| actor.account.is_none()).unwrap_or(now);
        let entry = VersionEntry {
            version: new.version.to_string(),
            integrity: new.integrity.to_owned(),
            sha256: sha256.clone(),
            size: new.artefact.len() as u64,
            dependencies: new.facts.needs.clone(),
            permissions: new.facts.permissions.clone(),
            tools: new.facts.tools.clone(),
            allowed_tools: new.facts.allowed_tools(),
            published_at: published_at.to_string(),
        };
        let added = sql("INSERT INTO versions (package, sort_key, version, claimed, attested,
                integrity, sha256, size, skill_md, entry, facts, verdict, scan, scanned_at,
                published_by, published_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
             ON CONFLICT (package, sort_key) DO NOTHING")
        .text(&new.package.id())
        .bytes(&sort_key(new.version))
        .text(&entry.version)
        .maybe_number(new.claimed.map(tier_number))
        .number(tier_number(tier))
        .text(new.integrity)
        .text(sha256)
        .count(entry.size)
        .text(skill_md)
        .text(&entry.to_text())
        .text(facts)
        .maybe_text(new.scan.map(|scan| scan.verdict.as_str()))
        .maybe_text(new.scan.map(|scan| scan.report.to_string()).as_deref())
        .maybe_time(new.scan.map(|_| now))
        .maybe_number(actor.account)
        .time(published_at)
        .run(self.connection())
        .await?;
        if added == 1 {
            return Ok(());
        }
        exists(self.connection(), new.package, new.version).await?;
        Err(RegistryError::no_version(new.package, new.version))
    }

    async fn latest(&mut self, package: &PackageName) -> Result<Option<Version>, RegistryError> {
        let row = sql("SELECT latest FROM packages WHERE id = $1")
            .text(&package.id())
            .one(self.connection())
            .await?;
        Ok(row.maybe_text(0)?.map(|text| read_version(&text)).transpose()?)
    }
}
