//! Imports skills and chooses the names under which they are stored.
//!
//! A server has each name once. Whoever brings a skill whose name is another's gets theirs under the
//! next one that is free, and finds it there again when it comes anew.

use std::iter;

use savoir_skill::{
    dialect::personal_agent::{Lifecycle, Provenance, prepare_import},
    name::MAX_NAME_CHARS,
};
use savoir_store::{SkillFacts, StoreError, Timestamp};

use super::{Before, ConflictReason, New, Package, SkillWriter, StoreSkillError, StoredSkill};

/// Names that are tried: `name`, `name-2` and so on.
const MAX_NAME_TRIES: u32 = 100;

/// Who brings a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A person, who knows what they bring.
    Person,
    /// A program: a person has to look at it.
    Program,
}

/// A skill that comes from elsewhere.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) package: Package,
    /// Whose it is to be.
    pub(crate) owner: Option<String>,
    /// Where it comes from, and which one there.
    pub(crate) source: Provenance,
    pub(crate) source_id: String,
}

impl SkillWriter {
    /// Keeps a skill that was brought, in place of the same person's of the same name. If the name is
    /// another's it gets the next one that is free.
    pub async fn import(
        &self,
        package: Package,
        owner: Option<String>,
        by: By,
    ) -> Result<StoredSkill, StoreSkillError> {
        let own = package.name.clone();
        let (source, source_id) = (Provenance::Imported, own.clone());
        let arrival = Arrival { package, owner, source, source_id };
        self.arrive(arrival, move |new| {
            let id = (new.name != own).then(|| own.clone());
            move |before: Option<&Before>| imported(before, id, by)
        })
        .await
    }

    /// Keeps a skill where it came before, else under its own name, else under one that is free.
    /// `decide` is told what would be kept.
    pub(crate) async fn arrive<D>(
        &self,
        arrival: Arrival,
        decide: impl Fn(&New) -> D,
    ) -> Result<StoredSkill, StoreSkillError>
    where
        D: FnOnce(Option<&Before>) -> Result<SkillFacts, ConflictReason> + Send + 'static,
    {
        let known = self.known(&arrival).await?;
        let Arrival { package: Package { name: own, text, resources }, owner, .. } = arrival;
        let under = |name: String| New {
            text: if name == own { text.clone() } else { prepare_import(&text, &name) },
            resources: resources.clone(),
            owner: owner.clone(),
            name,
        };
        if let Some(known) = known {
            let new = under(known);
            let decide = decide(&new);
            return self.settle(new, decide).await;
        }
        let others = (2..=MAX_NAME_TRIES).map(|number| numbered(&own, number));
        for name in iter::once(own.clone()).chain(others) {
            let is_own = name == own;
            let new = under(name);
            let decide = decide(&new);
            match self.settle(new, decide).await {
                Err(StoreSkillError::Taken(_)) => {}
                // Something else of theirs has the number.
                Err(StoreSkillError::Conflict(_)) if !is_own => {}
                done => return done,
            }
        }
        Err(StoreSkillError::Taken(own))
    }

    /// The name that a skill got when it came before, if it is still there.
    async fn known(&self, arrival: &Arrival) -> Result<Option<String>, StoreError> {
        let Arrival { owner, source, source_id, .. } = arrival;
        let facts_of = self.database().skill_facts();
        for name in facts_of.came_from(owner.as_deref(), *source, source_id).await? {
            match self.files().read(&name).await {
                Ok(None) | Err(StoreError::Damaged { .. }) => {}
                Ok(Some(_)) => return Ok(Some(name)),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// A name with a number, which is no longer than names may be.
fn numbered(name: &str, number: u32) -> String {
    let end = format!("-{number}");
    let room = MAX_NAME_CHARS.saturating_sub(end.len());
    let kept: String = name.chars().take(room).collect();
    format!("{}{end}", kept.trim_end_matches('-'))
}

/// What will be known of a skill that was brought. `id` is its own name if it has another here; then
/// only the same one gives way. What was laid aside, or came from elsewhere, is a new one from here on.
fn imported(
    before: Option<&Before>,
    id: Option<String>,
    by: By,
) -> Result<SkillFacts, ConflictReason> {
    let now = Timestamp::now();
    let was = before.map(|before| before.facts.clone());
    if id.is_some() && was.as_ref().is_some_and(|was| was.source_id != id) {
        return Err(ConflictReason::There);
    }
    let was = was.unwrap_or_else(|| SkillFacts::authored(None, now));
    Ok(SkillFacts {
        enabled: was.enabled && by == By::Person,
        source: Provenance::Imported,
        source_id: id,
        source_version: None,
        digest: None,
        active_since: now,
        lifecycle: Lifecycle::Active,
        ..was
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_fits_into_a_name() {
        assert_eq!(numbered("pdf", 2), "pdf-2");
        let long = format!("{}-y", "x".repeat(61));
        assert_eq!(numbered(&"x".repeat(64), 10), format!("{}-10", "x".repeat(61)));
        assert_eq!(numbered(&long, 2), format!("{}-2", "x".repeat(61)));
    }
}
