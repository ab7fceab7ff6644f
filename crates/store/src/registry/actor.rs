//! The actor of a change and the scopes of its token.
//!
//! A token's list of scopes has those of the registry among others: `registry:publish` is for
//! everything that its person may publish, `registry:publish:acme` only for what lies there.

use std::{fmt, str::FromStr};

use super::{OwnerScope, RegistryError};
use crate::{ApiToken, User};

/// The scope of those who may do everything.
const ADMIN_SCOPE: &str = "admin";

/// What a token can let a program do in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Right {
    /// Read what a private registry has.
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

    /// The scope that gives it everywhere.
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
    /// What may be done.
    pub right: Right,
    /// Where; everywhere if nothing is said.
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
                message: "who may read a registry reads all of it: write registry:read".to_owned(),
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
    /// Whether it may do something in the registry.
    pub(super) fn counts_here(&self) -> bool {
        self.scopes.iter().any(|scope| scope == ADMIN_SCOPE || scope.parse::<Grant>().is_ok())
    }
}

/// Who does something. What they may do is decided again by every function that changes something.
#[derive(Clone, Debug)]
pub struct Actor {
    pub(super) account: Option<i64>,
    pub(super) token: Option<String>,
    admin: bool,
    /// None for a person, whom nothing limits but who they are.
    grants: Option<Vec<Grant>>,
}

impl Actor {
    /// Who runs the program on the machine of the registry. They own nothing, and may do
    /// everything.
    pub fn operator() -> Self {
        Self { account: None, token: None, admin: true, grants: None }
    }

    /// A person who logged in.
    pub fn person(user: &User) -> Self {
        Self { account: Some(user.id), token: None, admin: user.is_admin(), grants: None }
    }

    /// A program with the token of a person. Scopes that are none of the registry's do not count,
    /// but for `admin`: without it, the token of an administrator is that of anybody.
    pub fn program(user: &User, token: &ApiToken) -> Self {
        let grants = token.scopes.iter().filter_map(|scope| scope.parse().ok()).collect();
        Self {
            account: Some(user.id),
            token: Some(token.id.clone()),
            admin: user.is_admin() && token.scopes.iter().any(|scope| scope == ADMIN_SCOPE),
            grants: Some(grants),
        }
    }

    /// Whether they may do everything.
    pub fn is_admin(&self) -> bool {
        self.admin
    }

    pub(super) fn check_admin(&self) -> Result<(), RegistryError> {
        if self.admin { Ok(()) } else { Err(RegistryError::NotAdmin) }
    }

    /// Whether a token has a right at a place, or everywhere. A person has all.
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
    fn scopes_as_text() {
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
