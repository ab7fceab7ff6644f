//! The way from the root to a file, link by link, so that the new root can repeat it.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};

use super::access;
use crate::limits;

/// Enough of a file's identity to notice that it was exchanged or changed.
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

    /// What lies at a path now, without following a last link.
    pub(super) fn now(path: &Path) -> Option<Self> {
        fs::symlink_metadata(path).ok().as_ref().map(Self::of)
    }

    /// Two names of one file have this in common.
    pub(super) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }
}

/// What lies at a path.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Nothing that this user can see.
    Missing,
    /// A symbolic link and what it says.
    Link(PathBuf, Stamp),
    /// A folder.
    Folder,
    /// A regular file and whether it can be executed.
    File(Stamp, bool),
    /// A pipe, a socket, a device.
    Other,
}

/// Where a path leads.
#[derive(Clone, Debug)]
pub(super) struct Way {
    /// The path without links.
    pub(super) real: PathBuf,
    /// What lies there: never a link, never nothing.
    pub(super) node: Node,
    /// The links on the way, each at its own real path, with what they say.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
}

impl Way {
    /// A regular file in a folder whose path is known to be without links.
    pub(super) fn at(real: PathBuf) -> Option<Self> {
        let node = look(&real);
        matches!(node, Node::File(..)).then(|| Self { real, node, links: Vec::new() })
    }

    /// The stamp, if it leads to a regular file.
    pub(super) fn file(&self) -> Option<Stamp> {
        match self.node {
            Node::File(stamp, _) => Some(stamp),
            _ => None,
        }
    }
}

/// Why a path leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// Nothing is there.
    Missing,
    /// Links lead in a circle.
    Loop,
    /// It leads through a part of the tree that is another one inside.
    Reserved,
}

/// Every sandbox has these of its own.
const RESERVED: [&str; 3] = ["/dev", "/proc", "/sys"];

/// The part of the file system that was looked at, each place once.
#[derive(Debug, Default)]
pub(super) struct Ways {
    seen: HashMap<PathBuf, Node>,
}

impl Ways {
    /// Follows an absolute path from the root.
    pub(super) fn follow(&mut self, path: &Path) -> Result<Way, Lost> {
        let mut rest = parts(path);
        let mut real = PathBuf::from("/");
        let mut links = Vec::new();
        let mut node = self.look(&real);
        while let Some(part) = rest.pop() {
            if !matches!(node, Node::Folder) {
                return Err(Lost::Missing);
            }
            // What lies above is real already, so the folder above is the path without its last part.
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

    /// What was found, and what was not, for telling later whether it is still so.
    ///
    /// Folders are left out, since a change in one matters only through the files that were looked for.
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

/// The parts of a path, last one first.
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
