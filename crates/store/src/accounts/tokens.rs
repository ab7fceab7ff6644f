//! Tokens of programs. What becomes of one that may do something in the registry is in the
//! registry's log, in the same transaction.

use std::time::Duration;

use sqlx::AnyConnection;

use super::{Accounts, CachedAccount, User, user};
use crate::{
    DatabaseKind, StoreError, Timestamp,
    registry::{Actor, note_ended, note_made},
    sql::{Row, built, damaged, new_id, sql},
};

/// How exactly it is known when a token was last used.
const LAST_USED_INTERVAL: Duration = Duration::from_mins(1);

/// A token for a program, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiToken {
    /// Identifies it to its owner.
    pub id: String,
    /// Whose it is.
    pub user_id: i64,
    /// What its owner calls it.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends, if it does.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

impl ApiToken {
    /// Whether its time is over.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// A token for a program that is to be kept.
#[derive(Clone, Debug)]
pub struct NewToken<'a> {
    /// Whose it is.
    pub user_id: i64,
    /// What its owner calls it.
    pub name: &'a str,
    /// What it may do.
    pub scopes: &'a [String],
    /// SHA-256 of the secret, in hexadecimal digits.
    pub digest: &'a str,
    /// When it ends, if it does.
    pub expires_at: Option<Timestamp>,
    /// When the token was issued with which it is asked for.
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

/// Ends all tokens of a person.
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
    /// Keeps a token for a program; none if the password was changed or the person deleted since.
    pub async fn add_token(
        &self,
        by: &Actor,
        token: NewToken<'_>,
    ) -> Result<Option<ApiToken>, StoreError> {
        let mut transaction = self.0.begin().await?;
        // Whoever changes the password at this moment waits, and then ends this one, too.
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

    /// The token of a digest and its person, unless it is over or the person is deleted.
    pub async fn by_token_digest(
        &self,
        digest: &str,
    ) -> Result<Option<(ApiToken, User)>, StoreError> {
        let holder = self.0.people().get_or_load(digest.to_owned(), self.holder(digest)).await?;
        let Some(CachedAccount { user, token: Some(token) }) = holder else { return Ok(None) };
        Ok((!token.is_over(Timestamp::now())).then_some((token, user)))
    }

    /// The holder of a token. That it was used is noted.
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

    /// A person's tokens, newest first.
    pub async fn tokens(&self, user_id: i64) -> Result<Vec<ApiToken>, StoreError> {
        let rows = sql("SELECT id, user_id, name, scopes, created_at, expires_at, last_used_at
             FROM api_tokens WHERE user_id = $1 ORDER BY created_at DESC, id DESC")
        .number(user_id)
        .all(self.0.reader())
        .await?;
        rows.iter().map(api_token).collect()
    }

    /// Ends a person's token; false if they have none of that id.
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
