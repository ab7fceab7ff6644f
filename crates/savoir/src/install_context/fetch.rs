//! Fetches and checks skills.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use savoir_package::{
    Agent, InstallFailure, Tree,
    install::{CheckError, CheckedSkill, FetchReason, FetchedSkill, SkillChecker, locked_source},
    lock::{Lock, LockedSkill, LockedSource},
    policy::SkillFacts,
    source::{OfferedSkill, PinnedSource},
};

use super::{Consent, InstallContext, Skipped};
use crate::{error::CommandError, evaluations, output};

/// The fetched skills, and those that failed.
#[derive(Default)]
pub(crate) struct FetchedSkills {
    pub(crate) ready: Vec<CheckedSkill>,
    pub(crate) skipped: Vec<Skipped>,
}

impl InstallContext {
    /// Fetches skills and checks them. One that fails does not stop the others.
    pub(crate) fn fetch_some(
        &self,
        wanted: &[(OfferedSkill, FetchReason)],
    ) -> Result<FetchedSkills, CommandError> {
        self.fetch_unless(wanted, |_| false)
    }

    /// As [`Self::fetch_some`]. Fetched skills for which `is_left_out` returns true are not checked:
    /// the scan takes much longer than fetching.
    pub(crate) fn fetch_unless(
        &self,
        wanted: &[(OfferedSkill, FetchReason)],
        is_left_out: impl Fn(&FetchedSkill) -> bool,
    ) -> Result<FetchedSkills, CommandError> {
        self.doing(&format!("fetching {}", output::plural(wanted.len(), "skill")));
        let offers: Vec<OfferedSkill> = wanted.iter().map(|(offer, _)| offer.clone()).collect();
        let fetched = self.wait(self.fetcher.fetch_all(&offers)).into_iter();
        let mut arrived = FetchedSkills::default();
        let mut arrivals = Vec::with_capacity(offers.len());
        for (tree, (offer, why)) in fetched.zip(wanted) {
            let source = locked_source(&offer.source, self.skill_set.root())?;
            match tree {
                Ok(tree) => arrivals.push(FetchedSkill {
                    tree,
                    called: offer.called().to_owned(),
                    source,
                    why: why.clone(),
                    counted: None,
                }),
                Err(error) => {
                    arrived.skipped.push(Skipped::new(&offer.name, &source.to_string(), error));
                }
            }
        }
        arrivals.retain(|arrival| !is_left_out(arrival));
        let names: Vec<(String, String)> = arrivals
            .iter()
            .map(|arrival| (arrival.called.clone(), arrival.source.to_string()))
            .collect();
        for (checked, (name, source)) in self.check_all(arrivals).into_iter().zip(names) {
            match checked {
                Ok(ready) => arrived.ready.push(ready),
                Err(error) => arrived.skipped.push(Skipped::new(&name, &source, error)),
            }
        }
        Ok(arrived)
    }

    /// Refuses skills that the scan blocks, unless they were allowed by name.
    pub(crate) fn refuse_blocked(
        &self,
        consent: &Consent,
        ready: &[CheckedSkill],
    ) -> Result<(), CommandError> {
        consent.refuse_blocked(ready)?;
        self.remember_blocked(ready)
    }

    /// Removes skills that the scan blocks, unless they were allowed by name.
    pub(crate) fn take_blocked(
        &self,
        consent: &Consent,
        ready: &mut Vec<CheckedSkill>,
    ) -> Result<Vec<Skipped>, CommandError> {
        let taken = consent.take_blocked(ready);
        self.remember_blocked(ready)?;
        Ok(taken)
    }

    /// Marks blocked skills in the store: consent in this project does not apply to another project or
    /// name.
    fn remember_blocked(&self, ready: &[CheckedSkill]) -> Result<(), CommandError> {
        let store = self.skill_set.store();
        for one in ready.iter().filter(|one| !one.refusals().is_empty()) {
            store.mark_blocked(&one.tree.integrity()).map_err(InstallFailure::from)?;
        }
        Ok(())
    }

    /// Refuses a skill that the policy of the organization, the user or the project forbids.
    pub(crate) fn check_policy(&self, ready: &CheckedSkill) -> Result<(), CommandError> {
        self.check_policy_from(ready, Some(&ready.source))
    }

