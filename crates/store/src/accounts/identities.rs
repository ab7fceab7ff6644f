//! Accounts of other providers with which users log in.

use super::{Accounts, User, tokens::revoke_tokens};
use crate::{StoreError, Timestamp, password::UNMATCHED_HASH, registry::Actor, sql::sql};

impl Accounts<'_> {
    /// The account that logs in with an account of a provider, unless it is deleted.
    pub async fn by_identity(
        &self,
        issuer: &str,
        subject: &str,
    ) -> Result<Option<User>, StoreError> {
        let row = sql("SELECT user_id FROM account_identities WHERE issuer = $1 AND subject = $2")
            .text(issuer)
            .text(subject)
            .optional(self.0.reader())
            .await?;
        match row {
            Some(row) => self.by_id(row.number(0)?).await,
            None => Ok(None),
        }
    }

    /// Links an account of a provider, in place of an earlier link. The password, the sessions and
    /// the API tokens of the account end: someone else may have created it for an email address
    /// that is not theirs.
    pub async fn link_identity(
        &self,
        by: &Actor,
        issuer: &str,
        subject: &str,
        user_id: i64,
    ) -> Result<(), StoreError> {
        let now = Timestamp::now();
        let mut transaction = self.0.begin().await?;
        sql("UPDATE users SET password_hash = $2, tokens_since = $3 WHERE id = $1")
            .number(user_id)
            .text(UNMATCHED_HASH)
            .time(now)
            .run(&mut *transaction)
            .await?;
        revoke_tokens(&mut transaction, by, user_id, "the account was linked to a provider")
            .await?;
        sql("INSERT INTO account_identities (issuer, subject, user_id, created_at)
             VALUES ($1, $2, $3, $4)
             ON CONFLICT (issuer, subject) DO UPDATE SET user_id = excluded.user_id")
        .text(issuer)
        .text(subject)
        .number(user_id)
        .time(now)
        .run(&mut *transaction)
        .await?;
        transaction.commit().await?;
        self.changed(true).await.map(drop)
    }
}
