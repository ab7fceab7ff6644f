//! Data about skills that is not in their files: whether they are enabled, where they came from,
//! and when they were last used.

use std::collections::HashMap;

use savoir_skill::dialect::personal_agent::{Lifecycle, Provenance};

use crate::{
    Database, DatabaseKind, StoreError, Timestamp,
    sql::{Row, Sql, built, damaged, sql},
};

#[derive(Clone, Copy, Debug)]
pub struct SkillFactsTable<'a>(pub(crate) &'a Database);

/// The stored data about a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFacts {
    /// The owner of the skill when the row was written. If the owner changed since, use
    /// [`SkillFacts::for_owner`].
    pub owner: Option<String>,
    /// Whether the skill is offered to models.
    pub enabled: bool,
    /// Whether the user pinned the skill: it is listed first and does not age.
    pub pinned: bool,
    /// Where the skill came from.
    pub source: Provenance,
    /// Its id at the source.
    pub source_id: Option<String>,
    /// Its version at the source.
    pub source_version: Option<String>,
    /// The digest of the imported content, to detect local changes.
    pub digest: Option<String>,
    pub last_used: Option<Timestamp>,
    /// When it last became active for another reason than being used.
    pub active_since: Timestamp,
    pub lifecycle: Lifecycle,
}

impl SkillFacts {
    /// The defaults for a skill without a row: written here, enabled and active.
    pub fn authored(owner: Option<String>, since: Timestamp) -> Self {
        Self {
            owner,
            enabled: true,
            pinned: false,
            source: Provenance::Authored,
            source_id: None,
            source_version: None,
            digest: None,
            last_used: None,
            active_since: since,
            lifecycle: Lifecycle::Active,
        }
    }

    /// Returns the data that applies to a skill: the stored row, or the defaults if there is none.
    /// A row of a previous owner counts only for `enabled`, so that a skill that awaits approval
    /// stays disabled.
    pub fn for_owner(noted: Option<&Self>, owner: Option<String>, since: Timestamp) -> Self {
        match noted {
            Some(noted) if noted.owner == owner => noted.clone(),
            Some(noted) => Self { enabled: noted.enabled, ..Self::authored(owner, since) },
            None => Self::authored(owner, since),
        }
    }

    /// Whether the skill is offered to models.
    pub fn is_offered(&self) -> bool {
        self.enabled && self.lifecycle.is_enabled()
    }

    /// Whether both say the same about what a user or an import decides: all but the times and
    /// the lifecycle.
    fn is_same_decision(&self, other: &Self) -> bool {
        let Self { last_used, active_since, lifecycle, .. } = *other;
        Self { last_used, active_since, lifecycle, ..self.clone() } == *other
    }

    /// Returns since when the skill is unused, given when its file was last written.
    pub fn idle_since(&self, written: Timestamp) -> Timestamp {
        self.last_used.unwrap_or(written).max(self.active_since).max(written)
    }
}

const COLUMNS: &str =
    "SELECT name, owner, enabled, pinned, source, source_id, source_version, digest,
    last_used, active_since, lifecycle FROM skill_facts";

fn source_word(source: Provenance) -> &'static str {
    match source {
        Provenance::Authored => "authored",
        Provenance::Imported => "imported",
        Provenance::Integration => "integration",
        Provenance::Catalog => "catalog",
    }
}

fn source_of(word: &str) -> Result<Provenance, StoreError> {
    let all =
        [Provenance::Authored, Provenance::Imported, Provenance::Integration, Provenance::Catalog];
    let found = all.into_iter().find(|source| source_word(*source) == word);
    found.ok_or_else(|| damaged("the source of a skill", word))
}

fn lifecycle_word(lifecycle: Lifecycle) -> &'static str {
    match lifecycle {
        Lifecycle::Active => "active",
        Lifecycle::Stale => "stale",
        Lifecycle::Archived => "archived",
    }
}

fn lifecycle_of(word: &str) -> Result<Lifecycle, StoreError> {
    let all = [Lifecycle::Active, Lifecycle::Stale, Lifecycle::Archived];
    let found = all.into_iter().find(|lifecycle| lifecycle_word(*lifecycle) == word);
    found.ok_or_else(|| damaged("the state of a skill", word))
}

