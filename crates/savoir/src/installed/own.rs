//! The skills of Savoir's locks, and the folders that they were written to.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use savoir_package::{
    Agent,
    lock::{self, Lock, LockedSkill},
};

/// A skill of a lock.
pub(crate) struct Locked {
    pub(crate) name: String,
    pub(crate) skill: LockedSkill,
    /// The lock.
    pub(crate) file: PathBuf,
    pub(crate) written: Vec<Written>,
}

impl Locked {
    /// A text that no other entry of any lock has.
    pub(crate) fn key(&self) -> String {
        format!("{}\0{}", self.file.display(), self.name)
    }
}

/// Where an agent finds a skill of a lock.
pub(crate) struct Written {
    pub(crate) agent: &'static Agent,
    pub(crate) folder: PathBuf,
    /// The same, where a link leads elsewhere.
    real: Option<PathBuf>,
}

/// An agent's folder.
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

    fn skill(&self, name: &str) -> Written {
        let real = self.real.as_ref().map(|real| real.join(name));
        Written { agent: self.agent, folder: self.folder.join(name), real }
    }
}

/// Takes in the lock of a folder. What is wrong with it is told; the other skills count.
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

/// What each folder is held to: the files as they were fetched. For an agent with a dialect of its
/// own they may have been written anew, which is looked into when they differ.
pub(super) fn folders(locked: &[Locked]) -> HashMap<PathBuf, Option<String>> {
    let folders = locked.iter().flat_map(|Locked { skill, written, .. }| {
        let paths = written.iter().flat_map(Written::paths);
        paths.map(|folder| (folder.clone(), Some(skill.integrity.clone())))
    });
    folders.collect()
}

/// The place in the list of the skill that was written to a folder.
pub(super) fn by_folder(locked: &[Locked]) -> HashMap<PathBuf, usize> {
    let places = locked.iter().enumerate().flat_map(|(at, skill)| {
        skill.written.iter().flat_map(Written::paths).map(move |folder| (folder.clone(), at))
    });
    places.collect()
}

impl Written {
    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.folder).chain(&self.real)
    }
}
