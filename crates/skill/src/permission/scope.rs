//! Checks whether a scope is valid in its domain.

use std::fmt;

use super::Domain;

/// Why a scope is invalid, and how to correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeProblem {
    /// What is wrong with it.
    pub reason: String,
    /// How to write it.
    pub hint: &'static str,
}

impl fmt::Display for ScopeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.hint)
    }
}

impl ScopeProblem {
    pub(super) fn new(reason: impl Into<String>, hint: &'static str) -> Self {
        Self { reason: reason.into(), hint }
    }
}

/// Returns the problem of the scope if it is invalid.
pub(super) fn problem(domain: Domain, scope: &str) -> Option<ScopeProblem> {
    if scope.contains(char::is_control) {
        return Some(ScopeProblem::new("the scope contains a control character", "remove it"));
    }
    match domain {
        Domain::Filesystem => filesystem(scope),
        Domain::Network => network(scope),
        Domain::Shell => scope.split(',').find_map(program),
        Domain::Desktop => Some(ScopeProblem::new("desktop has no scope", "remove it")),
        Domain::Mcp => server(scope),
        Domain::Env => variable(scope),
        Domain::Database => None,
    }
}

fn filesystem(scope: &str) -> Option<ScopeProblem> {
    let hint = "name the directory itself";
    if scope.trim().is_empty() {
        return Some(ScopeProblem::new("the path is empty", hint));
    }
    if ["filesystem:read:", "filesystem:write:"].iter().any(|start| scope.starts_with(start)) {
        let reason = format!("`{scope}` is a permission, not a path");
        return Some(ScopeProblem::new(reason, "write only the path, such as ./data/**"));
    }
    let climbs = scope.split(['/', '\\']).any(|part| part == "..");
    climbs.then(|| ScopeProblem::new(format!("`{scope}` climbs with `..`"), hint))
}

fn program(name: &str) -> Option<ScopeProblem> {
    let name = name.trim();
    if name.is_empty() {
        Some(ScopeProblem::new("the list of programs has an empty entry", "remove it"))
    } else if name.contains(['/', '\\']) {
        let hint = "use only the name of the program";
        Some(ScopeProblem::new(format!("`{name}` is a path"), hint))
    } else if name.contains(char::is_whitespace) {
        let hint = "use program names without arguments";
        Some(ScopeProblem::new(format!("`{name}` has spaces"), hint))
    } else {
        None
    }
}

fn server(scope: &str) -> Option<ScopeProblem> {
    let blank = scope.contains(char::is_whitespace);
    blank.then(|| ScopeProblem::new(format!("`{scope}` has spaces"), "use the id of one server"))
}

fn variable(scope: &str) -> Option<ScopeProblem> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fine = !scope.is_empty()
        && scope.chars().all(|c| word(c) || matches!(c, '*' | '?'))
        && !scope.starts_with(|c: char| c.is_ascii_digit());
    let hint = "use letters, digits and `_`, such as API_KEY or APP_*";
    (!fine).then(|| ScopeProblem::new(format!("`{scope}` is not a variable name"), hint))
}

fn network(scope: &str) -> Option<ScopeProblem> {
    if scope == "*" {
        let hint = "leave the scope out instead";
        return Some(ScopeProblem::new("`*` means every host", hint));
    }
    let (scheme, rest) = match scope.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, scope),
    };
    let fine = scheme.map_or_else(|| !scope.contains(['/', '?', '#']), is_scheme);
    if !fine || !is_authority(rest) {
        let hint = "write a host, *.host, host:port or a URL such as https://example.com:8443/api";
        return Some(ScopeProblem::new(format!("`{scope}` is not a host or URL"), hint));
    }
    if let Some(other) = scheme.filter(|scheme| !matches!(*scheme, "http" | "https")) {
        let hint = "write https:// or http://, or only the host";
        return Some(ScopeProblem::new(format!("`{other}` is not http or https"), hint));
    }
    let (host, _) = split_authority(rest);
    is_odd_address(host).then(|| {
        let hint = "write an IPv4 address as four decimal numbers";
        ScopeProblem::new(format!("`{host}` looks like an address"), hint)
    })
}