fn facts(row: &Row) -> Result<(String, SkillFacts), StoreError> {
    let facts = SkillFacts {
        owner: row.maybe_text(1)?,
        enabled: row.number(2)? != 0,
        pinned: row.number(3)? != 0,
        source: source_of(&row.text(4)?)?,
        source_id: row.maybe_text(5)?,
        source_version: row.maybe_text(6)?,
        digest: row.maybe_text(7)?,
        last_used: row.maybe_time(8)?,
        active_since: row.time(9)?,
        lifecycle: lifecycle_of(&row.text(10)?)?,
    };
    Ok((row.text(0)?, facts))
}

/// Stores the row of a skill, in place of an earlier one.
fn upsert(name: &str, facts: &SkillFacts) -> Sql {
    sql("INSERT INTO skill_facts (name, owner, enabled, pinned, source, source_id,
            source_version, digest, last_used, active_since, lifecycle)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, enabled = excluded.enabled,
            pinned = excluded.pinned, source = excluded.source,
            source_id = excluded.source_id, source_version = excluded.source_version,
            digest = excluded.digest, last_used = excluded.last_used,
            active_since = excluded.active_since, lifecycle = excluded.lifecycle")
    .text(name)
    .maybe_text(facts.owner.as_deref())
    .number(i64::from(facts.enabled))
    .number(i64::from(facts.pinned))
    .text(source_word(facts.source))
    .maybe_text(facts.source_id.as_deref())
    .maybe_text(facts.source_version.as_deref())
    .maybe_text(facts.digest.as_deref())
    .maybe_time(facts.last_used)
    .time(facts.active_since)
    .text(lifecycle_word(facts.lifecycle))
}

