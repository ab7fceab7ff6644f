//! Resolves versions of skills that satisfy all requirements.
//!
//! The result has one version of each required skill and of each dependency, such that every
//! version range matches: the locked version if it still matches, otherwise the highest. If there
//! is no such set, the error names the conflicting requirements and who made them.
//!
//! The search algorithm is PubGrub. It knows nothing of yanked versions, tiers or pre-releases: an
//! `IndexProvider` decides which versions it sees, and `explain` translates its reasons into
//! sentences.

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
    provider::{IndexCache, IndexProvider, Package, ProviderError, ROOT_VERSION},
};

pub use self::combined_index::CombinedIndex;

/// An error of an [`Index`].
pub type IndexError = Box<dyn Error + Send + Sync>;

/// An available version of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The version; 0.0.0 if the skill has none.
    pub version: Version,
    /// Whether the version was yanked: existing installs keep it, new installs skip it.
    pub yanked: bool,
    /// The trust tier.
    pub tier: Tier,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionDependencies {
    Skills(Vec<SkillRef>),
    /// The dependencies cannot be read, so that the resolver skips this version. The reason is a
    /// sentence fragment.
    Unreadable(String),
}

/// A list of available versions of skills.
pub trait Index {
    /// Returns all versions of a skill in any order; none if the name is unknown.
    fn versions(&self, name: &str) -> Result<Vec<Candidate>, IndexError>;

    /// Returns the dependencies of a version.
    fn dependencies(
        &self,
        name: &str,
        version: &Version,
    ) -> Result<VersionDependencies, IndexError>;

    /// Returns the known names, to suggest corrections of misspelled ones.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The origin of a requirement that does not come from another skill.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RootRequest {
    Manifest,
    /// The user typed the name.
    CommandLine,
    /// An agent file, which describes a GAIA agent.
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

/// Whether a requirement may be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Necessity {
    Required,
    /// The requirement is dropped if it conflicts with the others.
    Optional,
}

/// A requirement that does not come from another skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The name, and the acceptable versions.
    pub skill: SkillRef,
    /// The origin of the requirement.
    pub asker: RootRequest,
    /// Whether the requirement may be dropped.
    pub need: Necessity,
}

impl Root {
    /// A requirement that must not be dropped.
    pub fn required(skill: SkillRef, asker: RootRequest) -> Self {
        Self { skill, asker, need: Necessity::Required }
    }
}

/// The locked versions that may change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Update {
    /// None, as long as they match.
    #[default]
    Nothing,
    /// Those of these skills.
    Skills(BTreeSet<String>),
    All,
}

impl Update {
    fn allows_change(&self, name: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Skills(names) => names.contains(name),
            Self::All => true,
        }
    }
}

/// The input of the resolver.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The requirements.
    pub roots: Vec<Root>,
    /// The versions in the lock.
    pub locked: BTreeMap<String, Version>,
    /// The locked versions that may change.
    pub update: Update,
}

impl Request {
    fn locked(&self, name: &str) -> Option<&Version> {
        self.locked.get(name).filter(|_| !self.update.allows_change(name))
    }
}

/// The origin of a requirement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requester {
    /// The user or a file.
    Root(RootRequest),
    /// Another skill.
    Skill {
        name: String,
        /// The chosen version of that skill.
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

/// A requirement that a chosen version satisfies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The origin.
    pub requester: Requester,
    /// The acceptable versions.
    pub range: VersionRange,
}

/// The chosen version of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    pub version: Version,
    /// The trust tier from the index.
    pub tier: Tier,
    /// Whether the version was yanked, and is only chosen because it is locked.
    pub yanked: bool,
    /// All requirements of this skill.
    pub requested_by: Vec<Demand>,
    /// The dependencies, sorted by name.
    pub needs: Vec<SkillRef>,
}

/// An optional requirement that was dropped.
#[derive(Debug)]
pub struct SkippedRoot {
    pub root: Root,
    /// The conflict with the other requirements.
    pub why: ResolveError,
}

/// A set of compatible versions.
#[derive(Debug, Default)]
pub struct Resolution {
    /// The chosen version of each skill.
    pub chosen: BTreeMap<String, Chosen>,
    /// All skills in install order: each after its dependencies.
    pub order: Vec<String>,
    /// The optional requirements that were dropped.
    pub skipped: Vec<SkippedRoot>,
}

/// An explanation why a request has no solution, with hints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The sentences, without full stops.
    pub sentences: Vec<String>,
    /// Suggestions to solve the conflict.
    pub hints: Vec<String>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentences.join("\n"))
    }
}

/// An error of the resolver.
#[derive(Debug, Error)]
pub enum ResolveError {
    /// A skill name is unknown.
    #[error("{0}")]
    Unknown(Explanation),
    /// The version ranges conflict, or match no version.
    #[error("{0}")]
    Conflict(Explanation),
    /// A dependency cycle; the last name is the first one again.
    #[error("skills need each other in a circle: {}", .0.join(" → "))]
    Cycle(Vec<String>),
    /// The index could not answer.
    #[error("`{name}` cannot be looked up: {error}")]
    Index { name: String, error: IndexError },
    /// There are more skills, or more attempts, than any real project has.
    #[error("{0}")]
    TooMuch(String),
}

impl ResolveError {
    /// A stable error code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown_skill",
            Self::Conflict(_) => "version_conflict",
            Self::Cycle(_) => "dependency_cycle",
            Self::Index { .. } => "index",
            Self::TooMuch(_) => "too_large",
        }
    }

    /// Suggestions to solve the error.
    pub fn hints(&self) -> &[String] {
        match self {
            Self::Unknown(why) | Self::Conflict(why) => &why.hints,
            _ => &[],
        }
    }

    /// Whether the error could disappear with other requirements.
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

/// Chooses versions. Optional requirements that conflict with the others are dropped one by one.
pub fn resolve(index: &dyn Index, request: &Request) -> Result<Resolution, ResolveError> {
    let index_cache = IndexCache::new(index);
    let all: Vec<&Root> = request.roots.iter().collect();
    let (mut taken, optional): (Vec<&Root>, Vec<&Root>) =
        all.iter().partition(|root| root.need == Necessity::Required);
    match try_resolve(&index_cache, request, &all) {
        Err(error) if error.is_about_roots() && !optional.is_empty() => {}
        answer => return answer,
    }
    let mut resolution = try_resolve(&index_cache, request, &taken)?;
    let mut skipped = Vec::new();
    for root in optional {
        taken.push(root);
        match try_resolve(&index_cache, request, &taken) {
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

/// Chooses versions for these requirements. If the releases of a skill are in conflict, its
/// pre-releases are admitted and the search starts again.
fn try_resolve(
    index_cache: &IndexCache<'_>,
    request: &Request,
    roots: &[&Root],
) -> Result<Resolution, ResolveError> {
    let mut admitted = BTreeSet::new();
    let mut first_error = None;
    loop {
        let offer = IndexProvider::new(index_cache, request, roots, &admitted);
        let tree = match pubgrub::resolve(&offer, Package::Everything, ROOT_VERSION) {
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

/// Adds the requirements and the install order to the versions that were found.
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
