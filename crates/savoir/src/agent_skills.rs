//! The skills of this machine as a library for an agent. Skills are searched on first use,
//! refreshed on later use, read one by one, and run from their current files.

mod snapshot;

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use clap_complete::engine::ArgValueCandidates;
use futures::future::BoxFuture;
use savoir_agent::{
    library::{Draft, FolderLibrary, Library, LibraryError, Opened, SummaryCache},
    preamble::{Candidate, UnusableSkill},
    skill_tools::SkillLoader,
    usage::SkillUsageFile,
};
use savoir_engine::{Home, RunError, approval::Trust, loaded_skill::LoadedSkill};
use savoir_package::{Agent, agents::UnknownAgent, ledger::LedgerEntry};
use savoir_server::{ReadFolder, mcp::SkillFiles};

use self::snapshot::SkillsSnapshot;
use crate::{
    agent_settings::DisabledSkills,
    completion, discover,
    error::CommandError,
    installed::{Installed, named_project},
    load,
    lookup::sort_by_precedence,
    trust,
};

/// Folder for drafts in the data folder of the user, where no agent looks for skills.
const DRAFTS: &str = "drafts";

/// Which skills an agent gets.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct AgentSkillArgs {
    /// Skill folders, or their parent folders, instead of the installed skills
    #[arg(value_name = "PATHS")]
    pub(crate) paths: Vec<PathBuf>,
    /// Only skills that one of these agents sees, for example claude-code,codex
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = agent, add = ArgValueCandidates::new(completion::agents), conflicts_with = "paths")]
    pub(crate) agent: Vec<&'static Agent>,
    /// The project [default: the nearest folder above with savoir.toml, a lock or .git]
    #[arg(long, value_name = "DIR", conflicts_with = "paths")]
    pub(crate) project: Option<PathBuf>,
}

fn agent(word: &str) -> Result<&'static Agent, UnknownAgent> {
    Agent::by_id(word)
}

/// The skills of this machine. They are not searched before the first use.
#[derive(Debug)]
pub(crate) struct AgentSkills {
    which: AgentSkillArgs,
    home: Home,
    trust: Trust,
    search_frequency: SearchFrequency,
    found: Mutex<Option<SkillsSnapshot>>,
    /// Warnings that were already logged, to log each only once.
    warned: Mutex<HashSet<String>>,
}

/// How often skills are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchFrequency {
    /// Once, so that an agent that can write files cannot add skills for itself.
    Once,
    /// On every use.
    EveryUse,
}

impl AgentSkills {
    /// Checks the arguments; skills are searched later.
    pub(crate) fn new(which: AgentSkillArgs, home: Home) -> Result<Self, CommandError> {
        for path in &which.paths {
            if !path.is_dir() {
                return Err(CommandError::input(format!("{} is not a folder", path.display()))
                    .hint("pass folders with skills, or none to use the installed skills"));
            }
        }
        if let Some(project) = &which.project {
            named_project(project)?;
        }
        Ok(Self {
            which,
            home,
            trust: Trust::User,
            search_frequency: SearchFrequency::Once,
            found: Mutex::default(),
            warned: Mutex::default(),
        })
    }

    /// Treats all skills as untrusted.
    pub(crate) fn untrusted(self) -> Self {
        Self { trust: Trust::Untrusted, ..self }
    }

    /// Includes skills that are added later.
    pub(crate) fn with_later_skills(self) -> Self {
        Self { search_frequency: SearchFrequency::EveryUse, ..self }
    }

    /// The skills by name, refreshed if necessary.
    pub(crate) fn folders(&self) -> Result<Arc<FolderLibrary>, LibraryError> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let (SearchFrequency::Once, Some(snapshot)) = (self.search_frequency, &*found) {
            return Ok(Arc::clone(&snapshot.folders));
        }
        let snapshot = SkillsSnapshot::refresh(
            found.take(),
            || self.skill_folders(),
            |places| self.open_folders(places),
        )?;
        let folders = Arc::clone(&snapshot.folders);
        *found = Some(snapshot);
        Ok(folders)
    }

    fn skill_folders(&self) -> Result<Vec<(String, PathBuf)>, LibraryError> {
        if self.which.paths.is_empty() {
            self.installed().map_err(|error| library_error(&error))
        } else {
            Ok(find_skills_below(&self.which.paths, &|warning| self.warn(warning)))
        }
    }

    fn warn(&self, warning: String) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if !warned.contains(&warning) {
            tracing::warn!("{warning}");
            warned.insert(warning);
        }
    }

    fn open_folders(&self, places: Vec<(String, PathBuf)>) -> Result<FolderLibrary, LibraryError> {
        let usage = SkillUsageFile::open(&self.home).map_err(|error| library_error(&error))?;
        let drafts = self.home.data_folder(DRAFTS).map_err(|error| library_error(&error))?;
        let cache = SummaryCache::of(&self.home).ok();
        Ok(FolderLibrary::new(places, Some(usage), drafts).with_summary_cache(cache))
    }

    /// Installed skills, in the order in which names are looked up.
    fn installed(&self) -> Result<Vec<(String, PathBuf)>, CommandError> {
        let installed = Installed::open(self.which.project.as_deref())?;
        for warning in installed.warnings() {
            self.warn(warning);
        }
        let off = DisabledSkills::read(&self.which.agent, &installed, &self.home)?;
        let takes = |entry: &&LedgerEntry| off.offers(&self.which.agent, entry);
        let entries = installed.ledger.entries().iter().filter(takes).collect();
        let found = sort_by_precedence(entries, &installed).into_iter();
        Ok(found.map(|entry| (entry.name().to_owned(), entry.path().to_owned())).collect())
    }

    fn load_by_name(&self, name: &str) -> Result<LoadedSkill, RunError> {
        let folders = self.folders().map_err(|error| run_error(&error))?;
        let folder = folders.skill_folders().find(|(known, _)| *known == name);
        let (_, folder) = folder.ok_or_else(|| {
            RunError::call("no-skill", format!("there is no skill `{name}`"))
                .with_hint("find skills with search_skills")
        })?;
        load_from_folder(folder, self.trust)
    }
}

