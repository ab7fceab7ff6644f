//! Defines permissions: one capability model for every dialect, written `domain:level[:scope]`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

mod cover;
mod foreign;
mod protected;
mod scope;
mod tier;

pub use foreign::{SkillrtPermissions, any_network, from_skillrt, to_skillrt};
pub use protected::{PROTECTED_IN_GIT, PROTECTED_IN_HOME, PROTECTED_IN_PROJECT};
pub use scope::ScopeProblem;
pub use tier::{Decision, Tier, UnknownTier, decision, effective};

/// A kind of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Domain {
    /// Files and directories.
    Filesystem,
    /// Hosts and URLs.
    Network,
    /// Programs.
    Shell,
    /// Screen, keyboard and pointer.
    Desktop,
    /// MCP servers.
    Mcp,
    /// Environment variables.
    Env,
    /// Databases.
    Database,
}

impl Domain {
    /// All domains, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Filesystem,
        Self::Network,
        Self::Shell,
        Self::Desktop,
        Self::Mcp,
        Self::Env,
        Self::Database,
    ];

    /// The name of the domain in a permission.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Filesystem => "filesystem",
            Self::Network => "network",
            Self::Shell => "shell",
            Self::Desktop => "desktop",
            Self::Mcp => "mcp",
            Self::Env => "env",
            Self::Database => "database",
        }
    }

    /// The levels the domain defines; the last is always [`Level::None`].
    pub fn levels(self) -> &'static [Level] {
        match self {
            Self::Filesystem | Self::Network | Self::Database => {
                &[Level::Read, Level::Write, Level::None]
            }
            Self::Shell => &[Level::Execute, Level::None],
            Self::Desktop => &[Level::Control, Level::None],
            Self::Mcp => &[Level::Connect, Level::None],
            Self::Env => &[Level::Read, Level::None],
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An access level for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Read the resource.
    Read,
    /// Change the resource.
    Write,
    /// Run the program.
    Execute,
    /// Operate the device.
    Control,
    /// Connect to the resource.
    Connect,
    /// No access, declared explicitly.
    None,
}

impl Level {
    /// The name of the level in a permission.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
            Self::Control => "control",
            Self::Connect => "connect",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One entry of a list of permissions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permission {
    /// The kind of resource.
    pub domain: Domain,
    /// The access level.
    pub level: Level,
    /// The resources; `None` means all of the domain.
    pub scope: Option<String>,
}

/// Why a permission cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PermissionError {
    /// The entry is blank.
    #[error("the permission is empty, write it as domain:level or domain:level:scope")]
    Empty,
    /// The entry has no colon.
    #[error("`{text}` has no level, write it as domain:level or domain:level:scope")]
    MissingLevel {
        /// The entry without its surrounding blanks.
        text: String,
    },
    /// The first part is not a domain.
    #[error("`{found}` is not a permission domain, expected one of {}", list(&Domain::ALL))]
    UnknownDomain {
        /// The first part.
        found: String,
    },
    /// The second part is not a level of the domain.
    #[error("`{found}` is not a level of {domain}, expected one of {}", list(domain.levels()))]
    UnknownLevel {
        /// The first part.
        domain: Domain,
        /// The second part.
        found: String,
    },
}

impl PermissionError {
    /// The stable identifier of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::MissingLevel { .. } => "missing-level",
            Self::UnknownDomain { .. } => "unknown-domain",
            Self::UnknownLevel { .. } => "unknown-level",
        }
    }
}

