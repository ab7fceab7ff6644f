//! The layout of the new root: what lies where, by path. Pure, but for asking what exists.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

use super::{placeholder::is_placeholder, userland};
use crate::{
    closure::{Closure, Contents, Kind},
    error::SandboxError,
    policy::{Access, Policy, Userland},
};

/// Device files that every program may expect.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Where programs look for the certificates that they trust: a file, and links to it.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
const CERTIFICATE_LINKS: [&str; 2] = ["/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt"];

/// What lies at a path of the new root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// The host's file or folder of the same path.
    Bind(Mode),
    /// An empty folder in memory.
    Scratch,
    /// An empty folder that stays empty, over something that is not to be seen.
    Empty,
    /// A file that exists only here.
    Text(Vec<u8>),
    /// A symbolic link with its target.
    Link(PathBuf),
    /// The processes of the run.
    Processes,
}

/// How a part of the host is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// Can be changed, cannot be executed.
    Writable,
    /// Can be read, cannot be executed.
    Data,
    /// Can be read and executed.
    Code,
    /// A device file.
    Device,
}

/// All items; parents come before children.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    items: BTreeMap<PathBuf, Item>,
    /// Protected paths that do not exist and need something to hold their place.
    pub(crate) placeholders: Vec<PathBuf>,
    /// Folders of the system that are shown whole.
    userland: Vec<PathBuf>,
    /// Folders that are mounted on themselves, so that they cannot be renamed.
    pinned: BTreeSet<PathBuf>,
}

/// Texts that depend on the run.
pub(crate) struct Texts<'a> {
    pub(crate) user: &'a str,
    pub(crate) home: &'a str,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The certificate that the run trusts, if it has a network.
    pub(crate) certificate: Option<&'a str>,
}

impl Layout {
    pub(crate) fn new(
        policy: &Policy,
        closure: &Closure,
        texts: &Texts<'_>,
    ) -> Result<Self, SandboxError> {
        let mut layout = Self::default();
        layout.add_grants(policy)?;
        layout.add_userland(policy);
        layout.add_closure(closure);
        layout.pin_ways();
        layout.add_base(texts);
        layout.drop_redundant();
        Ok(layout)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Path, &Item)> {
        self.items.iter().map(|(path, item)| (path.as_path(), item))
    }

    /// The item that decides what is at a path, if it is not an item itself.
    pub(crate) fn covering(&self, path: &Path) -> Option<&Item> {
        let mut ancestors = path.ancestors().skip(1);
        ancestors.find_map(|ancestor| {
            self.items.get(ancestor).filter(|item| !matches!(item, Item::Text(_) | Item::Link(_)))
        })
    }

    fn add_grants(&mut self, policy: &Policy) -> Result<(), SandboxError> {
        for grant in &policy.paths {
            let path = check_path(&grant.path)?;
            let sight = look(path, grant.access)?;
            let exists = sight == Sight::There;
            let item = match grant.access {
                Access::Private => Item::Scratch,
                Access::Hidden => Item::Empty,
                Access::Write if !exists => {
                    return Err(SandboxError::MissingPath { path: path.to_owned() });
                }
                Access::Write => Item::Bind(Mode::Writable),
                Access::Read | Access::Execute if !exists => continue,
                Access::Execute => Item::Bind(Mode::Code),
                Access::Protected if !exists => {
                    self.protect_missing(policy, path, sight);
                    continue;
                }
                Access::Read | Access::Protected => Item::Bind(Mode::Data),
            };
            // Of two grants for one path the stronger one counts, as `Policy::access` has it.
            let rank = (policy.access(path) == Some(grant.access)).then_some(item);
            self.items.extend(rank.map(|item| (path.to_owned(), item)));
        }
        Ok(())
    }

    /// Protects a path that cannot be seen: below a writable folder the run could make the way to
    /// it, or open it.
    fn protect_missing(&mut self, policy: &Policy, path: &Path, sight: Sight<'_>) {
        let (first, missing) = match sight {
            Sight::Missing(first) => (first, true),
            Sight::Closed(folder) => (folder, false),
            Sight::There => (path, false),
        };
        match policy.access(first.parent().unwrap_or(first)) {
            Some(Access::Write) => {
                if missing && !self.placeholders.iter().any(|known| known == first) {
                    self.placeholders.push(first.to_owned());
                }
                self.items.insert(first.to_owned(), Item::Bind(Mode::Data));
            }
            // Nothing on the disk is needed to lie over a folder in memory.
            Some(Access::Private) => drop(self.items.insert(path.into(), Item::Empty)),
            _ => {}
        }
    }

    /// Whoever renames a folder takes with it what is mounted below, and can make the path anew.
    /// So every folder between a writable one and something that stays is mounted on itself:
    /// what is a mount cannot be renamed.
    fn pin_ways(&mut self) {
        let writable = Item::Bind(Mode::Writable);
        let mut ways = BTreeSet::new();
        let stays = |item: &Item| {
            matches!(item, Item::Bind(_) | Item::Scratch | Item::Empty) && *item != writable
        };
        for (path, _) in self.iter().filter(|(_, item)| stays(item)) {
            let inner = path.ancestors().skip(1).take_while(|above| {
                self.covering(above) == Some(&writable)
                    && self.items.get(*above).is_none_or(|item| *item == writable)
            });
            ways.extend(inner.map(Path::to_owned));
        }
        for path in ways {
            self.items.insert(path.clone(), Item::Bind(Mode::Writable));
            self.pinned.insert(path);
        }
    }

