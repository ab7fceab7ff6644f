//! Converts permissions of dialects that write them differently.

use super::{Domain, Level, Permission};

/// The three permission lists of skillrt, and the permissions that they cannot express.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillrtPermissions {
    /// Hosts, or `*` for any.
    pub network: Vec<String>,
    /// Path globs that may be read and written.
    pub filesystem: Vec<String>,
    /// Names of variables that may be read.
    pub env: Vec<String>,
    /// Permissions that have no place in the lists.
    pub left_over: Vec<Permission>,
}

/// Both levels of the network, for every host: what `network: true` means in gibberish.
pub fn any_network() -> [Permission; 2] {
    [Level::Read, Level::Write].map(|level| Permission::unscoped(Domain::Network, level))
}

/// The permissions that the lists of skillrt grant, in their order.
///
/// A host and a path may be read and written; `*` among the hosts means any.
pub fn from_skillrt<S: AsRef<str>>(network: &[S], filesystem: &[S], env: &[S]) -> Vec<Permission> {
    let mut permissions = Vec::new();
    for (domain, scopes) in [(Domain::Network, network), (Domain::Filesystem, filesystem)] {
        for scope in scopes {
            let scope = scope_of(domain, scope.as_ref());
            for level in [Level::Read, Level::Write] {
                permissions.push(Permission { domain, level, scope: scope.clone() });
            }
        }
    }
    for name in env {
        let scope = scope_of(Domain::Env, name.as_ref());
        permissions.push(Permission { domain: Domain::Env, level: Level::Read, scope });
    }
    permissions
}

/// The word by which a list of skillrt means everything. For files, that is the home.
fn everything(domain: Domain) -> &'static str {
    if domain == Domain::Filesystem { "~/**" } else { "*" }
}

fn scope_of(domain: Domain, entry: &str) -> Option<String> {
    match (domain, entry) {
        // A relative glob, like all that begin with neither `/` nor `~`.
        (Domain::Filesystem, "**") => Some("./**".to_owned()),
        (Domain::Filesystem, entry) => Some(entry.to_owned()),
        (domain, entry) => (entry != everything(domain)).then(|| entry.to_owned()),
    }
}

/// Sorts permissions into the lists of skillrt.
///
/// A host or path is listed if it may be read and written; with one of the two the entry is left
/// over, since listing it would grant more. `none` is what an absent entry says already.
pub fn to_skillrt(permissions: &[Permission]) -> SkillrtPermissions {
    let mut lists = SkillrtPermissions::default();
    for permission in permissions {
        let target = match (permission.domain, permission.level) {
            (_, Level::None) => continue,
            (Domain::Network, _) if has_both_levels(permissions, permission) => &mut lists.network,
            (Domain::Filesystem, _) if has_both_levels(permissions, permission) => {
                &mut lists.filesystem
            }
            (Domain::Env, Level::Read) => &mut lists.env,
            _ => {
                lists.left_over.push(permission.clone());
                continue;
            }
        };
        let entry = permission.scope.as_deref().unwrap_or(everything(permission.domain));
        if !target.iter().any(|listed| listed == entry) {
            target.push(entry.to_owned());
        }
    }
    lists
}

fn has_both_levels(permissions: &[Permission], wanted: &Permission) -> bool {
    [Level::Read, Level::Write].into_iter().all(|level| {
        permissions
            .iter()
            .any(|p| p.domain == wanted.domain && p.level == level && p.scope == wanted.scope)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(permissions: &[Permission]) -> Vec<String> {
        permissions.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lists_become_permissions_and_back() {
        let permissions = from_skillrt(&["api.x.com", "*"], &["./out/**", "**"], &["HOME"]);
        assert_eq!(
            texts(&permissions),
            [
                "network:read:api.x.com", "network:write:api.x.com", "network:read",
                "network:write", "filesystem:read:./out/**", "filesystem:write:./out/**",
                "filesystem:read:./**", "filesystem:write:./**", "env:read:HOME",
            ]
        );
        let home =
            ["filesystem:read", "filesystem:write"].map(|text| Permission::parse(text).unwrap());
        assert_eq!(to_skillrt(&home).filesystem, ["~/**"]);
        let lists = to_skillrt(&permissions);
        assert_eq!(lists.network, ["api.x.com", "*"]);
        assert_eq!(lists.filesystem, ["./out/**", "./**"]);
        assert_eq!(lists.env, ["HOME"]);
        assert!(lists.left_over.is_empty());
        assert!(from_skillrt::<&str>(&[], &[], &[]).is_empty());
    }

    #[test]
    fn partial_grants_are_reported() {
        let entries = ["network:read:a.com", "filesystem:write:./x", "shell:execute", "env:none"];
        let permissions = entries.map(|text| Permission::parse(text).unwrap());
        let lists = to_skillrt(&permissions);
        assert_eq!(texts(&lists.left_over), &entries[..3]);
        assert!(lists.network.is_empty() && lists.filesystem.is_empty() && lists.env.is_empty());
    }

    #[test]
    fn gibberish_flag() {
        assert_eq!(texts(&any_network()), ["network:read", "network:write"]);
    }
}
