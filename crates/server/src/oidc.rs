//! Login with an OpenID Connect provider: the authorization code flow with PKCE.
//!
//! The state of a login is in a cookie of the browser that started it, so that a page of another
//! site cannot finish a login. The ID token proves who logged in: its signature, issuer, audience,
//! expiry and nonce are checked. An account is found by the provider's id of the user, the first
//! time by the verified email address. Whoever created that account did not have to prove that the
//! address is theirs, so its password, sessions and API tokens end then.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, DecodingKey, Validation, decode, decode_header,
    jwk::{Jwk, JwkSet, PublicKeyUse},
};
use reqwest::{Client, redirect::Policy};
use savoir_store::{Database, Role, StoreError, User, registry::Actor};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use url::Url;

use crate::{
    accounts::{AccountError, Email, NewAccount, is_of_admin, random_secret},
    config::Config,
};

/// How long one request to the provider may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum bytes of an answer of the provider.
const MAX_ANSWER_BYTES: usize = 512 * 1024;
/// Maximum bytes of a provider's id of a user, by the standard.
const MAX_SUBJECT_BYTES: usize = 255;
/// The algorithms with which providers sign. None with a shared secret is accepted.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// A provider with which users can log in.
#[derive(Clone)]
pub struct OidcConfig {
    /// The URL of the provider, below which its configuration is published.
    issuer: String,
    client_id: String,
    /// None for public clients.
    client_secret: Option<String>,
    /// The name on the login page.
    pub(crate) name: String,
    /// Whether an address counts as verified if the provider does not say whether it is.
    trusts_email: bool,
}

impl OidcConfig {
    /// Checks the URL of the provider: its answers must come over TLS, except from this machine.
    /// Without a name, the host is shown.
    pub fn new(
        issuer: &str,
        client_id: String,
        client_secret: Option<String>,
        name: Option<String>,
    ) -> Result<Self, IssuerError> {
        let url = Url::parse(issuer).map_err(|_| IssuerError::Url(issuer.to_owned()))?;
        let host = url.host_str().ok_or_else(|| IssuerError::Url(issuer.to_owned()))?;
        let is_local = ["127.0.0.1", "[::1]", "localhost"].contains(&host);
        if url.scheme() != "https" && !(url.scheme() == "http" && is_local) {
            return Err(IssuerError::Insecure(issuer.to_owned()));
        }
        let name = name.unwrap_or_else(|| host.to_owned());
        let issuer = issuer.trim_end_matches('/').to_owned();
        Ok(Self { issuer, client_id, client_secret, name, trusts_email: false })
    }

    /// Accepts email addresses of which the provider does not say whether they are verified, for
    /// providers whose users cannot choose their address.
    #[must_use]
    pub fn with_trusted_email(self, trusts_email: bool) -> Self {
        Self { trusts_email, ..self }
    }
}

/// Why the URL of a provider is rejected.
#[derive(Debug, Error)]
pub enum IssuerError {
    #[error("`{0}` is not a URL")]
    Url(String),
    #[error("`{0}` must start with https://")]
    Insecure(String),
}

impl std::fmt::Debug for OidcConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OidcConfig").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// A login that a browser started, in its cookie.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StartedLogin {
    pub(crate) state: String,
    nonce: String,
    /// The secret of PKCE, which only this browser and the provider see.
    verifier: String,
    /// The page to open afterwards.
    pub(crate) next: String,
}

/// Why a login failed.
#[derive(Debug, Error)]
pub(crate) enum OidcError {
    #[error("the provider cannot be reached or gives an unexpected answer: {0}")]
    Provider(String),
    #[error("the ID token is not valid: {0}")]
    Token(String),
    #[error("the provider gives no verified email address")]
    NoEmail,
    #[error("there is no account for {0}, and registration is closed")]
    NoAccount(String),
    #[error("the account is disabled")]
    Disabled,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl OidcError {
    /// The name of the error for the login page.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Provider(_) | Self::Store(_) => "failed",
            Self::Token(_) => "token",
            Self::NoEmail => "no-email",
            Self::NoAccount(_) => "no-account",
            Self::Disabled => "disabled",
        }
    }
}

