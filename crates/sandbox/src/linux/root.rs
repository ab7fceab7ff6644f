//! Decides which files, folders and links the sandboxed program sees, and at which paths. This file
//! only reads the host's file system to learn which paths exist; `plan` and `child` do the
//! mounting.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

use super::{guard::Guarded, userland};
use crate::{
    closure::{Closure, Contents, Kind},
    environment::NODE_PROXY,
    error::SandboxError,
    policy::{Access, Mount, Policy, Userland},
};

/// Device files that programs expect in every environment.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The certificate file that programs read, and the other paths that are linked to it.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
const CERTIFICATE_LINKS: [&str; 2] = ["/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt"];

/// The content of one path in the new root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// The host's file or folder at the same path.
    Bind(Mode),
    /// A file or folder that has another path on the host; it can be read and executed.
    Mount(PathBuf),
    /// An empty, writable folder in memory.
    Scratch,
    /// A folder that stays empty and covers a host folder that the program must not see.
    Empty,
    /// A file with this content that exists only in the sandbox.
    Text(Vec<u8>),
    /// A symbolic link to this target.
    Link(PathBuf),
    /// A `/proc` that lists only the processes of the run.
    Processes,
}

/// The rights with which a file or folder of the host is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// Can be read and changed, but not executed.
    Writable,
    /// Can be read, changed and executed.
    WritableCode,
    /// Can be read, but not executed.
    Data,
    /// Can be read and executed.
    Code,
    /// A device file.
    Device,
    /// A file that cannot be opened; it replaces a host file that the program must not see.
    Closed,
}

/// All paths of the new root with their content, sorted so that parents come before children.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    items: BTreeMap<PathBuf, Item>,
    /// Protected paths that do not exist, each with its first component that does not exist.
    absent: BTreeMap<PathBuf, PathBuf>,
    /// Protected symbolic links with their targets.
    links: BTreeMap<PathBuf, PathBuf>,
    /// System folders that are mounted as a whole.
    userland: Vec<PathBuf>,
    /// Folders that are mounted on themselves, because a mount point cannot be renamed.
    pinned: BTreeSet<PathBuf>,
}

/// The mount modes of granted folders. With [`Userland::System`] they are executable: the run can
/// start any interpreter anyway, so execution adds no new power, and virtual environments, `npx`
/// and compilers need it.
#[derive(Clone, Copy, Debug)]
struct GrantModes {
    readable: Mode,
    writable: Mode,
}

impl GrantModes {
    fn of(userland: Userland) -> Self {
        match userland {
            Userland::Listed => Self { readable: Mode::Data, writable: Mode::Writable },
            Userland::System => Self { readable: Mode::Code, writable: Mode::WritableCode },
        }
    }
}

