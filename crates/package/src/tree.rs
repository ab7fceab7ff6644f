//! Represents a skill as files in memory.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use savoir_skill::{
    Folder,
    digest::sha256_hex,
    folder::{self, IGNORED_FOLDERS, is_skill_file},
    limits::MAX_FILE_BYTES as MAX_SKILL_BYTES,
};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::{
    limits::{MAX_DEPTH, MAX_FILE_BYTES, MAX_FILES, MAX_LINKS_IN_SKILL, MAX_TREE_BYTES},
    path::{PathProblem, UsedPaths},
    source::Boundary,
};

/// Files with signatures. They sign the other files, and are not signed themselves.
pub(crate) const SIGNATURE_FILES: [&str; 4] =
    ["signature.json", "SIGNATURE.json", "skill.oms.sig", "signature.asc"];

/// Files and folders that programs create in a skill's folder when it is installed or used. They
/// are not part of the skill.
const IGNORED_NAMES: [&str; 8] = [
    ".savoir", ".clawhub", ".clawdhub", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".DS_Store",
    "Thumbs.db",
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    pub bytes: Vec<u8>,
    /// Whether the file has an executable bit.
    pub executable: bool,
}

/// The files of one skill. Paths use `/`, are valid on every system, and no two of them name the
/// same file on any system. Clones share the files, so cloning is cheap.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    inner: Arc<Inner>,
}

#[derive(Clone, Debug, Default)]
struct Inner {
    files: BTreeMap<String, File>,
    seen: UsedPaths,
    bytes: u64,
    /// Computed once, because a plan needs it at every step.
    integrity: OnceLock<String>,
}

impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) || self.inner.files == other.inner.files
    }
}

/// The reason why files cannot be those of a skill.
#[derive(Debug, Error)]
pub enum TreeError {
    /// A path is not valid.
    #[error("`{}`: {problem}", path.escape_debug())]
    Path { path: String, problem: PathProblem },
    /// The skill is too large.
    #[error("{0}")]
    TooLarge(String),
    /// SKILL.md is too large to be read by an agent.
    #[error(
        "`{}` has more than {MAX_SKILL_BYTES} bytes; move data and reference text into other files of the skill",
        .0.escape_debug()
    )]
    SkillTooLarge(String),
    /// A link leads out of the skill, or not to a file.
    #[error("`{0}` is a link that does not lead to a file or folder of the same repository")]
    Link(String),
    /// A link leads out of the skill to a file that git does not track.
    #[error(
        "`{0}` is read through a link that leads out of the skill folder, and git does not track \
         the file there"
    )]
    Untracked(String),
    /// The entry is neither a file nor a folder.
    #[error("`{0}` is neither a file nor a folder")]
    Special(String),
    /// The operating system returned an error.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

impl TreeError {
    /// A stable error code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Path { problem, .. } => problem.code(),
            Self::TooLarge(_) => "too_large",
            // The name of the rule of `savoir check`.
            Self::SkillTooLarge(_) => "file-too-large",
            Self::Link(_) => "link",
            Self::Untracked(_) => "untracked_link",
            Self::Special(_) => "file_type",
            Self::Io { .. } => "io",
        }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }
}

impl Tree {
    /// Reads the files of a folder, without files that tools create. A link to another file or
    /// folder of the skill is followed; a link that leads elsewhere is an error.
    pub fn read(folder: &Path) -> Result<Self, TreeError> {
        let real = folder.canonicalize().map_err(TreeError::io(folder))?;
        Self::read_within(folder, &Boundary::Folder(real))
    }

    /// Like [`Self::read`], but links may lead to the files that `boundary` shares, such as the
    /// tracked files of the repository that the folder belongs to.
    pub(crate) fn read_within(folder: &Path, boundary: &Boundary) -> Result<Self, TreeError> {
        let real = folder.canonicalize().map_err(TreeError::io(folder))?;
        let links = Links::Follow { boundary, above: vec![real], left: MAX_LINKS_IN_SKILL };
        let mut reader = Reader { tree: Self::default(), links };
        reader.folder(folder, "", 0)?;
        Ok(reader.tree)
    }

    /// Like [`Self::read`], but every link is an error.
    pub(crate) fn read_without_links(folder: &Path) -> Result<Self, TreeError> {
        let mut reader = Reader { tree: Self::default(), links: Links::Refuse };
        reader.folder(folder, "", 0)?;
        Ok(reader.tree)
    }

