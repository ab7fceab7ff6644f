//! Signers of a skill, and the files that their signatures cover.

use savoir_package::trust::{self, Attestation, Signer};
use savoir_skill::{Skill, permission::Tier};

/// Who vouches for a skill, and for what of it.
#[derive(Clone, Debug, Default)]
pub struct Signers {
    /// What its signatures attest.
    pub attestation: Attestation,
    /// Files that a run can see and no signature covers, such as the packages in `node_modules`.
    pub uncovered: Vec<String>,
}

impl Signers {
    /// How far the skill is trusted. Nobody vouches for a skill into which anybody could put a file
    /// that a run would take for one of its own.
    pub(super) fn tier(&self, skill: &Skill) -> Tier {
        if !self.uncovered.is_empty() {
            return Tier::Experimental;
        }
        trust::tier(skill.dialect, skill.policy.tier, self.attestation.tier)
    }

    /// Who signed it, in words; nothing if nobody did.
    pub fn signed(&self) -> Option<String> {
        let Attestation { signed, unchecked, .. } = &self.attestation;
        match (signed, unchecked.first()) {
            (Some(Signer { key_id, publisher, role: Some(role), .. }), _) => {
                Some(format!("by {publisher} ({}), key {key_id}", role.as_str()))
            }
            // What a stranger says of itself is not repeated here.
            (Some(Signer { key_id, .. }), _) => {
                Some(format!("by the key {key_id}, which is not trusted for it here"))
            }
            (None, Some(_)) => Some("by a key that is not known here".to_owned()),
            (None, None) => None,
        }
    }
}