/// Values that differ between runs and are written into files such as `/etc/passwd`.
pub(crate) struct Texts<'a> {
    pub(crate) user: &'a str,
    pub(crate) home: &'a str,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The certificate authority that the program trusts, if the run has network access.
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
        layout.add_mounts(policy)?;
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

    /// Returns the item of the nearest ancestor, which decides what `path` shows unless `path` has
    /// an item itself.
    pub(crate) fn covering(&self, path: &Path) -> Option<&Item> {
        let mut ancestors = path.ancestors().skip(1);
        ancestors.find_map(|ancestor| {
            self.items.get(ancestor).filter(|item| !matches!(item, Item::Text(_) | Item::Link(_)))
        })
    }

    /// Returns the protected paths that no mount can cover, because they do not exist or are
    /// symbolic links. They are checked after the run and must then be unchanged.
    pub(crate) fn guarded(&self) -> Result<Vec<Guarded>, SandboxError> {
        let absent = self.absent.iter().map(|(path, first)| Guarded::absent(path, first));
        let links = self.links.iter().map(|(path, target)| Guarded::link(path, target));
        absent.chain(links).collect()
    }

    fn add_grants(&mut self, policy: &Policy) -> Result<(), SandboxError> {
        let modes = GrantModes::of(policy.userland);
        for grant in &policy.paths {
            let path = check_path(&grant.path)?;
            if grant.access == Access::Protected
                && let (Some(folder), Ok(target)) = (path.parent(), path.read_link())
                && matches!(policy.access(folder), Some(Access::Write | Access::Make))
                && look(folder)? == Sight::There
            {
                self.links.insert(path.to_owned(), target);
                continue;
            }
            let sight = look(path)?;
            let exists = sight == Sight::There;
            let item = match grant.access {
                Access::Private => Item::Scratch,
                Access::Hidden if exists && !path.is_dir() => Item::Bind(Mode::Closed),
                Access::Hidden => Item::Empty,
                Access::Write if !exists && is_in_open_folder(policy, path) => continue,
                Access::Write | Access::Make if !exists => {
                    return Err(SandboxError::MissingPath { path: path.to_owned() });
                }
                Access::Write | Access::Make => Item::Bind(modes.writable),
                Access::Read | Access::Execute if !exists => continue,
                Access::Execute => Item::Bind(Mode::Code),
                Access::Protected if !exists => {
                    self.protect_missing(policy, path, sight, modes);
                    continue;
                }
                Access::Read | Access::Protected => Item::Bind(modes.readable),
            };
            // If two grants name the same path, the stronger one counts, as in `Policy::access`.
            let rank = (policy.access(path) == Some(grant.access)).then_some(item);
            self.items.extend(rank.map(|item| (path.to_owned(), item)));
        }
        Ok(())
    }

    /// Mounts host files and folders at paths that differ from their host paths.
    fn add_mounts(&mut self, policy: &Policy) -> Result<(), SandboxError> {
        for Mount { path, source } in &policy.mounts {
            let (path, source) = (check_path(path)?, check_path(source)?);
            if look(source)? != Sight::There {
                return Err(SandboxError::MissingPath { path: source.to_owned() });
            }
            self.items.insert(path.to_owned(), Item::Mount(source.to_owned()));
        }
        Ok(())
    }

    /// Protects a path that does not exist or cannot be reached: below a writable folder the run
    /// could create it or make it reachable.
    fn protect_missing(
        &mut self,
        policy: &Policy,
        path: &Path,
        sight: Sight<'_>,
        modes: GrantModes,
    ) {
        let (first, missing) = match sight {
            Sight::Missing(first) => (first, true),
            Sight::Closed(folder) => (folder, false),
            Sight::There => (path, false),
        };
        match policy.access(first.parent().unwrap_or(first)) {
            Some(Access::Write | Access::Make) => {
                if missing {
                    self.absent.insert(path.to_owned(), first.to_owned());
                } else {
                    self.items.insert(first.to_owned(), Item::Bind(modes.readable));
                }
            }
            // A folder in memory can be covered without creating anything on the disk.
            Some(Access::Private) => drop(self.items.insert(path.into(), Item::Empty)),
            _ => {}
        }
    }

    /// Mounts every folder between a writable folder and a mount below it on itself. Renaming a
    /// folder would move the mounts below it, and the run could then create the original path
    /// again; a mount point cannot be renamed.
    fn pin_ways(&mut self) {
        let is_writable =
            |item: &Item| matches!(item, Item::Bind(Mode::Writable | Mode::WritableCode));
        let mut ways = BTreeMap::new();
        let stays = |item: &Item| match item {
            Item::Bind(_) => !is_writable(item),
            Item::Mount(_) | Item::Scratch | Item::Empty => true,
            Item::Text(_) | Item::Link(_) | Item::Processes => false,
        };
        let mounted = self.iter().filter(|(_, item)| stays(item)).map(|(path, _)| path);
        let guarded = self.absent.values().chain(self.links.keys()).map(PathBuf::as_path);
        for path in mounted.chain(guarded) {
            let inner = path.ancestors().skip(1).map_while(|above| {
                let outer = self.covering(above).filter(|item| is_writable(item))?;
                let is_free = self.items.get(above).is_none_or(is_writable);
                is_free.then(|| (above.to_owned(), outer.clone()))
            });
            ways.extend(inner);
        }
        for (path, item) in ways {
            self.items.insert(path.clone(), item);
            self.pinned.insert(path);
        }
    }

    /// Adds the system's folders, except where the policy grants the same path.
    fn add_userland(&mut self, policy: &Policy) {
        if policy.userland == Userland::Listed {
            return;
        }
        for (path, item) in userland::items() {
            if self.items.contains_key(&path) {
                continue;
            }
            if item == Item::Bind(Mode::Code) {
                self.userland.push(path.clone());
            }
            self.items.insert(path, item);
        }
    }

    /// Adds the files that the programs need. They replace other items, so that the run cannot
    /// change a program in a writable folder.
    fn add_closure(&mut self, closure: &Closure) {
        let files = closure.files().map(|(path, kind)| (path, kind != Kind::Data));
        let folders = closure.folders().map(|(path, contents)| (path, contents == Contents::Code));
        for (path, executable) in files.chain(folders) {
            if self.is_in_userland(path) {
                continue;
            }
            let mode = if executable { Mode::Code } else { Mode::Data };
            match self.items.get(path) {
                Some(Item::Bind(Mode::Writable | Mode::WritableCode)) if !executable => {}
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

    /// Returns whether a path is already visible as part of a system folder.
    fn is_in_userland(&self, path: &Path) -> bool {
        let Some(folder) = self.userland.iter().find(|folder| path.starts_with(folder)) else {
            return false;
        };
        // A grant between the system folder and the path takes precedence.
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
            text(NODE_PROXY, include_str!("../node_proxy.cjs").to_owned());
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

    /// Removes links, texts and binds with the same mode below a folder that already shows them.
    fn drop_redundant(&mut self) {
        let redundant: Vec<PathBuf> = self
            .iter()
            .filter(|(path, item)| match (self.covering(path), item) {
                (Some(Item::Bind(_) | Item::Mount(_)), Item::Link(_) | Item::Text(_)) => true,
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

/// Checks that a path is absolute, contains no `.` or `..`, and is not the root itself.
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

/// Returns whether the run may create a missing path, because its nearest existing folder is
/// writable.
fn is_in_open_folder(policy: &Policy, path: &Path) -> bool {
    let folder = path.ancestors().skip(1).find(|above| above.is_dir());
    folder.is_some_and(|folder| matches!(policy.access(folder), Some(Access::Write | Access::Make)))
}

/// Whether a path exists, as far as this user can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight<'a> {
    There,
    /// The first component that does not exist.
    Missing(&'a Path),
    /// A parent that is a file or that this user may not enter.
    Closed(&'a Path),
}

/// Looks up a path. A symbolic link in it is an error, since its target may change later.
fn look(path: &Path) -> Result<Sight<'_>, SandboxError> {
    let mut ancestors: Vec<&Path> = path.ancestors().collect();
    ancestors.reverse();
    for step in ancestors.into_iter().skip(1) {
        match step.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => {
                return Err(SandboxError::Link { path: path.to_owned(), link: step.to_owned() });
            }
            Ok(_) => {}
            Err(error) => match error.kind() {
                // The parent is a file, or a folder without search permission.
                io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory => {
                    return Ok(Sight::Closed(step.parent().unwrap_or(step)));
                }
                _ => return Ok(Sight::Missing(step)),
            },
        }
    }
    Ok(Sight::There)
}
