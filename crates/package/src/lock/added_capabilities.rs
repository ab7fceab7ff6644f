//! Finds permissions and tools that a new version requests and the locked one did not.

use std::fmt;

use savoir_skill::permission::{Domain, Level, Permission};
use semver::Version;

use super::{Lock, LockedSkill};

/// A permission or tool that a skill requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capability {
    Permission(Permission),
    /// A tool that the skill provides or uses.
    Tool(String),
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Permission(permission) => permission.fmt(f),
            Self::Tool(tool) => write!(f, "the tool `{tool}`"),
        }
    }
}

/// A capability that a new version requests and the locked one did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedCapability {
    pub skill: String,
    /// The version in the lock.
    pub from: Version,
    /// The new version.
    pub to: Version,
    pub capability: Capability,
}

impl fmt::Display for AddedCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { skill, from, to, capability } = self;
        write!(f, "`{skill}` {to} wants {capability}, which {from} did not have")
    }
}

impl Lock {
    /// Returns the additional capabilities of all skills in a new lock. Skills that are only in one
    /// of the locks are ignored: they are installed or removed.
    pub fn added_capabilities(&self, new: &Self) -> Vec<AddedCapability> {
        let both =
            new.skills.iter().filter_map(|(name, new)| Some((name, self.skills.get(name)?, new)));
        both.flat_map(|(name, old, new)| old.added_capabilities(name, new)).collect()
    }
}

impl LockedSkill {
    /// Returns the additional capabilities of a new version of this skill.
    pub fn added_capabilities(&self, name: &str, new: &Self) -> Vec<AddedCapability> {
        let permissions = added_permissions(&self.permissions, &new.permissions).into_iter();
        let tools = new.tools.iter().filter(|tool| !self.tools.contains(tool));
        let capabilities =
            permissions.map(Capability::Permission).chain(tools.cloned().map(Capability::Tool));
        let added_capabilities = capabilities.map(|capability| AddedCapability {
            skill: name.to_owned(),
            from: self.version.clone(),
            to: new.version.clone(),
            capability,
        });
        added_capabilities.collect()
    }
}

/// Returns the permissions that no old permission covers.
pub(crate) fn added_permissions(old: &[Permission], new: &[Permission]) -> Vec<Permission> {
    let old: Vec<Permission> = old.iter().flat_map(split_permission).collect();
    let covered = |new: &Permission| {
        // A permission with an invalid scope, or one with `..`, is only covered by an identical
        // permission.
        let sound = new.scope_problem().is_none() && !has_parent_part(new);
        old.iter().any(|old| old == new || sound && old.covers(new))
    };
    let wanted = new.iter().flat_map(split_permission).filter(|new| new.level != Level::None);
    wanted.filter(|new| !covered(new)).collect()
}

/// Splits a permission with a list of programs into one per program.
fn split_permission(permission: &Permission) -> Vec<Permission> {
    match &permission.scope {
        Some(scope) if permission.domain == Domain::Shell => {
            let one = |name: &str| Permission {
                scope: Some(name.trim().to_owned()),
                ..permission.clone()
            };
            scope.split(',').map(one).collect()
        }
        _ => vec![permission.clone()],
    }
}

fn has_parent_part(permission: &Permission) -> bool {
    let scope = permission.scope.as_deref().unwrap_or_default();
    scope.split(['/', '\\']).any(|part| part == ".." || part.eq_ignore_ascii_case("%2e%2e"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added_texts(old: &[&str], new: &[&str]) -> Vec<String> {
        let parse = |texts: &[&str]| -> Vec<Permission> {
            texts.iter().map(|text| Permission::parse(text).unwrap()).collect()
        };
        added_permissions(&parse(old), &parse(new)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn narrower_permission_is_not_added() {
        for (old, new) in [
            (&["network:read:*.a.com"][..], &["network:read:api.a.com"][..]),
            (&["filesystem:read"], &["filesystem:read:./data/**"]),
            (&["filesystem:write:./out/**"], &["filesystem:read:./out/a"]),
            (&["shell:execute:git,npm"], &["shell:execute:npm"]),
            (&["shell:execute:git", "shell:execute:npm"], &["shell:execute:npm, git"]),
            (&["database:write"], &["database:read"]),
            (&["env:read:APP_*"], &["env:read:APP_KEY", "network:none"]),
            (&["network:read:a.com"], &[]),
            (&["filesystem:read:../x"], &["filesystem:read:../x"]),
        ] {
            assert_eq!(added_texts(old, new), [""; 0], "{old:?} {new:?}");
        }
    }

    #[test]
    fn wider_permission_is_added() {
        for (old, new, added_capabilities) in [
            (
                &["network:read:api.a.com"][..],
                &["network:read:*.a.com"][..],
                &["network:read:*.a.com"][..],
            ),
            (&["network:read"], &["network:write"], &["network:write"]),
            (&["filesystem:read:./data/**"], &["filesystem:read"], &["filesystem:read"]),
            (&["shell:execute:git"], &["shell:execute:git,npm"], &["shell:execute:npm"]),
            (&["shell:none"], &["shell:execute:git"], &["shell:execute:git"]),
            (&[], &["env:read:KEY", "desktop:control"], &["env:read:KEY", "desktop:control"]),
            (
                &["filesystem:read:./data/**"],
                &["filesystem:read:./data/../../secret"],
                &["filesystem:read:./data/../../secret"],
            ),
            (
                &["network:read:https://a.com/api"],
                &["network:read:https://a.com/api/../admin"],
                &["network:read:https://a.com/api/../admin"],
            ),
        ] {
            assert_eq!(added_texts(old, new), added_capabilities, "{old:?} {new:?}");
        }
    }
}
