//! Earlier texts of skills.

use crate::{
    SkillFactsTable, StoreError, Timestamp,
    sql::{Row, new_id, sql},
};

/// Maximum versions of a skill. Older ones are removed.
const MAX_VERSIONS: i64 = 30;

/// A text that a skill had, or has now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillVersion {
    /// A UUID.
    pub id: String,
    /// Who saved it; none if the file was changed without the server.
    pub user_id: Option<i64>,
    pub saved_at: Timestamp,
}

/// Reads `id, user_id, saved_at`.
fn version(row: &Row) -> Result<SkillVersion, StoreError> {
    Ok(SkillVersion { id: row.text(0)?, user_id: row.maybe_number(1)?, saved_at: row.time(2)? })
}

impl SkillFactsTable<'_> {
    /// The versions of a skill, newest first.
    pub async fn versions(&self, skill: &str) -> Result<Vec<SkillVersion>, StoreError> {
        let rows = sql("SELECT id, user_id, saved_at FROM skill_versions
             WHERE skill = $1 ORDER BY saved_at DESC, id DESC")
        .text(skill)
        .all(self.0.reader())
        .await?;
        rows.iter().map(version).collect()
    }

    /// A version of a skill with its text.
    pub async fn version(
        &self,
        skill: &str,
        id: &str,
    ) -> Result<Option<(SkillVersion, String)>, StoreError> {
        let row = sql("SELECT id, user_id, saved_at, text FROM skill_versions
             WHERE skill = $1 AND id = $2")
        .text(skill)
        .text(id)
        .optional(self.0.reader())
        .await?;
        row.map(|row| Ok((version(&row)?, row.text(3)?))).transpose()
    }

    /// Records a text as the newest version of a skill, unless it already is. It is not older than
    /// the version before it, whatever the clocks of processes and the times of files say.
    pub async fn record_version(
        &self,
        skill: &str,
        text: &str,
        user_id: Option<i64>,
        saved_at: Timestamp,
    ) -> Result<(), StoreError> {
        let newest = sql("SELECT text, saved_at FROM skill_versions
             WHERE skill = $1 ORDER BY saved_at DESC, id DESC LIMIT 1")
        .text(skill)
        .optional(self.0.writer())
        .await?;
        let newest = newest.map(|row| Ok::<_, StoreError>((row.text(0)?, row.time(1)?)));
        let saved_at = match newest.transpose()? {
            Some((newest, _)) if newest == text => return Ok(()),
            Some((_, newest_at)) => saved_at.max(newest_at),
            None => saved_at,
        };
        sql("INSERT INTO skill_versions (id, skill, user_id, text, saved_at)
             VALUES ($1, $2, $3, $4, $5)")
        .text(&new_id())
        .text(skill)
        .maybe_number(user_id)
        .text(text)
        .time(saved_at)
        .run(self.0.writer())
        .await?;
        sql("DELETE FROM skill_versions WHERE skill = $1 AND id NOT IN (
                SELECT id FROM skill_versions WHERE skill = $1
                ORDER BY saved_at DESC, id DESC LIMIT $2)")
        .text(skill)
        .number(MAX_VERSIONS)
        .run(self.0.writer())
        .await
        .map(drop)
    }

    /// Removes the versions of a skill.
    pub async fn forget_versions(&self, skill: &str) -> Result<(), StoreError> {
        sql("DELETE FROM skill_versions WHERE skill = $1")
            .text(skill)
            .run(self.0.writer())
            .await
            .map(drop)
    }
}
