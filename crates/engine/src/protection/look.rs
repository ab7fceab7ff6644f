//! Finds protected files (files that other programs execute or obey) in a workspace, before and
//! after a command.
//!
//! The sandbox mounts protected files that exist before a command read-only. It cannot do so for
//! every path that does not exist yet. So the workspace is searched again after the command, and
//! new protected files are renamed ("put aside"). The search assumes that the command tries to
//! defeat it: see [`Look`].

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
use savoir_sandbox::{PathGrant, PutAside};

use super::{
    Root, Unusable,
    folder::{Entry, Folder},
};
use crate::grant::{ProtectedPaths, SIGNS_OF_GIT, WritePolicy, is_repository, led_by_repository};

/// Paths that are protected for one command; each is a mount.
const MAX_PLACES: usize = 1000;
/// Folders that are searched before a command.
const MAX_FOLDERS: usize = 400_000;
/// Depth of folders; each is open while something below it is searched.
const MAX_DEPTH: usize = 200;
/// Searches before a command, each for the paths that the previous one led to.
const MAX_ROUNDS: usize = 8;
/// Bytes of a path on which something can be mounted.
const MAX_PATH: usize = 4000;
/// Characters of a path that a message shows.
const MAX_TOLD: usize = 300;

/// The protected files that existed before the commands that run now. Concurrent commands share one
/// baseline, so that none of them accepts a file that another one planted.
#[derive(Debug, Default)]
pub struct Baseline {
    known: Mutex<Known>,
    /// Allows one search at a time, since each has many folders open.
    looks: Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    running: usize,
    identities: HashSet<Identity>,
}

/// The state before one command, until the workspace is searched after it.
#[derive(Debug)]
pub struct Before<'a> {
    baseline: &'a Baseline,
    /// The protected paths, with those that settings of repositories in the workspace lead to.
    protected: ProtectedPaths,
    /// Paths that the sandbox protects, whether they exist or not.
    held: HashSet<PathBuf>,
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
struct Found {
    /// The path, relative to the workspace.
    path: PathBuf,
    identity: Identity,
    is_link: bool,
    /// Whether this is only a symlink in the path of something protected.
    is_way: bool,
    care: WritePolicy,
}

impl Found {
    fn new(root: &Path, path: PathBuf, about: &Stat, care: WritePolicy) -> Self {
        let kind = FileType::from_raw_mode(about.st_mode);
        let is_link = kind.is_symlink();
        let is_loose = kind.is_file() && (about.st_nlink > 1 || care == WritePolicy::Asked);
        let changed =
            (is_link || is_loose).then(|| (number(about.st_ctime), number(about.st_ctime_nsec)));
        let end = if is_link { root.join(&path).canonicalize().ok() } else { None };
        let place = Some(path.clone()).filter(|_| care == WritePolicy::Asked);
        let (device, number) = (number(about.st_dev), number(about.st_ino));
        let identity = Identity { device, number, path: place, changed, end };
        Self { path, identity, is_link, is_way: false, care }
    }

    /// Returns the protected paths that a symlink or the settings of a repository lead to.
    fn leads_to(
        &self,
        root: &Path,
        home: &Path,
        protected: &ProtectedPaths,
    ) -> Vec<(PathBuf, WritePolicy)> {
        if let Some(end) = &self.identity.end {
            let here = root.join(&self.path);
            let beyond = protected.beyond(&here).map(|(rest, care)| (end.join(rest), care));
            let itself = (!self.is_way).then(|| (end.clone(), self.care));
            return beyond.chain(itself).collect();
        }
        let path = root.join(&self.path);
        let led = match path.parent().filter(|_| path.ends_with(".git")) {
            Some(folder) => led_by_repository(folder, home),
            None if path.join("HEAD").symlink_metadata().is_ok() => led_by_repository(&path, home),
            None => Vec::new(),
        };
        led.into_iter().map(|place| (place, WritePolicy::Kept)).collect()
    }
}

impl Baseline {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Searches a workspace before a command. Returns the grants that the sandbox must protect in
    /// addition to `enforced`.
    pub fn before(
        &self,
        at: &Root,
        mut protected: ProtectedPaths,
        home: &Path,
        enforced: &[PathGrant],
    ) -> Result<(Before<'_>, Vec<PathGrant>), Unusable> {
        let root = at.path();
        let held: HashSet<PathBuf> = enforced.iter().map(|grant| grant.path.clone()).collect();
        let _turn = self.turn();
        // A file that the user agreed to and that is written during the search would otherwise
        // count as planted by a command, so the lock is taken first.
        let mut known = self.lock();
        let (found, closed) = follow(at, &mut protected, home, &held)?;
        let grants = grants(root, &found, &held)?;
        if known.running == 0 {
            known.identities = found.into_iter().map(|one| one.identity).chain(closed).collect();
        }
        known.running += 1;
        Ok((Before { baseline: self, protected, held }, grants))
    }

