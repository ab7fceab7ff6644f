//! Taking skills away from some agents.

use super::{
    Edits, InstallFailure, Occupied, Plan, SkillSet,
    planner::{Planner, agents_now},
};
use crate::Agent;

impl SkillSet {
    /// Plans to take skills away from some agents. A skill that no agent has any more is removed.
    pub fn withdraw(
        &self,
        names: &[String],
        agents: &[&Agent],
        edits: Edits,
    ) -> Result<Plan, InstallFailure> {
        let _held = self.steady()?;
        let state = self.read()?;
        let mut text = state.texts.manifest.clone();
        let mut kept = agents_now(&state.lock);
        let mut planner = Planner::new(self, Occupied::Refuse, edits);
        for name in names {
            let Some(ids) = kept.get_mut(name) else {
                return Err(InstallFailure::NotInstalled(name.clone()));
            };
            ids.retain(|id| agents.iter().all(|agent| agent.id != id));
            if ids.is_empty() {
                text = self.let_go(&state, text, name, names, &mut planner)?;
            }
        }
        let lock = planner.choose(&state, text.as_deref(), &[], kept)?;
        planner.finish(state, text, &lock)
    }
}
