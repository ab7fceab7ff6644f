//! Migrates the database to the current schema.
//!
//! There are no down migrations. If several processes start at the same time, one migrates under an
//! advisory lock, and the others wait and find nothing to do.

use savoir_skill::digest::sha256_hex;
use sqlx::{AnyConnection, AssertSqlSafe, raw_sql};

use crate::{
    Database, DatabaseKind, StoreError, Timestamp, VectorSearch, knowledge::adopt_pgvector,
    sql::sql,
};

struct Migration {
    version: i64,
    sqlite: &'static str,
    postgres: &'static str,
}

/// A migration with one SQL text for both databases, or with `each` one for each.
macro_rules! migration {
    ($version:literal $file:literal) => {
        Migration {
            version: $version,
            sqlite: include_str!(concat!("../migrations/", $file, ".sql")),
            postgres: include_str!(concat!("../migrations/", $file, ".sql")),
        }
    };
    ($version:literal each $file:literal) => {
        Migration {
            version: $version,
            sqlite: include_str!(concat!("../migrations/sqlite/", $file, ".sql")),
            postgres: include_str!(concat!("../migrations/postgres/", $file, ".sql")),
        }
    };
}

const MIGRATIONS: &[Migration] = &[
    migration!(1 "0001_tables"),
    migration!(2 each "0002_accounts"),
    migration!(3 each "0003_search"),
    migration!(4 "0004_housekeeping"),
    migration!(5 each "0005_registry"),
    migration!(6 "0006_skills"),
    migration!(7 each "0007_taken_down"),
    migration!(8 "0008_displaced_keys"),
    migration!(9 "0009_quotas"),
    migration!(10 "0010_runs"),
    migration!(11 "0011_titles"),
    migration!(12 each "0012_reviews"),
    migration!(13 "0013_workflow_versions"),
    migration!(14 "0014_base_settings"),
    migration!(15 "0015_run_models"),
    migration!(16 each "0016_attestations"),
    migration!(17 "0017_skill_versions"),
    migration!(18 "0018_account_identities"),
    migration!(19 "0019_removed_attestations"),
    migration!(20 "0020_stopped_answers"),
];

impl Migration {
    fn text(&self, kind: DatabaseKind) -> &'static str {
        match kind {
            DatabaseKind::Sqlite => self.sqlite,
            DatabaseKind::Postgres => self.postgres,
        }
    }

    fn checksum(&self, kind: DatabaseKind) -> String {
        sha256_hex(self.text(kind).as_bytes())
    }
}

/// Runs the pending migrations, and returns how vectors are searched.
pub(crate) async fn migrate(database: &Database) -> Result<VectorSearch, StoreError> {
    let kind = database.kind();
    let mut transaction = database.begin().await?;
    let connection = &mut *transaction;
    if kind == DatabaseKind::Postgres {
        // An arbitrary number for this advisory lock, which nothing else in the database uses.
        sql("SELECT 1 FROM pg_advisory_xact_lock(8391604517)").run_to_end(&mut *connection).await?;
    }
    sql("CREATE TABLE IF NOT EXISTS schema_versions (
            version BIGINT PRIMARY KEY, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)")
    .run(&mut *connection)
    .await?;
    let applied = applied(&mut *connection).await?;
    for migration in MIGRATIONS {
        match applied.iter().find(|(version, _)| *version == migration.version) {
            None => apply(migration, kind, &mut *connection).await?,
            Some((version, checksum)) if *checksum != migration.checksum(kind) => {
                return Err(StoreError::Damaged {
                    what: format!("version {version} of the database"),
                    message: "it was made by other statements than this program's".to_owned(),
                });
            }
            Some(_) => {}
        }
    }
    let search = match kind {
        DatabaseKind::Sqlite => VectorSearch::Scan,
        DatabaseKind::Postgres => adopt_pgvector(&mut *connection).await?,
    };
    transaction.commit().await?;
    Ok(search)
}

async fn applied(connection: &mut AnyConnection) -> Result<Vec<(i64, String)>, StoreError> {
    let mut applied = Vec::new();
    for row in sql("SELECT version, checksum FROM schema_versions").all(connection).await? {
        applied.push((row.number(0)?, row.text(1)?));
    }
    let found = applied.iter().map(|(version, _)| *version).max().unwrap_or(0);
    let known = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0);
    if found > known { Err(StoreError::FromTheFuture { found, known }) } else { Ok(applied) }
}

async fn apply(
    migration: &Migration,
    kind: DatabaseKind,
    connection: &mut AnyConnection,
) -> Result<(), StoreError> {
    raw_sql(AssertSqlSafe(migration.text(kind).to_owned())).execute(&mut *connection).await?;
    sql("INSERT INTO schema_versions (version, checksum, applied_at) VALUES ($1, $2, $3)")
        .number(migration.version)
        .text(&migration.checksum(kind))
        .time(Timestamp::now())
        .run(connection)
        .await?;
    tracing::debug!(version = migration.version, "the database was brought up to date");
    Ok(())
}