/// Whether some programs read the host as an IPv4 address and others as a name, such as `127.1` or
/// `0x7f.1`. The sandbox refuses these hosts, too.
fn is_odd_address(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host).to_ascii_lowercase();
    let is_number = !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    is_number && host.parse::<std::net::Ipv4Addr>().is_err()
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Host, optional port, and a path of which only blanks are refused.
fn is_authority(text: &str) -> bool {
    let (host, port) = split_authority(text);
    is_host(host)
        && port.is_none_or(|port| port.parse::<u16>().is_ok())
        && !text.contains(char::is_whitespace)
}

/// The host and the port of a scope without its scheme.
fn split_authority(text: &str) -> (&str, Option<&str>) {
    let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

fn is_host(text: &str) -> bool {
    if let Some(address) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let text = text.strip_prefix("*.").unwrap_or(text);
    let label = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
    };
    text.strip_suffix('.').unwrap_or(text).split('.').all(label)
}

#[cfg(test)]
mod tests {
    use crate::permission::Permission;

    fn problem(text: &str) -> Option<String> {
        let problem = Permission::parse(text).unwrap().scope_problem();
        problem.map(|problem| problem.to_string())
    }

    #[test]
    fn valid_scopes_are_accepted() {
        for text in [
            "filesystem:read",
            "filesystem:read:~/Documents/**",
            "filesystem:write:./out/*.csv",
            "network:read:api.example.com",
            "network:read:*.example.com",
            "network:read:localhost",
            "network:read:127.0.0.1",
            "network:read:[::1]",
            "network:read:api.example.com:8443",
            "network:read:[::1]:80",
            "network:read:10.0.0.1:8080",
            "network:read:host1.example",
            "network:read:0x.example",
            "network:write:https://example.com:8443/v1",
            "network:write:http://[::1]:80/",
            "network:write:https://*.example.com",
            "shell:execute:git, npm",
            "mcp:connect:filesystem-server",
            "env:read:API_KEY",
            "env:read:APP_*",
            "database:read:db.example.com",
            "database:write:./data/*.sqlite",
            "desktop:control",
            "network:none",
        ] {
            assert_eq!(problem(text), None, "{text}");
        }
    }

    #[test]
    fn invalid_scopes_are_rejected() {
        for (text, part) in [
            ("filesystem:read:../other", "`..`"),
            ("network:read:*", "leave the scope out"),
            ("network:read:example.com:99999", "such as https://"),
            ("network:read:a.com,b.com", "such as https://"),
            ("network:read:foo.*.com", "such as https://"),
            ("network:read:https://user@example.com", "such as https://"),
            ("network:read:https://example.com:99999", "such as https://"),
            ("network:read:https://", "such as https://"),
            ("network:read:ftp://example.com", "`ftp` is not http or https"),
            ("network:read:HTTPS://example.com", "`HTTPS` is not http or https"),
            ("network:read:127.1", "looks like an address"),
            ("network:write:0x7f.1", "looks like an address"),
            ("network:read:256.1.1.1:80", "looks like an address"),
            ("network:read:https://1.2.3/x", "looks like an address"),
            ("shell:execute:/usr/bin/git", "only the name"),
            ("shell:execute:git,,npm", "empty entry"),
            ("shell:execute:git status", "without arguments"),
            ("mcp:connect:a b", "one server"),
            ("env:read:1X", "variable name"),
            ("env:read:A B", "variable name"),
            ("desktop:control:screen", "has no scope"),
            ("env:none:HOME", "whole domain"),
            ("database:read:a\u{7}b", "control character"),
        ] {
            let found = problem(text).unwrap_or_default();
            assert!(found.contains(part), "{text}: {found}");
        }
    }
}