impl SkillFactsTable<'_> {
    pub async fn get(&self, name: &str) -> Result<Option<SkillFacts>, StoreError> {
        let text = format!("{COLUMNS} WHERE name = $1");
        let row = built(text).text(name).optional(self.0.reader()).await?;
        Ok(row.as_ref().map(facts).transpose()?.map(|(_, facts)| facts))
    }

    /// Returns the rows of all skills by name.
    pub async fn all(&self) -> Result<HashMap<String, SkillFacts>, StoreError> {
        let rows = built(COLUMNS.to_owned()).all(self.0.reader()).await?;
        rows.iter().map(facts).collect()
    }

    /// Returns the time from which usage was recorded.
    pub async fn recorded_since(&self) -> Result<Timestamp, StoreError> {
        let row = sql("SELECT applied_at FROM schema_versions WHERE version = 6")
            .optional(self.0.reader())
            .await?;
        row.map_or_else(|| Ok(Timestamp::now()), |row| row.time(0))
    }

    /// Replaces the row of a skill.
    pub async fn put(&self, name: &str, facts: &SkillFacts) -> Result<(), StoreError> {
        upsert(name, facts).run(self.0.writer()).await.map(drop)
    }

    /// Replaces the row of a skill, or deletes it, if nobody changed since what a user or an import
    /// decides; else returns false. For a writer that may have lost its lock meanwhile.
    pub async fn replace_if(
        &self,
        name: &str,
        expected: &SkillFacts,
        new: Option<&SkillFacts>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.0.begin().await?;
        let lock = match self.0.kind() {
            DatabaseKind::Sqlite => "",
            DatabaseKind::Postgres => "FOR UPDATE",
        };
        let row = built(format!("{COLUMNS} WHERE name = $1 {lock}"))
            .text(name)
            .optional(&mut *transaction)
            .await?;
        let there = row.as_ref().map(facts).transpose()?.map(|(_, there)| there);
        if !there.is_some_and(|there| there.is_same_decision(expected)) {
            return Ok(false);
        }
        if let Some(new) = new {
            upsert(name, new).run(&mut *transaction).await?;
        } else {
            let delete = sql("DELETE FROM skill_facts WHERE name = $1");
            delete.text(name).run(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// Records that a skill was used, which makes it active again. `otherwise` is stored if there
    /// is no row. If the skill is disabled at the same time, it stays disabled.
    pub async fn used(&self, name: &str, otherwise: &SkillFacts) -> Result<(), StoreError> {
        let now = Timestamp::now();
        let noted = sql("UPDATE skill_facts SET last_used = $2, lifecycle = 'active'
             WHERE name = $1 AND COALESCE(owner, '') = $3")
        .text(name)
        .time(now)
        .text(otherwise.owner.as_deref().unwrap_or_default())
        .run(self.0.writer())
        .await?;
        let facts =
            SkillFacts { last_used: Some(now), lifecycle: Lifecycle::Active, ..otherwise.clone() };
        if noted == 0 && !self.adopt_for_owner(name, &facts).await? {
            self.put_if_absent(name, &facts).await?;
        }
        Ok(())
    }

    /// Replaces the row of a previous owner. Returns false without a change if there is no such row
    /// or the skill is disabled.
    pub async fn adopt_for_owner(
        &self,
        name: &str,
        facts: &SkillFacts,
    ) -> Result<bool, StoreError> {
        let taken = sql("UPDATE skill_facts SET owner = $2, pinned = $3, source = $4,
                source_id = NULL, source_version = NULL, digest = NULL, last_used = $5,
                active_since = $6, lifecycle = $7
             WHERE name = $1 AND enabled = 1 AND COALESCE(owner, '') <> $8")
        .text(name)
        .maybe_text(facts.owner.as_deref())
        .number(i64::from(facts.pinned))
        .text(source_word(facts.source))
        .maybe_time(facts.last_used)
        .time(facts.active_since)
        .text(lifecycle_word(facts.lifecycle))
        .text(facts.owner.as_deref().unwrap_or_default())
        .run(self.0.writer())
        .await?;
        Ok(taken == 1)
    }

    /// Returns the names of a user's skills from one source, sorted.
    pub async fn names_imported_from(
        &self,
        owner: Option<&str>,
        source: Provenance,
        source_id: &str,
    ) -> Result<Vec<String>, StoreError> {
        let rows = sql("SELECT name FROM skill_facts
             WHERE source = $1 AND source_id = $2 AND COALESCE(owner, '') = $3 ORDER BY name")
        .text(source_word(source))
        .text(source_id)
        .text(owner.unwrap_or_default())
        .all(self.0.reader())
        .await?;
        rows.iter().map(|row| row.text(0)).collect()
    }

    /// Changes the lifecycle of a skill, unless it was used since `seen` was read; then it returns
    /// false. If there was no row, all of `aged` is stored.
    pub async fn update_lifecycle(
        &self,
        name: &str,
        seen: Option<&SkillFacts>,
        aged: &SkillFacts,
    ) -> Result<bool, StoreError> {
        let Some(seen) = seen else { return self.put_if_absent(name, aged).await };
        let changed = sql("UPDATE skill_facts SET lifecycle = $2
             WHERE name = $1 AND lifecycle = $3
                AND COALESCE(last_used, 0) = $4 AND active_since = $5 AND pinned = $6")
        .text(name)
        .text(lifecycle_word(aged.lifecycle))
        .text(lifecycle_word(seen.lifecycle))
        .number(seen.last_used.map_or(0, Timestamp::micros))
        .time(seen.active_since)
        .number(i64::from(seen.pinned))
        .run(self.0.writer())
        .await?;
        Ok(changed == 1)
    }

    async fn put_if_absent(&self, name: &str, facts: &SkillFacts) -> Result<bool, StoreError> {
        let inserted = sql("INSERT INTO skill_facts (name, owner, enabled, pinned, source,
                last_used, active_since, lifecycle)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (name) DO NOTHING")
        .text(name)
        .maybe_text(facts.owner.as_deref())
        .number(i64::from(facts.enabled))
        .number(i64::from(facts.pinned))
        .text(source_word(facts.source))
        .maybe_time(facts.last_used)
        .time(facts.active_since)
        .text(lifecycle_word(facts.lifecycle))
        .run(self.0.writer())
        .await?;
        Ok(inserted == 1)
    }

    /// Moves the row of a renamed skill, and replaces a row of the new name.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let mut transaction = self.0.begin().await?;
        sql("DELETE FROM skill_facts WHERE name = $1").text(to).run(&mut *transaction).await?;
        sql("UPDATE skill_facts SET name = $2 WHERE name = $1")
            .text(from)
            .text(to)
            .run(&mut *transaction)
            .await?;
        sql("DELETE FROM skill_versions WHERE skill = $1").text(to).run(&mut *transaction).await?;
        sql("UPDATE skill_versions SET skill = $2 WHERE skill = $1")
            .text(from)
            .text(to)
            .run(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Sets the owner after a skill was transferred.
    pub async fn set_owner(&self, name: &str, owner: Option<&str>) -> Result<(), StoreError> {
        sql("UPDATE skill_facts SET owner = $2 WHERE name = $1")
            .text(name)
            .maybe_text(owner)
            .run(self.0.writer())
            .await
            .map(drop)
    }

    /// Deletes the row of a skill.
    pub async fn forget(&self, name: &str) -> Result<(), StoreError> {
        sql("DELETE FROM skill_facts WHERE name = $1")
            .text(name)
            .run(self.0.writer())
            .await
            .map(drop)
    }
}
