//! Builds a plan from the current lock and the new one.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    CheckedSkill, DeployedSkill, FetchReason, InstallFailure, InstallOptions, InstallPlan,
    OccupiedFolders, PlannedChange, ProjectFiles, SkillSet, State, Target, UserEdits,
    available::{AvailableSkills, folder},
    combine::combine,
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

/// The agent that stands for the folder that agents share.
const SHARED: &str = "universal";

impl SkillSet {
    /// Plans to install skills, or to update them: which of those that arrived, and what of what is
    /// installed stays, is decided by `savoir.toml` and by what the skills need.
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
            self.with_agents(&state, text, &further)?
        } else {
            text
        };
        let mut agents = agents_by_skill(&state.lock);
        for name in asked.keys() {
            agents.entry(name.clone()).or_default().extend(further.clone());
        }
        let mut planner = Planner::new(self, how.occupied, how.edits);
        planner.watched = ready.iter().map(|ready| ready.summary.name.clone()).collect();
        let lock = planner.choose(&state, text.as_deref(), ready, agents)?;
        planner.finish(state, text, &lock)
    }

    /// Plans to remove skills, and what only they needed. What others need stays.
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
        let lock = planner.choose(&state, text.as_deref(), &[], agents)?;
        planner.finish(state, text, &lock)
    }

    /// `savoir.toml` without a skill. It stays installed where others need it.
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
        self.without_skill(state, text, name).map(Some)
    }

    /// `savoir.toml` with some skills; as it is, if it says so already.
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

    /// `savoir.toml` with the agents of the first install, so that the next one is for the same. The
    /// folder that agents share is not written down: it is used where no agent is found.
    fn with_agents(
        &self,
        state: &State,
        text: Option<String>,
        ids: &[String],
    ) -> Result<Option<String>, InstallFailure> {
        let is_chosen = state.manifest.agents.used.is_empty() && ids.iter().any(|id| id != SHARED);
        let text = match text {
            Some(text) if is_chosen => text,
            text => return Ok(text),
        };
        let file = self.manifest_path().display().to_string();
        Ok(Some(manifest::set_agents(&file, &text, ids)?))
    }

    fn without_skill(
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

/// The skills that need one, without those that are to go, too.
fn needed_by(lock: &Lock, name: &str, going: &[String]) -> Vec<String> {
    let needs =
        |skill: &LockedSkill| skill.dependencies.iter().any(|need| folder(&need.name) == name);
    let others = lock.skills.iter().filter(|(other, skill)| !going.contains(other) && needs(skill));
    others.map(|(other, _)| other.clone()).collect()
}

/// The folders of agents, for all sets of agents that skills have.
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

    /// Where a skill lies.
    fn targets(&self, name: &str, skill: Option<&LockedSkill>) -> Vec<Target> {
        let parents = skill.and_then(|skill| self.0.get(&skill.agents));
        let targets = parents.into_iter().flatten().map(|parent| parent.inside(name)).collect();
        links::split(targets).0
    }
}

