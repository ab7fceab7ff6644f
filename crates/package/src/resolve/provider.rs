//! Presents an index to the PubGrub solver.

use std::{
    cell::{Cell, RefCell},
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
    fmt,
    rc::Rc,
};

use pubgrub::{
    Dependencies, DependencyConstraints, DependencyProvider, PackageResolutionStatistics,
};
use savoir_skill::version::{SkillRef, VersionRange};
use semver::Version;
use thiserror::Error;

use super::{
    Candidate, Index, IndexError, Request, Root, VersionDependencies,
    version_sets::{self, Versions, plain},
};
use crate::limits::{MAX_RESOLVE_STEPS, MAX_RESOLVED_SKILLS};

/// The version of packages that are not skills.
pub(super) const ROOT_VERSION: Version = Version::new(0, 0, 0);

/// A package for the solver.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Package {
    /// The root package, which depends on all roots.
    Everything,
    /// One requirement of the user or a file, as a package of its own, so that explanations can
    /// name it.
    Root(usize),
    Skill(Rc<str>),
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything => f.write_str("everything"),
            Self::Root(number) => write!(f, "root {number}"),
            Self::Skill(name) => f.write_str(name),
        }
    }
}

/// Why the search stopped without a result.
#[derive(Debug, Error)]
pub(super) enum ProviderError {
    #[error("`{name}` cannot be looked up: {error}")]
    Index { name: String, error: IndexError },
    #[error("{0}")]
    TooMuch(String),
}

impl VersionDependencies {
    pub(super) fn skills(&self) -> &[SkillRef] {
        match self {
            Self::Skills(skills) => skills,
            Self::Unreadable(_) => &[],
        }
    }
}

/// Caches answers of an index, so that each query is made once.
pub(super) struct IndexCache<'a> {
    index: &'a dyn Index,
    candidates: RefCell<HashMap<String, Rc<[Candidate]>>>,
    needs: RefCell<HashMap<(String, Version), Rc<VersionDependencies>>>,
}

impl<'a> IndexCache<'a> {
    pub(super) fn new(index: &'a dyn Index) -> Self {
        Self { index, candidates: RefCell::default(), needs: RefCell::default() }
    }

    /// Returns all versions of a skill, highest first.
    pub(super) fn candidates(&self, name: &str) -> Result<Rc<[Candidate]>, ProviderError> {
        if let Some(known) = self.candidates.borrow().get(name) {
            return Ok(known.clone());
        }
        if self.candidates.borrow().len() >= MAX_RESOLVED_SKILLS {
            return Err(ProviderError::TooMuch(format!(
                "more than {MAX_RESOLVED_SKILLS} skills need each other"
            )));
        }
        let mut found =
            self.index.versions(name).map_err(|error| ProviderError::index(name, error))?;
        found.sort_by(|a, b| b.version.cmp(&a.version));
        let found: Rc<[Candidate]> = found.into();
        self.candidates.borrow_mut().insert(name.to_owned(), found.clone());
        Ok(found)
    }

    pub(super) fn needs(
        &self,
        name: &str,
        version: &Version,
    ) -> Result<Rc<VersionDependencies>, ProviderError> {
        let key = (name.to_owned(), version.clone());
        if let Some(known) = self.needs.borrow().get(&key) {
            return Ok(known.clone());
        }
        let found = self.index.dependencies(name, version);
        let found = Rc::new(found.map_err(|error| ProviderError::index(name, error))?);
        self.needs.borrow_mut().insert(key, found.clone());
        Ok(found)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.index.names()
    }
}

impl ProviderError {
    fn index(name: &str, error: IndexError) -> Self {
        Self::Index { name: name.to_owned(), error }
    }
}

/// The versions of a skill that may be chosen.
#[derive(Default)]
pub(super) struct UsableVersions {
    /// Versions without build metadata, in order of preference.
    pub(super) versions: Vec<Version>,
    /// The position of each one's candidate.
    positions: Vec<usize>,
}

/// The view of the index in one search.
pub(super) struct IndexProvider<'a> {
    pub(super) index_cache: &'a IndexCache<'a>,
    pub(super) request: &'a Request,
    pub(super) roots: &'a [&'a Root],
    root_names: HashSet<&'a str>,
    /// Skills whose pre-releases are allowed even if no range names one.
    admitted: &'a BTreeSet<String>,
    choices: RefCell<HashMap<Rc<str>, Rc<UsableVersions>>>,
    steps: Cell<usize>,
}

