//! Rights in plain words.

use savoir_skill::permission::{Domain, Level, Permission};

use super::{Added, interpreter::is_interpreter, shown};
use crate::grant::is_secret;

/// How much a right matters, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// Secrets and credentials.
    Secret,
    /// Hosts that receive data.
    Sends,
    /// Programs that run others, and everything without a limit.
    Everything,
    /// Files of the home folder.
    Home,
    Harmless,
}

/// A right in words, and whether it needs a second look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Phrase {
    /// What it lets a skill do.
    pub(super) verb: String,
    /// With what; empty if the verb says it all.
    pub(super) object: String,
    pub(super) weight: Weight,
}

impl Phrase {
    pub(super) fn text(&self) -> String {
        format!("{} {}", self.verb, self.object).trim_end().to_owned()
    }

    pub(super) fn is_grave(&self) -> bool {
        self.weight != Weight::Harmless
    }
}

fn plain(verb: &str, object: impl Into<String>) -> Phrase {
    weighed(Weight::Harmless, verb, object)
}

fn grave(text: impl Into<String>) -> Phrase {
    weighed(Weight::Everything, &text.into(), "")
}

fn weighed(weight: Weight, verb: &str, object: impl Into<String>) -> Phrase {
    Phrase { verb: verb.to_owned(), object: object.into(), weight }
}

/// What a permission lets a skill do; nothing for `none`. `stored` are the names of secrets that the
/// user stored and the skill would get.
pub(super) fn permission(permission: &Permission, stored: &[String]) -> Vec<Phrase> {
    let scope = permission.scope.as_deref();
    let phrase = match (permission.domain, permission.level) {
        (_, Level::None) => return Vec::new(),
        (Domain::Shell, _) => return programs(scope),
        (Domain::Filesystem, Level::Write) => {
            files("may create, change and delete", scope, "any file that you can change")
        }
        (Domain::Filesystem, _) => files("may read", scope, "any file that you can read"),
        (Domain::Network, Level::Write) => {
            hosts("may send data (POST, PUT, DELETE…) to", scope, Weight::Sends)
        }
        (Domain::Network, _) => hosts("may fetch from", scope, Weight::Harmless),
        (Domain::Desktop, _) => grave("may control your screen, keyboard and pointer"),
        (Domain::Mcp, _) => match scope {
            Some(server) => plain("may use the MCP server", shown(server)),
            None => grave("may use any MCP server"),
        },
        (Domain::Env, _) => variables(scope, stored),
        (Domain::Database, Level::Write) => databases("may read and change", scope),
        (Domain::Database, _) => databases("may read", scope),
    };
    vec![phrase]
}

/// What a person adds.
pub(super) fn added(added: Added, entry: &str, stored: &[String]) -> Vec<Phrase> {
    match added {
        Added::Host => vec![hosts("may send any request to", Some(entry), Weight::Sends)],
        Added::PrivateHost => {
            let object = format!("{}, inside your own network", look_alike(entry));
            vec![weighed(Weight::Sends, "may send any request to", object)]
        }
        _ => permission(&added.permission(entry), stored),
    }
}

/// A program with a warning if it can become any other.
pub(super) fn program(name: &str) -> Phrase {
    let shown = look_alike(name);
    if is_interpreter(name) {
        let object = format!("{shown}, which can run any other code");
        weighed(Weight::Everything, "may run", object)
    } else {
        plain("may run", shown)
    }
}

fn programs(scope: Option<&str>) -> Vec<Phrase> {
    match scope {
        None => vec![grave("may run any program of the system")],
        Some(names) => names.split(',').map(|name| program(name.trim())).collect(),
    }
}

/// Where people and programs keep what nobody else should have.
const CREDENTIALS: [&str; 19] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".mozilla",
    ".password-store",
    ".env",
    "gcloud",
    "gh",
    "keyrings",
    "shadow",
    "id_rsa",
    "id_ed25519",
];

fn files(verb: &str, scope: Option<&str>, everything: &str) -> Phrase {
    let Some(scope) = scope else { return grave(format!("{verb} {everything}")) };
    let is_pattern = |text: &str| text.contains(['*', '?', '[', '{']);
    let folder = scope.strip_suffix("/**").filter(|folder| !is_pattern(folder));
    let object = match folder {
        // `/**`
        Some("") => return grave(format!("{verb} {everything}")),
        Some("~") => {
            return weighed(Weight::Home, verb, "files anywhere in your home folder");
        }
        Some(".") => "files below the working folder".to_owned(),
        Some(folder) => format!("files below {}", shown(folder)),
        None if matches!(scope, "**" | "/" | "~") => {
            return grave(format!("{verb} what {scope} names: more than one skill should need"));
        }
        None if is_pattern(scope) => format!("files that match {}", shown(scope)),
        None => shown(scope),
    };
    if scope.split('/').any(|part| CREDENTIALS.contains(&part)) {
        return weighed(Weight::Secret, verb, format!("{object}, where credentials are kept"));
    }
    let weight = if scope.starts_with('~') { Weight::Home } else { Weight::Harmless };
    weighed(weight, verb, object)
}

fn hosts(verb: &str, scope: Option<&str>, weight: Weight) -> Phrase {
    let Some(scope) = scope else {
        return weighed(weight.min(Weight::Everything), verb, "any host on the internet");
    };
    match scope.strip_prefix("*.") {
        Some(host) => weighed(weight, verb, format!("{} and all hosts below it", look_alike(host))),
        None if is_own(scope) => {
            let object = format!("{}, which may be inside your own network", look_alike(scope));
            weighed(weight.min(Weight::Everything), verb, object)
        }
        None => weighed(weight, verb, look_alike(scope)),
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

fn variables(scope: Option<&str>, stored: &[String]) -> Phrase {
    let secret = |verb: &str, object: String| weighed(Weight::Secret, verb, object);
    match scope {
        None | Some("*") => {
            secret("may read all environment variables, with the secrets in them", String::new())
        }
        Some(name) if name.contains(['*', '?']) => {
            secret("may read the environment variables that match", shown(name))
        }
        Some(name) if stored.iter().any(|known| known == name) => {
            secret("gets the secret that you stored as", shown(name))
        }
        Some(name) if is_secret(name) => secret("may read the secret in", shown(name)),
        Some(name) => plain("may read the environment variable", shown(name)),
    }
}

fn databases(verb: &str, scope: Option<&str>) -> Phrase {
    match scope {
        None => grave(format!("{verb} any database")),
        Some(scope) => plain(&format!("{verb} the database"), shown(scope)),
    }
}

/// A name in which a letter of another script could pass for one that is known.
fn look_alike(name: &str) -> String {
    let is_encoded = name.split(['.', '/']).any(|label| label.starts_with("xn--"));
    let note = match (name.is_ascii(), is_encoded) {
        (false, _) => " (not plain ASCII: look closely)",
        (true, true) => " (letters that are not plain ASCII, encoded: look closely)",
        (true, false) => "",
    };
    format!("{}{note}", shown(name))
}
