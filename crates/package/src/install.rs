//! Manages the installed skills of a project or of a user.
//!
//! `savoir.lock` is the only record of the skills that must be installed: every skill that it names
//! is in the folder of each agent that it names, written in the dialect (the frontmatter format) of
//! that agent. The expected files can be computed at any time from the [`Store`] and the agent. In
//! addition, the user's data folder lists the folders that Savoir wrote and their content. With
//! that list Savoir can remove skills that the lock no longer names, and can tell files that
//! another version of the lock installed from edits by the user.
//!
//! - A [`CheckedSkill`] is a fetched skill that passed the checks. It does not prompt: it lists the
//!   [`InstallQuestion`]s that the user interface must ask.
//! - [`SkillSet::install`], [`SkillSet::remove`], [`SkillSet::sync`] and [`SkillSet::undo`] only
//!   plan. An [`InstallPlan`] lists its [`PlannedChange`]s, and the capabilities that new versions
//!   request in addition to those of the old ones.
//! - [`SkillSet::apply`] applies a plan completely or not at all, under an exclusive lock. It first
//!   writes the replaced content to the journal, so that the change can be undone, and so that the
//!   next program can repair a change that a crashed program left incomplete
//!   ([`SkillSet::recover`]).
//! - [`SkillSet::verify`] lists every file that differs from the lock.
//! - [`SkillSet::adopt`] plans to add skills that other tools installed to the lock, without changing
//!   their files.
//! - [`updates`] lists the skills that have a newer version.
//!
//! If a skill is installed for the agent `gaia`, the lock file that GAIA reads is written, too.
//!
//! Folders that Savoir did not write are never overwritten by default. Neither are edits by the
//! user: new versions are merged into edited files.

mod adopt;
mod apply;
mod available;
mod checked_skill;
mod combine;
mod deployed;
mod disk_sync;
mod error;
mod folder_contents;
mod folder_state;
mod gaia;
mod git_heads;
mod installed_index;
mod journal;
mod links;
mod lock_mismatch;
mod plan;
mod planner;
mod process_lock;
mod remove_agents;
mod stored_skill;
mod swap;
mod sync;
mod tiers;
pub mod updates;
mod verify;
mod without_manifest;

use std::path::{Path, PathBuf};

use crate::{
    Agent, Agents, SkillSummary, Store,
    limits::{MAX_LOCK_BYTES, MAX_MANIFEST_BYTES},
    lock::{self, Lock, LockedSkill, LockedSource},
    manifest::{self, Manifest, Scope},
    source::decode,
    text_file,
};

pub use adopt::{AdoptionCandidate, AdoptionObstacle};
pub use checked_skill::{
    CheckError, CheckedSkill, FetchReason, FetchedSkill, InstallQuestion, InstallRefusal,
    SkillChecker, locked_source, requirement_for,
};
pub use deployed::{DeployedSkill, deploy_for_agent};
pub use error::InstallFailure;
pub use gaia::GaiaLockFile;
pub use journal::ProjectFiles;
pub use links::OutsideFolders;
pub use lock_mismatch::LockMismatch;
pub use plan::{
    FileChange, InstallOptions, InstallPlan, OccupiedFolders, PlannedChange, UserEdits,
};
pub use sync::Fetch;
pub use verify::{VerifyFault, VerifyProblem};

/// The installed skills of one project or one user.
#[derive(Clone, Debug)]
pub struct SkillSet {
    root: PathBuf,
    scope: Scope,
    agents: Agents,
    data: PathBuf,
    outside: OutsideFolders,
    /// The cache folder with the answers of registries.
    learnt: Option<PathBuf>,
}

/// The content of `savoir.toml` and `savoir.lock` at one moment.
#[derive(Clone, Debug)]
pub struct State {
    /// The requested skills; if there is no `savoir.toml`, derived from the lock.
    pub manifest: Manifest,
    /// The installed skills.
    pub lock: Lock,
    /// The texts of both files.
    pub(crate) texts: ProjectFiles,
}

/// A folder that a skill is installed into.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) folder: PathBuf,
    /// The agent whose dialect the skill is written in: the first of the agents that share the
    /// folder.
    pub(crate) agent: &'static Agent,
}

impl SkillSet {
    /// Creates a skill set. `root` is the folder of `savoir.toml` and `savoir.lock`; `data` is the
    /// folder of this user's store and journal, which all skill sets share.
    pub fn new(root: &Path, scope: Scope, agents: Agents, data: PathBuf) -> Self {
        // Journal records store this path, so it must not depend on the working directory or on
        // links.
        let (outside, learnt) = (OutsideFolders::default(), None);
        Self { root: real(root), scope, agents, data, outside, learnt }
    }

    /// Sets the cache folder of registry answers, which provide more details about skills that came
    /// from registries: see [`registry::Settings`](crate::registry::Settings).
    #[must_use]
    pub fn with_learnt(self, cache: PathBuf) -> Self {
        Self { learnt: Some(cache), ..self }
    }

