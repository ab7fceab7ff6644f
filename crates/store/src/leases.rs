//! Locks that all processes see, and that end by themselves when their holder dies.

use std::time::Duration;

use crate::{Database, StoreError, Timestamp, sql::sql};

/// The locks of a database.
#[derive(Clone, Copy, Debug)]
pub struct Leases<'a>(pub(crate) &'a Database);

/// A lock that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What is locked.
    pub name: String,
    /// Who holds it.
    pub holder: String,
    /// When it ends unless it is renewed.
    pub until: Timestamp,
}

impl Leases<'_> {
    /// Takes a lock or renews one's own; `None` if another holds it.
    pub async fn acquire(
        &self,
        name: &str,
        holder: &str,
        length: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let now = Timestamp::now();
        let row = sql("INSERT INTO leases (name, holder, ends_at) VALUES ($1, $2, $3)
             ON CONFLICT (name) DO UPDATE
             SET holder = excluded.holder, ends_at = excluded.ends_at
             WHERE leases.holder = excluded.holder OR leases.ends_at <= $4
             RETURNING ends_at")
        .text(name)
        .text(holder)
        .time(now.plus(length))
        .time(now)
        .optional(self.0.writer())
        .await?;
        row.map(|row| {
            Ok(Lease { name: name.to_owned(), holder: holder.to_owned(), until: row.time(0)? })
        })
        .transpose()
    }

    /// Gives a lock back.
    pub async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        sql("DELETE FROM leases WHERE name = $1 AND holder = $2")
            .text(&lease.name)
            .text(&lease.holder)
            .run(self.0.writer())
            .await
            .map(drop)
    }
}