/// A plan in the making.
pub(super) struct Planner<'a> {
    pub(super) skill_set: &'a SkillSet,
    occupied: OccupiedFolders,
    pub(super) edits: UserEdits,
    /// What was read already.
    known: BTreeMap<StoredSkillKey, Arc<StoredSkill>>,
    pub(super) steps: Vec<FolderStep>,
    keep: Vec<Tree>,
    pub(super) changes: Vec<PlannedChange>,
    in_the_way: Vec<PathBuf>,
    /// What Savoir last put into folders.
    pub(super) filled: BTreeMap<PathBuf, InstalledFolder>,
    /// Folders that have what the lock says, though something else was last put there.
    confirmed: Vec<PathBuf>,
    /// Skills whose folders are looked at even if the lock says the same as before.
    pub(super) watched: BTreeSet<String>,
    /// Skills whose folders stay as they are, whatever the lock says.
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

    /// The lock that is to be.
    pub(super) fn choose(
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
            let Some(copy) = at_hand.take(&name, &chosen.version) else { continue };
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
        lock.keep_unknown(&state.lock);
        Ok(lock)
    }

    /// Takes over skills; the store gets those that it does not have as they are.
    pub(super) fn store_skills(
        &mut self,
        skills: Vec<(StoredSkillKey, StoredSkill)>,
    ) -> Result<(), InstallFailure> {
        let store = self.skill_set.store();
        let stored = parallel::map(&skills, |(known, _)| store.get(&known.integrity));
        for ((known, new), kept) in skills.into_iter().zip(stored) {
            let kept = kept?;
            // Others may count on the signature of the one that is kept.
            let loses = kept.as_ref().is_some_and(is_signed) && !new.is_signed_by_trusted();
            if kept.as_ref() != Some(&new.tree) && !loses {
                self.keep.push(new.tree.clone());
            }
            self.cache_skill(known, new);
        }
        Ok(())
    }

    /// A skill that need not be read again.
    pub(super) fn cache_skill(&mut self, known: StoredSkillKey, kept: StoredSkill) {
        self.known.insert(known, Arc::new(kept));
    }

    /// The plan that leads from one lock to the other.
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
        // What is not concerned is for `sync` to put right.
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

    /// What new versions want and the old ones did not have: neither by the lock, which anybody
    /// can edit, nor by what their own files say, where these are at hand.
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

    /// What the files of a locked skill say, as they are kept or installed.
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
            // A registry may count the same text twice.
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

    /// Everything that must be known to decide what becomes of one skill in all folders.
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
            let bases = (base.transpose()?, self.last(skill_change, target)?);
            folder_states.push(FolderState::look(skill_change, target, bases, put.transpose()?)?);
        }
        for target in was.iter().filter(|was| is.iter().all(|is| is.folder != was.folder)) {
            let base = old.map(|old| base(old, old_kept.as_deref(), target)).transpose()?;
            let bases = (base, self.last(skill_change, target)?);
            folder_states.push(FolderState::look(skill_change, target, bases, None)?);
        }
        Ok(folder_states)
    }

    /// What was last put into a folder of the lock, if the lock says something else.
    fn last(
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

    /// What the lock of GAIA says about the files of a skill, if they are kept.
    fn gaia_files(
        &self,
        name: &str,
        locked: &LockedSkill,
    ) -> Result<Option<gaia_lock::Files>, InstallFailure> {
        let kept = self.stored_skill(name, &locked.integrity)?;
        kept.map(|kept| gaia::files(&kept.tree, &kept.summary)).transpose()
    }

    /// What becomes of one folder.
    fn plan_folder(&mut self, mut folder_state: FolderState<'_>) -> Result<(), InstallFailure> {
        let seen = std::mem::replace(&mut folder_state.seen, FolderContents::Absent);
        let Some(put) = folder_state.put.take() else { return self.clear(&folder_state, seen) };
        let (name, folder) = (folder_state.skill_change.name, folder_state.target.folder.as_path());
        match (&seen, &folder_state.base) {
            (_, base) if seen.is_empty_or_absent() => {
                if base.is_some() && folder_state.is_unchanged() {
                    self.changes.push(PlannedChange::Written(folder.to_owned()));
                }
            }
            (FolderContents::Tree(there), base) if same(there, &put.tree) => {
                let resigned = folder_state.is_resigned() || base.is_none();
                self.confirm(&folder_state);
                let is_discarded = !resigned && self.edits == UserEdits::Discard;
                if same_signatures(there, &put.tree) || !resigned && !is_discarded {
                    return Ok(());
                }
                // A signature that was deleted or replaced is an edit, too.
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

    /// The lock came from elsewhere since, and names another version than the one that was put here.
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

    /// Somebody else brought the folder to what the lock says, such as `git pull`.
    fn confirm(&mut self, folder_state: &FolderState<'_>) {
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

    /// A folder that is not to have the skill any more.
    fn clear(
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

    /// A folder that goes stays with what is no part of the skill.
    pub(super) fn report_leftovers(&mut self, seen: &FolderContents, folder: &Path) {
        if seen.tree().is_some() && has_precious(folder) {
            self.changes.push(PlannedChange::EditsLeft(folder.to_owned()));
        }
    }

    /// A folder of a skill in which somebody changed something.
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
        // Edits of one skill are no edits of another that has the same name.
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
        // Somebody's link leads to where they work on the skill.
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
        let combined = combine(base, mine, &put.tree, &new.version.to_string())?;
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

    /// Changes a folder, if what lies there can be put back.
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

/// The agents that cannot read the original of a skill.
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

/// What a skill needs is wherever the skill is.
fn inherit_agents(resolution: &Resolution, agents: &mut AgentsByName) {
    // Each skill stands after what it needs, so those that need it are done first.
    for name in resolution.order.iter().rev() {
        let own = agents.get(name).cloned().unwrap_or_default();
        let needs = resolution.chosen.get(name).map(|chosen| chosen.needs.as_slice());
        for need in needs.unwrap_or_default() {
            agents.entry(need.name.clone()).or_default().extend(own.clone());
        }
    }
}

/// Whether two skills come from different repositories, folders or registries. An adopted one comes
/// from where its next version comes from.
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
