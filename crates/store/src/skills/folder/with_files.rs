//! Writes a skill with all its files to a local folder.

use std::{
    fs::{self, File, FileTimes},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
    time::SystemTime,
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use savoir_skill::Folder;

use super::{FolderSkills, if_there, lock, lock_skill};
use crate::{
    StoreError, Timestamp,
    skills::{
        Resource, ResourceEntry, SkillFile, WriteError, invalid_name_error, is_resource_path,
        is_valid_key,
    },
    storage::{WORK_PREFIX, file_error, sync_folder, write_whole},
};

impl FolderSkills {
    /// Creates a skill with its files, or replaces it if its version is still `version`.
    pub(in crate::skills) fn put(
        &self,
        name: &str,
        text: &str,
        resources: &[Resource],
        version: Option<&str>,
    ) -> Result<SkillFile, WriteError> {
        if !is_valid_key(name) {
            return Err(invalid_name_error(name));
        }
        let place = self.root.join(name);
        let fail = |error: io::Error| file_error(&place, &error);
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.root).map_err(fail)?;
        let _lock = lock(&self.root.join(".lock")).map_err(fail)?;
        let entries = self.entries()?;
        self.sweep(&entries);
        let staged = tempfile::Builder::new().prefix(WORK_PREFIX).tempdir_in(&self.root);
        let staged = staged.map_err(fail)?;
        let fresh = staged.path().join(name);
        match version {
            None => {
                self.check_free(name, &entries)?;
                stage(&fresh, text, resources, None).map_err(fail)?;
                fs::rename(&fresh, &place).map_err(fail)?;
            }
            Some(version) => {
                let _skill_lock = self.lock_version(name, version)?;
                let since = self.created_at(name).map(Timestamp::micros);
                stage(&fresh, text, resources, since).map_err(fail)?;
                exchange(&fresh, &place).map_err(fail)?;
            }
        }
        sync_folder(&self.root);
        self.cache().remove(name);
        // The old folder has a temporary name now, so the next sweep deletes the rest.
        if let Err(error) = staged.close() {
            tracing::warn!(skill = name, %error, "a skill was replaced, but its old files could not be deleted");
        }
        self.load(name)?.ok_or(WriteError::Missing)
    }

    /// Locks a skill, and fails if it no longer has the version.
    fn lock_version(&self, name: &str, version: &str) -> Result<File, WriteError> {
        let place = self.root.join(name);
        let known = if_there(fs::symlink_metadata(&place), &place)?.ok_or(WriteError::Missing)?;
        if !known.is_dir() {
            let message = "it is a link; change the folder that it leads to".to_owned();
            let path = place.display().to_string();
            return Err(StoreError::File { path, message }.into());
        }
        let held = lock_skill(&place)?.ok_or(WriteError::Missing)?;
        let current = self.load_any(name)?.ok_or(WriteError::Missing)?;
        if current.file.version == version { Ok(held) } else { Err(WriteError::Changed) }
    }

    /// Returns the files beside `SKILL.md`, sorted. Symlinks are skipped.
    pub(in crate::skills) fn resources(
        &self,
        name: &str,
    ) -> Result<Vec<ResourceEntry>, StoreError> {
        let Some(folder) = self.open(name)? else { return Ok(Vec::new()) };
        let files = folder.files().iter().filter(|file| !file.link && is_resource_path(&file.path));
        let sized = files.filter_map(|file| {
            let known = fs::symlink_metadata(folder.root().join(&file.path)).ok()?;
            Some(ResourceEntry { path: file.path.clone(), size: known.len() })
        });
        Ok(sized.collect())
    }

    /// Reads a file beside `SKILL.md`; fails if it has more bytes than `most`.
    pub(in crate::skills) fn resource(
        &self,
        name: &str,
        path: &str,
        most: u64,
    ) -> Result<Option<Resource>, StoreError> {
        let Some(folder) = self.open(name)?.filter(|_| is_resource_path(path)) else {
            return Ok(None);
        };
        if !folder.files().iter().any(|file| file.path == path && !file.link) {
            return Ok(None);
        }
        let place = folder.root().join(path);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let bytes = folder.read_up_to(path, most).map_err(|error| file_error(&place, &error))?;
        let executable = fs::metadata(&place).is_ok_and(|known| is_executable(&known));
        Ok(Some(Resource { path: path.to_owned(), bytes: bytes.into(), executable }))
    }

    fn open(&self, name: &str) -> Result<Option<Folder>, StoreError> {
        if !is_valid_key(name) {
            return Ok(None);
        }
        let place = self.root.join(name);
        let Some(place) = self.inside(&place)? else { return Ok(None) };
        if_there(Folder::open(&place), &place)
    }
}

fn is_executable(known: &fs::Metadata) -> bool {
    known.permissions().mode() & 0o111 != 0
}

/// Writes the folder of a skill. `since` is the creation time of the skill that it replaces, stored
/// as the modification time of the lock file.
fn stage(folder: &Path, text: &str, resources: &[Resource], since: Option<i64>) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)?;
    let lock = File::create(folder.join("SKILL.md.lock"))?;
    if let Some(micros) = since.and_then(|micros| u64::try_from(micros).ok()) {
        let since = SystemTime::UNIX_EPOCH + std::time::Duration::from_micros(micros);
        lock.set_times(FileTimes::new().set_modified(since))?;
    }
    for resource in resources {
        let place = folder.join(&resource.path);
        if let Some(parent) = place.parent() {
            builder.create(parent)?;
            // Sync the folder, too: otherwise a crash could lose the name of a synced file.
            sync_folder(parent);
        }
        let mode = if resource.executable { 0o700 } else { 0o600 };
        let mut options = File::options();
        let mut file = options.write(true).create_new(true).mode(mode).open(&place)?;
        file.write_all(&resource.bytes)?;
        file.sync_all()?;
    }
    write_whole(&folder.join("SKILL.md"), text.as_bytes(), None)
}

/// Swaps two folders.
fn exchange(fresh: &Path, place: &Path) -> io::Result<()> {
    match renameat_with(CWD, fresh, CWD, place, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        // Some file systems and old kernels cannot swap atomically.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            let aside = fresh.with_extension("old");
            fs::rename(place, &aside)?;
            fs::rename(fresh, place).inspect_err(|_| {
                // Restore the old folder; report the first error.
                let _ = fs::rename(&aside, place);
            })
        }
        Err(error) => Err(error.into()),
    }
}
