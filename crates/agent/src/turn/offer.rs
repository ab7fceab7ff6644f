//! The tools that a model can call in the current step.

use std::{collections::HashMap, sync::Arc};

use savoir_model::ToolDefinition;
use serde_json::json;

use super::{Forks, TurnRun};
use crate::{
    allowed_tools::AllowListSnapshot,
    toolset::{Origin, ToolSpec, Toolset},
};

/// All tools as they are before an answer. Calls of the answer are looked up here, so that what one
/// of them brings along cannot be called by another.
pub(super) struct Offer {
    tools: Vec<Found>,
    by_name: HashMap<String, usize>,
}

/// A tool and who calls it.
pub(super) struct Found {
    pub(super) spec: ToolSpec,
    pub(super) set: Arc<dyn Toolset>,
}

impl Offer {
    pub(super) fn new(run: &TurnRun<'_>) -> Self {
        let mut offer = Self { tools: Vec::new(), by_name: HashMap::new() };
        let builtin_tools: Arc<dyn Toolset> = run.builtin_tools.clone();
        for mut spec in builtin_tools.tools() {
            if spec.definition.name == "use_skill" && run.agent.forks == Forks::SeparateAgent {
                let task = "What it is to be done for, if it is carried out apart";
                let task = json!({"type": "string", "description": task});
                spec.definition.parameters["properties"]["task"] = task;
            }
            offer.add(spec, &builtin_tools);
        }
        let skills = run.skill_tools.clone().map(|tools| tools as Arc<dyn Toolset>);
        for set in run.agent.tools.iter().cloned().chain(skills) {
            for mut spec in set.tools() {
                // Only our own machinery is outside of every list.
                if spec.origin == Origin::Builtin {
                    spec.origin = Origin::Host;
                }
                offer.add(spec, &set);
            }
        }
        offer
    }

    /// The first tool of a name counts, so that nobody takes the place of the machinery.
    fn add(&mut self, spec: ToolSpec, set: &Arc<dyn Toolset>) {
        let name = &spec.definition.name;
        if self.by_name.contains_key(name) {
            tracing::warn!(tool = name, "a second tool of this name is not offered");
            return;
        }
        self.by_name.insert(name.clone(), self.tools.len());
        self.tools.push(Found { spec, set: Arc::clone(set) });
    }

    /// What the model is told of: what some call would be let through of.
    pub(super) fn definitions(&self, snapshots: &[AllowListSnapshot]) -> Vec<ToolDefinition> {
        self.offered(snapshots).map(|found| found.spec.definition.clone()).collect()
    }

    fn offered<'a>(
        &'a self,
        snapshots: &'a [AllowListSnapshot],
    ) -> impl Iterator<Item = &'a Found> {
        let is_offered =
            |found: &&Found| snapshots.iter().all(|snapshot| snapshot.offers(&found.spec));
        self.tools.iter().filter(is_offered)
    }

    /// The names that a model can act on.
    pub(super) fn names<'a>(
        &'a self,
        snapshots: &'a [AllowListSnapshot],
    ) -> impl Iterator<Item = &'a str> {
        self.offered(snapshots).map(|found| found.spec.definition.name.as_str())
    }

    /// The tool of exactly this name.
    pub(super) fn find(&self, name: &str) -> Option<&Found> {
        self.by_name.get(name).map(|place| &self.tools[*place])
    }
}

impl Found {
    /// Whether it loads skills.
    pub(super) fn loads_skills(&self) -> bool {
        self.spec.origin == Origin::Builtin && self.spec.definition.name == "use_skill"
    }
}