impl<'a> IndexProvider<'a> {
    pub(super) fn new(
        index_cache: &'a IndexCache<'a>,
        request: &'a Request,
        roots: &'a [&'a Root],
        admitted: &'a BTreeSet<String>,
    ) -> Self {
        let root_names = roots.iter().map(|root| root.skill.name.as_str()).collect();
        let (choices, steps) = (RefCell::default(), Cell::new(0));
        Self { index_cache, request, roots, root_names, admitted, choices, steps }
    }

    pub(super) fn admits_pre_releases(&self, name: &str) -> bool {
        self.admitted.contains(name)
    }

    pub(super) fn usable_versions(&self, name: &str) -> Result<Rc<UsableVersions>, ProviderError> {
        if let Some(known) = self.choices.borrow().get(name) {
            return Ok(known.clone());
        }
        let choice = Rc::new(self.choose(name)?);
        self.choices.borrow_mut().insert(name.into(), choice.clone());
        Ok(choice)
    }

    fn choose(&self, name: &str) -> Result<UsableVersions, ProviderError> {
        let candidates = self.index_cache.candidates(name)?;
        let locked = self.request.locked(name);
        let is_locked = |version: &Version| locked == Some(version);
        let is_like_locked =
            |version: &Version| locked.is_some_and(|locked| locked.cmp_precedence(version).is_eq());
        let usable = |candidate: &Candidate| !candidate.yanked || is_locked(&candidate.version);
        let mut usable: Vec<usize> =
            (0..candidates.len()).filter(|at| usable(&candidates[*at])).collect();
        let admitted = self.admits_pre_releases(name);
        // The sort is stable: equal candidates stay in descending order of version.
        usable.sort_by_key(|at| {
            let version = &candidates[*at].version;
            let unasked = admitted && !version.pre.is_empty();
            (!is_locked(version), !is_like_locked(version), unasked)
        });
        let mut choice = UsableVersions::default();
        for at in usable {
            let version = plain(&candidates[at].version);
            if !choice.versions.contains(&version) {
                choice.versions.push(version);
                choice.positions.push(at);
            }
        }
        Ok(choice)
    }

    /// Returns the candidate of a chosen version.
    pub(super) fn candidate(
        &self,
        name: &str,
        version: &Version,
    ) -> Result<Candidate, ProviderError> {
        let choice = self.usable_versions(name)?;
        let candidates = self.index_cache.candidates(name)?;
        let found = choice.versions.iter().position(|known| known == version);
        let found = found.and_then(|at| candidates.get(*choice.positions.get(at)?));
        found
            .cloned()
            .ok_or_else(|| ProviderError::index(name, format!("{version} is not there").into()))
    }

    /// Returns the versions of a skill in a range.
    pub(super) fn set(&self, name: &str, range: &VersionRange) -> Result<Versions, ProviderError> {
        if self.admits_pre_releases(name) {
            return Ok(version_sets::range_with_pre_releases(range));
        }
        Ok(version_sets::matching(range, &self.usable_versions(name)?.versions))
    }

    /// Combines requirements on the same skill into one set of versions each.
    fn constraints<'n>(
        &self,
        needs: impl IntoIterator<Item = &'n SkillRef>,
    ) -> Result<DependencyConstraints<Package, Versions>, ProviderError> {
        let mut sets: Vec<(&str, Versions)> = Vec::new();
        for need in needs {
            let set = self.set(&need.name, &need.range)?;
            match sets.iter_mut().find(|(name, _)| *name == need.name) {
                Some((_, known)) => *known = known.intersection(&set),
                None => sets.push((&need.name, set)),
            }
        }
        Ok(sets.into_iter().map(|(name, set)| (Package::Skill(name.into()), set)).collect())
    }
}

/// Roots come first, so that requested skills get their newest versions; then skills with
/// conflicts, then those with the fewest versions.
type Priority = (u8, u32, Reverse<usize>);

impl DependencyProvider for IndexProvider<'_> {
    type P = Package;
    type V = Version;
    type VS = Versions;
    type Priority = Priority;
    type M = String;
    type Err = ProviderError;

    fn prioritize(
        &self,
        package: &Package,
        range: &Versions,
        statistics: &PackageResolutionStatistics,
    ) -> Priority {
        let Package::Skill(name) = package else { return (u8::MAX, 0, Reverse(0)) };
        let is_root = self.root_names.contains(&**name);
        // A skill that cannot be looked up fails later, when it is chosen.
        let choice = self.usable_versions(name).unwrap_or_default();
        let count = choice.versions.iter().filter(|version| range.contains(*version)).count();
        (u8::from(is_root), statistics.conflict_count(), Reverse(count))
    }

    fn choose_version(
        &self,
        package: &Package,
        range: &Versions,
    ) -> Result<Option<Version>, ProviderError> {
        let Package::Skill(name) = package else {
            return Ok(Some(ROOT_VERSION).filter(|version| range.contains(version)));
        };
        let choice = self.usable_versions(name)?;
        Ok(choice.versions.iter().find(|version| range.contains(*version)).cloned())
    }

    fn get_dependencies(
        &self,
        package: &Package,
        version: &Version,
    ) -> Result<Dependencies<Package, Versions, String>, ProviderError> {
        let available = match package {
            Package::Everything => {
                let only = || Versions::singleton(ROOT_VERSION);
                (0..self.roots.len()).map(|at| (Package::Root(at), only())).collect()
            }
            Package::Root(at) => match self.roots.get(*at) {
                Some(root) => self.constraints([&root.skill])?,
                None => DependencyConstraints::default(),
            },
            Package::Skill(name) => {
                let candidate = self.candidate(name, version)?;
                match &*self.index_cache.needs(name, &candidate.version)? {
                    VersionDependencies::Skills(needs) => {
                        // The solver does not allow self-dependencies; the install order detects
                        // them.
                        let others = needs.iter().filter(|need| *need.name != **name);
                        self.constraints(others)?
                    }
                    VersionDependencies::Unreadable(why) => {
                        return Ok(Dependencies::Unavailable(why.clone()));
                    }
                }
            }
        };
        Ok(Dependencies::Available(available))
    }

    fn should_cancel(&self) -> Result<(), ProviderError> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MAX_RESOLVE_STEPS {
            return Err(ProviderError::TooMuch(format!(
                "no versions that go together were found in {MAX_RESOLVE_STEPS} steps"
            )));
        }
        Ok(())
    }
}
