//! The skills that are installed: those of a project, or those of a person.
//!
//! `savoir.lock` is the truth, and there is no other record of what is to be installed: every skill
//! that it names lies in the folder of each agent that it names, in the dialect of that agent. What
//! must lie there can be computed at any time, from the [`Store`] and the agent. Beside it, the
//! user's data only tell which folders Savoir itself filled, and with what, so that what the lock
//! does not name any more can be removed, and so that what another lock put there is not taken for
//! somebody's edits.
//!
//! - A [`CheckedSkill`] is a skill that arrived and was checked. It asks nobody: it lists the
//!   [`InstallQuestion`]s that a door must ask.
//! - [`SkillSet::install`], [`SkillSet::remove`], [`SkillSet::sync`] and [`SkillSet::undo`] only plan. A
//!   [`InstallPlan`] tells its [`PlannedChange`]s, and what new versions want more than the old ones.
//! - [`SkillSet::apply`] makes a plan true, as a whole or not at all. It is alone while it does so.
//!   Whatever it replaces is in the journal before, so that it can be taken back, and so that what
//!   a dead program left half done is put right by the next one ([`SkillSet::recover`]).
//! - [`SkillSet::verify`] names every file that is not what the lock says.
//! - [`SkillSet::found`] looks at skills that others put into the folders of agents, and
//!   [`SkillSet::adopt`] plans to take them under the lock as they lie there.
//! - [`updates`] says for which skills there is something newer.
//!
//! Where a skill is put into the agent `gaia`, the lock that GAIA reads is written, too.
//!
//! Folders that Savoir did not fill are never overwritten, nor are edits of people: new versions
//! are merged into them.

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
    locked_source, requirement_for,
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

/// The skills of a project or of a person.
#[derive(Clone, Debug)]
pub struct SkillSet {
    root: PathBuf,
    scope: Scope,
    agents: Agents,
    data: PathBuf,
    outside: OutsideFolders,
    /// Where it is kept what was learnt from registries.
    learnt: Option<PathBuf>,
}

/// What a shelf holds at a moment.
#[derive(Clone, Debug)]
pub struct State {
    /// What is asked for; without `savoir.toml`, what the lock has.
    pub manifest: Manifest,
    /// What is installed.
    pub lock: Lock,
    /// Both as they are written.
    pub(crate) texts: ProjectFiles,
}

/// A folder in which a skill belongs.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) folder: PathBuf,
    /// The agent that it is written for: the first of those that share the folder.
    pub(crate) agent: &'static Agent,
}

impl SkillSet {
    /// A shelf. `root` is the folder of `savoir.toml` and `savoir.lock`; `data` is the folder in
    /// which this user's store and journal are, which all shelves share.
    pub fn new(root: &Path, scope: Scope, agents: Agents, data: PathBuf) -> Self {
        // Records of the journal must still mean the same place tomorrow.
        let (outside, learnt) = (OutsideFolders::default(), None);
        Self { root: real(root), scope, agents, data, outside, learnt }
    }

    /// A shelf that knows where it is kept what was learnt from registries, which tells more about the
    /// skills that came from them: see [`registry::Settings`](crate::registry::Settings).
    #[must_use]
    pub fn with_learnt(self, cache: PathBuf) -> Self {
        Self { learnt: Some(cache), ..self }
    }

    /// The folder of `savoir.toml` and `savoir.lock`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where skills are kept.
    pub fn store(&self) -> Store {
        Store::new(self.data.join("store"))
    }

    /// Reads `savoir.toml` and `savoir.lock`, which belong together.
    pub fn state(&self) -> Result<State, InstallFailure> {
        // Whoever may only read can still be told what is there.
        let _held = self.lock_shared().ok();
        self.read()
    }

    /// The integrity that a locked skill has in the folder of an agent, where it may be written in
    /// another dialect; nothing if its files are not kept on this machine.
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

    /// As [`Self::state`], where it is known that nobody changes anything.
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

    /// The folder of an agent in which the skills of this shelf are.
    pub fn agent_folder(&self, agent: &Agent) -> Result<PathBuf, InstallFailure> {
        let folder = match self.scope {
            Scope::Project => agent.project_folder(&self.root),
            Scope::User => self.agents.user_folder(agent),
        };
        folder.ok_or(InstallFailure::NoFolder { agent: agent.title, scope: self.scope })
    }

    /// Whether a folder is where a skill comes from: then it is its owner's, whoever locked it.
    pub fn is_source(&self, source: &LockedSource, folder: &Path) -> bool {
        let path = match source {
            LockedSource::Adopted { path, .. } => path.clone(),
            LockedSource::Path(path) => decode(path.split('#').next().unwrap_or_default()),
            _ => return false,
        };
        real(&self.root.join(path)) == real(folder)
    }

    /// Where a skill lies for these agents. Agents that share a folder share the skill in it,
    /// and so do those in whose folder a link leads to it.
    pub(crate) fn targets(
        &self,
        name: &str,
        ids: &[String],
    ) -> Result<Vec<Target>, InstallFailure> {
        Ok(self.skill_targets(name, ids)?.0)
    }

    /// The folders in which the skills of these agents lie.
    pub(crate) fn parents(&self, ids: &[String]) -> Result<Vec<Target>, InstallFailure> {
        let mut parents: Vec<Target> = Vec::new();
        let mut ids: Vec<&String> = ids.iter().collect();
        ids.sort();
        for id in ids {
            let agent = Agent::by_id(id)?;
            // One may be a link to the other.
            let folder = self.resolve_inside(&self.agent_folder(agent)?)?;
            if parents.iter().all(|known| known.folder != folder) {
                parents.push(Target { folder, agent });
            }
        }
        Ok(parents)
    }
}

impl Target {
    /// The folder of a skill in that of an agent.
    pub(crate) fn inside(&self, name: &str) -> Self {
        Self { folder: self.folder.join(name), agent: self.agent }
    }
}

/// A path without links, as far as it is there.
fn real(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let real = absolute.ancestors().find_map(|ancestor| {
        let rest = absolute.strip_prefix(ancestor).ok()?;
        let ancestor = ancestor.canonicalize().ok()?;
        // Joining nothing would add a slash.
        Some(if rest.as_os_str().is_empty() { ancestor } else { ancestor.join(rest) })
    });
    real.unwrap_or(absolute)
}
