//! Whether the lock still says what `savoir.toml` asks for.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use savoir_skill::version::VersionRange;
use semver::Version;

use super::{ShelfError, State};
use crate::{
    lock::{Lock, LockedSource},
    manifest::Wanted,
};

/// Something in which `savoir.lock` and `savoir.toml` do not agree.
#[derive(Clone, Debug, PartialEq)]
pub enum Stale {
    /// A skill is asked for and not locked.
    Missing {
        /// Which one.
        name: String,
        /// Where it is to come from.
        wanted: Wanted,
    },
    /// A skill is asked for by a name that it does not have.
    Name {
        /// The name in `savoir.toml`.
        key: String,
        /// What it calls itself, and what it is locked as.
        name: String,
    },
    /// The locked version will not do.
    Range {
        /// Which skill.
        name: String,
        /// The versions that will do.
        range: VersionRange,
        /// The version in the lock.
        locked: Version,
    },
    /// The locked skill came from elsewhere.
    Source {
        /// Which one.
        name: String,
        /// Where it is to come from.
        wanted: Wanted,
        /// Where it came from.
        locked: LockedSource,
    },
    /// A locked skill needs one that is not locked, or not in such a version.
    Need {
        /// Which one needs it.
        name: String,
        /// What it needs.
        need: String,
    },
    /// A skill is locked that nothing needs.
    Unneeded {
        /// Which one.
        name: String,
    },
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { name, .. } => write!(f, "`{name}` is not in the lock"),
            Self::Name { key, name } => {
                write!(
                    f,
                    "`{key}` in `savoir.toml` is a skill that calls itself `{name}`; write `{name}`"
                )
            }
            Self::Range { name, range, locked } => {
                write!(f, "`{name}` is locked at {locked}, and `savoir.toml` asks for {range}")
            }
            Self::Source { name, locked, .. } => {
                write!(
                    f,
                    "`{name}` is locked from {locked}, and `savoir.toml` names another source"
                )
            }
            Self::Need { name, need } => {
                write!(f, "`{name}` needs {need}, which is not in the lock")
            }
            Self::Unneeded { name } => write!(f, "`{name}` is in the lock, and nothing needs it"),
        }
    }
}

impl State {
    /// In what the lock does not say what `savoir.toml` asks for.
    pub fn stale(&self) -> Vec<Stale> {
        let mut stale: Vec<Stale> = Vec::new();
        for (name, wanted) in &self.manifest.skills {
            stale.extend(self.root(name, wanted));
        }
        stale.extend(unmet(&self.lock));
        let needed = self.needed();
        let named: BTreeSet<String> = stale.iter().filter_map(misnamed).collect();
        let unneeded = self.lock.skills.keys();
        let unneeded = unneeded
            .filter(|name| !needed.contains(name.as_str()) && !named.contains(name.as_str()));
        stale.extend(unneeded.map(|name| Stale::Unneeded { name: name.clone() }));
        stale
    }

    fn root(&self, name: &str, wanted: &Wanted) -> Option<Stale> {
        let (name, wanted) = (name.to_owned(), wanted.clone());
        let Some(locked) = self.lock.skills.get(&name) else {
            return Some(match self.known_as(&wanted) {
                Some(own) => Stale::Name { key: name, name: own },
                None => Stale::Missing { name, wanted },
            });
        };
        if !comes_from(&wanted, &locked.source) {
            return Some(Stale::Source { name, wanted, locked: locked.source.clone() });
        }
        match wanted {
            Wanted::Version { range, .. } if !range.matches(&locked.version) => {
                Some(Stale::Range { name, range, locked: locked.version.clone() })
            }
            _ => None,
        }
    }

    /// The name under which a skill is locked for which nobody asks by that name.
    fn known_as(&self, wanted: &Wanted) -> Option<String> {
        let mut others =
            self.lock.skills.iter().filter(|(name, _)| !self.manifest.skills.contains_key(*name));
        let only = |source: &LockedSource| !matches!(source, LockedSource::Registry(_));
        let same = others.find(|(_, skill)| {
            only(&skill.source) && !is_list(&skill.source) && comes_from(wanted, &skill.source)
        });
        same.map(|(name, _)| name.clone())
    }

