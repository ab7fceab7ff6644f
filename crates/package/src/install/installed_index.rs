//! Stores the index of the folders that Savoir wrote.
//!
//! The lock lists the skills that must be installed, and `git pull` may remove a skill from it.
//! Then only this index, which no repository can write, shows whether Savoir may remove the
//! remaining folder. `git pull` may also bring another version into the lock: then the folder still
//! has the old version, and only this index can tell that from edits, and provides the base to
//! merge edits with. A folder is removed from the index before it is changed, and added after: a
//! program that crashes in between leaves one folder too many, but never removes one too many.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use savoir_skill::digest::sha256_hex;
use serde::{Deserialize, Serialize};

use super::{
    InstallFailure, InstallPlan, PlannedChange, SkillSet, State, UserEdits, deploy_for_agent,
    folder_contents::FolderContents,
    folder_state::{InstalledBase, LastInstalled},
    planner::Planner,
    real,
    stored_skill::StoredSkill,
};
use crate::{Agent, FileError, limits::MAX_LOCK_BYTES, lock::Lock, text_file};

const FORMAT: u32 = 1;

/// The index of one skill set.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct InstalledIndex {
    version: u32,
    root: PathBuf,
    folders: BTreeMap<PathBuf, InstalledFolder>,
}

/// The content that Savoir wrote to a folder: a skill with its locked integrity, in the dialect of
/// an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InstalledFolder {
    pub(super) name: String,
    pub(super) integrity: String,
    agent: String,
}

impl SkillSet {
    fn installed_path(&self) -> PathBuf {
        let name = sha256_hex(self.root.as_os_str().as_encoded_bytes());
        self.data.join("installed").join(format!("{}.json", &name[..32]))
    }

    /// Reads the index; returns an empty one if it cannot be read.
    fn read_index(&self) -> InstalledIndex {
        let text = text_file::read(&self.installed_path(), MAX_LOCK_BYTES).ok().flatten();
        let read = text.and_then(|text| serde_json::from_str::<InstalledIndex>(&text).ok());
        let read = read.filter(|read| read.version == FORMAT && read.root == self.root);
        let (version, root) = (FORMAT, self.root.clone());
        read.unwrap_or(InstalledIndex { version, root, folders: BTreeMap::new() })
    }

    /// Returns the folders that Savoir wrote, as far as known.
    pub(super) fn last_installed(&self) -> BTreeMap<PathBuf, InstalledFolder> {
        self.read_index().folders
    }

    fn write_installed(&self, installed: &InstalledIndex) -> Result<(), InstallFailure> {
        let path = self.installed_path();
        let folder = path.parent().unwrap_or(Path::new("."));
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(InstallFailure::io(folder))?;
        let text = serde_json::to_string(installed).map_err(std::io::Error::from);
        let text = text.map_err(|error| FileError::Io { path: path.clone(), error })?;
        Ok(text_file::write(&path, &text)?)
    }

    /// Removes the folders that a plan is going to change from the index.
    pub(super) fn remove_from_index(&self, plan: &InstallPlan) -> Result<(), InstallFailure> {
        let mut installed = self.read_index();
        let before = installed.folders.len();
        for folder in plan.folders() {
            installed.folders.remove(folder);
        }
        if installed.folders.len() == before {
            return Ok(());
        }
        self.write_installed(&installed)
    }

    /// Adds the folders that a plan wrote to the index. An undo adds none, because the content that
    /// it restored may belong to the user.
    pub(super) fn add_to_index(&self, plan: &InstallPlan) -> Result<(), InstallFailure> {
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
        let mut installed = self.read_index();
        let mut folders = HashMap::new();
        for folder in filled() {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let Some(locked) = lock.skills.get(name.as_ref()) else { continue };
            let Some(agent) = self.agent_at(folder, &locked.agents, &mut folders) else {
                continue;
            };
            let (name, integrity) = (name.into_owned(), locked.integrity.clone());
            installed.folders.insert(folder.clone(), InstalledFolder { name, integrity, agent });
        }
        self.write_installed(&installed)
    }

