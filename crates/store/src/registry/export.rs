//! Exports the whole registry from one snapshot.

use std::collections::HashMap;

use serde_json::Value as Json;
use sqlx::AnyConnection;

use super::{
    AttestationRecord, KeyRecord, MemberRecord, PackageRecord, PrefixRecord, Record, Registry,
    ScanResult, ScanVerdict, SignatureRecord, TakenDownRecord, VersionFacts, VersionRecord,
    appeal::{read_setting, setting},
    facts::{read_name, read_tier},
    record::LogRecord,
};
use crate::{
    DatabaseKind, Role, StoreError,
    database::{WriteTransaction, begin_whole},
    sql::{Row, damaged, sql},
};

const PAGE_SIZE: u64 = 500;

/// A running export. Later changes are not included.
#[derive(Debug)]
pub struct Export {
    transaction: WriteTransaction,
    stage: ExportStage,
    /// The key after which the next page of this stage starts.
    text: String,
    number: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExportStage {
    Accounts,
    Namespaces,
    Members,
    Prefixes,
    Keys,
    Clearances,
    Packages,
    Log,
    Done,
}

impl ExportStage {
    fn next(self) -> Self {
        match self {
            Self::Accounts => Self::Namespaces,
            Self::Namespaces => Self::Members,
            Self::Members => Self::Prefixes,
            Self::Prefixes => Self::Keys,
            Self::Keys => Self::Clearances,
            Self::Clearances => Self::Packages,
            Self::Packages => Self::Log,
            Self::Log | Self::Done => Self::Done,
        }
    }
}

impl Registry<'_> {
    /// Starts an export of everything except the blobs, which are in the storage under their
    /// digests.
    pub async fn export(&self) -> Result<Export, StoreError> {
        let begin = match self.database.kind() {
            DatabaseKind::Sqlite => "BEGIN",
            DatabaseKind::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        };
        let transaction = begin_whole(self.reader().clone(), begin).await?;
        let (text, number) = (String::new(), i64::MIN);
        Ok(Export { transaction, stage: ExportStage::Accounts, text, number })
    }
}

impl Export {
    /// Returns the next page of records; empty at the end.
    pub async fn next_page(&mut self) -> Result<Vec<Record>, StoreError> {
        while self.stage != ExportStage::Done {
            let records = match self.stage {
                ExportStage::Accounts => self.accounts().await?,
                ExportStage::Namespaces => self.namespaces().await?,
                ExportStage::Members => self.members().await?,
                ExportStage::Prefixes => self.prefixes().await?,
                ExportStage::Keys => self.keys().await?,
                ExportStage::Clearances => self.clearances().await?,
                ExportStage::Packages => self.packages().await?,
                ExportStage::Log => self.log().await?,
                ExportStage::Done => Vec::new(),
            };
            if !records.is_empty() {
                return Ok(records);
            }
            (self.stage, self.text, self.number) = (self.stage.next(), String::new(), i64::MIN);
        }
        Ok(Vec::new())
    }

