//! Finds protected files (files that other programs execute or obey) in a workspace, before and
//! after a command.
//!
//! The sandbox mounts protected files that exist before a command read-only. It cannot do so for
//! every path that does not exist yet. So the workspace is searched again after the command, and
//! new protected files are renamed ("moved aside"). The search assumes that the command tries to
//! defeat it: see [`ProtectedSearch`].

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Stat, statat},
    io::Errno,
};
use savoir_lint::visible;
use savoir_sandbox::{MovedFile, PathGrant};

use super::{
    FolderError, Root,
    folder::{Folder, FolderEntry},
};
use crate::grant::{
    GIT_MARKERS, ProtectedPaths, WritePolicy, is_repository, paths_from_git_config,
};

/// Maximum number of protected paths of one command; each is a mount.
const MAX_PLACES: usize = 1000;
/// Maximum number of folders that are searched before a command.
const MAX_FOLDERS: usize = 400_000;
/// Maximum depth of folders; each is open while something below it is searched.
const MAX_DEPTH: usize = 200;
/// Maximum number of searches before a command; each follows the paths that the previous one found.
const MAX_ROUNDS: usize = 8;
/// Maximum length in bytes of a path on which something can be mounted.
const MAX_PATH: usize = 4000;
/// Characters of a path that a message shows.
const MAX_SHOWN_CHARS: usize = 300;

/// The protected files that existed before the commands that run now. Concurrent commands share one
/// baseline, so that none of them accepts a file that another one planted.
#[derive(Debug, Default)]
pub struct Baseline {
    known: Mutex<BaselineState>,
    /// Allows one search at a time, since each has many folders open.
    search_lock: Mutex<()>,
}

#[derive(Debug, Default)]
struct BaselineState {
    running: usize,
    identities: HashSet<Identity>,
}

/// The state before one command, until the workspace is searched after it.
#[derive(Debug)]
pub struct CommandGuard<'a> {
    baseline: &'a Baseline,
    /// The protected paths, with those that settings of repositories in the workspace lead to.
    protected: ProtectedPaths,
    /// Paths that the sandbox protects, whether they exist or not.
    enforced_paths: HashSet<PathBuf>,
}

/// Identifies a file or folder independently of its path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    device: u64,
    number: u64,
    /// The path, for files that the sandbox does not protect: the same file at another path counts
    /// as a new one.
    path: Option<PathBuf>,
    /// The change time, for files that a command could change: a symlink can be made again, a file
    /// with several hard links can be written by another name, and a file with
    /// [`WritePolicy::Asked`] is not protected by the sandbox at all.
    changed: Option<(i64, i64)>,
    /// The final target of a symlink; none if it is dangling.
    end: Option<PathBuf>,
}

#[derive(Debug)]
struct FoundFile {
    /// The path, relative to the workspace.
    path: PathBuf,
    identity: Identity,
    is_link: bool,
    /// Whether this is only a symlink in the path of something protected.
    is_parent_link: bool,
    write_policy: WritePolicy,
}

impl FoundFile {
    fn new(root: &Path, path: PathBuf, about: &Stat, write_policy: WritePolicy) -> Self {
        let kind = FileType::from_raw_mode(about.st_mode);
        let is_link = kind.is_symlink();
        let is_loose =
            kind.is_file() && (about.st_nlink > 1 || write_policy == WritePolicy::AskFirst);
        let changed =
            (is_link || is_loose).then(|| (number(about.st_ctime), number(about.st_ctime_nsec)));
        let end = if is_link { root.join(&path).canonicalize().ok() } else { None };
        let place = Some(path.clone()).filter(|_| write_policy == WritePolicy::AskFirst);
        let (device, number) = (number(about.st_dev), number(about.st_ino));
        let identity = Identity { device, number, path: place, changed, end };
        Self { path, identity, is_link, is_parent_link: false, write_policy }
    }

    /// Returns the protected paths that a symlink or the settings of a repository lead to.
    fn referenced_paths(
        &self,
        root: &Path,
        home: &Path,
        protected: &ProtectedPaths,
    ) -> Vec<(PathBuf, WritePolicy)> {
        if let Some(end) = &self.identity.end {
            let here = root.join(&self.path);
            let protected_below = protected
                .protected_below(&here)
                .map(|(rest, write_policy)| (end.join(rest), write_policy));
            let itself = (!self.is_parent_link).then(|| (end.clone(), self.write_policy));
            return protected_below.chain(itself).collect();
        }
        let path = root.join(&self.path);
        let referenced = match path.parent().filter(|_| path.ends_with(".git")) {
            Some(folder) => paths_from_git_config(folder, home),
            None if path.join("HEAD").symlink_metadata().is_ok() => {
                paths_from_git_config(&path, home)
            }
            None => Vec::new(),
        };
        referenced.into_iter().map(|place| (place, WritePolicy::ReadOnly)).collect()
    }
}