    /// Returns the protected paths, with all paths that symlinks and settings of git in a workspace
    /// lead to.
    pub fn led(
        &self,
        at: &Root,
        mut protected: ProtectedPaths,
        home: &Path,
    ) -> Result<ProtectedPaths, Unusable> {
        let _turn = self.turn();
        follow(at, &mut protected, home, &HashSet::new())?;
        Ok(protected)
    }

    /// Writes a file that the user agreed to, and adds it to the baseline, so that it does not
    /// count as planted by a running command.
    pub fn agreed<T>(
        &self,
        at: &Root,
        path: &Path,
        protected: &ProtectedPaths,
        write: impl FnOnce() -> Result<T, Unusable>,
    ) -> Result<T, Unusable> {
        let mut known = self.lock();
        let written = write()?;
        if known.running > 0 {
            let root = at.path();
            let is_asked = |part: &&Path| protected.strictest(&root.join(part), root).is_some();
            let found = path.ancestors().filter(is_asked).filter_map(|part| {
                let about = statat(CWD, root.join(part), AtFlags::SYMLINK_NOFOLLOW).ok()?;
                Some(Found::new(root, part.to_owned(), &about, WritePolicy::Asked).identity)
            });
            known.identities.extend(found);
        }
        Ok(written)
    }
}

/// Searches a workspace until the found symlinks and settings lead to no further protected paths.
/// Returns the protected files that exist, and the folders that cannot be opened.
fn follow(
    at: &Root,
    protected: &mut ProtectedPaths,
    home: &Path,
    held: &HashSet<PathBuf>,
) -> Result<(Vec<Found>, Vec<Identity>), Unusable> {
    let root = at.path();
    for _ in 0..=MAX_ROUNDS {
        let mut look = Look::new(root, protected, held, None);
        look.walk(at)?;
        let Look { found, closed, .. } = look;
        let led = found.iter().flat_map(|one| one.leads_to(root, home, protected));
        let led: Vec<_> = led.collect();
        if !protected.add(led, root) {
            return Ok((found, closed));
        }
    }
    Err(too_much(root, "links and settings of git lead from one to the other"))
}

/// Returns the grants that protect the files that were found.
fn grants(
    root: &Path,
    found: &[Found],
    held: &HashSet<PathBuf>,
) -> Result<Vec<PathGrant>, Unusable> {
    if found.iter().any(|one| one.path.as_os_str().is_empty()) {
        let message = format!("{} is what git keeps of a repository", root.display());
        return Err(("folder-unusable", message));
    }
    let own_repository = root.join(".git");
    let is_held = |path: &Path| path.ancestors().any(|above| held.contains(above));
    let is_new = |real: &PathBuf| {
        real.starts_with(root) && real != root && *real != own_repository && !is_held(real)
    };
    // Nothing can be mounted on a symlink, so its target is protected.
    let real = |one: &Found| {
        if one.is_link { one.identity.end.clone() } else { Some(root.join(&one.path)) }
    };
    let kept = found.iter().filter(|one| one.care == WritePolicy::Kept && !one.is_way);
    let mut paths: Vec<PathBuf> = kept.filter_map(real).filter(is_new).collect();
    paths.sort();
    // A path inside another protected path needs no mount of its own.
    paths.dedup_by(|inner, outer| inner.starts_with(outer));
    if paths.len() > MAX_PLACES {
        let message = format!("it has more than {MAX_PLACES} repositories and folders of agents");
        return Err(too_much(root, &message));
    }
    if let Some(path) = paths.iter().find(|path| path.as_os_str().len() > MAX_PATH) {
        return Err(too_much(root, &format!("the path of `{}` is too long", shown(path))));
    }
    Ok(paths.into_iter().map(PathGrant::protected).collect())
}

fn too_much(root: &Path, message: &str) -> Unusable {
    ("folder-too-large", format!("{}: {message}", root.display()))
}

impl Before<'_> {
    /// Renames protected files that the command added. Returns them, and the reason if the folder
    /// could not be searched completely.
    pub fn put_aside(&self, at: &Root) -> (Vec<PutAside>, Option<String>) {
        let _turn = self.baseline.turn();
        let mut look = Look::new(at.path(), &self.protected, &self.held, Some(self.baseline));
        let failed = look.walk(at).err().map(|(_, why)| why);
        if let Some(error) = &failed {
            tracing::error!(error, "a folder cannot be looked through after a run");
        }
        (look.aside, failed)
    }
}

