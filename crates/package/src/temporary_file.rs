//! Creates files that replace others once they are complete.

use std::{fs, io, path::Path};

use tempfile::{Builder, NamedTempFile};

/// How the names of such files begin.
const PREFIX: &str = ".savoir-tmp-";

/// Time after which such a file is locked by the program that writes it.
#[cfg(unix)]
const LOCKED_WITHIN: std::time::Duration = std::time::Duration::from_secs(1);

/// Creates a temporary file in a folder, readable only for its owner unless there are other
/// permissions. Removes those of programs that were killed: they may contain secrets.
pub fn create(folder: &Path, permissions: Option<fs::Permissions>) -> io::Result<NamedTempFile> {
    #[cfg(unix)]
    remove_abandoned(folder);
    let mut builder = Builder::new();
    builder.prefix(PREFIX);
    if let Some(permissions) = permissions {
        builder.permissions(permissions);
    }
    let file = builder.tempfile_in(folder)?;
    // The lock ends with the program. Where files cannot be locked, none is removed.
    #[cfg(unix)]
    let _ = file.as_file().try_lock();
    Ok(file)
}

#[cfg(unix)]
fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_temporary = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_temporary && is_abandoned(&entry.path()) {
            // Another program may have removed it.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether no program writes a file any more.
#[cfg(unix)]
fn is_abandoned(path: &Path) -> bool {
    let written = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file);
    let age = written.and_then(|file| file.modified().ok()?.elapsed().ok());
    age.is_some_and(|age| age >= LOCKED_WITHIN)
        && fs::File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn files_of_killed_programs_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let old = std::time::SystemTime::now() - std::time::Duration::from_mins(1);
        let alive = create(folder.path(), None).unwrap();
        alive.as_file().set_modified(old).unwrap();
        let dead = folder.path().join(format!("{PREFIX}dead"));
        fs::File::create(&dead).unwrap().set_modified(old).unwrap();
        let new = folder.path().join(format!("{PREFIX}new"));
        fs::write(&new, "").unwrap();
        create(folder.path(), None).unwrap();
        assert!(!dead.exists());
        assert!(alive.path().exists() && new.exists());
    }
}
