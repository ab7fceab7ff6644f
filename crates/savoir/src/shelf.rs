//! What the commands of the shelf share: which shelf is meant, what arrives, what is asked before it
//! is installed, and how a plan becomes true and is told.

mod arrive;
mod choose;
mod consent;
mod diff;
mod error;
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

use savoir_engine::Home;
use savoir_package::{
    Agent, Agents, Shelf, ShelfError,
    agents::UnknownAgent,
    lock::{self, Lock},
    manifest::{self, Manifest, Scope},
    nearest,
    policy::Policy,
    shelf::{Edits, Occupied, Outside, Plan},
    source::{Fetcher, Settings},
    trust::{TrustStore, TrustedSources},
};
use tokio::runtime::Runtime;

pub(crate) use self::progress::Progress;
pub(crate) use self::{
    arrive::Arrived,
    choose::{Choice, Chosen, Stall, list},
    consent::{Consent, Proposal, described, json as arrived, take_replacing},
    diff::{diff, summary},
    newest::{Failed, lacks_needs},
    registry::{Ask, withdrawn},
    report::Report,
    skipped::{Skipped, one_per_name, without_culprits, without_unmet_needs},
};
use crate::{
    ask, config, error::CommandError, installed, offline, output, runtime, trust::Keyring,
};

/// The folder of the store and the journal, in that of the data.
pub(crate) const FOLDER: &str = "shelf";

/// How often a change is planned anew when others change the same skills meanwhile: a build may begin
/// dozens of them at once.
const TRIES: usize = 100;

/// The agent whose folder most others read, for machines on which none is found.
const COMMON: &str = "universal";

/// Whose skills are meant.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Whose {
    /// Your own skills, which agents see in every project
    #[arg(long, short, conflicts_with = "project")]
    pub(crate) global: bool,
    /// The project [default: the nearest folder above with savoir.toml, a lock or .git]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Use folders of the project that are links out of it
    #[arg(long, conflicts_with = "global")]
    follow_links: bool,
}

/// How a change is made, and told.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Manner {
    /// Discard local edits and replace existing files; `savoir undo` restores them
    #[arg(long, short)]
    force: bool,
    /// Only show what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Manner {
    /// What becomes of local edits.
    pub(crate) fn edits(self) -> Edits {
        if self.force { Edits::Discard } else { Edits::Keep }
    }

    /// What becomes of folders that Savoir did not fill.
    pub(crate) fn occupied(self) -> Occupied {
        if self.force { Occupied::Replace } else { Occupied::Refuse }
    }
}

/// The agents that are to have skills.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ForAgents {
    /// The agents [default: those of savoir.toml, else those that are found here]
    #[arg(long, short, value_name = "AGENT", value_delimiter = ',', value_parser = agent)]
    pub(crate) agent: Vec<&'static Agent>,
}

/// The agent that a word names.
pub(crate) fn agent(word: &str) -> Result<&'static Agent, UnknownAgent> {
    Agent::by_id(word)
}

/// One shelf, and what it takes to change it.
pub(crate) struct Door {
    pub(crate) shelf: Shelf,
    pub(crate) trust: TrustStore,
    /// Sources whose skills are installed without a question.
    pub(crate) trusted: TrustedSources,
    /// What the organization, the user and the project allow.
    pub(crate) policy: Policy,
    pub(crate) fetcher: Fetcher,
    /// What can be made again.
    pub(crate) cache: PathBuf,
    agents: Agents,
    home: PathBuf,
    scope: Scope,
    runtime: Runtime,
    progress: Arc<Progress>,
}

impl Whose {
    /// The shelf that is meant. What a program that died left half done is put right.
    pub(crate) fn open(&self) -> Result<Door, CommandError> {
        let door = self.look()?;
        if door.shelf.recover(&waiting)? {
            output::note("repaired a change that was interrupted");
        }
        Ok(door)
    }

    /// The shelf that is meant, to look at it only.
    pub(crate) fn look(&self) -> Result<Door, CommandError> {
        let home = installed::home()?;
        let agents = Agents::new(&home, |name| env::var_os(name));
        let (root, scope) = self.root(&home)?;
        let place = Home::from_environment()?;
        let keyring = Keyring::of_user()?;
        let progress = Arc::new(Progress::default());
        let mut settings = Settings::new(place.cache().join("sources"));
        settings.watcher = Some(progress::watcher(&progress));
        settings.network = offline::network(false);
        Ok(Door {
            shelf: Shelf::new(&root, scope, agents.clone(), place.data().join(FOLDER))
                .with_outside(if self.follow_links { Outside::Follow } else { Outside::Refuse })
                .with_learnt(place.cache().join("registry")),
            trust: keyring.trusted()?,
            trusted: keyring.sources()?,
            policy: config::policy(Some(&root.join(manifest::FILE)))?,
            fetcher: Fetcher::new(settings),
            cache: place.cache().to_owned(),
            agents,
            home,
            scope,
            runtime: runtime::new()?,
            progress,
        })
    }

