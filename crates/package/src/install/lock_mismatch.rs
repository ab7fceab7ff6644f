//! Finds differences between `savoir.lock` and `savoir.toml`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::Path,
};

use savoir_skill::version::VersionRange;
use semver::Version;

use super::{InstallFailure, State, available::folder};
use crate::{
    lock::{Lock, LockedSource},
    manifest::{Registry, Revision, SkillRequirement},
    source::{Digest, decode},
};

/// A difference between `savoir.lock` and `savoir.toml`.
#[derive(Clone, Debug, PartialEq)]
pub enum LockMismatch {
    /// A required skill is not locked.
    Missing {
        name: String,
        /// The requirement of `savoir.toml`.
        requirement: SkillRequirement,
    },
    /// A skill is required under a name that differs from its own.
    Name {
        /// The name in `savoir.toml`.
        key: String,
        /// The skill's own name, under which it is locked.
        name: String,
    },
    /// The locked version is not in the required range.
    Range {
        name: String,
        /// The required range.
        range: VersionRange,
        /// The locked version.
        locked: Version,
    },
    /// The locked skill came from another source.
    Source {
        name: String,
        /// The requirement of `savoir.toml`.
        requirement: SkillRequirement,
        /// The source in the lock.
        locked: LockedSource,
    },
    /// A dependency of a locked skill is not locked, or not in a matching version.
    Need {
        /// The dependent skill.
        name: String,
        /// The dependency.
        need: String,
    },
    /// A locked skill is neither required nor a dependency.
    Unneeded { name: String },
}

impl fmt::Display for LockMismatch {
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
    /// Returns the differences between the lock and `savoir.toml`.
    pub fn lock_mismatches(&self) -> Vec<LockMismatch> {
        let mut stale: Vec<LockMismatch> = Vec::new();
        for (name, requirement) in &self.manifest.skills {
            stale.extend(self.check_requirement(name, requirement));
        }
        stale.extend(unmet_dependencies(&self.lock));
        let needed = self.needed_skills();
        let named: BTreeSet<String> = stale.iter().filter_map(actual_name).collect();
        let unneeded = self.lock.skills.keys();
        let unneeded = unneeded
            .filter(|name| !needed.contains(name.as_str()) && !named.contains(name.as_str()));
        stale.extend(unneeded.map(|name| LockMismatch::Unneeded { name: name.clone() }));
        stale
    }

    fn check_requirement(
        &self,
        name: &str,
        requirement: &SkillRequirement,
    ) -> Option<LockMismatch> {
        let (name, requirement) = (name.to_owned(), requirement.clone());
        let Some(locked) = self.lock.skills.get(&name) else {
            return Some(match self.locked_name(&requirement) {
                Some(own) => LockMismatch::Name { key: name, name: own },
                None => LockMismatch::Missing { name, requirement },
            });
        };
        if !matches_source(&requirement, &locked.source, &self.manifest.registries) {
            return Some(LockMismatch::Source { name, requirement, locked: locked.source.clone() });
        }
        match requirement {
            SkillRequirement::Version { range, .. } if !meets(&range, &locked.version) => {
                Some(LockMismatch::Range { name, range, locked: locked.version.clone() })
            }
            _ => None,
        }
    }

    /// Returns the name of a locked skill from the required source that `savoir.toml` does not
    /// name: the skill is probably locked under its own name.
    fn locked_name(&self, requirement: &SkillRequirement) -> Option<String> {
        let mut others =
            self.lock.skills.iter().filter(|(name, _)| !self.manifest.skills.contains_key(*name));
        let only = |source: &LockedSource| !matches!(source, LockedSource::Registry(_));
        let same = others.find(|(_, skill)| {
            only(&skill.source)
                && !has_many_skills(&skill.source)
                && matches_source(requirement, &skill.source, &self.manifest.registries)
        });
        same.map(|(name, _)| name.clone())
    }

    /// Rejects a skill that was fetched for a name in `savoir.toml` and has another name itself.
    pub(super) fn check_name(
        &self,
        name: &str,
        requirement: &SkillRequirement,
    ) -> Result<(), InstallFailure> {
        if self.manifest.skills.contains_key(name)
            || matches!(requirement, SkillRequirement::Version { .. })
        {
            return Ok(());
        }
        let missing = self
            .manifest
            .skills
            .iter()
            .find(|(key, other)| *other == requirement && !self.lock.skills.contains_key(*key));
        match missing {
            Some((key, _)) => {
                Err(InstallFailure::Renamed { key: key.clone(), name: name.to_owned() })
            }
            None => Ok(()),
        }
    }

