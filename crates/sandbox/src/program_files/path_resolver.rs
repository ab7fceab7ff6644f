//! Resolves paths and records every symbolic link on the way, so that the new root can contain the
//! same links. A `ResolvedPath` is one resolved path.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};

use super::permissions;
use crate::limits;

/// The identity, size and times of a file, enough to notice that the file was replaced or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    fn of(meta: &fs::Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// Returns the stamp of a path now; a symbolic link at the end is not followed.
    pub(super) fn now(path: &Path) -> Option<Self> {
        fs::symlink_metadata(path).ok().as_ref().map(Self::of)
    }

    /// Returns the device and inode, which are the same for all hard links of a file.
    pub(super) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }
}

/// The kind of file at a path.
#[derive(Clone, Debug)]
pub(super) enum FileNode {
    /// Nothing, or nothing that this user can see.
    Missing,
    /// A symbolic link and its target as written.
    Link(PathBuf, FileStamp),
    /// A folder.
    Folder,
    /// A regular file and whether it can be executed.
    File(FileStamp, bool),
    /// A pipe, a socket or a device.
    Other,
}

/// A resolved path.
#[derive(Clone, Debug)]
pub(super) struct ResolvedPath {
    /// The path without symbolic links.
    pub(super) real: PathBuf,
    /// The file at `real`: never a link and never missing.
    pub(super) node: FileNode,
    /// The symbolic links on the way, each by its own real path, with their targets as written.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
}

impl ResolvedPath {
    /// Returns a regular file in a folder whose path is known to contain no links.
    pub(super) fn at(real: PathBuf) -> Option<Self> {
        let node = read_node(&real);
        matches!(node, FileNode::File(..)).then(|| Self { real, node, links: Vec::new() })
    }

    /// Returns the stamp, if the path leads to a regular file.
    pub(super) fn file(&self) -> Option<FileStamp> {
        match self.node {
            FileNode::File(stamp, _) => Some(stamp),
            _ => None,
        }
    }
}

/// Why a path cannot be resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResolveError {
    /// The path does not exist.
    Missing,
    /// The symbolic links form a loop, or there are too many.
    Loop,
    /// The path leads through a folder that the sandbox replaces with its own.
    Reserved,
}

/// Every sandbox has its own version of these folders.
const SANDBOX_FOLDERS: [&str; 3] = ["/dev", "/proc", "/sys"];

/// A cache of all paths that were looked up, so that each is read once.
#[derive(Debug, Default)]
pub(super) struct PathResolver {
    nodes: HashMap<PathBuf, FileNode>,
}

impl PathResolver {
    /// Resolves an absolute path.
    pub(super) fn resolve(&mut self, path: &Path) -> Result<ResolvedPath, ResolveError> {
        let mut rest = components_reversed(path);
        let mut real = PathBuf::from("/");
        let mut links = Vec::new();
        let mut node = self.read_node(&real);
        while let Some(part) = rest.pop() {
            if !matches!(node, FileNode::Folder) {
                return Err(ResolveError::Missing);
            }
            // `real` contains no links, so its parent is the path without the last component.
            if part == ".." {
                real.pop();
                continue;
            }
            real.push(part);
            if SANDBOX_FOLDERS.iter().any(|folder| real == Path::new(folder)) {
                return Err(ResolveError::Reserved);
            }
            node = self.read_node(&real);
            match &node {
                FileNode::Missing => return Err(ResolveError::Missing),
                FileNode::Link(target, _) => {
                    if links.len() == limits::MAX_LINKS_PER_PATH {
                        return Err(ResolveError::Loop);
                    }
                    let target = target.clone();
                    links.push((real.clone(), target.clone()));
                    real.pop();
                    if target.is_absolute() {
                        real = PathBuf::from("/");
                    }
                    rest.extend(components_reversed(&target));
                    node = self.read_node(&real);
                }
                _ => {}
            }
        }
        Ok(ResolvedPath { node: self.read_node(&real), real, links })
    }

    fn read_node(&mut self, path: &Path) -> FileNode {
        if let Some(node) = self.nodes.get(path) {
            return node.clone();
        }
        let node = read_node(path);
        self.nodes.insert(path.to_path_buf(), node.clone());
        node
    }

    /// Returns the stamps of all paths that were looked up, with `None` for missing ones, so that
    /// the cache can later check whether anything changed.
    ///
    /// Folders are left out, since a change in a folder matters only through the files that were
    /// looked up.
    pub(super) fn stamps(&self) -> impl Iterator<Item = (PathBuf, Option<FileStamp>)> {
        self.nodes.iter().filter_map(|(path, node)| match node {
            FileNode::Missing => Some((path.clone(), None)),
            FileNode::Link(_, stamp) | FileNode::File(stamp, _) => {
                Some((path.clone(), Some(*stamp)))
            }
            FileNode::Folder | FileNode::Other => None,
        })
    }
}

fn read_node(path: &Path) -> FileNode {
    let Ok(meta) = fs::symlink_metadata(path) else { return FileNode::Missing };
    let stamp = FileStamp::of(&meta);
    if meta.is_symlink() {
        fs::read_link(path).map_or(FileNode::Missing, |target| FileNode::Link(target, stamp))
    } else if meta.is_dir() {
        FileNode::Folder
    } else if meta.is_file() {
        FileNode::File(stamp, permissions::may_execute(&meta))
    } else {
        FileNode::Other
    }
}

/// Returns the components of a path, last one first.
fn components_reversed(path: &Path) -> Vec<OsString> {
    let mut components_reversed: Vec<_> = path
        .components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| part.as_os_str().to_os_string())
        .collect();
    components_reversed.reverse();
    components_reversed
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn records_every_link_by_its_real_path() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("usr/bin")).unwrap();
        fs::write(home.join("usr/bin/tool-1"), "x").unwrap();
        symlink("usr/bin", home.join("bin")).unwrap();
        symlink("../bin/tool-1", home.join("usr/bin/tool")).unwrap();
        let resolved = PathResolver::default().resolve(&home.join("bin/./tool")).unwrap();
        assert_eq!(resolved.real, home.join("usr/bin/tool-1"));
        assert!(resolved.file().is_some());
        let links: Vec<_> = resolved
            .links
            .iter()
            .map(|(link, target)| (link.as_path(), target.as_path()))
            .collect();
        assert_eq!(
            links,
            [
                (home.join("bin").as_path(), Path::new("usr/bin")),
                (home.join("usr/bin/tool").as_path(), Path::new("../bin/tool-1")),
            ]
        );
    }

    #[test]
    fn link_loops_and_missing_paths_are_errors() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        symlink("b", home.join("a")).unwrap();
        symlink("a", home.join("b")).unwrap();
        symlink("deeper/deeper/x", home.join("deeper")).unwrap();
        fs::write(home.join("file"), "x").unwrap();
        let mut resolver = PathResolver::default();
        assert_eq!(resolver.resolve(&home.join("a")).unwrap_err(), ResolveError::Loop);
        assert_eq!(resolver.resolve(&home.join("deeper")).unwrap_err(), ResolveError::Loop);
        assert_eq!(resolver.resolve(&home.join("nothing")).unwrap_err(), ResolveError::Missing);
        assert_eq!(resolver.resolve(&home.join("file/below")).unwrap_err(), ResolveError::Missing);
        assert_eq!(resolver.resolve(&home.join("file/..")).unwrap_err(), ResolveError::Missing);
    }
}
