//! What a run was denied, with the options that allow it.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use savoir_sandbox::{Refusal, Verdict};

use savoir_skill::check::render::visible;

use super::Finished;
use crate::{contract::is_of_the_system, grant};

/// Things of a kind that are named; the record has them all.
const NAMED: usize = 5;

/// What shells end with when a program is not there.
const NOT_FOUND: i32 = 127;

/// Where people keep what nobody else should read, in their home.
const SECRETS: [&str; 21] = [
    ".aws",
    ".bash_history",
    ".cargo/credentials.toml",
    ".local/share/savoir",
    ".password-store",
    ".psql_history",
    ".vault-token",
    ".zsh_history",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".ssh",
];

/// Something that a run was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// What was denied, in words.
    pub what: String,
    /// The option that allows it, with its value; nothing if no option does.
    pub option: Option<(&'static str, String)>,
    /// Whether a user should think twice before allowing it.
    pub is_secret: bool,
}

impl Finished {
    /// What a failed run was denied. Whether that is why it failed, a person has to judge.
    pub fn denials(&self, directory: &Path, home: &Path) -> Vec<Denial> {
        if self.envelope.success {
            return Vec::new();
        }
        let mut denials = self.denied_writes(directory, home);
        let files = &self.outcome.files;
        let reads = files.denied.difference(&files.denied_writes);
        denials.extend(reads.filter(|path| is_of_interest(path)).take(NAMED).map(|path| {
            let name = short(path, directory);
            denial(&format!("reading {name}"), ("--allow-read", name), is_secret(path, home))
        }));
        for (option, hosts) in [
            ("--allow-host", self.refused_hosts(is_not_granted)),
            ("--allow-private-host", self.refused_hosts(|why| why == Refusal::PrivateAddress)),
        ] {
            let denied = hosts
                .into_iter()
                .map(|host| denial(&format!("connecting to {host}"), (option, host), false));
            denials.extend(denied.take(NAMED));
        }
        denials.extend(self.git_identity(home, directory));
        let programs = self.denied_programs().into_iter().take(NAMED);
        denials.extend(
            programs
                .map(|name| denial(&format!("starting {name}"), ("--allow-program", name), false)),
        );
        denials.extend(self.denied_variables());
        denials
    }

    fn denied_writes(&self, directory: &Path, home: &Path) -> Vec<Denial> {
        let mut denials = Vec::new();
        let mut granted = BTreeSet::new();
        let paths = &self.outcome.files.denied_writes;
        for path in paths.iter().filter(|path| is_of_interest(path)) {
            // Where it may write, only names are kept that other programs obey: each has to be named.
            let is_kept = self.writable.iter().any(|folder| path.starts_with(folder));
            let folder = if is_kept { path.clone() } else { writable_for(path) };
            // One folder is granted once, whatever was to be written there.
            if granted.insert(folder.clone()) {
                let what = format!("writing {}", short(path, directory));
                // A hint must not lead to a skill that may write the whole home.
                let option = (!home.starts_with(&folder))
                    .then(|| ("--allow-write", short(&folder, directory)));
                let is_secret = is_secret(&folder, home) || holds_secrets(&folder, home);
                denials.push(Denial::new(&what, option, is_secret));
            }
        }
        denials.truncate(NAMED);
        denials
    }

    fn denied_variables(&self) -> Vec<Denial> {
        let named = self.unpassed.iter().map(String::as_str).chain(self.unseen_but_named());
        let named: BTreeSet<&str> = named.filter(|name| !grant::is_never(name)).collect();
        let named = named.into_iter().take(NAMED).map(|name| {
            let is_secret = grant::is_secret(name);
            denial(&format!("the variable {name}"), ("--allow-env", name.to_owned()), is_secret)
        });
        named.collect()
    }

    /// The settings in which git looks for a name and an address. It asks whether they are there before it
    /// opens them, so nobody sees that it did not find them.
    fn git_identity(&self, home: &Path, directory: &Path) -> Option<Denial> {
        let ran_git = self.outcome.files.executed.iter().any(|path| path.ends_with("git"));
        let settings = [".gitconfig", ".config/git/config"].map(|name| home.join(name));
        let is_unread =
            |path: &&PathBuf| path.is_file() && !self.outcome.files.read.contains(*path);
        let path = settings.iter().find(is_unread).filter(|_| ran_git)?;
        let name = short(path, directory);
        Some(denial(&format!("reading {name}, the settings of git"), ("--allow-read", name), false))
    }

