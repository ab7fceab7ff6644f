//! Builds an install plan: the steps from the current `savoir.lock` to a new one.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    CheckedSkill, DeployedSkill, FetchReason, InstallFailure, InstallOptions, InstallPlan,
    OccupiedFolders, PlannedChange, ProjectFiles, SkillSet, State, Target, UserEdits,
    available::{AvailableSkills, folder},
    combine::merge_skill,
    folder_contents::{FolderContents, is_signed, same, same_signatures},
    folder_state::{FolderState, InstalledBase, LastInstalled, SkillChange, base, put},
    gaia,
    installed_index::InstalledFolder,
    links,
    plan::FolderStep,
    stored_skill::{StoredSkill, StoredSkillKey},
};
use crate::{
    SkillSummary, Tree, gaia_lock,
    lock::{AddedCapability, Lock, LockedSkill, LockedSource},
    manifest::{self, Manifest, SkillRequirement},
    parallel,
    resolve::{Request, Resolution, resolve},
    untracked::has_precious,
};

/// The agent id of the folder that several agents share.
const SHARED_AGENT_ID: &str = "universal";

impl SkillSet {
    /// Plans to install or update skills. `savoir.toml` and the dependencies of the skills decide
    /// which of the fetched skills are used and which installed skills stay.
    pub fn install(
        &self,
        ready: &[CheckedSkill],
        how: &InstallOptions,
    ) -> Result<InstallPlan, InstallFailure> {
        let _held = self.lock_for_planning()?;
        let state = self.read()?;
        let asked = |ready: &'_ CheckedSkill| match &ready.why {
            FetchReason::Requested(wanted) => Some((ready.summary.name.clone(), wanted.clone())),
            FetchReason::Update | FetchReason::IfNeeded => None,
        };
        let asked: BTreeMap<String, SkillRequirement> = ready.iter().filter_map(asked).collect();
        asked.iter().try_for_each(|(name, wanted)| state.check_name(name, wanted))?;
        let text = self.with_skills(&state, &asked)?;
        let further: Vec<String> = how.agents.iter().map(|agent| agent.id.to_owned()).collect();
        let text = if how.agents_are_kept && !asked.is_empty() {
            self.lock_with_agents(&state, text, &further)?
        } else {
            text
        };
        let mut agents = agents_by_skill(&state.lock);
        for name in asked.keys() {
            agents.entry(name.clone()).or_default().extend(further.clone());
        }
        let mut planner = Planner::new(self, how.occupied, how.edits);
        planner.watched = ready.iter().map(|ready| ready.summary.name.clone()).collect();
        let lock = planner.resolve_skills(&state, text.as_deref(), ready, agents)?;
        planner.finish(state, text, &lock)
    }

    /// Plans to remove skills and the dependencies that only they needed. A skill that other skills
    /// need stays.
    pub fn remove(
        &self,
        names: &[String],
        edits: UserEdits,
    ) -> Result<InstallPlan, InstallFailure> {
        let _held = self.lock_for_planning()?;
        let state = self.read()?;
        let mut text = state.texts.manifest.clone();
        let mut planner = Planner::new(self, OccupiedFolders::Refuse, edits);
        for name in names {
            if !state.lock.skills.contains_key(name) && !state.manifest.skills.contains_key(name) {
                return Err(InstallFailure::NotInstalled(name.clone()));
            }
            text = self.remove_from_manifest(&state, text, name, names, &mut planner)?;
        }
        let agents = agents_by_skill(&state.lock);
        let lock = planner.resolve_skills(&state, text.as_deref(), &[], agents)?;
        planner.finish(state, text, &lock)
    }

    /// Returns `savoir.toml` without a skill. The skill stays installed if other skills need it.
    pub(super) fn remove_from_manifest(
        &self,
        state: &State,
        text: Option<String>,
        name: &str,
        going: &[String],
        planner: &mut Planner<'_>,
    ) -> Result<Option<String>, InstallFailure> {
        let by = needed_by(&state.lock, name, going);
        if !by.is_empty() {
            planner.changes.push(PlannedChange::StillNeeded { name: name.to_owned(), by });
        }
        self.manifest_without_skill(state, text, name).map(Some)
    }

    /// Returns `savoir.toml` with these skills; unchanged if it already has the same requirements.
    pub(super) fn with_skills(
        &self,
        state: &State,
        asked: &BTreeMap<String, SkillRequirement>,
    ) -> Result<Option<String>, InstallFailure> {
        let Some(text) = state.texts.manifest.clone() else {
            let is_any = !asked.is_empty();
            return is_any.then(|| self.first_manifest(state, asked)).transpose();
        };
        let is_new = |(name, wanted): &(&String, &SkillRequirement)| {
            state.manifest.skills.get(*name) != Some(*wanted)
        };
        let mut new = asked.iter().filter(is_new).peekable();
        if new.peek().is_none() {
            return Ok(Some(text));
        }
        let file = self.manifest_path().display().to_string();
        let skills = new.map(|(name, wanted)| (name.as_str(), wanted));
        Ok(Some(manifest::add_skills(&file, &text, skills)?))
    }

    /// Returns `savoir.toml` with the agents of the first install, so that the next install uses
    /// the same agents. The shared folder is not written down, because it is the default if no
    /// agent is found.
    fn lock_with_agents(
        &self,
        state: &State,
        text: Option<String>,
        ids: &[String],
    ) -> Result<Option<String>, InstallFailure> {
        let is_chosen =
            state.manifest.agents.used.is_empty() && ids.iter().any(|id| id != SHARED_AGENT_ID);
        let text = match text {
            Some(text) if is_chosen => text,
            text => return Ok(text),
        };
        let file = self.manifest_path().display().to_string();
        Ok(Some(manifest::set_agents(&file, &text, ids)?))
    }

    fn manifest_without_skill(
        &self,
        state: &State,
        text: Option<String>,
        name: &str,
    ) -> Result<String, InstallFailure> {
        let text = match text {
            Some(text) => text,
            None => self.first_manifest(state, &BTreeMap::new())?,
        };
        let file = self.manifest_path().display().to_string();
        Ok(manifest::remove_skill(&file, &text, name)?.unwrap_or(text))
    }
}

