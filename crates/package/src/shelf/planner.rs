//! How a plan is made: from the lock that is and the one that is to be.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{
    Change, Deployed, Edits, Install, Occupied, Plan, Ready, Shelf, ShelfError, State, Target,
    Texts, Why,
    combine::combine,
    deployed,
    folders::{Seen, is_signed, same, same_signatures},
    index::{AtHand, folder},
    plan::Step,
};
use crate::{
    Card, Tree,
    lock::{Lock, LockedSkill},
    manifest::{self, Manifest, Wanted},
    resolve::{Request, Resolution, resolve},
    trust::Tier,
};

impl Shelf {
    /// Plans to install skills, or to update them: which of those that arrived, and what of what is
    /// installed stays, is decided by `savoir.toml` and by what the skills need.
    pub fn install(&self, ready: &[Ready], how: &Install) -> Result<Plan, ShelfError> {
        let _held = self.steady()?;
        let state = self.read()?;
        let mut text = state.texts.manifest.clone();
        for ready in ready {
            if let Why::Asked(wanted) = &ready.why {
                text = self.with_skill(&state.manifest, text, &ready.card.name, wanted)?;
            }
        }
        let asked = |name: &str| {
            let mut ready = ready.iter().filter(|ready| matches!(ready.why, Why::Asked(_)));
            ready.any(|ready| ready.card.name == name)
        };
        let further: Vec<String> = how.agents.iter().map(|agent| agent.id.to_owned()).collect();
        let mut agents = agents_now(&state.lock);
        for ready in ready.iter().filter(|ready| asked(&ready.card.name)) {
            agents.entry(ready.card.name.clone()).or_default().extend(further.clone());
        }
        let mut planner = Planner::new(self, how.occupied, how.edits);
        planner.watched = ready.iter().map(|ready| ready.card.name.clone()).collect();
        let lock = planner.choose(&state, text.as_deref(), ready, agents)?;
        planner.finish(state, text, &lock)
    }

    /// Plans to remove skills, and what only they needed. What others need stays.
    pub fn remove(&self, names: &[String], edits: Edits) -> Result<Plan, ShelfError> {
        let _held = self.steady()?;
        let state = self.read()?;
        let mut text = state.texts.manifest.clone();
        let mut planner = Planner::new(self, Occupied::Refuse, edits);
        for name in names {
            if !state.lock.skills.contains_key(name) && !state.manifest.skills.contains_key(name) {
                return Err(ShelfError::NotInstalled(name.clone()));
            }
            text = self.let_go(&state, text, name, names, &mut planner)?;
        }
        let agents = agents_now(&state.lock);
        let lock = planner.choose(&state, text.as_deref(), &[], agents)?;
        planner.finish(state, text, &lock)
    }

    /// `savoir.toml` without a skill, unless others need it and only a person can have chosen it.
    pub(super) fn let_go(
        &self,
        state: &State,
        text: Option<String>,
        name: &str,
        going: &[String],
        planner: &mut Planner<'_>,
    ) -> Result<Option<String>, ShelfError> {
        let by = needed_by(&state.lock, name, going);
        // Nobody vouches for it: only a person can have chosen it, so the choice stays.
        let locked = state.lock.skills.get(name);
        let chosen = locked.is_some_and(|locked| locked.tier == Tier::Experimental);
        let stays = !by.is_empty();
        if stays {
            planner.changes.push(Change::StillNeeded { name: name.to_owned(), by });
        }
        if stays && chosen { Ok(text) } else { self.without_skill(text, name) }
    }

    /// `savoir.toml` with a skill; as it is, if it says so already.
    fn with_skill(
        &self,
        manifest: &Manifest,
        text: Option<String>,
        name: &str,
        wanted: &Wanted,
    ) -> Result<Option<String>, ShelfError> {
        if manifest.skills.get(name) == Some(wanted) {
            return Ok(text);
        }
        let file = self.manifest_path().display().to_string();
        let text = text.unwrap_or_default();
        Ok(Some(manifest::add_skill(&file, &text, name, wanted)?))
    }

