//! Signs and verifies session tokens: JSON Web Tokens with Ed25519 that are valid for seven days.
//!
//! Keys are stored in the database, so that all processes use the same ones. The newest key signs;
//! older keys are stored until all tokens that they signed have expired.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, decode_header, encode,
};
use savoir_store::{AccountsVersion, Database, SigningKey, StoreError, Timestamp};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::limits::MAX_CACHED_TOKENS;

/// Lifetime of a token.
pub(crate) const TOKEN_LIFETIME: Duration = Duration::from_hours(7 * 24);

/// How often keys are reloaded: another process may have added or removed one.
const KEY_REFRESH_INTERVAL: Duration = Duration::from_secs(2);

const ISSUER: &str = "savoir";
const AUDIENCE: &str = "savoir-api";
const COOKIE_AUDIENCE: &str = "savoir-app";
/// A separate audience, so that a link cannot be used as a token, nor a token as a link.
const LINK_AUDIENCE: &str = "savoir-embed";

/// Where a session token is accepted. Browsers send a cookie to every port of a host, so that its
/// value must be useless as a bearer token, and for another server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Audience<'a> {
    /// In the header `Authorization`.
    Bearer,
    /// In the session cookie of the server at this URL.
    Cookie(&'a str),
}

impl Audience<'_> {
    fn name(self) -> String {
        match self {
            Self::Bearer => AUDIENCE.to_owned(),
            Self::Cookie(url) => format!("{COOKIE_AUDIENCE} {url}"),
        }
    }
}

/// The claims of a session token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    iss: String,
    aud: String,
    sub: String,
    /// Identifies the token.
    pub(crate) jti: String,
    iat: i64,
    exp: i64,
    /// Time of issue in microseconds: changing the password invalidates earlier tokens.
    iat_us: i64,
}

impl Claims {
    pub(crate) fn user_id(&self) -> Option<i64> {
        self.sub.parse().ok()
    }

    pub(crate) fn issued_at(&self) -> Timestamp {
        Timestamp::from_micros(self.iat_us)
    }

    pub(crate) fn expires_at(&self) -> Timestamp {
        Timestamp::from_micros(self.exp.saturating_mul(1_000_000))
    }
}

/// The claims in the link to a published workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    iss: String,
    aud: String,
    sub: String,
    /// The user who published the workflow.
    pub(crate) user: i64,
    exp: i64,
}

impl Link {
    /// A link is valid as long as a session token.
    pub(crate) fn new(workflow: &str, user: i64) -> Self {
        Self {
            iss: ISSUER.to_owned(),
            aud: LINK_AUDIENCE.to_owned(),
            sub: workflow.to_owned(),
            user,
            exp: Timestamp::now().plus(TOKEN_LIFETIME).seconds(),
        }
    }

    pub(crate) fn workflow(&self) -> &str {
        &self.sub
    }

    pub(crate) fn expires_at(&self) -> Timestamp {
        Timestamp::from_micros(self.exp.saturating_mul(1_000_000))
    }
}

/// The signing keys of the server, and a cache of verified tokens.
#[derive(Debug)]
pub(crate) struct Keys {
    ring: RwLock<KeyRing>,
    /// Tokens with a valid signature, by the digest of the token. The signature stays valid;
    /// whether the key still exists and the token was not revoked is checked for each request.
    good: Mutex<HashMap<[u8; 32], VerifiedToken>>,
}

/// A token with a valid signature.
#[derive(Clone, Debug)]
struct VerifiedToken {
    key: String,
    claims: Claims,
}

struct KeyRing {
    newest: Option<(String, EncodingKey)>,
    known: HashMap<String, DecodingKey>,
    read_at: Instant,
    /// The version of the accounts before the keys were read.
    look: Option<AccountsVersion>,
}

impl std::fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("known", &self.known.keys()).finish_non_exhaustive()
    }
}

impl Keys {
    /// Loads the keys from a database. Creates the first key if there is none.
    pub(crate) async fn open(database: &Database) -> Result<Self, StoreError> {
        if database.settings().signing_keys().await?.is_empty() {
            database.settings().add_signing_key(&new_key()?, true).await?;
        }
        let ring = KeyRing::read(database).await?;
        Ok(Self { ring: RwLock::new(ring), good: Mutex::default() })
    }

    /// Issues a token for a user. `since` is the time at which the password was read from the
    /// database: if the password changes later, this token becomes invalid like all earlier ones.
    pub(crate) async fn issue(
        &self,
        database: &Database,
        audience: Audience<'_>,
        user_id: i64,
        since: Timestamp,
    ) -> Result<String, StoreError> {
        let now = Timestamp::now();
        let claims = Claims {
            iss: ISSUER.to_owned(),
            aud: audience.name(),
            sub: user_id.to_string(),
            jti: Uuid::new_v4().simple().to_string(),
            iat: now.seconds(),
            exp: now.plus(TOKEN_LIFETIME).seconds(),
            iat_us: since.micros(),
        };
        self.sign(database, &claims).await
    }

    /// Signs a link.
    pub(crate) async fn sign_link(
        &self,
        database: &Database,
        link: &Link,
    ) -> Result<String, StoreError> {
        self.sign(database, link).await
    }

