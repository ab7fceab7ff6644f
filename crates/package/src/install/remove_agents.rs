//! Plans the removal of skills from some agents.

use super::{
    InstallFailure, InstallPlan, OccupiedFolders, SkillSet, UserEdits,
    planner::{Planner, agents_by_skill},
};
use crate::Agent;

impl SkillSet {
    /// Plans to remove skills from some agents. A skill without agents is removed completely.
    pub fn remove_from_agents(
        &self,
        names: &[String],
        agents: &[&Agent],
        edits: UserEdits,
    ) -> Result<InstallPlan, InstallFailure> {
        let _held = self.lock_for_planning()?;
        let state = self.read()?;
        let mut text = state.texts.manifest.clone();
        let mut kept = agents_by_skill(&state.lock);
        let mut planner = Planner::new(self, OccupiedFolders::Refuse, edits);
        for name in names {
            let Some(ids) = kept.get_mut(name) else {
                return Err(InstallFailure::NotInstalled(name.clone()));
            };
            ids.retain(|id| agents.iter().all(|agent| agent.id != id));
            if ids.is_empty() {
                text = self.remove_from_manifest(&state, text, name, names, &mut planner)?;
            }
        }
        let lock = planner.resolve_skills(&state, text.as_deref(), &[], kept)?;
        planner.finish(state, text, &lock)
    }
}
