//! Adds skills that other tools installed to `savoir.lock`, without moving them.
//!
//! Neither their folders nor the ledgers of the tools that installed them change. If the original
//! of a skill is known, the lock pins the original: later changes by the user then count as edits,
//! and an update is merged into them. If the original is not known, and the files may have been
//! edited, the folder itself is the source, so that no update can overwrite it.

mod candidates;
mod origin;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use thiserror::Error;

use super::{
    CheckedSkill, FetchReason, InstallFailure, InstallPlan, OccupiedFolders, PlannedChange,
    SkillSet, State, UserEdits, deploy_for_agent,
    folder_contents::same,
    planner::Planner,
    stored_skill::{StoredSkill, StoredSkillKey},
};
use crate::{Agent, Tree, manifest::SkillRequirement};

/// A skill that another tool or the user put into the folder of an agent.
#[derive(Clone, Debug)]
pub struct AdoptionCandidate {
    /// The name of the folder.
    pub name: String,
    pub path: PathBuf,
    /// The agents to lock the skill for: those that are in use here and read the folder.
    pub agents: Vec<&'static Agent>,
    /// The reason why the original is not known, if a server was asked and could not answer.
    pub untraced: Option<String>,
    edited: bool,
    ready: Result<Box<CheckedSkill>, AdoptionObstacle>,
}

impl AdoptionCandidate {
    /// Returns the skill to lock, with the questions to ask about it; or the reason why it is not
    /// adopted. The scanner checked the files as they are in the folder.
    pub fn ready(&self) -> Result<&CheckedSkill, &AdoptionObstacle> {
        self.ready.as_deref()
    }

    /// Whether the files differ from the original.
    pub fn is_edited(&self) -> bool {
        self.edited
    }

    fn skill_and_requirement(&self) -> Option<(&CheckedSkill, &SkillRequirement)> {
        let ready = self.ready.as_deref().ok()?;
        match &ready.why {
            FetchReason::Requested(wanted) => Some((ready, wanted)),
            FetchReason::Update | FetchReason::IfNeeded => None,
        }
    }

    fn requirement(&self) -> Option<&SkillRequirement> {
        self.skill_and_requirement().map(|(_, wanted)| wanted)
    }
}

/// The reason why a skill is not adopted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AdoptionObstacle {
    /// The folder cannot be read as a skill.
    #[error("{0}")]
    Broken(String),
    /// The folder has content that Savoir could not restore.
    #[error("{0}; such a folder stays its owner's")]
    Unsupported(String),
    /// The name in SKILL.md differs from the name of the folder.
    #[error("it calls itself `{0}`; rename its folder, or change its name")]
    Name(String),
    /// The folder is not one that Savoir installs to.
    #[error("no skill is installed to {}; move it into the folder of an agent", .0.display())]
    NotAgentFolder(PathBuf),
    /// The agent reads the folder, but Savoir installs the skills of the agent to another one.
    #[error(
        "savoir installs skills of {agent} to {}; move it there, and adopt it again", folder.display()
    )]
    OtherFolder { agent: &'static str, folder: PathBuf },
    /// The skill is a link to a folder that is not in the folder of an agent.
    #[error("it is a link to {}; install it from there instead", .0.display())]
    Link(PathBuf),
    /// The skill is already in `savoir.lock`.
    #[error("it is in savoir.lock already")]
    Locked,
    /// Another skill of that name is in `savoir.lock`.
    #[error("another `{0}` is in savoir.lock already; remove that one first, or rename this one")]
    NameTaken(String),
    /// `savoir.toml` requires a skill of that name from another source.
    #[error("savoir.toml asks for a `{0}` from elsewhere; take that out, or run savoir sync")]
    OtherSource(String),
    /// There are two skills of that name with different files or sources.
    #[error("it is not the same as {}; adopt one of them, and remove the other", .0.display())]
    Differs(PathBuf),
    /// The skill would have to be converted to the dialect of the agent.
    #[error(
        "{agent} does not understand how it is written; move it out of this folder and install it \
         from there, which converts it"
    )]
    OtherDialect { agent: &'static str },
    /// The skill depends on a skill that is neither installed nor adopted.
    #[error("it needs {0}, which is neither installed nor adopted; install that first")]
    MissingDependency(String),
    /// The skill set cannot install the skill.
    #[error("{0}")]
    Install(String),
}

