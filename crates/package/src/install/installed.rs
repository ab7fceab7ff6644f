//! Which folders Savoir itself filled.
//!
//! The lock says what is to be there, and `git pull` may take a skill out of it. Only this index,
//! which no repository can write, tells then whether the folder that is left is Savoir's to remove.
//! It may also bring another version into the lock: then the folder still has what was put there
//! for the old one, and only this index tells that from edits, and what edits started from.
//! A folder is struck out before it is changed and written down after: a program that dies between
//! the two leaves one folder too many lying about, and never removes one too many.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use savoir_skill::digest::sha256_hex;
use serde::{Deserialize, Serialize};

use super::{
    Change, Edits, InstallFailure, Plan, SkillSet, State, deployed,
    folders::Seen,
    kept::Kept,
    planner::Planner,
    real,
    spot::{Base, Last},
};
use crate::{Agent, FileError, limits::MAX_LOCK_BYTES, lock::Lock, place};

const FORMAT: u32 = 1;

/// The folders of one shelf.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Installed {
    version: u32,
    root: PathBuf,
    folders: BTreeMap<PathBuf, Put>,
}

/// What was put into a folder: a skill as the lock had it, in the dialect of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Put {
    pub(super) name: String,
    pub(super) integrity: String,
    agent: String,
}

impl SkillSet {
    fn installed_path(&self) -> PathBuf {
        let name = sha256_hex(self.root.as_os_str().as_encoded_bytes());
        self.data.join("installed").join(format!("{}.json", &name[..32]))
    }

    /// What is written down; nothing, if that cannot be read.
    fn index(&self) -> Installed {
        let text = place::read(&self.installed_path(), MAX_LOCK_BYTES).ok().flatten();
        let read = text.and_then(|text| serde_json::from_str::<Installed>(&text).ok());
        let read = read.filter(|read| read.version == FORMAT && read.root == self.root);
        let (version, root) = (FORMAT, self.root.clone());
        read.unwrap_or(Installed { version, root, folders: BTreeMap::new() })
    }

    /// What Savoir last put into folders, as far as that is known.
    pub(super) fn filled(&self) -> BTreeMap<PathBuf, Put> {
        self.index().folders
    }

    fn write_installed(&self, installed: &Installed) -> Result<(), InstallFailure> {
        let path = self.installed_path();
        let folder = path.parent().unwrap_or(Path::new("."));
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(InstallFailure::io(folder))?;
        let text = serde_json::to_string(installed).map_err(std::io::Error::from);
        let text = text.map_err(|error| FileError::Io { path: path.clone(), error })?;
        Ok(place::write(&path, &text)?)
    }

    /// Strikes out the folders that a plan is going to change.
    pub(super) fn disown(&self, plan: &Plan) -> Result<(), InstallFailure> {
        let mut installed = self.index();
        let before = installed.folders.len();
        for folder in plan.folders() {
            installed.folders.remove(folder);
        }
        if installed.folders.len() == before {
            return Ok(());
        }
        self.write_installed(&installed)
    }

    /// Writes down the folders that a plan filled. What was put back by taking a change back may
    /// be somebody else's.
    pub(super) fn own(&self, plan: &Plan) -> Result<(), InstallFailure> {
        let filled = || {
            let steps = plan.steps.iter().filter(|step| step.put.tree().is_some());
            steps.map(|step| &step.folder).chain(&plan.confirmed)
        };
        let Some(text) = plan.after.lock.as_ref().filter(|_| plan.undoes.is_none()) else {
            return Ok(());
        };
        if filled().next().is_none() {
            return Ok(());
        }
        let lock = Lock::parse(&self.lock_path().display().to_string(), text)?;
        let mut installed = self.index();
        let mut folders = HashMap::new();
        for folder in filled() {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let Some(locked) = lock.skills.get(name.as_ref()) else { continue };
            let Some(agent) = self.agent_at(folder, &locked.agents, &mut folders) else {
                continue;
            };
            let (name, integrity) = (name.into_owned(), locked.integrity.clone());
            installed.folders.insert(folder.clone(), Put { name, integrity, agent });
        }
        self.write_installed(&installed)
    }

    /// The agent for which a folder was filled: the first of those that share it.
    fn agent_at(
        &self,
        folder: &Path,
        agents: &[String],
        known: &mut HashMap<String, Option<PathBuf>>,
    ) -> Option<String> {
        let mut agents: Vec<&String> = agents.iter().collect();
        agents.sort();
        let mut place = |id: &String| {
            let place = || self.agent_folder(Agent::by_id(id).ok()?).ok().map(|path| real(&path));
            known.entry(id.clone()).or_insert_with(place).clone()
        };
        let found = agents.into_iter().find(|id| place(id).as_deref() == folder.parent());
        found.cloned()
    }
}

