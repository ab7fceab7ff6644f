//! Reads packages, versions and indexes.

use savoir_skill::{permission::Tier, version::VersionRange};
use semver::Version;

use super::{
    PackageName, PackageVersion, Registry, RegistryError, ScanResult, ScanVerdict, Summary,
    VersionFacts,
    facts::{blocked_by, read_name, read_tier, read_version},
    list::{SUMMARY, summary},
    version_order::sort_key,
};
use crate::{
    StoreError, Timestamp,
    sql::{Row, among, built, damaged, sql},
};

/// Maximum number of packages in one query.
const MAX_NAMES_PER_QUERY: usize = 500;

/// The index of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexText {
    pub package: PackageName,
    /// A line of JSON for each version, the highest first: an [`super::IndexLine`].
    pub text: String,
    /// Changes with the text: its `ETag`, without quotes.
    pub tag: String,
    /// When the package last changed.
    pub updated_at: Timestamp,
}

/// A package with all its versions.
#[derive(Clone, Debug, PartialEq)]
pub struct Package {
    /// The package as in lists; it describes the version `latest`.
    pub summary: Summary,
    /// When the package was created.
    pub created_at: Timestamp,
    /// Its versions, the highest first.
    pub versions: Vec<VersionSummary>,
}

/// A version, as the list of its package shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionSummary {
    pub version: Version,
    pub published_at: Timestamp,
    /// The id of the account that published it.
    pub published_by: Option<i64>,
    /// The tier that it claims.
    pub claimed: Option<Tier>,
    /// The tier that its scan and its signatures attest.
    pub attested: Tier,
    /// The digest of its content that lockfiles pin.
    pub integrity: String,
    /// SHA-256 of its artifact, in hexadecimal digits.
    pub sha256: String,
    /// The size of its artifact, in bytes.
    pub size: u64,
    /// Whether it was yanked: existing installs keep working, new ones skip it.
    pub yanked: bool,
    /// The reason for the yank, if one was given.
    pub yanked_why: Option<String>,
    /// Why it cannot be installed, if an administrator or a scan blocks it.
    pub blocked: Option<String>,
    /// The deprecation message, if it is deprecated.
    pub deprecated: Option<String>,
}

fn read_version_summary(row: &Row) -> Result<VersionSummary, StoreError> {
    Ok(VersionSummary {
        version: read_version(&row.text(0)?)?,
        published_at: row.time(1)?,
        published_by: row.maybe_number(2)?,
        claimed: row.maybe_number(3)?.map(read_tier).transpose()?,
        attested: read_tier(row.number(4)?)?,
        integrity: row.text(5)?,
        sha256: row.text(6)?,
        size: row.count(7)?,
        yanked: row.maybe_number(8)?.is_some(),
        yanked_why: row.maybe_text(10)?.filter(|why| !why.is_empty()),
        blocked: row.maybe_text(11)?.map(|report| blocked_by(&report)),
        deprecated: row.maybe_text(9)?,
    })
}

fn read_index_text(row: &Row) -> Result<IndexText, StoreError> {
    Ok(IndexText {
        package: read_name(&row.text(0)?)?,
        text: row.text(1)?,
        tag: row.text(2)?,
        updated_at: row.time(3)?,
    })
}

