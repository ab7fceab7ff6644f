//! Inserts the rows of imported packages and versions.

use savoir_skill::permission::Tier;
use semver::Version;

use super::{
    super::{
        OwnerScope, PackageName, PackageRecord, Record, RegistryError, ScanVerdict, SignatureState,
        TakenDownRecord, VersionRecord,
        blobs::is_digest,
        change::JUDGED_KEY,
        facts::{attested, tier_number},
        index::{
            INSERT_TAGS, LiveVersion, VersionEntry, WithdrawnVersion, index_text, latest, tag_row,
            tags, why_blocked,
        },
        version_order::{self, sort_key},
    },
    Import, check_owner_scope,
};
use crate::{
    Timestamp,
    sql::{Value, insert_rows},
};

const INSERT_PACKAGES: &str =
    "INSERT INTO packages (id, created_by, created_at, updated_at, latest, tier,
    description, author, license, homepage, repository, tags, deprecated, index_text, index_tag)";
const INSERT_VERSIONS: &str = "INSERT INTO versions (package, sort_key, version, claimed, attested, integrity,
    sha256, size, skill_md, entry, facts, verdict, scan, scanned_at, yanked_at, yanked_why, deprecated,
    withdrawn_at, withdrawn_why, published_by, published_at, taken_at, taken_sha256, taken_integrity)";
const INSERT_SIGNATURES: &str = "INSERT INTO signatures
    (package, sort_key, holding, key_id, state, record, added_by, added_at)";
const INSERT_ATTESTATIONS: &str = "INSERT INTO attestations
    (package, sort_key, digest, key_id, public_key, statement, added_by, added_at, finished_at,
     removed_at)";
const INSERT_DOWNLOADS: &str = "INSERT INTO downloads (package, version, number)";

/// Rows for one `INSERT` statement per table.
#[derive(Default)]
struct PackageRows {
    packages: Vec<Vec<Value>>,
    versions: Vec<Vec<Value>>,
    tags: Vec<Vec<Value>>,
    signatures: Vec<Vec<Value>>,
    attestations: Vec<Vec<Value>>,
    downloads: Vec<Vec<Value>>,
}