pub(super) type AgentsByName = BTreeMap<String, BTreeSet<String>>;

pub(super) fn agents_by_skill(lock: &Lock) -> AgentsByName {
    let skills = lock.skills.iter();
    skills.map(|(name, skill)| (name.clone(), skill.agents.iter().cloned().collect())).collect()
}

/// Returns the skills that depend on `name`, except those that are removed, too.
fn needed_by(lock: &Lock, name: &str, going: &[String]) -> Vec<String> {
    let needs =
        |skill: &LockedSkill| skill.dependencies.iter().any(|need| folder(&need.name) == name);
    let others = lock.skills.iter().filter(|(other, skill)| !going.contains(other) && needs(skill));
    others.map(|(other, _)| other.clone()).collect()
}

/// The skill folders of agents, for each set of agents that a skill is installed for.
struct AgentFolders(BTreeMap<Vec<String>, Vec<Target>>);

impl AgentFolders {
    fn new(
        skill_set: &SkillSet,
        skill_changes: &[SkillChange<'_>],
    ) -> Result<Self, InstallFailure> {
        let mut places = BTreeMap::new();
        for skill in skill_changes
            .iter()
            .flat_map(|skill_change| skill_change.old.into_iter().chain(skill_change.new))
        {
            if !places.contains_key(&skill.agents) {
                places.insert(skill.agents.clone(), skill_set.parents(&skill.agents)?);
            }
        }
        Ok(Self(places))
    }

    /// The folders of a skill.
    fn targets(&self, name: &str, skill: Option<&LockedSkill>) -> Vec<Target> {
        let parents = skill.and_then(|skill| self.0.get(&skill.agents));
        let targets = parents.into_iter().flatten().map(|parent| parent.inside(name)).collect();
        links::split(targets).0
    }
}

/// The state of an unfinished plan.
pub(super) struct Planner<'a> {
    pub(super) skill_set: &'a SkillSet,
    occupied: OccupiedFolders,
    pub(super) edits: UserEdits,
    /// Skills that were already read from the store.
    known: BTreeMap<StoredSkillKey, Arc<StoredSkill>>,
    pub(super) steps: Vec<FolderStep>,
    keep: Vec<Tree>,
    pub(super) changes: Vec<PlannedChange>,
    in_the_way: Vec<PathBuf>,
    /// The folders that Savoir wrote, and the skill that it last put into each.
    pub(super) filled: BTreeMap<PathBuf, InstalledFolder>,
    /// Folders that match the lock although Savoir last put another version there.
    confirmed: Vec<PathBuf>,
    /// Skills whose folders are checked even if their lock entry does not change.
    pub(super) watched: BTreeSet<String>,
    /// Skills whose folders are not changed, whatever the lock says.
    pub(super) adopted: BTreeSet<String>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        skill_set: &'a SkillSet,
        occupied: OccupiedFolders,
        edits: UserEdits,
    ) -> Self {
        Self {
            skill_set,
            occupied,
            edits,
            known: BTreeMap::new(),
            steps: Vec::new(),
            keep: Vec::new(),
            changes: Vec::new(),
            in_the_way: Vec::new(),
            filled: skill_set.last_installed(),
            confirmed: Vec::new(),
            watched: BTreeSet::new(),
            adopted: BTreeSet::new(),
        }
    }

    /// Resolves the versions and returns the new lock.
    pub(super) fn resolve_skills(
        &mut self,
        state: &State,
        manifest: Option<&str>,
        ready: &[CheckedSkill],
        mut agents: AgentsByName,
    ) -> Result<Lock, InstallFailure> {
        let file = self.skill_set.manifest_path().display().to_string();
        let manifest = match manifest {
            Some(text) => Manifest::parse(&file, text)?,
            None => state.manifest.clone(),
        };
        let mut at_hand = AvailableSkills::new(&state.lock, ready);
        let locked = state.lock.versions();
        let request = Request { roots: manifest.roots(), locked, ..Request::default() };
        let resolution = resolve(&at_hand, &request)?;
        agents.retain(|name, _| manifest.skills.contains_key(name));
        inherit_agents(&resolution, &mut agents);
        let (mut lock, mut taken) = (Lock::default(), Vec::new());
        lock.order = resolution.order;
        for (name, chosen) in resolution.chosen {
            let Some(copy) = at_hand.remove_version(&name, &chosen.version) else { continue };
            let mut skill = copy.locked;
            skill.agents = agents.remove(&name).unwrap_or_default().into_iter().collect();
            if skill.agents.is_empty() {
                return Err(InstallFailure::NoAgents(name));
            }
            if let Some(ready) = copy.ready {
                taken.push((StoredSkillKey::new(&name, &skill.integrity), StoredSkill::of(ready)));
            }
            lock.skills.insert(name, skill);
        }
        self.store_skills(taken)?;
        lock.copy_unknown_fields(&state.lock);
        Ok(lock)
    }

    /// Caches these skills, and plans to write those to the store that it does not have or has with
    /// other signatures.
    pub(super) fn store_skills(
        &mut self,
        skills: Vec<(StoredSkillKey, StoredSkill)>,
    ) -> Result<(), InstallFailure> {
        let store = self.skill_set.store();
        let stored = parallel::map(&skills, |(known, _)| store.get(&known.integrity));
        for ((known, new), kept) in skills.into_iter().zip(stored) {
            let kept = kept?;
            // Other projects may rely on the signature of the stored copy, so an unsigned copy must
            // not replace it.
            let loses = kept.as_ref().is_some_and(is_signed) && !new.is_signed_by_trusted();
            if kept.as_ref() != Some(&new.tree) && !loses {
                self.keep.push(new.tree.clone());
            }
            self.cache_skill(known, new);
        }
        Ok(())
    }

    /// Caches a skill, so that it is not read from the store again.
    pub(super) fn cache_skill(&mut self, known: StoredSkillKey, kept: StoredSkill) {
        self.known.insert(known, Arc::new(kept));
    }

    /// Returns the plan that leads from the lock of `state` to `lock`.
    pub(super) fn finish(
        mut self,
        state: State,
        manifest: Option<String>,
        lock: &Lock,
    ) -> Result<InstallPlan, InstallFailure> {
        let names: BTreeSet<&String> = state.lock.skills.keys().chain(lock.skills.keys()).collect();
        let skill_changes = names.into_iter().map(|name| {
            let (old, new) = (state.lock.skills.get(name), lock.skills.get(name));
            SkillChange { name, old, new }
        });
        // `sync` repairs the folders of skills that this change does not concern.
        let skill_changes: Vec<SkillChange<'_>> = skill_changes
            .filter(|skill_change| {
                self.watched.contains(skill_change.name) || !skill_change.is_same()
            })
            .filter(|skill_change| !self.adopted.contains(skill_change.name))
            .collect();
        let places = AgentFolders::new(self.skill_set, &skill_changes)?;
        let looked =
            parallel::map(&skill_changes, |skill_change| self.read_folders(*skill_change, &places));
        let mut written = lock.clone();
        for (skill_change, folder_states) in skill_changes.iter().zip(looked) {
            self.record_change(*skill_change);
            let folder_states = folder_states?;
            if let Some(skill) = written.skills.get_mut(skill_change.name) {
                skill.converted = converted_for(&folder_states);
            }
            folder_states
                .into_iter()
                .try_for_each(|folder_state| self.plan_folder(folder_state))?;
            if let (Some(old), None) = (skill_change.old, skill_change.new) {
                self.clear_links(skill_change.name, &old.agents)?;
            }
        }
        if !self.in_the_way.is_empty() {
            return Err(InstallFailure::Occupied(self.in_the_way));
        }
        let growth = self.added_capabilities(&state.lock, lock)?;
        let text = written.to_string();
        let nothing = state.texts.lock.is_none() && lock.skills.is_empty();
        let change = gaia::LockChange { manifest: manifest.as_deref(), was: &state.lock, is: lock };
        let files = |name: &str, locked: &LockedSkill| self.gaia_files(name, locked);
        let (gaia, gaia_after) = self.skill_set.gaia_lock(&change, files)?.unzip();
        let lock = if nothing { None } else { Some(text) };
        let after = ProjectFiles { manifest, lock, gaia: gaia_after };
        Ok(InstallPlan {
            root: self.skill_set.root.clone(),
            before: ProjectFiles { gaia, ..state.texts },
            after,
            steps: self.steps,
            keep: self.keep,
            confirmed: self.confirmed,
            changes: self.changes,
            growth,
            undoes: None,
            remove_if_empty: Vec::new(),
        })
    }

    /// Returns the capabilities that new versions request and the old ones did not. The old
    /// capabilities are taken from the lock, and also from the old files if they are available,
    /// since anyone can edit the lock.
    fn added_capabilities(
        &self,
        was: &Lock,
        is: &Lock,
    ) -> Result<Vec<AddedCapability>, InstallFailure> {
        let by_lock = was.added_capabilities(is);
        let mut growth = by_lock.clone();
        for (name, old) in &was.skills {
            let Some(new) = is.skills.get(name).filter(|new| new.integrity != old.integrity) else {
                continue;
            };
            let Some(summary) = self.old_summary(name, old)? else { continue };
            let mut written = old.clone();
            (written.permissions, written.tools) = (summary.permissions, summary.tools);
            let further = written.added_capabilities(name, new);
            growth.extend(further.into_iter().filter(|one| !by_lock.contains(one)));
        }
        Ok(growth)
    }

    /// Returns the summary of a locked skill from its stored or installed files.
    fn old_summary(
        &self,
        name: &str,
        old: &LockedSkill,
    ) -> Result<Option<SkillSummary>, InstallFailure> {
        if let Some(kept) = self.stored_skill(name, &old.integrity)? {
            return Ok(Some(kept.summary.clone()));
        }
        let tree = self.skill_set.installed(name, old)?;
        Ok(tree.and_then(|tree| SkillSummary::read(&tree, name).ok()))
    }

    fn record_change(&mut self, SkillChange { name, old, new }: SkillChange<'_>) {
        let name = name.to_owned();
        let change = match (old, new) {
            (None, Some(new)) => PlannedChange::New {
                name,
                version: new.version.clone(),
                agents: new.agents.clone(),
            },
            (Some(old), None) => PlannedChange::Removed { name, version: old.version.clone() },
            // A registry may publish the same files under two versions.
            (Some(old), Some(new))
                if (&old.integrity, &old.version) != (&new.integrity, &new.version) =>
            {
                PlannedChange::Updated { name, from: old.version.clone(), to: new.version.clone() }
            }
            (Some(old), Some(new)) => {
                let further = new.agents.iter().filter(|id| !old.agents.contains(id));
                let agents: Vec<String> = further.cloned().collect();
                if agents.is_empty() {
                    return;
                }
                PlannedChange::AgentsAdded { name, agents }
            }
            (None, None) => return,
        };
        self.changes.push(change);
    }

    /// Reads the state of all folders of one skill that the plan depends on.
    fn read_folders<'b>(
        &self,
        skill_change: SkillChange<'b>,
        places: &AgentFolders,
    ) -> Result<Vec<FolderState<'b>>, InstallFailure> {
        let SkillChange { name, old, new } = skill_change;
        let kept = |skill: Option<&LockedSkill>| {
            skill.map_or(Ok(None), |skill| self.stored_skill(name, &skill.integrity))
        };
        let same = old.zip(new).is_some_and(|(old, new)| old.integrity == new.integrity);
        let old_kept = kept(old)?;
        let new_kept = if same { old_kept.clone() } else { kept(new)? };
        let (was, is) = (places.targets(name, old), places.targets(name, new));
        let mut folder_states = Vec::new();
        for target in &is {
            let before = was.iter().find(|known| known.folder == target.folder);
            let base = old.zip(before).map(|(old, before)| base(old, old_kept.as_deref(), before));
            let put = new.map(|new| put(name, new, new_kept.as_deref(), target));
            let bases = (base.transpose()?, self.last_installed(skill_change, target)?);
            folder_states.push(FolderState::look(skill_change, target, bases, put.transpose()?)?);
        }
        for target in was.iter().filter(|was| is.iter().all(|is| is.folder != was.folder)) {
            let base = old.map(|old| base(old, old_kept.as_deref(), target)).transpose()?;
            let bases = (base, self.last_installed(skill_change, target)?);
            folder_states.push(FolderState::look(skill_change, target, bases, None)?);
        }
        Ok(folder_states)
    }

    /// Returns the content that Savoir last put into a folder, if it differs from the old lock
    /// entry.
    fn last_installed(
        &self,
        skill_change: SkillChange<'_>,
        target: &Target,
    ) -> Result<Option<LastInstalled>, InstallFailure> {
        let filled = self.filled.get(&target.folder).filter(|put| put.name == skill_change.name);
        let differs = |put: &&InstalledFolder| {
            skill_change.old.is_some_and(|old| old.integrity != put.integrity)
        };
        filled.filter(differs).map(|put| self.load_last_installed(put)).transpose()
    }

    pub(super) fn stored_skill(
        &self,
        name: &str,
        integrity: &str,
    ) -> Result<Option<Arc<StoredSkill>>, InstallFailure> {
        if let Some(kept) = self.known.get(&StoredSkillKey::new(name, integrity)) {
            return Ok(Some(Arc::clone(kept)));
        }
        Ok(StoredSkill::read(&self.skill_set.store(), name, integrity)?.map(Arc::new))
    }

    /// Returns the file entries of a skill for the lock of GAIA, if its files are in the store.
    fn gaia_files(
        &self,
        name: &str,
        locked: &LockedSkill,
    ) -> Result<Option<gaia_lock::Files>, InstallFailure> {
        let kept = self.stored_skill(name, &locked.integrity)?;
        kept.map(|kept| gaia::files(&kept.tree, &kept.summary)).transpose()
    }

    /// Plans the change of one folder.
    fn plan_folder(&mut self, mut folder_state: FolderState<'_>) -> Result<(), InstallFailure> {
        let seen = std::mem::replace(&mut folder_state.seen, FolderContents::Absent);
        let Some(put) = folder_state.put.take() else {
            return self.plan_removal(&folder_state, seen);
        };
        let (name, folder) = (folder_state.skill_change.name, folder_state.target.folder.as_path());
        match (&seen, &folder_state.base) {
            (_, base) if seen.is_empty_or_absent() => {
                if base.is_some() && folder_state.is_unchanged() {
                    self.changes.push(PlannedChange::Written(folder.to_owned()));
                }
            }
            (FolderContents::Tree(there), base) if same(there, &put.tree) => {
                let resigned = folder_state.is_resigned() || base.is_none();
                self.record_confirmed(&folder_state);
                let is_discarded = !resigned && self.edits == UserEdits::Discard;
                if same_signatures(there, &put.tree) || !resigned && !is_discarded {
                    return Ok(());
                }
                // A deleted or replaced signature counts as an edit, too.
                if is_discarded && folder_state.is_unchanged() {
                    self.changes.push(PlannedChange::Repaired(folder.to_owned()));
                }
            }
            (FolderContents::Tree(there), Some(_)) if folder_state.is_as_filled(there) => {
                self.report_late_update(&folder_state);
            }
            (_, Some(_)) => return self.plan_edited_folder(&folder_state, seen, put),
            (_, None) if self.occupied == OccupiedFolders::Refuse => {
                self.in_the_way.push(folder.to_owned());
                return Ok(());
            }
            (_, None) => self.changes.push(PlannedChange::Replaced(folder.to_owned())),
        }
        self.report_conversion(name, &folder_state.target, &put);
        self.step(folder, seen, FolderContents::Tree(put.tree))
    }

    /// Reports an update if the lock was changed elsewhere (for example by `git pull`) and names
    /// another version than the one that Savoir put into the folder.
    fn report_late_update(&mut self, folder_state: &FolderState<'_>) {
        let (Some(last), Some(new)) = (&folder_state.last, folder_state.skill_change.new) else {
            return;
        };
        if !folder_state.is_unchanged() {
            return;
        }
        let change = match &last.version {
            Some(from) => PlannedChange::Updated {
                name: folder_state.skill_change.name.to_owned(),
                from: from.clone(),
                to: new.version.clone(),
            },
            None => PlannedChange::Repaired(folder_state.target.folder.clone()),
        };
        if !self.changes.contains(&change) {
            self.changes.push(change);
        }
    }

    /// Records a folder that another program, such as `git pull`, already changed to match the
    /// lock.
    fn record_confirmed(&mut self, folder_state: &FolderState<'_>) {
        let folder = &folder_state.target.folder;
        let known = self.filled.get(folder).zip(folder_state.skill_change.new);
        if known.is_some_and(|(put, new)| put.integrity != new.integrity) {
            self.confirmed.push(folder.clone());
        }
    }

    fn report_conversion(&mut self, name: &str, target: &Target, put: &DeployedSkill) {
        if !put.report.is_empty() {
            let (agent, report) = (target.agent.title, put.report.clone());
            self.changes.push(PlannedChange::Converted { name: name.to_owned(), agent, report });
        }
    }

    /// Plans to remove the skill from a folder.
    fn plan_removal(
        &mut self,
        folder_state: &FolderState<'_>,
        seen: FolderContents,
    ) -> Result<(), InstallFailure> {
        let folder = &folder_state.target.folder;
        let ours = match (&seen, &folder_state.base) {
            (FolderContents::Absent, _) => return Ok(()),
            (FolderContents::Tree(there), Some(_)) => folder_state.is_as_filled(there),
            _ => false,
        };
        let source = folder_state.skill_change.old.map(|old| &old.source);
        let own = source.is_some_and(|source| self.skill_set.is_source(source, folder));
        if (own || !ours) && self.edits == UserEdits::Keep {
            let folder = folder.clone();
            self.changes.push(if own {
                PlannedChange::SourceFolder(folder)
            } else {
                PlannedChange::EditsLeft(folder)
            });
            return Ok(());
        }
        self.report_leftovers(&seen, folder);
        self.step(folder, seen, FolderContents::Absent)
    }

    /// Reports that a removed folder stays because it has untracked files.
    pub(super) fn report_leftovers(&mut self, seen: &FolderContents, folder: &Path) {
        if seen.tree().is_some() && has_precious(folder) {
            self.changes.push(PlannedChange::EditsLeft(folder.to_owned()));
        }
    }

    /// Plans the change of a folder that the user edited: discards the edits, or merges the new
    /// version into them.
    fn plan_edited_folder(
        &mut self,
        folder_state: &FolderState<'_>,
        seen: FolderContents,
        put: DeployedSkill,
    ) -> Result<(), InstallFailure> {
        let folder = folder_state.target.folder.as_path();
        if self.edits == UserEdits::Discard {
            if folder_state.is_unchanged() {
                self.changes.push(PlannedChange::Repaired(folder.to_owned()));
            }
            return self.step(folder, seen, FolderContents::Tree(put.tree));
        }
        // Edits of one skill must not be merged into another skill that has the same name.
        if let (Some(old), Some(new)) =
            (folder_state.skill_change.old, folder_state.skill_change.new)
            && is_other_source(&old.source, &new.source)
        {
            return Err(InstallFailure::Edited(vec![folder.to_owned()]));
        }
        let base = folder_state.merge_base();
        let late =
            matches!(&folder_state.last, Some(LastInstalled { base: InstalledBase::Known(_), .. }));
        if folder_state.is_unchanged() && !late || base.is_some_and(|base| base.is(&put.tree)) {
            self.changes.push(PlannedChange::EditsLeft(folder.to_owned()));
            return Ok(());
        }
        // A link of the user leads to the folder in which they develop the skill.
        let FolderContents::Tree(mine) = &seen else {
            self.changes.push(PlannedChange::EditsLeft(folder.to_owned()));
            return Ok(());
        };
        let (Some(InstalledBase::Known(base)), Some(new)) = (base, folder_state.skill_change.new)
        else {
            let version = folder_state
                .skill_change
                .old
                .map_or(semver::Version::new(0, 0, 0), |old| old.version.clone());
            return Err(InstallFailure::NotKept {
                name: folder_state.skill_change.name.to_owned(),
                version,
            });
        };
        self.report_late_update(folder_state);
        let combined = merge_skill(base, mine, &put.tree, &new.version.to_string())?;
        let here = || folder.to_owned();
        for file in combined.merged {
            self.changes.push(PlannedChange::Merged { folder: here(), file });
        }
        for (file, places) in combined.conflicts {
            self.changes.push(PlannedChange::Conflict { folder: here(), file, places });
        }
        for file in combined.kept {
            self.changes.push(PlannedChange::EditsKept { folder: here(), file });
        }
        self.step(folder, seen, FolderContents::Tree(combined.tree))
    }

    /// Adds a step that changes a folder. Fails if the old content could not be restored.
    pub(super) fn step(
        &mut self,
        folder: &Path,
        was: FolderContents,
        put: FolderContents,
    ) -> Result<(), InstallFailure> {
        if let Some(why) = was.unsupported_reason() {
            let (path, why) = (folder.to_owned(), why.to_owned());
            return Err(InstallFailure::Unkeepable { path, why });
        }
        if was != put {
            self.steps.push(FolderStep { folder: folder.to_owned(), was, put });
        }
        Ok(())
    }
}

