//! A folder in which a skill was, or is to be, and all that must be known to decide about it.

use semver::Version;

use super::{
    Deployed, InstallFailure, Target, deployed,
    folders::{Seen, same},
    kept::Kept,
};
use crate::{Tree, lock::LockedSkill};

/// What lay in a folder when the skill was installed.
pub(super) enum Base {
    Known(Tree),
    /// The store has lost it. Where nothing had to be converted, its integrity still tells.
    Lost(String),
}

impl Base {
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
    kept: Option<&Kept>,
    target: &Target,
) -> Result<Base, InstallFailure> {
    Ok(match kept {
        Some(kept) => Base::Known(deployed(&kept.tree, &kept.summary, target.agent)?.tree),
        None => Base::Lost(old.integrity.clone()),
    })
}

/// What is to lie in a folder.
pub(super) fn put(
    name: &str,
    new: &LockedSkill,
    kept: Option<&Kept>,
    target: &Target,
) -> Result<Deployed, InstallFailure> {
    let lost = || InstallFailure::NotKept { name: name.to_owned(), version: new.version.clone() };
    let kept = kept.ok_or_else(lost)?;
    deployed(&kept.tree, &kept.summary, target.agent)
}

/// What Savoir last put into a folder.
pub(super) struct Last {
    pub(super) base: Base,
    /// The version that it was; nothing if the store has lost it.
    pub(super) version: Option<Version>,
}

/// A skill whose folders are looked at.
#[derive(Clone, Copy)]
pub(super) struct Concern<'a> {
    pub(super) name: &'a str,
    pub(super) old: Option<&'a LockedSkill>,
    pub(super) new: Option<&'a LockedSkill>,
}

/// A folder in which a skill was, or is to be.
pub(super) struct Spot<'a> {
    pub(super) concern: Concern<'a>,
    pub(super) target: Target,
    /// What lies there.
    pub(super) seen: Seen,
    /// What the lock said that lies there.
    pub(super) base: Option<Base>,
    /// What Savoir last put there, where that is something else than what the lock says.
    pub(super) last: Option<Last>,
    pub(super) put: Option<Deployed>,
}

impl Concern<'_> {
    /// Whether two locks want the same in the same folders.
    pub(super) fn is_same(&self) -> bool {
        self.old.zip(self.new).is_some_and(|(old, new)| {
            (&old.integrity, &old.signature, &old.agents)
                == (&new.integrity, &new.signature, &new.agents)
        })
    }
}

impl<'a> Spot<'a> {
    pub(super) fn look(
        concern: Concern<'a>,
        target: &Target,
        (base, last): (Option<Base>, Option<Last>),
        put: Option<Deployed>,
    ) -> Result<Self, InstallFailure> {
        let seen = Seen::at(&target.folder)?;
        Ok(Self { concern, target: target.clone(), seen, base, last, put })
    }

    /// Whether nobody changed anything since Savoir filled the folder.
    pub(super) fn is_as_filled(&self, there: &Tree) -> bool {
        let last = self.last.as_ref().map(|last| &last.base);
        self.base.iter().chain(last).any(|base| base.is(there))
    }

    /// What edits are compared with: what was last put there, since the lock may have come from
    /// elsewhere since.
    pub(super) fn merge_base(&self) -> Option<&Base> {
        self.last.as_ref().map(|last| &last.base).or(self.base.as_ref())
    }

    /// Whether the lock says the same as before.
    pub(super) fn is_unchanged(&self) -> bool {
        let Concern { old, new, .. } = self.concern;
        old.map(|old| &old.integrity) == new.map(|new| &new.integrity)
    }

    pub(super) fn is_resigned(&self) -> bool {
        let Concern { old, new, .. } = self.concern;
        old.map(|old| &old.signature) != new.map(|new| &new.signature)
    }
}
