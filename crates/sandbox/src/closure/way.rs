//! Resolves paths and records every symbolic link on the way, so that the new root can contain the
//! same links. A `Way` is one resolved path.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};

use super::access;
use crate::limits;

/// The identity, size and times of a file, enough to notice that the file was replaced or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
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
pub(super) enum Node {
    /// Nothing, or nothing that this user can see.
    Missing,
    /// A symbolic link and its target as written.
    Link(PathBuf, Stamp),
    /// A folder.
    Folder,
    /// A regular file and whether it can be executed.
    File(Stamp, bool),
    /// A pipe, a socket or a device.
    Other,
}

/// A resolved path.
#[derive(Clone, Debug)]
pub(super) struct Way {
    /// The path without symbolic links.
    pub(super) real: PathBuf,
    /// The file at `real`: never a link and never missing.
    pub(super) node: Node,
    /// The symbolic links on the way, each by its own real path, with their targets as written.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
}

impl Way {
    /// Returns a regular file in a folder whose path is known to contain no links.
    pub(super) fn at(real: PathBuf) -> Option<Self> {
        let node = look(&real);
        matches!(node, Node::File(..)).then(|| Self { real, node, links: Vec::new() })
    }

    /// Returns the stamp, if the path leads to a regular file.
    pub(super) fn file(&self) -> Option<Stamp> {
        match self.node {
            Node::File(stamp, _) => Some(stamp),
            _ => None,
        }
    }
}

/// Why a path cannot be resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The path does not exist.
    Missing,
    /// The symbolic links form a loop, or there are too many.
    Loop,
    /// The path leads through a folder that the sandbox replaces with its own.
    Reserved,
}

/// Every sandbox has its own version of these folders.
const RESERVED: [&str; 3] = ["/dev", "/proc", "/sys"];

/// A cache of all paths that were looked up, so that each is read once.
#[derive(Debug, Default)]
pub(super) struct Ways {
    seen: HashMap<PathBuf, Node>,
}

impl Ways {
    /// Resolves an absolute path.
    pub(super) fn follow(&mut self, path: &Path) -> Result<Way, Lost> {
        let mut rest = parts(path);
        let mut real = PathBuf::from("/");
        let mut links = Vec::new();
        let mut node = self.look(&real);
        while let Some(part) = rest.pop() {
            if !matches!(node, Node::Folder) {
                return Err(Lost::Missing);
            }
            // `real` contains no links, so its parent is the path without the last component.
            if part == ".." {
                real.pop();
                continue;
            }
            real.push(part);
            if RESERVED.iter().any(|folder| real == Path::new(folder)) {
                return Err(Lost::Reserved);
            }
            node = self.look(&real);
            match &node {
                Node::Missing => return Err(Lost::Missing),
                Node::Link(target, _) => {
                    if links.len() == limits::LINKS_OF_A_PATH {
                        return Err(Lost::Loop);
                    }
                    let target = target.clone();
                    links.push((real.clone(), target.clone()));
                    real.pop();
                    if target.is_absolute() {
                        real = PathBuf::from("/");
                    }
                    rest.extend(parts(&target));
                    node = self.look(&real);
                }
                _ => {}
            }
        }
        Ok(Way { node: self.look(&real), real, links })
    }

    fn look(&mut self, path: &Path) -> Node {
        if let Some(node) = self.seen.get(path) {
            return node.clone();
        }
        let node = look(path);
        self.seen.insert(path.to_path_buf(), node.clone());
        node
    }

    /// Returns the stamps of all paths that were looked up, with `None` for missing ones, so that
    /// the cache can later check whether anything changed.
    ///
    /// Folders are left out, since a change in a folder matters only through the files that were
    /// looked up.
    pub(super) fn stamps(&self) -> impl Iterator<Item = (PathBuf, Option<Stamp>)> {
        self.seen.iter().filter_map(|(path, node)| match node {
            Node::Missing => Some((path.clone(), None)),
            Node::Link(_, stamp) | Node::File(stamp, _) => Some((path.clone(), Some(*stamp))),
            Node::Folder | Node::Other => None,
        })
    }
}

fn look(path: &Path) -> Node {
    let Ok(meta) = fs::symlink_metadata(path) else { return Node::Missing };
    let stamp = Stamp::of(&meta);
    if meta.is_symlink() {
        fs::read_link(path).map_or(Node::Missing, |target| Node::Link(target, stamp))
    } else if meta.is_dir() {
        Node::Folder
    } else if meta.is_file() {
        Node::File(stamp, access::may_execute(&meta))
    } else {
        Node::Other
    }
}

/// Returns the components of a path, last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let mut parts: Vec<_> = path
        .components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| part.as_os_str().to_os_string())
        .collect();
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn notes_every_link_where_it_really_lies() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("usr/bin")).unwrap();
        fs::write(home.join("usr/bin/tool-1"), "x").unwrap();
        symlink("usr/bin", home.join("bin")).unwrap();
        symlink("../bin/tool-1", home.join("usr/bin/tool")).unwrap();
        let way = Ways::default().follow(&home.join("bin/./tool")).unwrap();
        assert_eq!(way.real, home.join("usr/bin/tool-1"));
        assert!(way.file().is_some());
        let links: Vec<_> =
            way.links.iter().map(|(link, target)| (link.as_path(), target.as_path())).collect();
        assert_eq!(
            links,
            [
                (home.join("bin").as_path(), Path::new("usr/bin")),
                (home.join("usr/bin/tool").as_path(), Path::new("../bin/tool-1")),
            ]
        );
    }

    #[test]
    fn ends_where_links_go_round() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        symlink("b", home.join("a")).unwrap();
        symlink("a", home.join("b")).unwrap();
        symlink("deeper/deeper/x", home.join("deeper")).unwrap();
        fs::write(home.join("file"), "x").unwrap();
        let mut ways = Ways::default();
        assert_eq!(ways.follow(&home.join("a")).unwrap_err(), Lost::Loop);
        assert_eq!(ways.follow(&home.join("deeper")).unwrap_err(), Lost::Loop);
        assert_eq!(ways.follow(&home.join("nothing")).unwrap_err(), Lost::Missing);
        assert_eq!(ways.follow(&home.join("file/below")).unwrap_err(), Lost::Missing);
        assert_eq!(ways.follow(&home.join("file/..")).unwrap_err(), Lost::Missing);
    }
}