impl Baseline {
    fn lock(&self) -> MutexGuard<'_, BaselineState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_search(&self) -> MutexGuard<'_, ()> {
        self.search_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Searches a workspace before a command. Returns the grants that the sandbox must protect in
    /// addition to `enforced`.
    pub fn start_command(
        &self,
        at: &Root,
        mut protected: ProtectedPaths,
        home: &Path,
        enforced: &[PathGrant],
    ) -> Result<(CommandGuard<'_>, Vec<PathGrant>), FolderError> {
        let root = at.path();
        let enforced_paths: HashSet<PathBuf> =
            enforced.iter().map(|grant| grant.path.clone()).collect();
        let _search = self.lock_search();
        // A file that the user agreed to and that is written during the search would otherwise
        // count as planted by a command, so the lock is taken first.
        let mut known = self.lock();
        let (found, closed) = search_until_stable(at, &mut protected, home, &enforced_paths)?;
        let grants = grants(root, &found, &enforced_paths)?;
        if known.running == 0 {
            known.identities = found.into_iter().map(|one| one.identity).chain(closed).collect();
        }
        known.running += 1;
        Ok((CommandGuard { baseline: self, protected, enforced_paths }, grants))
    }

    /// Returns the protected paths, with all paths that symlinks and settings of git in a workspace
    /// lead to.
    pub fn resolve_protected(
        &self,
        at: &Root,
        mut protected: ProtectedPaths,
        home: &Path,
    ) -> Result<ProtectedPaths, FolderError> {
        let _search = self.lock_search();
        search_until_stable(at, &mut protected, home, &HashSet::new())?;
        Ok(protected)
    }

    /// Writes a file that the user agreed to, and adds it to the baseline, so that it does not
    /// count as planted by a running command.
    pub fn write_approved<T>(
        &self,
        at: &Root,
        path: &Path,
        protected: &ProtectedPaths,
        write: impl FnOnce() -> Result<T, FolderError>,
    ) -> Result<T, FolderError> {
        let mut known = self.lock();
        let written = write()?;
        if known.running > 0 {
            let root = at.path();
            let is_asked = |part: &&Path| protected.strictest(&root.join(part), root).is_some();
            let found = path.ancestors().filter(is_asked).filter_map(|part| {
                let about = statat(CWD, root.join(part), AtFlags::SYMLINK_NOFOLLOW).ok()?;
                Some(FoundFile::new(root, part.to_owned(), &about, WritePolicy::AskFirst).identity)
            });
            known.identities.extend(found);
        }
        Ok(written)
    }
}

/// Searches a workspace until the found symlinks and settings lead to no further protected paths.
/// Returns the protected files that exist, and the folders that cannot be opened.
fn search_until_stable(
    at: &Root,
    protected: &mut ProtectedPaths,
    home: &Path,
    enforced_paths: &HashSet<PathBuf>,
) -> Result<(Vec<FoundFile>, Vec<Identity>), FolderError> {
    let root = at.path();
    for _ in 0..=MAX_ROUNDS {
        let mut search = ProtectedSearch::new(root, protected, enforced_paths, None);
        search.walk(at)?;
        let ProtectedSearch { found, closed, .. } = search;
        let referenced = found.iter().flat_map(|one| one.referenced_paths(root, home, protected));
        let referenced: Vec<_> = referenced.collect();
        if !protected.add(referenced, root) {
            return Ok((found, closed));
        }
    }
    Err(too_much(root, "links and settings of git lead from one to the other"))
}

/// Returns the grants that protect the files that were found.
fn grants(
    root: &Path,
    found: &[FoundFile],
    enforced_paths: &HashSet<PathBuf>,
) -> Result<Vec<PathGrant>, FolderError> {
    if found.iter().any(|one| one.path.as_os_str().is_empty()) {
        let message = format!("{} is what git keeps of a repository", root.display());
        return Err(("folder-unusable", message));
    }
    let own_repository = root.join(".git");
    let is_enforced = |path: &Path| path.ancestors().any(|above| enforced_paths.contains(above));
    let is_new = |real: &PathBuf| {
        real.starts_with(root) && real != root && *real != own_repository && !is_enforced(real)
    };
    // Nothing can be mounted on a symlink, so its target is protected.
    let real = |one: &FoundFile| {
        if one.is_link { one.identity.end.clone() } else { Some(root.join(&one.path)) }
    };
    let kept =
        found.iter().filter(|one| one.write_policy == WritePolicy::ReadOnly && !one.is_parent_link);
    let mut paths: Vec<PathBuf> = kept.filter_map(real).filter(is_new).collect();
    paths.sort();
    // A path inside another protected path needs no mount of its own.
    paths.dedup_by(|inner, outer| inner.starts_with(outer));
    if paths.len() > MAX_PLACES {
        let message = format!("it has more than {MAX_PLACES} repositories and folders of agents");
        return Err(too_much(root, &message));
    }
    if let Some(path) = paths.iter().find(|path| path.as_os_str().len() > MAX_PATH) {
        return Err(too_much(root, &format!("the path of `{}` is too long", printable_path(path))));
    }
    Ok(paths.into_iter().map(PathGrant::protected).collect())
}

fn too_much(root: &Path, message: &str) -> FolderError {
    ("folder-too-large", format!("{}: {message}", root.display()))
}

impl CommandGuard<'_> {
    /// Renames protected files that the command added. Returns them, and the reason if the folder
    /// could not be searched completely.
    pub fn move_aside(&self, at: &Root) -> (Vec<MovedFile>, Option<String>) {
        let _search = self.baseline.lock_search();
        let mut search = ProtectedSearch::new(
            at.path(),
            &self.protected,
            &self.enforced_paths,
            Some(self.baseline),
        );
        let failed = search.walk(at).err().map(|(_, why)| why);
        if let Some(error) = &failed {
            tracing::error!(error, "a folder cannot be searched after a run");
        }
        (search.moved, failed)
    }
}