impl AdoptionObstacle {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Broken(_) => "broken",
            Self::Unsupported(_) => "unsupported",
            Self::Name(_) => "name",
            Self::NotAgentFolder(_) => "not-agent-folder",
            Self::OtherFolder { .. } => "other-folder",
            Self::Link(_) => "link",
            Self::Locked => "locked",
            Self::NameTaken(_) => "taken",
            Self::OtherSource(_) => "other-source",
            Self::Differs(_) => "differs",
            Self::OtherDialect { .. } => "other-dialect",
            Self::MissingDependency(_) => "missing-dependency",
            Self::Install(_) => "not-installable",
        }
    }
}

impl SkillSet {
    /// Plans to add skills to `savoir.toml` and `savoir.lock` without changing their files. Skills
    /// that cannot be adopted are reported as [`PlannedChange::Skipped`], and do not prevent the
    /// others.
    pub fn adopt(&self, found: &[AdoptionCandidate]) -> Result<InstallPlan, InstallFailure> {
        let _held = self.lock_for_planning()?;
        let state = self.read()?;
        let mut planner = Planner::new(self, OccupiedFolders::Refuse, UserEdits::Keep);
        let adoptable = self.partition_candidates(&state, found, &mut planner)?;
        let mut lock = state.lock.clone();
        let (mut asked, mut kept) = (BTreeMap::new(), Vec::new());
        for name in dependency_order(&adoptable) {
            let copies = &adoptable[name];
            let Some((ready, wanted)) = copies.first().and_then(|one| one.skill_and_requirement())
            else {
                continue;
            };
            asked.insert(name.clone(), wanted.clone());
            let mut locked = ready.locked();
            locked.agents = agent_ids(copies);
            kept.push((StoredSkillKey::new(name, &locked.integrity), StoredSkill::of(ready)));
            planner.changes.push(PlannedChange::Adopted {
                name: name.clone(),
                version: locked.version.clone(),
                agents: locked.agents.clone(),
                source: locked.source.clone(),
            });
            lock.order.push(name.clone());
            lock.skills.insert(name.clone(), locked);
        }
        planner.store_skills(kept)?;
        let text = self.with_skills(&state, &asked)?;
        planner.adopted = adoptable.keys().cloned().collect();
        let nothing = adoptable.is_empty();
        let mut plan = planner.finish(state, text, &lock)?;
        if nothing {
            // Nothing was adopted, so do not rewrite a lock that an older program formatted
            // differently.
            plan.after = plan.before.clone();
        }
        Ok(plan)
    }

