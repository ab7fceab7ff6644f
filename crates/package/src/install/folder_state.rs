//! Describes one target folder: its installed, current and new content.

use semver::Version;

use super::{
    DeployedSkill, InstallFailure, Target, deploy_for_agent,
    folder_contents::{FolderContents, same},
    stored_skill::StoredSkill,
};
use crate::{Tree, lock::LockedSkill};

/// The content of a folder when the skill was installed.
pub(super) enum InstalledBase {
    Known(Tree),
    /// The store no longer has the files. If nothing was converted, the integrity is still
    /// comparable.
    Lost(String),
}

impl InstalledBase {
    pub(super) fn is(&self, tree: &Tree) -> bool {
        match self {
            Self::Known(base) => same(base, tree),
            Self::Lost(integrity) => tree.integrity() == *integrity,
        }
    }
}

/// Returns the content that the old lock entry put into a folder.
pub(super) fn base(
    old: &LockedSkill,
    kept: Option<&StoredSkill>,
    target: &Target,
) -> Result<InstalledBase, InstallFailure> {
    Ok(match kept {
        Some(kept) => {
            InstalledBase::Known(deploy_for_agent(&kept.tree, &kept.summary, target.agent)?.tree)
        }
        None => InstalledBase::Lost(old.integrity.clone()),
    })
}

/// Returns the content that the new lock entry puts into a folder.
pub(super) fn put(
    name: &str,
    new: &LockedSkill,
    kept: Option<&StoredSkill>,
    target: &Target,
) -> Result<DeployedSkill, InstallFailure> {
    let lost = || InstallFailure::NotKept { name: name.to_owned(), version: new.version.clone() };
    let kept = kept.ok_or_else(lost)?;
    deploy_for_agent(&kept.tree, &kept.summary, target.agent)
}

/// The content that Savoir last wrote to a folder.
pub(super) struct LastInstalled {
    pub(super) base: InstalledBase,
    /// The version; `None` if the store no longer has it.
    pub(super) version: Option<Version>,
}

/// A skill with its old and its new lock entry.
#[derive(Clone, Copy)]
pub(super) struct SkillChange<'a> {
    pub(super) name: &'a str,
    pub(super) old: Option<&'a LockedSkill>,
    pub(super) new: Option<&'a LockedSkill>,
}

/// The state of a folder that has a skill, or is to have one.
pub(super) struct FolderState<'a> {
    pub(super) skill_change: SkillChange<'a>,
    pub(super) target: Target,
    /// The current content.
    pub(super) seen: FolderContents,
    /// The content by the old lock.
    pub(super) base: Option<InstalledBase>,
    /// The content that Savoir last wrote, if it differs from the old lock.
    pub(super) last: Option<LastInstalled>,
    pub(super) put: Option<DeployedSkill>,
}

impl SkillChange<'_> {
    /// Whether both locks have the same content in the same folders.
    pub(super) fn is_same(&self) -> bool {
        self.old.zip(self.new).is_some_and(|(old, new)| {
            (&old.integrity, &old.signature, &old.agents)
                == (&new.integrity, &new.signature, &new.agents)
        })
    }
}

impl<'a> FolderState<'a> {
    pub(super) fn look(
        skill_change: SkillChange<'a>,
        target: &Target,
        (base, last): (Option<InstalledBase>, Option<LastInstalled>),
        put: Option<DeployedSkill>,
    ) -> Result<Self, InstallFailure> {
        let seen = FolderContents::at(&target.folder)?;
        Ok(Self { skill_change, target: target.clone(), seen, base, last, put })
    }

    /// Whether the folder is unchanged since Savoir wrote it.
    pub(super) fn is_as_filled(&self, there: &Tree) -> bool {
        let last = self.last.as_ref().map(|last| &last.base);
        self.base.iter().chain(last).any(|base| base.is(there))
    }

    /// Returns the content to compare edits with: the one that Savoir last wrote, since the lock
    /// may have been changed elsewhere.
    pub(super) fn merge_base(&self) -> Option<&InstalledBase> {
        self.last.as_ref().map(|last| &last.base).or(self.base.as_ref())
    }

    /// Whether the integrity in both locks is the same.
    pub(super) fn is_unchanged(&self) -> bool {
        let SkillChange { old, new, .. } = self.skill_change;
        old.map(|old| &old.integrity) == new.map(|new| &new.integrity)
    }

    pub(super) fn is_resigned(&self) -> bool {
        let SkillChange { old, new, .. } = self.skill_change;
        old.map(|old| &old.signature) != new.map(|new| &new.signature)
    }
}
