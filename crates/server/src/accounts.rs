//! Creates accounts and hashes passwords.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use savoir_store::{Database, Role, StoreError, User, hash_password};

use crate::config::Config;

const MIN_PASSWORD_CHARS: usize = 6;

/// The maximum length of an email address in SMTP.
const MAX_EMAIL_BYTES: usize = 254;

/// Why an account could not be created.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The text is not an email address.
    #[error("Valid email address required")]
    Email,
    #[error("Password must be at least 6 characters")]
    Password,
    /// The email address belongs to another account.
    #[error("Email already registered")]
    Taken,
    /// The account cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Checks the length of the password and creates an account.
pub async fn create_account(
    database: &Database,
    email: Email,
    password: &str,
    role: Role,
) -> Result<User, AccountError> {
    NewAccount { email, password: NewPassword::check(password)? }.create(database, role).await
}

/// An email address: trimmed, in lower case, in the format that the API requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Email(String);

impl Email {
    /// Parses `^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (name, domain) = text.split_once('@')?;
        let (host, top) = domain.rsplit_once('.')?;
        let all = |part: &str, extra: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c))
        };
        let fits = text.len() <= MAX_EMAIL_BYTES
            && all(name, "._%+-")
            && all(host, ".-")
            && top.len() >= 2
            && top.bytes().all(|byte| byte.is_ascii_alphabetic());
        // Lower-case only after the check: some letters outside of ASCII have ASCII lower-case
        // forms.
        fits.then(|| Self(text.to_ascii_lowercase()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether the configuration makes the account with this address an administrator.
pub(crate) fn is_of_admin(config: &Config, email: &Email) -> bool {
    config.admin_email.as_deref().and_then(Email::parse).as_ref() == Some(email)
}

/// The validated data of a new account.
#[derive(Debug)]
pub(crate) struct NewAccount {
    pub(crate) email: Email,
    password: NewPassword,
}

impl NewAccount {
    pub(crate) fn check(email: &str, password: &str) -> Result<Self, AccountError> {
        let email = Email::parse(email).ok_or(AccountError::Email)?;
        Ok(Self { email, password: NewPassword::check(password)? })
    }

    pub(crate) async fn create(
        self,
        database: &Database,
        role: Role,
    ) -> Result<User, AccountError> {
        self.hashed().await?.create(database, role).await
    }

    /// Hashes the password, which is slow.
    pub(crate) async fn hashed(self) -> Result<HashedAccount, AccountError> {
        Ok(HashedAccount { email: self.email, hash: self.password.hash().await? })
    }
}

/// A new account with a hashed password, ready to be stored.
pub(crate) struct HashedAccount {
    email: Email,
    hash: String,
}

impl HashedAccount {
    pub(crate) async fn create(
        self,
        database: &Database,
        role: Role,
    ) -> Result<User, AccountError> {
        let user = database.accounts().create(self.email.as_str(), &self.hash, role).await?;
        user.ok_or(AccountError::Taken)
    }
}

/// A password that is long enough.
pub(crate) struct NewPassword(String);

impl NewPassword {
    pub(crate) fn check(password: &str) -> Result<Self, AccountError> {
        if password.chars().count() < MIN_PASSWORD_CHARS {
            return Err(AccountError::Password);
        }
        Ok(Self(password.to_owned()))
    }

    pub(crate) async fn hash(&self) -> Result<String, StoreError> {
        hash_password(&self.0).await
    }
}

impl std::fmt::Debug for NewPassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NewPassword")
    }
}

/// 32 random bytes as text.
pub(crate) fn random_secret() -> Result<String, StoreError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::Setting(format!("the system has no randomness: {error}")))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let parse = |text: &str| Email::parse(text).map(|email| email.0);
        assert_eq!(parse("  Ada.L+x%y_z-1@Mail.Example.ORG\n").unwrap(), {
            "ada.l+x%y_z-1@mail.example.org"
        });
        for bad in [
            "", "a", "a@", "@b.de", "a@b", "a@b.c", "a@.de", "a b@c.de", "a@b@c.de", "a@b.d3",
            "ä@b.de", "a@bä.de", "a@b.de.", "a@b_c.de", "\u{212a}@b.de", "a@b.\u{212a}k",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert!(parse(&format!("{}@b.de", "a".repeat(249))).is_some());
        assert!(parse(&format!("{}@b.de", "a".repeat(250))).is_none());
        // The required pattern allows this.
        assert!(parse("a@..de").is_some());
    }

    #[test]
    fn passwords_are_counted_in_characters() {
        assert!(NewPassword::check("äöüäö").is_err());
        assert!(NewPassword::check("äöüäöü").is_ok());
    }

    #[test]
    fn secrets_differ() {
        let (one, two) = (random_secret().unwrap(), random_secret().unwrap());
        assert_eq!(one.len(), 43);
        assert_ne!(one, two);
    }
}