    /// Returns the skills that can be adopted, by name; several of one name are copies of each
    /// other. Reports the others as skipped.
    fn partition_candidates<'a>(
        &self,
        state: &State,
        found: &'a [AdoptionCandidate],
        planner: &mut Planner<'_>,
    ) -> Result<BTreeMap<String, Vec<&'a AdoptionCandidate>>, InstallFailure> {
        let mut skipped = Vec::new();
        let mut adoptable: BTreeMap<String, Vec<&AdoptionCandidate>> = BTreeMap::new();
        for one in found {
            match self.find_obstacle(state, one)? {
                Some(why) => skipped.push((one, why)),
                None => adoptable.entry(one.name.clone()).or_default().push(one),
            }
        }
        for copies in adoptable.values_mut() {
            if let Some((one, other)) = find_differing_copies(copies) {
                let other_of =
                    |copy: &AdoptionCandidate| if copy.path == one { &other } else { &one };
                skipped.extend(
                    copies
                        .iter()
                        .map(|copy| (*copy, AdoptionObstacle::Differs(other_of(copy).clone()))),
                );
                copies.clear();
            }
        }
        adoptable.retain(|_, copies| !copies.is_empty());
        while let Some((name, need)) = find_unmet_dependency(state, &adoptable) {
            let copies = adoptable.remove(&name).unwrap_or_default();
            skipped.extend(
                copies
                    .into_iter()
                    .map(|copy| (copy, AdoptionObstacle::MissingDependency(need.clone()))),
            );
        }
        skipped.sort_by(|(one, _), (other, _)| one.path.cmp(&other.path));
        let reported = skipped.into_iter();
        let reported =
            reported.map(|(one, why)| PlannedChange::Skipped { folder: one.path.clone(), why });
        planner.changes.extend(reported);
        Ok(adoptable)
    }

    /// Returns the reason why a skill cannot be adopted, without regard to the other candidates.
    fn find_obstacle(
        &self,
        state: &State,
        found: &AdoptionCandidate,
    ) -> Result<Option<AdoptionObstacle>, InstallFailure> {
        let ready = match found.ready() {
            Ok(ready) => ready,
            Err(why) => return Ok(Some(why.clone())),
        };
        if let Some(locked) = state.lock.skills.get(&found.name) {
            let targets = self.targets(&found.name, &locked.agents)?;
            let own = targets.iter().any(|target| target.folder == found.path);
            return Ok(Some(if own {
                AdoptionObstacle::Locked
            } else {
                AdoptionObstacle::NameTaken(found.name.clone())
            }));
        }
        let asked = state.manifest.skills.get(&found.name);
        if asked.is_some_and(|asked| Some(asked) != found.requirement()) {
            return Ok(Some(AdoptionObstacle::OtherSource(found.name.clone())));
        }
        let ids: Vec<String> = found.agents.iter().map(|agent| agent.id.to_owned()).collect();
        let targets = self.targets(&found.name, &ids)?;
        if targets.iter().all(|target| target.folder != found.path) {
            let folder = found.path.parent().unwrap_or(&found.path);
            return Ok(Some(AdoptionObstacle::NotAgentFolder(folder.to_owned())));
        }
        for target in targets {
            let there = |put: &Tree| same(put, &ready.tree);
            let put = deploy_for_agent(&ready.tree, &ready.summary, target.agent);
            if !put.is_ok_and(|put| there(&put.tree)) {
                return Ok(Some(AdoptionObstacle::OtherDialect { agent: target.agent.title }));
            }
        }
        Ok(None)
    }
}

fn agent_ids(copies: &[&AdoptionCandidate]) -> Vec<String> {
    let agents = copies.iter().flat_map(|copy| &copy.agents);
    let ids: BTreeSet<String> = agents.map(|agent| agent.id.to_owned()).collect();
    ids.into_iter().collect()
}

/// Sorts names so that each follows its dependencies. Skills in a dependency cycle stay in order.
fn dependency_order<'a>(
    adoptable: &'a BTreeMap<String, Vec<&AdoptionCandidate>>,
) -> Vec<&'a String> {
    let (mut order, mut left): (Vec<&String>, Vec<&String>) =
        (Vec::new(), adoptable.keys().collect());
    while !left.is_empty() {
        let waits = |name: &&String| {
            let ready = adoptable[*name].first().and_then(|one| one.ready().ok());
            let mut needs = ready.into_iter().flat_map(|ready| &ready.summary.needs);
            needs.any(|need| need.name != **name && left.iter().any(|other| **other == need.name))
        };
        let next = left.iter().position(|name| !waits(name)).unwrap_or(0);
        order.push(left.remove(next));
    }
    order
}

/// Returns two copies that do not have the same original.
fn find_differing_copies(copies: &[&AdoptionCandidate]) -> Option<(PathBuf, PathBuf)> {
    let (first, others) = copies.split_first()?;
    let integrity =
        |copy: &AdoptionCandidate| copy.ready().ok().map(|ready| ready.tree.integrity());
    let of_first = integrity(first);
    // Each copy may have its own folder as its source.
    let own =
        |copy: &AdoptionCandidate| matches!(copy.requirement(), Some(SkillRequirement::Path(_)));
    let same_source = |copy: &AdoptionCandidate| {
        copy.requirement() == first.requirement() || (own(first) && own(copy))
    };
    let other = others.iter().find(|copy| integrity(copy) != of_first || !same_source(copy))?;
    Some((first.path.clone(), other.path.clone()))
}