impl Import<'_> {
    /// Inserts packages that do not exist here.
    pub(super) async fn packages(&mut self, records: Vec<Record>) -> Result<(), RegistryError> {
        let records: Vec<PackageRecord> = records
            .into_iter()
            .filter_map(|record| match record {
                Record::Package(package) => Some(*package),
                _ => None,
            })
            .collect();
        let names: Vec<String> = records.iter().map(|record| record.name.id()).collect();
        let old = self.existing("SELECT id FROM packages WHERE id IN", &names).await?;
        let mut rows = PackageRows::default();
        for record in records {
            if old.contains(&record.name.id()) {
                self.done.skipped.push(record.name);
            } else {
                self.done.packages += 1;
                self.done.versions += record.versions.len() as u64;
                self.unknown.extend(unknown(&record));
                self.added.push(record.name.id());
                self.add(&mut rows, record)?;
            }
        }
        let connection = self.work.connection();
        for (head, rows) in [
            (INSERT_PACKAGES, rows.packages),
            (INSERT_VERSIONS, rows.versions),
            (INSERT_TAGS, rows.tags),
            (INSERT_SIGNATURES, rows.signatures),
            (INSERT_ATTESTATIONS, rows.attestations),
            (INSERT_DOWNLOADS, rows.downloads),
        ] {
            insert_rows(connection, head, rows, "").await?;
        }
        Ok(())
    }

    /// Adds the rows of a package to a batch.
    fn add(&self, rows: &mut PackageRows, record: PackageRecord) -> Result<(), RegistryError> {
        let (id, name) = (record.name.id(), record.name.clone());
        let mut live = Vec::with_capacity(record.versions.len());
        let mut gone = Vec::new();
        for version in &record.versions {
            let read = ParsedVersion::read(version)?;
            live.extend(read.live(version));
            gone.extend(read.gone(version));
            rows.versions.push(self.version_row(&id, version, &read)?);
            let key = sort_key(&read.version);
            for signature in &version.signatures {
                SignatureState::read(&signature.state)?;
                check_owner_scope(&signature.owner_scope)?;
                rows.signatures.push(vec![
                    Value::Text(id.clone()),
                    Value::Bytes(key.clone()),
                    Value::Text(signature.owner_scope.clone()),
                    Value::Text(signature.key_id.clone()),
                    Value::Text(signature.state.clone()),
                    Value::Text(signature.record.clone()),
                    Value::MaybeNumber(self.account(signature.added_by)),
                    Value::Number(signature.added_at),
                ]);
            }
            for attestation in &version.attestations {
                rows.attestations.push(vec![
                    Value::Text(id.clone()),
                    Value::Bytes(key.clone()),
                    Value::Text(attestation.digest.clone()),
                    Value::Text(attestation.key_id.clone()),
                    Value::MaybeText(attestation.public_key.clone()),
                    Value::Text(attestation.statement.clone()),
                    Value::MaybeNumber(self.account(attestation.added_by)),
                    Value::Number(attestation.added_at),
                    Value::Number(attestation.finished_at.unwrap_or(attestation.added_at)),
                    Value::MaybeNumber(attestation.removed_at),
                ]);
            }
            if version.downloads > 0 {
                let number = i64::try_from(version.downloads).unwrap_or(i64::MAX);
                let version = Value::Text(version.version.clone());
                rows.downloads.push(vec![Value::Text(id.clone()), version, Value::Number(number)]);
            }
        }
        live.sort_by(|a, b| b.version.cmp_precedence(&a.version));
        self.add_package(rows, record, &name, &live, &gone);
        Ok(())
    }

    fn add_package(
        &self,
        rows: &mut PackageRows,
        record: PackageRecord,
        name: &PackageName,
        live: &[LiveVersion],
        gone: &[WithdrawnVersion],
    ) {
        let id = &name.id();
        let (text, tag) = index_text(name, live, gone, record.deprecated.as_deref());
        let latest = latest(live);
        let facts = latest
            .and_then(|latest| {
                let number = latest.version.to_string();
                record.versions.iter().find(|version| version.version == number)
            })
            .map(|version| version.facts.clone())
            .unwrap_or_default();
        let tags = tags(&facts);
        let listed = serde_json::Value::from(tags.clone()).to_string();
        let at = Timestamp::from_micros(record.updated_at);
        rows.tags.extend(tags.into_iter().map(|tag| tag_row(tag, id, at)));
        rows.packages.push(vec![
            Value::Text(id.to_owned()),
            Value::MaybeNumber(self.account(record.created_by)),
            Value::Number(record.created_at),
            Value::Number(record.updated_at),
            Value::MaybeText(latest.map(|latest| latest.version.to_string())),
            Value::Number(tier_number(latest.map_or(Tier::Experimental, |latest| latest.attested))),
            Value::Text(facts.description),
            Value::MaybeText(facts.author),
            Value::MaybeText(facts.license),
            Value::MaybeText(facts.homepage),
            Value::MaybeText(facts.repository),
            Value::Text(listed),
            Value::MaybeText(record.deprecated),
            Value::Text(text),
            Value::Text(tag),
        ]);
    }

    fn version_row(
        &self,
        id: &str,
        record: &VersionRecord,
        read: &ParsedVersion,
    ) -> Result<Vec<Value>, RegistryError> {
        let scan = record.scan.as_ref();
        Ok(vec![
            Value::Text(id.to_owned()),
            Value::Bytes(sort_key(&read.version)),
            Value::Text(record.version.clone()),
            Value::MaybeNumber(read.claimed.map(tier_number)),
            Value::Number(tier_number(read.attested)),
            Value::Text(record.integrity.clone()),
            Value::Text(record.sha256.clone()),
            Value::Number(i64::try_from(record.size).unwrap_or(i64::MAX)),
            Value::Text(record.skill_md.clone()),
            Value::Text(entry(record).to_text()),
            Value::Text(record.facts.to_text()?),
            Value::MaybeText(scan.map(|scan| scan.verdict.as_str().to_owned())),
            Value::MaybeText(scan.map(|scan| scan.report.to_string())),
            Value::MaybeNumber(record.scanned_at),
            Value::MaybeNumber(record.yanked_at),
            Value::MaybeText(record.yanked_why.clone()),
            Value::MaybeText(record.deprecated.clone()),
            Value::MaybeNumber(record.withdrawn_at),
            Value::MaybeText(record.withdrawn_why.clone()),
            Value::MaybeNumber(self.account(record.published_by)),
            Value::Number(record.published_at),
            Value::MaybeNumber(read.taken_down.as_ref().map(|taken| taken.at)),
            Value::MaybeText(read.taken_down.as_ref().and_then(|taken| taken.sha256.clone())),
            Value::MaybeText(read.taken_down.as_ref().and_then(|taken| taken.integrity.clone())),
        ])
    }
}

