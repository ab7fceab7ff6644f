//! [`Subject`]: a skill on disk, with what is known about where it came from.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use savoir_skill::{
    Reading, Skill,
    permission::{Tier, effective},
    python::{self, TOOLS_FILE},
    skill::Runner,
};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::{approval::Trust, limits, words::hex};

/// Folders in which version control keeps its history. In the root of a skill they do not count, and
/// a run does not see them.
pub(crate) const HISTORY: [&str; 3] = [".git", ".hg", ".svn"];

/// A skill on disk.
#[derive(Clone, Debug)]
pub struct Subject {
    /// What it says.
    pub skill: Skill,
    /// Its SKILL.md.
    pub file: PathBuf,
    /// Its folder; a lone file has none.
    pub folder: Option<PathBuf>,
    /// SHA-256 over every file of it.
    pub digest: String,
    /// How it came here.
    pub trust: Trust,
    /// Who vouches for it.
    pub tier: Tier,
    /// Whether its Python tools are what it declares, before any of them runs.
    pub source: Result<(), SourceError>,
}

/// Why a skill on disk cannot be used.
#[derive(Debug, Error)]
pub enum SubjectError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What it says is in a folder that does not count for an approval.
    #[error("{} is in the history of version control", path.display())]
    History {
        /// Its SKILL.md.
        path: PathBuf,
    },
    /// It has more than anyone can judge.
    #[error("{} has more than {what}, which is too much to approve", path.display())]
    TooLarge {
        /// The skill's folder.
        path: PathBuf,
        /// What there is too much of.
        what: String,
    },
}

impl Subject {
    /// A skill whose file was read. The folder around the file belongs to it if there is one.
    pub fn new(
        reading: &Reading,
        file: &Path,
        folder: Option<&Path>,
        trust: Trust,
    ) -> Result<Self, SubjectError> {
        let skill = reading.skill.clone();
        let unreadable = |source| SubjectError::Unreadable { path: file.to_owned(), source };
        let file = file.canonicalize().map_err(unreadable)?;
        let folder = folder.map(Path::canonicalize).transpose().map_err(unreadable)?;
        let in_history =
            |folder: &Path| HISTORY.iter().any(|name| file.starts_with(folder.join(name)));
        if folder.as_deref().is_some_and(in_history) {
            return Err(SubjectError::History { path: file });
        }
        let digest = digest(folder.as_deref().unwrap_or(&file))?;
        // Nobody has signed it yet: a claim alone is worth nothing.
        let attested = Tier::Experimental;
        let claimed = skill.policy.tier.unwrap_or_default();
        let tier = if skill.dialect.running().attestable {
            effective(claimed, attested)
        } else {
            Tier::Experimental
        };
        let source = hold_source(reading, folder.as_deref());
        Ok(Self { skill, file, folder, digest, trust, tier, source })
    }

    /// The folder, or the file of a skill without one.
    pub fn path(&self) -> &Path {
        self.folder.as_deref().unwrap_or(&self.file)
    }
}

/// Why the Python tools of a skill are not what it declares.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", .0.join("; "))]
pub struct SourceError(pub Vec<String>);

/// Holds the declarations against `tools.py`. Each difference names both places.
fn hold_source(reading: &Reading, folder: Option<&Path>) -> Result<(), SourceError> {
    let is_python = |tool: &savoir_skill::skill::Tool| matches!(tool.runner, Runner::Python { .. });
    if !reading.skill.tools.iter().any(is_python) {
        return Ok(());
    }
    let wrong = |text: String| SourceError(vec![text]);
    let folder = folder.ok_or_else(|| wrong(format!("there is no {TOOLS_FILE} beside it")))?;
    let bytes = fs::read(folder.join(TOOLS_FILE))
        .map_err(|error| wrong(format!("{TOOLS_FILE} cannot be read: {error}")))?;
    let module = python::parse_bytes(&bytes).map_err(|error| {
        let place = place(&String::from_utf8_lossy(&bytes), error.span.start);
        wrong(format!("{TOOLS_FILE}:{place}: {error}"))
    })?;
    let text = String::from_utf8_lossy(&bytes);
    let differences = python::hold(&python::declarations(reading), &module);
    let described = differences.iter().map(|mismatch| {
        let declared = mismatch.declared.map(|span| {
            let at = reading.document.source().position(span.start);
            format!("SKILL.md:{}:{}", at.line, at.column)
        });
        let source =
            mismatch.source.map(|span| format!("{TOOLS_FILE}:{}", place(&text, span.start)));
        let places: Vec<String> = declared.into_iter().chain(source).collect();
        format!("{mismatch} ({})", places.join(", "))
    });
    let described: Vec<String> = described.collect();
    if described.is_empty() { Ok(()) } else { Err(SourceError(described)) }
}

