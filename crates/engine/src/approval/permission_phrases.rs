//! Describes permissions in plain English.

use savoir_skill::permission::{Domain, Level, Permission};

use super::{
    GrantKind,
    interpreter::is_interpreter,
    look_alike::{CheckedName, add_look_alike_warning},
    printable,
};
use crate::grant::is_secret;

/// The severity of a permission, the most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// Files that contain credentials.
    Credentials,
    /// Secrets in variables.
    Secret,
    /// Hosts that receive data.
    Sends,
    /// Programs that run others, and everything without a limit.
    Everything,
    /// Names that look like others.
    LookAlike,
    /// Files of the home folder, of the system, and changes outside of the working folder.
    Outside,
    Harmless,
}

/// The description of a permission, and its severity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Phrase {
    /// The verb: what the skill may do.
    pub(super) verb: String,
    /// The files, hosts or programs that the verb is about; empty if the verb needs no object.
    pub(super) object: String,
    /// The plural name of the objects.
    pub(super) objects: &'static str,
    pub(super) weight: Weight,
}

impl Phrase {
    pub(super) fn text(&self) -> String {
        format!("{} {}", self.verb, self.object).trim_end().to_owned()
    }

    pub(super) fn is_grave(&self) -> bool {
        self.weight != Weight::Harmless
    }

    fn of(self, objects: &'static str) -> Self {
        Self { objects, ..self }
    }
}

/// How dangerous a permission is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PermissionLevel {
    Low,
    /// The run can send data off the machine, or use files outside of the working folder.
    Medium,
    /// Access to credentials or secrets, or access without a limit.
    High,
}

/// A permission in plain words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedPermission {
    /// What the skill may do, such as `may run git`.
    pub phrase: String,
    pub level: PermissionLevel,
}

/// Describes what a permission allows; empty for `none`.
pub fn describe_permission(wanted: &Permission) -> Vec<DescribedPermission> {
    let described = |phrase: Phrase| DescribedPermission {
        phrase: phrase.text(),
        level: match phrase.weight {
            Weight::Credentials | Weight::Secret | Weight::Everything => PermissionLevel::High,
            Weight::Sends | Weight::LookAlike | Weight::Outside => PermissionLevel::Medium,
            Weight::Harmless => PermissionLevel::Low,
        },
    };
    permission(wanted, &[]).into_iter().map(described).collect()
}

fn plain(verb: &str, object: impl Into<String>) -> Phrase {
    with_weight(Weight::Harmless, verb, object)
}

fn grave(text: impl Into<String>) -> Phrase {
    with_weight(Weight::Everything, &text.into(), "")
}

fn with_weight(weight: Weight, verb: &str, object: impl Into<String>) -> Phrase {
    Phrase { verb: verb.to_owned(), object: object.into(), objects: "things", weight }
}

/// Describes what a permission allows; empty for `none`. `stored` are the names of secrets that
/// the user stored and the skill would get.
pub(super) fn permission(permission: &Permission, stored: &[String]) -> Vec<Phrase> {
    let scope = permission.scope.as_deref();
    let phrase = match (permission.domain, permission.level) {
        (_, Level::None) => return Vec::new(),
        (Domain::Shell, _) => return programs(scope),
        (Domain::Filesystem, level) => files(level, scope),
        (Domain::Network, Level::Write) => {
            hosts("may send data (POST, PUT, DELETE…) to", scope, Weight::Sends)
        }
        (Domain::Network, _) => hosts("may fetch from", scope, Weight::Harmless),
        (Domain::Desktop, _) => grave("may control your screen, keyboard and pointer"),
        (Domain::Mcp, _) => match scope {
            Some(server) => plain("may use the MCP server", printable(server)).of("servers"),
            None => grave("may use any MCP server"),
        },
        (Domain::Env, _) => variables(scope, stored),
        (Domain::Database, Level::Write) => databases("may read and change", scope),
        (Domain::Database, _) => databases("may read", scope),
    };
    vec![phrase]
}

/// Describes a permission that the user adds.
pub(super) fn added(added: GrantKind, entry: &str, stored: &[String]) -> Vec<Phrase> {
    match added {
        GrantKind::Host => vec![hosts("may send any request to", Some(entry), Weight::Sends)],
        GrantKind::PrivateHost => {
            let object =
                format!("{}, inside your own network", add_look_alike_warning(entry).label);
            vec![with_weight(Weight::Sends, "may send any request to", object)]
        }
        _ => permission(&added.permission(entry), stored),
    }
}

/// Describes a program, with a warning if the program can start any other one.
pub(super) fn program(name: &str) -> Phrase {
    let CheckedName { label: text, needs_warning } = add_look_alike_warning(name);
    let phrase = if is_interpreter(name) {
        let object = format!("{text}, which can run any other code");
        with_weight(Weight::Everything, "may run", object)
    } else if needs_warning {
        with_weight(Weight::LookAlike, "may run", text)
    } else {
        plain("may run", text)
    };
    phrase.of("programs")
}

fn programs(scope: Option<&str>) -> Vec<Phrase> {
    match scope {
        None => vec![grave("may run any program of the system")],
        Some(names) => names.split(',').map(|name| program(name.trim())).collect(),
    }
}