/// The published configuration of a provider.
#[derive(Debug, Deserialize)]
struct Discovery {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

impl Discovery {
    /// Whether the secret is sent as the standard prefers it, in the header `Authorization`.
    fn accepts_basic(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_ref();
        methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"))
    }
}

#[derive(Debug, Deserialize)]
struct Tokens {
    id_token: String,
    access_token: Option<String>,
}

#[derive(Debug, Deserialize)]
struct IdClaims {
    sub: String,
    nonce: Option<String>,
    azp: Option<String>,
    #[serde(flatten)]
    address: Address,
}

#[derive(Debug, Default, Deserialize)]
struct Address {
    email: Option<String>,
    email_verified: Option<Verified>,
}

/// Some providers send it as a text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Verified {
    Bool(bool),
    Text(String),
}

impl Address {
    /// The address, if the provider verified it. `trusted` decides if the provider says nothing.
    fn verified(&self, trusted: bool) -> Option<Email> {
        let verified = match &self.email_verified {
            Some(Verified::Bool(verified)) => *verified,
            Some(Verified::Text(text)) => text == "true",
            None => trusted,
        };
        self.email.as_deref().filter(|_| verified).and_then(Email::parse)
    }
}

#[derive(Debug, Deserialize)]
struct UserInfo {
    sub: String,
    #[serde(flatten)]
    address: Address,
}

/// The user as the provider describes them.
#[derive(Debug)]
pub(crate) struct Identity {
    subject: String,
    email: Option<Email>,
}

/// The provider for one login.
#[derive(Debug)]
pub(crate) struct Provider<'a> {
    config: &'a OidcConfig,
    /// Where the provider sends the browser afterwards.
    redirect_uri: String,
    client: Client,
    discovery: Discovery,
}

impl<'a> Provider<'a> {
    /// Reads the configuration of the provider.
    pub(crate) async fn discover(
        config: &'a OidcConfig,
        redirect_uri: String,
    ) -> Result<Self, OidcError> {
        let issuer = config.issuer.as_str();
        let url = Url::parse(issuer).map_err(|error| provider_error(&error))?;
        let mut builder = Client::builder()
            .timeout(REQUEST_TIMEOUT)
            .redirect(Policy::none())
            .user_agent(concat!("savoir/", env!("CARGO_PKG_VERSION")));
        if url.scheme() == "http" {
            // Plain HTTP is for this machine, and must work without certificates.
            builder = builder.no_proxy().tls_certs_only([]);
        }
        let client = builder.build().map_err(|error| provider_error(&error))?;
        let request = client.get(format!("{issuer}/.well-known/openid-configuration"));
        let discovery: Discovery = read(request).await?;
        if discovery.issuer.trim_end_matches('/') != issuer {
            return Err(OidcError::Provider(format!("it calls itself {}", discovery.issuer)));
        }
        Ok(Self { config, redirect_uri, client, discovery })
    }

    /// Starts a login; returns it with the URL to which the browser goes.
    pub(crate) fn start(&self, next: String) -> Result<(StartedLogin, String), OidcError> {
        let (state, nonce, verifier) = (random_secret()?, random_secret()?, random_secret()?);
        let mut url = Url::parse(&self.discovery.authorization_endpoint)
            .map_err(|error| provider_error(&error))?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.config.client_id)
            .append_pair("redirect_uri", &self.redirect_uri)
            .append_pair("scope", "openid email profile")
            .append_pair("state", &state)
            .append_pair("nonce", &nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        Ok((StartedLogin { state, nonce, verifier, next }, url.into()))
    }

