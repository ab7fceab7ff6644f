//! Imports skills and chooses the names under which they are stored.
//!
//! Names are unique per owner. If the name of an imported skill cannot be used, the skill gets the
//! next free name, and a later import of the same skill finds it there again.

use std::iter;

use savoir_scan::{Report, Verdict};
use savoir_skill::{
    dialect::personal_agent::{Lifecycle, Provenance, prepare_import},
    name::MAX_NAME_CHARS,
};
use savoir_store::{Resource, SkillFacts, StoreError, Timestamp};

use super::{
    ConflictReason, Package, ReplacedSkill, SkillToStore, SkillWriter, StoreSkillError,
    StoredSkill, digest,
};
use crate::{auth::Caller, skill_scan};

/// Maximum number of names that are tried: `name`, `name-2` and so on.
const MAX_NAME_TRIES: u32 = 100;

/// Who imports or saves a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportSource {
    /// A logged-in user, who is responsible for the skill.
    Person,
    /// A program with an API token: a user must review the skill before agents use it.
    Program,
}

impl ImportSource {
    pub(crate) fn of(caller: &Caller) -> Self {
        if caller.token.is_some() { Self::Program } else { Self::Person }
    }

    /// Scans what a program saves. Users may save what they want.
    pub(super) async fn scan(
        self,
        text: &str,
        resources: Vec<Resource>,
    ) -> Result<Verdict, StoreSkillError> {
        match self {
            Self::Person => Ok(Verdict::Allow),
            Self::Program => Ok(scan(text.to_owned(), resources).await?.verdict),
        }
    }
}

/// A skill to import.
#[derive(Debug)]
pub(crate) struct ImportedSkill {
    pub(crate) package: Package,
    /// The future owner.
    pub(crate) owner: Option<String>,
    /// The source, and the id of the skill there.
    pub(crate) source: Provenance,
    pub(crate) source_id: String,
}

impl SkillWriter {
    /// Scans an imported skill and stores it. It replaces the owner's skill of the same name. A
    /// skill in which the scan found something is disabled, until a user has reviewed these files.
    /// `registry_version` is `name@version` if the files are a version of the registry.
    pub async fn import(
        &self,
        package: Package,
        owner: Option<String>,
        by: ImportSource,
        registry_version: Option<String>,
    ) -> Result<(StoredSkill, Report), StoreSkillError> {
        let own = package.name.clone();
        let report = scan(package.text.clone(), package.resources.clone()).await?;
        let needs_review = by == ImportSource::Program || report.verdict != Verdict::Allow;
        let (source, source_id) = (Provenance::Imported, own.clone());
        let arrival = ImportedSkill { package, owner, source, source_id };
        let stored = self.store_import(arrival, move |new| {
            let fresh = SkillFacts {
                source: Provenance::Imported,
                source_id: (new.name != own).then(|| own.clone()),
                source_version: registry_version.clone(),
                digest: Some(digest(&new.text, &new.resources)),
                ..SkillFacts::authored(None, Timestamp::now())
            };
            move |before: Option<&ReplacedSkill>| import_facts(before, fresh, by, needs_review)
        });
        Ok((stored.await?, report))
    }

    /// Stores a skill under the name of its last import, else under its own name, else under a free
    /// name. `decide` gets the skill that would be stored.
    pub(crate) async fn store_import<D>(
        &self,
        arrival: ImportedSkill,
        decide: impl Fn(&SkillToStore) -> D,
    ) -> Result<StoredSkill, StoreSkillError>
    where
        D: FnOnce(Option<&ReplacedSkill>) -> Result<SkillFacts, ConflictReason> + Send + 'static,
    {
        let known = self.find_earlier_import(&arrival).await?;
        let ImportedSkill { package: Package { name: own, text, resources, .. }, owner, .. } =
            arrival;
        let under = |name: String| SkillToStore {
            text: if name == own { text.clone() } else { prepare_import(&text, &name) },
            resources: resources.clone(),
            owner: owner.clone(),
            name,
        };
        if let Some(known) = known {
            let new = under(known);
            let decide = decide(&new);
            return self.store(new, decide).await;
        }
        let others = (2..=MAX_NAME_TRIES).map(|number| append_number(&own, number));
        for name in iter::once(own.clone()).chain(others) {
            let is_own = name == own;
            let new = under(name);
            let decide = decide(&new);
            match self.store(new, decide).await {
                Err(StoreSkillError::Taken(_)) => {}
                // The numbered name belongs to another skill of the owner.
                Err(StoreSkillError::Conflict(_)) if !is_own => {}
                done => return done,
            }
        }
        Err(StoreSkillError::Taken(own))
    }

    /// The name under which the skill was imported before, if it still exists.
    async fn find_earlier_import(
        &self,
        arrival: &ImportedSkill,
    ) -> Result<Option<String>, StoreError> {
        let ImportedSkill { owner, source, source_id, .. } = arrival;
        let facts_of = self.database().skill_facts();
        for key in facts_of.names_imported_from(owner.as_deref(), *source, source_id).await? {
            match self.files().read(&key).await {
                Ok(None) | Err(StoreError::Damaged { .. }) => {}
                Ok(Some(file)) => return Ok(Some(file.name().to_owned())),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// A name with a number, shortened to the maximum length of names.
fn append_number(name: &str, number: u32) -> String {
    let end = format!("-{number}");
    let room = MAX_NAME_CHARS.saturating_sub(end.len());
    let kept: String = name.chars().take(room).collect();
    format!("{}{end}", kept.trim_end_matches('-'))
}

async fn scan(text: String, resources: Vec<Resource>) -> Result<Report, StoreSkillError> {
    let scanning = tokio::task::spawn_blocking(move || skill_scan::scan(&text, &resources));
    scanning.await.map_err(|error| StoreSkillError::Store(StoreError::Setting(error.to_string())))
}

/// The metadata of an imported skill. It has a `source_id` if it is stored under another name than
/// its own; then it replaces only a skill with the same id. An archived skill, or one from another
/// source, becomes active and imported. Files that a user enabled stay enabled if that user imports
/// the same ones again.
fn import_facts(
    before: Option<&ReplacedSkill>,
    fresh: SkillFacts,
    by: ImportSource,
    needs_review: bool,
) -> Result<SkillFacts, ConflictReason> {
    let Some(before) = before else {
        return Ok(SkillFacts { enabled: !needs_review, ..fresh });
    };
    let was = &before.facts;
    if fresh.source_id.is_some() && was.source_id != fresh.source_id {
        return Err(ConflictReason::There);
    }
    let is_reviewed = by == ImportSource::Person && before.is_already(&fresh);
    Ok(SkillFacts {
        enabled: was.enabled && (!needs_review || is_reviewed),
        pinned: was.pinned,
        last_used: was.last_used,
        lifecycle: Lifecycle::Active,
        ..fresh
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_fits_into_a_name() {
        assert_eq!(append_number("pdf", 2), "pdf-2");
        let long = format!("{}-y", "x".repeat(61));
        assert_eq!(append_number(&"x".repeat(64), 10), format!("{}-10", "x".repeat(61)));
        assert_eq!(append_number(&long, 2), format!("{}-2", "x".repeat(61)));
    }
}
