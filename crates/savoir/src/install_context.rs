//! Shared code of the commands that install skills: choosing the project or the user, fetching and
//! checking skills, asking for consent, applying plans and reporting them.

mod choose;
mod consent;
mod diff;
mod error;
mod fetch;
mod newest;
mod progress;
mod registry;
mod report;
mod skipped;

use std::{
    env,
    path::{Path, PathBuf},
    sync::{Arc, Once},
};

use clap_complete::engine::ArgValueCandidates;
use savoir_engine::Home;
use savoir_lint::words::nearest;
use savoir_package::{
    Agent, Agents, InstallFailure, ScanCache, SkillSet,
    agents::{self, UnknownAgent},
    install::{InstallPlan, OccupiedFolders, OutsideFolders, UserEdits},
    lock::{self, Lock},
    manifest::{self, Manifest, Scope},
    policy::Policy,
    source::{Fetcher, Settings},
    trust::{TrustStore, TrustedSources},
};
use tokio::runtime::Runtime;

pub(crate) use self::progress::Progress;
pub(crate) use self::{
    choose::{Choice, Chosen, SourceListing, list},
    consent::{Consent, Proposal, describe_skill, json as arrived, take_replacing},
    diff::{diff, summary},
    fetch::{FetchedSkills, locked_arrival},
    newest::{OnFailure, lacks_needs, no_other_source},
    registry::{RegistryArgs, withdrawn},
    report::Report,
    skipped::{Skipped, one_per_name, without_culprits, without_unmet_needs},
};
use crate::{
    completion, config, error::CommandError, installed, offline, output, runtime, trust::Keyring,
};

/// The folder of the store and the journal, in the data folder.
pub(crate) const STORE_FOLDER: &str = "shelf";

/// The folder of scan reports, in the cache folder.
pub(crate) const SCANS_FOLDER: &str = "scans";

/// How often a change is planned again if other processes change the same skills: a build may start
/// dozens of them at once.
const MAX_PLAN_ATTEMPTS: usize = 100;

/// The agent whose folder most others read, used if no agent is found.
const DEFAULT_AGENT: &str = "universal";

/// Selects the skills of a project or of the user.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ScopeArgs {
    /// Use the skills of your user account, which agents see in every project
    #[arg(long = "user", visible_alias = "global", short = 'g', conflicts_with = "project")]
    pub(crate) global: bool,
    /// The project [default: the nearest folder above with savoir.toml, a lock or .git]
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// Follow symlinks that lead out of the project
    #[arg(long, conflicts_with = "global")]
    follow_links: bool,
}

/// Options of changes and their output.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct OutputArgs {
    /// Discard local edits and replace existing files; `savoir undo` restores them
    #[arg(long, short)]
    force: bool,
    /// Show what would change without changing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl OutputArgs {
    /// How local edits are handled.
    pub(crate) fn edits(self) -> UserEdits {
        if self.force { UserEdits::Discard } else { UserEdits::Keep }
    }

    /// How existing folders that Savoir did not install are handled.
    pub(crate) fn occupied(self) -> OccupiedFolders {
        if self.force { OccupiedFolders::Replace } else { OccupiedFolders::Refuse }
    }
}

/// The agents that get the skills.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ForAgents {
    /// Agents that get the skills [default: those of savoir.toml, else those found here]
    #[arg(long, short, value_name = "AGENT", value_delimiter = ',', value_parser = agent, add = ArgValueCandidates::new(completion::agents))]
    pub(crate) agent: Vec<&'static Agent>,
}

pub(crate) fn agent(word: &str) -> Result<&'static Agent, UnknownAgent> {
    Agent::by_id(word)
}

/// The skills of a project or of the user, and everything that is needed to change them.
pub(crate) struct InstallContext {
    pub(crate) skill_set: SkillSet,
    pub(crate) trust: TrustStore,
    /// Sources whose skills are installed without confirmation.
    pub(crate) trusted: TrustedSources,
    /// The policy of the organization, the user and the project.
    pub(crate) policy: Policy,
    pub(crate) fetcher: Fetcher,
    pub(crate) cache: PathBuf,
    scans: ScanCache,
    agents: Agents,
    home: PathBuf,
    scope: Scope,
    runtime: Runtime,
    progress: Arc<Progress>,
}

