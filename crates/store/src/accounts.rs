//! Accounts, their tokens, and failed logins.

mod account_cache;
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

/// How long failed attempts are kept.
const FAILURE_RETENTION: Duration = Duration::from_hours(24);

/// Holds unless the account `$1` is the only administrator who can log in.
const ADMIN_IS_LEFT: &str = "(role <> 'admin' OR active = 0 OR EXISTS (
    SELECT 1 FROM users other WHERE other.id <> $1 AND other.role = 'admin' AND other.active = 1
        AND other.deleted_at IS NULL))";

/// The accounts of a database.
#[derive(Clone, Copy, Debug)]
pub struct Accounts<'a>(pub(crate) &'a Database);

/// What a person may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// What is their own.
    User,
    /// Everything.
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

/// A person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Never given to another person.
    pub id: i64,
    /// Trimmed and in lower case.
    pub email: String,
    /// What they may do.
    pub role: Role,
    /// Whether they may log in.
    pub active: bool,
    /// When they came.
    pub created_at: Timestamp,
}

impl User {
    /// Whether they may do everything.
    pub fn is_admin(&self) -> bool {
        self.role == Role::Admin
    }
}

/// Reads `id, email, role, active, created_at` from a column on.
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

/// A failed attempt to log in that was noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginFailure {
    /// Identifies the note.
    pub id: String,
    /// How many there are since a time, this one included.
    pub count: u64,
    /// When the first of them was.
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
    /// How accounts look from outside; nothing for a database on a server, which must be asked.
    pub fn current_version(&self) -> Option<AccountsVersion> {
        self.0.people().current_version()
    }

    /// Makes an account; `None` if the address belongs to another one that is not deleted.
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

    /// The account of a number, unless it is deleted.
    pub async fn by_id(&self, id: i64) -> Result<Option<User>, StoreError> {
        let row = sql("SELECT id, email, role, active, created_at FROM users
             WHERE id = $1 AND deleted_at IS NULL")
        .number(id)
        .optional(self.0.reader())
        .await?;
        row.map(|row| user(&row, 0)).transpose()
    }

    /// The account of an address with the hash of its password, unless it is deleted.
    pub async fn by_email(&self, email: &str) -> Result<Option<(User, String)>, StoreError> {
        let row = sql("SELECT id, email, role, active, created_at, password_hash FROM users
             WHERE email = $1 AND deleted_at IS NULL")
        .text(&normalize_email(email))
        .optional(self.0.reader())
        .await?;
        row.map(|row| Ok((user(&row, 0)?, row.text(5)?))).transpose()
    }

    /// All accounts that are not deleted, newest first.
    pub async fn list(&self) -> Result<Vec<User>, StoreError> {
        let rows = sql("SELECT id, email, role, active, created_at FROM users
             WHERE deleted_at IS NULL ORDER BY created_at DESC, id DESC")
        .all(self.0.reader())
        .await?;
        rows.iter().map(|row| user(row, 0)).collect()
    }

    /// Whether there is an administrator who can log in.
    pub async fn has_admin(&self) -> Result<bool, StoreError> {
        let row = sql("SELECT id FROM users
             WHERE role = 'admin' AND active = 1 AND deleted_at IS NULL LIMIT 1")
        .optional(self.0.reader())
        .await?;
        Ok(row.is_some())
    }

    /// Starts a change that could take the rights of an administrator. Only one of them goes on at
    /// a time: each must see whether another administrator is left.
    async fn begin_change(&self) -> Result<WriteTransaction, StoreError> {
        let mut transaction = self.0.begin().await?;
        if self.0.kind() == DatabaseKind::Postgres {
            sql("SELECT 1 FROM pg_advisory_xact_lock(hashtext('administrators'))")
                .run(&mut *transaction)
                .await?;
        }
        Ok(transaction)
    }

    /// Lets a person in or not; false if nothing changed, as for the last administrator. Signed tokens from before do not come
    /// back with the account: whoever had stolen one would have it again.
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

    /// Changes what a person may do; false if nothing changed, as for the last administrator.
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

    /// Changes a password. Tokens that were given out before end, those of programs included; false
    /// if there is no such account.
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

    /// Marks an account as deleted and ends its tokens; its address is free again. False if nothing
    /// changed, as for the last administrator.
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

    /// Makes sure that a change is seen by everyone before it is acknowledged.
    async fn changed(&self, changed: bool) -> Result<bool, StoreError> {
        self.0.people().forget().await?;
        Ok(changed)
    }

    /// The person of a signed token: unless the token is revoked, was issued before the last change
    /// of the password, or the person is deleted.
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

    /// Ends a signed token; false if it had ended. The note is dropped when the token is over
    /// anyway.
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

    /// Notes a failed attempt to log in. Of several that are noted at once, each has another count.
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

    /// Forgets one failed attempt, which was none.
    pub async fn remove_failure(&self, id: &str) -> Result<(), StoreError> {
        sql("DELETE FROM login_failures WHERE id = $1")
            .text(id)
            .run(self.0.writer())
            .await
            .map(drop)
    }

    /// The failed attempts since a time: how many, and when the first of them was.
    pub async fn failures(
        &self,
        key: &str,
        since: Timestamp,
    ) -> Result<(u64, Option<Timestamp>), StoreError> {
        count_failures(&mut *self.0.reader().acquire().await?, key, since).await
    }

    /// Forgets failed attempts, after a good one.
    pub async fn clear_failures(&self, key: &str) -> Result<(), StoreError> {
        sql("DELETE FROM login_failures WHERE name = $1")
            .text(key)
            .run(self.0.writer())
            .await
            .map(drop)
    }
}