    /// Exchanges the code of a login for the identity of the user.
    pub(crate) async fn finish(
        &self,
        login: &StartedLogin,
        code: &str,
    ) -> Result<Identity, OidcError> {
        let tokens: Tokens = read(self.token_request(login, code)).await?;
        let claims = self.verify(&tokens.id_token, &login.nonce).await?;
        let email = claims.address.verified(self.config.trusts_email);
        let email = match (email, &tokens.access_token) {
            (Some(email), _) => Some(email),
            (None, Some(token)) => self.verified_email(&claims.sub, token).await?,
            (None, None) => None,
        };
        Ok(Identity { subject: claims.sub, email })
    }

    /// The request that exchanges the code, with the secret in the way that the provider supports.
    fn token_request(&self, login: &StartedLogin, code: &str) -> reqwest::RequestBuilder {
        let OidcConfig { client_id, client_secret, .. } = self.config;
        let mut request = self.client.post(&self.discovery.token_endpoint);
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.redirect_uri),
            ("code_verifier", &login.verifier),
        ];
        match client_secret {
            Some(secret) if self.discovery.accepts_basic() => {
                request = request.basic_auth(form_encoded(client_id), Some(form_encoded(secret)));
            }
            Some(secret) => {
                form.extend([("client_id", client_id.as_str()), ("client_secret", secret)]);
            }
            None => form.push(("client_id", client_id)),
        }
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        request.header("content-type", "application/x-www-form-urlencoded").body(body)
    }

    async fn verify(&self, id_token: &str, nonce: &str) -> Result<IdClaims, OidcError> {
        let header = decode_header(id_token).map_err(|error| token_error(&error))?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(OidcError::Token(format!("it is signed with {:?}", header.alg)));
        }
        let keys: JwkSet = read(self.client.get(&self.discovery.jwks_uri)).await?;
        let jwk = signing_key(&keys, header.kid.as_deref())
            .ok_or_else(|| OidcError::Token("its key is unknown".to_owned()))?;
        let key = DecodingKey::from_jwk(jwk).map_err(|error| token_error(&error))?;
        let mut validation = Validation::new(header.alg);
        validation.set_audience(&[&self.config.client_id]);
        validation.set_issuer(&[&self.discovery.issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.validate_nbf = true;
        let claims: IdClaims =
            decode(id_token, &key, &validation).map_err(|error| token_error(&error))?.claims;
        if claims.nonce.as_deref() != Some(nonce) {
            return Err(OidcError::Token("it is for another login".to_owned()));
        }
        if claims.azp.as_ref().is_some_and(|client| *client != self.config.client_id) {
            return Err(OidcError::Token("it is for another client".to_owned()));
        }
        if claims.sub.is_empty() || claims.sub.len() > MAX_SUBJECT_BYTES {
            return Err(OidcError::Token("the id of the user is empty or too long".to_owned()));
        }
        Ok(claims)
    }

    /// The email address from the endpoint about the user, if the ID token has none.
    async fn verified_email(&self, subject: &str, token: &str) -> Result<Option<Email>, OidcError> {
        let Some(endpoint) = &self.discovery.userinfo_endpoint else { return Ok(None) };
        let info: UserInfo = read(self.client.get(endpoint).bearer_auth(token)).await?;
        if info.sub != subject {
            return Err(OidcError::Provider("it describes another user".to_owned()));
        }
        Ok(info.address.verified(self.config.trusts_email))
    }
}

/// The key of a provider that signs; without an id, its only one.
fn signing_key<'a>(keys: &'a JwkSet, id: Option<&str>) -> Option<&'a Jwk> {
    let mut signing = keys
        .keys
        .iter()
        .filter(|key| !matches!(key.common.public_key_use, Some(PublicKeyUse::Encryption)));
    match id {
        Some(id) => signing.find(|key| key.common.key_id.as_deref() == Some(id)),
        None => signing.next().filter(|_| signing.next().is_none()),
    }
}