    /// Adds a file; fails if its path or its size is not allowed.
    pub fn add(&mut self, path: String, file: File) -> Result<(), TreeError> {
        let inner = Arc::make_mut(&mut self.inner);
        if let Err(problem) = inner.seen.file(&path) {
            return Err(TreeError::Path { path, problem });
        }
        let length = file.bytes.len() as u64;
        if length > MAX_FILE_BYTES && path.rsplit('/').next().is_some_and(is_skill_file) {
            return Err(TreeError::SkillTooLarge(path));
        }
        if length > MAX_FILE_BYTES {
            return Err(TreeError::TooLarge(format!(
                "`{path}` has {length} bytes; a file of a skill has at most {MAX_FILE_BYTES}"
            )));
        }
        inner.bytes += length;
        if inner.bytes > MAX_TREE_BYTES {
            return Err(TreeError::TooLarge(format!(
                "its files have more than {MAX_TREE_BYTES} bytes together"
            )));
        }
        if inner.files.len() >= MAX_FILES {
            return Err(TreeError::TooLarge(format!("it has more than {MAX_FILES} files")));
        }
        inner.integrity.take();
        inner.files.insert(path, file);
        Ok(())
    }

    /// The files, sorted by path.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&str, &File)> {
        self.inner.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Scans the files for malicious behavior.
    pub fn scan(&self) -> savoir_scan::Report {
        savoir_scan::scan(&self.scan_files())
    }

    /// Like [`Self::scan`], on this thread, which must have a stack of [`savoir_scan::STACK`].
    pub(crate) fn scan_here(&self) -> savoir_scan::Report {
        savoir_scan::scan_here(&self.scan_files())
    }

    fn scan_files(&self) -> savoir_scan::Files<'_> {
        self.files().map(|(path, file)| (path, file.bytes.as_slice())).collect()
    }

    /// Converts the tree to its files, sorted by path.
    pub fn into_files(self) -> impl ExactSizeIterator<Item = (String, File)> {
        Arc::unwrap_or_clone(self.inner).files.into_iter()
    }

    /// Returns the file at a path.
    pub fn get(&self, path: &str) -> Option<&File> {
        self.inner.files.get(path)
    }

    /// Returns a tree in which the file at `path` is added or replaced.
    pub fn with_file(&self, path: &str, file: File) -> Result<Self, TreeError> {
        let mut tree = Self::default();
        let others = self.files().filter(|(known, _)| *known != path);
        for (known, other) in others {
            tree.add(known.to_owned(), other.clone())?;
        }
        tree.add(path.to_owned(), file)?;
        Ok(tree)
    }

    /// Returns the files as a [`Folder`] with this name, which the dialect readers and the rules
    /// take.
    pub fn as_folder(&self, name: Option<&str>) -> Folder {
        let file = |path: &str| folder::File { path: path.to_owned(), link: false };
        let files = self.files().map(|(path, _)| file(path)).collect();
        let tree = self.clone();
        Folder::in_memory(name, files, move |path| tree.get(path).map(|file| file.bytes.clone()))
    }

    /// All files except those with signatures.
    fn signed(&self) -> impl Iterator<Item = (&str, &File)> {
        self.files().filter(|(path, _)| !SIGNATURE_FILES.contains(path))
    }

    /// Whether two trees have the same files, ignoring signatures and executable bits.
    pub(crate) fn is_same_skill(&self, other: &Self) -> bool {
        let bytes = |(path, file): (&str, &File)| {
            other.get(path).is_some_and(|there| there.bytes == file.bytes)
        };
        Arc::ptr_eq(&self.inner, &other.inner)
            || self.signed().count() == other.signed().count() && self.signed().all(bytes)
    }

    /// Returns the SHA-256 of every file except those with signatures, in hexadecimal digits.
    pub fn digests(&self) -> BTreeMap<String, String> {
        self.signed().map(|(path, file)| (path.to_owned(), sha256_hex(&file.bytes))).collect()
    }

    /// Returns the hash that a lock pins: `sha256-` and the digest of all file digests in base64,
    /// in the notation of subresource integrity. It does not depend on how the files were packed.
    pub fn integrity(&self) -> String {
        self.inner.integrity.get_or_init(|| integrity(&self.digests())).clone()
    }

    /// Writes the files into a new folder; fails if the folder exists.
    pub fn write(&self, folder: &Path) -> Result<(), TreeError> {
        fs::create_dir(folder).map_err(TreeError::io(folder))?;
        let mut parent_made = "";
        for (path, file) in self.files() {
            let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
            if parent != parent_made {
                let place = folder.join(parent);
                fs::create_dir_all(&place).map_err(TreeError::io(&place))?;
                parent_made = parent;
            }
            let place = folder.join(path);
            let mode = if file.executable { 0o755 } else { 0o644 };
            let mut options = fs::OpenOptions::new();
            let opened = options.write(true).create_new(true).mode(mode).open(&place);
            opened
                .and_then(|mut opened| opened.write_all(&file.bytes))
                .map_err(TreeError::io(&place))?;
        }
        Ok(())
    }
}

