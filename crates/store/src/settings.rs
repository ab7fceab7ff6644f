//! Settings and signing keys that all processes share.

use sqlx::AnyConnection;

use crate::{Database, DatabaseKind, StoreError, Timestamp, sql::sql};

#[derive(Clone, Copy, Debug)]
pub struct Settings<'a>(pub(crate) &'a Database);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKey {
    /// The key id in the header of a token.
    pub id: String,
    pub pkcs8: Vec<u8>,
    /// When it was created; the newest key signs.
    pub created_at: Timestamp,
}

async fn insert_signing_key(
    connection: &mut AnyConnection,
    key: &SigningKey,
) -> Result<(), StoreError> {
    sql("INSERT INTO signing_keys (id, pkcs8, created_at) VALUES ($1, $2, $3)")
        .text(&key.id)
        .bytes(&key.pkcs8)
        .time(key.created_at)
        .run(connection)
        .await
        .map(drop)
}

impl Settings<'_> {
    pub async fn get(&self, key: &str) -> Result<Option<String>, StoreError> {
        let row = sql("SELECT value FROM settings WHERE name = $1")
            .text(key)
            .optional(self.0.reader())
            .await?;
        row.map(|row| row.text(0)).transpose()
    }

    pub async fn put(&self, key: &str, value: &str) -> Result<(), StoreError> {
        sql("INSERT INTO settings (name, value) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value")
        .text(key)
        .text(value)
        .run(self.0.writer())
        .await
        .map(drop)
    }

    /// Sets a value if there is none, and returns the stored value.
    pub async fn put_if_absent(&self, key: &str, value: &str) -> Result<String, StoreError> {
        // The update changes nothing, but `RETURNING` only returns rows that were written.
        sql("INSERT INTO settings (name, value) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET value = settings.value
             RETURNING value")
        .text(key)
        .text(value)
        .one(self.0.writer())
        .await?
        .text(0)
    }

    /// Replaces a value if it still equals `old`, or is still missing; returns true for exactly one
    /// of several concurrent callers.
    pub async fn swap(&self, key: &str, old: Option<&str>, new: &str) -> Result<bool, StoreError> {
        let changed = match old {
            Some(old) => sql("UPDATE settings SET value = $3 WHERE name = $1 AND value = $2")
                .text(key)
                .text(old)
                .text(new),
            None => {
                sql("INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING")
                    .text(key)
                    .text(new)
            }
        };
        Ok(changed.run(self.0.writer()).await? == 1)
    }

    /// Removes a value if it equals `value`; returns true for exactly one of several concurrent
    /// callers.
    pub async fn take(&self, key: &str, value: &str) -> Result<bool, StoreError> {
        let removed = sql("DELETE FROM settings WHERE name = $1 AND value = $2")
            .text(key)
            .text(value)
            .run(self.0.writer())
            .await?;
        Ok(removed == 1)
    }

    /// Returns the keys that sign or signed tokens, newest first.
    pub async fn signing_keys(&self) -> Result<Vec<SigningKey>, StoreError> {
        let rows = sql("SELECT id, pkcs8, created_at FROM signing_keys
             ORDER BY created_at DESC, id DESC")
        .all(self.0.reader())
        .await?;
        rows.iter()
            .map(|row| {
                Ok(SigningKey { id: row.text(0)?, pkcs8: row.bytes(1)?, created_at: row.time(2)? })
            })
            .collect()
    }

    /// Adds a key. With `only_first`, does nothing if there is a key, so that processes that start
    /// at the same time agree on one.
    pub async fn add_signing_key(
        &self,
        key: &SigningKey,
        only_first: bool,
    ) -> Result<(), StoreError> {
        let mut transaction = self.0.begin().await?;
        if only_first {
            if self.0.kind() == DatabaseKind::Postgres {
                sql("LOCK TABLE signing_keys IN EXCLUSIVE MODE").run(&mut *transaction).await?;
            }
            let first =
                sql("SELECT id FROM signing_keys LIMIT 1").optional(&mut *transaction).await?;
            if first.is_some() {
                return Ok(());
            }
        }
        insert_signing_key(&mut transaction, key).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Replaces all keys by one. If two processes do so concurrently, one key is left.
    pub async fn replace_signing_keys(&self, key: &SigningKey) -> Result<(), StoreError> {
        let mut transaction = self.0.begin().await?;
        if self.0.kind() == DatabaseKind::Postgres {
            sql("LOCK TABLE signing_keys IN EXCLUSIVE MODE").run(&mut *transaction).await?;
        }
        sql("DELETE FROM signing_keys").run(&mut *transaction).await?;
        insert_signing_key(&mut transaction, key).await?;
        transaction.commit().await?;
        self.0.people().forget().await
    }

    /// Removes keys that were created before a time, but never the newest.
    pub async fn remove_signing_keys_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        sql("DELETE FROM signing_keys WHERE created_at < $1 AND id <>
             (SELECT id FROM signing_keys ORDER BY created_at DESC, id DESC LIMIT 1)")
        .time(time)
        .run(self.0.writer())
        .await
    }
}
