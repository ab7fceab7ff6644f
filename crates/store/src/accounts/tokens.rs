//! API tokens for programs. Changes of tokens with registry scopes are written to the audit log of
//! the registry in the same transaction.

use std::time::Duration;

use sqlx::AnyConnection;

use super::{Accounts, CachedAccount, User, user};
use crate::{
    DatabaseKind, StoreError, Timestamp,
    registry::{Actor, note_ended, note_made},
    sql::{Row, built, damaged, new_id, sql},
};

/// How often `last_used_at` is updated.
const LAST_USED_INTERVAL: Duration = Duration::from_mins(1);

/// An API token without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiToken {
    pub id: String,
    pub user_id: i64,
    /// The label that the user chose.
    pub name: String,
    pub scopes: Vec<String>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    /// Updated at most once per minute.
    pub last_used_at: Option<Timestamp>,
}

impl ApiToken {
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// A new API token.
#[derive(Clone, Debug)]
pub struct NewToken<'a> {
    pub user_id: i64,
    /// The label that the user chose.
    pub name: &'a str,
    pub scopes: &'a [String],
    /// SHA-256 of the secret, in hexadecimal digits.
    pub digest: &'a str,
    pub expires_at: Option<Timestamp>,
    /// When the login token of the request was issued. If the password was changed since, no token
    /// is created.
    pub since: Timestamp,
}

/// Reads `id, user_id, name, scopes, created_at, expires_at, last_used_at`.
fn api_token(row: &Row) -> Result<ApiToken, StoreError> {
    let scopes = row.text(3)?;
    Ok(ApiToken {
        id: row.text(0)?,
        user_id: row.number(1)?,
        name: row.text(2)?,
        scopes: serde_json::from_str(&scopes)
            .map_err(|_| damaged("the list of what a token may do", &scopes))?,
        created_at: row.time(4)?,
        expires_at: row.maybe_time(5)?,
        last_used_at: row.maybe_time(6)?,
    })
}

/// Revokes all API tokens of an account.
pub(super) async fn revoke_tokens(
    connection: &mut AnyConnection,
    by: &Actor,
    user_id: i64,
    why: &str,
) -> Result<(), StoreError> {
    let rows = sql("DELETE FROM api_tokens WHERE user_id = $1
         RETURNING id, user_id, name, scopes, created_at, expires_at, last_used_at")
    .number(user_id)
    .all(&mut *connection)
    .await?;
    let tokens = rows.iter().map(api_token).collect::<Result<Vec<_>, _>>()?;
    note_ended(connection, by, &tokens, Some(why)).await
}

impl Accounts<'_> {
    /// Stores an API token. Returns `None` if the password was changed or the account deleted since
    /// the login.
    pub async fn add_token(
        &self,
        by: &Actor,
        token: NewToken<'_>,
    ) -> Result<Option<ApiToken>, StoreError> {
        let mut transaction = self.0.begin().await?;
        // The row lock delays a concurrent change of the password, which then revokes this token,
        // too.
        let lock = match self.0.kind() {
            DatabaseKind::Sqlite => "",
            DatabaseKind::Postgres => "FOR SHARE",
        };
        let person = built(format!(
            "SELECT id FROM users
             WHERE id = $1 AND deleted_at IS NULL AND tokens_since <= $2 {lock}"
        ))
        .number(token.user_id)
        .time(token.since)
        .optional(&mut *transaction)
        .await?;
        if person.is_none() {
            return Ok(None);
        }
        let row = sql("INSERT INTO api_tokens
                (id, user_id, name, scopes, digest, created_at, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             RETURNING id, user_id, name, scopes, created_at, expires_at, last_used_at")
        .text(&new_id())
        .number(token.user_id)
        .text(token.name)
        .text(&serde_json::Value::from(token.scopes).to_string())
        .text(token.digest)
        .time(Timestamp::now())
        .maybe_time(token.expires_at)
        .one(&mut *transaction)
        .await?;
        let made = api_token(&row)?;
        note_made(&mut transaction, by, &made).await?;
        transaction.commit().await?;
        Ok(Some(made))
    }

    /// Returns an API token and its account by digest; the account may be disabled. Returns `None`
    /// if the token has expired or the account is deleted.
    pub async fn by_token_digest(
        &self,
        digest: &str,
    ) -> Result<Option<(ApiToken, User)>, StoreError> {
        let holder = self.0.people().get_or_load(digest.to_owned(), self.holder(digest)).await?;
        let Some(CachedAccount { user, token: Some(token) }) = holder else { return Ok(None) };
        Ok((!token.is_over(Timestamp::now())).then_some((token, user)))
    }

    /// Loads the account of a token and updates `last_used_at`.
    async fn holder(&self, digest: &str) -> Result<Option<CachedAccount>, StoreError> {
        let now = Timestamp::now();
        let row = sql("SELECT t.id, t.user_id, t.name, t.scopes, t.created_at, t.expires_at,
                t.last_used_at, u.id, u.email, u.role, u.active, u.created_at
             FROM api_tokens t JOIN users u ON u.id = t.user_id
             WHERE t.digest = $1 AND u.deleted_at IS NULL
                AND (t.expires_at IS NULL OR t.expires_at > $2)")
        .text(digest)
        .time(now)
        .optional(self.0.reader())
        .await?;
        let Some(row) = row else { return Ok(None) };
        let (token, user) = (api_token(&row)?, user(&row, 7)?);
        if token.last_used_at.is_none_or(|used| used <= now.minus(LAST_USED_INTERVAL)) {
            sql("UPDATE api_tokens SET last_used_at = $2 WHERE id = $1")
                .text(&token.id)
                .time(now)
                .run(self.0.writer())
                .await?;
        }
        Ok(Some(CachedAccount { user, token: Some(token) }))
    }

    /// Returns the API tokens of an account, newest first.
    pub async fn tokens(&self, user_id: i64) -> Result<Vec<ApiToken>, StoreError> {
        let rows = sql("SELECT id, user_id, name, scopes, created_at, expires_at, last_used_at
             FROM api_tokens WHERE user_id = $1 ORDER BY created_at DESC, id DESC")
        .number(user_id)
        .all(self.0.reader())
        .await?;
        rows.iter().map(api_token).collect()
    }

    /// Revokes an API token of an account. Returns false if it has none of this id.
    pub async fn remove_token(
        &self,
        by: &Actor,
        user_id: i64,
        id: &str,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.0.begin().await?;
        let row = sql("DELETE FROM api_tokens WHERE user_id = $1 AND id = $2
             RETURNING id, user_id, name, scopes, created_at, expires_at, last_used_at")
        .number(user_id)
        .text(id)
        .optional(&mut *transaction)
        .await?;
        let ended = row.as_ref().map(api_token).transpose()?;
        note_ended(&mut transaction, by, ended.as_slice(), None).await?;
        transaction.commit().await?;
        self.changed(ended.is_some()).await
    }
}