    async fn accounts(&mut self) -> Result<Vec<Record>, StoreError> {
        let rows = sql("SELECT id, email, role, active, deleted_at FROM users
             WHERE id > $1 ORDER BY id LIMIT $2")
        .number(self.number)
        .count(PAGE_SIZE)
        .all(&mut *self.transaction)
        .await?;
        if let Some(last) = rows.last() {
            self.number = last.number(0)?;
        }
        let account = |row: &Row| {
            let (active, deleted) = (row.number(3)? != 0, row.maybe_number(4)?.is_some());
            Ok(Record::Account {
                id: row.number(0)?,
                email: row.text(1)?,
                admin: row.text(2)? == Role::Admin.as_str() && active && !deleted,
                disabled: !active && !deleted,
                deleted,
            })
        };
        rows.iter().map(account).collect()
    }

    async fn namespaces(&mut self) -> Result<Vec<Record>, StoreError> {
        let rows = sql("SELECT name, created_by, created_at FROM namespaces
             WHERE name > $1 ORDER BY name LIMIT $2")
        .text(&self.text)
        .count(PAGE_SIZE)
        .all(&mut *self.transaction)
        .await?;
        if let Some(last) = rows.last() {
            self.text = last.text(0)?;
        }
        let namespace = |row: &Row| {
            Ok(Record::Namespace {
                name: row.text(0)?,
                created_by: row.maybe_number(1)?,
                created_at: row.number(2)?,
            })
        };
        rows.iter().map(namespace).collect()
    }

    async fn members(&mut self) -> Result<Vec<Record>, StoreError> {
        let rows = sql("SELECT holding, user_id, role, added_by, added_at FROM members
             WHERE (holding, user_id) > ($1, $2) ORDER BY holding, user_id LIMIT $3")
        .text(&self.text)
        .number(self.number)
        .count(PAGE_SIZE)
        .all(&mut *self.transaction)
        .await?;
        if let Some(last) = rows.last() {
            (self.text, self.number) = (last.text(0)?, last.number(1)?);
        }
        let member = |row: &Row| {
            Ok(Record::Member(MemberRecord {
                owner_scope: row.text(0)?,
                user_id: row.number(1)?,
                role: row.text(2)?,
                added_by: row.maybe_number(3)?,
                added_at: row.number(4)?,
            }))
        };
        rows.iter().map(member).collect()
    }

    /// All in one page, because there are few.
    async fn prefixes(&mut self) -> Result<Vec<Record>, StoreError> {
        let rows = sql("SELECT user_id, prefix, added_by, added_at FROM prefix_grants
             WHERE user_id > $1 ORDER BY user_id, prefix")
        .number(self.number)
        .all(&mut *self.transaction)
        .await?;
        self.number = i64::MAX;
        let prefix = |row: &Row| {
            Ok(Record::Prefix(PrefixRecord {
                user_id: row.number(0)?,
                prefix: row.text(1)?,
                added_by: row.maybe_number(2)?,
                added_at: row.number(3)?,
            }))
        };
        rows.iter().map(prefix).collect()
    }

    async fn keys(&mut self) -> Result<Vec<Record>, StoreError> {
        // All keys of a holding fit in one page, so that a page can end with a holding.
        let rows = sql("SELECT holding, key_id, public_key, label, account, added_by, added_at,
                revoked_at, revoked_why, proved_at, displaced_at
             FROM registry_keys WHERE holding IN
                (SELECT DISTINCT holding FROM registry_keys WHERE holding > $1
                 ORDER BY holding LIMIT $2)
             ORDER BY holding, key_id")
        .text(&self.text)
        .count(PAGE_SIZE)
        .all(&mut *self.transaction)
        .await?;
        if let Some(last) = rows.last() {
            self.text = last.text(0)?;
        }
        rows.iter().map(|row| read_key(row).map(Record::Key)).collect()
    }

    async fn clearances(&mut self) -> Result<Vec<Record>, StoreError> {
        let rows = sql("SELECT name, value FROM settings
             WHERE name LIKE $1 AND name > $2 ORDER BY name LIMIT $3")
        .text(&setting("%", None))
        .text(&self.text)
        .count(PAGE_SIZE)
        .all(&mut *self.transaction)
        .await?;
        if let Some(last) = rows.last() {
            self.text = last.text(0)?;
        }
        let clearance = |row: &Row| {
            let (name, why) = (row.text(0)?, row.text(1)?);
            let (sha256, package) = read_setting(&name)?;
            Ok(Record::Clearance { sha256, package, why })
        };
        rows.iter().map(clearance).collect()
    }

    async fn packages(&mut self) -> Result<Vec<Record>, StoreError> {
        let rows = sql("SELECT id, created_by, created_at, updated_at, deprecated FROM packages
             WHERE id > $1 ORDER BY id LIMIT $2")
        .text(&self.text)
        .count(PAGE_SIZE)
        .all(&mut *self.transaction)
        .await?;
        let Some(last) = rows.last() else { return Ok(Vec::new()) };
        let range = (std::mem::replace(&mut self.text, last.text(0)?), last.text(0)?);
        let mut versions = read_versions(&mut self.transaction, &range).await?;
        let mut records = Vec::with_capacity(rows.len());
        for row in &rows {
            let id = row.text(0)?;
            records.push(Record::Package(Box::new(PackageRecord {
                name: read_name(&id)?,
                created_by: row.maybe_number(1)?,
                created_at: row.number(2)?,
                updated_at: row.number(3)?,
                deprecated: row.maybe_text(4)?,
                versions: versions.remove(&id).unwrap_or_default(),
            })));
        }
        Ok(records)
    }

    async fn log(&mut self) -> Result<Vec<Record>, StoreError> {
        let rows =
            sql("SELECT seq, done_at, account, token, act, holding, package, version, details
             FROM registry_log WHERE seq > $1 ORDER BY seq LIMIT $2")
            .number(self.number)
            .count(PAGE_SIZE)
            .all(&mut *self.transaction)
            .await?;
        if let Some(last) = rows.last() {
            self.number = last.number(0)?;
        }
        rows.iter().map(|row| read_log_entry(row).map(Record::Log)).collect()
    }
}

fn read_key(row: &Row) -> Result<KeyRecord, StoreError> {
    Ok(KeyRecord {
        owner_scope: row.text(0)?,
        key_id: row.text(1)?,
        public_key: row.text(2)?,
        label: row.text(3)?,
        account: row.maybe_number(4)?,
        added_by: row.maybe_number(5)?,
        added_at: row.number(6)?,
        revoked_at: row.maybe_number(7)?,
        revoked_why: row.maybe_text(8)?,
        proved_at: row.maybe_number(9)?,
        displaced_at: row.maybe_number(10)?,
    })
}

fn read_log_entry(row: &Row) -> Result<LogRecord, StoreError> {
    Ok(LogRecord {
        seq: row.number(0)?,
        done_at: row.number(1)?,
        account: row.maybe_number(2)?,
        token: row.maybe_text(3)?,
        act: row.text(4)?,
        owner_scope: row.maybe_text(5)?,
        package: row.maybe_text(6)?,
        version: row.maybe_text(7)?,
        details: row.text(8)?,
    })
}

/// Reads the versions of the packages after the first name and up to the second, with signatures,
/// signed evaluations and downloads.
async fn read_versions(
    connection: &mut AnyConnection,
    range: &(String, String),
) -> Result<HashMap<String, Vec<VersionRecord>>, StoreError> {
    let mut signatures = read_signatures(&mut *connection, range).await?;
    let mut attestations = read_attestations(&mut *connection, range).await?;
    let downloads = read_downloads(&mut *connection, range).await?;
    let rows = sql("SELECT package, sort_key, version, claimed, integrity, sha256, size, skill_md,
            facts, verdict, scan, scanned_at, yanked_at, yanked_why, deprecated, withdrawn_at,
            withdrawn_why, published_by, published_at, taken_at, taken_sha256, taken_integrity
         FROM versions WHERE package > $1 AND package <= $2 ORDER BY package, sort_key")
    .text(&range.0)
    .text(&range.1)
    .all(connection)
    .await?;
    let mut versions: HashMap<String, Vec<VersionRecord>> = HashMap::new();
    for row in &rows {
        let mut version = read_version_record(row)?;
        let key = (row.text(0)?, row.bytes(1)?);
        version.signatures = signatures.remove(&key).unwrap_or_default();
        version.attestations = attestations.remove(&key).unwrap_or_default();
        let key = (key.0, version.version.clone());
        version.downloads = downloads.get(&key).copied().unwrap_or(0);
        versions.entry(key.0).or_default().push(version);
    }
    Ok(versions)
}

async fn read_signatures(
    connection: &mut AnyConnection,
    (after, last): &(String, String),
) -> Result<HashMap<(String, Vec<u8>), Vec<SignatureRecord>>, StoreError> {
    let rows = sql("SELECT package, sort_key, holding, key_id, state, record, added_by, added_at
         FROM signatures WHERE package > $1 AND package <= $2
         ORDER BY package, sort_key, holding, key_id")
    .text(after)
    .text(last)
    .all(connection)
    .await?;
    let mut found: HashMap<_, Vec<_>> = HashMap::new();
    for row in &rows {
        found.entry((row.text(0)?, row.bytes(1)?)).or_default().push(read_signature(row)?);
    }
    Ok(found)
}

async fn read_attestations(
    connection: &mut AnyConnection,
    (after, last): &(String, String),
) -> Result<HashMap<(String, Vec<u8>), Vec<AttestationRecord>>, StoreError> {
    let rows = sql("SELECT package, sort_key, digest, key_id, public_key, statement, added_by,
            added_at, finished_at, removed_at
         FROM attestations WHERE package > $1 AND package <= $2
         ORDER BY package, sort_key, added_at, digest")
    .text(after)
    .text(last)
    .all(connection)
    .await?;
    let mut found: HashMap<_, Vec<_>> = HashMap::new();
    for row in &rows {
        found.entry((row.text(0)?, row.bytes(1)?)).or_default().push(AttestationRecord {
            digest: row.text(2)?,
            key_id: row.text(3)?,
            public_key: row.maybe_text(4)?,
            statement: row.text(5)?,
            added_by: row.maybe_number(6)?,
            added_at: row.number(7)?,
            finished_at: Some(row.number(8)?),
            removed_at: row.maybe_number(9)?,
        });
    }
    Ok(found)
}

async fn read_downloads(
    connection: &mut AnyConnection,
    (after, last): &(String, String),
) -> Result<HashMap<(String, String), u64>, StoreError> {
    let rows = sql("SELECT package, version, number FROM downloads
         WHERE package > $1 AND package <= $2")
    .text(after)
    .text(last)
    .all(connection)
    .await?;
    rows.iter().map(|row| Ok(((row.text(0)?, row.text(1)?), row.count(2)?))).collect()
}

fn read_signature(row: &Row) -> Result<SignatureRecord, StoreError> {
    Ok(SignatureRecord {
        owner_scope: row.text(2)?,
        key_id: row.text(3)?,
        state: row.text(4)?,
        record: row.text(5)?,
        added_by: row.maybe_number(6)?,
        added_at: row.number(7)?,
    })
}

fn read_version_record(row: &Row) -> Result<VersionRecord, StoreError> {
    let claimed = row.maybe_number(3)?.map(read_tier).transpose()?;
    let scan = match (row.maybe_text(9)?, row.maybe_text(10)?) {
        (Some(verdict), report) => Some(ScanResult {
            verdict: ScanVerdict::read(&verdict)?,
            report: match report {
                Some(text) => serde_json::from_str(&text)
                    .map_err(|_| damaged("the report of a scan", &text))?,
                None => Json::Null,
            },
        }),
        (None, _) => None,
    };
    let taken_down = match row.maybe_number(19)? {
        Some(at) => {
            let (sha256, integrity) = (row.maybe_text(20)?, row.maybe_text(21)?);
            Some(TakenDownRecord { at, sha256, integrity })
        }
        None => None,
    };
    Ok(VersionRecord {
        version: row.text(2)?,
        claimed: claimed.map(|tier| tier.as_str().to_owned()),
        integrity: row.text(4)?,
        sha256: row.text(5)?,
        size: row.count(6)?,
        skill_md: row.text(7)?,
        facts: VersionFacts::read(&row.text(8)?)?,
        scan,
        scanned_at: row.maybe_number(11)?,
        yanked_at: row.maybe_number(12)?,
        yanked_why: row.maybe_text(13)?,
        deprecated: row.maybe_text(14)?,
        withdrawn_at: row.maybe_number(15)?,
        withdrawn_why: row.maybe_text(16)?,
        taken_down,
        published_by: row.maybe_number(17)?,
        published_at: row.number(18)?,
        signatures: Vec::new(),
        attestations: Vec::new(),
        downloads: 0,
    })
}