    fn without_skill(
        &self,
        text: Option<String>,
        name: &str,
    ) -> Result<Option<String>, ShelfError> {
        let Some(text) = text else { return Ok(None) };
        let file = self.manifest_path().display().to_string();
        Ok(Some(manifest::remove_skill(&file, &text, name)?.unwrap_or(text)))
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

/// Whether two locks want the same in the same folders.
fn is_same((old, new): (&LockedSkill, &LockedSkill)) -> bool {
    (&old.integrity, &old.signature, &old.agents) == (&new.integrity, &new.signature, &new.agents)
}

/// A kept skill, and what it says.
struct Kept {
    tree: Tree,
    card: Card,
}

/// What lay in a folder when the skill was installed.
enum Base {
    Known(Tree),
    /// The store has lost it. Where nothing had to be converted, its integrity still tells.
    Lost(String),
}

impl Base {
    fn is(&self, tree: &Tree) -> bool {
        match self {
            Self::Known(base) => same(base, tree),
            Self::Lost(integrity) => tree.integrity() == *integrity,
        }
    }
}

/// What lay in a folder when the skill was installed.
fn base(old: &LockedSkill, kept: Option<&Kept>, target: &Target) -> Result<Base, ShelfError> {
    Ok(match kept {
        Some(kept) => Base::Known(deployed(&kept.tree, &kept.card, target.agent)?.tree),
        None => Base::Lost(old.integrity.clone()),
    })
}

/// What is to lie in a folder.
fn put(
    name: &str,
    new: &LockedSkill,
    kept: Option<&Kept>,
    target: &Target,
) -> Result<Deployed, ShelfError> {
    let lost = || ShelfError::NotKept { name: name.to_owned(), version: new.version.clone() };
    let kept = kept.ok_or_else(lost)?;
    deployed(&kept.tree, &kept.card, target.agent)
}

/// A folder in which a skill was, or is to be.
struct Spot<'a> {
    name: &'a str,
    old: Option<&'a LockedSkill>,
    new: Option<&'a LockedSkill>,
    base: Option<Base>,
    put: Option<Deployed>,
    target: &'a Target,
}

/// A plan in the making.
pub(super) struct Planner<'a> {
    shelf: &'a Shelf,
    occupied: Occupied,
    edits: Edits,
    /// What is not in the store yet, by integrity.
    fresh: BTreeMap<String, Kept>,
    steps: Vec<Step>,
    keep: Vec<Tree>,
    changes: Vec<Change>,
    in_the_way: Vec<PathBuf>,
    /// Skills whose folders are looked at even if the lock says the same as before.
    pub(super) watched: BTreeSet<String>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(shelf: &'a Shelf, occupied: Occupied, edits: Edits) -> Self {
        let (fresh, steps, keep) = (BTreeMap::new(), Vec::new(), Vec::new());
        let (changes, in_the_way, watched) = (Vec::new(), Vec::new(), BTreeSet::new());
        Self { shelf, occupied, edits, fresh, steps, keep, changes, in_the_way, watched }
    }

    /// The lock that is to be.
    pub(super) fn choose(
        &mut self,
        state: &State,
        manifest: Option<&str>,
        ready: &[Ready],
        mut agents: AgentsByName,
    ) -> Result<Lock, ShelfError> {
        let file = self.shelf.manifest_path().display().to_string();
        let manifest = Manifest::parse(&file, manifest.unwrap_or_default())?;
        let mut at_hand = AtHand::new(&state.lock, ready);
        let locked = state.lock.versions();
        let request = Request { roots: manifest.roots(), locked, ..Request::default() };
        let resolution = resolve(&at_hand, &request)?;
        agents.retain(|name, _| manifest.skills.contains_key(name));
        hand_down(&resolution, &mut agents);
        let mut lock = Lock::default();
        lock.order = resolution.order;
        for (name, chosen) in resolution.chosen {
            let Some(copy) = at_hand.take(&name, &chosen.version) else { continue };
            let mut skill = copy.locked;
            skill.agents = agents.remove(&name).unwrap_or_default().into_iter().collect();
            if skill.agents.is_empty() {
                return Err(ShelfError::NoAgents(name));
            }
            if let Some(ready) = copy.ready {
                self.take(&skill.integrity, ready.tree.clone(), ready.card.clone())?;
            }
            lock.skills.insert(name, skill);
        }
        lock.keep_unknown(&state.lock);
        Ok(lock)
    }

