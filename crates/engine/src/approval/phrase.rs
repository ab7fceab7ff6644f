//! Rights in plain words.

use savoir_skill::permission::{Domain, Level, Permission};

use super::{Added, interpreter::is_interpreter, shown};

/// A right in words, and whether it needs a second look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Phrase {
    pub(super) text: String,
    pub(super) is_grave: bool,
}

fn plain(text: String) -> Phrase {
    Phrase { text, is_grave: false }
}

fn grave(text: impl Into<String>) -> Phrase {
    Phrase { text: text.into(), is_grave: true }
}

/// What a permission lets a skill do; nothing for `none`.
pub(super) fn permission(permission: &Permission) -> Vec<Phrase> {
    let scope = permission.scope.as_deref();
    let phrase = match (permission.domain, permission.level) {
        (_, Level::None) => return Vec::new(),
        (Domain::Shell, _) => return programs(scope),
        (Domain::Filesystem, Level::Write) => {
            files("may create, change and delete", scope, "any file that you can change")
        }
        (Domain::Filesystem, _) => files("may read", scope, "any file that you can read"),
        (Domain::Network, Level::Write) => hosts(
            "may send requests that change things (POST, PUT, DELETE…) to",
            scope,
            "any host on the internet",
        ),
        (Domain::Network, _) => hosts("may fetch from", scope, "any host on the internet"),
        (Domain::Desktop, _) => grave("may control your screen, keyboard and pointer"),
        (Domain::Mcp, _) => match scope {
            Some(server) => plain(format!("may use the MCP server {}", shown(server))),
            None => grave("may use any MCP server"),
        },
        (Domain::Env, _) => variables(scope),
        (Domain::Database, Level::Write) => databases("may read and change", scope),
        (Domain::Database, _) => databases("may read", scope),
    };
    vec![phrase]
}

/// What a person adds.
pub(super) fn added(added: Added, entry: &str) -> Vec<Phrase> {
    match added {
        Added::Host => vec![hosts("may send any request to", Some(entry), "")],
        Added::PrivateHost => {
            let host = look_alike(entry);
            vec![grave(format!("may send any request to {host}, inside your own network"))]
        }
        _ => permission(&added.permission(entry)),
    }
}

/// A program with a warning if it can become any other.
pub(super) fn program(name: &str) -> Phrase {
    let shown = look_alike(name);
    if is_interpreter(name) {
        grave(format!("may run {shown}, which equals any code"))
    } else {
        plain(format!("may run {shown}"))
    }
}

fn programs(scope: Option<&str>) -> Vec<Phrase> {
    match scope {
        None => vec![grave("may run any program, which equals any code")],
        Some(names) => names.split(',').map(|name| program(name.trim())).collect(),
    }
}

fn files(verb: &str, scope: Option<&str>, everything: &str) -> Phrase {
    let Some(scope) = scope else { return grave(format!("{verb} {everything}")) };
    let is_pattern = |text: &str| text.contains(['*', '?', '[', '{']);
    let folder = scope.strip_suffix("/**").filter(|folder| !is_pattern(folder));
    match folder {
        // `/**`
        Some("") => grave(format!("{verb} {everything}")),
        Some("~") => grave(format!("{verb} files anywhere in your home folder")),
        Some(".") => plain(format!("{verb} files below the working folder")),
        Some(folder) => plain(format!("{verb} files below {}", shown(folder))),
        None if matches!(scope, "**" | "/" | "~") => {
            grave(format!("{verb} what {scope} names: more than one skill should need"))
        }
        None if is_pattern(scope) => plain(format!("{verb} files that match {}", shown(scope))),
        None => plain(format!("{verb} {}", shown(scope))),
    }
}

fn hosts(verb: &str, scope: Option<&str>, everything: &str) -> Phrase {
    match scope {
        None => grave(format!("{verb} {everything}")),
        Some(scope) => match scope.strip_prefix("*.") {
            Some(host) => plain(format!("{verb} {} and all hosts below it", look_alike(host))),
            None if is_own(scope) => {
                let host = look_alike(scope);
                grave(format!("{verb} {host}, which may be inside your own network"))
            }
            None => plain(format!("{verb} {}", look_alike(scope))),
        },
    }
}

/// Whether a scope names this machine, or an address that may be in the user's own network.
fn is_own(scope: &str) -> bool {
    let rest = scope.split_once("://").map_or(scope, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    let bare = |text: &str| text.parse::<std::net::IpAddr>().is_ok();
    host.eq_ignore_ascii_case("localhost") || bare(host) || bare(authority)
}

fn variables(scope: Option<&str>) -> Phrase {
    match scope {
        None | Some("*") => grave("may read all environment variables, with the secrets in them"),
        Some(name) if name.contains(['*', '?']) => {
            grave(format!("may read the environment variables that match {}", shown(name)))
        }
        Some(name) => plain(format!("may read the environment variable {}", shown(name))),
    }
}

fn databases(verb: &str, scope: Option<&str>) -> Phrase {
    match scope {
        None => grave(format!("{verb} any database")),
        Some(scope) => plain(format!("{verb} the database {}", shown(scope))),
    }
}

/// A name in which a letter of another script could pass for one that is known.
fn look_alike(name: &str) -> String {
    let note = if name.is_ascii() { "" } else { " (not plain ASCII: look closely)" };
    format!("{}{note}", shown(name))
}
