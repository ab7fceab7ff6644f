//! Chat sessions and their messages.

use crate::{
    Database, StoreError, Timestamp,
    sql::{Row, damaged, sql},
};

#[derive(Clone, Copy, Debug)]
pub struct Sessions<'a>(pub(crate) &'a Database);

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    User,
    Assistant,
}

impl Speaker {
    /// `user` or `assistant`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// A chat session without its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Chosen by the client. If another account uses the same id, `@` and the account's number are
    /// appended.
    pub id: String,
    /// The owner.
    pub user_id: Option<i64>,
    /// The knowledge base of the last request.
    pub kb_id: Option<String>,
    /// The workflow of the last request.
    pub workflow_id: Option<String>,
    pub created_at: Timestamp,
    /// When the last message was added.
    pub updated_at: Timestamp,
    pub message_count: u64,
}

impl Session {
    /// Returns the id as the client chose it.
    pub fn own_id(&self) -> &str {
        let (chosen, number) = self.id.split_once('@').unwrap_or((&self.id, ""));
        let owner = self.user_id.map(|id| id.to_string());
        if owner.as_deref() == Some(number) { chosen } else { &self.id }
    }
}

/// Returns the stored id if another account already uses the id. Clients cannot send an `@`.
fn second_id(id: &str, user_id: i64) -> String {
    format!("{id}@{user_id}")
}

/// Reads `id, user_id, kb_id, workflow_id, created_at, updated_at, message_count`.
fn session(row: &Row) -> Result<Session, StoreError> {
    Ok(Session {
        id: row.text(0)?,
        user_id: row.maybe_number(1)?,
        kb_id: row.maybe_text(2)?,
        workflow_id: row.maybe_text(3)?,
        created_at: row.time(4)?,
        updated_at: row.time(5)?,
        message_count: row.count(6)?,
    })
}

