//! Derives the requirements from a lock without `savoir.toml`, such that every locked skill stays.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use savoir_skill::version::VersionRange;
use semver::Version;

use super::{InstallFailure, SkillSet, State, available::folder, requirement_for};
use crate::{
    lock::{Lock, LockedSkill, LockedSource},
    manifest::{self, Manifest, SkillRequirement},
    source::PinnedSource,
    trust::Tier,
};

/// Returns the manifest that `savoir.toml` in the folder `root` would need for a lock.
pub(super) fn manifest_of(lock: &Lock, root: &Path) -> Manifest {
    let mut manifest = Manifest::default();
    let skills = roots(lock).into_iter().filter_map(|name| lock.skills.get_key_value(name));
    manifest.skills.extend(
        skills.map(|(name, skill)| (name.clone(), requirement_of_locked(name, skill, root))),
    );
    manifest
}

/// Returns the skills that no other skill needs, and experimental ones, which only a user can have
/// chosen. Of skills that only need each other, returns the first.
fn roots(lock: &Lock) -> BTreeSet<&str> {
    let by_others = lock.skills.iter().flat_map(|(name, skill)| {
        let is_other = move |need: &&str| need != name;
        dependency_names(skill).filter(is_other)
    });
    let needed: BTreeSet<&str> = by_others.collect();
    let chosen = lock.skills.iter().filter(|(name, skill)| {
        skill.tier == Tier::Experimental || !needed.contains(name.as_str())
    });
    let mut roots: BTreeSet<&str> = chosen.map(|(name, _)| name.as_str()).collect();
    let mut reached = BTreeSet::new();
    for name in &roots {
        add_reachable(lock, name, &mut reached);
    }
    for name in lock.skills.keys() {
        if !reached.contains(name.as_str()) {
            roots.insert(name);
            add_reachable(lock, name, &mut reached);
        }
    }
    roots
}

fn dependency_names(skill: &LockedSkill) -> impl Iterator<Item = &str> {
    skill.dependencies.iter().map(|need| folder(&need.name))
}

/// Adds a skill and all its dependencies to `reached`.
fn add_reachable<'a>(lock: &'a Lock, name: &'a str, reached: &mut BTreeSet<&'a str>) {
    let mut next = vec![name];
    while let Some(name) = next.pop() {
        if reached.insert(name)
            && let Some(skill) = lock.skills.get(name)
        {
            next.extend(dependency_names(skill));
        }
    }
}

fn requirement_of_locked(name: &str, skill: &LockedSkill, root: &Path) -> SkillRequirement {
    match &skill.source {
        // No registry is named here: the registry in the lock applies to this skill only.
        LockedSource::Registry(_) => SkillRequirement::Version {
            range: range_that_allows(&skill.version),
            registry: None,
            namespace: skill.source.published(name).and_then(|(_, whole)| {
                whole.split_once('/').map(|(namespace, _)| namespace.to_owned())
            }),
        },
        LockedSource::Adopted { path, .. } => SkillRequirement::Path(path.clone()),
        source => match PinnedSource::parse(&source.to_string(), root) {
            Ok(place) => requirement_for(&place, root),
            // Fetching the skill reports the error.
            Err(_) => SkillRequirement::Url { url: source.to_string(), integrity: None },
        },
    }
}

/// Returns the range of all versions. If a pre-release is locked, returns that version and later
/// ones, because a pre-release is only chosen if a range names one.
fn range_that_allows(version: &Version) -> VersionRange {
    let named = (!version.pre.is_empty()).then(|| VersionRange::parse(&format!(">={version}")));
    named.and_then(Result::ok).unwrap_or_else(VersionRange::any)
}

impl SkillSet {
    /// Returns the text of a new `savoir.toml` with these skills, and with the requirements derived
    /// from the lock.
    pub(super) fn first_manifest(
        &self,
        state: &State,
        asked: &BTreeMap<String, SkillRequirement>,
    ) -> Result<String, InstallFailure> {
        let file = self.manifest_path().display().to_string();
        let mut skills = state.manifest.skills.clone();
        for (name, wanted) in &mut skills {
            // Names the registry, so that a user who has this file without the lock does not get a
            // skill of the same name from another registry.
            let locked = state.lock.skills.get(name);
            if let (SkillRequirement::Version { registry, .. }, Some(locked)) = (wanted, locked) {
                *registry = locked.source.published(name).map(|(address, _)| address.to_owned());
            }
        }
        skills.extend(asked.clone());
        let skills = skills.iter().map(|(name, wanted)| (name.as_str(), wanted));
        Ok(manifest::add_skills(&file, "", skills)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(skills: &str) -> Lock {
        Lock::parse("savoir.lock", &format!("version = 1\norder = []\n{skills}")).unwrap()
    }

    fn skill(name: &str, version: &str, source: &str, more: &str) -> String {
        format!(
            "\n[[skill]]\nname = \"{name}\"\nversion = \"{version}\"\nsource = \"{source}\"\n\
             integrity = \"sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n{more}\n\
             agents = [\"codex\"]\n"
        )
    }

    #[test]
    fn derived_manifest_requires_every_locked_skill() {
        let community = |needs: &str| format!("tier = \"community\"\ndependencies = [{needs}]");
        let url = "registry+https://x.example";
        let all = [
            skill("top", "1.0.0", &format!("{url}#acme/top"), &community("\"base\", \"own\"")),
            skill("base", "1.0.0", url, &community("")),
            skill("own", "1.0.0", "path+./own", "tier = \"experimental\""),
            skill("ring", "1.0.0", url, &community("\"round\"")),
            skill("round", "1.0.0", url, &community("\"ring\"")),
            skill("early", "2.0.0-rc.1", url, &community("")),
            skill("found", "1.0.0", "adopted+.claude/skills/found", "tier = \"experimental\""),
        ];
        let manifest = manifest_of(&lock(&all.concat()), Path::new("/nowhere"));
        let names: Vec<&str> = manifest.skills.keys().map(String::as_str).collect();
        assert_eq!(names, ["early", "found", "own", "ring", "top"]);
        let of = |name: &str| match &manifest.skills[name] {
            SkillRequirement::Version { range, registry: None, namespace } => {
                format!("{range} of {}", namespace.as_deref().unwrap_or("nobody"))
            }
            SkillRequirement::Path(path) => path.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(of("top"), "* of acme");
        assert_eq!(of("early"), ">=2.0.0-rc.1 of nobody");
        assert_eq!((of("own"), of("found")), ("./own".into(), ".claude/skills/found".into()));
    }
}