impl Planner<'_> {
    /// Folders that Savoir filled with what nothing asks for any more.
    pub(super) fn orphans(&mut self, state: &State) -> Result<(), InstallFailure> {
        for (folder, put) in self.filled.clone() {
            if state.manifest.skills.contains_key(&put.name)
                || self.is_locked(state, &folder, &put)?
            {
                continue;
            }
            // Whoever made a link of the folder's parent since leads to files of others.
            let moved = folder.parent().is_none_or(|parent| real(parent) != parent);
            let seen = if moved { Seen::Absent } else { Seen::at(&folder)? };
            let ours = match &seen {
                Seen::Absent => continue,
                Seen::Tree(there) => self.last_put(&put)?.base.is(there),
                Seen::Link(_) | Seen::Strange(_) => false,
            };
            if ours || (self.edits == Edits::Discard && seen.tree().is_some()) {
                self.changes.push(Change::Orphan(folder.clone()));
                self.tell_leftovers(&seen, &folder);
                self.step(&folder, seen, Seen::Absent)?;
            } else {
                self.changes.push(Change::Left(folder));
            }
        }
        Ok(())
    }

    fn is_locked(&self, state: &State, folder: &Path, put: &Put) -> Result<bool, InstallFailure> {
        let Some(locked) = state.lock.skills.get(&put.name) else { return Ok(false) };
        let targets = self.shelf.targets(&put.name, &locked.agents)?;
        Ok(targets.iter().any(|target| target.folder == folder))
    }

    /// What was put into a folder. What is not known any more can only be told by its integrity.
    pub(super) fn last_put(&self, put: &Put) -> Result<Last, InstallFailure> {
        let kept = self.shelf.store().get(&put.integrity)?;
        let kept = kept.and_then(|tree| Kept::new(&put.name, tree).ok());
        let (Some(kept), Ok(agent)) = (kept, Agent::by_id(&put.agent)) else {
            return Ok(Last { base: Base::Lost(put.integrity.clone()), version: None });
        };
        let base = Base::Known(deployed(&kept.tree, &kept.summary, agent)?.tree);
        Ok(Last { base, version: Some(kept.summary.version) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Agents, File, Tree,
        install::{Texts, plan::Step},
        manifest::Scope,
    };

    const LOCK: &str = "version = 1\norder = [\"x\"]\n\n[[skill]]\nname = \"x\"\nversion = \
                        \"1.0.0\"\nsource = \"path+./x\"\nintegrity = \
                        \"sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\ntier = \
                        \"experimental\"\nagents = [\"codex\", \"amp\"]\n";

    fn plan(shelf: &SkillSet, folder: &str) -> Plan {
        let mut tree = Tree::default();
        tree.add("SKILL.md".into(), File::default()).unwrap();
        let step =
            Step { folder: shelf.root.join(folder), was: Seen::Absent, put: Seen::Tree(tree) };
        Plan {
            root: shelf.root.clone(),
            before: Texts::default(),
            after: Texts { lock: Some(LOCK.into()), ..Texts::default() },
            steps: vec![step],
            keep: Vec::new(),
            confirmed: Vec::new(),
            changes: Vec::new(),
            growth: Vec::new(),
            undoes: None,
            unmake: Vec::new(),
        }
    }

    #[test]
    fn a_folder_is_struck_out_before_and_written_down_after() {
        let place = tempfile::tempdir().unwrap();
        let agents = Agents::new(place.path(), |_| None);
        let data = place.path().join("data");
        let shelf = SkillSet::new(&place.path().join("p"), Scope::Project, agents, data);
        let mut plan = plan(&shelf, ".agents/skills/x");
        shelf.disown(&plan).unwrap();
        assert!(!shelf.installed_path().exists(), "there was nothing to strike out");
        shelf.own(&plan).unwrap();
        let folders = shelf.index().folders;
        assert_eq!(folders[&shelf.root.join(".agents/skills/x")].agent, "amp", "the first of both");
        shelf.disown(&plan).unwrap();
        assert!(shelf.index().folders.is_empty(), "a program that dies now removes nothing");
        plan.undoes = Some("record".into());
        shelf.own(&plan).unwrap();
        assert!(shelf.index().folders.is_empty(), "what was put back may be somebody else's");
        shelf.own(&super::tests::plan(&shelf, ".claude/skills/x")).unwrap();
        assert!(shelf.index().folders.is_empty(), "the lock says nothing of this folder");
    }
}
