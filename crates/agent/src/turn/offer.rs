//! Collects the tools that a model can call in the current step.

use std::{collections::HashMap, sync::Arc};

use savoir_model::ToolDefinition;
use serde_json::json;

use super::{ForkMode, TurnRun};
use crate::{
    allowed_tools::AllowListSnapshot,
    toolset::{Origin, ToolSpec, Toolset},
};

/// All tools that existed before a reply. The calls of the reply are looked up here, so that a tool
/// that one call adds cannot be used by another call of the same reply.
pub(super) struct ToolOffer {
    tools: Vec<OfferedToolEntry>,
    by_name: HashMap<String, usize>,
}

/// A tool and the toolset that runs it.
pub(super) struct OfferedToolEntry {
    pub(super) spec: ToolSpec,
    pub(super) set: Arc<dyn Toolset>,
}

impl ToolOffer {
    pub(super) fn new(run: &TurnRun<'_>) -> Self {
        let mut offer = Self { tools: Vec::new(), by_name: HashMap::new() };
        let builtin_tools: Arc<dyn Toolset> = run.builtin_tools.clone();
        for mut spec in builtin_tools.tools() {
            if spec.definition.name == "use_skill" && run.agent.forks == ForkMode::SeparateAgent {
                let task = "The task for the skill, if it runs in a separate agent";
                let task = json!({"type": "string", "description": task});
                spec.definition.parameters["properties"]["task"] = task;
            }
            offer.add(spec, &builtin_tools);
        }
        let skills = run.skill_tools.clone().map(|tools| tools as Arc<dyn Toolset>);
        for set in run.agent.tools.iter().cloned().chain(skills) {
            for mut spec in set.tools() {
                // Only built-in tools are exempt from allow-lists.
                if spec.origin == Origin::Builtin {
                    spec.origin = Origin::Host;
                }
                offer.add(spec, &set);
            }
        }
        offer
    }

    /// Adds a tool; the first tool of a name wins, so that no toolset can replace a built-in tool.
    fn add(&mut self, spec: ToolSpec, set: &Arc<dyn Toolset>) {
        let name = &spec.definition.name;
        if self.by_name.contains_key(name) {
            tracing::warn!(tool = name, "a second tool of this name is not offered");
            return;
        }
        self.by_name.insert(name.clone(), self.tools.len());
        self.tools.push(OfferedToolEntry { spec, set: Arc::clone(set) });
    }

    /// Returns the definitions of all tools that at least some call could use.
    pub(super) fn definitions(&self, snapshots: &[AllowListSnapshot]) -> Vec<ToolDefinition> {
        self.offered(snapshots).map(|found| found.spec.definition.clone()).collect()
    }

    fn offered<'a>(
        &'a self,
        snapshots: &'a [AllowListSnapshot],
    ) -> impl Iterator<Item = &'a OfferedToolEntry> {
        let is_offered = |found: &&OfferedToolEntry| {
            snapshots.iter().all(|snapshot| snapshot.offers(&found.spec))
        };
        self.tools.iter().filter(is_offered)
    }

    /// Returns the names of the tools that the model can use.
    pub(super) fn names<'a>(
        &'a self,
        snapshots: &'a [AllowListSnapshot],
    ) -> impl Iterator<Item = &'a str> {
        self.offered(snapshots).map(|found| found.spec.definition.name.as_str())
    }

    /// All tools, whatever the allow-lists say.
    pub(super) fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter().map(|entry| &entry.spec)
    }

    /// Finds a tool by its exact name.
    pub(super) fn find(&self, name: &str) -> Option<&OfferedToolEntry> {
        self.by_name.get(name).map(|place| &self.tools[*place])
    }
}

impl OfferedToolEntry {
    pub(super) fn loads_skills(&self) -> bool {
        self.spec.origin == Origin::Builtin && self.spec.definition.name == "use_skill"
    }
}
