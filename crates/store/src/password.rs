//! Passwords, as Argon2id.

use std::sync::LazyLock;

use argon2::{
    Algorithm, Argon2, Params, Version,
    password_hash::{PasswordHasher as _, PasswordVerifier as _, phc},
};
use tokio::sync::Semaphore;

use crate::StoreError;

/// Each hash takes 19 MiB; a crowd that logs in waits instead of taking all memory.
static AT_ONCE: Semaphore = Semaphore::const_new(4);

/// OWASP: 19 MiB, two passes, one lane.
static HASHER: LazyLock<Argon2<'static>> = LazyLock::new(|| {
    let params = Params::new(19 * 1024, 2, 1, None).unwrap_or_default();
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
});

/// What a password is compared with where there is no account. It is the hash of nothing known.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$bm8gc2FsdCBpcyBuZWVkZWQ\
    $AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The hash of a password in the PHC string format.
pub type PasswordHash = String;

/// Hashes a password with a new salt. Takes tens of milliseconds and 19 MiB, on a blocking thread.
pub async fn hash_password(password: &str) -> Result<PasswordHash, StoreError> {
    let password = password.to_owned();
    on_a_thread(move || hash(&password)).await
}

/// Whether a password is the one that was hashed. With no hash, as long as with one: a stranger does
/// not learn which accounts there are.
pub async fn verify_password(password: &str, hash: Option<&str>) -> Result<bool, StoreError> {
    let (password, hash) = (password.to_owned(), hash.map(ToOwned::to_owned));
    on_a_thread(move || {
        let matches = verify(&password, hash.as_deref().unwrap_or(NOBODY))?;
        Ok(matches && hash.is_some())
    })
    .await
}

async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    // Held by the work, which goes on when its caller is gone.
    let permit = AT_ONCE.acquire().await.map_err(|error| failed(&error))?;
    let work = move || {
        let _permit = permit;
        work()
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| failed(&error))?
}

fn hash(password: &str) -> Result<PasswordHash, StoreError> {
    let hash: phc::PasswordHash =
        HASHER.hash_password(password.as_bytes()).map_err(|error| failed(&error))?;
    Ok(hash.to_string())
}

fn verify(password: &str, hash: &str) -> Result<bool, StoreError> {
    let hash = phc::PasswordHash::new(hash).map_err(|error| StoreError::Damaged {
        what: "the hash of a password".to_owned(),
        message: error.to_string(),
    })?;
    Ok(HASHER.verify_password(password.as_bytes(), &hash).is_ok())
}

fn failed(error: &dyn std::error::Error) -> StoreError {
    StoreError::Setting(format!("the password cannot be hashed: {error}"))
}
