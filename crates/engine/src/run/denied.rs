//! What a run was denied, with the options that allow it.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use savoir_sandbox::{Refusal, Verdict};

use super::Finished;
use crate::contract::is_of_the_system;

/// Things of a kind that are named; the record has them all.
const NAMED: usize = 5;

/// What shells end with when a program is not there.
const NOT_FOUND: i32 = 127;

/// Where people keep what nobody else should read, in their home.
const SECRETS: [&str; 14] = [
    ".aws",
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
        let mut denials = Vec::new();
        let mut writes = BTreeSet::new();
        let files = &self.outcome.files;
        for path in files.denied_writes.iter().filter(|path| is_of_interest(path)) {
            let folder = writable_for(path);
            // One folder is granted once, whatever was to be written there.
            if writes.insert(folder.clone()) {
                let what = format!("writing {}", short(path, directory));
                // A hint must not lead to a skill that may write the whole home.
                let option = (!home.starts_with(&folder))
                    .then(|| ("--allow-write", short(&folder, directory)));
                denials.push(Denial { what, option, is_secret: false });
            }
        }
        let reads = files.denied.difference(&files.denied_writes);
        for path in reads.filter(|path| is_of_interest(path)) {
            let is_secret = is_secret(path, home);
            let name = short(path, directory);
            denials.push(denial(format!("reading {name}"), ("--allow-read", name), is_secret));
        }
        for (option, hosts) in [
            ("--allow-host", self.refused_hosts(is_not_granted)),
            ("--allow-private-host", self.refused_hosts(|why| why == Refusal::PrivateAddress)),
        ] {
            let denied = hosts
                .into_iter()
                .map(|host| denial(format!("connecting to {host}"), (option, host), false));
            denials.extend(denied.take(NAMED));
        }
        denials.truncate(2 * NAMED);
        if self.envelope.exit_code == Some(NOT_FOUND) && denials.is_empty() {
            let what = "a program that is not installed, or that the skill does not list";
            denials.push(Denial { what: what.to_owned(), option: None, is_secret: false });
        }
        denials
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

fn denial(what: String, option: (&'static str, String), is_secret: bool) -> Denial {
    Denial { what, option: Some(option), is_secret }
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

/// Whether a person may want to grant it. What is in `/tmp` was put there by somebody.
fn is_of_interest(path: &Path) -> bool {
    path.starts_with("/tmp") || !is_of_the_system(path)
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

/// A path as short as it can be typed in the folder where the tool started.
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
