//! How a plan is made: from the lock that is and the one that is to be.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Change, Deployed, Edits, Install, InstallFailure, Occupied, Plan, Ready, SkillSet, State,
    Target, Texts, Why,
    combine::combine,
    folders::{Seen, is_signed, same, same_signatures},
    gaia,
    index::{AtHand, folder},
    installed::Put,
    kept::{Kept, Known},
    links,
    plan::Step,
    spot::{Base, Concern, Last, Spot, base, put},
};
use crate::{
    SkillSummary, Tree, gaia_lock,
    lock::{Growth, Lock, LockedSkill, LockedSource},
    manifest::{self, Manifest, Wanted},
    parallel,
    resolve::{Request, Resolution, resolve},
    untracked::has_precious,
};

/// The agent that stands for the folder that agents share.
const SHARED: &str = "universal";

impl SkillSet {
    /// Plans to install skills, or to update them: which of those that arrived, and what of what is
    /// installed stays, is decided by `savoir.toml` and by what the skills need.
    pub fn install(&self, ready: &[Ready], how: &Install) -> Result<Plan, InstallFailure> {
        let _held = self.steady()?;
        let state = self.read()?;
        let asked = |ready: &'_ Ready| match &ready.why {
            Why::Asked(wanted) => Some((ready.summary.name.clone(), wanted.clone())),
            Why::Newer | Why::Spare => None,
        };
        let asked: BTreeMap<String, Wanted> = ready.iter().filter_map(asked).collect();
        asked.iter().try_for_each(|(name, wanted)| state.check_name(name, wanted))?;
        let text = self.with_skills(&state, &asked)?;
        let further: Vec<String> = how.agents.iter().map(|agent| agent.id.to_owned()).collect();
        let text = if how.agents_are_kept && !asked.is_empty() {
            self.with_agents(&state, text, &further)?
        } else {
            text
        };
        let mut agents = agents_now(&state.lock);
        for name in asked.keys() {
            agents.entry(name.clone()).or_default().extend(further.clone());
        }
        let mut planner = Planner::new(self, how.occupied, how.edits);
        planner.watched = ready.iter().map(|ready| ready.summary.name.clone()).collect();
        let lock = planner.choose(&state, text.as_deref(), ready, agents)?;
        planner.finish(state, text, &lock)
    }

    /// Plans to remove skills, and what only they needed. What others need stays.
    pub fn remove(&self, names: &[String], edits: Edits) -> Result<Plan, InstallFailure> {
        let _held = self.steady()?;
        let state = self.read()?;
        let mut text = state.texts.manifest.clone();
        let mut planner = Planner::new(self, Occupied::Refuse, edits);
        for name in names {
            if !state.lock.skills.contains_key(name) && !state.manifest.skills.contains_key(name) {
                return Err(InstallFailure::NotInstalled(name.clone()));
            }
            text = self.let_go(&state, text, name, names, &mut planner)?;
        }
        let agents = agents_now(&state.lock);
        let lock = planner.choose(&state, text.as_deref(), &[], agents)?;
        planner.finish(state, text, &lock)
    }

    /// `savoir.toml` without a skill. It stays installed where others need it.
    pub(super) fn let_go(
        &self,
        state: &State,
        text: Option<String>,
        name: &str,
        going: &[String],
        planner: &mut Planner<'_>,
    ) -> Result<Option<String>, InstallFailure> {
        let by = needed_by(&state.lock, name, going);
        if !by.is_empty() {
            planner.changes.push(Change::StillNeeded { name: name.to_owned(), by });
        }
        self.without_skill(state, text, name).map(Some)
    }

    /// `savoir.toml` with some skills; as it is, if it says so already.
    pub(super) fn with_skills(
        &self,
        state: &State,
        asked: &BTreeMap<String, Wanted>,
    ) -> Result<Option<String>, InstallFailure> {
        let Some(text) = state.texts.manifest.clone() else {
            let is_any = !asked.is_empty();
            return is_any.then(|| self.first_manifest(state, asked)).transpose();
        };
        let is_new =
            |(name, wanted): &(&String, &Wanted)| state.manifest.skills.get(*name) != Some(*wanted);
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

pub(super) fn agents_now(lock: &Lock) -> AgentsByName {
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
struct Places(BTreeMap<Vec<String>, Vec<Target>>);

impl Places {
    fn new(shelf: &SkillSet, concerns: &[Concern<'_>]) -> Result<Self, InstallFailure> {
        let mut places = BTreeMap::new();
        for skill in concerns.iter().flat_map(|concern| concern.old.into_iter().chain(concern.new))
        {
            if !places.contains_key(&skill.agents) {
                places.insert(skill.agents.clone(), shelf.parents(&skill.agents)?);
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
    pub(super) shelf: &'a SkillSet,
    occupied: Occupied,
    pub(super) edits: Edits,
    /// What was read already.
    known: BTreeMap<Known, Arc<Kept>>,
    pub(super) steps: Vec<Step>,
    keep: Vec<Tree>,
    pub(super) changes: Vec<Change>,
    in_the_way: Vec<PathBuf>,
    /// What Savoir last put into folders.
    pub(super) filled: BTreeMap<PathBuf, Put>,
    /// Folders that have what the lock says, though something else was last put there.
    confirmed: Vec<PathBuf>,
    /// Skills whose folders are looked at even if the lock says the same as before.
    pub(super) watched: BTreeSet<String>,
    /// Skills whose folders stay as they are, whatever the lock says.
    pub(super) adopted: BTreeSet<String>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(shelf: &'a SkillSet, occupied: Occupied, edits: Edits) -> Self {
        Self {
            shelf,
            occupied,
            edits,
            known: BTreeMap::new(),
            steps: Vec::new(),
            keep: Vec::new(),
            changes: Vec::new(),
            in_the_way: Vec::new(),
            filled: shelf.filled(),
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
        ready: &[Ready],
        mut agents: AgentsByName,
    ) -> Result<Lock, InstallFailure> {
        let file = self.shelf.manifest_path().display().to_string();
        let manifest = match manifest {
            Some(text) => Manifest::parse(&file, text)?,
            None => state.manifest.clone(),
        };
        let mut at_hand = AtHand::new(&state.lock, ready);
        let locked = state.lock.versions();
        let request = Request { roots: manifest.roots(), locked, ..Request::default() };
        let resolution = resolve(&at_hand, &request)?;
        agents.retain(|name, _| manifest.skills.contains_key(name));
        hand_down(&resolution, &mut agents);
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
                taken.push((Known::new(&name, &skill.integrity), Kept::of(ready)));
            }
            lock.skills.insert(name, skill);
        }
        self.take(taken)?;
        lock.keep_unknown(&state.lock);
        Ok(lock)
    }

    /// Takes over skills; the store gets those that it does not have as they are.
    pub(super) fn take(&mut self, skills: Vec<(Known, Kept)>) -> Result<(), InstallFailure> {
        let store = self.shelf.store();
        let stored = parallel::map(&skills, |(known, _)| store.get(&known.integrity));
        for ((known, new), kept) in skills.into_iter().zip(stored) {
            let kept = kept?;
            // Others may count on the signature of the one that is kept.
            let loses = kept.as_ref().is_some_and(is_signed) && !new.is_vouched_for();
            if kept.as_ref() != Some(&new.tree) && !loses {
                self.keep.push(new.tree.clone());
            }
            self.know(known, new);
        }
        Ok(())
    }

    /// A skill that need not be read again.
    pub(super) fn know(&mut self, known: Known, kept: Kept) {
        self.known.insert(known, Arc::new(kept));
    }

    /// The plan that leads from one lock to the other.
    pub(super) fn finish(
        mut self,
        state: State,
        manifest: Option<String>,
        lock: &Lock,
    ) -> Result<Plan, InstallFailure> {
        let names: BTreeSet<&String> = state.lock.skills.keys().chain(lock.skills.keys()).collect();
        let concerns = names.into_iter().map(|name| {
            let (old, new) = (state.lock.skills.get(name), lock.skills.get(name));
            Concern { name, old, new }
        });
        // What is not concerned is for `sync` to put right.
        let concerns: Vec<Concern<'_>> = concerns
            .filter(|concern| self.watched.contains(concern.name) || !concern.is_same())
            .filter(|concern| !self.adopted.contains(concern.name))
            .collect();
        let places = Places::new(self.shelf, &concerns)?;
        let looked = parallel::map(&concerns, |concern| self.look(*concern, &places));
        let mut written = lock.clone();
        for (concern, spots) in concerns.iter().zip(looked) {
            self.tell(*concern);
            let spots = spots?;
            if let Some(skill) = written.skills.get_mut(concern.name) {
                skill.converted = converted_for(&spots);
            }
            spots.into_iter().try_for_each(|spot| self.settle(spot))?;
            if let (Some(old), None) = (concern.old, concern.new) {
                self.clear_links(concern.name, &old.agents)?;
            }
        }
        if !self.in_the_way.is_empty() {
            return Err(InstallFailure::Occupied(self.in_the_way));
        }
        let growth = self.growth(&state.lock, lock)?;
        let text = written.to_string();
        let nothing = state.texts.lock.is_none() && lock.skills.is_empty();
        let change = gaia::Locks { manifest: manifest.as_deref(), was: &state.lock, is: lock };
        let files = |name: &str, locked: &LockedSkill| self.gaia_files(name, locked);
        let (gaia, gaia_after) = self.shelf.gaia_lock(&change, files)?.unzip();
        let lock = if nothing { None } else { Some(text) };
        let after = Texts { manifest, lock, gaia: gaia_after };
        Ok(Plan {
            root: self.shelf.root.clone(),
            before: Texts { gaia, ..state.texts },
            after,
            steps: self.steps,
            keep: self.keep,
            confirmed: self.confirmed,
            changes: self.changes,
            growth,
            undoes: None,
            unmake: Vec::new(),
        })
    }

    /// What new versions want and the old ones did not have: neither by the lock, which anybody
    /// can edit, nor by what their own files say, where these are at hand.
    fn growth(&self, was: &Lock, is: &Lock) -> Result<Vec<Growth>, InstallFailure> {
        let by_lock = was.growth(is);
        let mut growth = by_lock.clone();
        for (name, old) in &was.skills {
            let Some(new) = is.skills.get(name).filter(|new| new.integrity != old.integrity) else {
                continue;
            };
            let Some(summary) = self.old_card(name, old)? else { continue };
            let mut written = old.clone();
            (written.permissions, written.tools) = (summary.permissions, summary.tools);
            let further = written.growth(name, new);
            growth.extend(further.into_iter().filter(|one| !by_lock.contains(one)));
        }
        Ok(growth)
    }

    /// What the files of a locked skill say, as they are kept or installed.
    fn old_card(
        &self,
        name: &str,
        old: &LockedSkill,
    ) -> Result<Option<SkillSummary>, InstallFailure> {
        if let Some(kept) = self.kept(name, &old.integrity)? {
            return Ok(Some(kept.summary.clone()));
        }
        let tree = self.shelf.installed(name, old)?;
        Ok(tree.and_then(|tree| SkillSummary::read(&tree, name).ok()))
    }

    fn tell(&mut self, Concern { name, old, new }: Concern<'_>) {
        let name = name.to_owned();
        let change = match (old, new) {
            (None, Some(new)) => {
                Change::New { name, version: new.version.clone(), agents: new.agents.clone() }
            }
            (Some(old), None) => Change::Removed { name, version: old.version.clone() },
            // A registry may count the same text twice.
            (Some(old), Some(new))
                if (&old.integrity, &old.version) != (&new.integrity, &new.version) =>
            {
                Change::Updated { name, from: old.version.clone(), to: new.version.clone() }
            }
            (Some(old), Some(new)) => {
                let further = new.agents.iter().filter(|id| !old.agents.contains(id));
                let agents: Vec<String> = further.cloned().collect();
                if agents.is_empty() {
                    return;
                }
                Change::Further { name, agents }
            }
            (None, None) => return,
        };
        self.changes.push(change);
    }

    /// Everything that must be known to decide what becomes of one skill in all folders.
    fn look<'b>(
        &self,
        concern: Concern<'b>,
        places: &Places,
    ) -> Result<Vec<Spot<'b>>, InstallFailure> {
        let Concern { name, old, new } = concern;
        let kept = |skill: Option<&LockedSkill>| {
            skill.map_or(Ok(None), |skill| self.kept(name, &skill.integrity))
        };
        let same = old.zip(new).is_some_and(|(old, new)| old.integrity == new.integrity);
        let old_kept = kept(old)?;
        let new_kept = if same { old_kept.clone() } else { kept(new)? };
        let (was, is) = (places.targets(name, old), places.targets(name, new));
        let mut spots = Vec::new();
        for target in &is {
            let before = was.iter().find(|known| known.folder == target.folder);
            let base = old.zip(before).map(|(old, before)| base(old, old_kept.as_deref(), before));
            let put = new.map(|new| put(name, new, new_kept.as_deref(), target));
            let bases = (base.transpose()?, self.last(concern, target)?);
            spots.push(Spot::look(concern, target, bases, put.transpose()?)?);
        }
        for target in was.iter().filter(|was| is.iter().all(|is| is.folder != was.folder)) {
            let base = old.map(|old| base(old, old_kept.as_deref(), target)).transpose()?;
            let bases = (base, self.last(concern, target)?);
            spots.push(Spot::look(concern, target, bases, None)?);
        }
        Ok(spots)
    }

    /// What was last put into a folder of the lock, if the lock says something else.
    fn last(&self, concern: Concern<'_>, target: &Target) -> Result<Option<Last>, InstallFailure> {
        let filled = self.filled.get(&target.folder).filter(|put| put.name == concern.name);
        let differs = |put: &&Put| concern.old.is_some_and(|old| old.integrity != put.integrity);
        filled.filter(differs).map(|put| self.last_put(put)).transpose()
    }

    pub(super) fn kept(
        &self,
        name: &str,
        integrity: &str,
    ) -> Result<Option<Arc<Kept>>, InstallFailure> {
        if let Some(kept) = self.known.get(&Known::new(name, integrity)) {
            return Ok(Some(Arc::clone(kept)));
        }
        Ok(Kept::read(&self.shelf.store(), name, integrity)?.map(Arc::new))
    }

    /// What the lock of GAIA says about the files of a skill, if they are kept.
    fn gaia_files(
        &self,
        name: &str,
        locked: &LockedSkill,
    ) -> Result<Option<gaia_lock::Files>, InstallFailure> {
        let kept = self.kept(name, &locked.integrity)?;
        kept.map(|kept| gaia::files(&kept.tree, &kept.summary)).transpose()
    }

    /// What becomes of one folder.
    fn settle(&mut self, mut spot: Spot<'_>) -> Result<(), InstallFailure> {
        let seen = std::mem::replace(&mut spot.seen, Seen::Absent);
        let Some(put) = spot.put.take() else { return self.clear(&spot, seen) };
        let (name, folder) = (spot.concern.name, spot.target.folder.as_path());
        match (&seen, &spot.base) {
            (_, base) if seen.is_nothing() => {
                if base.is_some() && spot.is_unchanged() {
                    self.changes.push(Change::Filled(folder.to_owned()));
                }
            }
            (Seen::Tree(there), base) if same(there, &put.tree) => {
                let resigned = spot.is_resigned() || base.is_none();
                self.confirm(&spot);
                let is_discarded = !resigned && self.edits == Edits::Discard;
                if same_signatures(there, &put.tree) || !resigned && !is_discarded {
                    return Ok(());
                }
                // A signature that was deleted or replaced is an edit, too.
                if is_discarded && spot.is_unchanged() {
                    self.changes.push(Change::Mended(folder.to_owned()));
                }
            }
            (Seen::Tree(there), Some(_)) if spot.is_as_filled(there) => self.tell_late(&spot),
            (_, Some(_)) => return self.edited(&spot, seen, put),
            (_, None) if self.occupied == Occupied::Refuse => {
                self.in_the_way.push(folder.to_owned());
                return Ok(());
            }
            (_, None) => self.changes.push(Change::Replaced(folder.to_owned())),
        }
        self.tell_conversion(name, &spot.target, &put);
        self.step(folder, seen, Seen::Tree(put.tree))
    }

    /// The lock came from elsewhere since, and names another version than the one that was put here.
    fn tell_late(&mut self, spot: &Spot<'_>) {
        let (Some(last), Some(new)) = (&spot.last, spot.concern.new) else { return };
        if !spot.is_unchanged() {
            return;
        }
        let change = match &last.version {
            Some(from) => Change::Updated {
                name: spot.concern.name.to_owned(),
                from: from.clone(),
                to: new.version.clone(),
            },
            None => Change::Mended(spot.target.folder.clone()),
        };
        if !self.changes.contains(&change) {
            self.changes.push(change);
        }
    }

    /// Somebody else brought the folder to what the lock says, such as `git pull`.
    fn confirm(&mut self, spot: &Spot<'_>) {
        let folder = &spot.target.folder;
        let known = self.filled.get(folder).zip(spot.concern.new);
        if known.is_some_and(|(put, new)| put.integrity != new.integrity) {
            self.confirmed.push(folder.clone());
        }
    }

    fn tell_conversion(&mut self, name: &str, target: &Target, put: &Deployed) {
        if !put.report.is_empty() {
            let (agent, report) = (target.agent.title, put.report.clone());
            self.changes.push(Change::Converted { name: name.to_owned(), agent, report });
        }
    }

    /// A folder that is not to have the skill any more.
    fn clear(&mut self, spot: &Spot<'_>, seen: Seen) -> Result<(), InstallFailure> {
        let folder = &spot.target.folder;
        let ours = match (&seen, &spot.base) {
            (Seen::Absent, _) => return Ok(()),
            (Seen::Tree(there), Some(_)) => spot.is_as_filled(there),
            _ => false,
        };
        let source = spot.concern.old.map(|old| &old.source);
        let own = source.is_some_and(|source| self.shelf.is_source(source, folder));
        if (own || !ours) && self.edits == Edits::Keep {
            let folder = folder.clone();
            self.changes.push(if own { Change::Own(folder) } else { Change::Left(folder) });
            return Ok(());
        }
        self.tell_leftovers(&seen, folder);
        self.step(folder, seen, Seen::Absent)
    }

    /// A folder that goes stays with what is no part of the skill.
    pub(super) fn tell_leftovers(&mut self, seen: &Seen, folder: &Path) {
        if seen.tree().is_some() && has_precious(folder) {
            self.changes.push(Change::Left(folder.to_owned()));
        }
    }

    /// A folder of a skill in which somebody changed something.
    fn edited(&mut self, spot: &Spot<'_>, seen: Seen, put: Deployed) -> Result<(), InstallFailure> {
        let folder = spot.target.folder.as_path();
        if self.edits == Edits::Discard {
            if spot.is_unchanged() {
                self.changes.push(Change::Mended(folder.to_owned()));
            }
            return self.step(folder, seen, Seen::Tree(put.tree));
        }
        // Edits of one skill are no edits of another that has the same name.
        if let (Some(old), Some(new)) = (spot.concern.old, spot.concern.new)
            && is_other_source(&old.source, &new.source)
        {
            return Err(InstallFailure::Edited(vec![folder.to_owned()]));
        }
        let base = spot.merge_base();
        let late = matches!(&spot.last, Some(Last { base: Base::Known(_), .. }));
        if spot.is_unchanged() && !late || base.is_some_and(|base| base.is(&put.tree)) {
            self.changes.push(Change::Left(folder.to_owned()));
            return Ok(());
        }
        // Somebody's link leads to where they work on the skill.
        let Seen::Tree(mine) = &seen else {
            self.changes.push(Change::Left(folder.to_owned()));
            return Ok(());
        };
        let (Some(Base::Known(base)), Some(new)) = (base, spot.concern.new) else {
            let version =
                spot.concern.old.map_or(semver::Version::new(0, 0, 0), |old| old.version.clone());
            return Err(InstallFailure::NotKept { name: spot.concern.name.to_owned(), version });
        };
        self.tell_late(spot);
        let combined = combine(base, mine, &put.tree, &new.version.to_string())?;
        let here = || folder.to_owned();
        for file in combined.merged {
            self.changes.push(Change::Merged { folder: here(), file });
        }
        for (file, places) in combined.conflicts {
            self.changes.push(Change::Conflict { folder: here(), file, places });
        }
        for file in combined.kept {
            self.changes.push(Change::Kept { folder: here(), file });
        }
        self.step(folder, seen, Seen::Tree(combined.tree))
    }

    /// Changes a folder, if what lies there can be put back.
    pub(super) fn step(
        &mut self,
        folder: &Path,
        was: Seen,
        put: Seen,
    ) -> Result<(), InstallFailure> {
        if let Some(why) = was.strangeness() {
            let (path, why) = (folder.to_owned(), why.to_owned());
            return Err(InstallFailure::Unkeepable { path, why });
        }
        if was != put {
            self.steps.push(Step { folder: folder.to_owned(), was, put });
        }
        Ok(())
    }
}

/// The agents that cannot read the original of a skill.
fn converted_for(spots: &[Spot<'_>]) -> Vec<String> {
    let is_converted =
        |spot: &&Spot<'_>| spot.put.as_ref().is_some_and(|put| !put.report.is_empty());
    spots.iter().filter(is_converted).map(|spot| spot.target.agent.id.to_owned()).collect()
}

/// What a skill needs is wherever the skill is.
fn hand_down(resolution: &Resolution, agents: &mut AgentsByName) {
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
