//! Lists and reads the files in the folder of a skill, within limits and without following links.

use std::{
    fmt, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{dialect::Hint, limits};

/// A file in the folder of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Relative path with `/` between its parts.
    pub path: String,
    /// Whether the file is a symbolic link.
    pub link: bool,
}

/// The folder of a skill, with the list of its files.
#[derive(Clone, Debug, Default)]
pub struct Folder {
    root: PathBuf,
    name: Option<String>,
    files: Vec<File>,
    contents: Contents,
    hint: Option<Hint>,
}

/// Returns the bytes of a file by path.
type FileReader = dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync;

/// The storage of the files.
#[derive(Clone, Default)]
enum Contents {
    /// On disk, below the root.
    #[default]
    Disk,
    /// Read by a function of the caller.
    Memory(Arc<FileReader>),
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disk => "Disk",
            Self::Memory(_) => "Memory",
        })
    }
}

/// Names of folders that never belong to a skill.
pub const IGNORED_FOLDERS: [&str; 7] =
    [".git", ".hg", ".svn", "node_modules", "__pycache__", "__MACOSX", ".venv"];

impl Folder {
    /// Lists the files below `root`.
    pub fn open(root: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        list(root, "", 0, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self::from_parts(root.to_owned(), files))
    }

    /// Makes a folder from a known list of files.
    pub fn from_parts(root: PathBuf, files: Vec<File>) -> Self {
        let name = folder_name(&root);
        Self { root, name, files, contents: Contents::Disk, hint: None }
    }

    /// Makes a folder that is not on disk, such as one in an archive, from its name, its files
    /// sorted by path, and a function that reads them.
    pub fn in_memory(
        name: Option<&str>,
        files: Vec<File>,
        bytes: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        let root = name.unwrap_or_default().into();
        let contents = Contents::Memory(Arc::new(bytes));
        Self { root, name: name.map(str::to_owned), files, contents, hint: None }
    }

    /// Sets the dialect that the location of the folder suggests.
    #[must_use]
    pub fn with_hint(self, hint: Option<Hint>) -> Self {
        Self { hint, ..self }
    }

    /// The dialect that the location of the folder suggests.
    pub fn hint(&self) -> Option<&Hint> {
        self.hint.as_ref()
    }

    /// The path of the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The name of the folder, without its path.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The files, including SKILL.md, sorted by path.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// Whether a file exists, by relative path.
    pub fn has(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.path == path)
    }

    /// Whether a folder exists, by relative path.
    pub fn has_folder(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.files
            .iter()
            .any(|file| file.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
    }

    /// The files other than SKILL.md.
    pub fn resources(&self) -> Vec<String> {
        let unknown_fields = self.files.iter().filter(|file| !is_skill_file(&file.path));
        unknown_fields.map(|file| file.path.clone()).collect()
    }

    /// Reads one of the listed files; links are not followed.
    pub fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let listed_path = self.listed_path(path)?;
        match &self.contents {
            Contents::Disk => fs::read(listed_path),
            Contents::Memory(bytes) => bytes(path).ok_or_else(|| not_found_error(path)),
        }
    }

    /// Reads one of the listed files, unless it is larger than `limit` bytes.
    pub fn read_up_to(&self, path: &str, limit: usize) -> io::Result<Vec<u8>> {
        let listed_path = self.listed_path(path)?;
        let bytes = match &self.contents {
            Contents::Disk => {
                let mut bytes = Vec::new();
                fs::File::open(listed_path)?.take(limit as u64 + 1).read_to_end(&mut bytes)?;
                bytes
            }
            Contents::Memory(bytes) => bytes(path).ok_or_else(|| not_found_error(path))?,
        };
        if bytes.len() > limit {
            let message = format!("{path} has more than {limit} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(bytes)
    }

    fn listed_path(&self, path: &str) -> io::Result<PathBuf> {
        let file = self.files.iter().find(|file| file.path == path);
        let why = match file {
            Some(file) if !file.link => return Ok(self.root.join(&file.path)),
            Some(_) => "is a symbolic link, which is not followed",
            None => "is not in the skill",
        };
        Err(io::Error::new(io::ErrorKind::NotFound, format!("{path} {why}")))
    }
}

fn not_found_error(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{path} is not there"))
}

/// Whether a path names the skill file itself.
pub fn is_skill_file(path: &str) -> bool {
    matches!(path, "SKILL.md" | "skill.md" | "Skill.md" | "SKILL.MD")
}

fn folder_name(root: &Path) -> Option<String> {
    let named = root.file_name().map(ToOwned::to_owned);
    let name = named.or_else(|| root.canonicalize().ok()?.file_name().map(ToOwned::to_owned))?;
    let name = name.to_string_lossy().into_owned();
    Some(match name.split_once('~') {
        // The folder of a second owner's skill on a server.
        Some((first, owner)) if is_owner(owner) => first.to_owned(),
        _ => name,
    })
}

fn is_owner(text: &str) -> bool {
    let is_account = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_account || text == "shared"
}

fn list(root: &Path, prefix: &str, depth: usize, files: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(prefix))? {
        let entry = entry?;
        if files.len() >= limits::MAX_FOLDER_FILES {
            return Ok(());
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        let kind = entry.file_type()?;
        // Pipes, sockets and devices are never part of a skill, and opening one may block.
        if !kind.is_dir() && !kind.is_file() && !kind.is_symlink() {
            continue;
        }
        if !kind.is_dir() {
            files.push(File { path, link: kind.is_symlink() });
        } else if depth < limits::MAX_FOLDER_DEPTH && !IGNORED_FOLDERS.contains(&name.as_str()) {
            list(root, &path, depth + 1, files)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_files_without_following_links() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("demo");
        fs::create_dir_all(root.join("references/deep")).unwrap();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::write(root.join("SKILL.md"), "x").unwrap();
        fs::write(root.join("references/deep/a.md"), "x").unwrap();
        fs::write(root.join(".git/config"), "x").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
        let folder = Folder::open(&root).unwrap();
        assert_eq!(folder.name(), Some("demo"));
        assert_eq!(folder.resources(), ["link", "references/deep/a.md"]);
        assert!(folder.has_folder("references") && !folder.has_folder("ref"));
        assert!(folder.read("link").is_err());
        assert!(folder.read("../x").is_err());
        assert_eq!(folder.read_up_to("SKILL.md", 1).unwrap(), b"x");
        assert!(folder.read_up_to("SKILL.md", 0).is_err());
    }

    #[test]
    fn in_memory_folder_is_read() {
        let file = |path: &str| File { path: path.to_owned(), link: false };
        let files = vec![file("SKILL.md"), file("tools.py")];
        let bytes = |path: &str| (path == "tools.py").then(|| b"x".to_vec());
        let folder = Folder::in_memory(Some("demo"), files, bytes);
        assert_eq!((folder.name(), folder.resources().len()), (Some("demo"), 1));
        assert_eq!(folder.read("tools.py").unwrap(), b"x");
        assert_eq!(folder.read_up_to("tools.py", 1).unwrap(), b"x");
        assert!(folder.read_up_to("tools.py", 0).is_err());
        assert!(folder.read("SKILL.md").is_err() && folder.read("other").is_err());
        assert_eq!(Folder::in_memory(None, Vec::new(), |_| None).name(), None);
    }
}