impl Drop for CommandGuard<'_> {
    fn drop(&mut self) {
        self.baseline.lock().running -= 1;
    }
}

/// One search of a workspace.
///
/// The search enters every folder, also protected ones and those that were moved aside. So a folder
/// in which a command hides something is either searched, or moved aside as a whole.
struct ProtectedSearch<'a> {
    root: &'a Path,
    protected: &'a ProtectedPaths,
    enforced_paths: &'a HashSet<PathBuf>,
    /// The last components of `enforced_paths`. Comparing them first is faster for most paths.
    enforced_names: HashSet<&'a OsStr>,
    /// The baseline for a search after a command; files that are not in it are moved aside. None for
    /// a search before a command.
    baseline: Option<&'a Baseline>,
    folders: usize,
    found: Vec<FoundFile>,
    /// Folders that cannot be opened.
    closed: Vec<Identity>,
    moved: Vec<MovedFile>,
}

/// The strictest policy of a folder and its parents.
type Zone = Option<WritePolicy>;

/// Folders that are still to be searched.
type PendingFolders = Vec<(OsString, Zone)>;

impl<'a> ProtectedSearch<'a> {
    fn new(
        root: &'a Path,
        protected: &'a ProtectedPaths,
        enforced_paths: &'a HashSet<PathBuf>,
        baseline: Option<&'a Baseline>,
    ) -> Self {
        let (found, closed, moved) = (Vec::new(), Vec::new(), Vec::new());
        let enforced_names = enforced_paths.iter().filter_map(|path| path.file_name()).collect();
        Self {
            root,
            protected,
            enforced_paths,
            enforced_names,
            baseline,
            folders: 0,
            found,
            closed,
            moved,
        }
    }

    fn walk(&mut self, at: &Root) -> Result<(), FolderError> {
        let unusable = |error: io::Error| {
            let message = format!("{} cannot be searched: {error}", self.root.display());
            ("folder-unusable", message)
        };
        let root = at.open().map_err(unusable)?;
        let root = Folder::root(root).map_err(|error| unusable(error.into()))?;
        let entries = root.entries().map_err(|error| unusable(error.into()))?;
        let left = self.entries(&root, None, entries)?;
        let mut open = vec![(root, left)];
        loop {
            let depth = open.len();
            let Some((folder, left)) = open.last_mut() else { return Ok(()) };
            let Some((name, zone)) = left.pop() else {
                open.pop();
                continue;
            };
            if depth > MAX_DEPTH {
                self.move_up(&mut open, &name)?;
                continue;
            }
            match folder.open(&name).and_then(|inner| Ok((inner.entries()?, inner))) {
                Ok((entries, inner)) => {
                    let left = self.entries(&inner, zone, entries)?;
                    open.push((inner, left));
                }
                // A concurrent command changed the entry; the search after that command handles it.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(_) => self.handle_unopenable(folder, &name),
            }
        }
    }