/// Values computed from the record of a version.
struct ParsedVersion {
    version: Version,
    claimed: Option<Tier>,
    attested: Tier,
    taken_down: Option<TakenDownRecord>,
}

impl ParsedVersion {
    fn read(record: &VersionRecord) -> Result<Self, RegistryError> {
        let invalid = |what, message: String| RegistryError::Invalid { what, message };
        let version: Version = record.version.parse().map_err(|error: semver::Error| {
            invalid("the version", format!("`{}`: {error}", record.version.escape_debug()))
        })?;
        version_order::check(&version)?;
        let has_bytes = is_digest(&record.sha256) && is_digest(&record.skill_md);
        if record.withdrawn_at.is_none() && !has_bytes {
            let message = format!("{version} has no digests of 64 hexadecimal digits");
            return Err(invalid("the version", message));
        }
        let claimed = record.claimed.as_deref().map(str::parse).transpose();
        let claimed = claimed.map_err(|error: savoir_skill::permission::UnknownTier| {
            invalid("the tier", error.to_string())
        })?;
        let has = |auditor: bool| {
            let active = SignatureState::Active.as_str();
            let mut active = record.signatures.iter().filter(|one| one.state == active);
            active.any(|one| OwnerScope::read(one.owner_scope.clone()).is_for_auditors() == auditor)
        };
        let verdict: Option<ScanVerdict> = record.scan.as_ref().map(|scan| scan.verdict);
        let attested = attested(verdict, has(false), has(true));
        Ok(Self { version, claimed, attested, taken_down: taken_down(record) })
    }

    fn live(&self, record: &VersionRecord) -> Option<LiveVersion> {
        if record.withdrawn_at.is_some() {
            return None;
        }
        let scan = record.scan.as_ref();
        let blocks = scan.filter(|scan| scan.verdict == ScanVerdict::Block);
        let said = record.yanked_why.clone().filter(|why| !why.is_empty());
        Some(LiveVersion {
            version: self.version.clone(),
            entry: entry(record),
            claimed: self.claimed,
            attested: self.attested,
            yanked: record.yanked_at.is_some() || blocks.is_some(),
            yanked_why: blocks.and_then(|scan| why_blocked(&scan.report)).or(said),
            deprecated: record.deprecated.clone(),
            attestations: record
                .attestations
                .iter()
                .filter(|attestation| attestation.removed_at.is_none())
                .count() as u64,
        })
    }

    fn gone(&self, record: &VersionRecord) -> Option<WithdrawnVersion> {
        record.withdrawn_at?;
        Some(WithdrawnVersion { version: self.version.clone(), why: record.withdrawn_why.clone() })
    }
}

/// Returns withdrawn versions without digests, as in backups of older versions; their digests are
/// only in the log.
fn unknown(record: &PackageRecord) -> impl Iterator<Item = (String, String)> {
    let old =
        |version: &&VersionRecord| version.withdrawn_at.is_some() && version.taken_down.is_none();
    let id = record.name.id();
    let versions = record.versions.iter().filter(old);
    versions.map(move |version| (id.clone(), version.version.clone()))
}

/// Returns the digests of a taken-down version. Records of older versions lack them; then they come
/// from the log.
fn taken_down(record: &VersionRecord) -> Option<TakenDownRecord> {
    if record.taken_down.is_some() {
        return record.taken_down.clone();
    }
    if let Some(at) = record.withdrawn_at {
        return Some(TakenDownRecord { at, sha256: None, integrity: None });
    }
    let scan = record.scan.as_ref().filter(|scan| scan.verdict == ScanVerdict::Block)?;
    scan.report.get(JUDGED_KEY)?;
    Some(TakenDownRecord {
        at: record.scanned_at.unwrap_or(record.published_at),
        sha256: Some(record.sha256.clone()),
        integrity: Some(record.integrity.clone()),
    })
}

fn entry(record: &VersionRecord) -> VersionEntry {
    VersionEntry {
        version: record.version.clone(),
        integrity: record.integrity.clone(),
        sha256: record.sha256.clone(),
        size: record.size,
        dependencies: record.facts.needs.clone(),
        permissions: record.facts.permissions.clone(),
        tools: record.facts.tools.clone(),
        allowed_tools: record.facts.allowed_tools(),
        published_at: Timestamp::from_micros(record.published_at).to_string(),
    }
}