impl ScopeArgs {
    /// Opens the skills for changes, and completes or reverts an interrupted change.
    pub(crate) fn open(&self) -> Result<InstallContext, CommandError> {
        let context = self.open_read_only()?;
        if context.skill_set.recover(&note_waiting)? {
            output::note("repaired an interrupted change");
        }
        Ok(context)
    }

    /// Opens the skills for reading.
    pub(crate) fn open_read_only(&self) -> Result<InstallContext, CommandError> {
        let home = installed::home()?;
        let agents = Agents::new(&home, |name| env::var_os(name));
        let (root, scope) = self.root(&home)?;
        let place = Home::from_environment()?;
        let keyring = Keyring::of_user()?;
        let progress = Arc::new(Progress::default());
        let mut settings = Settings::new(place.cache().join("sources"));
        settings.watcher = Some(progress::watcher(&progress));
        settings.network = offline::network(false);
        Ok(InstallContext {
            skill_set: SkillSet::new(&root, scope, agents.clone(), place.data().join(STORE_FOLDER))
                .with_outside(if self.follow_links {
                    OutsideFolders::Follow
                } else {
                    OutsideFolders::Refuse
                })
                .with_learnt(place.cache().join("registry")),
            trust: keyring.trusted()?,
            trusted: keyring.sources()?,
            policy: config::policy(Some(&root.join(manifest::FILE)))?,
            fetcher: Fetcher::new(settings),
            cache: place.cache().to_owned(),
            scans: ScanCache::new(place.cache().join(SCANS_FOLDER)),
            agents,
            home,
            scope,
            runtime: runtime::new()?,
            progress,
        })
    }

    /// The project from --project.
    pub(crate) fn project(&self) -> Option<&Path> {
        self.project.as_deref()
    }

    fn root(&self, home: &Path) -> Result<(PathBuf, Scope), CommandError> {
        if self.global {
            let folder = config::user_folder().ok_or_else(|| {
                CommandError::input("your settings folder was not found").hint("set HOME")
            })?;
            return Ok((folder, Scope::User));
        }
        let project = match &self.project {
            Some(folder) => Some(installed::named_project(folder)?),
            None => installed::project_around(home),
        };
        let project = project.ok_or_else(|| {
            CommandError::input("your home folder is not a project")
                .hint("use --user for skills that agents see everywhere")
                .hint("or go to a project, or name one with --project DIR")
        })?;
        Ok((project, Scope::Project))
    }
}

