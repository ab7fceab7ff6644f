//! Skills that are available locally for an agent.

use std::{collections::BTreeMap, path::PathBuf};

use savoir_skill::permission::Tier;
use semver::Version;
use serde::Serialize;

use crate::{
    SkillSummary, Tree,
    resolve::{Candidate, Index, IndexError, VersionDependencies},
    trust::{self, TrustStore},
};

/// How a skill was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SkillLocationKind {
    /// A person named its folder.
    Named,
    /// It lies beside the agent's file.
    Beside,
    /// `savoir.lock` has it.
    Locked,
    /// It lies in the folder of an agent.
    Installed,
}

/// A skill that an agent can be made of.
#[derive(Clone, Debug)]
pub struct LocalSkill {
    /// What its files say.
    pub summary: SkillSummary,
    /// How far it is trusted.
    pub tier: Tier,
    /// The integrity of its files.
    pub integrity: String,
    /// Where it is, for people.
    pub place: String,
    /// How it was found.
    pub way: SkillLocationKind,
    /// The folder from which an agent can read it, if it has one.
    pub folder: Option<PathBuf>,
}

impl LocalSkill {
    /// Looks at the files of a skill. The error is why they cannot be used.
    pub fn of(tree: &Tree, called: &str, trust: &TrustStore) -> Result<Self, String> {
        let summary = SkillSummary::read(tree, called).map_err(|error| error.to_string())?;
        let attested = trust::attest(tree, summary.signed_name(), summary.written_version(), trust)
            .map_err(|error| error.to_string())?;
        let (tier, integrity) =
            (trust::tier(summary.dialect, summary.claimed, attested.tier), tree.integrity());
        let (place, way) = (String::new(), SkillLocationKind::Named);
        Ok(Self { summary, tier, integrity, place, way, folder: None })
    }

    /// Sets the folder of its files.
    #[must_use]
    pub fn in_folder(self, folder: Option<PathBuf>) -> Self {
        Self { folder, ..self }
    }

    /// Says where it was found.
    #[must_use]
    pub fn at(mut self, place: String, way: SkillLocationKind) -> Self {
        self.place = place;
        self.way = way;
        self
    }
}

/// A skill that is there, and of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableSkill {
    /// Its name, or that of its folder.
    pub name: String,
    /// Where it is, for people.
    pub place: String,
    /// Why it cannot be used.
    pub why: String,
}

/// The skills that an agent can be made of without fetching anything.
#[derive(Clone, Debug, Default)]
pub struct LocalSkills {
    by_name: BTreeMap<String, Vec<LocalSkill>>,
    /// Other files of a version that there is already.
    hidden: Vec<LocalSkill>,
    unusable: Vec<UnusableSkill>,
}

impl LocalSkills {
    /// Takes a skill in; of one version the first is the one that counts.
    pub fn add(&mut self, offer: LocalSkill) {
        let known = self.by_name.entry(offer.summary.name.clone()).or_default();
        let same = known.iter().find(|known| known.summary.version == offer.summary.version);
        match same.map(|same| same.integrity == offer.integrity) {
            None => known.push(offer),
            Some(false) => self.hidden.push(offer),
            Some(true) => {}
        }
    }

    /// Takes in that a skill is there and of no use.
    pub fn refuse(&mut self, unusable: UnusableSkill) {
        if !self.unusable.contains(&unusable) {
            self.unusable.push(unusable);
        }
    }

    /// All versions of a skill.
    pub fn named(&self, name: &str) -> &[LocalSkill] {
        self.by_name.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// One version of a skill.
    pub fn get(&self, name: &str, version: &Version) -> Option<&LocalSkill> {
        self.named(name).iter().find(|offer| offer.summary.version == *version)
    }

    /// Other files of a version that are passed over.
    pub(super) fn hidden<'a>(
        &'a self,
        name: &'a str,
        version: &'a Version,
    ) -> impl Iterator<Item = &'a LocalSkill> {
        let same = move |offer: &&LocalSkill| {
            offer.summary.name == name && offer.summary.version == *version
        };
        self.hidden.iter().filter(same)
    }

    /// What is there and of no use.
    pub(super) fn unusable(&self) -> impl Iterator<Item = &UnusableSkill> {
        self.unusable.iter()
    }
}

impl Index for LocalSkills {
    fn versions(&self, name: &str) -> Result<Vec<Candidate>, IndexError> {
        let candidates = self.named(name).iter().map(|offer| Candidate {
            version: offer.summary.version.clone(),
            yanked: false,
            tier: offer.tier,
        });
        Ok(candidates.collect())
    }

    fn dependencies(
        &self,
        name: &str,
        version: &Version,
    ) -> Result<VersionDependencies, IndexError> {
        let offer = self.get(name, version).ok_or("no such version")?;
        Ok(VersionDependencies::Skills(offer.summary.needs.clone()))
    }

    fn names(&self) -> Vec<String> {
        self.by_name.keys().cloned().collect()
    }
}
