//! Handles symlinks in agent folders.
//!
//! Other tools put a skill into one folder and link to it from the folders of other agents. Such
//! agents share the skill, like agents that read the same folder. An agent folder that is itself a
//! link is different: a cloned project could use it to point anywhere.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    InstallFailure, SkillSet, Target, folder_contents::FolderContents, planner::Planner, real,
};
use crate::manifest::Scope;

/// How to handle folders of a project that lead out of it through links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutsideFolders {
    /// Neither read nor write them: the author of a project must not choose folders of a user who
    /// cloned it.
    #[default]
    Refuse,
    /// Use them, because the user allowed it.
    Follow,
}

/// A link to another folder of the same skill.
pub(super) struct Link {
    path: PathBuf,
    /// The target of the link.
    to: PathBuf,
}

/// Separates targets that are only links to other targets.
pub(super) fn split(targets: Vec<Target>) -> (Vec<Target>, Vec<Link>) {
    let leads: Vec<Option<PathBuf>> =
        targets.iter().map(|target| resolve_link(&target.folder)).collect();
    let is_folder = |path: &Path| {
        targets.iter().zip(&leads).any(|(target, end)| target.folder == path && end.is_none())
    };
    let leads: Vec<Option<PathBuf>> =
        leads.iter().map(|end| end.clone().filter(|end| is_folder(end))).collect();
    let (mut folders, mut links) = (Vec::new(), Vec::new());
    for (target, end) in targets.into_iter().zip(leads) {
        match end {
            Some(to) => links.push(Link { path: target.folder, to }),
            None => folders.push(target),
        }
    }
    (folders, links)
}

/// Returns the target of a link, even if it does not exist.
fn resolve_link(path: &Path) -> Option<PathBuf> {
    let to = fs::read_link(path).ok()?;
    Some(real(&path.parent()?.join(to)))
}

impl SkillSet {
    /// Sets whether to use folders that lead out of the project.
    #[must_use]
    pub fn with_outside(self, outside: OutsideFolders) -> Self {
        Self { outside, ..self }
    }

    /// Returns the folders of a skill for these agents, and the links to them.
    pub(super) fn skill_targets(
        &self,
        name: &str,
        ids: &[String],
    ) -> Result<(Vec<Target>, Vec<Link>), InstallFailure> {
        let parents = self.parents(ids)?.into_iter();
        let targets = parents.map(|parent| parent.inside(name)).collect();
        Ok(split(targets))
    }

    /// Rejects a folder of a journal record if a link has led out of the project since it was
    /// written.
    pub(super) fn check_still_inside(&self, folder: &Path) -> Result<(), InstallFailure> {
        self.resolve_inside(folder.parent().unwrap_or(folder)).map(drop)
    }

    /// Resolves the links in a path; fails if the result is outside of the project.
    pub(super) fn resolve_inside(&self, path: &Path) -> Result<PathBuf, InstallFailure> {
        let found = real(path);
        let free = self.scope == Scope::User || self.outside == OutsideFolders::Follow;
        if free || found.starts_with(&self.root) {
            return Ok(found);
        }
        Err(InstallFailure::Outside { path: path.to_owned(), to: found })
    }
}

impl Planner<'_> {
    /// Plans to remove links to folders that are removed.
    pub(super) fn clear_links(
        &mut self,
        name: &str,
        agents: &[String],
    ) -> Result<(), InstallFailure> {
        for link in self.skill_set.skill_targets(name, agents)?.1 {
            let goes = self
                .steps
                .iter()
                .any(|step| step.folder == link.to && matches!(step.put, FolderContents::Absent));
            if goes || !link.to.exists() {
                let was = FolderContents::at(&link.path)?;
                self.step(&link.path, was, FolderContents::Absent)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::Agent;

    #[test]
    fn symlink_cycle_is_not_a_skill() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let agent = Agent::by_id("codex").unwrap();
        let target = |name: &str| Target { folder: root.join(name), agent };
        fs::create_dir(root.join("a")).unwrap();
        symlink("a", root.join("b")).unwrap();
        symlink("b", root.join("c")).unwrap();
        symlink("nowhere", root.join("d")).unwrap();
        symlink("f", root.join("e")).unwrap();
        symlink("e", root.join("f")).unwrap();
        let all = ["a", "b", "c", "d", "e", "f", "g"].map(target).to_vec();
        let (folders, links) = split(all);
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let folders: Vec<String> = folders.iter().map(|target| name(&target.folder)).collect();
        let links: Vec<String> = links.iter().map(|link| name(&link.path)).collect();
        assert_eq!(folders, ["a", "d", "e", "f", "g"]);
        assert_eq!(links, ["b", "c"]);
    }
}
