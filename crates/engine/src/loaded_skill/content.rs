//! Reads and hashes all files of a skill that a run can see.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::Path};

use savoir_package::{Tree, is_note};
use savoir_skill::digest::hex;
use sha2::{Digest as _, Sha256};

use super::{HISTORY, LoadSkillError};
use crate::limits;

/// Digits that tell two versions of a file apart.
const DIGITS: usize = 16;

/// What everything that a run can see must be.
#[derive(Debug)]
pub(super) struct Held<'a> {
    /// SKILL.md.
    pub(super) file: &'a Path,
    /// As it was read.
    pub(super) text: &'a [u8],
    /// The files that signatures are about, if there are any.
    pub(super) signed: Option<&'a Tree>,
}

/// What a run can see.
#[derive(Debug)]
pub(super) struct Content {
    /// SHA-256 over all of it.
    pub(super) digest: String,
    /// The first digits of the SHA-256 of each file; empty if there are too many.
    pub(super) files: BTreeMap<String, String>,
    /// Files that no signature covers.
    pub(super) uncovered: Vec<String>,
}

/// Reads all of it, and holds it to what was read before. One byte that differs is an error:
/// somebody is at work there.
pub(super) fn read(root: &Path, held: &Held<'_>) -> Result<Content, LoadSkillError> {
    let mut walk = Walk::new(root, Some(held));
    walk.all()?;
    let signed = held.signed.map_or(0, |tree| tree.files().len());
    let changed = |path: &Path| Err(LoadSkillError::Changed { path: path.to_owned() });
    if !walk.met_skill {
        return changed(held.file);
    }
    if walk.covered != signed {
        return changed(root);
    }
    let Walk { sha256, uncovered, mut digests, .. } = walk;
    if digests.len() > limits::NAMED_FILES {
        digests.clear();
    }
    Ok(Content { digest: hex(&sha256.finalize()), files: digests, uncovered })
}

/// SHA-256 over paths, kinds and contents of everything that a run can see, whether `check` looks
/// at it or not. Only the history of version control is left out, which a run does not see.
pub(super) fn digest(root: &Path) -> Result<String, LoadSkillError> {
    let mut walk = Walk::new(root, None);
    walk.all()?;
    Ok(hex(&walk.sha256.finalize()))
}

struct Walk<'a> {
    sha256: Sha256,
    root: &'a Path,
    files: usize,
    bytes: u64,
    held: Option<&'a Held<'a>>,
    met_skill: bool,
    /// How many of the files that signatures are about were met.
    covered: usize,
    uncovered: Vec<String>,
    digests: BTreeMap<String, String>,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Path, held: Option<&'a Held<'a>>) -> Self {
        Self {
            sha256: Sha256::new(),
            root,
            files: 0,
            bytes: 0,
            held,
            met_skill: false,
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
        if depth > limits::SKILL_DEPTH {
            return Err(self.too_large(format!("{} folders in one another", limits::SKILL_DEPTH)));
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
                if depth == 0 && HISTORY.iter().any(|history| name == *history) {
                    continue;
                }
                self.folder(&path, &[&relative, b"/".as_slice()].concat(), depth + 1)?;
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).map_err(unreadable)?;
                self.hold_link(&path, &relative);
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
        if self.bytes + metadata.len() > limits::SKILL_BYTES {
            return Err(self.too_large(format!("{} MiB", limits::SKILL_BYTES >> 20)));
        }
        let bytes = fs::read(path).map_err(unreadable)?;
        let kind = if metadata.permissions().mode() & 0o111 == 0 { "file" } else { "program" };
        self.hold_file(path, relative, &bytes, kind)?;
        self.add(kind, relative, &bytes)
    }

    /// A file is what was read before, if it was.
    fn hold_file(
        &mut self,
        path: &Path,
        relative: &[u8],
        bytes: &[u8],
        kind: &str,
    ) -> Result<(), LoadSkillError> {
        let Some(held) = self.held else { return Ok(()) };
        let changed = || Err(LoadSkillError::Changed { path: path.to_owned() });
        if path == held.file {
            if bytes != held.text {
                return changed();
            }
            self.met_skill = true;
        }
        let Some(tree) = held.signed else { return Ok(()) };
        let named = std::str::from_utf8(relative).ok();
        match named.and_then(|path| tree.get(path)) {
            Some(file) if file.bytes == bytes => self.covered += 1,
            Some(_) => return changed(),
            None if kind == "file" && named.is_some_and(is_note) => {}
            None => self.leave_out(relative),
        }
        Ok(())
    }

    /// A link is signed as the file that it leads to, which therefore has to be signed itself.
    fn hold_link(&mut self, path: &Path, relative: &[u8]) {
        let Some(tree) = self.held.and_then(|held| held.signed) else { return };
        let file = std::str::from_utf8(relative).ok().and_then(|path| tree.get(path));
        let target = path.canonicalize().ok();
        let inside = target.as_deref().and_then(|target| target.strip_prefix(self.root).ok());
        let target = inside.and_then(Path::to_str).and_then(|path| tree.get(path));
        self.covered += usize::from(file.is_some());
        let is_same = file.zip(target).is_some_and(|(file, target)| file.bytes == target.bytes);
        if !is_same {
            self.leave_out(relative);
        }
    }

    fn leave_out(&mut self, relative: &[u8]) {
        self.uncovered.push(String::from_utf8_lossy(relative).into_owned());
    }

    fn add(&mut self, kind: &str, path: &[u8], bytes: &[u8]) -> Result<(), LoadSkillError> {
        self.files += 1;
        self.bytes += bytes.len() as u64;
        if self.files > limits::SKILL_FILES {
            return Err(self.too_large(format!("{} files", limits::SKILL_FILES)));
        }
        if self.held.is_some() && self.digests.len() <= limits::NAMED_FILES {
            let digest = hex(&Sha256::digest([kind.as_bytes(), b" ", bytes].concat()));
            let name =
                if path.is_empty() { "SKILL.md".into() } else { String::from_utf8_lossy(path) };
            self.digests.insert(name.into_owned(), digest.chars().take(DIGITS).collect());
        }
        // Lengths before contents, so that no file can look like two.
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
    fn every_byte_and_name_counts() {
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
