//! Finds the skills below folders whose tools are listed.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use savoir_package::{
    discover::{self, Candidate},
    skill_file::{self, Origin},
};
use savoir_skill::{Skill, convert::with_tools_of_original, read};

use crate::{approval::shell_word, run::is_script_name};

/// Scripts of a skill without tools.
#[derive(Debug)]
pub struct SkillScripts {
    pub skill: String,
    /// Targets for `savoir run`.
    pub targets: Vec<String>,
}

impl SkillScripts {
    fn of(skill: &Skill, path: &Path) -> Option<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let scripts = skill.resources.iter().filter(|file| file.starts_with("scripts/"));
        let scripts = scripts.filter(|file| is_script_name(file));
        let target = |file: &String| shell_word(&folder.join(file).to_string_lossy());
        let targets: Vec<String> = scripts.map(target).collect();
        (!targets.is_empty()).then(|| Self { skill: skill.name.clone(), targets })
    }
}

/// The skills below some paths, sorted by name, and why some were skipped.
#[derive(Debug, Default)]
pub struct FoundTools {
    pub skills: Vec<Skill>,
    /// The file of each skill with tools, by name.
    pub files: BTreeMap<String, PathBuf>,
    /// The scripts of skills without tools.
    pub scripts: Vec<SkillScripts>,
    pub problems: Vec<String>,
    /// Whether a path does not exist, or has no skill.
    pub unreadable: bool,
}

impl FoundTools {
    /// Finds the skills below folders, or at the paths themselves.
    pub fn find_below(paths: &[PathBuf]) -> Self {
        let mut found = Self::default();
        discover::walk(paths, &mut |candidate| {
            found.add_candidate(candidate);
            true
        });
        found.skills.sort_by(|a, b| a.name.cmp(&b.name));
        found.scripts.sort_by(|a, b| a.skill.cmp(&b.skill));
        found
    }

    fn add_candidate(&mut self, candidate: Candidate) {
        let (path, folder, root, named) = match candidate {
            Candidate::Skill { path, folder, root, named } => (path, folder, root, named),
            Candidate::Unreadable { path, problem } => return self.missing(&path, &problem),
            Candidate::Empty { path } => {
                return self.missing(&path, "there is no SKILL.md below this folder");
            }
        };
        let origin = match (&root, named) {
            (Some(root), _) => Origin::Link(root),
            (None, true) => Origin::Named,
            (None, false) => Origin::Walked,
        };
        let reading = match skill_file::source(&path, origin) {
            Ok(source) => read(source, folder.as_ref()),
            Err(problem) => return self.skip(&path, &problem.message),
        };
        if !reading.is_usable() {
            let message = reading.error().map_or("it cannot be used", |error| &error.message);
            let message = message.to_owned();
            return self.skip(&path, &message);
        }
        let skill = with_tools_of_original(&reading, folder.as_ref()).unwrap_or(reading.skill);
        // Skills without tools may share a name.
        if skill.tools.is_empty() {
            self.scripts.extend(SkillScripts::of(&skill, &path));
            self.skills.push(skill);
            return;
        }
        match self.files.get(&skill.name) {
            // The same folder may be below two of the paths.
            Some(first) if is_same_file(first, &path) => {}
            Some(first) => {
                let first = first.display();
                self.skip(&path, &format!("{first} also has the name `{}`", skill.name));
            }
            None => {
                self.files.insert(skill.name.clone(), path);
                self.skills.push(skill);
            }
        }
    }

    fn skip(&mut self, path: &Path, why: &str) {
        self.problems.push(format!("skipped {}: {why}", path.display()));
    }

    fn missing(&mut self, path: &Path, why: &str) {
        self.problems.push(format!("{}: {why}", path.display()));
        self.unreadable = true;
    }
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
