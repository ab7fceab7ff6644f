//! Quotas of accounts.
//!
//! Usage is counted in the transaction that adds something. There is no stored counter, because it
//! could become wrong. Counting is cheap: it uses indexes, and an account has at most as many rows
//! as its quota.

use sqlx::AnyConnection;
use thiserror::Error;

use crate::{Database, DatabaseKind, StoreError, sql::sql};

/// Limits for one account; 0 means unlimited. They do not apply to administrators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Maximum personal skills.
    pub skills: u64,
    /// Maximum documents in all knowledge bases.
    pub documents: u64,
    /// Maximum published versions.
    pub versions: u64,
    /// Maximum bytes of documents and published archives together.
    pub bytes: u64,
}

impl Quotas {
    /// No limits.
    pub const NONE: Self = Self { skills: 0, documents: 0, versions: 0, bytes: 0 };
}

impl Default for Quotas {
    fn default() -> Self {
        Self { skills: 2000, documents: 20_000, versions: 20_000, bytes: 20 << 30 }
    }
}

/// An account has reached a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "this account has {used} of {most} {what}{}; remove some, or ask an administrator of the server to \
     raise its quota",
    with(*added)
)]
pub struct QuotaReached {
    /// The kind of thing, for the message.
    pub what: &'static str,
    /// Current usage.
    pub used: u64,
    /// The limit.
    pub most: u64,
    /// How much was to be added.
    pub added: u64,
}

/// Describes the addition; empty for a single item.
fn with(added: u64) -> String {
    if added > 1 { format!(", and this has {added}") } else { String::new() }
}

/// Fails if adding something would exceed a quota.
pub fn check_quota(
    what: &'static str,
    used: u64,
    added: u64,
    most: u64,
) -> Result<(), QuotaReached> {
    if most == 0 || used.saturating_add(added) <= most {
        return Ok(());
    }
    Err(QuotaReached { what, used, most, added })
}

/// What an operation would add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addition {
    Version { bytes: u64 },
    Document { bytes: u64 },
}

/// The current usage of an account.
struct StoredAmounts {
    is_admin: bool,
    versions: u64,
    documents: u64,
    bytes: u64,
}

impl Database {
    /// Checks a quota outside a transaction, so that most requests fail early.
    pub(crate) async fn check_quota(
        &self,
        connection: &mut AnyConnection,
        account: Option<i64>,
        addition: Addition,
    ) -> Result<(), StoreError> {
        let quotas = self.quotas();
        // The operator acts without an account.
        let Some(account) = account.filter(|_| quotas != Quotas::NONE) else { return Ok(()) };
        let usage = stored_amounts(connection, account).await?;
        if usage.is_admin {
            return Ok(());
        }
        let bytes = match addition {
            Addition::Version { bytes } => {
                check_quota("versions", usage.versions, 1, quotas.versions)?;
                bytes
            }
            Addition::Document { bytes } => {
                check_quota("documents", usage.documents, 1, quotas.documents)?;
                bytes
            }
        };
        Ok(check_quota("bytes", usage.bytes, bytes, quotas.bytes)?)
    }

    /// Checks a quota in the transaction that adds something. A lock serializes transactions of the
    /// same account, so that the second one sees what the first one added.
    pub(crate) async fn take_quota(
        &self,
        connection: &mut AnyConnection,
        account: Option<i64>,
        addition: Addition,
    ) -> Result<(), StoreError> {
        if let (Some(account), DatabaseKind::Postgres) = (account, self.kind()) {
            sql("SELECT 1 FROM pg_advisory_xact_lock(hashtext($1))")
                .text(&format!("quota of {account}"))
                .run(&mut *connection)
                .await?;
        }
        self.check_quota(connection, account, addition).await
    }
}

async fn stored_amounts(
    connection: &mut AnyConnection,
    account: i64,
) -> Result<StoredAmounts, StoreError> {
    let row = sql("SELECT
            (SELECT COUNT(*) FROM users WHERE id = $1 AND role = 'admin'),
            (SELECT COUNT(*) FROM versions WHERE published_by = $1),
            (SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM versions WHERE published_by = $1),
            (SELECT COUNT(*) FROM documents
             WHERE kb_id IN (SELECT id FROM bases WHERE user_id = $1)),
            (SELECT CAST(COALESCE(SUM(file_size), 0) AS BIGINT) FROM documents
             WHERE kb_id IN (SELECT id FROM bases WHERE user_id = $1))")
    .number(account)
    .one(connection)
    .await?;
    Ok(StoredAmounts {
        is_admin: row.count(0)? > 0,
        versions: row.count(1)?,
        documents: row.count(3)?,
        bytes: row.count(2)?.saturating_add(row.count(4)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_error_names_usage_and_limit() {
        assert_eq!(check_quota("skills", 4, 1, 5), Ok(()));
        assert_eq!(check_quota("skills", 400, 1, 0), Ok(()), "0 is no limit");
        let text = |added| check_quota("skills", 5, added, 5).unwrap_err().to_string();
        assert!(text(1).starts_with("this account has 5 of 5 skills; remove some"), "{}", text(1));
        assert!(text(2).contains("5 of 5 skills, and this has 2;"), "{}", text(2));
        assert!(check_quota("bytes", 1, u64::MAX, 5).is_err());
    }
}
