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

/// How a local skill was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SkillLocationKind {
    /// The user named its folder.
    Named,
    /// Its folder is beside the agent file.
    Beside,
    /// It is in `savoir.lock`.
    Locked,
    /// It is in the skills folder of an agent.
    Installed,
}

/// A skill that is available locally.
#[derive(Clone, Debug)]
pub struct LocalSkill {
    /// The data of its SKILL.md.
    pub summary: SkillSummary,
    pub tier: Tier,
    /// The integrity of its files.
    pub integrity: String,
    /// Its location, as shown to users.
    pub place: String,
    pub way: SkillLocationKind,
    /// The folder from which an agent can read it, if there is one.
    pub folder: Option<PathBuf>,
}

impl LocalSkill {
    /// Checks the files of a skill. The error says why it cannot be used.
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

    /// Sets where and how it was found.
    #[must_use]
    pub fn at(mut self, place: String, way: SkillLocationKind) -> Self {
        self.place = place;
        self.way = way;
        self
    }
}

/// A local skill that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableSkill {
    /// The name, or that of its folder.
    pub name: String,
    /// The location, as shown to users.
    pub place: String,
    pub why: String,
}

/// The skills that are available locally.
#[derive(Clone, Debug, Default)]
pub struct LocalSkills {
    by_name: BTreeMap<String, Vec<LocalSkill>>,
    /// Copies of a version that was added before.
    hidden: Vec<LocalSkill>,
    unusable: Vec<UnusableSkill>,
}

impl LocalSkills {
    /// Adds a skill. If there are several copies of one version, the first is used.
    pub fn add(&mut self, offer: LocalSkill) {
        let known = self.by_name.entry(offer.summary.name.clone()).or_default();
        let same = known.iter().find(|known| known.summary.version == offer.summary.version);
        match same.map(|same| same.integrity == offer.integrity) {
            None => known.push(offer),
            Some(false) => self.hidden.push(offer),
            Some(true) => {}
        }
    }

    /// Adds a skill that cannot be used.
    pub fn refuse(&mut self, unusable: UnusableSkill) {
        if !self.unusable.contains(&unusable) {
            self.unusable.push(unusable);
        }
    }

    /// All versions of a skill.
    pub fn named(&self, name: &str) -> &[LocalSkill] {
        self.by_name.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn get(&self, name: &str, version: &Version) -> Option<&LocalSkill> {
        self.named(name).iter().find(|offer| offer.summary.version == *version)
    }

    /// Copies of a version that are not used, because another copy was added first.
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