    /// The folder of `savoir.toml` and `savoir.lock`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the store of fetched skills.
    pub fn store(&self) -> Store {
        Store::new(self.data.join("store"))
    }

    /// Reads `savoir.toml` and `savoir.lock` under a shared lock, so that the two files match.
    pub fn state(&self) -> Result<State, InstallFailure> {
        // A user without write permission cannot take the lock, but can still read both files.
        let _held = self.lock_shared().ok();
        self.read()
    }

    /// Returns the integrity that a locked skill has in the folder of an agent, where it may be
    /// written in another dialect; `None` if its files are not in the store of this machine.
    pub fn expected(
        &self,
        name: &str,
        locked: &LockedSkill,
        agent: &Agent,
    ) -> Result<Option<String>, InstallFailure> {
        let Some(tree) = self.store().get(&locked.integrity)? else { return Ok(None) };
        let summary = SkillSummary::read(&tree, name).map_err(InstallFailure::summary(name))?;
        Ok(Some(deploy_for_agent(&tree, &summary, agent)?.tree.integrity()))
    }

    /// Like [`Self::state`], for callers that already prevent concurrent changes.
    pub(crate) fn read(&self) -> Result<State, InstallFailure> {
        let texts = self.texts()?;
        let shown = |path: PathBuf| path.display().to_string();
        let lock = match &texts.lock {
            Some(text) => Lock::parse(&shown(self.lock_path()), text)?,
            None => Lock::default(),
        };
        let manifest = match &texts.manifest {
            Some(text) => Manifest::parse(&shown(self.manifest_path()), text)?,
            None => without_manifest::manifest_of(&lock, &self.root),
        };
        Ok(State { manifest, lock, texts })
    }

    pub(crate) fn texts(&self) -> Result<ProjectFiles, InstallFailure> {
        self.resolve_inside(&self.manifest_path())?;
        self.resolve_inside(&self.lock_path())?;
        Ok(ProjectFiles {
            manifest: text_file::read(&self.manifest_path(), MAX_MANIFEST_BYTES)?,
            lock: text_file::read(&self.lock_path(), MAX_LOCK_BYTES)?,
            gaia: None,
        })
    }

    pub(crate) fn manifest_path(&self) -> PathBuf {
        self.root.join(manifest::FILE)
    }

    pub(crate) fn lock_path(&self) -> PathBuf {
        self.root.join(lock::FILE)
    }

    /// Returns the folder in which an agent finds the skills of this skill set.
    pub fn agent_folder(&self, agent: &Agent) -> Result<PathBuf, InstallFailure> {
        let folder = match self.scope {
            Scope::Project => agent.project_folder(&self.root),
            Scope::User => self.agents.user_folder(agent),
        };
        folder.ok_or(InstallFailure::NoFolder { agent: agent.title, scope: self.scope })
    }

    /// Whether a folder is the source of a skill. Such a folder belongs to the user, even if the
    /// lock names it.
    pub fn is_source(&self, source: &LockedSource, folder: &Path) -> bool {
        let path = match source {
            LockedSource::Adopted { path, .. } => path.clone(),
            LockedSource::Path(path) => decode(path.split('#').next().unwrap_or_default()),
            _ => return false,
        };
        real(&self.root.join(path)) == real(folder)
    }

    /// Returns the folders of a skill for these agents. Agents that share a folder share the skill
    /// in it, and so do agents whose folder has a link to it.
    pub(crate) fn targets(
        &self,
        name: &str,
        ids: &[String],
    ) -> Result<Vec<Target>, InstallFailure> {
        Ok(self.skill_targets(name, ids)?.0)
    }

    /// Returns the skill folders of these agents, each folder once.
    pub(crate) fn parents(&self, ids: &[String]) -> Result<Vec<Target>, InstallFailure> {
        let mut parents: Vec<Target> = Vec::new();
        let mut ids: Vec<&String> = ids.iter().collect();
        ids.sort();
        for id in ids {
            let agent = Agent::by_id(id)?;
            // The folder of one agent may be a link to the folder of another.
            let folder = self.resolve_inside(&self.agent_folder(agent)?)?;
            if parents.iter().all(|known| known.folder != folder) {
                parents.push(Target { folder, agent });
            }
        }
        Ok(parents)
    }
}

impl Target {
    /// The folder of the skill `name` in this agent folder.
    pub(crate) fn inside(&self, name: &str) -> Self {
        Self { folder: self.folder.join(name), agent: self.agent }
    }
}

/// Resolves the links in a path, as far as the path exists, and makes it absolute.
fn real(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let real = absolute.ancestors().find_map(|ancestor| {
        let rest = absolute.strip_prefix(ancestor).ok()?;
        let ancestor = ancestor.canonicalize().ok()?;
        // Joining an empty path would add a slash.
        Some(if rest.as_os_str().is_empty() { ancestor } else { ancestor.join(rest) })
    });
    real.unwrap_or(absolute)
}
