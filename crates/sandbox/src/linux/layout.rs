//! Decides which files, folders and links the sandboxed program sees, and at which paths. This file
//! only reads the host's file system to learn which paths exist; `plan` and `child` do the
//! mounting.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

use super::{path_guard::GuardedPath, system_folders};
use crate::{
    environment::NODE_PROXY_SCRIPT,
    error::SandboxError,
    policy::{Access, ExtraPrograms, Mount, Policy},
    program_files::{FileUse, FolderContents, ProgramFiles},
};

/// Device files that programs expect in every environment.
const DEVICE_FILES: [&str; 5] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The certificate file that programs read, and the other paths that are linked to it.
const CERTIFICATE_FILE: &str = "/etc/ssl/certs/ca-certificates.crt";
const CERTIFICATE_LINKS: [&str; 2] = ["/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt"];

/// The content of one path in the new root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RootEntry {
    /// The host's file or folder at the same path.
    Bind(MountMode),
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
pub(crate) enum MountMode {
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
    entries: BTreeMap<PathBuf, RootEntry>,
    /// Protected paths that do not exist, each with its first component that does not exist.
    absent: BTreeMap<PathBuf, PathBuf>,
    /// Protected symbolic links with their targets.
    links: BTreeMap<PathBuf, PathBuf>,
    /// System folders that are mounted as a whole.
    system_folders: Vec<PathBuf>,
    /// Folders that are mounted on themselves, because a mount point cannot be renamed.
    pinned: BTreeSet<PathBuf>,
}

/// The mount modes of granted folders. With [`ExtraPrograms::System`] they are executable: the run
/// can start any interpreter anyway, so execution adds no new power, and virtual environments,
/// `npx` and compilers need it.
#[derive(Clone, Copy, Debug)]
struct GrantModes {
    readable: MountMode,
    writable: MountMode,
}

impl GrantModes {
    fn of(extra_programs: ExtraPrograms) -> Self {
        match extra_programs {
            ExtraPrograms::None => {
                Self { readable: MountMode::Data, writable: MountMode::Writable }
            }
            ExtraPrograms::System => {
                Self { readable: MountMode::Code, writable: MountMode::WritableCode }
            }
        }
    }
}

