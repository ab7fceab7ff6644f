//! Archives skills that are no longer used.

use savoir_skill::dialect::{
    agent_flow::{Purpose, StoredSkillFile},
    personal_agent::CurationInfo,
};
use savoir_store::{SkillFacts, StoreError, Timestamp};

use super::SkillWriter;

const SECONDS_PER_DAY: i64 = 24 * 60 * 60;

impl SkillWriter {
    /// Checks all skills once: authored skills that nobody used for a month become stale, after
    /// three months archived. Returns the number of changed skills. Does nothing if another process
    /// is doing this.
    pub async fn archive_unused_skills(&self, now: Timestamp) -> Result<u64, StoreError> {
        match self.database().leases().hold("skill curator").await? {
            Some(lease) => lease.during(self.archive_unused(now)).await.unwrap_or(Ok(0)),
            None => Ok(0),
        }
    }

    async fn archive_unused(&self, now: Timestamp) -> Result<u64, StoreError> {
        let facts_of = self.database().skill_facts();
        let (noted, begun) = (facts_of.all().await?, facts_of.recorded_since().await?);
        let mut changed = 0;
        for file in self.files().list().await? {
            let Ok(stored) = StoredSkillFile::read(file.name(), &file.text, Purpose::Load) else {
                continue;
            };
            let seen = noted.get(&file.key);
            // The server did not always record uses, so earlier ones are unknown.
            let facts = SkillFacts::for_owner(seen, stored.owner, begun);
            let idle = now.seconds().saturating_sub(facts.idle_since(file.updated_at).seconds());
            let days = u32::try_from(idle / SECONDS_PER_DAY).unwrap_or(0);
            let curation = CurationInfo { provenance: facts.source, pinned: facts.pinned };
            let lifecycle = curation.state_after_idle(days);
            if lifecycle == facts.lifecycle {
                continue;
            }
            let aged = SkillFacts { lifecycle, ..facts.clone() };
            let known = seen.filter(|seen| seen.owner == facts.owner);
            if seen.is_some() && known.is_none() {
                // The stored metadata belongs to a deleted skill, or to another owner.
                changed += u64::from(facts_of.adopt_for_owner(&file.key, &aged).await?);
            } else if facts_of.update_lifecycle(&file.key, known, &aged).await? {
                changed += 1;
            }
        }
        Ok(changed)
    }
}