    /// As [`Self::check_policy`]; `source` is `None` for a skill that was not fetched.
    pub(crate) fn check_policy_from(
        &self,
        ready: &CheckedSkill,
        source: Option<&LockedSource>,
    ) -> Result<(), CommandError> {
        let evaluations = if self.policy.requires_evaluation() {
            let folder = source_folder(&ready.source, self.skill_set.root());
            evaluations::current(folder.as_deref(), &ready.tree.integrity(), &self.trust)
        } else {
            Vec::new()
        };
        let facts = SkillFacts {
            name: &ready.summary.name,
            source,
            tier: ready.tier,
            attestation: &ready.attestation,
            evaluations: &evaluations,
        };
        Ok(self.policy.check(&facts)?)
    }

    /// Refuses skills that a policy forbids.
    pub(crate) fn refuse_forbidden(&self, ready: &[CheckedSkill]) -> Result<(), CommandError> {
        ready.iter().try_for_each(|ready| self.check_policy(ready))
    }

    /// Removes skills that a policy forbids.
    pub(crate) fn take_forbidden(&self, ready: &mut Vec<CheckedSkill>) -> Vec<Skipped> {
        let mut taken = Vec::new();
        ready.retain(|one| match self.check_policy(one) {
            Ok(()) => true,
            Err(error) => {
                taken.push(Skipped::new(&one.summary.name, &one.source.to_string(), error));
                false
            }
        });
        taken
    }

    /// The skills of a folder without copies that this lock installed. The folder itself may be such a
    /// copy, because the user named it.
    pub(crate) fn without_installed_copies(
        &self,
        folder: &Path,
        mut offers: Vec<OfferedSkill>,
    ) -> Result<Vec<OfferedSkill>, CommandError> {
        let mut installed = BTreeSet::new();
        for (name, locked) in &self.skill_set.state()?.lock.skills {
            for agent in locked.agents.iter().filter_map(|id| Agent::by_id(id).ok()) {
                let copy = self.skill_set.agent_folder(agent).map(|folder| folder.join(name));
                installed.extend(copy.ok().and_then(|copy| copy.canonicalize().ok()));
            }
        }
        if let Ok(named) = folder.canonicalize() {
            installed.remove(&named);
        }
        let is_copy = |offer: &OfferedSkill| match &offer.source {
            PinnedSource::Path { path, inside } => {
                path.join(inside).canonicalize().is_ok_and(|path| installed.contains(&path))
            }
            _ => false,
        };
        offers.retain(|offer| !is_copy(offer));
        if offers.is_empty() {
            let message = format!("all skills in {} are already installed", folder.display());
            return Err(CommandError::input(message)
                .with_code("already_installed")
                .hint("list them: savoir list; check for updates: savoir outdated"));
        }
        Ok(offers)
    }

