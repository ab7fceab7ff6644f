//! Defines trust tiers and the permissions that each one grants without asking.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Domain, Level, Permission};

/// How far a skill is trusted, from least to most.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Unsigned.
    #[default]
    Experimental,
    /// A trusted publisher signed it.
    Community,
    /// The vendor signed it.
    Verified,
}

impl Tier {
    /// All tiers, from least to most trusted.
    pub const ALL: [Self; 3] = [Self::Experimental, Self::Community, Self::Verified];

    /// The name of the tier.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Experimental => "experimental",
            Self::Community => "community",
            Self::Verified => "verified",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is not a tier.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a security tier, expected experimental, community or verified")]
pub struct UnknownTier(pub String);

impl FromStr for Tier {
    type Err = UnknownTier;

    fn from_str(text: &str) -> Result<Self, UnknownTier> {
        let tier = Self::ALL.into_iter().find(|tier| tier.as_str() == text);
        tier.ok_or_else(|| UnknownTier(text.to_owned()))
    }
}

/// The tier that counts: never more than the skill claims, never more than its signature attests.
pub fn effective(claimed: Tier, attested: Tier) -> Tier {
    claimed.min(attested)
}

/// Whether a permission is granted, asked for or denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Granted without a question.
    Auto,
    /// The user is asked.
    Prompt,
    /// Granted inside the sandbox with limits on CPU and memory.
    Sandboxed,
    /// `domain:none` grants nothing.
    NotNeeded,
}

/// Returns the decision of a tier about a permission.
pub fn decision(tier: Tier, permission: &Permission) -> Decision {
    match (permission.level, tier) {
        (Level::None, _) => Decision::NotNeeded,
        (_, Tier::Experimental) => Decision::Sandboxed,
        (level, Tier::Community) if reaches_out(permission.domain, level) => Decision::Prompt,
        (_, Tier::Community | Tier::Verified) => Decision::Auto,
    }
}

/// Whether the grant can change the user's things or read secrets.
fn reaches_out(domain: Domain, level: Level) -> bool {
    match domain {
        Domain::Filesystem | Domain::Database => level == Level::Write,
        Domain::Shell | Domain::Desktop | Domain::Env => true,
        Domain::Network | Domain::Mcp => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_of_decisions() {
        for (text, community) in [
            ("filesystem:read", Decision::Auto),
            ("filesystem:write:./x", Decision::Prompt),
            ("network:read", Decision::Auto),
            ("network:write", Decision::Auto),
            ("shell:execute:git", Decision::Prompt),
            ("desktop:control", Decision::Prompt),
            ("mcp:connect:x", Decision::Auto),
            ("database:read", Decision::Auto),
            ("database:write", Decision::Prompt),
            ("env:read:A", Decision::Prompt),
        ] {
            let permission = Permission::parse(text).unwrap();
            assert_eq!(decision(Tier::Verified, &permission), Decision::Auto, "{text}");
            assert_eq!(decision(Tier::Community, &permission), community, "{text}");
            assert_eq!(decision(Tier::Experimental, &permission), Decision::Sandboxed, "{text}");
        }
        for domain in Domain::ALL {
            for tier in Tier::ALL {
                let none = Permission::unscoped(domain, Level::None);
                assert_eq!(decision(tier, &none), Decision::NotNeeded);
            }
        }
    }

    #[test]
    fn the_lower_tier_counts() {
        for claimed in Tier::ALL {
            for attested in Tier::ALL {
                let tier = effective(claimed, attested);
                assert!(tier <= claimed && tier <= attested);
                assert!(tier == claimed || tier == attested);
            }
        }
        assert!(Tier::Experimental < Tier::Community && Tier::Community < Tier::Verified);
    }

    #[test]
    fn tiers_are_read_as_written() {
        for tier in Tier::ALL {
            assert_eq!(tier.as_str().parse(), Ok(tier));
            assert_eq!(serde_json::to_value(tier).unwrap(), tier.to_string());
        }
        assert_eq!("Verified".parse::<Tier>(), Err(UnknownTier("Verified".into())));
        assert_eq!(Tier::default(), Tier::Experimental);
    }
}
