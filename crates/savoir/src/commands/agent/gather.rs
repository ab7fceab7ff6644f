//! Finds the skills that an agent can use.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use savoir_engine::Home;
use savoir_package::{
    Store, Tree,
    agent_file::{LocalSkill, LocalSkills, SkillLocationKind, UnusableSkill},
    trust::TrustStore,
};

use crate::{
    discover::{self, Candidate},
    error::CommandError,
    installed::{Installed, Locked},
    trust::Keyring,
};

/// The folder of skills next to an agent file.
const SKILLS_FOLDER: &str = "skills";

/// Searches for skills, the nearest places first.
pub(super) struct SkillGatherer<'a> {
    installed: &'a Installed,
    trust: TrustStore,
    store: Store,
    offers: LocalSkills,
}

impl<'a> SkillGatherer<'a> {
    pub(super) fn new(installed: &'a Installed) -> Result<Self, CommandError> {
        Ok(Self {
            installed,
            trust: Keyring::of_user()?.trusted()?,
            store: Store::new(Home::from_environment()?.data().join("store")),
            offers: LocalSkills::default(),
        })
    }

    /// Adds the skills below the paths of --skills. A path without skills is an error.
    pub(super) fn add_skills_at_paths(&mut self, paths: &[PathBuf]) -> Result<(), CommandError> {
        let mut wrong = None;
        discover::walk(paths, &mut |candidate| {
            match candidate {
                Candidate::Skill { path, .. } => {
                    self.add_skill_file(&path, SkillLocationKind::Named);
                }
                Candidate::Unreadable { path, problem } => wrong = Some((path, problem)),
                Candidate::Empty { path } => {
                    wrong = Some((path, "no SKILL.md below this folder".to_owned()));
                }
            }
            wrong.is_none()
        });
        match wrong {
            None => Ok(()),
            Some((path, problem)) => {
                Err(CommandError::input(format!("{}: {problem}", path.display()))
                    .hint("pass a skill folder, or a folder that contains skills, to --skills"))
            }
        }
    }

    /// Adds the skills in the folder next to the agent file.
    pub(super) fn add_skills_next_to(&mut self, file: &Path) {
        let folder = file.parent().unwrap_or(Path::new("")).join(SKILLS_FOLDER);
        if folder.is_dir() {
            discover::walk(&[folder], &mut |candidate| {
                if let Candidate::Skill { path, .. } = candidate {
                    self.add_skill_file(&path, SkillLocationKind::Beside);
                }
                true
            });
        }
    }

    /// Searches for these skills and their dependencies in savoir.lock and the folders of agents.
    /// Only folders of matching names are read, because there may be ten thousand others.
    pub(super) fn gather_skills(mut self, names: impl Iterator<Item = String>) -> LocalSkills {
        let mut open: Vec<String> = names.collect();
        let mut seen: BTreeSet<String> = open.iter().cloned().collect();
        while let Some(name) = open.pop() {
            self.add_locked_skills(&name);
            self.add_installed_skills(&name);
            for offer in self.offers.named(&name) {
                let needs = offer.summary.needs.iter().map(|need| &need.name);
                open.extend(needs.filter(|need| seen.insert((*need).clone())).cloned());
            }
        }
        self.offers
    }

    /// Adds skills of savoir.lock: the stored tree if there is one, otherwise the installed files.
    fn add_locked_skills(&mut self, name: &str) {
        let installed = self.installed;
        for locked in installed.locked.iter().filter(|locked| locked.name == name) {
            let place = installed.shown(&locked.file).into_owned();
            let tree = self.store.get(&locked.skill.integrity).ok().flatten();
            match tree.or_else(|| installed_files(locked)) {
                Some(tree) => {
                    let folder = locked.written.first().map(|written| written.folder.clone());
                    self.offer(&tree, (name, &place), SkillLocationKind::Locked, folder);
                }
                None => self.refuse(name, &place, "it is not installed: run savoir sync"),
            }
        }
    }

    /// Adds skills in the folders of agents.
    fn add_installed_skills(&mut self, name: &str) {
        let installed = self.installed;
        for entry in installed.ledger.named(name) {
            let place = installed.shown(entry.path()).into_owned();
            self.folder(entry.path(), &place, SkillLocationKind::Installed);
        }
    }

    /// Adds a skill by the path of its SKILL.md.
    fn add_skill_file(&mut self, path: &Path, way: SkillLocationKind) {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        self.folder(folder, &folder.display().to_string(), way);
    }

    fn folder(&mut self, folder: &Path, place: &str, way: SkillLocationKind) {
        // `.` has no file name, so use the name of the real folder.
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let called = real.file_name().unwrap_or_default().to_string_lossy();
        match Tree::read(folder) {
            Ok(tree) => self.offer(&tree, (&called, place), way, Some(folder.to_owned())),
            Err(error) => self.refuse(&called, place, &error.to_string()),
        }
    }

    fn offer(
        &mut self,
        tree: &Tree,
        (called, place): (&str, &str),
        way: SkillLocationKind,
        folder: Option<PathBuf>,
    ) {
        match LocalSkill::of(tree, called, &self.trust) {
            Ok(offer) => self.offers.add(offer.at(place.to_owned(), way).in_folder(folder)),
            Err(why) => self.refuse(called, place, &why),
        }
    }

    fn refuse(&mut self, name: &str, place: &str, why: &str) {
        let (name, place, why) = (name.to_owned(), place.to_owned(), why.to_owned());
        self.offers.refuse(UnusableSkill { name, place, why });
    }
}

/// The installed files of a locked skill.
fn installed_files(locked: &Locked) -> Option<Tree> {
    locked.written.iter().find_map(|written| Tree::read(&written.folder).ok())
}
