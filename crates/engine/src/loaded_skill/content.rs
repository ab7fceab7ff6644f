//! Reads and hashes all files of a skill that a run can see.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::Path};

use savoir_package::{Tree, is_note};
use savoir_skill::digest::hex;
use sha2::{Digest as _, Sha256};

use super::{HISTORY_FOLDERS, LoadSkillError};
use crate::limits;

/// Number of digest digits that distinguish two versions of a file.
const FILE_DIGEST_DIGITS: usize = 16;

/// The content that the files of a skill must have.
#[derive(Debug)]
pub(super) struct ExpectedContent<'a> {
    /// SKILL.md.
    pub(super) file: &'a Path,
    /// The text of SKILL.md when it was parsed.
    pub(super) text: &'a [u8],
    /// The files that signatures cover, if the skill is signed.
    pub(super) signed: Option<&'a Tree>,
}

/// The files of a skill that a run can see.
#[derive(Debug)]
pub(super) struct Content {
    /// SHA-256 over all of it.
    pub(super) digest: String,
    /// The first digits of the SHA-256 of each file; empty if there are too many.
    pub(super) files: BTreeMap<String, String>,
    /// Files that no signature covers.
    pub(super) uncovered: Vec<String>,
}

/// Reads all files and compares them with the expected content. Any difference is an error, because
/// the files changed during loading.
pub(super) fn read(root: &Path, expected: &ExpectedContent<'_>) -> Result<Content, LoadSkillError> {
    let mut walk = ContentWalk::new(root, Some(expected));
    walk.all()?;
    let signed = expected.signed.map_or(0, |tree| tree.files().len());
    let changed = |path: &Path| Err(LoadSkillError::Changed { path: path.to_owned() });
    if !walk.found_skill_file {
        return changed(expected.file);
    }
    if walk.covered != signed {
        return changed(root);
    }
    let ContentWalk { sha256, uncovered, mut digests, .. } = walk;
    if digests.len() > limits::MAX_NAMED_FILES {
        digests.clear();
    }
    Ok(Content { digest: hex(&sha256.finalize()), files: digests, uncovered })
}

/// SHA-256 over paths, kinds and contents of everything that a run can see, whether `check` looks
/// at it or not. Only the history of version control is left out, which a run does not see.
pub(super) fn digest(root: &Path) -> Result<String, LoadSkillError> {
    let mut walk = ContentWalk::new(root, None);
    walk.all()?;
    Ok(hex(&walk.sha256.finalize()))
}

struct ContentWalk<'a> {
    sha256: Sha256,
    root: &'a Path,
    files: usize,
    bytes: u64,
    expected: Option<&'a ExpectedContent<'a>>,
    found_skill_file: bool,
    /// The number of signed files that were found.
    covered: usize,
    uncovered: Vec<String>,
    digests: BTreeMap<String, String>,
}

impl<'a> ContentWalk<'a> {
    fn new(root: &'a Path, expected: Option<&'a ExpectedContent<'a>>) -> Self {
        Self {
            sha256: Sha256::new(),
            root,
            files: 0,
            bytes: 0,
            expected,
            found_skill_file: false,
            covered: 0,
            uncovered: Vec::new(),
            digests: BTreeMap::new(),
        }
    }

    fn all(&mut self) -> Result<(), LoadSkillError> {
        let root = self.root;
        if root.is_dir() { self.folder(root, b"", 0) } else { self.file(root, b"") }
    }

    fn folder(&mut self, folder: &Path, prefix: &[u8], depth: usize) -> Result<(), LoadSkillError> {
        if depth > limits::MAX_SKILL_DEPTH {
            return Err(
                self.too_large(format!("{} folders in one another", limits::MAX_SKILL_DEPTH))
            );
        }
        let unreadable = |source| LoadSkillError::Unreadable { path: folder.to_owned(), source };
        let entries = fs::read_dir(folder).map_err(unreadable)?;
        let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            let kind = entry.file_type().map_err(unreadable)?;
            let relative = [prefix, name.as_encoded_bytes()].concat();
            if kind.is_dir() {
                if depth == 0 && HISTORY_FOLDERS.iter().any(|history| name == *history) {
                    continue;
                }
                self.folder(&path, &[&relative, b"/".as_slice()].concat(), depth + 1)?;
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).map_err(unreadable)?;
                self.check_link(&path, &relative);
                self.add("link", &relative, target.as_os_str().as_encoded_bytes())?;
            } else if kind.is_file() {
                self.file(&path, &relative)?;
            } else {
                self.add("other", &relative, b"")?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, relative: &[u8]) -> Result<(), LoadSkillError> {
        let unreadable = |source| LoadSkillError::Unreadable { path: path.to_owned(), source };
        let metadata = fs::metadata(path).map_err(unreadable)?;
        if self.bytes + metadata.len() > limits::MAX_SKILL_BYTES {
            return Err(self.too_large(format!("{} MiB", limits::MAX_SKILL_BYTES >> 20)));
        }
        let bytes = fs::read(path).map_err(unreadable)?;
        let kind = if metadata.permissions().mode() & 0o111 == 0 { "file" } else { "program" };
        self.check_file(path, relative, &bytes, kind)?;
        self.add(kind, relative, &bytes)
    }

