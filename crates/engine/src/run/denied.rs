//! Lists what the sandbox denied a run, with the option that would allow each item.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use savoir_lint::visible;
use savoir_sandbox::{Outcome, Refusal, Verdict};
use serde::{Serialize, Serializer, ser::SerializeMap as _};

use super::{
    unreachable::{UnreachableHost, unreachable_hosts},
    variables::Unseen,
};
use crate::{
    approval::shell_word,
    envelope::Envelope,
    grant::{self, ProtectedPaths},
    smallest_permissions::is_system_path,
};

/// Maximum number of denials of each kind in the answer; the record has them all.
const MAX_NAMED: usize = 5;

/// Number of new files of one folder that are named; with more, the folder is.
const MAX_NAMED_FILES: usize = 2;

/// The exit code of a shell that did not find a program.
const EXIT_NOT_FOUND: i32 = 127;

/// Paths in the home with credentials and other private data.
const SECRET_NAMES: [&str; 21] = [
    ".aws", ".bash_history", ".cargo/credentials.toml", ".local/share/savoir", ".password-store",
    ".psql_history", ".vault-token", ".zsh_history", ".azure", ".config/gcloud", ".config/gh",
    ".docker", ".git-credentials", ".gnupg", ".kube", ".local/share/keyrings", ".mozilla",
    ".netrc", ".npmrc", ".pypirc", ".ssh",
];

/// Paths of the system with passwords and private keys.
const SYSTEM_SECRETS: [&str; 12] = [
    "/etc/NetworkManager/system-connections",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/krb5.keytab",
    "/etc/machine-id",
    "/etc/ppp",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/wireguard",
];

/// One access that the sandbox denied to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The denied access, in words.
    pub what: String,
    /// The option that allows the access, with its value; none if no option does.
    pub option: Option<(&'static str, String)>,
    /// Why the user should think twice before allowing it.
    pub risk: Option<Risk>,
    /// A hint for accesses that no option allows.
    pub hint: Option<&'static str>,
}

/// Why allowing an access is dangerous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Risk {
    /// The path contains private data.
    Secret,
    /// Other programs execute the file, or take their instructions from it.
    ProtectedPaths,
}

impl Risk {
    /// The description of the risk, after "which".
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Secret => "is a secret",
            Self::ProtectedPaths => "other programs run or obey",
        }
    }
}

impl Serialize for Denial {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { what, option, risk, .. } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("what", what)?;
        if let Some((name, value)) = option {
            map.serialize_entry("allow", &format!("{name} {}", shell_word(value)))?;
        }
        if let Some(risk) = risk {
            map.serialize_entry("risk", risk.phrase())?;
        }
        map.end()
    }
}

/// Facts from before the run that explain its denials.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    /// The user's working directory.
    pub(super) here: PathBuf,
    pub(super) home: PathBuf,
    /// Folders in which the run may write.
    pub(super) writable: Vec<PathBuf>,
    /// Paths that no option opens for writing.
    pub(super) always_protected: Vec<PathBuf>,
    pub(super) protected: ProtectedPaths,
    pub(super) variables: Unseen,
    /// Whether the run has any network. Without one there is no proxy that could observe hosts.
    pub(super) has_network: bool,
    /// What the skill's author wrote for this call, and the command with its values.
    pub(super) texts: Vec<String>,
}

impl Surroundings {
    /// Returns the accesses that were denied. The user has to judge whether they are the reason of
    /// a failure. For a successful run, only hosts are listed, since programs look for files in
    /// many places.
    pub(super) fn denied(&self, envelope: &Envelope, outcome: &Outcome) -> Vec<Denial> {
        let hosts = denied_hosts(outcome);
        if envelope.success {
            return hosts;
        }
        let mut denials = self.writes(outcome);
        denials.extend(self.reads(outcome));
        denials.extend(hosts);
        if !self.has_network {
            denials.extend(self.unreachable_hosts(envelope, outcome));
        }
        denials.extend(self.git_identity(envelope, outcome));
        let programs = denied_programs(envelope, outcome).into_iter().take(MAX_NAMED);
        denials.extend(
            programs
                .map(|name| Denial::new(&format!("starting {name}"), ("--allow-program", name))),
        );
        denials.extend(self.variables(envelope));
        // The same file can be denied in several ways; one option allows all of them.
        let mut options = BTreeSet::new();
        denials.retain(|one| one.option.clone().is_none_or(|option| options.insert(option)));
        denials
    }