fn list(items: &[impl fmt::Display]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Permission {
    /// A permission for all resources of the domain.
    pub fn unscoped(domain: Domain, level: Level) -> Self {
        Self { domain, level, scope: None }
    }

    /// Parses `domain:level[:scope]`; only the first two colons separate.
    pub fn parse(text: &str) -> Result<Self, PermissionError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(PermissionError::Empty);
        }
        let Some((domain, rest)) = text.split_once(':') else {
            return Err(PermissionError::MissingLevel { text: text.to_owned() });
        };
        let (level, scope) = rest.split_once(':').unwrap_or((rest, ""));
        let domain = find_domain(domain.trim())?;
        let level = find_level(domain, level.trim())?;
        let scope = scope.trim();
        let scope = (!scope.is_empty()).then(|| scope.to_owned());
        Ok(Self { domain, level, scope })
    }

    /// Returns why the permission can never be granted, and a hint.
    pub fn refusal(&self) -> Option<(&'static str, &'static str)> {
        if self.level == Level::None {
            return None;
        }
        match self.domain {
            Domain::Desktop => Some((
                "screen, keyboard and pointer cannot be shared in part",
                "remove it from the skill, or use the skill in a program that controls the desktop",
            )),
            Domain::Mcp => Some((
                "a tool in the sandbox has no MCP client; only the agent has one",
                "remove it from the skill, and say in its text which MCP server the agent needs",
            )),
            Domain::Database if self.scope.is_none() => Some((
                "it does not say which database",
                if self.level == Level::Write {
                    "name the SQLite file: database:write:./data/app.sqlite"
                } else {
                    "name the SQLite file: database:read:./data/app.sqlite"
                },
            )),
            Domain::Database if !self.is_database_file() => Some((
                "a database server cannot be limited to reading or to tables, and programs in the \
                 sandbox reach hosts only by HTTP",
                "use a database that is a file, such as database:read:./data/app.sqlite, or an HTTP \
                 API of the database, with network:read or network:write and its host",
            )),
            _ => None,
        }
    }

    /// Whether the scope is a path, not a host name or empty.
    fn is_database_file(&self) -> bool {
        let Some(scope) = &self.scope else { return false };
        let ends = [".sqlite", ".sqlite3", ".db", ".duckdb"];
        let is_path = (scope.contains('/') || scope.starts_with('~')) && !scope.contains("://");
        !scope.ends_with("**") && (is_path || ends.iter().any(|end| scope.ends_with(end)))
    }

    /// Returns why the scope is meaningless, if it is.
    pub fn scope_problem(&self) -> Option<ScopeProblem> {
        let scope = self.scope.as_deref()?;
        if self.level == Level::None {
            return Some(ScopeProblem::new(
                "`none` covers the whole domain",
                "leave the scope out",
            ));
        }
        scope::problem(self.domain, scope)
    }
}

/// The regular expression of `domain:level[:scope]`, for the JSON Schema.
pub(crate) fn pattern() -> String {
    let domains = Domain::ALL.map(|domain| {
        let levels: Vec<_> = domain.levels().iter().map(|level| level.as_str()).collect();
        format!("{domain}:({})", levels.join("|"))
    });
    format!("^({})(:.*)?$", domains.join("|"))
}

fn find_domain(text: &str) -> Result<Domain, PermissionError> {
    Domain::ALL
        .into_iter()
        .find(|domain| domain.as_str() == text)
        .ok_or_else(|| PermissionError::UnknownDomain { found: text.to_owned() })
}

fn find_level(domain: Domain, text: &str) -> Result<Level, PermissionError> {
    let level = domain.levels().iter().copied().find(|level| level.as_str() == text);
    level.ok_or_else(|| PermissionError::UnknownLevel { domain, found: text.to_owned() })
}

impl FromStr for Permission {
    type Err = PermissionError;

    fn from_str(text: &str) -> Result<Self, PermissionError> {
        Self::parse(text)
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.domain, self.level)?;
        match &self.scope {
            Some(scope) => write!(f, ":{scope}"),
            None => Ok(()),
        }
    }
}

impl Serialize for Permission {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Permission {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

/// A domain that has both `none` and another level in one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The affected domain.
    pub domain: Domain,
    /// Position of the first `domain:none`.
    pub none: usize,
    /// Position of the first entry with another level.
    pub other: usize,
}

/// The domains that have both `none` and another level, in order of [`Domain::ALL`].
pub fn contradictions(permissions: &[Permission]) -> Vec<Contradiction> {
    let position = |domain, wants_none: bool| {
        permissions
            .iter()
            .position(|p| p.domain == domain && (p.level == Level::None) == wants_none)
    };
    let contradiction = |domain| {
        let (none, other) = (position(domain, true)?, position(domain, false)?);
        Some(Contradiction { domain, none, other })
    };
    Domain::ALL.into_iter().filter_map(contradiction).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Permission {
        Permission::parse(text).unwrap()
    }

    fn code(text: &str) -> &'static str {
        Permission::parse(text).unwrap_err().code()
    }

