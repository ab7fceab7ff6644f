//! Describes permissions in English sentences.

use savoir_lint::words::and;
use savoir_skill::permission::{Domain, Level, Permission};

/// Describes what a skill may do, one line for each kind and scope; one line says so if it may do
/// nothing.
pub fn permission_lines(permissions: &[Permission]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for permission in permissions {
        let line = line(permission, permissions);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if lines.is_empty() {
        lines.push("none: no network, no files, no environment variables".to_owned());
    }
    lines
}

fn line(permission: &Permission, all: &[Permission]) -> String {
    let Permission { domain, level, scope } = permission;
    if *level == Level::None {
        return match domain {
            Domain::Filesystem => "no files".to_owned(),
            Domain::Network => "no network".to_owned(),
            Domain::Shell => "no programs".to_owned(),
            Domain::Desktop => "no screen, keyboard or pointer".to_owned(),
            Domain::Mcp => "no MCP servers".to_owned(),
            Domain::Env => "no environment variables".to_owned(),
            Domain::Database => "no databases".to_owned(),
        };
    }
    // Reading and writing the same scope are described on one line.
    let has = |level: Level| {
        all.iter()
            .any(|other| other.domain == *domain && other.level == level && other.scope == *scope)
    };
    let verbs = |read: &'static str, write: &'static str| {
        let both = [(Level::Read, read), (Level::Write, write)];
        and(&both
            .iter()
            .filter(|(level, _)| has(*level))
            .map(|(_, verb)| *verb)
            .collect::<Vec<_>>())
    };
    let place = |all: &str, one: &str| {
        scope.as_ref().map_or_else(|| all.to_owned(), |scope| format!("{one}{scope}"))
    };
    match domain {
        Domain::Filesystem => format!("{} {}", verbs("read", "write"), place("any file", "")),
        Domain::Network => {
            format!("{} {}", verbs("fetch from", "send to"), place("any host on the internet", ""))
        }
        Domain::Shell => format!("run {}", place("any program", "")),
        Domain::Desktop => "control screen, keyboard and pointer".to_owned(),
        Domain::Mcp => format!("talk to {}", place("any MCP server", "the MCP server ")),
        Domain::Env => {
            format!("read {}", place("any environment variable", "the environment variable "))
        }
        Domain::Database => {
            format!("{} {}", verbs("read", "change"), place("any database", "the database "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(permissions: &[&str]) -> Vec<String> {
        let all: Vec<_> = permissions.iter().map(|text| Permission::parse(text).unwrap()).collect();
        permission_lines(&all)
    }

    #[test]
    fn words_for_every_domain() {
        assert_eq!(
            lines(&[
                "network:read:github.com", "network:write:github.com", "network:read",
                "filesystem:write:./out/**", "shell:execute:git,ls", "shell:execute",
                "desktop:control", "mcp:connect:files", "env:read:TOKEN", "database:write",
            ]),
            [
                "fetch from and send to github.com",
                "fetch from any host on the internet",
                "write ./out/**",
                "run git,ls",
                "run any program",
                "control screen, keyboard and pointer",
                "talk to the MCP server files",
                "read the environment variable TOKEN",
                "change any database",
            ]
        );
        assert_eq!(lines(&["network:none", "filesystem:none"]), ["no network", "no files"]);
    }

    #[test]
    fn no_permissions_have_one_line() {
        assert_eq!(lines(&[]), ["none: no network, no files, no environment variables"]);
    }
}
