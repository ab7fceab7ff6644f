//! Finds skills in agent folders that can be adopted.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use savoir_skill::version::parse_version;

use super::{
    AdoptionCandidate, AdoptionObstacle,
    origin::{self, ExistingSkill, TracedSource},
};
use crate::{
    Agent, Tree,
    install::{
        CheckedSkill, FetchReason, FetchedSkill, InstallFailure, SkillSet,
        folder_contents::FolderContents, real,
    },
    ledger::{LedgerEntry, SkillLocation},
    source::Fetcher,
    trust::TrustStore,
};

/// The skill folders of this skill set, and the agents that use each.
type Folders = BTreeMap<PathBuf, Vec<&'static Agent>>;

impl SkillSet {
    /// Determines which skills of a ledger can be adopted, and where they came from. Without a
    /// fetcher, only local data is used. Changes nothing.
    pub async fn find_adoptable(
        &self,
        entries: &[&LedgerEntry],
        fetcher: Option<&Fetcher>,
        trust: &TrustStore,
    ) -> Result<Vec<AdoptionCandidate>, InstallFailure> {
        let used = self.state()?.manifest.agents.used;
        let folders = self.writing_folders();
        let seen = entries.iter().map(|entry| self.existing(entry, &folders, &used));
        let seen: Vec<Result<ExistingSkill, Box<AdoptionCandidate>>> = seen.collect();
        let existing_skills: Vec<&ExistingSkill> =
            seen.iter().filter_map(|seen| seen.as_ref().ok()).collect();
        let mut origins =
            origin::find_origins(&self.root, &existing_skills, fetcher).await.into_iter();
        let found = seen.iter().map(|seen| match seen {
            Ok(existing) => {
                self.check_candidate(existing, origins.next().unwrap_or_default(), trust)
            }
            Err(skipped) => (**skipped).clone(),
        });
        Ok(found.collect())
    }

    fn writing_folders(&self) -> Folders {
        let mut folders = Folders::new();
        for agent in Agent::ALL {
            if let Ok(folder) =
                self.agent_folder(agent).and_then(|folder| self.resolve_inside(&folder))
            {
                folders.entry(folder).or_default().push(agent);
            }
        }
        folders
    }

    /// Reads the folder of a skill, if it can be adopted.
    fn existing(
        &self,
        entry: &LedgerEntry,
        folders: &Folders,
        used: &[String],
    ) -> Result<ExistingSkill, Box<AdoptionCandidate>> {
        let (name, path) = (entry.name().to_owned(), real(entry.path()));
        let skip = |why: AdoptionObstacle| {
            let (name, path) = (name.clone(), path.clone());
            let (agents, untraced, edited) = (Vec::new(), None, false);
            Box::new(AdoptionCandidate { name, path, agents, untraced, edited, ready: Err(why) })
        };
        let agents = self.agents_of(entry, &path, folders, used).map_err(skip)?;
        let tree = match FolderContents::at(&path) {
            Ok(FolderContents::Tree(tree)) => tree,
            Ok(FolderContents::Unsupported(why)) => {
                return Err(skip(AdoptionObstacle::Unsupported(why)));
            }
            Ok(FolderContents::Absent | FolderContents::Link(_)) => {
                return Err(skip(AdoptionObstacle::Link(path.clone())));
            }
            Err(error) => return Err(skip(AdoptionObstacle::Broken(error.to_string()))),
        };
        let adoption = entry.adoption();
        let adoption =
            adoption.map_err(|error| skip(AdoptionObstacle::Broken(error.to_string())))?;
        let traces = crate::ledger::Traces::of(entry, &adoption.source);
        Ok(ExistingSkill { adoption, path, agents, tree, traces })
    }

