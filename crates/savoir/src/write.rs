//! Writing files so that a reader sees the old text or the new one, never half of it.

use std::{fs, io::Write as _, path::Path};

use crate::error::CommandError;

/// Replaces the text of a file.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), CommandError> {
    // A link stays a link: its target is replaced.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().unwrap_or(Path::new("."));
    let failed = |error: &dyn std::fmt::Display| {
        CommandError::input(format!("{} cannot be written: {error}", path.display()))
    };
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
    file.write_all(text.as_bytes()).map_err(|error| failed(&error))?;
    if let Ok(metadata) = fs::metadata(&target) {
        file.as_file().set_permissions(metadata.permissions()).map_err(|error| failed(&error))?;
    }
    file.as_file().sync_all().map_err(|error| failed(&error))?;
    file.persist(&target).map_err(|error| failed(&error.error))?;
    Ok(())
}

/// Fills a new folder through `fill`; it appears whole or not at all.
pub(crate) fn new_folder(
    path: &Path,
    fill: impl FnOnce(&Path) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| {
        CommandError::input(format!("{} cannot be written: {error}", path.display()))
    };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(failed)?;
    let occupied = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    if occupied || path.is_file() {
        return Err(CommandError::input(format!("{} exists already", path.display()))
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
    // The folder has moved; there is nothing left to remove.
    let _ = staging.keep();
    Ok(())
}

/// Writes one file below `folder`, with the folders on the way.
pub(crate) fn file_in(folder: &Path, relative: &str, bytes: &[u8]) -> Result<(), CommandError> {
    let path = folder.join(relative);
    let failed = |error: std::io::Error| {
        CommandError::input(format!("{relative} cannot be written: {error}"))
    };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    fs::write(&path, bytes).map_err(failed)
}
