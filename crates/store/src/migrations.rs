//! Migrates the database to the current schema.
//!
//! Forward only. Several processes may start at once: one does the work under a lock, the others
//! find it done.

use sha2::{Digest, Sha256};
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

const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        sqlite: include_str!("../migrations/0001_tables.sql"),
        postgres: include_str!("../migrations/0001_tables.sql"),
    },
    Migration {
        version: 2,
        sqlite: include_str!("../migrations/sqlite/0002_accounts.sql"),
        postgres: include_str!("../migrations/postgres/0002_accounts.sql"),
    },
    Migration {
        version: 3,
        sqlite: include_str!("../migrations/sqlite/0003_search.sql"),
        postgres: include_str!("../migrations/postgres/0003_search.sql"),
    },
    Migration {
        version: 4,
        sqlite: include_str!("../migrations/0004_housekeeping.sql"),
        postgres: include_str!("../migrations/0004_housekeeping.sql"),
    },
    Migration {
        version: 5,
        sqlite: include_str!("../migrations/sqlite/0005_registry.sql"),
        postgres: include_str!("../migrations/postgres/0005_registry.sql"),
    },
    Migration {
        version: 6,
        sqlite: include_str!("../migrations/0006_skills.sql"),
        postgres: include_str!("../migrations/0006_skills.sql"),
    },
    Migration {
        version: 7,
        sqlite: include_str!("../migrations/sqlite/0007_taken_down.sql"),
        postgres: include_str!("../migrations/postgres/0007_taken_down.sql"),
    },
    Migration {
        version: 8,
        sqlite: include_str!("../migrations/0008_displaced_keys.sql"),
        postgres: include_str!("../migrations/0008_displaced_keys.sql"),
    },
    Migration {
        version: 9,
        sqlite: include_str!("../migrations/0009_quotas.sql"),
        postgres: include_str!("../migrations/0009_quotas.sql"),
    },
];

impl Migration {
    fn text(&self, kind: DatabaseKind) -> &'static str {
        match kind {
            DatabaseKind::Sqlite => self.sqlite,
            DatabaseKind::Postgres => self.postgres,
        }
    }

    fn checksum(&self, kind: DatabaseKind) -> String {
        use std::fmt::Write as _;
        let mut digits = String::with_capacity(64);
        for byte in Sha256::digest(self.text(kind).as_bytes()) {
            let _ = write!(digits, "{byte:02x}");
        }
        digits
    }
}

/// Brings a database up to date, and tells how its vectors are searched.
pub(crate) async fn migrate(database: &Database) -> Result<VectorSearch, StoreError> {
    let kind = database.kind();
    let mut transaction = database.begin().await?;
    let connection = &mut *transaction;
    if kind == DatabaseKind::Postgres {
        // Any number, as long as no one else on this database uses it.
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