    fn reads(&self, outcome: &Outcome) -> impl Iterator<Item = Denial> {
        let files = &outcome.files;
        let reads = files.denied.difference(&files.denied_writes);
        reads.filter(|path| is_reportable(path)).take(MAX_NAMED).map(|path| {
            let name = shorten_path(path, &self.here);
            let risk = is_secret(path, &self.home).then_some(Risk::Secret);
            Denial::new(&format!("reading {name}"), ("--allow-read", name)).with_risk(risk)
        })
    }

    fn writes(&self, outcome: &Outcome) -> Vec<Denial> {
        let mut denials = Vec::new();
        let mut granted = BTreeSet::new();
        let paths = outcome.files.denied_writes.iter().filter(|path| is_reportable(path));
        let paths: Vec<&PathBuf> = paths.collect();
        for path in &paths {
            let is_beside = |other: &&&PathBuf| other.parent() == path.parent();
            let can_be_named = paths.iter().filter(is_beside).count() <= MAX_NAMED_FILES
                && !outcome.files.replaced.contains(*path)
                && self.is_written_by_name(path);
            let folder = if can_be_named { PathBuf::clone(path) } else { self.path_to_grant(path) };
            // Each folder is listed once, even if several files in it were to be written.
            if granted.insert(folder.clone()) {
                denials.push(self.write(path, &folder));
            }
        }
        denials.truncate(MAX_NAMED);
        denials
    }

    fn write(&self, path: &Path, folder: &Path) -> Denial {
        let name = shorten_path(path, &self.here);
        if self.always_protected.iter().any(|never| path.starts_with(never)) {
            return Denial::without_option(&format!("writing {name}"), "no skill may write there");
        }
        // A hint must not suggest granting write access to the whole home.
        if self.home.starts_with(folder) {
            let hint = "run it in the folder of a project, or name a folder with --allow-write";
            return Denial::without_option(&format!("writing {name}"), hint);
        }
        let option = shorten_path(folder, &self.here);
        let what = match option.as_str() {
            "." => format!("writing {name} in this folder"),
            _ if folder == path => format!("writing {name}"),
            folder => format!("writing {name} in {folder}"),
        };
        let is_secret = is_secret(folder, &self.home) || contains_secrets(folder, &self.home);
        let is_obeyed = folder.starts_with("/etc")
            || folder.ancestors().any(|part| self.protected.write_policy(part).is_some())
                && !folder.ends_with(".git");
        let risk = match (is_secret, is_obeyed) {
            (true, _) => Some(Risk::Secret),
            (false, true) => Some(Risk::ProtectedPaths),
            (false, false) => None,
        };
        Denial::new(&what, ("--allow-write", option)).with_risk(risk)
    }

    /// Whether access to a file of the working directory alone suffices: the skill or the user named
    /// it. Other names are most often those of temporary files, which are renamed in the end.
    fn is_written_by_name(&self, path: &Path) -> bool {
        let is_in_project = path.starts_with(&self.here) && !self.home.starts_with(&self.here);
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
        let is_temporary = name.starts_with('.')
            || [".tmp", ".temp", ".part", ".new", ".bak", "~"]
                .iter()
                .any(|end| name.ends_with(end));
        is_in_project && !is_temporary && self.texts.iter().any(|text| names_file(text, name))
    }

    /// The path that must be granted so that `path` can be written.
    fn path_to_grant(&self, path: &Path) -> PathBuf {
        // In a repository, git writes many files of its own folder.
        if let Some(git) = path.ancestors().find(|above| above.ends_with(".git")) {
            return git.to_owned();
        }
        // In a writable folder, writes are only denied for protected names, each of which must be
        // granted by name.
        if self.writable.iter().any(|folder| path.starts_with(folder)) {
            return path.to_owned();
        }
        nearest_folder(path)
    }

    fn variables(&self, envelope: &Envelope) -> impl Iterator<Item = Denial> {
        let named = self.variables.named(envelope).into_iter().take(MAX_NAMED);
        named.map(|variable| {
            let name = variable.name.clone();
            let risk = (variable.is_stored || grant::is_secret(&name)).then_some(Risk::Secret);
            Denial::new(&format!("the variable {name}"), ("--allow-env", name)).with_risk(risk)
        })
    }

