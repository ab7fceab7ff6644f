//! Whether the lock still says what `savoir.toml` asks for.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use savoir_skill::version::VersionRange;
use semver::Version;

use super::{State, index::folder};
use crate::{
    lock::{Lock, LockedSource},
    manifest::{Registry, Wanted},
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
        let unneeded = self.lock.skills.keys().filter(|name| !needed.contains(name.as_str()));
        stale.extend(unneeded.map(|name| Stale::Unneeded { name: name.clone() }));
        stale
    }

    fn root(&self, name: &str, wanted: &Wanted) -> Option<Stale> {
        let (name, wanted) = (name.to_owned(), wanted.clone());
        let Some(locked) = self.lock.skills.get(&name) else {
            return Some(Stale::Missing { name, wanted });
        };
        if !comes_from(&wanted, &locked.source, &self.manifest.registries) {
            return Some(Stale::Source { name, wanted, locked: locked.source.clone() });
        }
        match wanted {
            Wanted::Version { range, .. } if !meets(&range, &locked.version) => {
                Some(Stale::Range { name, range, locked: locked.version.clone() })
            }
            _ => None,
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
                next.extend(skill.dependencies.iter().map(|need| folder(&need.name)));
            }
        }
        needed
    }
}

fn unmet(lock: &Lock) -> Vec<Stale> {
    let versions: BTreeMap<String, Version> = lock.versions();
    let needs = lock
        .skills
        .iter()
        .flat_map(|(name, skill)| skill.dependencies.iter().map(move |need| (name.clone(), need)));
    let unmet = needs.filter(|(_, need)| {
        !versions.get(folder(&need.name)).is_some_and(|version| meets(&need.range, version))
    });
    unmet.map(|(name, need)| Stale::Need { name, need: need.to_string() }).collect()
}

/// Whether a locked version will do: a pre-release, too, since one is only chosen where nothing else
/// goes together.
fn meets(range: &VersionRange, version: &Version) -> bool {
    range.resolve(std::slice::from_ref(version)).is_some()
}

/// Whether a skill came from where it is to come from. References move, so that they do not count.
fn comes_from(wanted: &Wanted, source: &LockedSource, registries: &[Registry]) -> bool {
    let bare = |address: &str| address.split(['?', '#']).next().unwrap_or_default().to_owned();
    match (wanted, source) {
        (Wanted::Version { registry, namespace, .. }, LockedSource::Registry(other)) => {
            let whose = other.split_once('#').and_then(|(_, name)| name.split_once('/'));
            let same = |one: &str| bare(other).trim_end_matches('/') == one.trim_end_matches('/');
            let is_registry = registry.as_deref().is_none_or(|one| {
                let mut known = registries.iter().filter(|known| known.name == one);
                match known.next() {
                    Some(known) => same(&known.url),
                    // Its name may be one of the user's own.
                    None => !one.contains("://") || same(one),
                }
            });
            is_registry && namespace.as_deref() == whose.map(|(namespace, _)| namespace)
        }
        (Wanted::Path(one), LockedSource::Path(other)) => {
            one.trim_start_matches("./") == bare(other).trim_start_matches("./")
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