    /// What a policy grants counts more than the system's own folders.
    fn add_userland(&mut self, policy: &Policy) {
        if policy.userland == Userland::Listed {
            return;
        }
        for (path, item) in userland::items() {
            // A grant counts more.
            if self.items.contains_key(&path) {
                continue;
            }
            if item == Item::Bind(Mode::Code) {
                self.userland.push(path.clone());
            }
            self.items.insert(path, item);
        }
    }

    /// Programs are laid over everything else, so that a program in a writable folder cannot be
    /// changed by the run.
    fn add_closure(&mut self, closure: &Closure) {
        let files = closure.files().map(|(path, kind)| (path, kind != Kind::Data));
        let folders = closure.folders().map(|(path, contents)| (path, contents == Contents::Code));
        for (path, executable) in files.chain(folders) {
            if self.is_in_userland(path) {
                continue;
            }
            let mode = if executable { Mode::Code } else { Mode::Data };
            match self.items.get(path) {
                Some(Item::Bind(Mode::Writable)) if !executable => {}
                _ => drop(self.items.insert(path.to_owned(), Item::Bind(mode))),
            }
        }
        for path in closure.hidden() {
            if self.is_in_userland(path) {
                continue;
            }
            self.items.entry(path.to_owned()).or_insert(Item::Empty);
        }
        for (path, target) in closure.links() {
            self.items.entry(path.to_owned()).or_insert_with(|| Item::Link(target.to_owned()));
        }
    }

    /// Whether a path is shown with a folder of the system.
    fn is_in_userland(&self, path: &Path) -> bool {
        let Some(folder) = self.userland.iter().find(|folder| path.starts_with(folder)) else {
            return false;
        };
        // A grant may lie in between.
        let above = path.ancestors().find(|above| self.items.contains_key(*above));
        above == Some(folder.as_path())
    }

    fn add_base(&mut self, texts: &Texts<'_>) {
        let Texts { user, home, uid, gid, certificate } = texts;
        let mut text = |path: &str, content: String| {
            self.items.entry(path.into()).or_insert(Item::Text(content.into_bytes()));
        };
        text("/etc/passwd", format!("{user}:x:{uid}:{gid}::{home}:/nonexistent\n"));
        text("/etc/group", format!("{user}:x:{gid}:\n"));
        text("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n".to_owned());
        text("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n".to_owned());
        if let Some(certificate) = certificate {
            text(CERTIFICATES, (*certificate).to_owned());
            for path in CERTIFICATE_LINKS {
                self.items.entry(path.into()).or_insert(Item::Link(CERTIFICATES.into()));
            }
        }
        for device in DEVICES {
            self.items.insert(device.into(), Item::Bind(Mode::Device));
        }
        for (name, descriptor) in
            [("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")]
        {
            let target = format!("/proc/self/{descriptor}");
            self.items.insert(Path::new("/dev").join(name), Item::Link(target.into()));
        }
        self.items.insert("/proc".into(), Item::Processes);
    }

    /// Drops what is there anyway: links, texts and equal binds below a folder that is shown.
    fn drop_redundant(&mut self) {
        let redundant: Vec<PathBuf> = self
            .iter()
            .filter(|(path, item)| match (self.covering(path), item) {
                (Some(Item::Bind(_)), Item::Link(_) | Item::Text(_)) => true,
                (Some(Item::Bind(outer)), Item::Bind(inner)) => {
                    outer == inner && *inner != Mode::Device && !self.pinned.contains(*path)
                }
                _ => false,
            })
            .map(|(path, _)| path.to_owned())
            .collect();
        for path in redundant {
            self.items.remove(&path);
        }
    }
}

/// An absolute path without `.` and `..` that is not the root itself.
fn check_path(path: &Path) -> Result<&Path, SandboxError> {
    let plain = path.components().all(|part| {
        matches!(part, std::path::Component::RootDir | std::path::Component::Normal(_))
    });
    if path.is_absolute() && plain && path.parent().is_some() {
        Ok(path)
    } else {
        Err(SandboxError::BadPath { path: path.to_owned() })
    }
}

/// What can be seen of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight<'a> {
    There,
    /// The first part of it that does not exist.
    Missing(&'a Path),
    /// A folder on the way that cannot be entered.
    Closed(&'a Path),
}

/// Looks for a path; a link on the way is an error, since it may lead elsewhere tomorrow. What only holds
/// the place of something protected for another run is missing: it goes with that run.
fn look(path: &Path, access: Access) -> Result<Sight<'_>, SandboxError> {
    let mut ancestors: Vec<&Path> = path.ancestors().collect();
    ancestors.reverse();
    for step in ancestors.into_iter().skip(1) {
        match step.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => {
                return Err(SandboxError::Link { path: path.to_owned(), link: step.to_owned() });
            }
            Ok(_) if access == Access::Protected && is_placeholder(step) => {
                return Ok(Sight::Missing(step));
            }
            Ok(_) => {}
            Err(error) => match error.kind() {
                // Below a file, or below a folder that is shut.
                io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory => {
                    return Ok(Sight::Closed(step.parent().unwrap_or(step)));
                }
                _ => return Ok(Sight::Missing(step)),
            },
        }
    }
    Ok(Sight::There)
}
