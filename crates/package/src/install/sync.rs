//! Plans to install exactly what `savoir.lock` pins.

use super::{
    InstallFailure, InstallPlan, OccupiedFolders, ProjectFiles, SkillSet, UserEdits,
    folder_contents::FolderContents,
    planner::Planner,
    stored_skill::{StoredSkill, StoredSkillKey},
};
use crate::{
    Tree,
    lock::{LockedSkill, LockedSource},
    parallel,
    resolve::IndexError,
};

/// A function that fetches a locked skill again.
pub type Fetch<'a> = dyn FnMut(&str, &LockedSkill) -> Result<Tree, IndexError> + 'a;

impl SkillSet {
    /// Plans to make every folder match the lock. Skills that the store no longer has are fetched
    /// again.
    pub fn sync(
        &self,
        edits: UserEdits,
        fetch: &mut Fetch<'_>,
    ) -> Result<InstallPlan, InstallFailure> {
        let state = self.state()?;
        let store = self.store();
        let skills = &state.lock.skills;
        let kept = parallel::map(skills.iter().collect::<Vec<_>>(), |(name, locked)| {
            StoredSkill::read(&store, name, &locked.integrity)
        });
        let (mut known, mut found) = (Vec::new(), Vec::new());
        // Fetching may take long, so other processes are not blocked by a lock.
        for ((name, locked), kept) in skills.iter().zip(kept) {
            if let Some(kept) = kept? {
                check_name(name, &kept)?;
                known.push((StoredSkillKey::new(name, &locked.integrity), kept));
                continue;
            }
            let tree = match self.installed(name, locked)? {
                Some(tree) => tree,
                None => fetch_locked(name, locked, fetch)?,
            };
            let kept = StoredSkill::new(name, tree)?;
            check_name(name, &kept)?;
            found.push((StoredSkillKey::new(name, &locked.integrity), kept));
        }
        let _held = self.lock_for_planning()?;
        if self.texts()? != state.texts {
            return Err(InstallFailure::Moved(self.root.clone()));
        }
        let mut planner = Planner::new(self, OccupiedFolders::Refuse, edits);
        planner.watched = skills.keys().cloned().collect();
        planner.plan_orphan_removal(&state)?;
        for (known, kept) in known {
            planner.cache_skill(known, kept);
        }
        planner.store_skills(found)?;
        let (manifest, lock) = (state.texts.manifest.clone(), state.lock.clone());
        let mut plan = planner.finish(state, manifest, &lock)?;
        // The content does not change, so do not rewrite files that an older program formatted
        // differently.
        plan.after = ProjectFiles { gaia: plan.after.gaia.take(), ..plan.before.clone() };
        Ok(plan)
    }

    /// Returns the files of a locked skill from the folder of an agent that has them unchanged.
    pub fn installed(
        &self,
        name: &str,
        locked: &LockedSkill,
    ) -> Result<Option<Tree>, InstallFailure> {
        for target in self.targets(name, &locked.agents)? {
            if let FolderContents::Tree(tree) = FolderContents::at(&target.folder)?
                && tree.integrity() == locked.integrity
            {
                return Ok(Some(tree));
            }
        }
        Ok(None)
    }
}

/// Rejects a lock that would put a skill into the folder of another one.
fn check_name(name: &str, kept: &StoredSkill) -> Result<(), InstallFailure> {
    if kept.summary.name == name {
        return Ok(());
    }
    Err(InstallFailure::OtherName { locked: name.to_owned(), written: kept.summary.name.clone() })
}

fn fetch_locked(
    name: &str,
    locked: &LockedSkill,
    fetch: &mut Fetch<'_>,
) -> Result<Tree, InstallFailure> {
    if let LockedSource::Adopted { path, .. } = &locked.source {
        let (name, path) = (name.to_owned(), path.clone());
        return Err(InstallFailure::Adopted { name, path, from: locked.source.adopted_from() });
    }
    let tree = fetch(name, locked);
    let tree = tree.map_err(|error| InstallFailure::Fetch { name: name.to_owned(), error })?;
    let found = tree.integrity();
    if found != locked.integrity {
        let (name, locked) = (name.to_owned(), locked.integrity.clone());
        return Err(InstallFailure::Integrity { name, locked, found });
    }
    Ok(tree)
}
