//! Decides whether one permission includes another.

use super::{Domain, Level, Permission};

impl Permission {
    /// Whether everything that `other` grants is granted by this one.
    ///
    /// ```
    /// use savoir_skill::permission::Permission;
    ///
    /// let covers = |outer: &str, inner: &str| {
    ///     Permission::parse(outer).unwrap().covers(&Permission::parse(inner).unwrap())
    /// };
    /// assert!(covers("network:read:*.example.com", "network:read:api.example.com"));
    /// assert!(!covers("network:read:*.example.com", "network:write:api.example.com"));
    /// assert!(covers("filesystem:read:./data/**", "filesystem:read:./data/2026/a.csv"));
    /// assert!(covers("shell:execute:git,npm", "shell:execute:git"));
    /// ```
    pub fn covers(&self, other: &Self) -> bool {
        if self.domain != other.domain || self.level == Level::None {
            return false;
        }
        // What can be changed can be read, as the sandbox shows it.
        let wider = matches!(self.domain, Domain::Filesystem | Domain::Database)
            && self.level == Level::Write
            && other.level == Level::Read;
        if self.level != other.level && !wider {
            return false;
        }
        match (&self.scope, &other.scope) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(outer), Some(inner)) => scope_covers(self.domain, outer, inner),
        }
    }
}

fn scope_covers(domain: Domain, outer: &str, inner: &str) -> bool {
    match domain {
        Domain::Shell => {
            let outer: Vec<&str> = outer.split(',').map(str::trim).collect();
            inner.split(',').all(|name| outer.contains(&name.trim()))
        }
        Domain::Network => host_covers(outer, inner),
        Domain::Filesystem | Domain::Database => path_covers(outer, inner),
        Domain::Env | Domain::Mcp | Domain::Desktop => outer == inner || name_covers(outer, inner),
    }
}

fn name_covers(outer: &str, inner: &str) -> bool {
    outer.strip_suffix('*').is_some_and(|prefix| inner.starts_with(prefix))
}

/// A path covers itself; a folder that ends in `/**` covers what is below.
fn path_covers(outer: &str, inner: &str) -> bool {
    let plain = |text: &str| text.strip_prefix("./").unwrap_or(text).to_owned();
    let (outer, inner) = (plain(outer), plain(inner));
    if outer == inner || outer == "**" {
        return true;
    }
    let folder = outer.strip_suffix("/**");
    folder.is_some_and(|folder| {
        let inside = inner.strip_suffix("/**").unwrap_or(&inner);
        inside == folder || inside.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    })
}

/// A host covers its default ports, a URL only the paths below it.
fn host_covers(outer: &str, inner: &str) -> bool {
    if outer == inner {
        return true;
    }
    match (outer.contains("://"), inner.contains("://")) {
        (false, false) => match outer.strip_prefix("*.") {
            Some(domain) => {
                let inner = inner.strip_prefix("*.").unwrap_or(inner);
                inner == domain
                    || inner.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
            }
            None => false,
        },
        (true, true) => inner
            .strip_prefix(outer.trim_end_matches('/'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(outer: &str, inner: &str) -> bool {
        Permission::parse(outer).unwrap().covers(&Permission::parse(inner).unwrap())
    }

    #[test]
    fn wider_covers_narrower() {
        for (outer, inner) in [
            ("filesystem:read", "filesystem:read:~/x"),
            ("filesystem:read:./data/**", "filesystem:read:data/a"),
            ("filesystem:read:./data/**", "filesystem:read:./data/deep/**"),
            ("filesystem:write:./out/**", "filesystem:read:./out/a"),
            ("network:read:*.a.com", "network:read:a.com"),
            ("network:read:*.a.com", "network:read:x.y.a.com"),
            ("network:read:https://a.com/api", "network:read:https://a.com/api/v1"),
            ("env:read:APP_*", "env:read:APP_KEY"),
            ("env:read", "env:read:HOME"),
        ] {
            assert!(covers(outer, inner), "{outer} {inner}");
        }
    }

    #[test]
    fn unrelated_permissions_do_not_cover() {
        for (outer, inner) in [
            ("filesystem:none", "filesystem:read:x"),
            ("filesystem:read:./data/**", "filesystem:read:./database"),
            ("filesystem:read:./data/**", "filesystem:write:./data/a"),
            ("filesystem:read:./data/*.csv", "filesystem:read:./data/a.txt"),
            ("filesystem:read:x", "filesystem:read"),
            ("network:read:*.a.com", "network:read:evila.com"),
            ("network:read:a.com", "network:read:b.a.com"),
            ("network:read:https://a.com/api", "network:read:https://a.com/apis"),
            ("shell:execute:git", "shell:execute:git,npm"),
            ("env:read:A", "env:read:AB"),
            ("network:read", "env:read"),
        ] {
            assert!(!covers(outer, inner), "{outer} {inner}");
        }
    }
}
