//! Reads the files of a folder for the hashes of other tools.

use std::{
    fs,
    io::Read as _,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::Path,
};

use crate::{
    limits::{MAX_DEPTH, MAX_FILES, MAX_TREE_BYTES},
    path::PathProblem,
    tree::{TreeError, is_ignored_name},
};

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Program,
    /// A symbolic link; its bytes are its target.
    Link,
}

/// A file below a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// The path, with `/` as separator.
    pub(super) path: String,
    pub(super) kind: Kind,
    pub(super) bytes: Vec<u8>,
}

impl Item {
    /// Whether the file was created by using the skill, or by the tool that installed it.
    pub(super) fn is_ignored_name(&self) -> bool {
        self.path.split('/').any(is_ignored_name)
    }
}

/// Reads every file below a folder except those in `.git` and `node_modules`, sorted by path.
pub(super) fn read(folder: &Path) -> Result<Vec<Item>, TreeError> {
    let mut reader = Reader { items: Vec::new(), bytes: 0 };
    reader.folder(folder, "", 0)?;
    reader.items.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(reader.items)
}

struct Reader {
    items: Vec<Item>,
    bytes: u64,
}

impl Reader {
    fn folder(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), TreeError> {
        let fail = || TreeError::io(folder);
        for entry in fs::read_dir(folder).map_err(fail())? {
            let entry = entry.map_err(fail())?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                let path = format!("{prefix}{}", name.to_string_lossy());
                let problem = PathProblem::Characters("its name is not UTF-8".to_owned());
                return Err(TreeError::Path { path, problem });
            };
            let path = format!("{prefix}{name}");
            let kind = entry.file_type().map_err(fail())?;
            if !kind.is_dir() {
                self.file(&entry.path(), path, kind)?;
            } else if depth >= MAX_DEPTH {
                return Err(TreeError::Path { path, problem: PathProblem::Length });
            } else if !matches!(name, ".git" | "node_modules") {
                self.folder(&entry.path(), &format!("{path}/"), depth + 1)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, place: &Path, path: String, kind: fs::FileType) -> Result<(), TreeError> {
        if self.items.len() >= MAX_FILES {
            return Err(TreeError::TooLarge(format!("it has more than {MAX_FILES} files")));
        }
        let (kind, bytes) = if kind.is_symlink() {
            let target = fs::read_link(place).map_err(TreeError::io(place))?;
            (Kind::Link, target.as_os_str().as_bytes().to_vec())
        } else if kind.is_file() {
            self.bytes_of(place)?
        } else {
            return Err(TreeError::Special(path));
        };
        self.items.push(Item { path, kind, bytes });
        Ok(())
    }

    fn bytes_of(&mut self, place: &Path) -> Result<(Kind, Vec<u8>), TreeError> {
        let fail = || TreeError::io(place);
        let file = fs::File::open(place).map_err(fail())?;
        let metadata = file.metadata().map_err(fail())?;
        let left = MAX_TREE_BYTES - self.bytes;
        let mut bytes = Vec::with_capacity(metadata.len().min(left) as usize + 1);
        file.take(left + 1).read_to_end(&mut bytes).map_err(fail())?;
        if bytes.len() as u64 > left {
            let message = format!("its files have more than {MAX_TREE_BYTES} bytes together");
            return Err(TreeError::TooLarge(message));
        }
        self.bytes += bytes.len() as u64;
        let program = metadata.permissions().mode() & 0o111 != 0;
        Ok((if program { Kind::Program } else { Kind::File }, bytes))
    }
}
