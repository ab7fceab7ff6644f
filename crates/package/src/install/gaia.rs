//! Writes GAIA's `skill-lock.json` for skills installed for GAIA.
//!
//! GAIA only sees skills that are listed in `skill-lock.json`, so a skill that is installed for the
//! agent `gaia` is added to that file. There is no separate setting for it, because it could only
//! contradict the list of agents: the file belongs to the folder of that agent, and only lists
//! skills in this folder.
//!
//! GAIA may write the file at any time. So Savoir never replaces it by a text that was computed
//! from an older version, but applies the change entry by entry to the current content. Undo does
//! the same.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{InstallFailure, ProjectFiles, SkillSet, apply::write_file, deploy_for_agent};
use crate::{
    Agent, SkillSummary, Tree,
    gaia_lock::{self, AGENT, Archive, FILE, Files, GaiaLock, is_for_gaia},
    limits::MAX_LOCK_BYTES,
    lock::{Lock, LockedSkill},
    manifest::Manifest,
    registry::cached_index_line,
    text_file,
};

/// The path and the text of `skill-lock.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GaiaLockFile {
    pub path: PathBuf,
    /// The text, if the file exists.
    pub text: Option<String>,
}

impl GaiaLockFile {
    fn parse(&self) -> Result<GaiaLock, InstallFailure> {
        let Some(text) = &self.text else { return Ok(GaiaLock::default()) };
        Ok(GaiaLock::parse(&self.path.display().to_string(), text)?)
    }

    /// Returns the file with other content; without text, if the lock is empty.
    fn with(&self, lock: &GaiaLock) -> Self {
        let text = (!lock.is_bare()).then(|| lock.to_text());
        Self { path: self.path.clone(), text }
    }

    fn now(&self) -> Result<Self, InstallFailure> {
        let text = text_file::read(&self.path, MAX_LOCK_BYTES)?;
        Ok(Self { path: self.path.clone(), text })
    }
}

pub(super) struct LockChange<'a> {
    /// The new text of `savoir.toml`.
    pub(super) manifest: Option<&'a str>,
    pub(super) was: &'a Lock,
    pub(super) is: &'a Lock,
}

impl SkillSet {
    /// Returns the lock of GAIA before and after a change, if the change concerns GAIA.
    pub(super) fn gaia_lock(
        &self,
        locks: &LockChange<'_>,
        mut files: impl FnMut(&str, &LockedSkill) -> Result<Option<Files>, InstallFailure>,
    ) -> Result<Option<(GaiaLockFile, GaiaLockFile)>, InstallFailure> {
        let LockChange { manifest, was, is } = *locks;
        if !was.skills.values().chain(is.skills.values()).any(is_for_gaia) {
            return Ok(None);
        }
        let path = self.agent_folder(Agent::by_id(AGENT)?)?.join(FILE);
        let before = GaiaLockFile { path, text: None }.now()?;
        let old = before.parse()?;
        let file = self.manifest_path().display().to_string();
        let manifest = Manifest::parse(&file, manifest.unwrap_or_default())?;
        let locks = gaia_lock::Locks { manifest: &manifest, was, is };
        let all = |name: &str, skill: &LockedSkill| {
            let archive = self.archive(name, skill);
            Ok::<_, InstallFailure>(files(name, skill)?.map(|files| Files { archive, ..files }))
        };
        let new = gaia_lock::from_lock(&old, &locks, Timestamp::now(), all)?;
        // If the content is the same, do not rewrite a file that GAIA formatted differently.
        let after = if new == old { before.clone() } else { before.with(&new) };
        Ok(Some((before, after)))
    }

    /// Returns the archive that a skill was fetched from, if the registry's answer is in the cache.
    fn archive(&self, name: &str, skill: &LockedSkill) -> Option<Archive> {
        let line = cached_index_line(self.learnt.as_deref()?, name, skill)?;
        Some(Archive { filename: line.filename, sha256: line.sha256 })
    }
}

/// Returns the data about a skill's files for the lock of GAIA.
pub(super) fn files(tree: &Tree, summary: &SkillSummary) -> Result<Files, InstallFailure> {
    let needs = &summary.reading.skill.requirements;
    Ok(Files {
        integrity: deploy_for_agent(tree, summary, Agent::by_id(AGENT)?)?.tree.integrity(),
        node: needs.node_packages.iter().cloned().collect(),
        python: needs.python_packages.iter().cloned().collect(),
        archive: None,
    })
}

/// Applies the difference between two texts to the current file.
pub(super) fn write(from: &ProjectFiles, to: &ProjectFiles) -> Result<(), InstallFailure> {
    let (Some(from), Some(to)) = (&from.gaia, &to.gaia) else { return Ok(()) };
    if from == to {
        return Ok(());
    }
    let now = to.now()?;
    let then = if now == *from || now == *to {
        to.clone()
    } else {
        let mut lock = now.parse()?;
        lock.carry(&from.parse()?, &to.parse()?);
        now.with(&lock)
    };
    now.path.parent().into_iter().for_each(text_file::sweep);
    write_file(&now.path, now.text.as_ref(), then.text.as_ref())
}

/// Undoes the change of a crashed program. If GAIA's file is no longer readable, only warns, so
/// that the rest of the rollback still happens.
pub(super) fn roll_back(before: &ProjectFiles, after: &ProjectFiles) -> Result<(), InstallFailure> {
    match write(after, before) {
        Err(InstallFailure::Gaia(error)) => {
            tracing::warn!("{error}");
            Ok(())
        }
        other => other,
    }
}