impl Drop for Before<'_> {
    fn drop(&mut self) {
        self.baseline.lock().running -= 1;
    }
}

/// One search of a workspace.
///
/// The search enters every folder, also protected ones and those that were put aside. So a folder
/// in which a command hides something is either searched, or put aside as a whole.
struct Look<'a> {
    root: &'a Path,
    protected: &'a ProtectedPaths,
    held: &'a HashSet<PathBuf>,
    /// The last components of `held`. Comparing them first is faster for most paths.
    held_names: HashSet<&'a OsStr>,
    /// The baseline for a search after a command; files that are not in it are put aside. None for
    /// a search before a command.
    baseline: Option<&'a Baseline>,
    folders: usize,
    found: Vec<Found>,
    /// Folders that cannot be opened.
    closed: Vec<Identity>,
    aside: Vec<PutAside>,
}

/// The strictest policy of a folder and its parents.
type Zone = Option<WritePolicy>;

/// Folders that are still to be searched.
type Left = Vec<(OsString, Zone)>;

impl<'a> Look<'a> {
    fn new(
        root: &'a Path,
        protected: &'a ProtectedPaths,
        held: &'a HashSet<PathBuf>,
        baseline: Option<&'a Baseline>,
    ) -> Self {
        let (found, closed, aside) = (Vec::new(), Vec::new(), Vec::new());
        let held_names = held.iter().filter_map(|path| path.file_name()).collect();
        Self { root, protected, held, held_names, baseline, folders: 0, found, closed, aside }
    }

