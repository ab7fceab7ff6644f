//! Settings and signing keys that all processes share.

use sqlx::AnyConnection;

use crate::{Database, DatabaseKind, StoreError, Timestamp, sql::sql};

/// The settings of a database.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a>(pub(crate) &'a Database);

/// A key that signs tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKey {
    /// Stands in the head of a token.
    pub id: String,
    /// PKCS #8.
    pub pkcs8: Vec<u8>,
    /// When it was made; the newest signs.
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
    /// A value.
    pub async fn get(&self, key: &str) -> Result<Option<String>, StoreError> {
        let row = sql("SELECT value FROM settings WHERE name = $1")
            .text(key)
            .optional(self.0.reader())
            .await?;
        row.map(|row| row.text(0)).transpose()
    }

    /// Sets a value.
    pub async fn put(&self, key: &str, value: &str) -> Result<(), StoreError> {
        sql("INSERT INTO settings (name, value) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value")
        .text(key)
        .text(value)
        .run(self.0.writer())
        .await
        .map(drop)
    }

    /// Sets a value unless there is one, and gives the one that is there now.
    pub async fn put_if_absent(&self, key: &str, value: &str) -> Result<String, StoreError> {
        // An update that changes nothing, since only rows that were written are returned.
        sql("INSERT INTO settings (name, value) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET value = settings.value
             RETURNING value")
        .text(key)
        .text(value)
        .one(self.0.writer())
        .await?
        .text(0)
    }

    /// Sets a value if the old one, or none, is still there; true for exactly one caller.
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

    /// Removes a value if it is this one; true for exactly one caller.
    pub async fn take(&self, key: &str, value: &str) -> Result<bool, StoreError> {
        let removed = sql("DELETE FROM settings WHERE name = $1 AND value = $2")
            .text(key)
            .text(value)
            .run(self.0.writer())
            .await?;
        Ok(removed == 1)
    }

    /// Keys that sign or once signed, newest first.
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

    /// Adds a key. `only_first`: nothing happens if there is one; processes that start together
    /// agree on one key.
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

    /// Removes all keys and adds one. Of two that do so at once, one key is left.
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

    /// Removes keys that were made before a time, but never the newest.
    pub async fn remove_signing_keys_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        sql("DELETE FROM signing_keys WHERE created_at < $1 AND id <>
             (SELECT id FROM signing_keys ORDER BY created_at DESC, id DESC LIMIT 1)")
        .time(time)
        .run(self.0.writer())
        .await
    }
}
