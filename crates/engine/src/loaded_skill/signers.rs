//! Describes the signers of a skill, and the files that their signatures cover.

use savoir_package::trust::{self, Attestation, Signer};
use savoir_skill::{Skill, permission::Tier};

/// The signers of a skill, and the files that their signatures cover.
#[derive(Clone, Debug, Default)]
pub struct Signers {
    /// The result of verifying the signatures.
    pub attestation: Attestation,
    /// Files that a run can see and no signature covers, such as the packages in `node_modules`.
    pub uncovered: Vec<String>,
}

impl Signers {
    /// The tier of the skill. A skill with unsigned files has the lowest tier, because anyone could
    /// have added a file that a run would use.
    pub(super) fn tier(&self, skill: &Skill) -> Tier {
        if !self.uncovered.is_empty() {
            return Tier::Experimental;
        }
        trust::tier(skill.dialect, skill.policy.tier, self.attestation.tier)
    }

    /// A phrase that names the signer; none if the skill is unsigned.
    pub fn signed(&self) -> Option<String> {
        let Attestation { signed, unchecked, .. } = &self.attestation;
        match (signed, unchecked.first()) {
            (Some(Signer { key_id, publisher, role: Some(role), .. }), _) => {
                Some(format!("by {publisher} ({}), key {key_id}", role.as_str()))
            }
            // The name that an untrusted key claims is not repeated.
            (Some(Signer { key_id, .. }), _) => {
                Some(format!("by the key {key_id}, which is not trusted for it here"))
            }
            (None, Some(_)) => Some("by a key that is not known here".to_owned()),
            (None, None) => None,
        }
    }
}
