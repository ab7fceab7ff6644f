//! Stores fetched skills on disk by their integrity.
//!
//! Projects and agents get their own copies, so that no one edits the store by accident. Damaged
//! files are detected when they are read; the skill is then fetched again.

use std::{
    fs,
    io::{self, BufRead as _, Read as _, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use savoir_skill::digest::hex;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    File, Tree, TreeError,
    limits::{MAX_FILES, MAX_PATH_BYTES, MAX_TREE_BYTES},
    tree::SIGNATURE_FILES,
};

const MAGIC: &str = "savoir-skill 1\n";

/// Maximum size of the head: the maximum number of files with the longest path, every character
/// escaped.
const MAX_HEAD_BYTES: usize = MAX_FILES * (6 * MAX_PATH_BYTES + 64);

#[derive(Debug, Error)]
pub enum StoreError {
    /// An integrity value is malformed.
    #[error("`{0}` is not an integrity value: it is `sha256-` and 44 characters of base64")]
    Integrity(String),
    /// The operating system returned an error.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

impl StoreError {
    /// A stable error code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Integrity(_) => "integrity",
            Self::Io { .. } => "io",
        }
    }
}

/// Fetched skills by integrity, in a folder that all projects share.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// One file in the head of a stored skill.
#[derive(Serialize, Deserialize)]
struct Entry {
    path: String,
    size: usize,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    executable: bool,
}

impl Store {
    /// Creates a store for a folder, which is created when the first skill is stored.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Stores a skill; returns its integrity. Concurrent calls for the same skill do no harm.
    pub fn put(&self, tree: &Tree) -> Result<String, StoreError> {
        let integrity = tree.integrity();
        let place = self.place(&integrity)?;
        let bytes = encode(tree);
        // A stored skill may lack new signatures: signatures do not change the integrity.
        if fs::read(&place).is_ok_and(|kept| kept == bytes) {
            return Ok(integrity);
        }
        write(&place, &bytes).map_err(|error| StoreError::Io { path: place, error })?;
        Ok(integrity)
    }

    /// Returns a stored skill; `None` if it is not stored or damaged.
    pub fn get(&self, integrity: &str) -> Result<Option<Tree>, StoreError> {
        let place = self.place(integrity)?;
        let bytes = match fs::read(&place) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::Io { path: place, error }),
        };
        match decode(&bytes) {
            Ok(tree) if tree.integrity() == integrity => Ok(Some(tree)),
            _ => {
                tracing::warn!("{} is damaged and is removed", place.display());
                // Remove the damaged file, so that [`Self::has`] returns `false` and the skill is
                // fetched again.
                let _ = fs::remove_file(&place);
                Ok(None)
            }
        }
    }

    /// Whether a skill is stored, without checking for damage.
    pub fn has(&self, integrity: &str) -> bool {
        self.place(integrity).is_ok_and(|place| place.is_file())
    }

    /// Whether a stored skill has signatures. Reads only the head with the file names.
    pub fn is_signed(&self, integrity: &str) -> bool {
        let Ok(place) = self.place(integrity) else { return false };
        let Ok(file) = fs::File::open(place) else { return false };
        let lines = io::BufReader::new(file.take(MAX_HEAD_BYTES as u64)).lines();
        let names = lines.map_while(Result::ok).skip(1).take_while(|line| !line.is_empty());
        let mut entries = names.filter_map(|line| serde_json::from_str::<Entry>(&line).ok());
        entries.any(|entry| SIGNATURE_FILES.contains(&entry.path.as_str()))
    }

    /// Records that the scanner blocks a skill that is stored or about to be stored.
    pub fn mark_blocked(&self, integrity: &str) -> Result<(), StoreError> {
        let path = self.blocked_mark(integrity)?;
        write(&path, b"").map_err(|error| StoreError::Io { path, error })
    }

    /// Whether the scanner blocked a skill when it was fetched.
    pub fn is_blocked(&self, integrity: &str) -> bool {
        self.blocked_mark(integrity).is_ok_and(|mark| mark.is_file())
    }

    fn blocked_mark(&self, integrity: &str) -> Result<PathBuf, StoreError> {
        Ok(self.place(integrity)?.with_extension("blocked"))
    }

    fn place(&self, integrity: &str) -> Result<PathBuf, StoreError> {
        let wrong = || StoreError::Integrity(integrity.to_owned());
        let digest = integrity.strip_prefix("sha256-").ok_or_else(wrong)?;
        let digest = STANDARD.decode(digest).map_err(|_| wrong())?;
        if digest.len() != 32 {
            return Err(wrong());
        }
        let hex = hex(&digest);
        Ok(self.folder.join(&hex[..2]).join(&hex[2..]))
    }
}

