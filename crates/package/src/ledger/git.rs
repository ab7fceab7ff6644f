//! Computes the git tree id (SHA-1) of a folder.

use sha1::{Digest as _, Sha1};

use super::{
    files::{Item, Kind},
    hex,
};

type Digest = [u8; 20];

/// How to determine the file modes for git.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileModes {
    /// From the modes of the files on disk.
    Kept,
    /// From the first bytes: a file that starts with `#!` is executable. Tools that download single
    /// files lose the modes.
    Guessed,
    /// No file is executable.
    Plain,
}

struct GitBlob<'a> {
    path: &'a str,
    mode: &'static str,
    digest: Digest,
}

/// Returns every possible tree id of files sorted by path, one for each way to determine their
/// modes.
pub(super) fn trees(items: &[&Item]) -> Vec<String> {
    let digests: Vec<Digest> = items.iter().map(|item| object_id("blob", &item.bytes)).collect();
    let names = [FileModes::Kept, FileModes::Guessed, FileModes::Plain].map(|modes| {
        let modes: Vec<&'static str> = items.iter().map(|item| mode(item, modes)).collect();
        root_tree_id(items, &modes, &digests)
    });
    names.to_vec()
}

/// Whether a hash is a possible tree id of files sorted by path, for any way to determine their
/// modes.
pub(super) fn is_tree(hash: &str, items: &[&Item]) -> bool {
    let digests: Vec<Digest> = items.iter().map(|item| object_id("blob", &item.bytes)).collect();
    let mut tried: Vec<Vec<&'static str>> = Vec::new();
    [FileModes::Kept, FileModes::Guessed, FileModes::Plain].into_iter().any(|modes| {
        let modes: Vec<&'static str> = items.iter().map(|item| mode(item, modes)).collect();
        // Most skills have no executable files, so that all ways give the same tree.
        let found = !tried.contains(&modes) && root_tree_id(items, &modes, &digests) == hash;
        tried.push(modes);
        found
    })
}

/// Returns the SHA-1 of a tree, in hexadecimal digits.
fn root_tree_id(items: &[&Item], modes: &[&'static str], digests: &[Digest]) -> String {
    let blobs = items.iter().zip(modes).zip(digests);
    let blobs =
        blobs.map(|((item, mode), digest)| GitBlob { path: &item.path, mode, digest: *digest });
    hex(&folder(&blobs.collect::<Vec<_>>(), 0))
}

/// Returns the tree id of files, in hexadecimal digits.
#[cfg(test)]
pub(super) fn tree(items: &[&Item], modes: FileModes) -> String {
    let digests: Vec<Digest> = items.iter().map(|item| object_id("blob", &item.bytes)).collect();
    let modes: Vec<&'static str> = items.iter().map(|item| mode(item, modes)).collect();
    root_tree_id(items, &modes, &digests)
}

fn mode(item: &Item, modes: FileModes) -> &'static str {
    let program = match modes {
        FileModes::Kept => item.kind == Kind::Program,
        FileModes::Guessed => item.bytes.starts_with(b"#!"),
        FileModes::Plain => false,
    };
    match (item.kind, program) {
        (Kind::Link, _) => "120000",
        (_, true) => "100755",
        (_, false) => "100644",
    }
}

/// The tree of files whose paths agree in their first `start` bytes.
fn folder(mut blobs: &[GitBlob<'_>], start: usize) -> Digest {
    let mut entries: Vec<(&str, &'static str, Digest)> = Vec::new();
    while let [first, ..] = blobs {
        let rest = &first.path[start..];
        let Some((name, _)) = rest.split_once('/') else {
            entries.push((rest, first.mode, first.digest));
            blobs = &blobs[1..];
            continue;
        };
        let inside = |blob: &GitBlob<'_>| {
            blob.path[start..].strip_prefix(name).is_some_and(|rest| rest.starts_with('/'))
        };
        let count = blobs.iter().take_while(|blob| inside(blob)).count();
        let (below, others) = blobs.split_at(count);
        entries.push((name, "40000", folder(below, start + name.len() + 1)));
        blobs = others;
    }
    // Git sorts a folder as if its name ended with a slash.
    entries.sort_by_key(|(name, mode, _)| {
        [name.as_bytes(), if *mode == "40000" { b"/" } else { b"" }].concat()
    });
    let mut bytes = Vec::new();
    for (name, mode, digest) in entries {
        bytes.extend_from_slice(mode.as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(&digest);
    }
    object_id("tree", &bytes)
}

fn object_id(kind: &str, bytes: &[u8]) -> Digest {
    let mut hash = Sha1::new();
    hash.update(format!("{kind} {}\0", bytes.len()));
    hash.update(bytes);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
        path::Path,
        process::Command,
    };

    use super::*;
    use crate::ledger::files;

    fn git(folder: &Path, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.current_dir(folder).args(arguments);
        let output = git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn tree_id_matches_git() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        for path in ["scripts/deep", "a", "a.d", "a-b"] {
            fs::create_dir_all(folder.join(path)).unwrap();
        }
        for path in ["SKILL.md", "a.md", "a/x", "a.d/x", "a-b/x", "a0", "größe.md", "scripts/z"] {
            fs::write(folder.join(path), path).unwrap();
        }
        let program = folder.join("scripts/deep/run.sh");
        fs::write(&program, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        symlink("../SKILL.md", folder.join("scripts/link")).unwrap();
        git(folder, &["init", "--quiet"]);
        git(folder, &["add", "--all"]);
        let expected = git(folder, &["write-tree"]);
        let items = files::read(folder).unwrap();
        let items: Vec<&Item> = items.iter().collect();
        assert_eq!(tree(&items, FileModes::Kept), expected);
        assert_eq!(tree(&items, FileModes::Guessed), expected);
        assert_ne!(tree(&items, FileModes::Plain), expected);
        assert!(is_tree(&expected, &items) && is_tree(&tree(&items, FileModes::Plain), &items));
        assert!(!is_tree(&expected, &items[1..]));
        assert!(trees(&items).contains(&expected));
        let empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        assert_eq!(tree(&[], FileModes::Kept), empty);
    }
}
