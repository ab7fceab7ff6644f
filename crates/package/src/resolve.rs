//! Resolves versions of skills that satisfy all requirements.
//!
//! Whoever asks for skills gets one version of each, and of everything that they need, such that
//! every range holds: the version in the lock if it still does, otherwise the highest. Where none
//! go together, the answer names who asked for what.
//!
//! The search is PubGrub's. It knows nothing of withdrawn versions, of tiers or of pre-releases:
//! an offer decides what it may see, and its reasons are put into words of ours.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fmt,
};

use savoir_skill::{
    permission::Tier,
    version::{SkillRef, VersionRange},
};
use semver::Version;
use thiserror::Error;

mod combined_index;
mod explain;
mod order;
mod provider;
mod version_sets;

use self::{
    explain::ConflictReport,
    provider::{IndexCache, IndexProvider, ONLY, Package, ProviderError},
};

pub use self::combined_index::CombinedIndex;

/// Why an index could not answer.
pub type IndexError = Box<dyn Error + Send + Sync>;

/// One version of a skill that can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The version; 0.0.0 where the skill has none.
    pub version: Version,
    /// Whether it was withdrawn: it stays where it is, and is not given to anybody else.
    pub yanked: bool,
    /// How far it is trusted.
    pub tier: Tier,
}

/// What a version needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionDependencies {
    /// Other skills.
    Skills(Vec<SkillRef>),
    /// It cannot be found out, so that this version is passed over. The reason is a fragment of a
    /// sentence.
    Unreadable(String),
}

/// Where versions of skills are looked up.
pub trait Index {
    /// All versions of a skill in any order; none if nobody knows the name.
    fn versions(&self, name: &str) -> Result<Vec<Candidate>, IndexError>;

    /// What a version needs.
    fn dependencies(
        &self,
        name: &str,
        version: &Version,
    ) -> Result<VersionDependencies, IndexError>;

    /// Names that are known, to guess what a misspelt one meant.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Who asks for a skill that no other skill needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RootRequest {
    /// The project's `savoir.toml`.
    Manifest,
    /// Somebody who typed its name.
    CommandLine,
    /// A file that describes an agent.
    AgentFile(String),
}

impl fmt::Display for RootRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manifest => f.write_str("`savoir.toml`"),
            Self::CommandLine => f.write_str("the command line"),
            Self::AgentFile(file) => write!(f, "`{file}`"),
        }
    }
}

/// Whether something can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Necessity {
    /// It cannot.
    Required,
    /// It is left out if it does not go together with the rest.
    Optional,
}

/// A skill that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Its name, and the versions that will do.
    pub skill: SkillRef,
    /// Who asks.
    pub asker: RootRequest,
    /// Whether it can be left out.
    pub need: Necessity,
}

impl Root {
    /// A skill that somebody must have.
    pub fn required(skill: SkillRef, asker: RootRequest) -> Self {
        Self { skill, asker, need: Necessity::Required }
    }
}

/// Which locked versions are given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Update {
    /// None that still fits.
    #[default]
    Nothing,
    /// Those of some skills.
    Skills(BTreeSet<String>),
    /// All.
    All,
}

impl Update {
    fn frees(&self, name: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Skills(names) => names.contains(name),
            Self::All => true,
        }
    }
}

/// What is asked of the resolver.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The skills that are asked for.
    pub roots: Vec<Root>,
    /// Versions that are in the lock.
    pub locked: BTreeMap<String, Version>,
    /// Which of these are given up.
    pub update: Update,
}

impl Request {
    fn locked(&self, name: &str) -> Option<&Version> {
        self.locked.get(name).filter(|_| !self.update.frees(name))
    }
}

/// Who needs a skill.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requester {
    /// Nobody but the one who asks.
    Root(RootRequest),
    /// Another skill.
    Skill {
        /// Its name.
        name: String,
        /// The version of it that was chosen.
        version: Version,
    },
}

impl fmt::Display for Requester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(asker) => asker.fmt(f),
            Self::Skill { name, version } => write!(f, "`{name}` {version}"),
        }
    }
}

/// One demand that a version meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Who made it.
    pub requester: Requester,
    /// The versions that would have done.
    pub range: VersionRange,
}

/// The version of a skill that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The version.
    pub version: Version,
    /// How far it is trusted, as the index says.
    pub tier: Tier,
    /// Whether it was withdrawn and only the lock keeps it.
    pub yanked: bool,
    /// Everyone who needs it.
    pub requested_by: Vec<Demand>,
    /// What it needs itself, sorted by name.
    pub needs: Vec<SkillRef>,
}

/// Something that could be left out, and was.
#[derive(Debug)]
pub struct SkippedRoot {
    /// What was asked for.
    pub root: Root,
    /// Why it does not go together with the rest.
    pub why: ResolveError,
}

/// Versions that go together.
#[derive(Debug, Default)]
pub struct Resolution {
    /// The version of each skill.
    pub chosen: BTreeMap<String, Chosen>,
    /// All skills in the order in which they can be installed: each after what it needs.
    pub order: Vec<String>,
    /// What was left out.
    pub skipped: Vec<SkippedRoot>,
}

/// Why a request has no answer: sentences, and ways out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// What is the matter, without full stops.
    pub sentences: Vec<String>,
    /// What could be done.
    pub hints: Vec<String>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentences.join("\n"))
    }
}

