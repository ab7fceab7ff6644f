//! Finds packages by digest, and the data for the search index.

use semver::Version;

use super::{
    PackageName, Registry, Summary, VersionFacts,
    blobs::is_digest,
    facts::{read_name, read_version},
    list::{SUMMARY, summary},
};
use crate::{
    StoreError,
    sql::{Row, among, built, sql},
};

/// Maximum versions with the same bytes that are checked.
const MAX_SAME_DIGEST: u64 = 1000;
/// Maximum packages per query.
const MAX_NAMES_PER_QUERY: usize = 500;

/// The columns of [`SearchablePackage`] after those of its summary.
const SEARCHABLE_COLUMNS: &str = "v.facts,
    (SELECT CAST(SUM(d.number) AS BIGINT) FROM downloads d WHERE d.package = p.id),
    (SELECT COUNT(*) FROM attestations a
     WHERE a.package = v.package AND a.sort_key = v.sort_key AND a.removed_at IS NULL)";
const LATEST_VERSIONS: &str =
    "FROM packages p JOIN versions v ON v.package = p.id AND v.version = p.latest";

/// The version that an archive belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artefact {
    pub package: PackageName,
    pub version: Version,
    /// In bytes.
    pub size: u64,
}

/// A package with the data for the search index.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchablePackage {
    pub summary: Summary,
    /// The metadata of its latest version.
    pub facts: VersionFacts,
    /// Downloads of all its versions.
    pub downloads: u64,
    /// Whether its latest version has a signed evaluation.
    pub evaluated: bool,
}

fn searchable_packages(row: &Row) -> Result<SearchablePackage, StoreError> {
    let downloads = row.maybe_number(12)?.and_then(|number| u64::try_from(number).ok());
    Ok(SearchablePackage {
        summary: summary(row)?,
        facts: VersionFacts::read(&row.text(11)?)?,
        downloads: downloads.unwrap_or_default(),
        evaluated: row.count(13)? > 0,
    })
}

impl Registry<'_> {
    /// Returns the version of an `anon` package whose SKILL.md has a digest, unless it was
    /// withdrawn.
    pub async fn anonymous_text(
        &self,
        sha256: &str,
    ) -> Result<Option<(PackageName, Version)>, StoreError> {
        if !is_digest(sha256) {
            return Ok(None);
        }
        // `0` is the character after `/`, so this range contains all ids in the namespace.
        let row = sql("SELECT package, version FROM versions
             WHERE package > 'anon/' AND package < 'anon0' AND skill_md = $1
                AND withdrawn_at IS NULL AND yanked_at IS NULL
             ORDER BY package, sort_key LIMIT 1")
        .text(sha256)
        .optional(self.reader())
        .await?;
        row.map(|row| Ok((read_name(&row.text(0)?)?, read_version(&row.text(1)?)?))).transpose()
    }

    /// Finds the version of an archive by digest and file name, unless it was withdrawn. Several
    /// versions may have the same bytes.
    pub async fn artefact(
        &self,
        sha256: &str,
        filename: &str,
    ) -> Result<Option<Artefact>, StoreError> {
        if !is_digest(sha256) {
            return Ok(None);
        }
        let rows = sql("SELECT package, version, size FROM versions
             WHERE sha256 = $1 AND withdrawn_at IS NULL ORDER BY package, sort_key LIMIT $2")
        .text(sha256)
        .count(MAX_SAME_DIGEST)
        .all(self.reader())
        .await?;
        for row in &rows {
            let found = Artefact {
                package: read_name(&row.text(0)?)?,
                version: read_version(&row.text(1)?)?,
                size: row.count(2)?,
            };
            if found.package.filename(&found.version) == filename {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the search data of some packages. Packages without an installable version are left
    /// out.
    pub async fn searchable_packages(
        &self,
        packages: &[PackageName],
    ) -> Result<Vec<SearchablePackage>, StoreError> {
        let mut found = Vec::with_capacity(packages.len());
        for some in packages.chunks(MAX_NAMES_PER_QUERY) {
            let ids = some.iter().map(PackageName::id);
            let head =
                format!("SELECT {SUMMARY}, {SEARCHABLE_COLUMNS} {LATEST_VERSIONS} WHERE p.id IN");
            for row in among(&head, ids).all(self.reader()).await? {
                found.push(searchable_packages(&row)?);
            }
        }
        Ok(found)
    }

    /// Returns the search data of at most `limit` packages after a name, sorted by name.
    pub async fn all_searchable_packages(
        &self,
        after: Option<&PackageName>,
        limit: u64,
    ) -> Result<Vec<SearchablePackage>, StoreError> {
        // The condition is on both tables: otherwise PostgreSQL would scan all versions from the
        // start.
        let rows = built(format!(
            "SELECT {SUMMARY}, {SEARCHABLE_COLUMNS} {LATEST_VERSIONS}
             WHERE p.id > $1 AND v.package > $1 ORDER BY p.id LIMIT $2"
        ))
        .text(&after.map(PackageName::id).unwrap_or_default())
        .count(limit.min(1000))
        .all(self.reader())
        .await?;
        rows.iter().map(searchable_packages).collect()
    }
}
