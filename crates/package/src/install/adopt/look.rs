//! Looks at the skills that others put into the folders of agents.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use savoir_skill::version::parse_version;

use super::{
    Found, Skip,
    trace::{self, Origin, Sight},
};
use crate::{
    Agent, Tree,
    install::{Arrival, InstallFailure, Ready, SkillSet, Why, folders::Seen, real},
    ledger::{Entry, Place},
    source::Fetcher,
    trust::TrustStore,
};

/// The folders to which skills of this shelf are written, and the agents that have them there.
type Folders = BTreeMap<PathBuf, Vec<&'static Agent>>;

impl SkillSet {
    /// Looks at skills of a ledger and finds out where they came from. Without a fetcher nobody is
    /// asked, and only what lies on the disk tells. Nothing is changed.
    pub async fn found(
        &self,
        entries: &[&Entry],
        fetcher: Option<&Fetcher>,
        trust: &TrustStore,
    ) -> Result<Vec<Found>, InstallFailure> {
        let used = self.state()?.manifest.agents.used;
        let folders = self.writing_folders();
        let seen = entries.iter().map(|entry| self.sight(entry, &folders, &used));
        let seen: Vec<Result<Sight, Box<Found>>> = seen.collect();
        let sights: Vec<&Sight> = seen.iter().filter_map(|seen| seen.as_ref().ok()).collect();
        let mut origins = trace::origins(&self.root, &sights, fetcher).await.into_iter();
        let found = seen.iter().map(|seen| match seen {
            Ok(sight) => self.judge(sight, origins.next().unwrap_or_default(), trust),
            Err(skipped) => (**skipped).clone(),
        });
        Ok(found.collect())
    }

    fn writing_folders(&self) -> Folders {
        let mut folders = Folders::new();
        for agent in Agent::ALL {
            if let Ok(folder) = self.agent_folder(agent).and_then(|folder| self.inside(&folder)) {
                folders.entry(folder).or_default().push(agent);
            }
        }
        folders
    }

    /// What lies in the folder of a skill, if it can be adopted.
    fn sight(
        &self,
        entry: &Entry,
        folders: &Folders,
        used: &[String],
    ) -> Result<Sight, Box<Found>> {
        let (name, path) = (entry.name().to_owned(), real(entry.path()));
        let skip = |why: Skip| {
            let (name, path) = (name.clone(), path.clone());
            let (agents, untraced, edited) = (Vec::new(), None, false);
            Box::new(Found { name, path, agents, untraced, edited, ready: Err(why) })
        };
        let agents = self.agents_of(entry, &path, folders, used).map_err(skip)?;
        let tree = match Seen::at(&path) {
            Ok(Seen::Tree(tree)) => tree,
            Ok(Seen::Strange(why)) => return Err(skip(Skip::Strange(why))),
            Ok(Seen::Absent | Seen::Link(_)) => return Err(skip(Skip::Link(path.clone()))),
            Err(error) => return Err(skip(Skip::Broken(error.to_string()))),
        };
        let adoption = entry.adoption();
        let adoption = adoption.map_err(|error| skip(Skip::Broken(error.to_string())))?;
        let traces = crate::ledger::Traces::of(entry, &adoption.source);
        Ok(Sight { adoption, path, agents, tree, traces })
    }

    /// The agents that are to have a skill: of those that look where it lies, the ones that the
    /// project names, else the ones that are in use, else one that stands for the folder.
    fn agents_of(
        &self,
        entry: &Entry,
        path: &Path,
        folders: &Folders,
        used: &[String],
    ) -> Result<Vec<&'static Agent>, Skip> {
        let is_own = |place: &&Place| place.link().is_none();
        let own = entry.places().iter().find(is_own);
        let Some(own) = own else { return Err(Skip::Link(path.to_owned())) };
        let direct = path.parent().is_some_and(|parent| folders.contains_key(parent));
        if !direct {
            let parent = path.parent().unwrap_or(own.folder());
            return Err(Skip::Elsewhere(parent.to_owned()));
        }
        let named = |place: &&Place| {
            let link = place.link().and_then(Path::file_name);
            link.is_none_or(|link| link.to_string_lossy() == entry.name())
        };
        let places = entry.places().iter().filter(named);
        let places: BTreeSet<PathBuf> = places.map(|place| real(place.folder())).collect();
        let chosen = places.iter().filter_map(|place| folders.get(place));
        Ok(chosen.flat_map(|candidates| self.chosen(candidates, used)).collect())
    }

    fn chosen(&self, candidates: &[&'static Agent], used: &[String]) -> Vec<&'static Agent> {
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
        // It means the folder that all may read, and no agent in particular.
        let universal = candidates.iter().find(|agent| agent.id == "universal");
        universal.or(candidates.first()).copied().into_iter().collect()
    }

    /// Checks a skill whose origin is known as far as it can be.
    fn judge(&self, sight: &Sight, origin: Origin, trust: &TrustStore) -> Found {
        let edited = origin.original.as_ref();
        let edited = edited.is_some_and(|tree| tree.integrity() != sight.tree.integrity());
        let ready = self.check(sight, &origin, trust).map(Box::new);
        Found {
            name: sight.adoption.name.clone(),
            path: sight.path.clone(),
            agents: sight.agents.clone(),
            untraced: origin.untraced,
            edited,
            ready,
        }
    }

    /// What lies there must be a skill of its name, and so must be what it is held to.
    fn check(&self, sight: &Sight, origin: &Origin, trust: &TrustStore) -> Result<Ready, Skip> {
        let name = &sight.adoption.name;
        let sources = origin.sources(&self.root, sight);
        let (source, wanted) = sources.map_err(|error| Skip::SkillSet(error.to_string()))?;
        let recorded = sight.adoption.version.as_deref().and_then(|text| parse_version(text).ok());
        let check = |tree: &Tree| {
            let arrival = Arrival {
                tree: tree.clone(),
                called: name.clone(),
                source: source.clone(),
                why: Why::Asked(wanted.clone()),
                counted: recorded.clone(),
            };
            let ready = Ready::check(arrival, trust);
            let ready = ready.map_err(|error| Skip::Broken(error.to_string()))?;
            if ready.summary.name == *name {
                Ok(ready)
            } else {
                Err(Skip::Name(ready.summary.name))
            }
        };
        let mut ready = check(&sight.tree)?;
        if let Some(original) = &origin.original {
            // Agents read what lies there, whatever it once was.
            let report = ready.report;
            ready = Ready { report, ..check(original)? };
        }
        Ok(ready)
    }
}