    /// Takes over a skill that the store does not have as it is.
    pub(super) fn take(
        &mut self,
        integrity: &str,
        tree: Tree,
        card: Card,
    ) -> Result<(), ShelfError> {
        let kept = self.shelf.store().get(integrity)?;
        // Others may count on the signature of the one that is kept.
        let loses = kept.as_ref().is_some_and(is_signed) && !is_signed(&tree);
        if kept.as_ref() != Some(&tree) && !loses {
            self.keep.push(tree.clone());
        }
        self.fresh.insert(integrity.to_owned(), Kept { tree, card });
        Ok(())
    }

    /// The plan that leads from one lock to the other.
    pub(super) fn finish(
        mut self,
        state: State,
        manifest: Option<String>,
        lock: &Lock,
    ) -> Result<Plan, ShelfError> {
        let names: BTreeSet<&String> = state.lock.skills.keys().chain(lock.skills.keys()).collect();
        for name in names {
            let (old, new) = (state.lock.skills.get(name), lock.skills.get(name));
            // What is not concerned is for `sync` to put right.
            if self.watched.contains(name) || !old.zip(new).is_some_and(is_same) {
                self.tell(name, old, new);
                self.skill(name, old, new)?;
            }
        }
        if !self.in_the_way.is_empty() {
            return Err(ShelfError::Occupied(self.in_the_way));
        }
        let growth = state.lock.growth(lock);
        let text = lock.to_string();
        let nothing = state.texts.lock.is_none() && lock.skills.is_empty();
        let lock = if nothing { None } else { Some(text) };
        let after = Texts { manifest, lock };
        Ok(Plan {
            root: self.shelf.root.clone(),
            before: state.texts,
            after,
            steps: self.steps,
            keep: self.keep,
            changes: self.changes,
            growth,
            undoes: None,
            unmake: Vec::new(),
        })
    }