    #[test]
    fn the_pattern_lists_what_parses() {
        let pattern = pattern();
        assert!(pattern.starts_with("^(filesystem:("), "{pattern}");
        assert!(pattern.ends_with("))(:.*)?$"), "{pattern}");
        for domain in Domain::ALL {
            let levels: Vec<_> = domain.levels().iter().map(|level| level.as_str()).collect();
            assert!(pattern.contains(&format!("{domain}:({})", levels.join("|"))), "{pattern}");
        }
    }

    #[test]
    fn parts_are_trimmed_and_only_two_colons_separate() {
        let permission = parse(" network : read : https://api.example.com:8443/v1 ");
        assert_eq!((permission.domain, permission.level), (Domain::Network, Level::Read));
        assert_eq!(permission.scope.as_deref(), Some("https://api.example.com:8443/v1"));
        assert_eq!(permission.to_string(), "network:read:https://api.example.com:8443/v1");
        assert_eq!(parse("env:read: ").scope, None);
        assert_eq!(parse("env:read:").to_string(), "env:read");
        assert_eq!(parse("filesystem:write:C::x").scope.as_deref(), Some("C::x"));
    }

    #[test]
    fn every_level_of_every_domain() {
        for domain in Domain::ALL {
            for level in domain.levels() {
                let text = format!("{domain}:{level}");
                assert_eq!(parse(&text), Permission::unscoped(domain, *level));
            }
            assert_eq!(domain.levels().last(), Some(&Level::None));
        }
    }

    #[test]
    fn errors_have_codes_and_say_what_is_expected() {
        assert_eq!(code(""), "empty");
        assert_eq!(code(" \t"), "empty");
        assert_eq!(code("network"), "missing-level");
        assert_eq!(code("teleport"), "missing-level");
        assert_eq!(code(":read"), "unknown-domain");
        assert_eq!(code("Network:read"), "unknown-domain");
        assert_eq!(code("network:"), "unknown-level");
        assert_eq!(code("network:Read"), "unknown-level");
        assert_eq!(code("env:write"), "unknown-level");
        assert_eq!(
            Permission::parse("shell:read").unwrap_err().to_string(),
            "`read` is not a level of shell, expected one of execute, none"
        );
        assert!(Permission::parse("x:y").unwrap_err().to_string().ends_with("env, database"));
    }

    #[test]
    fn serialises_as_one_string() {
        let json = serde_json::to_string(&parse("shell:execute:git")).unwrap();
        assert_eq!(json, "\"shell:execute:git\"");
        assert_eq!(serde_json::from_str::<Permission>(&json).unwrap(), parse("shell:execute:git"));
        assert!(serde_json::from_str::<Permission>("\"shell\"").is_err());
    }

    #[test]
    fn databases_without_a_file_are_refused_with_a_hint_that_works() {
        let refusal = |text: &str| parse(text).refusal();
        for level in ["read", "write"] {
            let (reason, hint) = refusal(&format!("database:{level}")).unwrap();
            assert_eq!(reason, "it does not say which database");
            let file = format!("database:{level}:./data/app.sqlite");
            assert_eq!(hint, format!("name the SQLite file: {file}"));
            assert_eq!(refusal(&file), None);
        }
        let (reason, hint) = refusal("database:read:db.example.com").unwrap();
        assert!(reason.starts_with("a database server cannot be limited"), "{reason}");
        assert!(!hint.contains("network:write:HOST"), "drivers cannot connect: {hint}");
        assert!(hint.contains("database:read:./data/app.sqlite"), "{hint}");
        assert_eq!(refusal("database:none"), None);
    }

    #[test]
    fn none_beside_another_level_is_a_contradiction() {
        let entries =
            ["env:read:HOME", "network:none", "env:none", "network:none", "shell:execute"];
        let permissions = entries.map(parse);
        assert_eq!(
            contradictions(&permissions),
            [Contradiction { domain: Domain::Env, none: 2, other: 0 }]
        );
    }
}