/// Returns a skill with an unmet dependency, and that dependency.
fn find_unmet_dependency(
    state: &State,
    adoptable: &BTreeMap<String, Vec<&AdoptionCandidate>>,
) -> Option<(String, String)> {
    let version = |name: &str| {
        let adopted = adoptable.get(name).and_then(|copies| copies.first());
        let adopted = adopted.and_then(|copy| Some(&copy.ready().ok()?.summary.version));
        adopted.or_else(|| state.lock.skills.get(name).map(|locked| &locked.version))
    };
    adoptable.iter().find_map(|(name, copies)| {
        let needs = &copies.first()?.ready().ok()?.summary.needs;
        let unmet = needs
            .iter()
            .find(|need| !version(&need.name).is_some_and(|version| need.range.matches(version)))?;
        Some((name.clone(), unmet.to_string()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, needs: &str) -> AdoptionCandidate {
        let text = format!(
            "---\nname: {name}\nversion: 1.2.0\ndescription: Does {name}. Use in tests.\nauthor: \
             acme\nlicense: MIT\npermissions: [network:read:x.example]\nrequirements:\n  skills: \
             [{needs}]\nsecurity_tier: community\ntools:\n  - name: find_it\n    description: \
             Finds something\n    parameters: {{}}\n    returns: {{type: object}}\n---\nDo.\n"
        );
        let mut tree = Tree::default();
        let tool = "def find_it() -> dict:\n    return {}\n".to_owned();
        for (path, text) in [("SKILL.md", text), ("tools.py", tool)] {
            let file = crate::File { bytes: text.into_bytes(), executable: false };
            tree.add(path.into(), file).unwrap();
        }
        let (source, why) = ("path+./x".parse().unwrap(), FetchReason::IfNeeded);
        let fetched =
            crate::install::FetchedSkill { tree, called: name.into(), source, why, counted: None };
        let ready = CheckedSkill::check(fetched, &crate::trust::TrustStore::default()).unwrap();
        let (name, path) = (name.to_owned(), PathBuf::from(name));
        let (agents, untraced, edited) = (Vec::new(), None, false);
        AdoptionCandidate { name, path, agents, untraced, edited, ready: Ok(Box::new(ready)) }
    }

    #[test]
    fn skill_is_adopted_only_with_its_dependencies() {
        let place = tempfile::tempdir().unwrap();
        let agents = crate::Agents::new(place.path(), |_| None);
        let scope = crate::manifest::Scope::Project;
        let skill_set = SkillSet::new(place.path(), scope, agents, place.path().join("data"));
        let state = skill_set.state().unwrap();
        let unmet = |all: &[AdoptionCandidate]| {
            find_unmet_dependency(
                &state,
                &all.iter().map(|one| (one.name.clone(), vec![one])).collect(),
            )
        };
        let top = || found("top", "{name: base, version: \"^1.0\"}");
        let need = unmet(&[top()]).unwrap();
        assert!(need.0 == "top" && need.1.contains("base"), "{need:?}");
        assert_eq!(unmet(&[top(), found("base", "")]), None);
        let all = [top(), found("base", ""), found("alone", "")];
        let all = all.iter().map(|one| (one.name.clone(), vec![one])).collect();
        assert_eq!(dependency_order(&all), ["alone", "base", "top"]);
        let picky = found("top", "{name: base, version: \"^2.0\"}");
        assert!(unmet(&[picky, found("base", "")]).is_some());
    }

    #[test]
    fn every_obstacle_has_code_and_hint() {
        let path = || PathBuf::from("/x/pdf");
        let all = [
            AdoptionObstacle::Broken("there is no SKILL.md".into()),
            AdoptionObstacle::Unsupported("it is a repository".into()),
            AdoptionObstacle::Name("other".into()),
            AdoptionObstacle::NotAgentFolder(path()),
            AdoptionObstacle::OtherFolder { agent: "Cursor", folder: path() },
            AdoptionObstacle::Link(path()),
            AdoptionObstacle::Locked,
            AdoptionObstacle::NameTaken("pdf".into()),
            AdoptionObstacle::OtherSource("pdf".into()),
            AdoptionObstacle::Differs(path()),
            AdoptionObstacle::OtherDialect { agent: "Codex" },
            AdoptionObstacle::MissingDependency("base@^1".into()),
            AdoptionObstacle::Install("no".into()),
        ];
        let codes: BTreeSet<&str> = all.iter().map(AdoptionObstacle::code).collect();
        assert_eq!(codes.len(), all.len());
        for skip in all {
            let text = skip.to_string();
            assert!(!text.is_empty() && !text.ends_with('.'), "{text}");
        }
    }
}
