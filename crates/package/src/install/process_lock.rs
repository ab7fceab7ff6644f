//! Locks the installation, so that only one process changes it at a time.

use std::{
    fs::{self, File, TryLockError},
    os::unix::fs::DirBuilderExt as _,
    path::PathBuf,
};

use super::{InstallFailure, SkillSet, journal::Journal};

const FILE: &str = "shelf.lock";

/// A held lock: exclusive for changes, or shared for reading. The system releases it when the
/// program ends, even after a crash.
pub(super) struct ProcessLock {
    _file: File,
}

impl SkillSet {
    /// Waits for the exclusive lock; calls `waiting` if another process holds it.
    pub(super) fn lock_exclusive(&self, waiting: &dyn Fn()) -> Result<ProcessLock, InstallFailure> {
        let (path, file) = self.lock_file()?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                waiting();
                file.lock().map_err(InstallFailure::io(&path))?;
            }
            Err(TryLockError::Error(error)) => return Err(InstallFailure::io(&path)(error)),
        }
        Ok(ProcessLock { _file: file })
    }

    /// Waits for the shared lock, so that the files that are read match each other.
    pub(super) fn lock_shared(&self) -> Result<ProcessLock, InstallFailure> {
        let (path, file) = self.lock_file()?;
        file.lock_shared().map_err(InstallFailure::io(&path))?;
        Ok(ProcessLock { _file: file })
    }

    /// Like [`Self::lock_shared`], for planning: fails if there is an incomplete change, which must
    /// be repaired first.
    pub(super) fn lock_for_planning(&self) -> Result<ProcessLock, InstallFailure> {
        let held = self.lock_shared()?;
        let unfinished = Journal::new(&self.data).unfinished_records()?;
        if unfinished.iter().any(|record| record.root == self.root) {
            return Err(InstallFailure::Unfinished(self.root.clone()));
        }
        Ok(held)
    }

    fn lock_file(&self) -> Result<(PathBuf, File), InstallFailure> {
        let fail = || InstallFailure::io(&self.data);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.data).map_err(fail())?;
        let path = self.data.join(FILE);
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(InstallFailure::io(&path))?;
        Ok((path, file))
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread, time::Duration};

    use super::*;
    use crate::{Agents, manifest::Scope};

    #[test]
    fn waiting_for_lock_is_reported() {
        let place = tempfile::tempdir().unwrap();
        let agents = Agents::new(place.path(), |_| None);
        let skill_set =
            SkillSet::new(place.path(), Scope::Project, agents, place.path().join("data"));
        let held = skill_set.lock_exclusive(&|| panic!("nobody is there")).unwrap();
        let (sender, waits) = mpsc::channel();
        let other = skill_set.clone();
        let second = thread::spawn(move || {
            other.lock_exclusive(&|| sender.send(()).unwrap()).unwrap();
        });
        waits.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(!second.is_finished());
        drop(held);
        second.join().unwrap();
        let readers = [skill_set.lock_shared().unwrap(), skill_set.lock_shared().unwrap()];
        assert_eq!(readers.len(), 2, "they do not wait for each other");
    }
}
