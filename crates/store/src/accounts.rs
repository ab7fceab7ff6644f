//! Accounts, their tokens, and failed logins.

mod account_cache;
mod identities;
mod tokens;

use std::time::Duration;

use sqlx::AnyConnection;

use crate::{
    Database, DatabaseKind, StoreError, Timestamp,
    database::WriteTransaction,
    registry::Actor,
    sql::{Row, built, damaged, new_id, sql},
};
pub(crate) use account_cache::AccountCache;
pub use account_cache::AccountsVersion;
use account_cache::CachedAccount;
pub use tokens::{ApiToken, NewToken};

/// How long failed logins are stored.
const FAILURE_RETENTION: Duration = Duration::from_hours(24);

/// SQL condition: the account `$1` is not the last administrator who can log in.
const ADMIN_IS_LEFT: &str = "(role <> 'admin' OR active = 0 OR EXISTS (
    SELECT 1 FROM users other WHERE other.id <> $1 AND other.role = 'admin' AND other.active = 1
        AND other.deleted_at IS NULL))";

/// The accounts of a database.
#[derive(Clone, Copy, Debug)]
pub struct Accounts<'a>(pub(crate) &'a Database);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// May use only their own data.
    User,
    /// May do everything on the server.
    Admin,
}

impl Role {
    /// `user` or `admin`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Admin => "admin",
        }
    }
}

/// A user account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Ids are never reused, not even after the account is deleted.
    pub id: i64,
    /// Trimmed and in lower case.
    pub email: String,
    pub role: Role,
    /// Whether the account may log in.
    pub active: bool,
    pub created_at: Timestamp,
}

impl User {
    pub fn is_admin(&self) -> bool {
        self.role == Role::Admin
    }
}

/// Reads `id, email, role, active, created_at`, starting at column `from`.
fn user(row: &Row, from: usize) -> Result<User, StoreError> {
    let role = match row.text(from + 2)?.as_str() {
        "user" => Role::User,
        "admin" => Role::Admin,
        other => return Err(damaged("the role of an account", other)),
    };
    Ok(User {
        id: row.number(from)?,
        email: row.text(from + 1)?,
        role,
        active: row.number(from + 3)? != 0,
        created_at: row.time(from + 4)?,
    })
}

fn normalize_email(email: &str) -> String {
    email.trim().to_lowercase()
}

/// A recorded failed login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginFailure {
    pub id: String,
    /// Number of failures of the same key since the start of the window, this one included.
    pub count: u64,
    /// Time of the first of these failures.
    pub first: Option<Timestamp>,
}