    /// Refuses a skill that was fetched for a name in `savoir.toml` and calls itself otherwise.
    pub(super) fn check_name(&self, name: &str, wanted: &Wanted) -> Result<(), ShelfError> {
        if self.manifest.skills.contains_key(name) || matches!(wanted, Wanted::Version { .. }) {
            return Ok(());
        }
        let missing = self
            .manifest
            .skills
            .iter()
            .find(|(key, other)| *other == wanted && !self.lock.skills.contains_key(*key));
        match missing {
            Some((key, _)) => Err(ShelfError::Renamed { key: key.clone(), name: name.to_owned() }),
            None => Ok(()),
        }
    }

    /// Everything that is asked for, and what that needs.
    fn needed(&self) -> BTreeSet<&str> {
        let mut needed = BTreeSet::new();
        let mut next: Vec<&str> = self.manifest.skills.keys().map(String::as_str).collect();
        while let Some(name) = next.pop() {
            if needed.insert(name)
                && let Some(skill) = self.lock.skills.get(name)
            {
                next.extend(skill.dependencies.iter().map(|need| need.name.as_str()));
            }
        }
        needed
    }
}

fn misnamed(stale: &Stale) -> Option<String> {
    match stale {
        Stale::Name { name, .. } => Some(name.clone()),
        _ => None,
    }
}

/// Whether a source has many skills, so that two of them come from the same address.
fn is_list(source: &LockedSource) -> bool {
    match source {
        LockedSource::WellKnown(_) => true,
        LockedSource::Url(url) => url.matches(':').count() > 2,
        _ => false,
    }
}

fn unmet(lock: &Lock) -> Vec<Stale> {
    let versions: BTreeMap<String, Version> = lock.versions();
    let needs = lock
        .skills
        .iter()
        .flat_map(|(name, skill)| skill.dependencies.iter().map(move |need| (name.clone(), need)));
    let unmet = needs.filter(|(_, need)| {
        !versions.get(&need.name).is_some_and(|version| need.range.matches(version))
    });
    unmet.map(|(name, need)| Stale::Need { name, need: need.to_string() }).collect()
}

/// What a lock says of a skill that another tool had from a repository, at an unknown commit.
pub(super) fn adopted_git(url: &str, path: Option<&str>) -> String {
    let path = path.map(|path| format!("#{path}"));
    format!("git+{url}{}", path.unwrap_or_default())
}

/// Whether a skill came from where it is to come from. References move, so that they do not count.
fn comes_from(wanted: &Wanted, source: &LockedSource) -> bool {
    let bare = |address: &str| address.split(['?', '#']).next().unwrap_or_default().to_owned();
    match (wanted, source) {
        (Wanted::Version { registry: None, .. }, LockedSource::Registry(_)) => true,
        (Wanted::Version { registry: Some(one), .. }, LockedSource::Registry(other)) => {
            bare(other).starts_with(one.trim_end_matches('/'))
        }
        (Wanted::Path(one), LockedSource::Path(other)) => {
            one.trim_start_matches("./") == bare(other).trim_start_matches("./")
        }
        (Wanted::Path(one), LockedSource::Adopted { path: other, .. }) => {
            one.trim_start_matches("./") == other.trim_start_matches("./")
        }
        (Wanted::Git { url, path, .. }, LockedSource::Adopted { from: Some(from), .. }) => {
            *from == adopted_git(url, path.as_deref())
        }
        (Wanted::Git { url, path, .. }, LockedSource::Git { url: other, path: inside, .. }) => {
            bare(url) == bare(other) && path == inside
        }
        (Wanted::Url { url, .. }, LockedSource::Url(other) | LockedSource::WellKnown(other)) => {
            url.split('#').next() == other.split('#').next()
        }
        _ => false,
    }
}
