//! Verifies signed evaluations before they are stored, and lists them.

use savoir_package::{
    registry::wire::{Attestations, NewAttestation, PublishedAttestation},
    trust::{
        PublicKey, Role, SignatureKind, TrustStore, TrustedKey,
        evaluation::{self, Evaluation, EvaluationOutcome, SignedEvaluation},
    },
};
use savoir_store::{
    StoreError, Timestamp,
    registry::{self, Actor, PackageVersion, Registry, RegistryError, StoredAttestation},
};

/// Why a signed evaluation is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum AttestationError {
    /// The public key cannot be parsed.
    #[error("the public key cannot be used: {0}")]
    Key(String),
    /// The statement cannot be read, or its signature is wrong.
    #[error("this attestation cannot be accepted: {0}")]
    Broken(String),
    /// The signature was not checked, because the key is missing.
    #[error("the key {0} is needed to check the signature; send it as `public_key`")]
    KeyMissing(String),
    /// It is about other files.
    #[error("it is about other files than those of {0}; evaluate what was published")]
    OtherFiles(String),
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

impl AttestationError {
    /// A stable error code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Key(_) => "invalid_key",
            Self::Broken(_) | Self::KeyMissing(_) => "invalid_attestation",
            Self::OtherFiles(_) => "other_files",
            Self::Registry(error) => error.code(),
        }
    }
}

/// Verifies a signed evaluation of a published version and stores it.
pub async fn add_attestation(
    registry: Registry<'_>,
    actor: &Actor,
    version: &PackageVersion,
    new: &NewAttestation,
) -> Result<PublishedAttestation, AttestationError> {
    let signed = verify(version, new)?;
    // Its signature contains the key.
    let has_key = signed.signed.kind == SignatureKind::SshSig;
    let finished_at = Timestamp::parse(&signed.evaluation.finished)
        .ok_or_else(|| AttestationError::Broken("`finished` is not a time".to_owned()))?;
    let stored = registry::NewAttestation {
        digest: signed.id(),
        finished_at,
        key_id: signed.signed.key_id.clone(),
        public_key: new.public_key.clone().filter(|_| !has_key),
        statement: new.statement.to_string(),
    };
    let (package, number) = (&version.package, &version.version);
    let stored = registry.add_attestation(actor, package, number, &stored).await?;
    Ok(published(stored, signed.evaluation))
}

/// Maximum size of the evaluations in one answer as JSON, in bytes. Clients read 4 MiB.
const MAX_LISTED_BYTES: usize = 2 * 1024 * 1024;

/// Returns the newest signed evaluation of each key for a version: first those of the given keys,
/// then those added last.
pub async fn attestations(
    registry: Registry<'_>,
    version: &PackageVersion,
    keys: &[&str],
) -> Result<Attestations, StoreError> {
    let stored = registry.attestations(&version.package, &version.version, keys).await?;
    let unchecked = TrustStore::default();
    let read = |one: StoredAttestation| {
        let outcome = evaluation::check(one.statement.as_bytes(), &version.integrity, &unchecked);
        match outcome {
            EvaluationOutcome::Current(signed) => Some(published(one, signed.evaluation)),
            // It was verified when it was added, so a backup from elsewhere brought it.
            EvaluationOutcome::OtherFiles | EvaluationOutcome::Broken { .. } => None,
        }
    };
    let mut bytes = 0;
    let fits = |one: &PublishedAttestation| {
        bytes += serde_json::to_vec(one).map_or(0, |text| text.len());
        bytes <= MAX_LISTED_BYTES
    };
    let items: Vec<PublishedAttestation> =
        stored.into_iter().filter_map(read).take_while(fits).collect();
    let evaluations: Vec<&Evaluation> = items.iter().map(|one| &one.evaluation).collect();
    let disagree = evaluation::disagree(&evaluations);
    Ok(Attestations { items, disagree })
}

fn verify(
    version: &PackageVersion,
    new: &NewAttestation,
) -> Result<SignedEvaluation, AttestationError> {
    let key = new.public_key.as_deref().map(PublicKey::parse).transpose();
    let key = key.map_err(|error| AttestationError::Key(error.to_string()))?;
    let to_trusted =
        |key| TrustedKey { key, publisher: String::new(), role: Role::Evaluator, namespaces: None };
    let store = TrustStore::of_keys(key.map(to_trusted).into_iter().collect());
    let bytes = new.statement.to_string();
    match evaluation::check(bytes.as_bytes(), &version.integrity, &store) {
        EvaluationOutcome::Current(signed) if signed.signed.checked => Ok(*signed),
        EvaluationOutcome::Current(signed) if signed.signed.key_id.is_empty() => {
            let reason =
                "its signature names no key, and signatures without keys are not supported";
            Err(AttestationError::Broken(reason.to_owned()))
        }
        EvaluationOutcome::Current(signed) => {
            Err(AttestationError::KeyMissing(signed.signed.key_id))
        }
        EvaluationOutcome::OtherFiles => {
            let of = format!("{}@{}", version.package, version.version);
            Err(AttestationError::OtherFiles(of))
        }
        EvaluationOutcome::Broken { reason, .. } => Err(AttestationError::Broken(reason)),
    }
}

fn published(stored: StoredAttestation, evaluation: Evaluation) -> PublishedAttestation {
    PublishedAttestation {
        id: stored.digest,
        key_id: stored.key_id,
        public_key: stored.public_key,
        evaluation,
        statement: serde_json::from_str(&stored.statement).unwrap_or_default(),
        added_at: Some(stored.added_at.to_string()),
    }
}
