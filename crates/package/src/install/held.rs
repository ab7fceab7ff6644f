//! Only one program at a time changes what is installed.

use std::{
    fs::{self, File, TryLockError},
    os::unix::fs::DirBuilderExt as _,
    path::PathBuf,
};

use super::{InstallFailure, SkillSet, journal::Journal};

const FILE: &str = "shelf.lock";

/// Proof that nobody else changes anything, or that nobody at all does. The system lets go when the program ends, however it
/// does.
pub(super) struct Held {
    _file: File,
}

impl SkillSet {
    /// Waits until nobody else changes anything; `waiting` is called if that is not at once.
    pub(super) fn hold(&self, waiting: &dyn Fn()) -> Result<Held, InstallFailure> {
        let (path, file) = self.lock_file()?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                waiting();
                file.lock().map_err(InstallFailure::io(&path))?;
            }
            Err(TryLockError::Error(error)) => return Err(InstallFailure::io(&path)(error)),
        }
        Ok(Held { _file: file })
    }

    /// Waits until nobody changes anything, so that what is read belongs together.
    pub(super) fn share(&self) -> Result<Held, InstallFailure> {
        let (path, file) = self.lock_file()?;
        file.lock_shared().map_err(InstallFailure::io(&path))?;
        Ok(Held { _file: file })
    }

    /// As [`Self::share`], for a plan: what somebody left half done must be put right first.
    pub(super) fn steady(&self) -> Result<Held, InstallFailure> {
        let held = self.share()?;
        let unfinished = Journal::new(&self.data).unfinished()?;
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
    fn whoever_waits_is_told() {
        let place = tempfile::tempdir().unwrap();
        let agents = Agents::new(place.path(), |_| None);
        let shelf = SkillSet::new(place.path(), Scope::Project, agents, place.path().join("data"));
        let held = shelf.hold(&|| panic!("nobody is there")).unwrap();
        let (sender, waits) = mpsc::channel();
        let other = shelf.clone();
        let second = thread::spawn(move || {
            other.hold(&|| sender.send(()).unwrap()).unwrap();
        });
        waits.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(!second.is_finished());
        drop(held);
        second.join().unwrap();
        let readers = [shelf.share().unwrap(), shelf.share().unwrap()];
        assert_eq!(readers.len(), 2, "they do not wait for each other");
    }
}