    /// The claims of a link, if the signature is valid and the link has not expired.
    pub(crate) async fn read_link(
        &self,
        database: &Database,
        token: &str,
    ) -> Result<Option<Link>, StoreError> {
        self.refresh(database).await?;
        let id = decode_header(token).ok().and_then(|header| header.kid);
        Ok(id.and_then(|id| self.verify(&id, token, LINK_AUDIENCE)))
    }

    async fn sign<T: Serialize>(
        &self,
        database: &Database,
        claims: &T,
    ) -> Result<String, StoreError> {
        // Reload first: a key that was just removed would sign tokens that no process accepts.
        self.reload(database).await?;
        let ring = self.ring.read().unwrap_or_else(PoisonError::into_inner);
        let (id, key) = ring.newest.as_ref().ok_or_else(|| key_error("there is no signing key"))?;
        let header = Header { kid: Some(id.clone()), ..Header::new(Algorithm::EdDSA) };
        encode(&header, claims, key).map_err(|error| key_error(&error))
    }

    /// The claims of a token, if the signature is valid and the token has not expired.
    pub(crate) async fn read(
        &self,
        database: &Database,
        token: &str,
        audience: Audience<'_>,
    ) -> Result<Option<Claims>, StoreError> {
        self.refresh(database).await?;
        let audience = audience.name();
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(VerifiedToken { key, claims }) = self.cached_token(&digest) {
            let good = self.has_key(&key)
                && claims.aud == audience
                && claims.expires_at() > Timestamp::now();
            return Ok(good.then_some(claims));
        }
        let Some(id) = decode_header(token).ok().and_then(|header| header.kid) else {
            return Ok(None);
        };
        let Some(claims) = self.verify::<Claims>(&id, token, &audience) else { return Ok(None) };
        self.cache_token(digest, VerifiedToken { key: id, claims: claims.clone() });
        Ok(Some(claims))
    }

    fn verify<T: DeserializeOwned>(&self, id: &str, token: &str, audience: &str) -> Option<T> {
        let ring = self.ring.read().unwrap_or_else(PoisonError::into_inner);
        let key = ring.known.get(id)?;
        let mut rules = Validation::new(Algorithm::EdDSA);
        rules.set_issuer(&[ISSUER]);
        rules.set_audience(&[audience]);
        rules.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        rules.leeway = 0;
        decode::<T>(token, key, &rules).ok().map(|token| token.claims)
    }

    fn has_key(&self, id: &str) -> bool {
        self.ring.read().unwrap_or_else(PoisonError::into_inner).known.contains_key(id)
    }

    async fn refresh(&self, database: &Database) -> Result<(), StoreError> {
        let is_fresh = {
            let ring = self.ring.read().unwrap_or_else(PoisonError::into_inner);
            ring.read_at.elapsed() < KEY_REFRESH_INTERVAL
                && ring.look == database.accounts().current_version()
        };
        if is_fresh { Ok(()) } else { self.reload(database).await }
    }

    async fn reload(&self, database: &Database) -> Result<(), StoreError> {
        let ring = KeyRing::read(database).await?;
        *self.ring.write().unwrap_or_else(PoisonError::into_inner) = ring;
        Ok(())
    }

    fn cached_token(&self, digest: &[u8; 32]) -> Option<VerifiedToken> {
        self.good.lock().unwrap_or_else(PoisonError::into_inner).get(digest).cloned()
    }

    fn cache_token(&self, digest: [u8; 32], token: VerifiedToken) {
        let mut good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        if good.len() >= MAX_CACHED_TOKENS {
            good.clear();
        }
        good.insert(digest, token);
    }
}

impl KeyRing {
    async fn read(database: &Database) -> Result<Self, StoreError> {
        let look = database.accounts().current_version();
        let keys = database.settings().signing_keys().await?;
        let mut ring = Self { newest: None, known: HashMap::new(), read_at: Instant::now(), look };
        for SigningKey { id, pkcs8, .. } in keys {
            let pair = Ed25519KeyPair::from_pkcs8(&pkcs8).map_err(|error| key_error(&error))?;
            let public = DecodingKey::from_ed_der(pair.public_key().as_ref());
            if ring.newest.is_none() {
                ring.newest = Some((id.clone(), EncodingKey::from_ed_der(&pkcs8)));
            }
            ring.known.insert(id, public);
        }
        Ok(ring)
    }
}

/// Creates a new signing key. Tokens of older keys stay valid until they expire, unless
/// `forget_old` is set: then everyone must log in again.
pub async fn rotate(database: &Database, forget_old: bool) -> Result<(), StoreError> {
    let (settings, key) = (database.settings(), new_key()?);
    if forget_old {
        // Replace all existing keys, not those older than some time: a clock may have been wrong.
        return settings.replace_signing_keys(&key).await;
    }
    settings.add_signing_key(&key, false).await?;
    settings.remove_signing_keys_before(key.created_at.minus(TOKEN_LIFETIME)).await?;
    Ok(())
}

fn new_key() -> Result<SigningKey, StoreError> {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
        .map_err(|_| key_error("the system has no randomness"))?;
    let id = Uuid::new_v4().simple().to_string();
    Ok(SigningKey { id, pkcs8: pkcs8.as_ref().to_vec(), created_at: Timestamp::now() })
}

fn key_error(why: &(impl std::fmt::Display + ?Sized)) -> StoreError {
    StoreError::Damaged { what: "the signing key".to_owned(), message: why.to_string() }
}