    fn walk(&mut self, at: &Root) -> Result<(), Unusable> {
        let unusable = |error: io::Error| {
            let message = format!("{} cannot be looked through: {error}", self.root.display());
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
                self.flatten(&mut open, &name)?;
                continue;
            }
            match folder.open(&name).and_then(|inner| Ok((inner.entries()?, inner))) {
                Ok((entries, inner)) => {
                    let left = self.entries(&inner, zone, entries)?;
                    open.push((inner, left));
                }
                // A concurrent command changed the entry; the search after that command handles it.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(_) => self.close(folder, &name),
            }
        }
    }

    /// Examines the entries of a folder. Returns the folders among them, by their current names.
    fn entries(
        &mut self,
        folder: &Folder,
        zone: Zone,
        entries: Vec<Entry>,
    ) -> Result<Left, Unusable> {
        self.folders += 1;
        if self.baseline.is_none() && self.folders > MAX_FOLDERS {
            let message = format!("it has more than {MAX_FOLDERS} folders");
            return Err(too_much(self.root, &message));
        }
        let (mut left, mut signs) = (Vec::new(), HashSet::new());
        for Entry { name, kind } in entries {
            let is_it = |sign: &&str| name.as_bytes() == sign.as_bytes();
            signs.extend(SIGNS_OF_GIT.into_iter().find(is_it));
            let path = folder.path.join(&name);
            let (care, inner) = self.judge(&path, zone, kind);
            let found = match care {
                Some(care) => {
                    folder.stat(&name).ok().map(|about| Found::new(self.root, path, &about, care))
                }
                None => self.beside(folder, &name, path, zone, kind),
            };
            let new = found.and_then(|found| self.meet(folder, found, &name));
            if kind.is_dir() {
                left.push(new.map_or((name, inner), |new| (new, None)));
            }
        }
        if is_repository(|sign| signs.contains(sign))
            && let Ok(about) = folder.about()
        {
            let head = OsStr::new("HEAD");
            let found = Found::new(self.root, folder.path.clone(), &about, WritePolicy::Kept);
            if let Some(new) = self.meet(folder, found, head) {
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
    fn beside(
        &self,
        folder: &Folder,
        name: &OsStr,
        path: PathBuf,
        zone: Zone,
        kind: FileType,
    ) -> Option<Found> {
        let is_way =
            kind.is_symlink() && self.protected.beyond(&self.root.join(&path)).next().is_some();
        // Objects of git are neither run nor obeyed, and there are many of them.
        let is_object = path.components().any(|part| part.as_os_str() == "objects");
        if !is_way && (zone != Some(WritePolicy::Kept) || !kind.is_file() || is_object) {
            return None;
        }
        let about = folder.stat(name).ok()?;
        let found = Found::new(self.root, path, &about, WritePolicy::Kept);
        (is_way || about.st_nlink > 1).then_some(Found { is_way, ..found })
    }

    /// Returns the policy of an entry, and the policy of the entries inside it.
    fn judge(&self, path: &Path, zone: Zone, kind: FileType) -> (Option<WritePolicy>, Zone) {
        let whole = self.root.join(path);
        let is_own_git = path.starts_with(".git");
        // A branch may have the name of an instruction file, so `Asked` names do not count in
        // `.git`.
        let own =
            self.protected.care(&whole).filter(|care| *care == WritePolicy::Kept || !is_own_git);
        // A symlink named `.github` could lead to a folder with protected names such as
        // `.github/hooks`.
        let is_github = |name: &OsStr| name.eq_ignore_ascii_case(".github");
        let by_link = kind.is_symlink() && path.file_name().is_some_and(is_github);
        let own = own.max(by_link.then_some(WritePolicy::Kept));
        // In a protected folder, symlinks lead to more protected files; in an `Asked` folder, which
        // the sandbox does not protect, files can change.
        let by_zone = zone
            .filter(|care| kind.is_symlink() || (*care == WritePolicy::Asked && !kind.is_dir()));
        // Commands may work with the workspace's own `.git`; only the parts of it that git executes
        // are protected.
        let closed = own.filter(|_| path != Path::new(".git"));
        let is_held = path.file_name().is_some_and(|name| self.held_names.contains(name))
            && self.held.contains(&whole);
        let held = is_held.then_some(WritePolicy::Kept);
        (own.max(by_zone), zone.max(closed).max(held))
    }

    /// Before a command, records a found file. After a command, puts `cause` aside if the file is
    /// new: `cause` is the file itself, or the entry that makes its folder a repository. Returns
    /// the new name.
    fn meet(&mut self, folder: &Folder, found: Found, cause: &OsStr) -> Option<OsString> {
        let Some(baseline) = self.baseline else {
            self.found.push(found);
            return None;
        };
        let is_known = baseline.lock().identities.contains(&found.identity);
        if is_known || self.is_held(&found) {
            return None;
        }
        self.put_aside(folder, cause, folder)
    }

    /// Whether the sandbox protected a path: then the file there is the user's, or a symlink that
    /// the sandbox restored. Files with several hard links are not protected this way.
    fn is_held(&self, found: &Found) -> bool {
        let is_kept = found.is_link || found.identity.changed.is_none();
        is_kept && self.held.contains(&self.root.join(&found.path))
    }

    /// Puts a folder aside as a whole if it cannot be opened.
    fn close(&mut self, folder: &Folder, name: &OsStr) {
        let Ok(about) = folder.stat(name) else { return };
        let path = folder.path.join(name);
        let identity = Found::new(self.root, path, &about, WritePolicy::Kept).identity;
        match self.baseline {
            None => self.closed.push(identity),
            Some(baseline) if baseline.lock().identities.contains(&identity) => {}
            Some(_) => drop(self.put_aside(folder, name, folder)),
        }
    }

    /// Moves a folder that is too deep up into the workspace's root, where the search continues.
    fn flatten(&mut self, open: &mut [(Folder, Left)], name: &OsStr) -> Result<(), Unusable> {
        if self.baseline.is_none() {
            let message = format!("it has more than {MAX_DEPTH} folders in one another");
            return Err(too_much(self.root, &message));
        }
        let moved = match &*open {
            [(root, _), .., (folder, _)] => self.put_aside(folder, name, root),
            _ => None,
        };
        if let Some((_, left)) = open.first_mut() {
            left.extend(moved.map(|new| (new, None)));
        }
        Ok(())
    }

    fn put_aside(&mut self, folder: &Folder, name: &OsStr, to: &Folder) -> Option<OsString> {
        let from = folder.path.join(name);
        match folder.put_aside(name, to) {
            Ok(new) => {
                self.tell(&from, Ok(to.path.join(&new)));
                Some(new)
            }
            // The search after a concurrent command renamed the entry first.
            Err(Errno::NOENT) => None,
            Err(error) => {
                self.tell(&from, Err(io::Error::from(error).to_string()));
                None
            }
        }
    }

    fn tell(&mut self, from: &Path, to: Result<PathBuf, String>) {
        if let Err(error) = &to {
            let path = shown(from);
            tracing::error!(path, error, "what other programs obey cannot be put aside");
        }
        let (to, error) = match to {
            Ok(to) => (Some(self.root.join(to)), None),
            Err(error) => (None, Some(error)),
        };
        self.aside.push(PutAside { from: self.root.join(from), to, error });
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
pub fn shown(path: &Path) -> String {
    let text = visible(&path.to_string_lossy()).into_owned();
    let length = text.chars().count();
    if length <= MAX_TOLD {
        return text;
    }
    let end: String = text.chars().skip(length - MAX_TOLD).collect();
    format!("…{end}")
}