/// Line and column of an offset.
fn place(text: &str, offset: usize) -> String {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    format!("{line}:{column}")
}

/// SHA-256 over paths, kinds and contents of everything that a run can see, whether `check` looks
/// at it or not. Only the history of version control is left out, which a run does not see.
fn digest(path: &Path) -> Result<String, SubjectError> {
    let mut hash = Hash { sha256: Sha256::new(), root: path, files: 0, bytes: 0 };
    if path.is_dir() {
        hash.folder(path, b"", 0)?;
    } else {
        hash.file(path, b"")?;
    }
    Ok(hex(&hash.sha256.finalize()))
}

struct Hash<'a> {
    sha256: Sha256,
    root: &'a Path,
    files: usize,
    bytes: u64,
}

impl Hash<'_> {
    fn folder(&mut self, folder: &Path, prefix: &[u8], depth: usize) -> Result<(), SubjectError> {
        if depth > limits::SKILL_DEPTH {
            return Err(self.too_large(format!("{} folders in one another", limits::SKILL_DEPTH)));
        }
        let unreadable = |source| SubjectError::Unreadable { path: folder.to_owned(), source };
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
                self.add("link", &relative, target.as_os_str().as_encoded_bytes())?;
            } else if kind.is_file() {
                self.file(&path, &relative)?;
            } else {
                self.add("other", &relative, b"")?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, relative: &[u8]) -> Result<(), SubjectError> {
        let unreadable = |source| SubjectError::Unreadable { path: path.to_owned(), source };
        let metadata = fs::metadata(path).map_err(unreadable)?;
        if self.bytes + metadata.len() > limits::SKILL_BYTES {
            return Err(self.too_large(format!("{} MiB", limits::SKILL_BYTES >> 20)));
        }
        let bytes = fs::read(path).map_err(unreadable)?;
        let kind = if metadata.permissions().mode() & 0o111 == 0 { "file" } else { "program" };
        self.add(kind, relative, &bytes)
    }

    fn add(&mut self, kind: &str, path: &[u8], bytes: &[u8]) -> Result<(), SubjectError> {
        self.files += 1;
        self.bytes += bytes.len() as u64;
        if self.files > limits::SKILL_FILES {
            return Err(self.too_large(format!("{} files", limits::SKILL_FILES)));
        }
        // Lengths before contents, so that no file can look like two.
        let head = format!("{kind} {} {} ", path.len(), bytes.len());
        for part in [head.as_bytes(), path, bytes] {
            self.sha256.update(part);
        }
        Ok(())
    }

    fn too_large(&self, what: String) -> SubjectError {
        SubjectError::TooLarge { path: self.root.to_owned(), what }
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

    #[test]
    fn a_skill_is_not_in_its_history() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join(".git/real.md"), "text").unwrap();
        std::os::unix::fs::symlink(".git/real.md", root.join("SKILL.md")).unwrap();
        let source = savoir_skill::Source::from_bytes(b"text".to_vec()).unwrap();
        let reading = savoir_skill::read(source, None);
        let found = Subject::new(&reading, &root.join("SKILL.md"), Some(root), Trust::User);
        assert!(matches!(found, Err(SubjectError::History { .. })), "{found:?}");
    }
}