    fn tell(&mut self, name: &str, old: Option<&LockedSkill>, new: Option<&LockedSkill>) {
        let name = name.to_owned();
        let change = match (old, new) {
            (None, Some(new)) => {
                Change::New { name, version: new.version.clone(), agents: new.agents.clone() }
            }
            (Some(old), None) => Change::Removed { name, version: old.version.clone() },
            (Some(old), Some(new)) if old.integrity != new.integrity => {
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

    /// What becomes of one skill in all folders.
    fn skill(
        &mut self,
        name: &str,
        old: Option<&LockedSkill>,
        new: Option<&LockedSkill>,
    ) -> Result<(), ShelfError> {
        let targets = |skill: Option<&LockedSkill>| {
            skill.map_or(Ok(Vec::new()), |skill| self.shelf.targets(name, &skill.agents))
        };
        let (was, is) = (targets(old)?, targets(new)?);
        let kept = |skill: Option<&LockedSkill>| {
            skill.map_or(Ok(None), |skill| self.kept(name, &skill.integrity))
        };
        let (old_kept, new_kept) = (kept(old)?, kept(new)?);
        for target in &is {
            let before = was.iter().find(|known| known.folder == target.folder);
            let base = old.zip(before).map(|(old, before)| base(old, old_kept.as_ref(), before));
            let put = new.map(|new| put(name, new, new_kept.as_ref(), target));
            let (base, put) = (base.transpose()?, put.transpose()?);
            self.settle(Spot { name, old, new, base, put, target })?;
        }
        for target in was.iter().filter(|was| is.iter().all(|is| is.folder != was.folder)) {
            let base = old.map(|old| base(old, old_kept.as_ref(), target)).transpose()?;
            self.settle(Spot { name, old, new, base, put: None, target })?;
        }
        Ok(())
    }

    fn kept(&self, name: &str, integrity: &str) -> Result<Option<Kept>, ShelfError> {
        if let Some(Kept { tree, card }) = self.fresh.get(integrity) {
            return Ok(Some(Kept { tree: tree.clone(), card: card.clone() }));
        }
        let Some(tree) = self.shelf.store().get(integrity)? else { return Ok(None) };
        let card = Card::read(&tree, name).map_err(ShelfError::card(name))?;
        Ok(Some(Kept { tree, card }))
    }

    /// What becomes of one folder.
    fn settle(&mut self, mut spot: Spot<'_>) -> Result<(), ShelfError> {
        let seen = Seen::at(&spot.target.folder)?;
        let Some(put) = spot.put.take() else { return self.clear(&spot, seen) };
        let (name, folder) = (spot.name, spot.target.folder.as_path());
        match (&seen, &spot.base) {
            (_, base) if seen.is_nothing() => {
                if base.is_some() && spot.is_unchanged() {
                    self.changes.push(Change::Mended(folder.to_owned()));
                }
            }
            (Seen::Tree(there), base) if same(there, &put.tree) => {
                let resigned = spot.is_resigned() || base.is_none();
                if same_signatures(there, &put.tree) || !resigned {
                    return Ok(());
                }
            }
            (Seen::Tree(there), Some(base)) if base.is(there) => {}
            (_, Some(base)) => return self.edited(&spot, seen.clone(), base, put),
            (_, None) if self.occupied == Occupied::Refuse => {
                self.in_the_way.push(folder.to_owned());
                return Ok(());
            }
            (_, None) => self.changes.push(Change::Replaced(folder.to_owned())),
        }
        self.tell_conversion(name, spot.target, &put);
        self.step(folder, seen, Seen::Tree(put.tree))
    }

    fn tell_conversion(&mut self, name: &str, target: &Target, put: &Deployed) {
        if !put.report.is_empty() {
            let (agent, report) = (target.agent.title, put.report.clone());
            self.changes.push(Change::Converted { name: name.to_owned(), agent, report });
        }
    }

    /// A folder that is not to have the skill any more.
    fn clear(&mut self, spot: &Spot<'_>, seen: Seen) -> Result<(), ShelfError> {
        let folder = &spot.target.folder;
        let ours = match (&seen, &spot.base) {
            (Seen::Absent, _) => return Ok(()),
            (Seen::Tree(there), Some(base)) => base.is(there),
            _ => false,
        };
        if !ours && self.edits == Edits::Keep {
            self.changes.push(Change::Left(folder.clone()));
            return Ok(());
        }
        self.step(folder, seen, Seen::Absent)
    }

    /// A folder of a skill in which somebody changed something.
    fn edited(
        &mut self,
        spot: &Spot<'_>,
        seen: Seen,
        base: &Base,
        put: Deployed,
    ) -> Result<(), ShelfError> {
        let folder = spot.target.folder.as_path();
        if self.edits == Edits::Discard {
            if spot.is_unchanged() {
                self.changes.push(Change::Mended(folder.to_owned()));
            }
            return self.step(folder, seen, Seen::Tree(put.tree));
        }
        if spot.is_unchanged() || base.is(&put.tree) {
            self.changes.push(Change::Left(folder.to_owned()));
            return Ok(());
        }
        // Somebody's link leads to where they work on the skill.
        let Seen::Tree(mine) = &seen else {
            self.changes.push(Change::Left(folder.to_owned()));
            return Ok(());
        };
        let (Base::Known(base), Some(new)) = (base, spot.new) else {
            let version = spot.old.map_or(semver::Version::new(0, 0, 0), |old| old.version.clone());
            return Err(ShelfError::NotKept { name: spot.name.to_owned(), version });
        };
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
    fn step(&mut self, folder: &Path, was: Seen, put: Seen) -> Result<(), ShelfError> {
        if let Some(why) = was.strangeness() {
            let (path, why) = (folder.to_owned(), why.to_owned());
            return Err(ShelfError::Unkeepable { path, why });
        }
        if was != put {
            self.steps.push(Step { folder: folder.to_owned(), was, put });
        }
        Ok(())
    }
}

impl Spot<'_> {
    /// Whether the lock says the same as before.
    fn is_unchanged(&self) -> bool {
        let integrity = |skill: &LockedSkill| skill.integrity.clone();
        self.old.map(integrity) == self.new.map(integrity)
    }

    fn is_resigned(&self) -> bool {
        self.old.map(|old| &old.signature) != self.new.map(|new| &new.signature)
    }
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