    /// Examines the entries of a folder. Returns the folders among them, by their current names.
    fn entries(
        &mut self,
        folder: &Folder,
        zone: Zone,
        entries: Vec<FolderEntry>,
    ) -> Result<PendingFolders, FolderError> {
        self.folders += 1;
        if self.baseline.is_none() && self.folders > MAX_FOLDERS {
            let message = format!("it has more than {MAX_FOLDERS} folders");
            return Err(too_much(self.root, &message));
        }
        let (mut left, mut signs) = (Vec::new(), HashSet::new());
        for FolderEntry { name, kind } in entries {
            let is_it = |sign: &&str| name.as_bytes() == sign.as_bytes();
            signs.extend(GIT_MARKERS.into_iter().find(is_it));
            let path = folder.path.join(&name);
            let (write_policy, inner) = self.entry_policies(&path, zone, kind);
            let found = match write_policy {
                Some(write_policy) => folder
                    .stat(&name)
                    .ok()
                    .map(|about| FoundFile::new(self.root, path, &about, write_policy)),
                None => self.find_indirect(folder, &name, path, zone, kind),
            };
            let new = found.and_then(|found| self.handle_found(folder, found, &name));
            if kind.is_dir() {
                left.push(new.map_or((name, inner), |new| (new, None)));
            }
        }
        if is_repository(|sign| signs.contains(sign))
            && let Ok(about) = folder.about()
        {
            let head = OsStr::new("HEAD");
            let found =
                FoundFile::new(self.root, folder.path.clone(), &about, WritePolicy::ReadOnly);
            if let Some(new) = self.handle_found(folder, found, head) {
                left.iter_mut()
                    .filter(|(name, _)| name == head)
                    .for_each(|one| one.0.clone_from(&new));
            }
        }
        Ok(left)
    }

    /// Finds entries whose names are not protected, but which affect protected files: a symlink in
    /// the path of a protected file, and a file in a protected folder with a hard link elsewhere,
    /// by which it can be written.
    fn find_indirect(
        &self,
        folder: &Folder,
        name: &OsStr,
        path: PathBuf,
        zone: Zone,
        kind: FileType,
    ) -> Option<FoundFile> {
        let is_parent_link = kind.is_symlink()
            && self.protected.protected_below(&self.root.join(&path)).next().is_some();
        // Objects of git are neither executed nor read as settings, and there are many of them.
        let is_object = path.components().any(|part| part.as_os_str() == "objects");
        if !is_parent_link && (zone != Some(WritePolicy::ReadOnly) || !kind.is_file() || is_object)
        {
            return None;
        }
        let about = folder.stat(name).ok()?;
        let found = FoundFile::new(self.root, path, &about, WritePolicy::ReadOnly);
        (is_parent_link || about.st_nlink > 1).then_some(FoundFile { is_parent_link, ..found })
    }

    /// Returns the policy of an entry, and the policy of the entries inside it.
    fn entry_policies(
        &self,
        path: &Path,
        zone: Zone,
        kind: FileType,
    ) -> (Option<WritePolicy>, Zone) {
        let whole = self.root.join(path);
        let is_own_git = path.starts_with(".git");
        // A branch may have the name of an instruction file, so `Asked` names do not count in
        // `.git`.
        let own = self
            .protected
            .write_policy(&whole)
            .filter(|write_policy| *write_policy == WritePolicy::ReadOnly || !is_own_git);
        // A symlink named `.github` could lead to a folder with protected names such as
        // `.github/hooks`.
        let is_github = |name: &OsStr| name.eq_ignore_ascii_case(".github");
        let by_link = kind.is_symlink() && path.file_name().is_some_and(is_github);
        let own = own.max(by_link.then_some(WritePolicy::ReadOnly));
        // In a protected folder, symlinks lead to more protected files; in an `Asked` folder, which
        // the sandbox does not protect, files can change.
        let by_zone = zone.filter(|write_policy| {
            kind.is_symlink() || (*write_policy == WritePolicy::AskFirst && !kind.is_dir())
        });
        // Commands may work with the workspace's own `.git`; only the parts of it that git executes
        // are protected.
        let closed = own.filter(|_| path != Path::new(".git"));
        let is_enforced = path.file_name().is_some_and(|name| self.enforced_names.contains(name))
            && self.enforced_paths.contains(&whole);
        let enforced_paths = is_enforced.then_some(WritePolicy::ReadOnly);
        (own.max(by_zone), zone.max(closed).max(enforced_paths))
    }