    /// The project that was named.
    pub(crate) fn project(&self) -> Option<&Path> {
        self.project.as_deref()
    }

    fn root(&self, home: &Path) -> Result<(PathBuf, Scope), CommandError> {
        if self.global {
            let folder = config::user_folder().ok_or_else(|| {
                CommandError::input("there is no folder for your settings").hint("set HOME")
            })?;
            return Ok((folder, Scope::User));
        }
        let project = match &self.project {
            Some(folder) => Some(installed::named_project(folder)?),
            None => installed::project_around(home),
        };
        let project = project.ok_or_else(|| {
            CommandError::input("your home folder is not a project")
                .hint("use --global for skills that agents see everywhere")
                .hint("or go to a project, or name one with --project DIR")
        })?;
        Ok((project, Scope::Project))
    }
}

impl Door {
    /// The agents that get what is new: those that were named, else those of `savoir.toml`, else
    /// those that are in use here.
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
        let has_folder = |agent: &&'static Agent| self.shelf.agent_folder(agent).is_ok();
        let mut found = self.agents.detected(self.shelf.root());
        found.retain(has_folder);
        if found.is_empty() {
            found.push(Agent::by_id(COMMON).map_err(CommandError::input)?);
        }
        Ok(found)
    }

    /// Fails if a skill is not installed here, with the name or the option that may be meant.
    pub(crate) fn check_installed(
        &self,
        names: &[String],
        command: &str,
    ) -> Result<(), CommandError> {
        let state = self.shelf.state()?;
        let known = || state.lock.skills.keys().chain(state.manifest.skills.keys());
        let Some(name) = names.iter().find(|name| !known().any(|known| known == *name)) else {
            return Ok(());
        };
        let place = if self.is_global() { "for the user" } else { "in this project" };
        let error = CommandError::input(format!("`{name}` is not installed {place}"));
        let error = error.named("not_installed");
        if self.other_lock().is_some_and(|lock| lock.skills.contains_key(name)) {
            return Err(if self.is_global() {
                error.hint(format!("it is installed in this project: savoir {command} {name}"))
            } else {
                error
                    .hint(format!("it is installed for the user: savoir {command} {name} --global"))
            });
        }
        Err(match nearest(name, known().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("`savoir list --origin savoir` lists what savoir installed"),
        })
    }

    /// The lock of the user for a project, and that of the project around for the user.
    fn other_lock(&self) -> Option<Lock> {
        let folder = match self.scope {
            Scope::Project => config::user_folder(),
            Scope::User => installed::project_around(&self.home),
        };
        Lock::read(&folder?.join(lock::FILE)).ok()
    }

    /// Whether it is that of a person.
    pub(crate) fn is_global(&self) -> bool {
        self.scope == Scope::User
    }

    /// Waits for a future.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Shows that something takes a while.
    pub(crate) fn doing(&self, what: &str) {
        self.progress.show(what);
    }

    /// Nothing takes a while any more.
    pub(crate) fn done(&self) {
        self.progress.clear();
    }

    /// Makes a plan and shows it, and makes it true if that is agreed to. Others may change the same
    /// skills at the same time: then it is planned anew.
    pub(crate) fn carry_out(
        &self,
        mut plan: impl FnMut() -> Result<Plan, CommandError>,
        mut agree: impl FnMut(&mut Plan) -> Result<bool, CommandError>,
    ) -> Result<(Plan, bool), CommandError> {
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
            let applied = self.shelf.apply(&plan, &waiting);
            self.done();
            match applied {
                Ok(()) => return Ok((plan, true)),
                Err(ShelfError::Moved(_)) if tries < TRIES => tries += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A path as short as a person knows it.
    pub(crate) fn short(&self, text: &str) -> String {
        let root = format!("{}/", self.shelf.root().display());
        let home = format!("{}/", self.home.display());
        let shorter =
            if self.scope == Scope::Project { text.replace(&root, "") } else { text.to_owned() };
        shorter.replace(&home, "~/")
    }
}

fn waiting() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| output::note("another savoir changes skills at the moment; waiting for it"));
}

/// Does something. Where a program listens, nobody is asked, and a failure is told as JSON, too.
pub(crate) fn told<T>(
    json: bool,
    work: impl FnOnce() -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    if json {
        ask::nobody();
    }
    let outcome = work();
    if json
        && let Err(error) = &outcome
        && let Some(told) = error.to_json()
    {
        output::json(&told)?;
    }
    outcome
}
