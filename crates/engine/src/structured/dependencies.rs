//! Checks the other skills and MCP servers that a skill depends on.

use std::{collections::BTreeSet, fmt};

use savoir_skill::version::{SkillRef, parse_version};

/// A required skill that is missing or does not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnmetDependency {
    /// The skill is not installed.
    NotInstalled {
        /// The dependency as written.
        wanted: String,
    },
    /// The installed version does not match.
    OtherVersion {
        /// The dependency as written.
        wanted: String,
        installed: String,
    },
    /// The dependency is not `name@range`.
    Unreadable {
        /// The dependency as written.
        wanted: String,
        reason: String,
    },
}

impl fmt::Display for UnmetDependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInstalled { wanted } => write!(f, "{wanted} is not installed"),
            Self::OtherVersion { wanted, installed } => {
                write!(f, "{wanted} is needed, {installed} is installed")
            }
            Self::Unreadable { wanted, reason } => write!(f, "`{wanted}` cannot be read: {reason}"),
        }
    }
}

/// Returns the dependencies, written `name@range`, that no installed skill satisfies.
pub fn find_unmet_skills(
    wanted: &[impl AsRef<str>],
    installed: impl Fn(&SkillRef) -> Option<String>,
) -> Vec<UnmetDependency> {
    let unmet = |text: &str| {
        let wanted = text.to_owned();
        let reference = match SkillRef::parse(text) {
            Ok(reference) => reference,
            Err(error) => {
                return Some(UnmetDependency::Unreadable { wanted, reason: error.to_string() });
            }
        };
        let Some(installed) = installed(&reference) else {
            return Some(UnmetDependency::NotInstalled { wanted });
        };
        let fits = reference.range.is_any()
            || parse_version(&installed).is_ok_and(|version| reference.range.matches(&version));
        (!fits).then_some(UnmetDependency::OtherVersion { wanted, installed })
    };
    wanted.iter().filter_map(|text| unmet(text.as_ref())).collect()
}

/// Returns the MCP servers that are not configured, each once.
pub fn find_unknown_servers(wanted: &[impl AsRef<str>], known: &BTreeSet<String>) -> Vec<String> {
    let mut unknown: Vec<String> = Vec::new();
    for name in wanted.iter().map(AsRef::as_ref) {
        if !known.contains(name) && !unknown.iter().any(|seen| seen == name) {
            unknown.push(name.to_owned());
        }
    }
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installed_versions_are_compared_with_ranges() {
        let installed = |wanted: &SkillRef| match wanted.name.as_str() {
            "old" => Some("1.0.0".to_owned()),
            "odd" => Some("yesterday".to_owned()),
            _ => None,
        };
        let unmet = find_unmet_skills(
            &["old@^1", "old@>=2", "odd", "odd@1", "gone", "x@||", "@1"],
            installed,
        );
        let said: Vec<String> = unmet.iter().map(ToString::to_string).collect();
        assert_eq!(said[0], "old@>=2 is needed, 1.0.0 is installed");
        assert_eq!(said[1], "odd@1 is needed, yesterday is installed");
        assert_eq!(said[2], "gone is not installed");
        assert!(said[3].starts_with("`x@||` cannot be read"), "{said:?}");
        assert!(said[4].starts_with("`@1` cannot be read"), "{said:?}");
    }

    #[test]
    fn servers_by_name() {
        let known = BTreeSet::from(["a".to_owned()]);
        assert_eq!(find_unknown_servers(&["a", "b", "b"], &known), ["b"]);
    }
}
