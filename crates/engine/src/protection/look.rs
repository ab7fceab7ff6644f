//! What other programs execute or obey stays as it is, and nothing is added to it.
//!
//! The sandbox holds what is there before a command. It cannot hold every place that does not exist:
//! what has come to such a place is found after the command, and put aside under another name. The
//! command knows this and works against it: see [`Look`].

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

/// Places that are held for one command; each is a mount.
const MAX_PLACES: usize = 1000;
/// Folders that are looked through before a command.
const MAX_FOLDERS: usize = 400_000;
/// Folders in one another; each is open while something below it is looked at.
const MAX_DEPTH: usize = 200;
/// Looks before a command, each for what the one before it led to.
const MAX_ROUNDS: usize = 8;
/// Bytes of a path on which something can be mounted.
const MAX_PATH: usize = 4000;
/// Characters of a path that are told.
const MAX_TOLD: usize = 300;

/// What was there before the commands that run now. They share it, so that none takes for granted what
/// another planted.
#[derive(Debug, Default)]
pub struct Baseline {
    known: Mutex<Known>,
    /// One look at a time, since each has many folders open.
    looks: Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    running: usize,
    identities: HashSet<Identity>,
}

/// What was there before a command, until what it left is looked at.
#[derive(Debug)]
pub struct Before<'a> {
    baseline: &'a Baseline,
    /// With what the repositories of the workspace obey besides.
    protected: ProtectedPaths,
    /// What the sandbox holds, whether it is there or not.
    held: HashSet<PathBuf>,
}

/// A file or folder, whatever its path becomes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    device: u64,
    number: u64,
    /// Where it lies, if the sandbox does not hold it: elsewhere it is something else.
    path: Option<PathBuf>,
    /// When it was changed, where a command could do that: a link is made anew, a file that has several
    /// names is written by another of them, and what a person is asked about is not held at all.
    changed: Option<(i64, i64)>,
    /// Where a link leads in the end, over all others; nowhere, if nothing is there.
    end: Option<PathBuf>,
}

#[derive(Debug)]
struct Found {
    /// Below the workspace.
    path: PathBuf,
    identity: Identity,
    is_link: bool,
    /// Whether it is only a link on the way to something that is obeyed.
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

    /// Where a link leads, or the settings of a repository.
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

    /// Looks through a workspace before a command; gives what the sandbox must hold besides what it
    /// holds already.
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
        // What is written meanwhile by agreement would be taken for a plant.
        let mut known = self.lock();
        let (found, closed) = follow(at, &mut protected, home, &held)?;
        let grants = grants(root, &found, &held)?;
        if known.running == 0 {
            known.identities = found.into_iter().map(|one| one.identity).chain(closed).collect();
        }
        known.running += 1;
        Ok((Before { baseline: self, protected, held }, grants))
    }

    /// What is obeyed, with all that links and settings of git in a workspace lead to.
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

    /// Writes a file that a person agreed to, so that no command is taken for who wrote it.
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

/// Looks through a workspace as often as what is obeyed leads to more, which leads to more; gives what
/// is there, and which folders cannot be looked into.
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

/// What must be held of what was found.
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
    // Nothing can lie on a link: what it leads to is held.
    let real = |one: &Found| {
        if one.is_link { one.identity.end.clone() } else { Some(root.join(&one.path)) }
    };
    let kept = found.iter().filter(|one| one.care == WritePolicy::Kept && !one.is_way);
    let mut paths: Vec<PathBuf> = kept.filter_map(real).filter(is_new).collect();
    paths.sort();
    // What lies in another that is held needs nothing.
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
    /// Puts aside what has come since; gives that, and why not all of the folder could be looked through.
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

/// A look through a workspace.
///
/// It goes into everything, also into what is obeyed and what was put aside: whatever a command makes to
/// hide something in is looked into, or put aside as a whole.
struct Look<'a> {
    root: &'a Path,
    protected: &'a ProtectedPaths,
    held: &'a HashSet<PathBuf>,
    /// Their last names, by which most paths are told apart from them faster.
    held_names: HashSet<&'a OsStr>,
    /// After a command, what was there before; what was not is put aside.
    baseline: Option<&'a Baseline>,
    folders: usize,
    found: Vec<Found>,
    /// Folders that cannot be looked into.
    closed: Vec<Identity>,
    aside: Vec<PutAside>,
}

/// How a folder is kept, by itself or by what it lies in.
type Zone = Option<WritePolicy>;

/// Folders that are left to be looked into.
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
                // Another command changed it, which is looked after itself.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(_) => self.close(folder, &name),
            }
        }
    }

    /// Looks at what is in a folder; gives the folders in it, by the names that they have now.
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

    /// What is not obeyed by its name and may still decide what is: a link on the way to it, and a file
    /// in it that has another name elsewhere, by which it is written.
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
        // What git keeps as objects is neither run nor obeyed, and they are many.
        let is_object = path.components().any(|part| part.as_os_str() == "objects");
        if !is_way && (zone != Some(WritePolicy::Kept) || !kind.is_file() || is_object) {
            return None;
        }
        let about = folder.stat(name).ok()?;
        let found = Found::new(self.root, path, &about, WritePolicy::Kept);
        (is_way || about.st_nlink > 1).then_some(Found { is_way, ..found })
    }

    /// How something is kept itself, and what lies in it.
    fn judge(&self, path: &Path, zone: Zone, kind: FileType) -> (Option<WritePolicy>, Zone) {
        let whole = self.root.join(path);
        let is_own_git = path.starts_with(".git");
        // A branch may be called like instructions.
        let own =
            self.protected.care(&whole).filter(|care| *care == WritePolicy::Kept || !is_own_git);
        // Behind a link of this name lies what is obeyed by this name and its own.
        let is_github = |name: &OsStr| name.eq_ignore_ascii_case(".github");
        let by_link = kind.is_symlink() && path.file_name().is_some_and(is_github);
        let own = own.max(by_link.then_some(WritePolicy::Kept));
        // What is obeyed leads on by its links, and what is not held changes by its files.
        let by_zone = zone
            .filter(|care| kind.is_symlink() || (*care == WritePolicy::Asked && !kind.is_dir()));
        // The repository of the workspace is worked with; what git executes there is held.
        let closed = own.filter(|_| path != Path::new(".git"));
        let is_held = path.file_name().is_some_and(|name| self.held_names.contains(name))
            && self.held.contains(&whole);
        let held = is_held.then_some(WritePolicy::Kept);
        (own.max(by_zone), zone.max(closed).max(held))
    }

    /// Notes something before a command, or puts it aside after one that made it: it itself, or what
    /// makes its folder a repository. Gives the new name.
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

    /// Whether the sandbox keeps a place as it was: what is there is a person's, or a link that it made
    /// again. A file that has other names is not kept so.
    fn is_held(&self, found: &Found) -> bool {
        let is_kept = found.is_link || found.identity.changed.is_none();
        is_kept && self.held.contains(&self.root.join(&found.path))
    }

    /// What nobody can look into is put aside as a whole.
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

    /// Moves what lies too deep up to the workspace, where the walk goes on.
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
            // The look after another command was faster.
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

/// A number of the system, whose types differ.
fn number<T>(number: impl TryInto<T>) -> T
where
    T: Default,
{
    number.try_into().unwrap_or_default()
}

/// A path for a message; the end of a long one says most.
pub fn shown(path: &Path) -> String {
    let text = visible(&path.to_string_lossy()).into_owned();
    let length = text.chars().count();
    if length <= MAX_TOLD {
        return text;
    }
    let end: String = text.chars().skip(length - MAX_TOLD).collect();
    format!("…{end}")
}
