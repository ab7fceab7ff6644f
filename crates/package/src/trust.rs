//! Manages signing keys, verifies signatures, and computes the trust tier of a skill.
//!
//! - [`KeyStore`] stores the user's signing keys, [`TrustStore`] the keys that the user trusts.
//! - [`sign`] creates the `signature.json` of a skill; [`verify`] checks every signature in a skill
//!   and returns what they attest: an [`Attestation`] with its [`Tier`].
//! - [`ssh`] and [`oms`] create and check signatures of other formats; OpenPGP signatures are only
//!   checked.
//! - [`sign_statement`] and [`check_statement`] sign and check other statements about a skill.
//! - [`TrustedSources`] are the sources from which the user installs skills without a question.
//! - [`tier()`] computes the effective tier: the same when a skill is installed, verified and run.
//!
//! A tier is computed, never read from the skill: the tier in a skill's own files is a claim, and
//! [`tier()`] never returns more than the signatures attest. A missing signature is not an error.
//! [`verify`] reports a wrong signature as an error, because it means that the skill was changed
//! after signing.

mod dsse;
mod json;
mod keys;
mod openpgp;
mod public_key;
mod safe_file;
mod signature;
mod sources;
mod statement;
mod store;
mod tier;

#[cfg(test)]
mod testing;

pub mod evaluation;
pub mod oms;
pub mod possession;
pub mod ssh;

pub use keys::{KeyError, KeyStore, PublicKeyFile, SigningKey};
pub use openpgp::OpenPgpError;
pub use public_key::{KeyKind, PublicKey, PublicKeyError};
pub use savoir_skill::permission::{Decision, Tier, decision, effective};
pub use signature::{
    Attestation, Difference, FurtherSignature, SignatureError, SignatureKind, SignatureRecord,
    Signer, UncheckedSignature, attach, attest, attest_for_install, countersign, differences,
    file_name, is_signed, records, sign, signed_bytes, unsigned, verify,
};
pub use sources::{RuleError, SourceRule, TrustedSources};
pub use statement::{
    SignedStatement, StatementError, StatementKey, check_statement, sign_statement,
};
pub use store::{KeyRevocation, Role, TrustStore, TrustStoreError, TrustedKey};
pub use tier::tier;
