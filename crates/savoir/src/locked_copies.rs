//! Recognizes copies of skills that a `savoir.lock` installed into agents' folders.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use savoir_package::{
    Agent,
    lock::{self, Lock, LockedSkill, LockedSource},
};

/// Recognizes copies, so that a skill in the folders of several agents is checked once.
#[derive(Default)]
pub(crate) struct LockedCopies {
    /// Lockfiles by their folder.
    locks: HashMap<PathBuf, Option<Lock>>,
    /// The first folder of each skill, by the folder of the lockfile and the name.
    seen: HashMap<(PathBuf, String), PathBuf>,
}

impl LockedCopies {
    /// Whether a folder is a copy of a skill that was seen before, or of its source in the project.
    pub(crate) fn is_another_copy(&mut self, folder: &Path) -> bool {
        let Ok(folder) = folder.canonicalize() else { return false };
        let Some(name) = folder.file_name().and_then(|name| name.to_str()) else { return false };
        for project in folder.ancestors().skip(1) {
            let lock = self.locks.entry(project.to_owned()).or_insert_with(|| {
                let path = project.join(lock::FILE);
                path.is_file().then(|| Lock::read(&path).ok()).flatten()
            });
            let Some(locked) = lock.as_ref().and_then(|lock| lock.skills.get(name)) else {
                continue;
            };
            if !is_copy(locked, project, &folder) {
                continue;
            }
            if let Some(source) = source_in(locked, project) {
                return source != folder && has_same_text(&source, &folder);
            }
            let key = (project.to_owned(), name.to_owned());
            let first = self.seen.entry(key).or_insert_with(|| folder.clone());
            return *first != folder && has_same_text(first, &folder);
        }
        false
    }
}

/// Whether two folders have the same SKILL.md: one of the copies may have been edited.
fn has_same_text(one: &Path, other: &Path) -> bool {
    let text = |folder: &Path| fs::read(folder.join("SKILL.md")).ok();
    text(one) == text(other)
}

/// Whether a locked skill was installed in this folder for one of its agents.
fn is_copy(locked: &LockedSkill, project: &Path, folder: &Path) -> bool {
    let agents = locked.agents.iter().filter_map(|id| Agent::by_id(id).ok());
    let mut folders = agents.filter_map(|agent| agent.project_folder(project));
    folders.any(|parent| folder.parent() == Some(parent.as_path()))
}

/// The folder of the project from which a skill was installed, if it came from there.
fn source_in(locked: &LockedSkill, project: &Path) -> Option<PathBuf> {
    let path = match &locked.source {
        LockedSource::Path(path) => path.split('#').next().unwrap_or_default(),
        LockedSource::Adopted { path, .. } => path,
        _ => return None,
    };
    let source = project.join(path).canonicalize().ok()?;
    source.starts_with(project).then_some(source)
}
