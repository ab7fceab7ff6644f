//! Grants paths that may be written but do not exist. Nothing is created on the host: the run may
//! create entries in the nearest existing folder, whose other entries remain unchanged.

use std::{
    fs::{self, FileType},
    path::{Path, PathBuf},
};

use savoir_sandbox::{Access, PathGrant};

use crate::{
    approval::shell_word,
    grant::{Grants, ProtectedPaths, Refusal, WritePolicy},
};

/// Maximum number of entries in that folder; each is a mount.
const MAX_BESIDE: usize = 1000;

/// Lets a run create a path that does not exist.
pub(super) fn grant_parent_folder(
    path: &Path,
    grants: &Grants<'_>,
    paths: &mut Vec<PathGrant>,
) -> Result<(), Refusal> {
    let folder = path.ancestors().skip(1).find(|above| above.is_dir()).unwrap_or(path);
    let is_kept = is_kept(folder, grants, paths);
    match access(paths, folder) {
        Some(Access::Write) if !is_kept => return Ok(()),
        Some(Access::CreateGranted) => {
            paths.push(PathGrant::write(path));
            return Ok(());
        }
        _ => {}
    }
    let refuse = |reason: String| {
        // A name with a dot is most often a file.
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
    // In a protected folder, existing entries are read-only, even if a folder around it is
    // writable.
    let read_only = is_kept.then(|| PathGrant::read(folder));
    let around: Vec<PathGrant> = paths.iter().cloned().chain(read_only).collect();
    let kept: Vec<PathGrant> =
        beside.into_iter().filter_map(|(entry, kind)| keep(entry, kind, &around)).collect();
    paths.retain(|grant| grant.path != folder || grant.access == Access::Read);
    paths.push(PathGrant::create_granted(folder));
    paths.push(PathGrant::write(path));
    paths.extend(kept);
    Ok(())
}

/// Whether a folder is read-only although a folder around it is writable, because other programs
/// obey its files.
fn is_kept(folder: &Path, grants: &Grants<'_>, paths: &[PathGrant]) -> bool {
    let is_around =
        |grant: &&PathGrant| grant.access == Access::Write && folder.starts_with(&grant.path);
    let root = paths.iter().filter(is_around).max_by_key(|grant| grant.path.components().count());
    let care = |root: &PathGrant| ProtectedPaths::of(grants.run_env).strictest(folder, &root.path);
    root.and_then(care) == Some(WritePolicy::ReadOnly)
}

/// Whether a run may create a missing path.
pub(super) fn can_be_created(path: &Path, grants: &Grants<'_>) -> bool {
    let folder = path.ancestors().skip(1).find(|above| above.is_dir());
    folder.is_some_and(|folder| is_in_project(folder, grants))
}

/// Whether a folder is in the user's working directory or repository. Elsewhere, listing the folder
/// would expose whole homes and temporary folders.
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

/// The grant that keeps an existing entry as it is: readable entries become read-only, and entries
/// that were not visible are hidden.
fn keep(entry: PathBuf, kind: FileType, paths: &[PathGrant]) -> Option<PathGrant> {
    match access(paths, &entry) {
        _ if kind.is_symlink() => Some(PathGrant::protected(entry)),
        // A skill must not talk to pipes, sockets and devices.
        _ if !kind.is_dir() && !kind.is_file() => Some(PathGrant::hidden(entry)),
        Some(Access::Read | Access::Execute | Access::Protected) => {
            Some(PathGrant::protected(entry))
        }
        Some(Access::Write | Access::CreateGranted) => None,
        _ if paths.iter().any(|grant| grant.path == entry) => None,
        Some(Access::Scratch | Access::Hidden) | None => Some(PathGrant::hidden(entry)),
    }
}

/// The access of a path: the most specific grant applies.
fn access(paths: &[PathGrant], path: &Path) -> Option<Access> {
    let above = paths.iter().filter(|grant| path.starts_with(&grant.path));
    above
        .max_by_key(|grant| (grant.path.components().count(), grant.access))
        .map(|grant| grant.access)
}