/// A text as in a form, which the standard requires of the id and secret in the header.
fn form_encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// The account of an identity. An unknown user gets one if `may_register`, and the administrator
/// whose address the configuration has always does.
pub(crate) async fn account_of(
    database: &Database,
    config: &Config,
    provider: &OidcConfig,
    identity: Identity,
    may_register: bool,
) -> Result<User, OidcError> {
    let accounts = database.accounts();
    let Identity { subject, email } = identity;
    let user = if let Some(user) = accounts.by_identity(&provider.issuer, &subject).await? {
        user
    } else {
        let email = email.ok_or(OidcError::NoEmail)?;
        let is_admin = is_of_admin(config, &email);
        let user = match accounts.by_email(email.as_str()).await? {
            Some((user, _)) => user,
            None if is_admin => create(database, &email, Role::Admin).await?,
            None if may_register => create(database, &email, Role::User).await?,
            None => return Err(OidcError::NoAccount(email.as_str().to_owned())),
        };
        let by = Actor::person(&user);
        accounts.link_identity(&by, &provider.issuer, &subject, user.id).await?;
        tracing::info!(
            user = user.id,
            issuer = provider.issuer,
            "an account was linked to the provider; its password, sessions and tokens ended"
        );
        user
    };
    if user.active { Ok(user) } else { Err(OidcError::Disabled) }
}

/// An account whose password nobody knows.
async fn create(database: &Database, email: &Email, role: Role) -> Result<User, OidcError> {
    let account = NewAccount::check(email.as_str(), &random_secret()?);
    let made = match account {
        Ok(account) => account.create(database, role).await,
        Err(error) => Err(error),
    };
    made.map_err(|error| match error {
        AccountError::Store(error) => OidcError::Store(error),
        error => OidcError::Provider(error.to_string()),
    })
}

/// Sends a request and parses the answer.
async fn read<T: DeserializeOwned>(request: reqwest::RequestBuilder) -> Result<T, OidcError> {
    let mut response = request.send().await.map_err(|error| provider_error(&error))?;
    let (url, status) = (response.url().clone(), response.status());
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(|error| provider_error(&error))? {
        if body.len() + part.len() > MAX_ANSWER_BYTES {
            return Err(OidcError::Provider(format!("{} answers too much", url.path())));
        }
        body.extend_from_slice(&part);
    }
    if !status.is_success() {
        return Err(OidcError::Provider(format!("{} answers {status}", url.path())));
    }
    serde_json::from_slice(&body)
        .map_err(|error| OidcError::Provider(format!("{}: {error}", url.path())))
}

fn provider_error(error: &dyn std::error::Error) -> OidcError {
    OidcError::Provider(with_causes(error))
}

/// An error with its causes: that of a request does not say why the request failed.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn token_error(error: &dyn std::error::Error) -> OidcError {
    OidcError::Token(with_causes(error))
}

