//! Creates and checks proofs that a user has a private key.

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use super::{KeyKind, PublicKey, SigningKey, ssh};

/// The purpose of a proof.
#[derive(Clone, Copy, Debug)]
pub struct Purpose<'a> {
    /// The namespace, or the skill.
    pub owner_scope: &'a str,
    /// The address of the registry.
    pub registry: &'a str,
}

/// Returns the text that a key signs today with OpenSSH's signature format. It contains the
/// namespace, the registry and the day, so that a proof that another person saw cannot be used
/// elsewhere or later.
pub fn statement(purpose: Purpose<'_>) -> String {
    statement_of(purpose, today())
}

/// Creates a proof with one of Savoir's own keys.
pub fn prove(key: &SigningKey, purpose: Purpose<'_>) -> String {
    ssh::sign_with(key, statement(purpose).as_bytes())
}

/// Whether a proof is a signature by this key of today's statement. Yesterday and tomorrow are
/// accepted, too, because clocks differ.
pub fn is_proved(key: &PublicKey, purpose: Purpose<'_>, proof: &str) -> bool {
    let today = today();
    let days = [today.yesterday().ok(), Some(today), today.tomorrow().ok()];
    days.into_iter().flatten().any(|day| signs(key, &statement_of(purpose, day), proof))
}

fn today() -> Date {
    Timestamp::now().to_zoned(TimeZone::UTC).date()
}

fn statement_of(Purpose { owner_scope, registry }: Purpose<'_>, day: Date) -> String {
    let registry = registry.trim_end_matches('/');
    format!("On {day} this key signs for {owner_scope} in the registry {registry}.\n")
}

fn signs(key: &PublicKey, statement: &str, proof: &str) -> bool {
    let Ok(signer) = ssh::check(proof, statement.as_bytes()) else { return false };
    match key.kind() {
        KeyKind::Ssh => signer == *key,
        KeyKind::Ed25519 => signer.bytes() == ssh::public_key_blob(key.bytes()),
        KeyKind::Ecdsa | KeyKind::Certificate | KeyKind::OpenPgp => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proof_needs_the_private_key() {
        let (mine, other) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
        let of = |owner_scope, registry| Purpose { owner_scope, registry };
        let here = of("acme", "https://x.example/registry/");
        let proof = prove(&mine, here);
        assert!(is_proved(&mine.public_key(), here, &proof));
        assert!(is_proved(&mine.public_key(), of("acme", "https://x.example/registry"), &proof));
        assert!(!is_proved(&other.public_key(), here, &proof));
        assert!(!is_proved(&mine.public_key(), of("evil", here.registry), &proof));
        assert!(!is_proved(&mine.public_key(), of("acme", "https://y.example/registry"), &proof));
        assert!(!is_proved(&mine.public_key(), here, "none"));
        // The same key in the format of OpenSSH.
        let line = ssh::public_key_text(&mine);
        assert!(is_proved(&PublicKey::parse(&line).unwrap(), here, &proof));
        let old = statement_of(here, jiff::civil::date(2026, 2, 3));
        let old = ssh::sign_with(&mine, old.as_bytes());
        assert!(!is_proved(&mine.public_key(), here, &old), "it was of another day");
    }
}
