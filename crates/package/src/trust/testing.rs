//! Fixtures for tests of signatures.

use std::path::PathBuf;

use super::{PublicKey, Role, SigningKey, TrustedKey};
use crate::{File, Tree};

pub(super) const NAME: &str = "golden-skill";
pub(super) const VERSION: &str = "1.2.0";

pub(super) fn data(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/trust");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// The test skill that other programs signed.
pub(super) fn golden() -> Tree {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/trust");
    Tree::read(&folder.join(NAME)).unwrap()
}

/// Returns the skill with a file added or replaced.
pub(super) fn with(tree: &Tree, path: &str, bytes: impl Into<Vec<u8>>) -> Tree {
    let mut changed = without(tree, path);
    changed.add(path.to_owned(), File { bytes: bytes.into(), executable: false }).unwrap();
    changed
}

pub(super) fn without(tree: &Tree, path: &str) -> Tree {
    let mut rest = Tree::default();
    for (other, file) in tree.files().filter(|(other, _)| *other != path) {
        rest.add(other.to_owned(), file.clone()).unwrap();
    }
    rest
}

pub(super) fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

pub(super) fn trusted(key: PublicKey, role: Role) -> TrustedKey {
    TrustedKey { key, publisher: "acme".into(), role, namespaces: None }
}
