//! Updates the tiers of locked skills from the currently trusted keys.

use super::{
    InstallFailure, InstallPlan, OccupiedFolders, PlannedChange, SkillSet, UserEdits,
    checked_skill::attested, planner::Planner, stored_skill::StoredSkill,
};
use crate::trust::{self, Tier, TrustStore};

impl SkillSet {
    /// Plans to update the tiers in the lock to those that the stored signatures attest now, since
    /// keys may have been trusted or distrusted. No file of a skill changes.
    ///
    /// A wrong or revoked signature changes nothing here; the skill is rejected when it is used.
    pub fn refresh_tiers(&self, trust: &TrustStore) -> Result<InstallPlan, InstallFailure> {
        let _held = self.lock_for_planning()?;
        let state = self.read()?;
        let store = self.store();
        let mut lock = state.lock.clone();
        let mut planner = Planner::new(self, OccupiedFolders::Refuse, UserEdits::Keep);
        let mut changed = false;
        for (name, locked) in &mut lock.skills {
            let was = locked.clone();
            let counts = was.tier != Tier::Experimental || was.signature.is_some();
            if !counts && !store.is_signed(&was.integrity) {
                continue;
            }
            let Some(kept) = StoredSkill::read(&store, name, &was.integrity)? else { continue };
            let Ok(found) = attested(&kept.tree, &kept.summary, Some(&was.version), trust) else {
                continue;
            };
            locked.tier = trust::tier(kept.summary.dialect, kept.summary.claimed, found.tier);
            locked.set_attestation(&found);
            let before = (was.tier, was.attested, &was.signature, &was.signer);
            changed |= before != (locked.tier, locked.attested, &locked.signature, &locked.signer);
            if was.tier != locked.tier {
                let signed = found.signed.filter(|signer| signer.role.is_some());
                let by = signed.map(|signer| signer.publisher);
                let (name, from, to) = (name.clone(), was.tier, locked.tier);
                planner.changes.push(PlannedChange::Tier { name, from, to, by });
            }
        }
        planner.adopted = lock.skills.keys().cloned().collect();
        let manifest = state.texts.manifest.clone();
        let mut plan = planner.finish(state, manifest, &lock)?;
        if !changed {
            // The content does not change, so do not rewrite a lock that an older program formatted
            // differently.
            plan.after = plan.before.clone();
        }
        Ok(plan)
    }
}