/// Reads `speaker, content, said_at, stopped`.
fn message(row: &Row) -> Result<SessionMessage, StoreError> {
    let speaker = match row.text(0)?.as_str() {
        "user" => Speaker::User,
        "assistant" => Speaker::Assistant,
        other => return Err(damaged("the speaker of a message", other)),
    };
    Ok(SessionMessage {
        speaker,
        content: row.text(1)?,
        at: row.time(2)?,
        is_stopped: row.number(3)? != 0,
    })
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    pub session: Session,
    /// The title, or at most 200 characters of the user's first message.
    pub title: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionMessage {
    pub speaker: Speaker,
    pub content: String,
    pub at: Timestamp,
    /// Whether the answer was stopped before its end.
    pub is_stopped: bool,
}

impl Sessions<'_> {
    /// Returns a session by its stored id.
    pub async fn get(&self, id: &str) -> Result<Option<Session>, StoreError> {
        let row =
            sql("SELECT id, user_id, kb_id, workflow_id, created_at, updated_at, message_count
             FROM sessions WHERE id = $1")
            .text(id)
            .optional(self.0.reader())
            .await?;
        row.as_ref().map(session).transpose()
    }

    /// Returns the session with an id that a user chose. Other users may have chosen the same id.
    pub async fn own(&self, id: &str, user_id: i64) -> Result<Option<Session>, StoreError> {
        let row =
            sql("SELECT id, user_id, kb_id, workflow_id, created_at, updated_at, message_count
             FROM sessions WHERE user_id = $3 AND (id = $1 OR id = $2)")
            .text(id)
            .text(&second_id(id, user_id))
            .number(user_id)
            .optional(self.0.reader())
            .await?;
        row.as_ref().map(session).transpose()
    }

    /// Like [`Self::own`], but creates the session if there is none. Users cannot detect that
    /// others use the same id.
    pub async fn ensure(&self, id: &str, user_id: i64) -> Result<Session, StoreError> {
        if let Some(found) = self.own(id, user_id).await? {
            return Ok(found);
        }
        let first = self.begin(id, user_id).await?;
        if first.user_id == Some(user_id) {
            return Ok(first);
        }
        self.begin(&second_id(id, user_id), user_id).await
    }

    async fn begin(&self, id: &str, user_id: i64) -> Result<Session, StoreError> {
        let row = sql("INSERT INTO sessions (id, user_id, created_at, updated_at, message_count)
             VALUES ($1, $2, $3, $3, 0)
             ON CONFLICT (id) DO UPDATE SET updated_at = sessions.updated_at
             RETURNING id, user_id, kb_id, workflow_id, created_at, updated_at, message_count")
        .text(id)
        .number(user_id)
        .time(Timestamp::now())
        .one(self.0.writer())
        .await?;
        session(&row)
    }

    /// Records which knowledge base and workflow were used. `None` leaves the stored value
    /// unchanged.
    pub async fn set_context(
        &self,
        id: &str,
        kb_id: Option<&str>,
        workflow_id: Option<&str>,
    ) -> Result<(), StoreError> {
        sql("UPDATE sessions
             SET kb_id = COALESCE($2, kb_id), workflow_id = COALESCE($3, workflow_id)
             WHERE id = $1")
        .text(id)
        .maybe_text(kb_id)
        .maybe_text(workflow_id)
        .run(self.0.writer())
        .await
        .map(drop)
    }

    /// Appends a message; concurrent appends get distinct positions. Does nothing if the session
    /// was deleted.
    pub async fn append(
        &self,
        id: &str,
        speaker: Speaker,
        content: &str,
    ) -> Result<(), StoreError> {
        self.append_message(id, speaker, content, false).await
    }

    /// Like [`Self::append`], for an answer that was stopped before its end.
    pub async fn append_stopped(&self, id: &str, content: &str) -> Result<(), StoreError> {
        self.append_message(id, Speaker::Assistant, content, true).await
    }

    async fn append_message(
        &self,
        id: &str,
        speaker: Speaker,
        content: &str,
        is_stopped: bool,
    ) -> Result<(), StoreError> {
        let now = Timestamp::now();
        let mut transaction = self.0.begin().await?;
        // This locks the row, so that a concurrent append gets the next number.
        let row = sql("UPDATE sessions SET message_count = message_count + 1, updated_at = $2
             WHERE id = $1 RETURNING message_count")
        .text(id)
        .time(now)
        .optional(&mut *transaction)
        .await?;
        let Some(row) = row else {
            tracing::debug!("a message came after its conversation was removed");
            return Ok(());
        };
        sql("INSERT INTO session_messages (session_id, number, speaker, content, said_at, stopped)
             VALUES ($1, $2, $3, $4, $5, $6)")
        .text(id)
        .number(row.number(0)?)
        .text(speaker.as_str())
        .text(content)
        .time(now)
        .number(i64::from(is_stopped))
        .run(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Returns the newest messages, at most `limit`, in chronological order.
    pub async fn messages(
        &self,
        id: &str,
        limit: Option<u32>,
    ) -> Result<Vec<SessionMessage>, StoreError> {
        let rows = sql("SELECT speaker, content, said_at, stopped FROM session_messages
             WHERE session_id = $1 ORDER BY number DESC LIMIT $2")
        .text(id)
        .number(limit.map_or(i64::MAX, i64::from))
        .all(self.0.reader())
        .await?;
        rows.iter().rev().map(message).collect()
    }

    /// Returns at most `limit` messages before the position `before`, which counts from 0, in
    /// chronological order and with their positions.
    pub async fn messages_before(
        &self,
        id: &str,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<(u64, SessionMessage)>, StoreError> {
        let rows = sql("SELECT speaker, content, said_at, stopped, number FROM session_messages
             WHERE session_id = $1 AND number <= $2 ORDER BY number DESC LIMIT $3")
        .text(id)
        .number(before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX)))
        .number(i64::from(limit))
        .all(self.0.reader())
        .await?;
        let numbered = rows.iter().rev();
        numbered.map(|row| Ok((row.count(4)?.saturating_sub(1), message(row)?))).collect()
    }

    /// Deletes a message and all later ones; positions count from 0. Returns how many are left.
    pub async fn remove_messages(&self, id: &str, from: u64) -> Result<u64, StoreError> {
        let mut transaction = self.0.begin().await?;
        sql("DELETE FROM session_messages WHERE session_id = $1 AND number > $2")
            .text(id)
            .count(from)
            .run(&mut *transaction)
            .await?;
        let row = sql("UPDATE sessions SET updated_at = $2, message_count =
                (SELECT count(*) FROM session_messages WHERE session_id = $1)
             WHERE id = $1 RETURNING message_count")
        .text(id)
        .time(Timestamp::now())
        .optional(&mut *transaction)
        .await?;
        transaction.commit().await?;
        row.map_or(Ok(0), |row| row.count(0))
    }

    /// Sets the title of a session; `None` resets it to the first message.
    pub async fn rename(&self, id: &str, title: Option<&str>) -> Result<bool, StoreError> {
        let renamed = sql("UPDATE sessions SET title = $2 WHERE id = $1")
            .text(id)
            .maybe_text(title)
            .run(self.0.writer())
            .await?;
        Ok(renamed == 1)
    }

    /// Returns the sessions of one user or of all, newest first.
    pub async fn list(&self, user_id: Option<i64>) -> Result<Vec<SessionSummary>, StoreError> {
        let rows =
            sql("SELECT id, user_id, kb_id, workflow_id, created_at, updated_at, message_count,
                COALESCE(title, (SELECT substr(content, 1, 200) FROM session_messages
                 WHERE session_id = sessions.id AND speaker = 'user' ORDER BY number LIMIT 1))
             FROM sessions WHERE (user_id = $1 OR $2 = 1) ORDER BY updated_at DESC, id DESC")
            .number(user_id.unwrap_or_default())
            .number(i64::from(user_id.is_none()))
            .all(self.0.reader())
            .await?;
        rows.iter()
            .map(|row| Ok(SessionSummary { session: session(row)?, title: row.maybe_text(7)? }))
            .collect()
    }

    /// Deletes a session of one user, or of any user if `user_id` is `None`, with its messages.
    /// Returns false if there is none.
    pub async fn delete(&self, id: &str, user_id: Option<i64>) -> Result<bool, StoreError> {
        let removed = sql("DELETE FROM sessions WHERE id = $1 AND (user_id = $2 OR $3 = 1)")
            .text(id)
            .number(user_id.unwrap_or_default())
            .number(i64::from(user_id.is_none()))
            .run(self.0.writer())
            .await?;
        Ok(removed == 1)
    }
}
