//! Checks registries for newer versions of installed skills.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use savoir_skill::version::VersionRange;
use semver::Version;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{
    Client, Name, NameError, Package, Registries, RegistryError, concurrency::run_concurrently,
    error::printable, registries::check_integrity,
};
use crate::{
    install::{State, updates::Availability},
    lock::LockedSkill,
    manifest::SkillRequirement,
};

/// The status of an installed skill in its registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedStatus {
    /// The highest newer version that matches all requirements, if any.
    pub newer: Option<Version>,
    /// The highest version of all, if it is higher than `newer`.
    pub beyond: Option<Version>,
    /// Whether the installed version was yanked.
    pub yanked: bool,
    /// The reason for the yank, if one was stated.
    pub yanked_reason: Option<String>,
    /// Whether the installed version was taken down, so that it can no longer be downloaded.
    #[serde(default)]
    pub taken_down: bool,
    /// The reason for the takedown, if one was stated.
    pub taken_down_reason: Option<String>,
    /// Whether the registry no longer lists the installed version, and does not state why.
    #[serde(default)]
    pub missing: bool,
    /// The deprecation message of the installed version.
    pub deprecated: Option<String>,
}

impl PublishedStatus {
    fn is_up_to_date(&self) -> bool {
        *self == Self::default()
    }
}

/// An installed skill that its registry is asked about.
struct InstalledSkill<'a> {
    installed: &'a str,
    locked: &'a LockedSkill,
    name: Name,
}

/// The skills to ask about, by the address of their registry.
type SkillsByRegistry<'a> = BTreeMap<&'a str, Vec<InstalledSkill<'a>>>;

/// Looks for newer versions of every skill that is locked from a registry. Each registry is asked
/// once, all at the same time, and only about its own skills.
pub async fn check_registries(
    registries: &Registries,
    state: &State,
) -> BTreeMap<String, Availability> {
    check_matching(registries, state, &|_| true).await
}

/// Like [`check_registries`], for these skills only.
pub async fn check_registries_for(
    registries: &Registries,
    state: &State,
    names: &BTreeSet<String>,
) -> BTreeMap<String, Availability> {
    check_matching(registries, state, &|name| names.contains(name)).await
}

async fn check_matching(
    registries: &Registries,
    state: &State,
    is_meant: &(dyn Fn(&String) -> bool + Sync),
) -> BTreeMap<String, Availability> {
    let (questions, wrong) = group_by_registry(state, is_meant);
    let wrong =
        wrong.into_iter().map(|(name, error)| (name, Availability::Unknown(error.to_string())));
    let mut answers: BTreeMap<String, Availability> = wrong.collect();
    for (address, found) in ask_registry(registries, &questions, None).await {
        for subject in questions.get(address.as_str()).into_iter().flatten() {
            answers.insert(subject.installed.to_owned(), subject.answer(&found, state));
        }
    }
    answers
}

/// Timeout for a registry that is only asked whether a stored skill may be installed again.
const REGISTRY_TIMEOUT: Duration = Duration::from_secs(10);

/// Checks whether locked skills may be installed again from the store. Rejects a skill that its
/// registry took down, does not know, or has with other files, and one whose name belongs to
/// another registry. Returns the skills whose registry did not answer, with the reason.
pub async fn check_still_available(
    registries: &Registries,
    state: &State,
    names: &BTreeSet<String>,
) -> Result<BTreeMap<String, String>, RegistryError> {
    let (questions, wrong) = group_by_registry(state, &|name| names.contains(name));
    if let Some(error) = wrong.into_values().next() {
        return Err(error.into());
    }
    for subject in questions.values().flatten() {
        registries.check_locked(subject.installed, subject.locked)?;
    }
    let mut unanswered = BTreeMap::new();
    for (address, found) in ask_registry(registries, &questions, Some(REGISTRY_TIMEOUT)).await {
        let subjects = questions.get(address.as_str()).into_iter().flatten();
        let client = registries.named(&address)?;
        let mut cached = BTreeMap::new();
        if found.is_err() {
            // A takedown in the cache still counts while the registry does not answer.
            let names = subjects.clone().map(|subject| subject.name.clone()).collect();
            cached = load_packages(client.offline(), names).await.unwrap_or_default();
        }
        for subject in subjects {
            match &found {
                Ok(packages) => subject.check(packages, &client)?,
                Err(why) => {
                    subject.check_not_taken_down(&cached, &client)?;
                    unanswered.insert(subject.installed.to_owned(), why.clone());
                }
            }
        }
    }
    Ok(unanswered)
}

/// Returns the skills to ask about, by registry; and the skills whose published name is invalid.
fn group_by_registry<'a>(
    state: &'a State,
    is_meant: &dyn Fn(&String) -> bool,
) -> (SkillsByRegistry<'a>, BTreeMap<String, NameError>) {
    let (mut questions, mut wrong) = (SkillsByRegistry::new(), BTreeMap::new());
    for (installed, locked) in state.lock.skills.iter().filter(|(name, _)| is_meant(name)) {
        let Some((address, name)) = locked.source.published(installed) else { continue };
        match Name::parse(name) {
            Ok(name) => {
                questions.entry(address).or_default().push(InstalledSkill {
                    installed,
                    locked,
                    name,
                });
            }
            Err(error) => _ = wrong.insert(installed.clone(), error),
        }
    }
    (questions, wrong)
}