/// Reads skills as `savoir run` does, for a server.
#[derive(Debug)]
pub(crate) struct DiskSkillReader;

impl ReadFolder for DiskSkillReader {
    fn read(&self, folder: &Path) -> Result<LoadedSkill, RunError> {
        load_from_folder(folder, Trust::User)
    }
}

/// Reads the skill in a folder and its signature, as `savoir run` does.
fn load_from_folder(folder: &Path, how: Trust) -> Result<LoadedSkill, RunError> {
    let call_error = |code: &'static str| {
        move |error: CommandError| {
            let hint = error.hints().first().cloned().unwrap_or_default();
            RunError::call(code, error).with_hint(hint)
        }
    };
    let loaded = load::load(folder, None).map_err(call_error("skill-unreadable"))?;
    load::require_usable(&loaded).map_err(call_error("skill-invalid"))?;
    let believed = trust::trust_store_for_run().map_err(call_error("keys-unreadable"))?;
    let loaded_skill = trust::load_skill(&loaded, how, &believed)?;
    trust::refuse_forbidden(&loaded_skill, None).map_err(|error| {
        let hint = error.hints().first().cloned().unwrap_or_default();
        RunError::refused("policy", error).with_hint(hint)
    })?;
    Ok(loaded_skill)
}

fn library_error(error: &dyn std::fmt::Display) -> LibraryError {
    LibraryError::Failed { reason: error.to_string() }
}

fn run_error(error: &LibraryError) -> RunError {
    RunError::cannot_start(error.code(), error)
}

/// The skills below some folders, by name.
fn find_skills_below(paths: &[PathBuf], warn: &dyn Fn(String)) -> Vec<(String, PathBuf)> {
    let (mut places, mut names) = (Vec::new(), HashSet::new());
    discover::walk(paths, &mut |candidate| {
        match candidate {
            discover::Candidate::Skill { path, folder: Some(folder), .. } => {
                let name = folder.name().unwrap_or_default().to_owned();
                if names.insert(name.clone()) {
                    places.push((name, folder.root().to_owned()));
                } else {
                    warn(format!("{}: another skill has the same name", path.display()));
                }
            }
            discover::Candidate::Skill { .. } => {}
            discover::Candidate::Unreadable { path, problem } => {
                warn(format!("{}: {problem}", path.display()));
            }
            discover::Candidate::Empty { path } => {
                warn(format!("{}: no skill below this folder", path.display()));
            }
        }
        true
    });
    places
}

impl SkillLoader for AgentSkills {
    fn load_skill(&self, skill: &str) -> Result<LoadedSkill, RunError> {
        self.load_by_name(skill)
    }
}

impl Library for AgentSkills {
    fn skills(&self) -> BoxFuture<'_, Result<Arc<[Candidate]>, LibraryError>> {
        Box::pin(async { self.folders()?.skills().await })
    }

    fn unusable(&self) -> BoxFuture<'_, Result<Vec<UnusableSkill>, LibraryError>> {
        Box::pin(async { self.folders()?.unusable().await })
    }

    fn open<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Opened>, LibraryError>> {
        Box::pin(async move { self.folders()?.open(name).await })
    }

    fn resources<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<String>, LibraryError>> {
        Box::pin(async move { self.folders()?.resources(name).await })
    }

    fn choices(&self) -> BoxFuture<'_, Result<Vec<String>, LibraryError>> {
        Box::pin(async { self.folders()?.choices().await })
    }

    fn choose<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Opened>, LibraryError>> {
        Box::pin(async move { self.folders()?.choose(name).await })
    }

    fn read<'a>(
        &'a self,
        name: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, Result<String, LibraryError>> {
        Box::pin(async move { self.folders()?.read(name, path).await })
    }

    fn used<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Ok(folders) = self.folders() {
                folders.used(name).await;
            }
        })
    }

    fn edition(&self) -> Option<u64> {
        if self.search_frequency == SearchFrequency::Once {
            return None;
        }
        let was_searched = self.found.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        // Do not search before the first use. On an error, the previous skills stay.
        if was_searched {
            let _ = self.folders();
        }
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        Some(found.as_ref().map_or(0, |snapshot| snapshot.revision))
    }

    fn save<'a>(&'a self, draft: &'a Draft) -> BoxFuture<'a, Result<String, LibraryError>> {
        Box::pin(async move { self.folders()?.save(draft).await })
    }
}

impl SkillFiles for AgentSkills {
    fn list<'a>(
        &'a self,
        skill: &'a str,
    ) -> BoxFuture<'a, Result<Vec<(String, u64)>, LibraryError>> {
        Box::pin(async move { self.folders()?.list_files(skill) })
    }

    fn bytes<'a>(
        &'a self,
        skill: &'a str,
        path: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<u8>, LibraryError>> {
        Box::pin(async move { self.folders()?.read_bytes(skill, path, most) })
    }

    fn directory(&self, skill: &str) -> Option<String> {
        let folders = self.folders().ok()?;
        let place = folders.path(skill)?;
        let place = place.canonicalize().unwrap_or_else(|_| place.to_owned());
        Some(place.to_string_lossy().into_owned())
    }
}
