//! The state of one target folder: what was installed, what is there, what is to be written.

use semver::Version;

use super::{
    DeployedSkill, InstallFailure, Target, deploy_for_agent,
    folder_contents::{FolderContents, same},
    stored_skill::StoredSkill,
};
use crate::{Tree, lock::LockedSkill};

/// What lay in a folder when the skill was installed.
pub(super) enum InstalledBase {
    Known(Tree),
    /// The store has lost it. Where nothing had to be converted, its integrity still tells.
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

/// What lay in a folder when the skill was installed.
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

/// What is to lie in a folder.
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

/// What Savoir last put into a folder.
pub(super) struct LastInstalled {
    pub(super) base: InstalledBase,
    /// The version that it was; nothing if the store has lost it.
    pub(super) version: Option<Version>,
}

/// A skill whose folders are looked at.
#[derive(Clone, Copy)]
pub(super) struct SkillChange<'a> {
    pub(super) name: &'a str,
    pub(super) old: Option<&'a LockedSkill>,
    pub(super) new: Option<&'a LockedSkill>,
}

/// A folder in which a skill was, or is to be.
pub(super) struct FolderState<'a> {
    pub(super) skill_change: SkillChange<'a>,
    pub(super) target: Target,
    /// What lies there.
    pub(super) seen: FolderContents,
    /// What the lock said that lies there.
    pub(super) base: Option<InstalledBase>,
    /// What Savoir last put there, where that is something else than what the lock says.
    pub(super) last: Option<LastInstalled>,
    pub(super) put: Option<DeployedSkill>,
}

impl SkillChange<'_> {
    /// Whether two locks want the same in the same folders.
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

    /// Whether nobody changed anything since Savoir filled the folder.
    pub(super) fn is_as_filled(&self, there: &Tree) -> bool {
        let last = self.last.as_ref().map(|last| &last.base);
        self.base.iter().chain(last).any(|base| base.is(there))
    }

    /// What edits are compared with: what was last put there, since the lock may have come from
    /// elsewhere since.
    pub(super) fn merge_base(&self) -> Option<&InstalledBase> {
        self.last.as_ref().map(|last| &last.base).or(self.base.as_ref())
    }

    /// Whether the lock says the same as before.
    pub(super) fn is_unchanged(&self) -> bool {
        let SkillChange { old, new, .. } = self.skill_change;
        old.map(|old| &old.integrity) == new.map(|new| &new.integrity)
    }

    pub(super) fn is_resigned(&self) -> bool {
        let SkillChange { old, new, .. } = self.skill_change;
        old.map(|old| &old.signature) != new.map(|new| &new.signature)
    }
}