    /// The settings file that git needs for the author's name and address. Git checks whether the
    /// file exists before opening it, so the sandbox does not observe a denied access.
    fn git_identity(&self, envelope: &Envelope, outcome: &Outcome) -> Option<Denial> {
        let ran_git = outcome.files.executed.iter().any(|path| path.ends_with("git"));
        let output = envelope.output.trim();
        if !ran_git || !(output.is_empty() || output.contains("tell me who you are")) {
            return None;
        }
        let settings = [".gitconfig", ".config/git/config"].map(|name| self.home.join(name));
        let is_unread = |path: &&PathBuf| path.is_file() && !outcome.files.read.contains(*path);
        let name = shorten_path(settings.iter().find(is_unread)?, &self.here);
        Some(Denial::new(&format!("reading {name}, the settings of git"), ("--allow-read", name)))
    }
}

impl Surroundings {
    /// The hosts that a program without a network did not reach, by what it printed and what the
    /// author wrote. There is no proxy that could observe them.
    fn unreachable_hosts(&self, envelope: &Envelope, outcome: &Outcome) -> Vec<Denial> {
        let ran_curl = outcome.files.executed.iter().any(|path| path.ends_with("curl"));
        let hosts = unreachable_hosts(envelope, ran_curl, &self.texts).into_iter().take(MAX_NAMED);
        let denial = |host: UnreachableHost| {
            let name = host.to_string();
            Denial::new(&format!("connecting to {name}"), (host.option(), name))
        };
        hosts.map(denial).collect()
    }
}

fn denied_hosts(outcome: &Outcome) -> Vec<Denial> {
    let mut denials = Vec::new();
    for (option, hosts) in [
        ("--allow-host", refused_hosts(outcome, is_not_granted)),
        ("--allow-private-host", refused_hosts(outcome, |why| why == Refusal::PrivateAddress)),
    ] {
        let denied = hosts
            .into_iter()
            .map(|host| Denial::new(&format!("connecting to {host}"), (option, host)));
        denials.extend(denied.take(MAX_NAMED));
    }
    // The other kind of request is allowed, so the skill reached the host.
    for (refusal, attempt, level) in [
        (Refusal::MethodNotGranted, "sending to", "write"),
        (Refusal::ReadingNotGranted, "fetching from", "read"),
    ] {
        let denied = refused_hosts(outcome, |why| why == refusal).into_iter().map(|host| {
            let what = format!("{attempt} {host}, because it lacks network:{level} for it");
            Denial::new(&what, ("--allow-host", host))
        });
        denials.extend(denied.take(MAX_NAMED));
    }
    denials
}

/// Names of installed programs that the run could not start.
fn denied_programs(envelope: &Envelope, outcome: &Outcome) -> BTreeSet<String> {
    let tried = outcome.files.denied_programs.iter().filter_map(|path| path.file_name());
    let mut names: BTreeSet<String> =
        tried.map(|name| name.to_string_lossy().into_owned()).collect();
    if envelope.exit_code == Some(EXIT_NOT_FOUND) {
        names.extend(not_found(&envelope.output).map(str::to_owned));
    }
    names.retain(|name| grant::resolve(name, None).is_ok());
    names
}

fn refused_hosts(outcome: &Outcome, matches: impl Fn(Refusal) -> bool) -> BTreeSet<String> {
    let refused = outcome
        .hosts
        .iter()
        .filter(|event| matches!(event.verdict, Verdict::Refused { reason } if matches(reason)));
    refused
        .map(|event| match event.port {
            0 | 80 | 443 => event.host.clone(),
            port => format!("{}:{port}", event.host),
        })
        .collect()
}

/// Names of programs that a shell reports as not found: `sh: 1: seq: not found`.
fn not_found(printed: &str) -> impl Iterator<Item = &str> {
    let lines = printed.lines().filter_map(|line| {
        let rest = line.strip_suffix(": not found").or(line.strip_suffix(": command not found"))?;
        rest.rsplit(' ').next()
    });
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    lines.filter(move |name| !name.is_empty() && name.chars().all(is_name))
}

