//! Writes files atomically: a reader sees the old text or the new one, never a part.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use savoir_skill::folder::IGNORED_FOLDERS;

use crate::error::CommandError;

/// Replaces the text of a file.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), io::ErrorKind> {
    // A symlink stays: its target is replaced.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        let mut file = staging_folder_in(folder)?;
        file.write_all(text.as_bytes())?;
        if let Ok(metadata) = fs::metadata(&target) {
            file.as_file().set_permissions(metadata.permissions())?;
        }
        file.as_file().sync_all()?;
        file.persist(&target)?;
        Ok(())
    };
    // Only the kind of the error is returned, because the message would name a temporary file.
    write().map_err(|error| error.kind())
}

/// A temporary file with the default permissions of new files.
fn staging_folder_in(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// Creates a folder that `fill` fills, completely or not at all.
pub(crate) fn new_folder(
    path: &Path,
    fill: impl FnOnce(&Path) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let failed = |error: io::Error| {
        CommandError::input(format!("{} cannot be written: {}", path.display(), error.kind()))
            .hint("check the permissions of the folder above it, and the space left")
    };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(failed)?;
    let occupied = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    if occupied || path.is_file() {
        return Err(CommandError::input(format!("{} already exists", path.display()))
            .hint("choose another folder, or remove this one first"));
    }
    let staging = tempfile::Builder::new().prefix(".savoir-").tempdir_in(parent).map_err(failed)?;
    fill(staging.path())?;
    if path.is_dir() {
        fs::remove_dir(path).map_err(failed)?;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(staging.path(), fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    fs::rename(staging.path(), path).map_err(failed)?;
    // The folder was moved, so there is nothing to remove.
    let _ = staging.keep();
    Ok(())
}

/// Writes one file below `folder` and creates its parent folders.
pub(crate) fn file_in(folder: &Path, relative: &str, bytes: &[u8]) -> Result<(), CommandError> {
    let path = folder.join(relative);
    let failed =
        |error: io::Error| CommandError::input(format!("{relative} cannot be written: {error}"));
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    fs::write(&path, bytes).map_err(failed)
}

/// Copies a folder with modes and symlinks; returns what was skipped, and why.
pub(crate) fn copy_tree(
    from: &Path,
    to: &Path,
) -> Result<Vec<(String, &'static str)>, CommandError> {
    let mut left_out = Vec::new();
    copy_level(from, to, Path::new(""), &mut left_out)?;
    Ok(left_out)
}

fn copy_level(
    from: &Path,
    to: &Path,
    inside: &Path,
    left_out: &mut Vec<(String, &'static str)>,
) -> Result<(), CommandError> {
    let failed = |path: &Path, error: &io::Error| {
        CommandError::input(format!("{} cannot be copied: {}", path.display(), error.kind()))
    };
    let folder = from.join(inside);
    for entry in fs::read_dir(&folder).map_err(|error| failed(&folder, &error))? {
        let entry = entry.map_err(|error| failed(&folder, &error))?;
        let path = inside.join(entry.file_name());
        let target = to.join(&path);
        let kind = entry.file_type().map_err(|error| failed(&path, &error))?;
        let mut leave_out = |why| left_out.push((path.to_string_lossy().into_owned(), why));
        if kind.is_dir() {
            let name = entry.file_name();
            if IGNORED_FOLDERS.iter().any(|ignored| name == *ignored) {
                leave_out("such a folder is not part of a skill");
                continue;
            }
            fs::create_dir(&target).map_err(|error| failed(&path, &error))?;
            copy_level(from, to, &path, left_out)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target).map_err(|error| failed(&path, &error))?;
        } else if kind.is_symlink() {
            if !copy_link(from, &entry.path(), &target) {
                leave_out("a symlink that leads out of the skill is not copied");
            }
        } else {
            leave_out("it is neither a file nor a folder");
        }
    }
    Ok(())
}

/// Copies a symlink if its target is inside the folder.
fn copy_link(root: &Path, link: &Path, target: &Path) -> bool {
    let inside = match (link.canonicalize(), root.canonicalize()) {
        (Ok(real), Ok(root)) => real.starts_with(root),
        _ => false,
    };
    let Some(text) = fs::read_link(link).ok().filter(|text| inside && text.is_relative()) else {
        return false;
    };
    #[cfg(unix)]
    return std::os::unix::fs::symlink(text, target).is_ok();
    #[cfg(not(unix))]
    return fs::copy(link.parent().unwrap_or(root).join(text), target).is_ok();
}