    /// Before a command, records a found file. After a command, puts `cause` aside if the file is
    /// new: `cause` is the file itself, or the entry that makes its folder a repository. Returns
    /// the new name.
    fn handle_found(
        &mut self,
        folder: &Folder,
        found: FoundFile,
        cause: &OsStr,
    ) -> Option<OsString> {
        let Some(baseline) = self.baseline else {
            self.found.push(found);
            return None;
        };
        let is_known = baseline.lock().identities.contains(&found.identity);
        if is_known || self.is_enforced(&found) {
            return None;
        }
        self.move_aside(folder, cause, folder)
    }

    /// Whether the sandbox protected a path: then the file there is the user's, or a symlink that
    /// the sandbox restored. Files with several hard links are not protected this way.
    fn is_enforced(&self, found: &FoundFile) -> bool {
        let is_kept = found.is_link || found.identity.changed.is_none();
        is_kept && self.enforced_paths.contains(&self.root.join(&found.path))
    }

    /// Puts a folder aside as a whole if it cannot be opened.
    fn handle_unopenable(&mut self, folder: &Folder, name: &OsStr) {
        let Ok(about) = folder.stat(name) else { return };
        let path = folder.path.join(name);
        let identity = FoundFile::new(self.root, path, &about, WritePolicy::ReadOnly).identity;
        match self.baseline {
            None => self.closed.push(identity),
            Some(baseline) if baseline.lock().identities.contains(&identity) => {}
            Some(_) => drop(self.move_aside(folder, name, folder)),
        }
    }

    /// Moves a folder that is too deep up into the workspace's root, where the search continues.
    fn move_up(
        &mut self,
        open: &mut [(Folder, PendingFolders)],
        name: &OsStr,
    ) -> Result<(), FolderError> {
        if self.baseline.is_none() {
            let message = format!("it has more than {MAX_DEPTH} folders in one another");
            return Err(too_much(self.root, &message));
        }
        let moved = match &*open {
            [(root, _), .., (folder, _)] => self.move_aside(folder, name, root),
            _ => None,
        };
        if let Some((_, left)) = open.first_mut() {
            left.extend(moved.map(|new| (new, None)));
        }
        Ok(())
    }

    fn move_aside(&mut self, folder: &Folder, name: &OsStr, to: &Folder) -> Option<OsString> {
        let from = folder.path.join(name);
        match folder.move_aside(name, to) {
            Ok(new) => {
                self.record_moved(&from, Ok(to.path.join(&new)));
                Some(new)
            }
            // The search after a concurrent command renamed the entry first.
            Err(Errno::NOENT) => None,
            Err(error) => {
                self.record_moved(&from, Err(io::Error::from(error).to_string()));
                None
            }
        }
    }

    fn record_moved(&mut self, from: &Path, to: Result<PathBuf, String>) {
        if let Err(error) = &to {
            let path = printable_path(from);
            tracing::error!(path, error, "a new protected file cannot be renamed");
        }
        let (to, error) = match to {
            Ok(to) => (Some(self.root.join(to)), None),
            Err(error) => (None, Some(error)),
        };
        self.moved.push(MovedFile { from: self.root.join(from), to, error });
    }
}

/// Converts an integer of the system, whose type differs between platforms.
fn number<T>(number: impl TryInto<T>) -> T
where
    T: Default,
{
    number.try_into().unwrap_or_default()
}

/// Formats a path for a message. Of a long path, the end is shown, since it says most.
pub fn printable_path(path: &Path) -> String {
    let text = visible(&path.to_string_lossy()).into_owned();
    let length = text.chars().count();
    if length <= MAX_SHOWN_CHARS {
        return text;
    }
    let end: String = text.chars().skip(length - MAX_SHOWN_CHARS).collect();
    format!("…{end}")
}