/// Reads a folder into a tree.
struct Reader<'a> {
    tree: Tree,
    links: Links<'a>,
}

/// How to handle links.
enum Links<'a> {
    Follow {
        /// The folder that links must not leave.
        boundary: &'a Boundary,
        /// The skill folder, and the targets of the links that led to the current folder.
        above: Vec<PathBuf>,
        /// The number of links that may still be followed.
        left: usize,
    },
    Refuse,
}

impl Reader<'_> {
    fn folder(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), TreeError> {
        let fail = || TreeError::io(folder);
        for entry in fs::read_dir(folder).map_err(fail())? {
            let entry = entry.map_err(fail())?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_ignored_name(&name) {
                continue;
            }
            let path = format!("{prefix}{name}");
            let kind = entry.file_type().map_err(fail())?;
            if kind.is_dir() {
                self.inner(&entry.path(), path, depth)?;
            } else if kind.is_file() {
                self.file(&entry.path(), path)?;
            } else if kind.is_symlink() {
                self.link(&entry.path(), path, depth)?;
            } else {
                return Err(TreeError::Special(path));
            }
        }
        Ok(())
    }

    fn file(&mut self, file: &Path, path: String) -> Result<(), TreeError> {
        if !self.links.may_read(file) {
            return Err(TreeError::Untracked(path));
        }
        self.tree.add(path, read_file(file)?)
    }

    fn inner(&mut self, folder: &Path, path: String, depth: usize) -> Result<(), TreeError> {
        if depth >= MAX_DEPTH {
            return Err(TreeError::Path { path, problem: PathProblem::Length });
        }
        self.folder(folder, &format!("{path}/"), depth + 1)
    }

    fn link(&mut self, link: &Path, path: String, depth: usize) -> Result<(), TreeError> {
        let Some(target) = self.links.target(link) else { return Err(TreeError::Link(path)) };
        self.links.enter(&target);
        if target.is_file() {
            self.file(&target, path)?;
            self.links.leave();
            return Ok(());
        }
        self.inner(&target, path, depth)?;
        self.links.leave();
        Ok(())
    }
}

impl Links<'_> {
    /// Whether a file may be read: it is in the skill folder, or the boundary shares it.
    fn may_read(&self, file: &Path) -> bool {
        match self {
            Self::Refuse => true,
            Self::Follow { boundary, above, .. } => {
                let is_linked = above.len() > 1;
                !is_linked || file.starts_with(&above[0]) || boundary.may_link_to(file)
            }
        }
    }

    /// Returns the target of a link, unless it is outside of the boundary or part of a cycle.
    fn target(&mut self, link: &Path) -> Option<PathBuf> {
        let Self::Follow { boundary, above, left } = self else { return None };
        *left = left.checked_sub(1)?;
        let target = link.canonicalize().ok()?;
        let inside = target.strip_prefix(boundary.root()).ok()?;
        if inside.components().any(|part| part.as_os_str() == ".git") {
            return None;
        }
        // A link to a folder above itself is a cycle.
        let holds_link = link.parent()?.canonicalize().ok()?.starts_with(&target);
        let is_circle = holds_link || above.contains(&target);
        (target.is_file() || target.is_dir() && !is_circle).then_some(target)
    }

    fn enter(&mut self, folder: &Path) {
        if let Self::Follow { above, .. } = self {
            above.push(folder.to_owned());
        }
    }

    fn leave(&mut self) {
        if let Self::Follow { above, .. } = self {
            above.pop();
        }
    }
}

