//! Hashes passwords with Argon2id.

use std::sync::{Mutex, PoisonError};

use argon2::{Algorithm, Argon2, Block, Params, Version, password_hash::phc};
use tokio::sync::Semaphore;

use crate::StoreError;

/// Each hash takes 19 MiB. Limiting concurrent hashes keeps a burst of logins from exhausting
/// memory.
static CONCURRENT_HASHES: Semaphore = Semaphore::const_new(4);

/// Buffers for reuse by the next hashes. If they were freed, the allocator would keep them per
/// thread, and there are many blocking threads.
static SPARE_BLOCKS: Mutex<Vec<Vec<Block>>> = Mutex::new(Vec::new());

/// The hash that is verified if the account does not exist or has no password. It matches no known
/// password.
pub(crate) const UNMATCHED_HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$bm8gc2FsdCBpcyBuZWVkZWQ\
    $AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The hash of a password in the PHC string format.
pub type PasswordHash = String;

/// Hashes a password with a new salt. Takes tens of milliseconds and 19 MiB, on a blocking thread.
pub async fn hash_password(password: &str) -> Result<PasswordHash, StoreError> {
    let password = password.to_owned();
    on_a_thread(move || hash(&password)).await
}

/// Whether a password matches a hash. Without a hash it takes equally long, so that the timing does
/// not reveal which accounts exist.
pub async fn verify_password(password: &str, hash: Option<&str>) -> Result<bool, StoreError> {
    let (password, hash) = (password.to_owned(), hash.map(ToOwned::to_owned));
    on_a_thread(move || {
        let matches = verify(&password, hash.as_deref().unwrap_or(UNMATCHED_HASH))?;
        Ok(matches && hash.is_some())
    })
    .await
}

async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    // The task owns the permit, because it continues after the caller is cancelled.
    let permit = CONCURRENT_HASHES.acquire().await.map_err(|error| failed(&error))?;
    let work = move || {
        let _permit = permit;
        work()
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| failed(&error))?
}

/// The parameters that OWASP recommends: 19 MiB, two passes, one lane.
fn params() -> Params {
    Params::new(19 * 1024, 2, 1, None).unwrap_or_default()
}

fn hash(password: &str) -> Result<PasswordHash, StoreError> {
    let params = params();
    let salt = phc::Salt::generate();
    let mut output = [0; Params::DEFAULT_OUTPUT_LEN];
    fill(&params, password, salt.as_ref(), &mut output)?;
    let hash = phc::PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params: (&params).try_into().map_err(|error| failed(&error))?,
        salt: Some(salt),
        hash: Some(phc::Output::new(&output).map_err(|error| failed(&error))?),
    };
    Ok(hash.to_string())
}

fn verify(password: &str, hash: &str) -> Result<bool, StoreError> {
    let damaged = |message: String| StoreError::Damaged {
        what: "the hash of a password".to_owned(),
        message,
    };
    let hash = phc::PasswordHash::new(hash).map_err(|error| damaged(error.to_string()))?;
    let params = Params::try_from(&hash).map_err(|error| damaged(error.to_string()))?;
    let (Some(salt), Some(expected)) = (&hash.salt, &hash.hash) else {
        return Err(damaged("it has no salt or no hash".to_owned()));
    };
    let mut output = vec![0; expected.len()];
    fill(&params, password, salt.as_ref(), &mut output)?;
    // This comparison takes constant time.
    Ok(phc::Output::new(&output).is_ok_and(|output| output == *expected))
}

fn fill(params: &Params, password: &str, salt: &[u8], output: &mut [u8]) -> Result<(), StoreError> {
    let spare = || SPARE_BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut memory = spare().pop().unwrap_or_default();
    memory.resize(params.block_count(), Block::default());
    let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone());
    let filled =
        hasher.hash_password_into_with_memory(password.as_bytes(), salt, output, &mut memory);
    spare().push(memory);
    filled.map_err(|error| failed(&error))
}

fn failed(error: &dyn std::error::Error) -> StoreError {
    StoreError::Setting(format!("the password cannot be hashed: {error}"))
}
