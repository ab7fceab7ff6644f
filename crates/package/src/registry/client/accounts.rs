//! Login and access tokens.

use url::Url;

use super::{
    Client, RegistryError,
    api::{JSON, to_json},
};
use crate::{
    registry::{
        Token,
        http::RegistryRequest,
        wire::{
            CreateTokenRequest, CreateTokenResponse, Credentials, LoggedIn, TokenInfo, Tokens,
            WhoAmI,
        },
    },
    source::http::check,
};

impl Client {
    /// Returns the account and the scopes of the token.
    pub async fn whoami(&self) -> Result<WhoAmI, RegistryError> {
        self.get_required(self.url("api/v1/whoami")?).await
    }

    /// Exchanges an email address and a password for a token, at the server of the registry. Always
    /// encrypted, whatever the settings for plain HTTP are.
    pub async fn login(&self, email: &str, password: &str) -> Result<Token, RegistryError> {
        let url = self.account_url("login")?;
        check(&url)?;
        let body = to_json(&Credentials { email, password })?;
        let LoggedIn { token } = self.post(url, JSON, body).await?;
        Token::new(&token)
    }

    /// Revokes the token of [`Self::login`].
    pub async fn logout(&self) -> Result<(), RegistryError> {
        self.ask(RegistryRequest::post(self.account_url("logout")?, JSON, b"{}".to_vec()))
            .await
            .map(drop)
    }

    /// Returns the tokens of the account.
    pub async fn tokens(&self) -> Result<Vec<TokenInfo>, RegistryError> {
        let found: Tokens = self.get_required(self.account_url("tokens")?).await?;
        Ok(found.tokens)
    }

    /// Creates a token for a program.
    pub async fn create_token(
        &self,
        wanted: &CreateTokenRequest,
    ) -> Result<(TokenInfo, Token), RegistryError> {
        let url = self.account_url("tokens")?;
        check(&url)?;
        let CreateTokenResponse { info, token } = self.post(url, JSON, to_json(wanted)?).await?;
        Ok((info, Token::new(&token)?))
    }

    /// Revokes a token.
    pub async fn delete_token(&self, id: &str) -> Result<(), RegistryError> {
        let mut url = self.account_url("tokens")?;
        // Encodes the id as one component of the path.
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.push(id);
        }
        self.ask(RegistryRequest::delete(url)).await.map(drop)
    }

    /// Revokes the token of this client by its id.
    pub async fn delete_own_token(&self, id: &str) -> Result<(), RegistryError> {
        let mut url = self.url("api/v1/tokens")?;
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.push(id);
        }
        self.ask(RegistryRequest::delete(url)).await.map(drop)
    }

    /// Returns a URL of the accounts API.
    fn account_url(&self, what: &str) -> Result<Url, RegistryError> {
        let server = self.0.connection.base.path().trim_end_matches('/');
        let server = server.strip_suffix("/registry").unwrap_or(server);
        self.url(&format!("{server}/api/v1/auth/{what}"))
    }
}
