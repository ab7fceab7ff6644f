//! Loads skills from the store.

use super::{CheckedSkill, InstallFailure};
use crate::{SkillSummary, Store, Tree};

/// Identifies a stored skill. The name is part of it, because a text without frontmatter is named
/// by its source, so that the same files can be two skills.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StoredSkillKey {
    pub(super) name: String,
    pub(super) integrity: String,
}

impl StoredSkillKey {
    pub(super) fn new(name: &str, integrity: &str) -> Self {
        Self { name: name.to_owned(), integrity: integrity.to_owned() }
    }
}

/// A stored skill and its summary.
pub(super) struct StoredSkill {
    pub(super) tree: Tree,
    pub(super) summary: SkillSummary,
    signed_by: SignedBy,
}

/// Whether a trusted key signed a skill, as far as that was checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SignedBy {
    Trusted,
    Nobody,
}

impl StoredSkill {
    pub(super) fn read(
        store: &Store,
        name: &str,
        integrity: &str,
    ) -> Result<Option<Self>, InstallFailure> {
        let tree = store.get(integrity)?;
        tree.map(|tree| Self::new(name, tree)).transpose()
    }

    pub(super) fn new(name: &str, tree: Tree) -> Result<Self, InstallFailure> {
        let summary = SkillSummary::read(&tree, name).map_err(InstallFailure::summary(name))?;
        Ok(Self { tree, summary, signed_by: SignedBy::Nobody })
    }

    pub(super) fn of(ready: &CheckedSkill) -> Self {
        let trusted = ready.attestation.signatures.iter().any(|signer| signer.role.is_some());
        let signed_by = if trusted { SignedBy::Trusted } else { SignedBy::Nobody };
        Self { tree: ready.tree.clone(), summary: ready.summary.clone(), signed_by }
    }

    pub(super) fn is_signed_by_trusted(&self) -> bool {
        self.signed_by == SignedBy::Trusted
    }
}
