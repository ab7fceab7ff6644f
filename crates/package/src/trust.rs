//! Keys, signatures and trust tiers.
//!
//! - [`KeyStore`] holds the keys that sign here, [`TrustStore`] the keys that are believed here.
//! - [`sign`] makes the `signature.json` of a skill; [`verify`] reads every signature that a skill
//!   brings and says what they attest: an [`Attestation`] with its [`Tier`].
//! - [`ssh`] and [`oms`] add the signatures of other programs to it; those of OpenPGP are read.
//!
//! - [`TrustedSources`] are the places from which the user takes skills without a question.
//! - [`tier()`] is the tier that counts: the same when a skill is installed, verified and run.
//!
//! A tier is computed, never read: what a skill says of itself is a claim, and [`tier()`] never
//! gives it more than its signatures attest. No signature is no error. A wrong one always is: it
//! says that somebody changed the skill.

mod file;
mod json;
mod keys;
mod openpgp;
mod public;
mod signature;
mod sources;
mod store;
mod tier;

#[cfg(test)]
mod testing;

pub mod oms;
pub mod possession;
pub mod ssh;

pub use keys::{KeyError, KeyStore, PublicKeyFile, SigningKey};
pub use openpgp::OpenPgpError;
pub use public::{KeyKind, PublicKey, PublicKeyError};
pub use savoir_skill::permission::{Decision, Tier, decision, effective};
pub use signature::{
    Attestation, Difference, FurtherSignature, SignatureError, SignatureKind, SignatureRecord,
    Signer, UncheckedSignature, attach, attest, countersign, differences, file_name, is_signed,
    records, sign, signed_bytes, unsigned, verify,
};
pub use sources::{RuleError, SourceRule, TrustedSources};
pub use store::{KeyRevocation, Role, TrustStore, TrustStoreError, TrustedKey};
pub use tier::tier;