    /// Returns the agent for which a folder was written: the first of those that share it.
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
    /// Plans to remove folders that Savoir wrote and whose skill is no longer required.
    pub(super) fn plan_orphan_removal(&mut self, state: &State) -> Result<(), InstallFailure> {
        for (folder, put) in self.filled.clone() {
            if state.manifest.skills.contains_key(&put.name)
                || self.is_locked(state, &folder, &put)?
            {
                continue;
            }
            // If the parent folder was replaced by a link since, its target has files of others.
            let moved = folder.parent().is_none_or(|parent| real(parent) != parent);
            let seen = if moved { FolderContents::Absent } else { FolderContents::at(&folder)? };
            let ours = match &seen {
                FolderContents::Absent => continue,
                FolderContents::Tree(there) => self.load_last_installed(&put)?.base.is(there),
                FolderContents::Link(_) | FolderContents::Unsupported(_) => false,
            };
            if ours || (self.edits == UserEdits::Discard && seen.tree().is_some()) {
                self.changes.push(PlannedChange::Orphan(folder.clone()));
                self.report_leftovers(&seen, &folder);
                self.step(&folder, seen, FolderContents::Absent)?;
            } else {
                self.changes.push(PlannedChange::EditsLeft(folder));
            }
        }
        Ok(())
    }

    fn is_locked(
        &self,
        state: &State,
        folder: &Path,
        put: &InstalledFolder,
    ) -> Result<bool, InstallFailure> {
        let Some(locked) = state.lock.skills.get(&put.name) else { return Ok(false) };
        let targets = self.skill_set.targets(&put.name, &locked.agents)?;
        Ok(targets.iter().any(|target| target.folder == folder))
    }

    /// Loads the content that Savoir wrote to a folder. If it is not in the store, only its
    /// integrity is known.
    pub(super) fn load_last_installed(
        &self,
        put: &InstalledFolder,
    ) -> Result<LastInstalled, InstallFailure> {
        let kept = self.skill_set.store().get(&put.integrity)?;
        let kept = kept.and_then(|tree| StoredSkill::new(&put.name, tree).ok());
        let (Some(kept), Ok(agent)) = (kept, Agent::by_id(&put.agent)) else {
            return Ok(LastInstalled {
                base: InstalledBase::Lost(put.integrity.clone()),
                version: None,
            });
        };
        let base = InstalledBase::Known(deploy_for_agent(&kept.tree, &kept.summary, agent)?.tree);
        Ok(LastInstalled { base, version: Some(kept.summary.version) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Agents, File, Tree,
        install::{ProjectFiles, plan::FolderStep},
        manifest::Scope,
    };

    const LOCK: &str = "version = 1\norder = [\"x\"]\n\n[[skill]]\nname = \"x\"\nversion = \
                        \"1.0.0\"\nsource = \"path+./x\"\nintegrity = \
                        \"sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\ntier = \
                        \"experimental\"\nagents = [\"codex\", \"amp\"]\n";

    fn plan(skill_set: &SkillSet, folder: &str) -> InstallPlan {
        let mut tree = Tree::default();
        tree.add("SKILL.md".into(), File::default()).unwrap();
        let step = FolderStep {
            folder: skill_set.root.join(folder),
            was: FolderContents::Absent,
            put: FolderContents::Tree(tree),
        };
        InstallPlan {
            root: skill_set.root.clone(),
            before: ProjectFiles::default(),
            after: ProjectFiles { lock: Some(LOCK.into()), ..ProjectFiles::default() },
            steps: vec![step],
            keep: Vec::new(),
            confirmed: Vec::new(),
            changes: Vec::new(),
            growth: Vec::new(),
            undoes: None,
            remove_if_empty: Vec::new(),
        }
    }

    #[test]
    fn index_drops_folder_before_change_and_adds_it_after() {
        let place = tempfile::tempdir().unwrap();
        let agents = Agents::new(place.path(), |_| None);
        let data = place.path().join("data");
        let skill_set = SkillSet::new(&place.path().join("p"), Scope::Project, agents, data);
        let mut plan = plan(&skill_set, ".agents/skills/x");
        skill_set.remove_from_index(&plan).unwrap();
        assert!(!skill_set.installed_path().exists(), "there was nothing to strike out");
        skill_set.add_to_index(&plan).unwrap();
        let folders = skill_set.read_index().folders;
        assert_eq!(
            folders[&skill_set.root.join(".agents/skills/x")].agent,
            "amp",
            "the first of both"
        );
        skill_set.remove_from_index(&plan).unwrap();
        assert!(
            skill_set.read_index().folders.is_empty(),
            "a program that dies now removes nothing"
        );
        plan.undoes = Some("record".into());
        skill_set.add_to_index(&plan).unwrap();
        assert!(
            skill_set.read_index().folders.is_empty(),
            "what was put back may be somebody else's"
        );
        skill_set.add_to_index(&super::tests::plan(&skill_set, ".claude/skills/x")).unwrap();
        assert!(skill_set.read_index().folders.is_empty(), "the lock says nothing of this folder");
    }
}