/// Why no versions were chosen.
#[derive(Debug, Error)]
pub enum ResolveError {
    /// Nobody knows a skill of some name.
    #[error("{0}")]
    Unknown(Explanation),
    /// The ranges do not go together, or leave no version.
    #[error("{0}")]
    Conflict(Explanation),
    /// Skills need each other in a circle; the first name stands at its end again.
    #[error("skills need each other in a circle: {}", .0.join(" → "))]
    Cycle(Vec<String>),
    /// The index could not answer.
    #[error("`{name}` cannot be looked up: {error}")]
    Index {
        /// For which skill.
        name: String,
        /// Why.
        error: IndexError,
    },
    /// More skills, or more attempts, than any real project has.
    #[error("{0}")]
    TooMuch(String),
}

impl ResolveError {
    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown_skill",
            Self::Conflict(_) => "version_conflict",
            Self::Cycle(_) => "dependency_cycle",
            Self::Index { .. } => "index",
            Self::TooMuch(_) => "too_large",
        }
    }

    /// What could be done about it.
    pub fn hints(&self) -> &[String] {
        match self {
            Self::Unknown(why) | Self::Conflict(why) => &why.hints,
            _ => &[],
        }
    }

    /// Whether another set of roots could have an answer.
    fn is_about_roots(&self) -> bool {
        !matches!(self, Self::Index { .. } | Self::TooMuch(_))
    }
}

impl From<ProviderError> for ResolveError {
    fn from(stop: ProviderError) -> Self {
        match stop {
            ProviderError::Index { name, error } => Self::Index { name, error },
            ProviderError::TooMuch(why) => Self::TooMuch(why),
        }
    }
}

/// Chooses versions. Roots that can be left out are, one after the other, where they stand in the
/// way of the others.
pub fn resolve(index: &dyn Index, request: &Request) -> Result<Resolution, ResolveError> {
    let index_cache = IndexCache::new(index);
    let all: Vec<&Root> = request.roots.iter().collect();
    let (mut taken, optional): (Vec<&Root>, Vec<&Root>) =
        all.iter().partition(|root| root.need == Necessity::Required);
    match attempt(&index_cache, request, &all) {
        Err(error) if error.is_about_roots() && !optional.is_empty() => {}
        answer => return answer,
    }
    let mut resolution = attempt(&index_cache, request, &taken)?;
    let mut skipped = Vec::new();
    for root in optional {
        taken.push(root);
        match attempt(&index_cache, request, &taken) {
            Ok(wider) => resolution = wider,
            Err(why) if why.is_about_roots() => {
                taken.pop();
                skipped.push(SkippedRoot { root: root.clone(), why });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Resolution { skipped, ..resolution })
}

/// Chooses versions for these roots. Where the releases of a skill do not go together, its
/// pre-releases are admitted and the search begins again.
fn attempt(
    index_cache: &IndexCache<'_>,
    request: &Request,
    roots: &[&Root],
) -> Result<Resolution, ResolveError> {
    let mut admitted = BTreeSet::new();
    let mut first_error = None;
    loop {
        let offer = IndexProvider::new(index_cache, request, roots, &admitted);
        let tree = match pubgrub::resolve(&offer, Package::Everything, ONLY) {
            Ok(selected) => return finish(&offer, selected),
            Err(pubgrub::PubGrubError::NoSolution(tree)) => tree,
            Err(
                pubgrub::PubGrubError::ErrorChoosingVersion { source, .. }
                | pubgrub::PubGrubError::ErrorRetrievingDependencies { source, .. }
                | pubgrub::PubGrubError::ErrorInShouldCancel(source),
            ) => return Err(source.into()),
        };
        let case = ConflictReport::new(&offer, &tree)?;
        let more = case.pre_releases_would_help()?;
        let error = first_error.unwrap_or(case.error()?);
        if more.is_empty() {
            return Err(error);
        }
        admitted.extend(more);
        first_error = Some(error);
    }
}

/// Adds who needs what to the versions that were found, and the order.
fn finish(
    offer: &IndexProvider<'_>,
    selected: pubgrub::SelectedDependencies<Package, Version>,
) -> Result<Resolution, ResolveError> {
    let mut chosen = BTreeMap::new();
    for (package, version) in selected {
        let Package::Skill(name) = package else { continue };
        let candidate = offer.candidate(&name, &version)?;
        let mut needs = offer.index_cache.needs(&name, &candidate.version)?.skills().to_vec();
        needs.sort_by(|a, b| a.name.cmp(&b.name));
        let Candidate { version, yanked, tier } = candidate;
        let entry = Chosen { version, tier, yanked, requested_by: Vec::new(), needs };
        chosen.insert(name.to_string(), entry);
    }
    let mut demands = Vec::new();
    for root in offer.roots {
        demands.push((Requester::Root(root.asker.clone()), root.skill.clone()));
    }
    for (name, entry) in &chosen {
        let requester = Requester::Skill { name: name.clone(), version: entry.version.clone() };
        demands.extend(entry.needs.iter().map(|need| (requester.clone(), need.clone())));
    }
    for (requester, SkillRef { name, range }) in demands {
        if let Some(entry) = chosen.get_mut(&name) {
            entry.requested_by.push(Demand { requester, range });
        }
    }
    let order = order::dependencies_first(&chosen).map_err(ResolveError::Cycle)?;
    Ok(Resolution { chosen, order, skipped: Vec::new() })
}

#[cfg(test)]
mod tests;
