//! Compares two versions of a skill: what it may do, which tools it has, and what it costs a model.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::{skill::Skill, tokens::estimate_tokens};

/// The differences between two versions of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkillDifference {
    /// The name of the skill; the new one if it changed.
    pub name: String,
    /// What happened to the skill.
    pub change: Change,
    /// Permissions of the new version that the old one does not have.
    pub added_permissions: Vec<String>,
    /// Permissions that the new version no longer has.
    pub removed_permissions: Vec<String>,
    /// Tools, and tools that it allows an agent to use, that the old version does not have.
    pub added_tools: Vec<String>,
    /// Tools that the new version no longer has.
    pub removed_tools: Vec<String>,
    /// About how many tokens an agent reads at every start: name and description.
    pub description_tokens: BeforeAfter,
    /// About how many tokens an agent reads when it uses the skill: the instructions.
    pub body_tokens: BeforeAfter,
}

/// What happened to a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// There is no old version.
    Added,
    /// There is no new version.
    Removed,
    /// There are both, and they differ.
    Changed,
    /// There are both, and they are equal.
    Unchanged,
}

/// A number of the old version and of the new one; 0 if there is no such version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BeforeAfter {
    /// In the old version.
    pub before: usize,
    /// In the new version.
    pub after: usize,
}

impl SkillDifference {
    /// Compares two versions of a skill; `None` if there is neither.
    pub fn between(old: Option<&Skill>, new: Option<&Skill>) -> Option<Self> {
        let change = match (old, new) {
            (None, None) => return None,
            (None, Some(_)) => Change::Added,
            (Some(_), None) => Change::Removed,
            (Some(old), Some(new)) if is_same(old, new) => Change::Unchanged,
            (Some(_), Some(_)) => Change::Changed,
        };
        let (old_permissions, new_permissions) = (set(old, permissions), set(new, permissions));
        let (old_tools, new_tools) = (set(old, tools), set(new, tools));
        Some(Self {
            name: new.or(old).map(|skill| skill.name.clone()).unwrap_or_default(),
            change,
            added_permissions: new_permissions.difference(&old_permissions).cloned().collect(),
            removed_permissions: old_permissions.difference(&new_permissions).cloned().collect(),
            added_tools: new_tools.difference(&old_tools).cloned().collect(),
            removed_tools: old_tools.difference(&new_tools).cloned().collect(),
            description_tokens: count(old, new, |skill| {
                let when_to_use = skill.when_to_use.as_deref().unwrap_or_default();
                [&skill.name, &*skill.description, when_to_use].map(estimate_tokens).iter().sum()
            }),
            body_tokens: count(old, new, |skill| estimate_tokens(&skill.body)),
        })
    }

    /// Whether the new version may do something that the old one may not.
    pub fn asks_for_more(&self) -> bool {
        !self.added_permissions.is_empty() || !self.added_tools.is_empty()
    }
}

fn is_same(old: &Skill, new: &Skill) -> bool {
    serde_json::to_value(old).ok() == serde_json::to_value(new).ok()
}

fn permissions(skill: &Skill) -> BTreeSet<String> {
    skill.permissions.iter().map(ToString::to_string).collect()
}

fn tools(skill: &Skill) -> BTreeSet<String> {
    let own = skill.tools.iter().map(|tool| tool.name.clone());
    let allowed = skill.policy.allowed_tools.iter().flatten().map(ToString::to_string);
    own.chain(allowed).collect()
}

fn set(skill: Option<&Skill>, of: fn(&Skill) -> BTreeSet<String>) -> BTreeSet<String> {
    skill.map(of).unwrap_or_default()
}

fn count(old: Option<&Skill>, new: Option<&Skill>, of: fn(&Skill) -> usize) -> BeforeAfter {
    BeforeAfter { before: old.map(of).unwrap_or_default(), after: new.map(of).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use savoir_lint::Source;

    use super::*;
    use crate::read;

    fn skill(text: &str) -> Skill {
        read(Source::from_bytes(text.into()).unwrap(), None).skill
    }

    fn gaia(permissions: &str) -> Skill {
        skill(&format!(
            "---\nname: a\nversion: 1.0.0\ndescription: Does a.\npermissions: [{permissions}]\n\
             ---\nText of the skill.\n"
        ))
    }

    #[test]
    fn added_and_removed_permissions_are_listed() {
        let old = gaia("\"filesystem:read:./a/**\"");
        let new = gaia("\"shell:execute:git\"");
        let difference = SkillDifference::between(Some(&old), Some(&new)).unwrap();
        assert_eq!(difference.change, Change::Changed);
        assert_eq!(difference.added_permissions.len(), 1, "{difference:?}");
        assert_eq!(difference.removed_permissions, ["filesystem:read:./a/**"]);
        assert!(difference.asks_for_more());
    }

    #[test]
    fn equal_versions_are_unchanged() {
        let skill = gaia("");
        let difference = SkillDifference::between(Some(&skill), Some(&skill)).unwrap();
        assert_eq!(difference.change, Change::Unchanged);
        assert!(!difference.asks_for_more());
    }

    #[test]
    fn allowed_tools_count_as_tools() {
        let old = skill("---\nname: a\ndescription: Does a.\nallowed-tools: Read\n---\nText.\n");
        let new = skill(
            "---\nname: a\ndescription: Does a.\nallowed-tools: Read Bash(git:*)\n---\nText.\n",
        );
        let difference = SkillDifference::between(Some(&old), Some(&new)).unwrap();
        assert_eq!(difference.added_tools, ["Bash(git:*)"]);
        assert!(difference.removed_tools.is_empty());
    }

    #[test]
    fn new_skill_has_no_tokens_before() {
        let difference = SkillDifference::between(None, Some(&gaia(""))).unwrap();
        assert_eq!(difference.change, Change::Added);
        assert_eq!(difference.body_tokens.before, 0);
        assert!(difference.body_tokens.after > 0 && difference.description_tokens.after > 0);
        assert_eq!(SkillDifference::between(None, None), None);
    }
}