/// Asks all registries; returns the answers by address. Waits for each at most `time_limit`.
async fn ask_registry(
    registries: &Registries,
    questions: &SkillsByRegistry<'_>,
    time_limit: Option<Duration>,
) -> BTreeMap<String, Packages> {
    let asked = questions.iter().map(|(address, subjects)| {
        let names: Vec<Name> = subjects.iter().map(|subject| subject.name.clone()).collect();
        ((*address).to_owned(), registries.named(address), names)
    });
    let asked =
        run_concurrently(asked.collect::<Vec<_>>(), |(address, client, names)| async move {
            let asked = load_packages(client, names);
            let found = match time_limit {
                None => asked.await,
                Some(time_limit) => timeout(time_limit, asked).await.unwrap_or_else(|_| {
                    Err(format!("{address} did not answer within {} s", time_limit.as_secs()))
                }),
            };
            Ok::<_, RegistryError>((address, found))
        });
    asked.await.unwrap_or_default().into_iter().collect()
}

type Packages = Result<BTreeMap<Name, Package>, String>;

/// Returns the versions of these skills only, without dependencies.
async fn load_packages(client: Result<Client, RegistryError>, names: Vec<Name>) -> Packages {
    let client = client.map_err(|error| error.to_string())?;
    let wanted: BTreeSet<Name> = names.iter().cloned().collect();
    let closure = client.closure_of(&names, &|name| wanted.contains(name)).await;
    Ok(closure.map_err(|error| error.to_string())?.packages)
}

impl InstalledSkill<'_> {
    fn answer(&self, found: &Packages, state: &State) -> Availability {
        let packages = match found {
            Ok(packages) => packages,
            Err(why) => return Availability::Unknown(why.clone()),
        };
        let Some(package) = packages.get(&self.name) else {
            let why = format!("its registry no longer has `{}`", self.name);
            return Availability::Unknown(why);
        };
        let published = self.judge(package, &self.ranges(state));
        if published.is_up_to_date() {
            return Availability::Current;
        }
        Availability::Published(published)
    }

    fn check_not_taken_down(
        &self,
        packages: &BTreeMap<Name, Package>,
        client: &Client,
    ) -> Result<(), RegistryError> {
        match packages
            .get(&self.name)
            .and_then(|package| package.find_taken_down(&self.locked.version))
        {
            Some(gone) => Err(RegistryError::taken_down(gone, client.address())),
            None => Ok(()),
        }
    }

    /// Checks that the registry still provides the locked version with the same files.
    fn check(
        &self,
        packages: &BTreeMap<Name, Package>,
        client: &Client,
    ) -> Result<(), RegistryError> {
        let version = &self.locked.version;
        let Some(package) = packages.get(&self.name) else {
            let (name, registry) = (self.name.clone(), client.address());
            return Err(RegistryError::Unknown { name, registry });
        };
        self.check_not_taken_down(packages, client)?;
        match package.iter().find(|line| line.version == *version) {
            Some(line) => check_integrity(client, line, &self.locked.integrity),
            None => Err(RegistryError::no_version(&self.name, version, client.address())),
        }
    }

    fn judge(&self, package: &Package, ranges: &[&VersionRange]) -> PublishedStatus {
        let installed = &self.locked.version;
        let line = package.iter().find(|line| line.version == *installed);
        let gone = package.find_taken_down(installed);
        let newer = package.iter().filter(|line| !line.yanked && line.version > *installed);
        let newer: Vec<&Version> = newer.map(|line| &line.version).collect();
        let matches_all = |version: &&&Version| ranges.iter().all(|range| range.matches(version));
        let best = newer.iter().filter(matches_all).max().map(|version| (*version).clone());
        // Pre-releases are only reported to users who have one installed.
        let is_reported = |version: &&&Version| version.pre.is_empty() || !installed.pre.is_empty();
        let highest = newer.iter().filter(is_reported).max().map(|version| (*version).clone());
        PublishedStatus {
            beyond: highest.filter(|highest| best.as_ref().is_none_or(|best| best < highest)),
            newer: best,
            yanked: line.is_some_and(|line| line.yanked),
            yanked_reason: line.and_then(|line| line.yanked_reason.as_deref()).map(printable),
            taken_down: gone.is_some(),
            taken_down_reason: gone
                .and_then(|gone| gone.withdrawn_reason.as_deref())
                .map(printable),
            missing: line.is_none() && gone.is_none(),
            deprecated: line.and_then(|line| line.deprecated.as_deref()).map(printable),
        }
    }

    /// Returns the version ranges that `savoir.toml` and dependent skills require.
    fn ranges<'a>(&self, state: &'a State) -> Vec<&'a VersionRange> {
        let wanted = match state.manifest.skills.get(self.installed) {
            Some(SkillRequirement::Version { range, .. }) => Some(range),
            _ => None,
        };
        let whole = self.name.to_string();
        let needs = state.lock.skills.values().flat_map(|skill| &skill.dependencies);
        let needs = needs.filter(|need| need.name == self.installed || need.name == whole);
        wanted.into_iter().chain(needs.map(|need| &need.range)).collect()
    }
}