impl Denial {
    /// Names come from the tool: control characters are escaped, so that a name cannot look like a
    /// separate line, and an option whose value cannot be typed is left out.
    fn new(what: &str, option: (&'static str, String)) -> Self {
        let option = Some(option).filter(|(_, value)| !value.contains(char::is_control));
        Self { what: visible(what).into_owned(), option, risk: None, hint: None }
    }

    fn without_option(what: &str, hint: &'static str) -> Self {
        let what = visible(what).into_owned();
        Self { what, option: None, risk: None, hint: Some(hint) }
    }

    fn with_risk(self, risk: Option<Risk>) -> Self {
        Self { risk, ..self }
    }
}

fn is_not_granted(why: Refusal) -> bool {
    matches!(
        why,
        Refusal::HostNotGranted
            | Refusal::SchemeNotGranted
            | Refusal::PortNotGranted
            | Refusal::PathNotGranted
    )
}

/// Whether the user may want to grant a path. Files in `/tmp` were put there by a user; other
/// system paths do not count. `__pycache__` is left out, because Python works without it.
fn is_reportable(path: &Path) -> bool {
    let is_cache = path.components().any(|part| part.as_os_str() == "__pycache__");
    !is_cache && (path.starts_with("/tmp") || !is_system_path(path))
}

/// The nearest existing folder above a path. Programs write a new file and rename it, so granting
/// the file alone does not suffice.
fn nearest_folder(path: &Path) -> PathBuf {
    let there = path.ancestors().skip(1).find(|above| above.is_dir());
    there.unwrap_or(path).to_owned()
}

fn is_secret(path: &Path, home: &Path) -> bool {
    SECRET_NAMES.iter().any(|name| path.starts_with(home.join(name)))
        || SYSTEM_SECRETS.iter().any(|secret| path.starts_with(secret))
        || is_host_key(path)
        || path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".env"))
}

/// Whether a file is the private key of an ssh server.
fn is_host_key(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.starts_with("/etc/ssh") && name.starts_with("ssh_host_") && name.ends_with("_key")
}

/// Whether a text contains the name of a file as a word.
fn names_file(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    text.match_indices(name).any(|(start, _)| {
        !text[..start].ends_with(is_part) && !text[start + name.len()..].starts_with(is_part)
    })
}

/// Whether a folder contains one of the [`SECRET_NAMES`].
fn contains_secrets(folder: &Path, home: &Path) -> bool {
    SECRET_NAMES.iter().any(|name| home.join(name).starts_with(folder))
}

/// A path relative to `directory` if it is below it, as the user can type it there.
fn shorten_path(path: &Path, directory: &Path) -> String {
    match path.strip_prefix(directory) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        // `~` would be the home, and `-` an option.
        Ok(rest) if rest.to_string_lossy().starts_with(['~', '-']) => {
            format!("./{}", rest.display())
        }
        Ok(rest) => rest.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_programs_are_read_from_shell_messages() {
        let printed =
            "a.sh: 3: seq: not found\nbash: line 1: tac: command not found\nx: not found y";
        assert_eq!(not_found(printed).collect::<Vec<_>>(), ["seq", "tac"]);
    }

    #[test]
    fn file_names_are_found_as_words() {
        assert!(names_file("echo x > out/report.txt", "report.txt"));
        assert!(names_file("open('report.txt')", "report.txt"));
        assert!(!names_file("cat my-report.txt report.txt.gz", "report.txt"));
    }

    #[test]
    fn paths_are_shortened() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(nearest_folder(&root.join("out/deep/a.txt")), root);
        assert_eq!(shorten_path(&root.join("a/b"), root), "a/b");
        assert_eq!(shorten_path(root, root), ".");
        assert_eq!(shorten_path(&root.join("~/x"), root), "./~/x");
        assert!(is_secret(&root.join(".ssh/id"), root) && !is_secret(&root.join("ssh"), root));
        for secret in ["/etc/shadow", "/etc/ssh/ssh_host_rsa_key", "/etc/sudoers.d/x"] {
            assert!(is_secret(Path::new(secret), root), "{secret}");
        }
        for public in ["/etc/hostname", "/etc/ssh/ssh_config", "/etc/ssh/ssh_host_rsa_key.pub"] {
            assert!(!is_secret(Path::new(public), root), "{public}");
        }
    }
}