impl Registry<'_> {
    /// Returns the index of a package, which is all that a resolver needs.
    pub async fn index(&self, package: &PackageName) -> Result<Option<IndexText>, StoreError> {
        let row = sql("SELECT id, index_text, index_tag, updated_at FROM packages WHERE id = $1")
            .text(&package.id())
            .optional(self.reader())
            .await?;
        row.as_ref().map(read_index_text).transpose()
    }

    /// Returns the indexes of several packages, sorted by name. Missing packages are skipped.
    pub async fn indexes(&self, packages: &[PackageName]) -> Result<Vec<IndexText>, StoreError> {
        let mut found = Vec::with_capacity(packages.len());
        for chunk in packages.chunks(MAX_NAMES_PER_QUERY) {
            let ids = chunk.iter().map(PackageName::id);
            let select = "SELECT id, index_text, index_tag, updated_at FROM packages WHERE id IN";
            for row in among(select, ids).all(self.reader()).await? {
                found.push(read_index_text(&row)?);
            }
        }
        found.sort_by(|a, b| a.package.cmp(&b.package));
        Ok(found)
    }

    /// Like [`Self::indexes`], but returns `None` without reading the rest if the indexes have more
    /// than `max_chars` characters together.
    pub async fn indexes_up_to_size(
        &self,
        packages: &[PackageName],
        max_chars: usize,
    ) -> Result<Option<Vec<IndexText>>, StoreError> {
        let (mut found, mut size) = (Vec::with_capacity(packages.len()), 0);
        for chunk in packages.chunks(MAX_NAMES_PER_QUERY) {
            let ids = chunk.iter().map(PackageName::id);
            let select = "SELECT COALESCE(SUM(LENGTH(index_text)), 0) FROM packages WHERE id IN";
            size += among(select, ids).one(self.reader()).await?.count(0)?;
            if size > max_chars as u64 {
                return Ok(None);
            }
            found.extend(self.indexes(chunk).await?);
        }
        found.sort_by(|a, b| a.package.cmp(&b.package));
        Ok(Some(found))
    }

    /// Returns one page of indexes: at most `limit`, sorted by name, starting after a name. To
    /// build an index of your own, call [`Self::head`], read all pages, then follow
    /// [`Self::changes`].
    pub async fn indexes_after(
        &self,
        after: Option<&PackageName>,
        limit: u64,
    ) -> Result<Vec<IndexText>, StoreError> {
        let rows = sql("SELECT id, index_text, index_tag, updated_at FROM packages
             WHERE id > $1 ORDER BY id LIMIT $2")
        .text(&after.map(PackageName::id).unwrap_or_default())
        .count(limit.min(1000))
        .all(self.reader())
        .await?;
        rows.iter().map(read_index_text).collect()
    }

    /// Returns a package with all its versions.
    pub async fn package(&self, package: &PackageName) -> Result<Option<Package>, StoreError> {
        let row = built(format!("SELECT {SUMMARY}, p.created_at FROM packages p WHERE p.id = $1"))
            .text(&package.id())
            .optional(self.reader())
            .await?;
        let Some(row) = row else { return Ok(None) };
        let rows = sql("SELECT version, published_at, published_by, claimed, attested, integrity,
                sha256, size, yanked_at, deprecated, yanked_why,
                CASE WHEN verdict = 'block' THEN COALESCE(scan, '') END
             FROM versions WHERE package = $1 AND withdrawn_at IS NULL ORDER BY sort_key DESC")
        .text(&package.id())
        .all(self.reader())
        .await?;
        Ok(Some(Package {
            summary: summary(&row)?,
            created_at: row.time(11)?,
            versions: rows.iter().map(read_version_summary).collect::<Result<_, _>>()?,
        }))
    }

    /// Returns the summaries of several packages, sorted by name. Missing packages are skipped.
    pub async fn summaries(&self, packages: &[PackageName]) -> Result<Vec<Summary>, StoreError> {
        let mut found = Vec::with_capacity(packages.len());
        for chunk in packages.chunks(MAX_NAMES_PER_QUERY) {
            let ids = chunk.iter().map(PackageName::id);
            let select = format!("SELECT {SUMMARY} FROM packages p WHERE p.id IN");
            for row in among(&select, ids).all(self.reader()).await? {
                found.push(summary(&row)?);
            }
        }
        found.sort_by(|a, b| a.package.cmp(&b.package));
        Ok(found)
    }

    /// Returns a version, also if it was yanked. Build metadata is ignored.
    pub async fn version(
        &self,
        package: &PackageName,
        version: &Version,
    ) -> Result<PackageVersion, RegistryError> {
        let row =
            sql("SELECT version, claimed, attested, integrity, sha256, size, skill_md, facts,
                verdict, scan, scanned_at, yanked_at, yanked_why, deprecated, published_by,
                published_at, withdrawn_at, withdrawn_why
             FROM versions WHERE package = $1 AND sort_key = $2")
            .text(&package.id())
            .bytes(&sort_key(version))
            .optional(self.reader())
            .await?;
        let row = row.ok_or_else(|| RegistryError::no_version(package, version))?;
        if row.maybe_number(16)?.is_some() {
            return Err(RegistryError::Withdrawn {
                package: package.clone(),
                version: read_version(&row.text(0)?)?,
                why: row.maybe_text(17)?.unwrap_or_default(),
            });
        }
        Ok(read_package_version(package, &row)?)
    }

    /// Returns the highest version in a range that is neither yanked nor blocked by a scan. A
    /// pre-release that the range does not name is returned only if nothing else matches.
    pub async fn resolve_version(
        &self,
        package: &PackageName,
        range: &VersionRange,
    ) -> Result<PackageVersion, RegistryError> {
        let rows = sql("SELECT version FROM versions
             WHERE package = $1 AND withdrawn_at IS NULL AND yanked_at IS NULL
                AND (verdict IS NULL OR verdict <> 'block')
             ORDER BY sort_key DESC")
        .text(&package.id())
        .all(self.reader())
        .await?;
        let versions: Result<Vec<Version>, StoreError> =
            rows.iter().map(|row| read_version(&row.text(0)?)).collect();
        let versions = versions?;
        let chosen = range.resolve(&versions).ok_or_else(|| RegistryError::NotFound {
            what: format!("version of {package} in the range `{range}`"),
        })?;
        self.version(package, chosen).await
    }
}

/// Reads the columns of [`Registry::version`].
fn read_package_version(package: &PackageName, row: &Row) -> Result<PackageVersion, StoreError> {
    Ok(PackageVersion {
        package: package.clone(),
        version: read_version(&row.text(0)?)?,
        claimed: row.maybe_number(1)?.map(read_tier).transpose()?,
        attested: read_tier(row.number(2)?)?,
        integrity: row.text(3)?,
        sha256: row.text(4)?,
        size: row.count(5)?,
        skill_md: row.text(6)?,
        facts: VersionFacts::read(&row.text(7)?)?,
        scan: read_scan_result(row)?,
        yanked: row.maybe_time(11)?.zip(Some(row.maybe_text(12)?)),
        deprecated: row.maybe_text(13)?,
        published_by: row.maybe_number(14)?,
        published_at: row.time(15)?,
    })
}

fn read_scan_result(row: &Row) -> Result<Option<(ScanResult, Timestamp)>, StoreError> {
    let (verdict, report, time) = (row.maybe_text(8)?, row.maybe_text(9)?, row.maybe_time(10)?);
    let (Some(verdict), Some(report), Some(time)) = (verdict, report, time) else {
        return Ok(None);
    };
    let report =
        serde_json::from_str(&report).map_err(|_| damaged("the report of a scan", &report))?;
    Ok(Some((ScanResult { verdict: ScanVerdict::read(&verdict)?, report }, time)))
}