    /// Returns the agents to adopt a skill for: of the agents that read its folder, those in
    /// `savoir.toml`, else those in use, else one that stands for the folder.
    fn agents_of(
        &self,
        entry: &LedgerEntry,
        path: &Path,
        folders: &Folders,
        used: &[String],
    ) -> Result<Vec<&'static Agent>, AdoptionObstacle> {
        let is_own = |place: &&SkillLocation| place.link().is_none();
        let own = entry.places().iter().find(is_own);
        let Some(own) = own else { return Err(AdoptionObstacle::Link(path.to_owned())) };
        let direct = path.parent().is_some_and(|parent| folders.contains_key(parent));
        if !direct {
            let reader = own.agents().next();
            let target = reader.and_then(|agent| Some((agent, self.agent_folder(agent).ok()?)));
            return Err(if let Some((agent, folder)) = target {
                AdoptionObstacle::OtherFolder { agent: agent.title, folder }
            } else {
                let parent = path.parent().unwrap_or(own.folder());
                AdoptionObstacle::NotAgentFolder(parent.to_owned())
            });
        }
        let named = |place: &&SkillLocation| {
            let link = place.link().and_then(Path::file_name);
            link.is_none_or(|link| link.to_string_lossy() == entry.name())
        };
        let places = entry.places().iter().filter(named);
        let places: BTreeSet<PathBuf> = places.map(|place| real(place.folder())).collect();
        let chosen = places.iter().filter_map(|place| folders.get(place));
        Ok(chosen.flat_map(|candidates| self.choose_agents(candidates, used)).collect())
    }

    fn choose_agents(&self, candidates: &[&'static Agent], used: &[String]) -> Vec<&'static Agent> {
        let named = |agent: &&&Agent| {
            used.iter().any(|word| agent.id == word || agent.aliases.contains(&word.as_str()))
        };
        let chosen: Vec<&Agent> = candidates.iter().filter(named).copied().collect();
        if !chosen.is_empty() {
            return chosen;
        }
        let here = |agent: &&&Agent| self.agents.is_detected(agent, &self.root);
        let chosen: Vec<&Agent> = candidates.iter().filter(here).copied().collect();
        if !chosen.is_empty() {
            return chosen;
        }
        // `universal` stands for the folder that all agents may read, not for a certain agent.
        let universal = candidates.iter().find(|agent| agent.id == "universal");
        universal.or(candidates.first()).copied().into_iter().collect()
    }

    /// Checks a skill whose origin was traced.
    fn check_candidate(
        &self,
        existing: &ExistingSkill,
        origin: TracedSource,
        trust: &TrustStore,
    ) -> AdoptionCandidate {
        let edited = origin.original.as_ref();
        let edited = edited.is_some_and(|tree| tree.integrity() != existing.tree.integrity());
        let ready = self.check(existing, &origin, trust).map(Box::new);
        AdoptionCandidate {
            name: existing.adoption.name.clone(),
            path: existing.path.clone(),
            agents: existing.agents.clone(),
            untraced: origin.untraced,
            edited,
            ready,
        }
    }

    /// Both the current files and the original must be a skill of this name.
    fn check(
        &self,
        existing: &ExistingSkill,
        origin: &TracedSource,
        trust: &TrustStore,
    ) -> Result<CheckedSkill, AdoptionObstacle> {
        let name = &existing.adoption.name;
        let sources = origin.sources(&self.root, existing);
        let (source, wanted) =
            sources.map_err(|error| AdoptionObstacle::Install(error.to_string()))?;
        let recorded =
            existing.adoption.version.as_deref().and_then(|text| parse_version(text).ok());
        let check = |tree: &Tree| {
            let fetched = FetchedSkill {
                tree: tree.clone(),
                called: name.clone(),
                source: source.clone(),
                why: FetchReason::Requested(wanted.clone()),
                counted: recorded.clone(),
            };
            let ready = CheckedSkill::check(fetched, trust);
            let ready = ready.map_err(|error| AdoptionObstacle::Broken(error.to_string()))?;
            if ready.summary.name == *name {
                Ok(ready)
            } else {
                Err(AdoptionObstacle::Name(ready.summary.name))
            }
        };
        let mut ready = check(&existing.tree)?;
        if let Some(original) = &origin.original {
            // The scan covers the current files, because agents read those and not the original.
            let report = ready.report;
            ready = CheckedSkill { report, ..check(original)? };
        }
        Ok(ready)
    }
}