    /// Names of programs that are installed and could not be started.
    fn denied_programs(&self) -> BTreeSet<String> {
        let tried = self.outcome.files.denied_programs.iter().filter_map(|path| path.file_name());
        let mut names: BTreeSet<String> =
            tried.map(|name| name.to_string_lossy().into_owned()).collect();
        if self.envelope.exit_code == Some(NOT_FOUND) {
            names.extend(not_found(&self.envelope.output).map(str::to_owned));
        }
        names.retain(|name| grant::resolve(name, None).is_ok());
        names
    }

    fn refused_hosts(&self, matches: impl Fn(Refusal) -> bool) -> BTreeSet<String> {
        let refused = self.outcome.hosts.iter().filter(
            |event| matches!(event.verdict, Verdict::Refused { reason } if matches(reason)),
        );
        refused
            .map(|event| match event.port {
                0 | 80 | 443 => event.host.clone(),
                port => format!("{}:{port}", event.host),
            })
            .collect()
    }
}

/// Programs that a shell says it does not find: `sh: 1: seq: not found`.
fn not_found(printed: &str) -> impl Iterator<Item = &str> {
    let lines = printed.lines().filter_map(|line| {
        let rest = line.strip_suffix(": not found").or(line.strip_suffix(": command not found"))?;
        rest.rsplit(' ').next()
    });
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    lines.filter(move |name| !name.is_empty() && name.chars().all(is_name))
}

fn denial(what: &str, option: (&'static str, String), is_secret: bool) -> Denial {
    Denial::new(what, Some(option), is_secret)
}

impl Denial {
    /// Names come from the tool: they must not pass for lines of their own, and what cannot be typed is
    /// not offered.
    fn new(what: &str, option: Option<(&'static str, String)>, is_secret: bool) -> Self {
        let option = option.filter(|(_, value)| !value.contains(char::is_control));
        Self { what: visible(what).into_owned(), option, is_secret }
    }
}

fn is_not_granted(why: Refusal) -> bool {
    matches!(
        why,
        Refusal::HostNotGranted
            | Refusal::SchemeNotGranted
            | Refusal::PortNotGranted
            | Refusal::PathNotGranted
            | Refusal::MethodNotGranted
    )
}

/// Whether a person may want to grant it. What is in `/tmp` was put there by somebody. Python does without
/// the files that it keeps beside modules.
fn is_of_interest(path: &Path) -> bool {
    let is_cache = path.components().any(|part| part.as_os_str() == "__pycache__");
    !is_cache && (path.starts_with("/tmp") || !is_of_the_system(path))
}

/// The folder that must be writable so that something in it can be written. Programs write a new file
/// and rename it, so the file alone does not do.
fn writable_for(path: &Path) -> PathBuf {
    // In a repository, git writes all over its own folder.
    if let Some(git) = path.ancestors().find(|above| above.ends_with(".git")) {
        return git.to_owned();
    }
    let there = path.ancestors().skip(1).find(|above| above.is_dir());
    there.unwrap_or(path).to_owned()
}

fn is_secret(path: &Path, home: &Path) -> bool {
    SECRETS.iter().any(|name| path.starts_with(home.join(name)))
        || path.starts_with("/etc")
        || path.ends_with(".env")
}

/// Whether a folder has something in it that is a secret.
fn holds_secrets(folder: &Path, home: &Path) -> bool {
    SECRETS.iter().any(|name| home.join(name).starts_with(folder))
}

/// A path as short as it can be typed in a folder.
fn short(path: &Path, directory: &Path) -> String {
    match path.strip_prefix(directory) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        Ok(rest) => rest.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_say_what_they_do_not_find() {
        let printed =
            "a.sh: 3: seq: not found\nbash: line 1: tac: command not found\nx: not found y";
        assert_eq!(not_found(printed).collect::<Vec<_>>(), ["seq", "tac"]);
    }

    #[test]
    fn paths_are_short_and_folders_exist() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(writable_for(&root.join("out/deep/a.txt")), root);
        assert_eq!(short(&root.join("a/b"), root), "a/b");
        assert_eq!(short(root, root), ".");
        assert_eq!(writable_for(&root.join(".git/refs/heads/x")), root.join(".git"));
        assert!(is_secret(&root.join(".ssh/id"), root) && !is_secret(&root.join("ssh"), root));
        assert!(is_secret(Path::new("/etc/shadow"), root));
    }
}