    /// Fails if a file differs from the expected content; counts the files that a signature covers.
    fn check_file(
        &mut self,
        path: &Path,
        relative: &[u8],
        bytes: &[u8],
        kind: &str,
    ) -> Result<(), LoadSkillError> {
        let Some(expected) = self.expected else { return Ok(()) };
        let changed = || Err(LoadSkillError::Changed { path: path.to_owned() });
        if path == expected.file {
            if bytes != expected.text {
                return changed();
            }
            self.found_skill_file = true;
        }
        let Some(tree) = expected.signed else { return Ok(()) };
        let named = std::str::from_utf8(relative).ok();
        match named.and_then(|path| tree.get(path)) {
            Some(file) if file.bytes == bytes => self.covered += 1,
            Some(_) => return changed(),
            None if kind == "file" && named.is_some_and(is_note) => {}
            None => self.add_uncovered(relative),
        }
        Ok(())
    }

    /// A symlink counts as signed only if the file that it leads to is signed itself.
    fn check_link(&mut self, path: &Path, relative: &[u8]) {
        let Some(tree) = self.expected.and_then(|expected| expected.signed) else { return };
        let file = std::str::from_utf8(relative).ok().and_then(|path| tree.get(path));
        let target = path.canonicalize().ok();
        let inside = target.as_deref().and_then(|target| target.strip_prefix(self.root).ok());
        let target = inside.and_then(Path::to_str).and_then(|path| tree.get(path));
        self.covered += usize::from(file.is_some());
        let is_same = file.zip(target).is_some_and(|(file, target)| file.bytes == target.bytes);
        if !is_same {
            self.add_uncovered(relative);
        }
    }

    fn add_uncovered(&mut self, relative: &[u8]) {
        self.uncovered.push(String::from_utf8_lossy(relative).into_owned());
    }

    fn add(&mut self, kind: &str, path: &[u8], bytes: &[u8]) -> Result<(), LoadSkillError> {
        self.files += 1;
        self.bytes += bytes.len() as u64;
        if self.files > limits::MAX_SKILL_FILES {
            return Err(self.too_large(format!("{} files", limits::MAX_SKILL_FILES)));
        }
        if self.expected.is_some() && self.digests.len() <= limits::MAX_NAMED_FILES {
            let digest = hex(&Sha256::digest([kind.as_bytes(), b" ", bytes].concat()));
            let name =
                if path.is_empty() { "SKILL.md".into() } else { String::from_utf8_lossy(path) };
            self.digests
                .insert(name.into_owned(), digest.chars().take(FILE_DIGEST_DIGITS).collect());
        }
        // The length precedes the content, so that no two different trees produce the same bytes.
        let head = format!("{kind} {} {} ", path.len(), bytes.len());
        for part in [head.as_bytes(), path, bytes] {
            self.sha256.update(part);
        }
        Ok(())
    }

    fn too_large(&self, what: String) -> LoadSkillError {
        LoadSkillError::TooLarge { path: self.root.to_owned(), what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_and_name_changes_the_digest() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::write(root.join("SKILL.md"), "text").unwrap();
        let mut seen = vec![digest(root).unwrap()];
        let mut changed = |what: &str| {
            let now = digest(root).unwrap();
            assert!(!seen.contains(&now), "{what}");
            seen.push(now);
        };
        fs::write(root.join("SKILL.md"), "texT").unwrap();
        changed("a byte");
        fs::create_dir_all(root.join("node_modules/x")).unwrap();
        fs::write(root.join("node_modules/x/index.js"), "").unwrap();
        changed("a new file, also where check does not look");
        fs::rename(root.join("node_modules/x/index.js"), root.join("node_modules/x/main.js"))
            .unwrap();
        changed("a name");
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
        changed("a link");
        fs::create_dir(root.join("__pycache__")).unwrap();
        fs::write(root.join("__pycache__/x.pyc"), "").unwrap();
        changed("bytecode, which Python would run");
        fs::set_permissions(root.join("SKILL.md"), fs::Permissions::from_mode(0o755)).unwrap();
        changed("what can be executed");
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join(".git/index"), "").unwrap();
        assert_eq!(seen.last(), Some(&digest(root).unwrap()));
        fs::create_dir_all(root.join("node_modules/x/.git")).unwrap();
        fs::write(root.join("node_modules/x/.git/run.py"), "").unwrap();
        assert_ne!(seen.last(), Some(&digest(root).unwrap()), "only the root's own history");
    }
}