    /// Returns the required skills and all their dependencies.
    fn needed_skills(&self) -> BTreeSet<&str> {
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

fn actual_name(stale: &LockMismatch) -> Option<String> {
    match stale {
        LockMismatch::Name { name, .. } => Some(name.clone()),
        _ => None,
    }
}

/// Whether a source contains many skills, so that several skills have the same address.
fn has_many_skills(source: &LockedSource) -> bool {
    match source {
        LockedSource::WellKnown(_) => true,
        LockedSource::Url(url) => url.matches(':').count() > 2,
        _ => false,
    }
}

fn unmet_dependencies(lock: &Lock) -> Vec<LockMismatch> {
    let versions: BTreeMap<String, Version> = lock.versions();
    let needs = lock
        .skills
        .iter()
        .flat_map(|(name, skill)| skill.dependencies.iter().map(move |need| (name.clone(), need)));
    let unmet = needs.filter(|(_, need)| {
        !versions.get(folder(&need.name)).is_some_and(|version| meets(&need.range, version))
    });
    unmet.map(|(name, need)| LockMismatch::Need { name, need: need.to_string() }).collect()
}

/// Returns the source in a lock for a skill that another tool fetched from a repository at an
/// unknown commit.
pub(super) fn adopted_git(url: &str, path: Option<&str>) -> String {
    let path = path.map(|path| format!("#{path}"));
    format!("git+{url}{}", path.unwrap_or_default())
}

/// Whether a locked version matches. A pre-release does, too, since the resolver chooses one only
/// if no other version is compatible.
fn meets(range: &VersionRange, version: &Version) -> bool {
    range.resolve(std::slice::from_ref(version)).is_some()
}

/// Whether a locked source matches a requirement.
fn matches_source(
    requirement: &SkillRequirement,
    source: &LockedSource,
    registries: &[Registry],
) -> bool {
    match (requirement, source) {
        (SkillRequirement::Version { registry, namespace, .. }, LockedSource::Registry(other)) => {
            let whose = other.split_once('#').and_then(|(_, name)| name.split_once('/'));
            let same = |one: &str| {
                without_prefix(other).trim_end_matches('/') == one.trim_end_matches('/')
            };
            let is_registry = registry.as_deref().is_none_or(|one| {
                let mut known = registries.iter().filter(|known| known.name == one);
                match known.next() {
                    Some(known) => same(&known.url),
                    // The name may be defined in the user's settings, which are not known here.
                    None => !one.contains("://") || same(one),
                }
            });
            is_registry && namespace.as_deref() == whose.map(|(namespace, _)| namespace)
        }
        (SkillRequirement::Path(one), LockedSource::Path(other)) => {
            let other = other.split('#').next().unwrap_or_default();
            Path::new(&normalize_path(&decode(other))).starts_with(normalize_path(one))
        }
        (SkillRequirement::Path(one), LockedSource::Adopted { path: other, .. }) => {
            normalize_path(one) == normalize_path(other)
        }
        (
            SkillRequirement::Git { url, path, .. },
            LockedSource::Adopted { from: Some(from), .. },
        ) => *from == adopted_git(url, path.as_deref()),
        (
            SkillRequirement::Git { url, at, path },
            LockedSource::Git { url: other, commit, path: inside },
        ) => {
            without_prefix(url) == without_prefix(other)
                && matches_revision(at, other, commit)
                && path.as_ref().is_none_or(|path| inside.as_ref() == Some(path))
        }
        (SkillRequirement::Url { integrity: Some(pinned), .. }, LockedSource::Url(other))
            if digest(other).is_some_and(|found| found.integrity() != *pinned) =>
        {
            false
        }
        (
            SkillRequirement::Url { url, .. },
            LockedSource::Url(other) | LockedSource::WellKnown(other),
        ) => {
            let address =
                |text: &str| Some(text.split('#').next()?.trim_end_matches('/').to_owned());
            address(url) == address(other)
        }
        _ => false,
    }
}

/// Returns the digest in a locked address.
fn digest(address: &str) -> Option<Digest> {
    let exact = address.split_once('#')?.1;
    let end = exact.match_indices(':').nth(1).map_or(exact.len(), |(end, _)| end);
    exact[..end].parse().ok()
}

/// Returns an address without query and fragment.
fn without_prefix(address: &str) -> &str {
    address.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/')
}

/// Normalizes a path: `s/../a/./x/` becomes `a/x`.
fn normalize_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let start = if path.starts_with('/') { "/" } else { "" };
    format!("{start}{}", parts.join("/"))
}

/// Whether a locked repository address matches the required revision.
fn matches_revision(at: &Revision, address: &str, commit: &str) -> bool {
    let query = address.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let named = |kind: &str, name: &str| {
        query.split_once('=').is_some_and(|(key, value)| key == kind && decode(value) == name)
    };
    match at {
        Revision::Default => query.is_empty(),
        Revision::Tag(name) => named("tag", name),
        Revision::Branch(name) => named("branch", name),
        Revision::Rev(name) => commit.starts_with(name.as_str()) || named("rev", name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;

    fn from(requirement: &str, source: &str) -> bool {
        let manifest = format!("[skills]\nx = {requirement}\n");
        let manifest = Manifest::parse("savoir.toml", &manifest).unwrap();
        matches_source(&manifest.skills["x"], &source.parse().unwrap(), &[])
    }

    #[test]
    fn equivalent_sources_match() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        for (requirement, source) in [
            ("{ path = \"s/x/\" }", "path+./s/x"),
            ("{ path = \"s/../s/x\" }", "path+./s/x"),
            ("{ path = \"s\" }", "path+./s/x"),
            ("{ path = \"./a#b/x\" }", "path+./a%23b/x"),
            ("{ path = \"../x.zip\" }", "path+../x.zip#inside/x"),
            ("{ git = \"https://h.example/o/r\" }", "git+https://h.example/o/r#COMMIT:skills/x"),
            (
                "{ git = \"https://h.example/o/r\", tag = \"v1\" }",
                "git+https://h.example/o/r?tag=v1#COMMIT",
            ),
            (
                "{ git = \"https://h.example/o/r\", rev = \"0123456\" }",
                "git+https://h.example/o/r?rev=COMMIT#COMMIT",
            ),
            ("{ url = \"https://h.example/\" }", "well-known+https://h.example#x"),
        ] {
            assert!(from(requirement, &source.replace("COMMIT", commit)), "{requirement} {source}");
        }
    }

    #[test]
    fn digest_of_url_must_match() {
        let digest = Digest::of(b"the archive");
        let source = format!("url+https://h.example/a.zip#{digest}");
        let requirement = |integrity: &str| {
            format!("{{ url = \"https://h.example/a.zip\", integrity = \"{integrity}\" }}")
        };
        assert!(from(&requirement(&digest.integrity()), &source));
        assert!(from(&requirement(&digest.integrity()), &format!("{source}:inside")));
        assert!(!from(&requirement(&Digest::of(b"another").integrity()), &source));
        assert!(!from(
            &requirement(&Digest::of(b"another").integrity()),
            &format!("{source}:inside")
        ));
    }

    #[test]
    fn other_source_is_a_mismatch() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        for (requirement, source) in [
            ("{ path = \"s\" }", "path+./sx"),
            ("{ path = \"../s\" }", "path+./s"),
            ("{ git = \"https://h.example/o/r\" }", "git+https://h.example/o/r?tag=v1#COMMIT"),
            (
                "{ git = \"https://h.example/o/r\", tag = \"v2\" }",
                "git+https://h.example/o/r?tag=v1#COMMIT",
            ),
            (
                "{ git = \"https://h.example/o/r\", branch = \"v1\" }",
                "git+https://h.example/o/r?tag=v1#COMMIT",
            ),
            (
                "{ git = \"https://h.example/o/r\", path = \"a\" }",
                "git+https://h.example/o/r#COMMIT:b",
            ),
            ("{ git = \"https://h.example/o/other\" }", "git+https://h.example/o/r#COMMIT"),
            ("{ url = \"https://h.example/a.zip\" }", "path+./a.zip"),
        ] {
            assert!(
                !from(requirement, &source.replace("COMMIT", commit)),
                "{requirement} {source}"
            );
        }
    }
}
