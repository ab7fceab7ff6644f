//! What other programs execute or obey stays as it is, and nothing is added to it.
//!
//! The sandbox holds what is there before a command. It cannot hold every place that does not exist:
//! what has come to such a place is found after the command, and put aside under another name.

use std::{
    collections::HashSet,
    fs, io,
    os::{
        fd::AsFd,
        unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, RenameFlags, fchmod, fstat, renameat_with},
    io::Errno,
};
use savoir_sandbox::PathGrant;

use super::{Wrong, workspace::Workspace};
use crate::grant::{Obeyed, SIGNS_OF_GIT, is_repository};

/// Places that are held for one command; each is a mount.
const MOST_PLACES: usize = 1000;
/// Folders that are looked through before a command.
const MOST_FOLDERS: usize = 400_000;
/// Names that are tried for something that is put aside.
const MOST_NAMES: u32 = 1000;

/// What was there before a command.
#[derive(Debug)]
pub(super) struct Before {
    known: HashSet<Identity>,
    /// What the sandbox holds, whether it is there or not.
    held: HashSet<PathBuf>,
}

/// Something that was put aside.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Aside {
    /// Where a command put it.
    pub(super) from: String,
    /// Where it is now, or why it is still there.
    pub(super) to: Result<String, String>,
}

/// A file or folder, whatever its path becomes. Nobody can change a link, but make it anew: that is
/// known by its time.
type Identity = (u64, u64, Option<(i64, i64)>);

#[derive(Debug)]
struct Found {
    /// Below the workspace.
    path: PathBuf,
    identity: Identity,
    is_link: bool,
    /// What another name makes harmless: the thing itself, or the head of a repository.
    cause: PathBuf,
}

/// Looks through a workspace before a command; gives what the sandbox must hold besides what it
/// holds already.
pub(super) fn before(
    root: &Path,
    obeyed: &Obeyed,
    protected: &[PathGrant],
) -> Result<(Before, Vec<PathGrant>), Wrong> {
    let found = look(root, obeyed, Some(MOST_FOLDERS))
        .ok_or_else(|| too_much(&format!("the workspace has more than {MOST_FOLDERS} folders")))?;
    if found.iter().any(|one| one.path.as_os_str().is_empty()) {
        let message = "the workspace is itself what git keeps of a repository; name the folder of a \
            project with --workspace";
        return Err(("workspace-unusable", message.to_owned()));
    }
    let held: HashSet<PathBuf> = protected.iter().map(|grant| grant.path.clone()).collect();
    let is_held = |path: &Path| path.ancestors().any(|above| held.contains(above));
    let mut grants: Vec<PathBuf> = Vec::new();
    for one in &found {
        let path = root.join(&one.path);
        // Nothing can lie on a link: what it leads to is held.
        let real = if one.is_link { path.canonicalize().ok() } else { Some(path) };
        let own_repository = root.join(".git");
        let is_new = |real: &PathBuf| {
            real.starts_with(root) && real != root && *real != own_repository && !is_held(real)
        };
        grants.extend(real.filter(is_new));
    }
    if grants.len() > MOST_PLACES {
        let message = format!(
            "the workspace has more than {MOST_PLACES} repositories and folders of agents in it"
        );
        return Err(too_much(&message));
    }
    grants.sort();
    grants.dedup();
    let known = found.iter().map(|one| one.identity).collect();
    Ok((Before { known, held }, grants.into_iter().map(PathGrant::protected).collect()))
}

fn too_much(message: &str) -> Wrong {
    ("workspace-too-large", format!("{message}; name a smaller one with --workspace"))
}

impl Before {
    /// Puts aside what has come since.
    pub(super) fn put_aside(&self, workspace: &Workspace, obeyed: &Obeyed) -> Vec<Aside> {
        let root = workspace.root();
        let found = look(root, obeyed, None).unwrap_or_default();
        // Another command may need something there just now that holds the place.
        let is_held = |one: &Found| {
            let path = root.join(&one.path);
            path.parent() == Some(root) && self.held.iter().any(|held| held.starts_with(&path))
        };
        let new = found.iter().filter(|one| !self.known.contains(&one.identity) && !is_held(one));
        new.map(|one| aside(workspace, &one.cause)).collect()
    }
}

/// Everything that is obeyed; `None` if there are too many folders. What is obeyed as a whole is not
/// looked into.
fn look(root: &Path, obeyed: &Obeyed, most: Option<usize>) -> Option<Vec<Found>> {
    let (mut found, mut folders, mut seen) = (Vec::new(), vec![PathBuf::new()], 0);
    while let Some(folder) = folders.pop() {
        seen += 1;
        if most.is_some_and(|most| seen > most) {
            return None;
        }
        // What nobody can read, nobody obeys.
        let Ok(entries) = fs::read_dir(root.join(&folder)) else { continue };
        let (mut inner, mut signs) = (Vec::new(), HashSet::new());
        for entry in entries.flatten() {
            let (name, path) = (entry.file_name(), folder.join(entry.file_name()));
            let is_it = |sign: &&str| name.as_bytes() == sign.as_bytes();
            signs.extend(SIGNS_OF_GIT.into_iter().find(is_it));
            if obeyed.is(&root.join(&path)) {
                found.extend(known(root, &path, &path));
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                inner.push(path);
            }
        }
        if is_repository(|sign| signs.contains(sign)) {
            found.extend(known(root, &folder, &folder.join("HEAD")));
        } else {
            folders.append(&mut inner);
        }
    }
    Some(found)
}

fn known(root: &Path, path: &Path, cause: &Path) -> Option<Found> {
    let about = root.join(path).symlink_metadata().ok()?;
    let is_link = about.is_symlink();
    let time = is_link.then(|| (about.ctime(), about.ctime_nsec()));
    let identity = (about.dev(), about.ino(), time);
    Some(Found { path: path.to_owned(), identity, is_link, cause: cause.to_owned() })
}

/// Gives something another name in its folder. No link is followed on the way.
fn aside(workspace: &Workspace, path: &Path) -> Aside {
    let from = path.to_string_lossy().into_owned();
    let to = workspace
        .parent(path)
        .map_err(|(_, message)| message)
        .and_then(|(folder, name)| rename(&folder, &name).map_err(|error| error.to_string()));
    let beside = |name: String| path.with_file_name(name).to_string_lossy().into_owned();
    if let Err(error) = &to {
        tracing::error!(path = from, error, "what other programs obey cannot be put aside");
    }
    Aside { from, to: to.map(beside) }
}

fn rename(folder: impl AsFd, name: &std::ffi::OsStr) -> io::Result<String> {
    let shown = name.to_string_lossy();
    for number in 1..=MOST_NAMES {
        let new =
            if number == 1 { format!("{shown}.held") } else { format!("{shown}.held-{number}") };
        let attempt = || renameat_with(&folder, name, &folder, &new, RenameFlags::NOREPLACE);
        let done = match attempt() {
            // Whoever made the folder may have closed it.
            Err(Errno::ACCESS) => {
                let mode = Mode::from_raw_mode(fstat(&folder)?.st_mode & 0o7777);
                fchmod(&folder, mode | Mode::RWXU)?;
                attempt()
            }
            done => done,
        };
        match done {
            Ok(()) => return Ok(new),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
