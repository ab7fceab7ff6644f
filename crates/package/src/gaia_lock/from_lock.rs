//! Converts `savoir.lock` to the lock of GAIA.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use savoir_skill::permission::{Permission, Tier};

use super::{AGENT, GaiaLock, GaiaSignature, GaiaSkill, dependencies_hash};
use crate::{
    lock::{Lock, LockedSkill, LockedSource},
    manifest::{Manifest, SkillRequirement},
};

/// Data for the lock that comes from the files of a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The integrity of its tree as installed for GAIA.
    pub integrity: String,
    /// The Node packages that it requires.
    pub node: BTreeSet<String>,
    /// The Python packages that it requires.
    pub python: BTreeSet<String>,
    /// The archive that it was fetched as, if the registry's answer is known.
    pub archive: Option<Archive>,
}

/// An archive of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    pub filename: String,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: String,
}

/// The locks before and after a change.
#[derive(Clone, Copy, Debug)]
pub struct Locks<'a> {
    /// `savoir.toml` after the change.
    pub manifest: &'a Manifest,
    /// The lock before the change.
    pub was: &'a Lock,
    /// The lock after the change.
    pub is: &'a Lock,
}

/// Whether a skill is installed for GAIA.
pub fn is_for_gaia(skill: &LockedSkill) -> bool {
    skill.agents.iter().any(|agent| agent == AGENT)
}

/// Returns the lock of GAIA after a change. Entries of skills that Savoir installed follow its
/// lock; other entries and unknown keys stay. `files` returns the data from the files of a skill;
/// if the files are not available, this data stays unchanged.
///
/// Packages are hashed as the skill names them, because their versions are only pinned when it
/// first runs.
pub fn from_lock<E>(
    old: &GaiaLock,
    locks: &Locks<'_>,
    now: Timestamp,
    mut files: impl FnMut(&str, &LockedSkill) -> Result<Option<Files>, E>,
) -> Result<GaiaLock, E> {
    let mut lock = old.clone();
    for (name, _) in locks.was.skills.iter().filter(|(_, skill)| is_for_gaia(skill)) {
        if !locks.is.skills.get(name).is_some_and(is_for_gaia) {
            lock.skills.remove(name);
        }
    }
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    for (name, skill) in locks.is.skills.iter().filter(|(_, skill)| is_for_gaia(skill)) {
        let files = files(name, skill)?;
        let known = lock.skills.remove(name);
        let entry = NewEntry { name, skill, files, locks, now: &now };
        lock.skills.insert(name.clone(), entry.merge_into(known));
    }
    if lock.skills != old.skills {
        lock.generated_at = Some(now);
    }
    Ok(lock)
}

/// A skill to write into the lock.
struct NewEntry<'a> {
    name: &'a str,
    skill: &'a LockedSkill,
    files: Option<Files>,
    locks: &'a Locks<'a>,
    now: &'a str,
}

impl NewEntry<'_> {
    fn merge_into(self, known: Option<GaiaSkill>) -> GaiaSkill {
        let Self { skill, .. } = self;
        let known = known.unwrap_or_default();
        let version = skill.version.to_string();
        let integrity = match &self.files {
            Some(files) => Some(files.integrity.clone()),
            None => known.integrity.clone().or_else(|| Some(skill.integrity.clone())),
        };
        let same = known.version == version && known.integrity == integrity;
        // The fields that an installer recorded for another version are dropped; unknown keys are
        // kept.
        let known =
            if same { known } else { GaiaSkill { unknown: known.unknown, ..GaiaSkill::default() } };
        let hash = self.files.as_ref().map(|files| self.hash(files));
        let archive = self.files.as_ref().and_then(|files| files.archive.clone());
        let (filename, sha256) = match archive {
            Some(Archive { filename, sha256 }) => (Some(filename), Some(sha256)),
            None => (known.artifact_filename, known.artifact_sha256),
        };
        let mut entry = GaiaSkill {
            version,
            integrity,
            installed_at: known.installed_at.or_else(|| Some(self.now.to_owned())),
            dependencies_hash: hash.or(known.dependencies_hash),
            requested: self.requested_range(),
            source: Some(source_kind(&skill.source).to_owned()),
            registry: skill.source.published(self.name).map(|(address, _)| address.to_owned()),
            claimed_tier: skill.claimed,
            attested_tier: Some(skill.attested.unwrap_or(Tier::Experimental)),
            signature: Some(signature(skill, known.signature)),
            permissions: Some(sorted(&skill.permissions)),
            artifact_filename: filename,
            artifact_sha256: sha256,
            generated: known.generated,
            unknown: known.unknown,
            ..GaiaSkill::default()
        };
        entry.set_tier(skill.tier);
        entry
    }

    fn hash(&self, files: &Files) -> String {
        let versions = self.skill.dependencies.iter().filter_map(|need| {
            let found = self.locks.is.skills.get(&need.name)?;
            Some((need.name.clone(), found.version.to_string()))
        });
        let versions: BTreeMap<String, String> = versions.collect();
        dependencies_hash(&files.node, &files.python, &versions)
    }

    /// Returns the range that the user requested; `None` for dependencies.
    fn requested_range(&self) -> Option<String> {
        match self.locks.manifest.skills.get(self.name)? {
            SkillRequirement::Version { range, .. } if range.is_any() => Some("*".to_owned()),
            SkillRequirement::Version { range, .. } => Some(range.to_string().trim().to_owned()),
            SkillRequirement::Path(_)
            | SkillRequirement::Git { .. }
            | SkillRequirement::Url { .. } => None,
        }
    }
}

/// Sorts permissions as in `savoir.lock`, so that it does not matter whether they come from the
/// manifest or the lock.
fn sorted(permissions: &[Permission]) -> Vec<Permission> {
    let mut permissions = permissions.to_vec();
    permissions.sort_by_cached_key(ToString::to_string);
    permissions.dedup();
    permissions
}

fn source_kind(source: &LockedSource) -> &'static str {
    match source {
        LockedSource::Registry(_) => "registry",
        LockedSource::Git { .. } => "git",
        LockedSource::Path(_) | LockedSource::Adopted { .. } => "path",
        LockedSource::Url(_) => "url",
        LockedSource::WellKnown(_) => "well-known",
    }
}

/// Returns the signature entry. GAIA's key ids do not have the prefix with the kind of signature.
fn signature(skill: &LockedSkill, known: Option<GaiaSignature>) -> GaiaSignature {
    let key = skill.signature.as_deref();
    let role = match skill.attested {
        Some(Tier::Verified) => Some("amd"),
        Some(Tier::Community) => Some("publisher"),
        Some(Tier::Experimental) | None => None,
    };
    GaiaSignature {
        signed: key.is_some(),
        key_id: key.map(|key| key.strip_prefix("ed25519:").unwrap_or(key).to_owned()),
        publisher: skill.signer.clone(),
        role: role.map(str::to_owned),
        unknown: known.map(|known| known.unknown).unwrap_or_default(),
    }
}
