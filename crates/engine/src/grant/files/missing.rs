//! Files and folders that may be written and do not exist. Nothing is made for them: they can be made in
//! the folder that they will be in, and everything else in it stays as it is.

use std::{
    fs::{self, FileType},
    path::{Path, PathBuf},
};

use savoir_sandbox::{Access, PathGrant};

use crate::{
    approval::shell_word,
    grant::{Grants, ProtectedPaths, Refusal, WritePolicy},
};

/// Files and folders beside one that does not exist; each is a mount.
const MAX_BESIDE: usize = 1000;

/// Lets a run make a path that does not exist.
pub(super) fn open_folder(
    path: &Path,
    grants: &Grants<'_>,
    paths: &mut Vec<PathGrant>,
) -> Result<(), Refusal> {
    let folder = path.ancestors().skip(1).find(|above| above.is_dir()).unwrap_or(path);
    let is_kept = is_kept(folder, grants, paths);
    match access(paths, folder) {
        Some(Access::Write) if !is_kept => return Ok(()),
        Some(Access::Make) => {
            paths.push(PathGrant::write(path));
            return Ok(());
        }
        _ => {}
    }
    let refuse = |reason: String| {
        // A name with a dot in it is most often a file.
        let make = if path.extension().is_some() { "touch" } else { "mkdir -p" };
        let hint = format!("make it first: {make} {}", shell_word(&path.to_string_lossy()));
        Err(Refusal::new(&format!("filesystem:write:{}", path.display()), reason, hint))
    };
    if !is_in_project(folder, grants) {
        return refuse(format!("{} does not exist", path.display()));
    }
    let beside = match entries(folder) {
        Ok(beside) if beside.len() <= MAX_BESIDE => beside,
        Ok(_) => return refuse(format!("{} has too many files in it", folder.display())),
        Err(error) => return refuse(format!("{} cannot be read: {error}", folder.display())),
    };
    // In a folder that agents read, what is there stays as it is, whatever is granted around it.
    let read_only = is_kept.then(|| PathGrant::read(folder));
    let around: Vec<PathGrant> = paths.iter().cloned().chain(read_only).collect();
    let kept: Vec<PathGrant> =
        beside.into_iter().filter_map(|(entry, kind)| keep(entry, kind, &around)).collect();
    paths.retain(|grant| grant.path != folder || grant.access == Access::Read);
    paths.push(PathGrant::make(folder));
    paths.push(PathGrant::write(path));
    paths.extend(kept);
    Ok(())
}

/// Whether a folder stays as it is although a folder around it can be written, because other programs
/// obey what is in it.
fn is_kept(folder: &Path, grants: &Grants<'_>, paths: &[PathGrant]) -> bool {
    let is_around =
        |grant: &&PathGrant| grant.access == Access::Write && folder.starts_with(&grant.path);
    let root = paths.iter().filter(is_around).max_by_key(|grant| grant.path.components().count());
    let care = |root: &PathGrant| ProtectedPaths::of(grants.run_env).strictest(folder, &root.path);
    root.and_then(care) == Some(WritePolicy::Kept)
}

/// Whether a path that is missing is one that a run may make.
pub(super) fn can_be_made(path: &Path, grants: &Grants<'_>) -> bool {
    let folder = path.ancestors().skip(1).find(|above| above.is_dir());
    folder.is_some_and(|folder| is_in_project(folder, grants))
}

/// Elsewhere, whole homes and temporary folders would come to light.
fn is_in_project(folder: &Path, grants: &Grants<'_>) -> bool {
    let run_env = grants.run_env;
    let roots = [Some(&run_env.directory), run_env.repository.as_ref()];
    let is_below = roots.into_iter().flatten().any(|root| folder.starts_with(root));
    is_below && !run_env.home.starts_with(folder) && folder.parent().is_some()
}

fn entries(folder: &Path) -> std::io::Result<Vec<(PathBuf, FileType)>> {
    let entries = fs::read_dir(folder)?;
    entries.map(|entry| entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))).collect()
}

/// What can be read stays as it is; what cannot is still not to be seen.
fn keep(entry: PathBuf, kind: FileType, paths: &[PathGrant]) -> Option<PathGrant> {
    match access(paths, &entry) {
        _ if kind.is_symlink() => Some(PathGrant::protected(entry)),
        // Nothing is behind a pipe that a skill may talk to.
        _ if !kind.is_dir() && !kind.is_file() => Some(PathGrant::hidden(entry)),
        Some(Access::Read | Access::Execute | Access::Protected) => {
            Some(PathGrant::protected(entry))
        }
        Some(Access::Write | Access::Make) => None,
        _ if paths.iter().any(|grant| grant.path == entry) => None,
        Some(Access::Private | Access::Hidden) | None => Some(PathGrant::hidden(entry)),
    }
}

/// What a list of grants says about a path: the most specific one counts.
fn access(paths: &[PathGrant], path: &Path) -> Option<Access> {
    let above = paths.iter().filter(|grant| path.starts_with(&grant.path));
    above
        .max_by_key(|grant| (grant.path.components().count(), grant.access))
        .map(|grant| grant.access)
}
