//! Writes the audit log entries of an import.

use serde_json::json;

use super::Import;
use crate::{
    DatabaseKind, StoreError, Timestamp,
    registry::{
        Namespace,
        flat_names::placeholders,
        log::{AuditAction, NewAuditEvent, note},
    },
    sql::{built, sql},
};

/// Number of packages whose versions are logged by one statement.
const BATCH_SIZE: usize = 500;

impl Import<'_> {
    /// Writes all log entries, and returns the last sequence number. A restore into an empty
    /// registry imports its own log instead.
    pub(super) async fn note_all(&mut self) -> Result<u64, StoreError> {
        let now = Timestamp::now();
        // Lock the counter: from here on, no other transaction gets a number.
        let row = sql("UPDATE registry_counter SET seq = seq WHERE id = 1 RETURNING seq")
            .one(self.work.connection())
            .await?;
        // In PostgreSQL, other transactions may have published since the import started.
        let is_alone = self.fresh && row.number(0)? == 0;
        // This entry must come first: mirrors that follow the log then read everything again and
        // can skip the other entries.
        let details = json!({"packages": self.done.packages, "versions": self.done.versions});
        let mut events = vec![NewAuditEvent::new(AuditAction::Imported).details(details)];
        if self.has_log {
            return note(self.work.connection(), &self.actor, now, events).await;
        }
        events.append(&mut self.events);
        note(self.work.connection(), &self.actor, now, events).await?;
        self.note_versions(now, is_alone).await?;
        let row = sql("SELECT seq FROM registry_counter WHERE id = 1");
        row.one(self.work.connection()).await?.count(0)
    }

    /// Logs the versions with `INSERT … SELECT`, because there may be millions.
    async fn note_versions(&mut self, now: Timestamp, is_alone: bool) -> Result<(), StoreError> {
        let added = std::mem::take(&mut self.added);
        if is_alone {
            return self.note_versions_of(now, &[]).await;
        }
        for some in added.chunks(BATCH_SIZE) {
            self.note_versions_of(now, some).await?;
        }
        Ok(())
    }

    /// Logs the versions of some packages, or of all if `some` is empty.
    async fn note_versions_of(
        &mut self,
        now: Timestamp,
        some: &[String],
    ) -> Result<(), StoreError> {
        let (object, yes, slash) = match self.work.kind {
            DatabaseKind::Sqlite => ("json_object", "json('true')", "instr(package, '/')"),
            DatabaseKind::Postgres => ("json_build_object", "true", "strpos(package, '/')"),
        };
        let chosen = match some.len() {
            0 => String::new(),
            count => format!("WHERE package IN ({})", placeholders(4, count)),
        };
        let [alone, anonymous] = Namespace::SHARED;
        let text = format!(
            "INSERT INTO registry_log
                (seq, done_at, account, token, act, holding, package, version, details)
             SELECT counter.seq + ROW_NUMBER() OVER (ORDER BY package, sort_key),
                CAST($1 AS BIGINT), CAST($2 AS BIGINT), CAST($3 AS TEXT),
                CASE WHEN withdrawn_at IS NULL THEN '{published}' ELSE '{withdrawn}' END,
                CASE WHEN substr(package, 1, {slash} - 1) IN ('{alone}', '{anonymous}')
                    THEN package ELSE substr(package, 1, {slash} - 1) END,
                package, version,
                CAST({object}('imported', {yes}, 'sha256', sha256, 'integrity', integrity,
                    'account', published_by) AS TEXT)
             FROM versions, (SELECT seq FROM registry_counter WHERE id = 1) counter {chosen}",
            published = AuditAction::Published.as_str(),
            withdrawn = AuditAction::Withdrawn.as_str(),
        );
        let statement = built(text)
            .time(now)
            .maybe_number(self.actor.account)
            .maybe_text(self.actor.token.as_deref());
        let statement = some.iter().fold(statement, |statement, id| statement.text(id));
        let noted = statement.run(self.work.connection()).await?;
        sql("UPDATE registry_counter SET seq = seq + $1 WHERE id = 1")
            .count(noted)
            .run(self.work.connection())
            .await?;
        Ok(())
    }
}