impl InstallContext {
    /// The agents that get new skills: those from --agent, else those of `savoir.toml`, else those
    /// in use here.
    pub(crate) fn agents(
        &self,
        named: &ForAgents,
        manifest: &Manifest,
    ) -> Result<Vec<&'static Agent>, CommandError> {
        if !named.agent.is_empty() {
            return Ok(named.agent.clone());
        }
        if !manifest.agents.used.is_empty() {
            let used = manifest.agents.used.iter().map(|word| Agent::by_id(word));
            let used: Result<Vec<_>, UnknownAgent> = used.collect();
            return used.map_err(|unknown| {
                CommandError::input(format!("savoir.toml: {unknown}"))
                    .hint("fix the list `use` in [agents]")
            });
        }
        let has_folder = |agent: &&'static Agent| self.skill_set.agent_folder(agent).is_ok();
        let mut found = self.agents.detected(self.skill_set.root());
        found.retain(has_folder);
        if found.is_empty() {
            found.push(Agent::by_id(DEFAULT_AGENT).map_err(CommandError::input)?);
            let home = if self.is_global() { "~/" } else { "" };
            output::note(&format!(
                "no agent was found here; skills go to {home}.agents/skills, which most agents \
                 read, but not Claude Code; name agents with --agent"
            ));
        }
        Ok(found)
    }

    /// Fails if a skill is not installed here, and suggests a similar name or --user.
    pub(crate) fn check_installed(
        &self,
        names: &[String],
        command: &str,
    ) -> Result<(), CommandError> {
        let state = self.skill_set.state()?;
        let known = || state.lock.skills.keys().chain(state.manifest.skills.keys());
        let Some(name) = names.iter().find(|name| !known().any(|known| known == *name)) else {
            return Ok(());
        };
        let place = if self.is_global() { "for the user" } else { "in this project" };
        let error = CommandError::input(format!("`{name}` is not installed {place}"));
        let error = error.with_code("not_installed");
        if self.other_lock().is_some_and(|lock| lock.skills.contains_key(name)) {
            return Err(if self.is_global() {
                error.hint(format!("it is installed in this project: savoir {command} {name}"))
            } else {
                error.hint(format!("it is installed for the user: savoir {command} {name} --user"))
            });
        }
        if let Some(folder) = self.folder_of_other_installer(name) {
            let option = if self.is_global() { " --user" } else { "" };
            let error = CommandError::input(format!("`{name}` was not installed by savoir"));
            return Err(error.with_code("not_installed").hint(format!(
                "it is in {folder}: change that folder, or add it to savoir.lock: savoir adopt \
                 {name}{option}"
            )));
        }
        Err(match nearest(name, known().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("`savoir list --origin savoir` lists what savoir installed"),
        })
    }

    /// The folder in which agents find a skill of this scope that is not in the lock.
    fn folder_of_other_installer(&self, name: &str) -> Option<String> {
        let project = (!self.is_global()).then(|| self.skill_set.root());
        let installed = installed::Installed::open(project).ok()?;
        let scope = if self.is_global() { agents::Scope::User } else { agents::Scope::Project };
        let mut named = installed.ledger.named(name).iter();
        let entry =
            named.find(|entry| entry.places().iter().any(|place| place.scope() == scope))?;
        Some(output::cell(&installed.shown(entry.path())).into_owned())
    }

    /// The lock of the other scope: of the user for a project, of the current project for the user.
    fn other_lock(&self) -> Option<Lock> {
        let folder = match self.scope {
            Scope::Project => config::user_folder(),
            Scope::User => installed::project_around(&self.home),
        };
        Lock::read(&folder?.join(lock::FILE)).ok()
    }

    /// Whether these are the skills of the user.
    pub(crate) fn is_global(&self) -> bool {
        self.scope == Scope::User
    }

    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Shows progress on the terminal.
    pub(crate) fn doing(&self, what: &str) {
        self.progress.show(what);
    }

    /// Removes the progress line.
    pub(crate) fn done(&self) {
        self.progress.clear();
    }

    /// Makes a plan, asks for consent and applies it. Plans again if another process changed the same
    /// skills in between.
    pub(crate) fn carry_out(
        &self,
        mut plan: impl FnMut() -> Result<InstallPlan, CommandError>,
        mut agree: impl FnMut(&mut InstallPlan) -> Result<bool, CommandError>,
    ) -> Result<(InstallPlan, bool), CommandError> {
        let mut tries = 1;
        loop {
            let mut plan = plan()?;
            self.done();
            if !agree(&mut plan)? {
                return Ok((plan, false));
            }
            if !plan.is_empty() {
                self.doing("writing");
            }
            let applied = self.skill_set.apply(&plan, &note_waiting);
            self.done();
            match applied {
                Ok(()) => return Ok((plan, true)),
                Err(InstallFailure::Moved(_)) if tries < MAX_PLAN_ATTEMPTS => tries += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Shortens a path: relative to the project, or with `~`.
    pub(crate) fn short(&self, text: &str) -> String {
        let root = format!("{}/", self.skill_set.root().display());
        let home = format!("{}/", self.home.display());
        let shorter =
            if self.scope == Scope::Project { text.replace(&root, "") } else { text.to_owned() };
        shorter.replace(&home, "~/")
    }
}

fn note_waiting() {
    static NOTED: Once = Once::new();
    NOTED.call_once(|| output::note("waiting for another savoir process that is changing skills"));
}