async fn count_failures(
    connection: &mut AnyConnection,
    key: &str,
    since: Timestamp,
) -> Result<(u64, Option<Timestamp>), StoreError> {
    let row = sql("SELECT COUNT(*), MIN(failed_at) FROM login_failures
         WHERE name = $1 AND failed_at >= $2")
    .text(key)
    .time(since)
    .one(connection)
    .await?;
    Ok((row.count(0)?, row.maybe_time(1)?))
}

impl Accounts<'_> {
    /// Returns a stamp that changes when any account changes. `None` for a database server, where
    /// every request has to query the database.
    pub fn current_version(&self) -> Option<AccountsVersion> {
        self.0.people().current_version()
    }

    /// Creates an account. Returns `None` if another account that is not deleted has the address.
    pub async fn create(
        &self,
        email: &str,
        password_hash: &str,
        role: Role,
    ) -> Result<Option<User>, StoreError> {
        let row =
            sql("INSERT INTO users (email, password_hash, role, active, created_at, tokens_since)
             VALUES ($1, $2, $3, 1, $4, 0)
             ON CONFLICT (email) WHERE deleted_at IS NULL DO NOTHING
             RETURNING id, email, role, active, created_at")
            .text(&normalize_email(email))
            .text(password_hash)
            .text(role.as_str())
            .time(Timestamp::now())
            .optional(self.0.writer())
            .await?;
        row.map(|row| user(&row, 0)).transpose()
    }

    /// Returns an account by its id, unless it is deleted.
    pub async fn by_id(&self, id: i64) -> Result<Option<User>, StoreError> {
        let row = sql("SELECT id, email, role, active, created_at FROM users
             WHERE id = $1 AND deleted_at IS NULL")
        .number(id)
        .optional(self.0.reader())
        .await?;
        row.map(|row| user(&row, 0)).transpose()
    }

    /// Returns an account and its password hash by email address, unless it is deleted.
    pub async fn by_email(&self, email: &str) -> Result<Option<(User, String)>, StoreError> {
        let row = sql("SELECT id, email, role, active, created_at, password_hash FROM users
             WHERE email = $1 AND deleted_at IS NULL")
        .text(&normalize_email(email))
        .optional(self.0.reader())
        .await?;
        row.map(|row| Ok((user(&row, 0)?, row.text(5)?))).transpose()
    }

    /// Returns all accounts that are not deleted, newest first.
    pub async fn list(&self) -> Result<Vec<User>, StoreError> {
        let rows = sql("SELECT id, email, role, active, created_at FROM users
             WHERE deleted_at IS NULL ORDER BY created_at DESC, id DESC")
        .all(self.0.reader())
        .await?;
        rows.iter().map(|row| user(row, 0)).collect()
    }

    /// Whether any administrator can log in.
    pub async fn has_admin(&self) -> Result<bool, StoreError> {
        let row = sql("SELECT id FROM users
             WHERE role = 'admin' AND active = 1 AND deleted_at IS NULL LIMIT 1")
        .optional(self.0.reader())
        .await?;
        Ok(row.is_some())
    }

    /// Starts a transaction that may remove an administrator. Such transactions run one after the
    /// other, so that each sees whether another administrator is left.
    async fn begin_change(&self) -> Result<WriteTransaction, StoreError> {
        let mut transaction = self.0.begin().await?;
        if self.0.kind() == DatabaseKind::Postgres {
            sql("SELECT 1 FROM pg_advisory_xact_lock(hashtext('administrators'))")
                .run(&mut *transaction)
                .await?;
        }
        Ok(transaction)
    }

    /// Enables or disables an account. Returns false if nothing changed, for example because it is
    /// the last administrator. Signed tokens issued before stay invalid after the account is
    /// enabled again, because one of them may have been stolen.
    pub async fn set_active(&self, id: i64, active: bool) -> Result<bool, StoreError> {
        let mut transaction = self.begin_change().await?;
        let changed = built(format!(
            "UPDATE users SET active = $2,
                tokens_since = CASE WHEN $2 = 1 THEN $3 ELSE tokens_since END
             WHERE id = $1 AND deleted_at IS NULL AND active <> $2 AND ($2 = 1 OR {ADMIN_IS_LEFT})"
        ))
        .number(id)
        .number(i64::from(active))
        .time(Timestamp::now())
        .run(&mut *transaction)
        .await?;
        transaction.commit().await?;
        self.changed(changed == 1).await
    }

    /// Changes the role of an account. Returns false if nothing changed, for example because it is
    /// the last administrator.
    pub async fn set_role(&self, id: i64, role: Role) -> Result<bool, StoreError> {
        let mut transaction = self.begin_change().await?;
        let changed = built(format!(
            "UPDATE users SET role = $2
             WHERE id = $1 AND deleted_at IS NULL AND role <> $2 AND {ADMIN_IS_LEFT}"
        ))
        .number(id)
        .text(role.as_str())
        .run(&mut *transaction)
        .await?;
        transaction.commit().await?;
        self.changed(changed == 1).await
    }

    /// Changes a password and revokes all tokens issued before, API tokens included. Returns false
    /// if the account does not exist.
    pub async fn set_password(
        &self,
        by: &Actor,
        id: i64,
        password_hash: &str,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.0.begin().await?;
        let changed = sql("UPDATE users SET password_hash = $2, tokens_since = $3
             WHERE id = $1 AND deleted_at IS NULL")
        .number(id)
        .text(password_hash)
        .time(Timestamp::now())
        .run(&mut *transaction)
        .await?;
        if changed == 1 {
            tokens::revoke_tokens(&mut transaction, by, id, "the password was changed").await?;
        }
        transaction.commit().await?;
        self.changed(changed == 1).await
    }

    /// Marks an account as deleted and revokes its tokens. The email address can be used again.
    /// Returns false if nothing changed, for example because it is the last administrator.
    pub async fn delete(&self, by: &Actor, id: i64) -> Result<bool, StoreError> {
        let mut transaction = self.begin_change().await?;
        let changed = built(format!(
            "UPDATE users SET deleted_at = $2
             WHERE id = $1 AND deleted_at IS NULL AND {ADMIN_IS_LEFT}"
        ))
        .number(id)
        .time(Timestamp::now())
        .run(&mut *transaction)
        .await?;
        if changed == 1 {
            tokens::revoke_tokens(&mut transaction, by, id, "the account was deleted").await?;
        }
        transaction.commit().await?;
        self.changed(changed == 1).await
    }

    /// Invalidates the cached accounts of all processes before a change is acknowledged.
    async fn changed(&self, changed: bool) -> Result<bool, StoreError> {
        self.0.people().forget().await?;
        Ok(changed)
    }

    /// Returns the account of a signed token; it may be disabled. Returns `None` if the token is
    /// revoked or was issued before the last change of the password, or if the account is deleted.
    pub async fn of_token(
        &self,
        user_id: i64,
        token: &str,
        issued_at: Timestamp,
    ) -> Result<Option<User>, StoreError> {
        let key = format!("{token} {user_id} {}", issued_at.micros());
        let holder = self.0.people().get_or_load(key, async {
            let row = sql("SELECT id, email, role, active, created_at FROM users
                 WHERE id = $1 AND deleted_at IS NULL AND tokens_since <= $3
                    AND NOT EXISTS (SELECT 1 FROM revoked_tokens WHERE token = $2)")
            .number(user_id)
            .text(token)
            .time(issued_at)
            .optional(self.0.reader())
            .await?;
            row.map(|row| Ok(CachedAccount { user: user(&row, 0)?, token: None })).transpose()
        });
        Ok(holder.await?.map(|holder| holder.user))
    }

    /// Revokes a signed token. Returns false if it was revoked already. The record is deleted after
    /// the token has expired.
    pub async fn revoke(&self, token: &str, expires_at: Timestamp) -> Result<bool, StoreError> {
        let now = Timestamp::now();
        sql("DELETE FROM revoked_tokens WHERE expires_at <= $1")
            .time(now)
            .run(self.0.writer())
            .await?;
        if expires_at <= now {
            return Ok(false);
        }
        let added = sql("INSERT INTO revoked_tokens (token, expires_at) VALUES ($1, $2)
             ON CONFLICT (token) DO NOTHING")
        .text(token)
        .time(expires_at)
        .run(self.0.writer())
        .await?;
        self.changed(added == 1).await
    }

    /// Records a failed login. Concurrent failures get different counts.
    pub async fn record_failure(
        &self,
        key: &str,
        since: Timestamp,
    ) -> Result<LoginFailure, StoreError> {
        let (id, now) = (new_id(), Timestamp::now());
        sql("DELETE FROM login_failures WHERE failed_at < $1")
            .time(now.minus(FAILURE_RETENTION))
            .run(self.0.writer())
            .await?;
        let mut transaction = self.0.begin().await?;
        if self.0.kind() == DatabaseKind::Postgres {
            sql("SELECT 1 FROM pg_advisory_xact_lock(hashtext($1))")
                .text(key)
                .run(&mut *transaction)
                .await?;
        }
        sql("INSERT INTO login_failures (id, name, failed_at) VALUES ($1, $2, $3)")
            .text(&id)
            .text(key)
            .time(now)
            .run(&mut *transaction)
            .await?;
        let (count, first) = count_failures(&mut transaction, key, since).await?;
        transaction.commit().await?;
        Ok(LoginFailure { id, count, first })
    }

    /// Deletes a recorded failure, for a login that turned out to be valid.
    pub async fn remove_failure(&self, id: &str) -> Result<(), StoreError> {
        sql("DELETE FROM login_failures WHERE id = $1")
            .text(id)
            .run(self.0.writer())
            .await
            .map(drop)
    }

    /// Counts the failed logins since a time, and returns the time of the first one.
    pub async fn failures(
        &self,
        key: &str,
        since: Timestamp,
    ) -> Result<(u64, Option<Timestamp>), StoreError> {
        count_failures(&mut *self.0.reader().acquire().await?, key, since).await
    }

    /// Deletes the failed logins of a key after a successful login.
    pub async fn clear_failures(&self, key: &str) -> Result<(), StoreError> {
        sql("DELETE FROM login_failures WHERE name = $1")
            .text(key)
            .run(self.0.writer())
            .await
            .map(drop)
    }
}
