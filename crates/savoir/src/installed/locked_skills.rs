//! The skills in Savoir's lockfiles, and the folders that they were written to.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use savoir_package::{
    Agent,
    lock::{self, Lock, LockedSkill},
};

use crate::config;

/// A skill in a lockfile.
pub(crate) struct Locked {
    pub(crate) name: String,
    pub(crate) skill: LockedSkill,
    /// The lockfile.
    pub(crate) file: PathBuf,
    pub(crate) written: Vec<InstalledFolder>,
}

impl Locked {
    /// A key that is unique among all entries of all lockfiles.
    pub(crate) fn key(&self) -> String {
        format!("{}\0{}", self.file.display(), self.name)
    }

    /// The command that installs what the lockfile lists.
    pub(crate) fn sync_command(&self) -> &'static str {
        let is_of_user = self.file.parent() == config::user_folder().as_deref();
        if is_of_user { "savoir sync --user" } else { "savoir sync" }
    }
}

/// Where an agent finds a skill in a lockfile.
pub(crate) struct InstalledFolder {
    pub(crate) agent: &'static Agent,
    pub(crate) folder: PathBuf,
    /// The real path, if `folder` contains a symlink.
    real: Option<PathBuf>,
}

/// The skills folder of an agent.
struct Home {
    agent: &'static Agent,
    folder: PathBuf,
    real: Option<PathBuf>,
}

impl Home {
    fn of(agent: &'static Agent, folder: PathBuf) -> Self {
        let real = folder.canonicalize().ok().filter(|real| *real != folder);
        Self { agent, folder, real }
    }

    fn skill(&self, name: &str) -> InstalledFolder {
        let real = self.real.as_ref().map(|real| real.join(name));
        InstalledFolder { agent: self.agent, folder: self.folder.join(name), real }
    }
}

/// Reads the lockfile of a folder. Problems are added to the list, and the other skills are read.
pub(super) fn read(
    place: &Path,
    folder: impl Fn(&Agent) -> Option<PathBuf>,
    locked: &mut Vec<Locked>,
    problems: &mut Vec<String>,
) {
    let file = place.join(lock::FILE);
    let lock = match Lock::read(&file) {
        Ok(lock) => lock,
        Err(error) => return problems.push(error.to_string()),
    };
    let mut homes: BTreeMap<String, Option<Home>> = BTreeMap::new();
    for (name, skill) in lock.skills {
        let mut written = Vec::new();
        for word in &skill.agents {
            let home = homes.entry(word.clone()).or_insert_with(|| match Agent::by_id(word) {
                Ok(agent) => folder(agent).map(|folder| Home::of(agent, folder)),
                Err(unknown) => {
                    problems.push(format!("{}: {unknown}", file.display()));
                    None
                }
            });
            written.extend(home.as_ref().map(|home| home.skill(&name)));
        }
        locked.push(Locked { name, skill, file: file.clone(), written });
    }
}

/// The expected digest of each folder: that of the fetched files. Files that were converted for the
/// dialect of an agent differ from it; `Installed::drift` checks those.
pub(super) fn folders(locked: &[Locked]) -> HashMap<PathBuf, Option<String>> {
    let folders = locked.iter().flat_map(|Locked { skill, written, .. }| {
        let paths = written.iter().flat_map(InstalledFolder::paths);
        paths.map(|folder| (folder.clone(), Some(skill.integrity.clone())))
    });
    folders.collect()
}

/// The index in the list of the skill that was written to a folder.
pub(super) fn by_folder(locked: &[Locked]) -> HashMap<PathBuf, usize> {
    let places = locked.iter().enumerate().flat_map(|(at, skill)| {
        skill
            .written
            .iter()
            .flat_map(InstalledFolder::paths)
            .map(move |folder| (folder.clone(), at))
    });
    places.collect()
}

impl InstalledFolder {
    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.folder).chain(&self.real)
    }
}
