//! The actor of a change and the scopes of its token.
//!
//! Registry scopes in a token's list: `registry:publish` allows everything that its user may
//! publish, `registry:publish:acme` only the namespace `acme`.

use std::{fmt, str::FromStr};

use super::{OwnerScope, RegistryError};
use crate::{ApiToken, User};

/// The scope of administrators.
const ADMIN_SCOPE: &str = "admin";

/// A right that a token can grant in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Right {
    /// Read from a private registry.
    Read,
    /// Publish versions and add signatures.
    Publish,
    /// Yank, deprecate and withdraw.
    Yank,
    /// Change members and keys.
    Own,
}

impl Right {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Publish, Self::Yank, Self::Own];

    /// Returns the scope that grants the right everywhere.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "registry:read",
            Self::Publish => "registry:publish",
            Self::Yank => "registry:yank",
            Self::Own => "registry:owner",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One scope of a token that concerns the registry: `registry:publish` or `registry:publish:acme`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The right that it grants.
    pub right: Right,
    /// The namespace or package; `None` for everywhere.
    pub place: Option<OwnerScope>,
}

impl Grant {
    fn covers(&self, right: Right, place: Option<&OwnerScope>) -> bool {
        self.right == right && (self.place.is_none() || self.place.as_ref() == place)
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            None => self.right.fmt(f),
            Some(place) => write!(f, "{}:{place}", self.right),
        }
    }
}

impl FromStr for Grant {
    type Err = RegistryError;

    fn from_str(text: &str) -> Result<Self, RegistryError> {
        let rest = |right: Right| Some((right, text.strip_prefix(right.as_str())?));
        match Right::ALL.into_iter().find_map(rest) {
            Some((right, "")) => Ok(Self { right, place: None }),
            Some((Right::Read, _)) => Err(RegistryError::Invalid {
                what: "the scope",
                message: "read access cannot be limited to a namespace: use registry:read"
                    .to_owned(),
            }),
            Some((right, rest)) if rest.starts_with(':') => {
                Ok(Self { right, place: Some(rest[1..].parse()?) })
            }
            _ => Err(RegistryError::Invalid {
                what: "the scope",
                message: format!(
                    "`{}` is none such as registry:publish or registry:publish:acme",
                    text.escape_debug()
                ),
            }),
        }
    }
}

impl ApiToken {
    /// Whether the scope concerns the registry.
    pub(super) fn counts_here(&self) -> bool {
        self.scopes.iter().any(|scope| scope == ADMIN_SCOPE || scope.parse::<Grant>().is_ok())
    }
}

/// The account and token that make a change. Every function that changes data checks their rights.
#[derive(Clone, Debug)]
pub struct Actor {
    pub(super) account: Option<i64>,
    pub(super) token: Option<String>,
    admin: bool,
    /// The scopes of the token; `None` for a logged-in user, whom no scopes limit.
    grants: Option<Vec<Grant>>,
}

impl Actor {
    /// The operator on the machine of the registry, who owns nothing and has all rights.
    pub fn operator() -> Self {
        Self { account: None, token: None, admin: true, grants: None }
    }

    /// A logged-in user.
    pub fn person(user: &User) -> Self {
        Self { account: Some(user.id), token: None, admin: user.is_admin(), grants: None }
    }

    /// A program with a user's token. Only registry scopes and `admin` count: without `admin`, the
    /// token of an administrator has no more rights than any other.
    pub fn program(user: &User, token: &ApiToken) -> Self {
        let grants = token.scopes.iter().filter_map(|scope| scope.parse().ok()).collect();
        Self {
            account: Some(user.id),
            token: Some(token.id.clone()),
            admin: user.is_admin() && token.scopes.iter().any(|scope| scope == ADMIN_SCOPE),
            grants: Some(grants),
        }
    }

    /// Whether the actor is an administrator.
    pub fn is_admin(&self) -> bool {
        self.admin
    }

    pub(super) fn check_admin(&self) -> Result<(), RegistryError> {
        if self.admin { Ok(()) } else { Err(RegistryError::NotAdmin) }
    }

    /// Checks that the token has a right for a scope, or everywhere. Logged-in users have all
    /// rights.
    pub fn check_right(
        &self,
        right: Right,
        place: Option<&OwnerScope>,
    ) -> Result<(), RegistryError> {
        match &self.grants {
            Some(grants) if !grants.iter().any(|grant| grant.covers(right, place)) => {
                Err(RegistryError::MissingScope { right, place: place.cloned() })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_text_round_trip() {
        for text in ["registry:read", "registry:publish:acme", "registry:owner:_/tool"] {
            assert_eq!(text.parse::<Grant>().unwrap().to_string(), text);
        }
        for text in [
            "", "admin", "registry:", "registry:publisher", "registry:publish:",
            "registry:read:acme", "x:acme",
        ] {
            assert!(text.parse::<Grant>().is_err(), "{text}");
        }
    }

    #[test]
    fn scope_is_limited_to_owner() {
        let [acme, other]: [OwnerScope; 2] = ["acme", "other"].map(|text| text.parse().unwrap());
        let grant: Grant = "registry:publish:acme".parse().unwrap();
        assert!(grant.covers(Right::Publish, Some(&acme)));
        assert!(!grant.covers(Right::Publish, Some(&other)));
        assert!(!grant.covers(Right::Publish, None));
        assert!(!grant.covers(Right::Yank, Some(&acme)));
        let grant: Grant = "registry:yank".parse().unwrap();
        assert!(grant.covers(Right::Yank, Some(&other)) && grant.covers(Right::Yank, None));
    }
}