/// Returns the agents for which the skill was converted to their dialect.
fn converted_for(folder_states: &[FolderState<'_>]) -> Vec<String> {
    let is_converted = |folder_state: &&FolderState<'_>| {
        folder_state.put.as_ref().is_some_and(|put| !put.report.is_empty())
    };
    folder_states
        .iter()
        .filter(is_converted)
        .map(|folder_state| folder_state.target.agent.id.to_owned())
        .collect()
}

/// Installs dependencies for all agents of the skills that need them.
fn inherit_agents(resolution: &Resolution, agents: &mut AgentsByName) {
    // The order lists dependencies first. In reverse, the agents of a skill are complete before
    // they are passed on to its dependencies.
    for name in resolution.order.iter().rev() {
        let own = agents.get(name).cloned().unwrap_or_default();
        let needs = resolution.chosen.get(name).map(|chosen| chosen.needs.as_slice());
        for need in needs.unwrap_or_default() {
            agents.entry(need.name.clone()).or_default().extend(own.clone());
        }
    }
}

/// Whether two locked skills come from different repositories, folders or registries. An adopted
/// skill counts as coming from the source of its next version.
fn is_other_source(one: &LockedSource, other: &LockedSource) -> bool {
    if matches!(one, LockedSource::Adopted { .. }) {
        return false;
    }
    let place = |source: &LockedSource| match source {
        LockedSource::Git { url, .. } => url.clone(),
        other => other.to_string().split('#').next().unwrap_or_default().to_owned(),
    };
    place(one) != place(other)
}
