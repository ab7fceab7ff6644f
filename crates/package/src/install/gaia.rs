//! Writes GAIA's `skill-lock.json` for skills installed for GAIA.
//!
//! A skill that is put into the agent `gaia` is written into `skill-lock.json`, too: what is not in
//! there is not installed for GAIA. That agent is the only switch. A setting beside it could only
//! contradict it: the file belongs to the folder of that agent, and says something about skills in
//! this folder alone.
//!
//! The file is not ours alone: GAIA writes it whenever it likes. So it is never replaced by a text
//! that was made from an older one, but gets the change that such a text was made for, entry by
//! entry. That holds for taking a change back as well.

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
    registry::kept_line,
    text_file,
};

/// `skill-lock.json`, as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GaiaLockFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its text, if it is there.
    pub text: Option<String>,
}

impl GaiaLockFile {
    fn parse(&self) -> Result<GaiaLock, InstallFailure> {
        let Some(text) = &self.text else { return Ok(GaiaLock::default()) };
        Ok(GaiaLock::parse(&self.path.display().to_string(), text)?)
    }

    /// The same file with another content; none, if that says nothing.
    fn with(&self, lock: &GaiaLock) -> Self {
        let text = (!lock.is_bare()).then(|| lock.to_text());
        Self { path: self.path.clone(), text }
    }

    fn now(&self) -> Result<Self, InstallFailure> {
        let text = text_file::read(&self.path, MAX_LOCK_BYTES)?;
        Ok(Self { path: self.path.clone(), text })
    }
}

/// A change of what is installed.
pub(super) struct LockChange<'a> {
    /// `savoir.toml` as it is to be.
    pub(super) manifest: Option<&'a str>,
    pub(super) was: &'a Lock,
    pub(super) is: &'a Lock,
}

impl SkillSet {
    /// The lock of GAIA before and after a change, if it concerns GAIA.
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
        // However somebody else wrote it: its content is the same.
        let after = if new == old { before.clone() } else { before.with(&new) };
        Ok(Some((before, after)))
    }

    /// The archive that a skill came in, as far as it is kept what its registry said.
    fn archive(&self, name: &str, skill: &LockedSkill) -> Option<Archive> {
        let line = kept_line(self.learnt.as_deref()?, name, skill)?;
        Some(Archive { filename: line.filename, sha256: line.sha256 })
    }
}

/// What the lock of GAIA says about the files of a skill.
pub(super) fn files(tree: &Tree, summary: &SkillSummary) -> Result<Files, InstallFailure> {
    let needs = &summary.reading.skill.requirements;
    Ok(Files {
        integrity: deploy_for_agent(tree, summary, Agent::by_id(AGENT)?)?.tree.integrity(),
        node: needs.node_packages.iter().cloned().collect(),
        python: needs.python_packages.iter().cloned().collect(),
        archive: None,
    })
}

/// Makes the change that leads from one text to the other.
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

/// Takes back what a program that died may have written. Should GAIA's file not be readable any
/// more, that is no reason to leave everything else half done.
pub(super) fn roll_back(before: &ProjectFiles, after: &ProjectFiles) -> Result<(), InstallFailure> {
    match write(after, before) {
        Err(InstallFailure::Gaia(error)) => {
            tracing::warn!("{error}");
            Ok(())
        }
        other => other,
    }
}