/// Encodes a tree: a head with the name and size of each file on one line, an empty line, and the
/// bytes of all files.
pub(crate) fn encode(tree: &Tree) -> Vec<u8> {
    let mut head = MAGIC.to_owned();
    for (path, file) in tree.files() {
        let (size, executable) = (file.bytes.len(), file.executable);
        let entry = Entry { path: path.to_owned(), size, executable };
        // Serializing strings and numbers cannot fail.
        head.push_str(&serde_json::to_string(&entry).unwrap_or_default());
        head.push('\n');
    }
    head.push('\n');
    let mut bytes = head.into_bytes();
    tree.files().for_each(|(_, file)| bytes.extend(&file.bytes));
    bytes
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Tree, DecodeError> {
    if bytes.len() as u64 > MAX_TREE_BYTES + MAX_HEAD_BYTES as u64 {
        return Err(DecodeError::Form);
    }
    let rest = bytes.strip_prefix(MAGIC.as_bytes()).ok_or(DecodeError::Form)?;
    let mut lines = rest.split_inclusive(|byte| *byte == b'\n');
    let (mut entries, mut head) = (Vec::new(), 0);
    loop {
        let line = lines.next().ok_or(DecodeError::Form)?;
        head += line.len();
        if line == b"\n" {
            break;
        }
        entries.push(serde_json::from_slice::<Entry>(line).map_err(|_| DecodeError::Form)?);
    }
    let (mut tree, mut rest) = (Tree::default(), &rest[head..]);
    for Entry { path, size, executable } in entries {
        let (file, behind) = rest.split_at_checked(size).ok_or(DecodeError::Form)?;
        tree.add(path, File { bytes: file.to_vec(), executable })?;
        rest = behind;
    }
    if rest.is_empty() { Ok(tree) } else { Err(DecodeError::Form) }
}

/// The reason why a stored skill cannot be decoded: in both cases the file is damaged.
#[derive(Debug)]
pub(crate) enum DecodeError {
    Form,
    Tree,
}

impl From<TreeError> for DecodeError {
    fn from(_: TreeError) -> Self {
        Self::Tree
    }
}

/// Writes a file atomically. It is not synced, so a power cut may damage it: that is detected when
/// it is read.
pub(crate) fn write(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = place.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = match tempfile::NamedTempFile::new_in(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            tempfile::NamedTempFile::new_in(folder)?
        }
        made => made?,
    };
    file.write_all(bytes)?;
    file.persist(place).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill() -> Tree {
        let mut tree = Tree::default();
        for (path, text, executable) in
            [("SKILL.md", "---\nname: x\n---\n", false), ("scripts/run.sh", "#!/bin/sh\n\n", true)]
        {
            tree.add(path.into(), File { bytes: text.into(), executable }).unwrap();
        }
        tree
    }

    #[test]
    fn stored_skill_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("store"));
        let tree = skill();
        assert_eq!(store.get(&tree.integrity()).unwrap(), None);
        let integrity = store.put(&tree).unwrap();
        assert_eq!(integrity, tree.integrity());
        assert_eq!(store.put(&tree).unwrap(), integrity);
        assert!(store.has(&integrity));
        let kept = store.get(&integrity).unwrap().unwrap();
        assert_eq!(kept, tree);
        assert!(kept.get("scripts/run.sh").unwrap().executable);
    }

    #[test]
    fn later_signature_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().to_owned());
        let mut tree = skill();
        let integrity = store.put(&tree).unwrap();
        assert!(!store.is_signed(&integrity));
        tree.add("signature.json".into(), File { bytes: b"{}".into(), executable: false }).unwrap();
        assert_eq!(store.put(&tree).unwrap(), integrity);
        assert!(store.get(&integrity).unwrap().unwrap().get("signature.json").is_some());
        assert!(store.is_signed(&integrity));
    }

    #[test]
    fn damaged_entry_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().to_owned());
        let integrity = store.put(&skill()).unwrap();
        let place = store.place(&integrity).unwrap();
        let good = fs::read(&place).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&place, &bad).unwrap();
            let kept = store.get(&integrity).unwrap();
            assert!(kept.is_none_or(|kept| kept.integrity() == integrity), "byte {at}");
            fs::write(&place, &good[..at]).unwrap();
            assert_eq!(store.get(&integrity).unwrap(), None, "cut at {at}");
        }
        store.put(&skill()).unwrap();
        assert_eq!(store.get(&integrity).unwrap(), Some(skill()), "it is repaired");
    }

    #[test]
    fn integrity_is_not_used_as_path() {
        let store = Store::new("nowhere".into());
        for wrong in ["", "sha256-", "sha256-../../x", "sha512-aaaa", "sha256-YWJj"] {
            assert!(matches!(store.get(wrong), Err(StoreError::Integrity(_))), "{wrong}");
        }
    }
}