/// Computes the integrity from file digests by path.
pub(crate) fn integrity(digests: &BTreeMap<String, String>) -> String {
    let digest = Sha256::digest(canonical_json(digests));
    format!("sha256-{}", STANDARD.encode(digest))
}

/// Formats an object as the bytes to sign: sorted keys, no spaces, everything outside ASCII
/// escaped.
pub(crate) fn canonical_json(members: &BTreeMap<String, String>) -> String {
    let mut text = String::from("{");
    for (key, value) in members {
        if text.len() > 1 {
            text.push(',');
        }
        push_ascii(&mut text, key);
        text.push(':');
        push_ascii(&mut text, value);
    }
    text.push('}');
    text
}

/// Appends a JSON string in pure ASCII.
pub(crate) fn push_ascii(text: &mut String, value: &str) {
    let plain = serde_json::Value::from(value).to_string();
    for c in plain.chars() {
        if c.is_ascii() && c != '\u{7f}' {
            text.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\u{unit:04x}");
        }
    }
}

pub(crate) fn is_ignored_name(name: &str) -> bool {
    IGNORED_FOLDERS.contains(&name)
        || IGNORED_NAMES.contains(&name)
        || [".pyc", ".pyo"].iter().any(|end| name.ends_with(end))
}

pub(crate) fn read_file(path: &Path) -> Result<File, TreeError> {
    let fail = || TreeError::io(path);
    let file = fs::File::open(path).map_err(fail())?;
    let metadata = file.metadata().map_err(fail())?;
    let executable = metadata.permissions().mode() & 0o111 != 0;
    let mut bytes = Vec::with_capacity(metadata.len().min(MAX_FILE_BYTES) as usize + 1);
    // One byte more than the limit is enough to detect a file that is too large.
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(fail())?;
    Ok(File { bytes, executable })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn plain(text: &str) -> File {
        File { bytes: text.into(), executable: false }
    }

    #[test]
    fn tree_round_trips() {
        let place = tempfile::tempdir().unwrap();
        let mut tree = Tree::default();
        tree.add("SKILL.md".into(), plain("---\nname: x\n---\n")).unwrap();
        tree.add("scripts/deep/run.sh".into(), File { bytes: b"#!".into(), executable: true })
            .unwrap();
        tree.add("scripts/a.txt".into(), plain("a")).unwrap();
        let folder = place.path().join("x");
        tree.write(&folder).unwrap();
        assert!(tree.write(&folder).is_err(), "what is there is not written over");
        fs::create_dir_all(folder.join("__pycache__")).unwrap();
        fs::write(folder.join("__pycache__/x.pyc"), "x").unwrap();
        fs::write(folder.join(".DS_Store"), "x").unwrap();
        let again = Tree::read(&folder).unwrap();
        assert_eq!(again, tree);
        assert_eq!(again.integrity(), tree.integrity());
    }

    #[test]
    fn symlinks_out_of_folder_are_rejected() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("x");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("SKILL.md"), "a").unwrap();
        symlink("SKILL.md", folder.join("again.md")).unwrap();
        assert_eq!(Tree::read(&folder).unwrap().get("again.md").unwrap().bytes, b"a");
        assert_eq!(Tree::read_without_links(&folder).unwrap_err().code(), "link");
        fs::write(place.path().join("secret"), "s").unwrap();
        symlink("../secret", folder.join("out")).unwrap();
        assert_eq!(Tree::read(&folder).unwrap_err().code(), "link");
        fs::remove_file(folder.join("out")).unwrap();
        symlink("nowhere", folder.join("out")).unwrap();
        assert_eq!(Tree::read(&folder).unwrap_err().code(), "link");
    }

    #[test]
    fn links_may_lead_to_folders_in_boundary() {
        let place = tempfile::tempdir().unwrap();
        let repository = place.path().canonicalize().unwrap().join("repository");
        let boundary = Boundary::Folder(repository.clone());
        let folder = repository.join("skills/x");
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(repository.join("shared/deep")).unwrap();
        fs::create_dir(repository.join(".git")).unwrap();
        fs::write(repository.join(".git/config"), "c").unwrap();
        fs::write(folder.join("SKILL.md"), "a").unwrap();
        fs::write(repository.join("LICENSE"), "l").unwrap();
        fs::write(repository.join("shared/deep/b.md"), "b").unwrap();
        fs::write(place.path().join("secret"), "s").unwrap();
        symlink("../../LICENSE", folder.join("LICENSE")).unwrap();
        symlink("../../shared", folder.join("references")).unwrap();
        let tree = Tree::read_within(&folder, &boundary).unwrap();
        let paths: Vec<_> = tree.files().map(|(path, _)| path).collect();
        assert_eq!(paths, ["LICENSE", "SKILL.md", "references/deep/b.md"]);
        assert_eq!(Tree::read(&folder).unwrap_err().code(), "link");
        for target in ["../..", ".", "../../.git/config", "../../../secret", "/etc/hosts"] {
            symlink(target, folder.join("bad")).unwrap();
            let refused = Tree::read_within(&folder, &boundary).unwrap_err();
            assert_eq!(refused.code(), "link", "{target}");
            fs::remove_file(folder.join("bad")).unwrap();
        }
        symlink("../../skills", repository.join("shared/deep/up")).unwrap();
        assert_eq!(Tree::read_within(&folder, &boundary).unwrap_err().code(), "link");
    }

    #[test]
    fn integrity_is_hash_of_digests() {
        let mut tree = Tree::default();
        tree.add("ä.md".into(), plain("a")).unwrap();
        let without = tree.integrity();
        tree.add("signature.json".into(), plain("{}")).unwrap();
        assert_eq!(tree.integrity(), without, "signatures are no part of it");
        let text = canonical_json(&tree.digests());
        let digest = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
        assert_eq!(text, format!("{{\"\\u00e4.md\":\"{digest}\"}}"));
        assert_eq!(integrity(&tree.digests()), without);
        let mut text = String::new();
        push_ascii(&mut text, "\"\n\u{7f}😀");
        assert_eq!(text, "\"\\\"\\n\\u007f\\ud83d\\ude00\"");
    }

    #[test]
    fn clones_are_copy_on_write() {
        let mut tree = Tree::default();
        tree.add("SKILL.md".into(), plain("a")).unwrap();
        let (clone, integrity) = (tree.clone(), tree.integrity());
        tree.add("b.md".into(), plain("b")).unwrap();
        assert_eq!(clone.integrity(), integrity, "a clone stays as it was");
        assert_ne!(tree.integrity(), integrity, "the cached value is not used");
        assert_ne!(tree, clone);
        assert_eq!(clone.files().len(), 1);
    }

    #[test]
    fn signatures_do_not_change_the_skill() {
        let mut tree = Tree::default();
        tree.add("SKILL.md".into(), plain("a")).unwrap();
        let mut signed = tree.clone();
        signed.add("signature.json".into(), plain("{}")).unwrap();
        assert!(tree.is_same_skill(&signed) && signed.is_same_skill(&tree));
        let mut more = tree.clone();
        more.add("b.md".into(), plain("b")).unwrap();
        assert!(!tree.is_same_skill(&more) && !more.is_same_skill(&tree));
        let mut other = Tree::default();
        other.add("SKILL.md".into(), plain("b")).unwrap();
        assert!(!tree.is_same_skill(&other));
    }

    #[test]
    fn too_large_trees_are_rejected() {
        let mut tree = Tree::default();
        let large = || File { bytes: vec![0; MAX_FILE_BYTES as usize], executable: false };
        let refused = tree.add(
            "a".into(),
            File { bytes: vec![0; MAX_FILE_BYTES as usize + 1], executable: false },
        );
        assert_eq!(refused.unwrap_err().code(), "too_large");
        let skill = File { bytes: vec![b' '; MAX_FILE_BYTES as usize + 1], executable: false };
        let refused = tree.add("SKILL.md".into(), skill).unwrap_err();
        assert_eq!(refused.code(), "file-too-large", "as the rule calls it: {refused}");
        let mut tree = Tree::default();
        for n in 0..4 {
            tree.add(format!("{n}"), large()).unwrap();
        }
        assert_eq!(tree.add("x".into(), plain("x")).unwrap_err().code(), "too_large");
        let mut tree = Tree::default();
        for n in 0..MAX_FILES {
            tree.add(format!("{n}"), plain("")).unwrap();
        }
        assert_eq!(tree.add("x".into(), plain("")).unwrap_err().code(), "too_large");
    }
}