    /// Leaves out agents that read the folder the skills come from, if other agents remain.
    pub(crate) fn without_source_agents(
        &self,
        ready: &[CheckedSkill],
        agents: Vec<&'static Agent>,
    ) -> Result<Vec<&'static Agent>, CommandError> {
        let mut others = Vec::new();
        let mut notes = Vec::new();
        for agent in &agents {
            let folder = self.skill_set.agent_folder(agent)?;
            let is_source = |one: &CheckedSkill| {
                self.skill_set.is_source(&one.source, &folder.join(&one.summary.name))
            };
            // Skills of other folders still need this agent.
            if ready.is_empty() || !ready.iter().all(is_source) {
                others.push(*agent);
                continue;
            }
            let names: Vec<&str> = ready.iter().map(|one| one.summary.name.as_str()).collect();
            notes.push(format!("{} already reads {} there", agent.title, names.join(", ")));
        }
        if others.is_empty() {
            return Ok(agents);
        }
        for note in &notes {
            output::note(note);
        }
        Ok(others)
    }

    /// Removes skills whose source is the folder in which they would be installed: removing them later
    /// would remove the original.
    pub(crate) fn take_own_folders(
        &self,
        ready: &mut Vec<CheckedSkill>,
        agents: &[&'static Agent],
    ) -> Result<Vec<Skipped>, CommandError> {
        let mut folders = Vec::with_capacity(agents.len());
        for agent in agents {
            folders.push((agent.title, self.skill_set.agent_folder(agent)?));
        }
        let mut taken = Vec::new();
        ready.retain(|one| {
            let name = &one.summary.name;
            let own = folders
                .iter()
                .find(|(_, folder)| self.skill_set.is_source(&one.source, &folder.join(name)));
            let Some((title, _)) = own else { return true };
            let message = format!("`{name}` is already in the folder that {title} reads");
            let error = CommandError::input(message)
                .with_code("in_agent_folder")
                .hint(format!("add it to savoir.lock: savoir adopt {name}"));
            taken.push(Skipped::new(name, &one.source.to_string(), error));
            false
        });
        Ok(taken)
    }

    /// As [`Self::take_own_folders`]; returns the first as an error.
    pub(crate) fn refuse_own_folders(
        &self,
        ready: &[CheckedSkill],
        agents: &[&'static Agent],
    ) -> Result<(), CommandError> {
        let own = self.take_own_folders(&mut ready.to_vec(), agents)?;
        own.into_iter().next().map_or(Ok(()), |own| Err(own.error))
    }

    /// Checks a locked skill as if it were new.
    pub(crate) fn as_arrived(
        &self,
        name: &str,
        locked: &LockedSkill,
        tree: Tree,
    ) -> Result<CheckedSkill, CommandError> {
        Ok(self.checker().check(locked_arrival(name, locked, tree))?)
    }

    fn checker(&self) -> SkillChecker<'_> {
        SkillChecker { trust: &self.trust, scans: &self.scans }
    }

    /// Checks fetched skills, and shows the progress.
    pub(crate) fn check_all(
        &self,
        arrivals: Vec<FetchedSkill>,
    ) -> Vec<Result<CheckedSkill, CheckError>> {
        let all = output::plural(arrivals.len(), "skill");
        self.doing(&format!("scanning {all}"));
        let checked = self
            .checker()
            .check_all(arrivals, |done| self.doing(&format!("scanned {done} of {all}")));
        self.done();
        checked
    }

    /// The part of a lock that the user agreed to on this machine. Others may have written the rest.
    pub(crate) fn agreed(&self, lock: &Lock) -> Lock {
        let mut agreed = lock.clone();
        let store = self.skill_set.store();
        agreed.skills.retain(|_, locked| store.has(&locked.integrity));
        agreed
    }

    /// Refuses a stored skill whose signature is no longer valid.
    pub(crate) fn check_signature(
        &self,
        name: &str,
        locked: &LockedSkill,
    ) -> Result<(), CommandError> {
        if locked.signature.is_none() {
            return Ok(());
        }
        let Ok(Some(tree)) = self.skill_set.store().get(&locked.integrity) else { return Ok(()) };
        self.check_signatures(&locked_arrival(name, locked, tree))
    }

    /// Refuses a skill with an invalid signature. The files are not scanned.
    pub(crate) fn check_signatures(&self, arrival: &FetchedSkill) -> Result<(), CommandError> {
        self.checker().check_signatures(arrival)?;
        Ok(())
    }

    /// Adds dependencies from the same source.
    pub(crate) fn with_needs(
        &self,
        mut ready: Vec<CheckedSkill>,
        offers: &[OfferedSkill],
        lock: &Lock,
    ) -> Result<Vec<CheckedSkill>, CommandError> {
        loop {
            let known: BTreeSet<&str> =
                ready.iter().map(|ready| ready.summary.name.as_str()).collect();
            let needs = ready.iter().flat_map(|ready| &ready.summary.needs);
            let missing: BTreeSet<&str> = needs
                .map(|need| need.name.as_str())
                .filter(|name| !known.contains(name) && !lock.skills.contains_key(*name))
                .collect();
            let offered = offers.iter().filter(|offer| missing.contains(offer.name.as_str()));
            let spare: Vec<(OfferedSkill, FetchReason)> =
                offered.map(|offer| (offer.clone(), FetchReason::IfNeeded)).collect();
            if spare.is_empty() {
                return Ok(ready);
            }
            let before = ready.len();
            // Skills with missing dependencies are reported later.
            ready.extend(self.fetch_some(&spare)?.ready);
            // The files of an offer may contain another name.
            if !ready[before..].iter().any(|one| missing_name(&spare, &one.summary.name)) {
                return Ok(ready);
            }
        }
    }
}

/// A locked skill as if it were fetched again.
pub(crate) fn locked_arrival(name: &str, locked: &LockedSkill, tree: Tree) -> FetchedSkill {
    let (called, source) = (name.to_owned(), locked.source.clone());
    let (why, counted) = (FetchReason::Update, Some(locked.version.clone()));
    FetchedSkill { tree, called, source, why, counted }
}

/// The folder that a skill was read from, if it is a folder of this machine.
fn source_folder(source: &LockedSource, root: &Path) -> Option<PathBuf> {
    match PinnedSource::parse(&source.to_string(), root).ok()? {
        PinnedSource::Path { path, inside } => Some(path.join(inside)),
        _ => None,
    }
}

fn missing_name(spare: &[(OfferedSkill, FetchReason)], name: &str) -> bool {
    spare.iter().any(|(offer, _)| offer.name == name)
}