/// A path of this server to open after the login; `/` in place of anything else.
pub(crate) fn safe_next(next: Option<&str>) -> String {
    let is_path = |next: &&str| {
        next.starts_with('/')
            && !next.starts_with("//")
            && !next.contains(|c: char| c == '\\' || c.is_control())
    };
    next.filter(is_path).unwrap_or("/").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_server_are_opened_after_a_login() {
        assert_eq!(safe_next(Some("/runs?kind=chat")), "/runs?kind=chat");
        for other in [
            None,
            Some(""),
            Some("runs"),
            Some("//evil.example"),
            Some("/\\evil.example"),
            Some("https://evil.example"),
            Some("/a\r\nset-cookie: b"),
            Some("/\t/evil.example"),
        ] {
            assert_eq!(safe_next(other), "/", "{other:?}");
        }
    }

    #[test]
    fn provider_needs_tls_except_on_this_machine() {
        let made = |url: &str| OidcConfig::new(url, "savoir".to_owned(), None, None);
        assert_eq!(made("https://login.example.org/").unwrap().issuer, "https://login.example.org");
        assert_eq!(made("http://127.0.0.1:9").unwrap().name, "127.0.0.1");
        for bad in
            ["http://login.example.org", "login", "ftp://127.0.0.1", "http://127.0.0.1.evil.org"]
        {
            assert!(made(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn email_address_counts_only_if_the_provider_verified_it() {
        let email = |json: &str| {
            let address: Address = serde_json::from_str(json).unwrap();
            address.verified(false).map(|email| email.as_str().to_owned())
        };
        let ada = Some("ada@example.org".to_owned());
        assert_eq!(email(r#"{"email": "Ada@example.org", "email_verified": true}"#), ada);
        assert_eq!(email(r#"{"email": "ada@example.org", "email_verified": "true"}"#), ada);
        assert_eq!(email(r#"{"email": "ada@example.org", "email_verified": false}"#), None);
        assert_eq!(email(r#"{"email": "ada@example.org"}"#), None);
        assert_eq!(email(r#"{"email": "nonsense", "email_verified": true}"#), None);
    }

    #[test]
    fn unmentioned_verification_counts_only_if_trusted() {
        let address = |json: &str| serde_json::from_str::<Address>(json).unwrap();
        let unmentioned = address(r#"{"email": "ada@example.org"}"#);
        assert_eq!(unmentioned.verified(true).unwrap().as_str(), "ada@example.org");
        let denied = address(r#"{"email": "ada@example.org", "email_verified": false}"#);
        assert_eq!(denied.verified(true), None);
    }

    #[test]
    fn key_for_encryption_does_not_sign() {
        let key = |id: &str, usage: &str| serde_json::json!({"kty": "OKP", "crv": "Ed25519", "x": "AA", "kid": id, "use": usage});
        let keys = serde_json::json!({"keys": [key("one", "enc"), key("two", "sig")]});
        let keys: JwkSet = serde_json::from_value(keys).unwrap();
        assert!(signing_key(&keys, Some("one")).is_none());
        for id in [Some("two"), None] {
            assert_eq!(signing_key(&keys, id).unwrap().common.key_id.as_deref(), Some("two"));
        }
    }

    #[tokio::test]
    async fn first_login_ends_password_sessions_and_tokens_of_the_account() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open_folder(folder.path()).await.unwrap();
        let accounts = database.accounts();
        let email = Email::parse("victim@example.org").unwrap();
        let user = crate::create_account(&database, email.clone(), "attacker", Role::User).await;
        let user = user.unwrap();
        let login = savoir_store::Timestamp::now();
        let token = savoir_store::NewToken {
            user_id: user.id,
            name: "attacker",
            scopes: &[],
            digest: "digest",
            expires_at: None,
            since: login,
        };
        accounts.add_token(&Actor::person(&user), token).await.unwrap().unwrap();
        let provider =
            OidcConfig::new("https://login.example.org", "savoir".to_owned(), None, None).unwrap();
        let log_in = async || {
            let identity = Identity { subject: "1".to_owned(), email: Some(email.clone()) };
            account_of(&database, &Config::default(), &provider, identity, false).await.unwrap()
        };
        assert_eq!(log_in().await.id, user.id);
        let (_, hash) = accounts.by_email(email.as_str()).await.unwrap().unwrap();
        assert!(!savoir_store::verify_password("attacker", Some(&hash)).await.unwrap());
        assert!(accounts.of_token(user.id, "session", login).await.unwrap().is_none());
        assert!(accounts.by_token_digest("digest").await.unwrap().is_none());
        // The second login ends no session.
        let login = savoir_store::Timestamp::now();
        log_in().await;
        assert!(accounts.of_token(user.id, "session", login).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn configured_administrator_gets_an_account_with_that_role() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open_folder(folder.path()).await.unwrap();
        let admin_email = Some("Ada@example.org".to_owned());
        let config = Config { admin_email, ..Config::default() };
        let provider =
            OidcConfig::new("https://login.example.org", "savoir".to_owned(), None, None).unwrap();
        let email = Email::parse("ada@example.org");
        let identity = Identity { subject: "1".to_owned(), email };
        let user = account_of(&database, &config, &provider, identity, false).await.unwrap();
        assert!(user.is_admin());
    }
}