/// Files and folders in which users and programs store credentials.
const CREDENTIALS: [&str; 33] = [
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc",
    ".pgpass", ".my.cnf", ".boto", ".s3cfg", ".vault-token", ".git-credentials", ".mozilla",
    ".thunderbird", ".password-store", ".bash_history", ".zsh_history", ".bitcoin", ".ethereum",
    ".electrum", "credentials", "credentials.json", "credentials.toml", "gcloud", "gh",
    "google-chrome", "chromium", "keyrings", "Keychains", "shadow",
];
/// Beginnings and ends of names of keys and of files with secrets.
const KEY_PREFIXES: [&str; 2] = [".env", "id_"];
const KEY_SUFFIXES: [&str; 6] = [".pem", ".key", ".p12", ".pfx", ".kdbx", ".keystore"];
/// Folders of the system or of other users.
const OTHERS: [&str; 10] =
    ["home", "root", "Users", "etc", "var", "proc", "sys", "run", "dev", "boot"];
/// The plural name of files.
const FILES: &str = "files and folders";

fn files(level: Level, scope: Option<&str>) -> Phrase {
    let (verb, everything) = match level {
        Level::Write => ("may create, change and delete", "any file that you can change"),
        _ => ("may read", "any file that you can read"),
    };
    let Some(scope) = scope else {
        let folders = "any file in your home and in the folder in which it is run";
        return grave(format!("{verb} {folders}"));
    };
    let folder = scope.strip_suffix("/**").filter(|folder| !is_pattern(folder));
    let object = match folder {
        // `/**`
        Some("") => return grave(format!("{verb} {everything}")),
        Some("~") => {
            return with_weight(Weight::Outside, verb, "files anywhere in your home folder");
        }
        Some(".") => "files below the working folder".to_owned(),
        Some(folder) => format!("files below {}", printable(folder)),
        None if matches!(scope, "**" | "/" | "~") => {
            return grave(format!("{verb} what {scope} names: more than one skill should need"));
        }
        None if is_pattern(scope) => format!("files that match {}", printable(scope)),
        None => printable(scope),
    };
    let weight = weight_of_path(scope);
    let object = match weight {
        Weight::Credentials => format!("{object}, where credentials are kept"),
        _ => object,
    };
    // Paths outside of the working folder belong to other projects.
    let changes_outside = level == Level::Write && scope.starts_with('/');
    let weight = if changes_outside { weight.min(Weight::Outside) } else { weight };
    with_weight(weight, verb, object).of(FILES)
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Returns the severity of a path or a pattern.
fn weight_of_path(scope: &str) -> Weight {
    let is_key = |part: &str| {
        CREDENTIALS.contains(&part)
            || KEY_PREFIXES.iter().any(|begin| part.starts_with(begin))
            || KEY_SUFFIXES.iter().any(|end| part.ends_with(end))
    };
    let first = scope.strip_prefix('/').and_then(|rest| rest.split('/').next());
    if scope.split('/').any(is_key) {
        Weight::Credentials
    } else if first.is_some_and(is_pattern) {
        Weight::Everything
    } else if scope.starts_with('~') || first.is_some_and(|first| OTHERS.contains(&first)) {
        Weight::Outside
    } else {
        Weight::Harmless
    }
}

fn hosts(verb: &str, scope: Option<&str>, weight: Weight) -> Phrase {
    let Some(scope) = scope else {
        return with_weight(weight.min(Weight::Everything), verb, "any host on the internet");
    };
    let CheckedName { label: text, needs_warning } =
        add_look_alike_warning(scope.strip_prefix("*.").unwrap_or(scope));
    let weight = if needs_warning { weight.min(Weight::LookAlike) } else { weight };
    let phrase = match scope.strip_prefix("*.") {
        // A single label such as `com` covers all hosts of a top-level domain.
        Some(domain) if !domain.contains('.') => {
            let object = format!("all hosts whose name ends in .{text}");
            with_weight(weight.min(Weight::Everything), verb, object)
        }
        Some(_) => with_weight(weight, verb, format!("{text} and all hosts below it")),
        None if is_own(scope) => {
            let object = format!("{text}, which may be inside your own network");
            with_weight(weight.min(Weight::Everything), verb, object)
        }
        None => with_weight(weight, verb, text),
    };
    phrase.of("hosts")
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
    let secret = |verb: &str, object: String| with_weight(Weight::Secret, verb, object);
    match scope {
        None | Some("*") => {
            secret("may read all environment variables, with the secrets in them", String::new())
        }
        Some(name) if name.contains(['*', '?']) => {
            secret("may read the environment variables that match", printable(name))
        }
        Some(name) if stored.iter().any(|known| known == name) => {
            secret("gets the secret that you stored as", printable(name))
        }
        Some(name) if is_secret(name) => secret("may read the secret in", printable(name)),
        Some(name) => plain("may read the environment variable", printable(name)).of("of them"),
    }
}

fn databases(verb: &str, scope: Option<&str>) -> Phrase {
    match scope {
        None => grave(format!("{verb} any database")),
        // A database that is granted is a file.
        Some(scope) => {
            let (weight, verb) = (weight_of_path(scope), format!("{verb} the database"));
            with_weight(weight, &verb, printable(scope)).of("of them")
        }
    }
}