/// Values that differ between runs and are written into files such as `/etc/passwd`.
pub(crate) struct TemplateValues<'a> {
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
        program_files: &ProgramFiles,
        values: &TemplateValues<'_>,
    ) -> Result<Self, SandboxError> {
        let mut layout = Self::default();
        layout.add_grants(policy)?;
        layout.add_mounts(policy)?;
        layout.add_userland(policy);
        layout.add_program_files(program_files);
        layout.pin_parent_folders();
        layout.add_base_files(values);
        layout.remove_redundant();
        Ok(layout)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Path, &RootEntry)> {
        self.entries.iter().map(|(path, entry)| (path.as_path(), entry))
    }

    /// Returns the item of the nearest ancestor, which decides what `path` shows unless `path` has
    /// an item itself.
    pub(crate) fn covering(&self, path: &Path) -> Option<&RootEntry> {
        let mut ancestors = path.ancestors().skip(1);
        ancestors.find_map(|ancestor| {
            self.entries
                .get(ancestor)
                .filter(|entry| !matches!(entry, RootEntry::Text(_) | RootEntry::Link(_)))
        })
    }

    /// Returns the protected paths that no mount can cover, because they do not exist or are
    /// symbolic links. They are checked after the run and must then be unchanged.
    pub(crate) fn guarded(&self) -> Result<Vec<GuardedPath>, SandboxError> {
        let absent = self.absent.iter().map(|(path, first)| GuardedPath::absent(path, first));
        let links = self.links.iter().map(|(path, target)| GuardedPath::link(path, target));
        absent.chain(links).collect()
    }

    fn add_grants(&mut self, policy: &Policy) -> Result<(), SandboxError> {
        let modes = GrantModes::of(policy.extra_programs);
        for grant in &policy.paths {
            let path = validate_path(&grant.path)?;
            if grant.access == Access::Protected
                && let (Some(folder), Ok(target)) = (path.parent(), path.read_link())
                && matches!(policy.access_to(folder), Some(Access::Write | Access::CreateGranted))
                && check_path_state(folder)? == PathState::Exists
            {
                self.links.insert(path.to_owned(), target);
                continue;
            }
            let state = check_path_state(path)?;
            let exists = state == PathState::Exists;
            let entry = match grant.access {
                Access::Scratch => RootEntry::Scratch,
                Access::Hidden if exists && !path.is_dir() => RootEntry::Bind(MountMode::Closed),
                Access::Hidden => RootEntry::Empty,
                Access::Write if !exists && is_in_writable_folder(policy, path) => continue,
                Access::Write | Access::CreateGranted if !exists => {
                    return Err(SandboxError::MissingPath { path: path.to_owned() });
                }
                Access::Write | Access::CreateGranted => RootEntry::Bind(modes.writable),
                Access::Read | Access::Execute if !exists => continue,
                Access::Execute => RootEntry::Bind(MountMode::Code),
                Access::Protected if !exists => {
                    self.protect_missing(policy, path, state, modes);
                    continue;
                }
                Access::Read | Access::Protected => RootEntry::Bind(modes.readable),
            };
            // If two grants name the same path, the stronger one counts, as in `Policy::access`.
            if policy.access_to(path) == Some(grant.access) {
                self.entries.insert(path.to_owned(), entry);
            }
        }
        Ok(())
    }

    /// Mounts host files and folders at paths that differ from their host paths.
    fn add_mounts(&mut self, policy: &Policy) -> Result<(), SandboxError> {
        for Mount { path, source } in &policy.mounts {
            let (path, source) = (validate_path(path)?, validate_path(source)?);
            if check_path_state(source)? != PathState::Exists {
                return Err(SandboxError::MissingPath { path: source.to_owned() });
            }
            self.entries.insert(path.to_owned(), RootEntry::Mount(source.to_owned()));
        }
        Ok(())
    }

    /// Protects a path that does not exist or cannot be reached: below a writable folder the run
    /// could create it or make it reachable.
    fn protect_missing(
        &mut self,
        policy: &Policy,
        path: &Path,
        state: PathState<'_>,
        modes: GrantModes,
    ) {
        let (first, missing) = match state {
            PathState::Missing(first) => (first, true),
            PathState::Unreachable(folder) => (folder, false),
            PathState::Exists => (path, false),
        };
        match policy.access_to(first.parent().unwrap_or(first)) {
            Some(Access::Write | Access::CreateGranted) => {
                if missing {
                    self.absent.insert(path.to_owned(), first.to_owned());
                } else {
                    self.entries.insert(first.to_owned(), RootEntry::Bind(modes.readable));
                }
            }
            // A folder in memory can be covered without creating anything on the disk.
            Some(Access::Scratch) => drop(self.entries.insert(path.into(), RootEntry::Empty)),
            _ => {}
        }
    }

    /// Mounts every folder between a writable folder and a mount below it on itself. Renaming a
    /// folder would move the mounts below it, and the run could then create the original path
    /// again; a mount point cannot be renamed.
    fn pin_parent_folders(&mut self) {
        let is_writable = |entry: &RootEntry| {
            matches!(entry, RootEntry::Bind(MountMode::Writable | MountMode::WritableCode))
        };
        let mut pinned_folders = BTreeMap::new();
        let is_fixed_mount = |entry: &RootEntry| match entry {
            RootEntry::Bind(_) => !is_writable(entry),
            RootEntry::Mount(_) | RootEntry::Scratch | RootEntry::Empty => true,
            RootEntry::Text(_) | RootEntry::Link(_) | RootEntry::Processes => false,
        };
        let mounted = self.iter().filter(|(_, entry)| is_fixed_mount(entry)).map(|(path, _)| path);
        let guarded = self.absent.values().chain(self.links.keys()).map(PathBuf::as_path);
        for path in mounted.chain(guarded) {
            let inner = path.ancestors().skip(1).map_while(|above| {
                let outer = self.covering(above).filter(|entry| is_writable(entry))?;
                let is_free = self.entries.get(above).is_none_or(is_writable);
                is_free.then(|| (above.to_owned(), outer.clone()))
            });
            pinned_folders.extend(inner);
        }
        for (path, entry) in pinned_folders {
            self.entries.insert(path.clone(), entry);
            self.pinned.insert(path);
        }
    }

    /// Adds the system's folders, except where the policy grants the same path.
    fn add_userland(&mut self, policy: &Policy) {
        if policy.extra_programs == ExtraPrograms::None {
            return;
        }
        for (path, entry) in system_folders::system_entries() {
            if self.entries.contains_key(&path) {
                continue;
            }
            if entry == RootEntry::Bind(MountMode::Code) {
                self.system_folders.push(path.clone());
            }
            self.entries.insert(path, entry);
        }
    }

    /// Adds the files that the programs need. They replace other items, so that the run cannot
    /// change a program in a writable folder.
    fn add_program_files(&mut self, program_files: &ProgramFiles) {
        let files = program_files.files().map(|(path, kind)| (path, kind != FileUse::Data));
        let folders = program_files
            .folders()
            .map(|(path, contents)| (path, contents == FolderContents::Code));
        for (path, executable) in files.chain(folders) {
            if self.is_in_userland(path) {
                continue;
            }
            let mode = if executable { MountMode::Code } else { MountMode::Data };
            match self.entries.get(path) {
                Some(RootEntry::Bind(MountMode::Writable | MountMode::WritableCode))
                    if !executable => {}
                _ => drop(self.entries.insert(path.to_owned(), RootEntry::Bind(mode))),
            }
        }
        for path in program_files.hidden() {
            if self.is_in_userland(path) {
                continue;
            }
            self.entries.entry(path.to_owned()).or_insert(RootEntry::Empty);
        }
        for (path, target) in program_files.links() {
            self.entries
                .entry(path.to_owned())
                .or_insert_with(|| RootEntry::Link(target.to_owned()));
        }
    }

    /// Returns whether a path is already visible as part of a system folder.
    fn is_in_userland(&self, path: &Path) -> bool {
        let Some(folder) = self.system_folders.iter().find(|folder| path.starts_with(folder))
        else {
            return false;
        };
        // A grant between the system folder and the path takes precedence.
        let above = path.ancestors().find(|above| self.entries.contains_key(*above));
        above == Some(folder.as_path())
    }

    fn add_base_files(&mut self, values: &TemplateValues<'_>) {
        let TemplateValues { user, home, uid, gid, certificate } = values;
        let mut text = |path: &str, content: String| {
            self.entries.entry(path.into()).or_insert(RootEntry::Text(content.into_bytes()));
        };
        text("/etc/passwd", format!("{user}:x:{uid}:{gid}::{home}:/nonexistent\n"));
        text("/etc/group", format!("{user}:x:{gid}:\n"));
        text("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n".to_owned());
        text("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n".to_owned());
        if let Some(certificate) = certificate {
            text(CERTIFICATE_FILE, (*certificate).to_owned());
            text(NODE_PROXY_SCRIPT, include_str!("../node_proxy.cjs").to_owned());
            for path in CERTIFICATE_LINKS {
                self.entries.entry(path.into()).or_insert(RootEntry::Link(CERTIFICATE_FILE.into()));
            }
        }
        for device in DEVICE_FILES {
            self.entries.insert(device.into(), RootEntry::Bind(MountMode::Device));
        }
        for (name, descriptor) in
            [("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")]
        {
            let target = format!("/proc/self/{descriptor}");
            self.entries.insert(Path::new("/dev").join(name), RootEntry::Link(target.into()));
        }
        self.entries.insert("/proc".into(), RootEntry::Processes);
    }

    /// Removes links, texts and binds with the same mode below a folder that already shows them.
    fn remove_redundant(&mut self) {
        let redundant: Vec<PathBuf> = self
            .iter()
            .filter(|(path, entry)| match (self.covering(path), entry) {
                (
                    Some(RootEntry::Bind(_) | RootEntry::Mount(_)),
                    RootEntry::Link(_) | RootEntry::Text(_),
                ) => true,
                (Some(RootEntry::Bind(outer)), RootEntry::Bind(inner)) => {
                    outer == inner && *inner != MountMode::Device && !self.pinned.contains(*path)
                }
                _ => false,
            })
            .map(|(path, _)| path.to_owned())
            .collect();
        for path in redundant {
            self.entries.remove(&path);
        }
    }
}

/// Checks that a path is absolute, contains no `.` or `..`, and is not the root itself.
fn validate_path(path: &Path) -> Result<&Path, SandboxError> {
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
fn is_in_writable_folder(policy: &Policy, path: &Path) -> bool {
    let folder = path.ancestors().skip(1).find(|above| above.is_dir());
    folder.is_some_and(|folder| {
        matches!(policy.access_to(folder), Some(Access::Write | Access::CreateGranted))
    })
}

/// Whether a path exists, as far as this user can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathState<'a> {
    Exists,
    /// The first component that does not exist.
    Missing(&'a Path),
    /// A parent that is a file or that this user may not enter.
    Unreachable(&'a Path),
}

/// Looks up a path. A symbolic link in it is an error, since its target may change later.
fn check_path_state(path: &Path) -> Result<PathState<'_>, SandboxError> {
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
                    return Ok(PathState::Unreachable(step.parent().unwrap_or(step)));
                }
                _ => return Ok(PathState::Missing(step)),
            },
        }
    }
    Ok(PathState::Exists)
}
