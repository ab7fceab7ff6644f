//! Symlinks in agent folders.
//!
//! Other tools put a skill into one folder and link to it from the folders of further agents. Such
//! agents share the skill, just as those do that read the same folder. A folder of an agent that
//! is itself a link is another matter: a project that somebody cloned could lead anywhere with it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    InstallFailure, SkillSet, Target, folder_contents::FolderContents, planner::Planner, real,
};
use crate::manifest::Scope;

/// What becomes of folders of a project that lead out of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutsideFolders {
    /// Nothing is read or written there: whoever made the project may not choose folders of whoever
    /// cloned it.
    #[default]
    Refuse,
    /// They are used as they are, since the user said so.
    Follow,
}

/// A link to another folder of the same skill.
pub(super) struct Link {
    path: PathBuf,
    /// The folder that it leads to.
    to: PathBuf,
}

/// Takes out the targets that are only links to others.
pub(super) fn split(targets: Vec<Target>) -> (Vec<Target>, Vec<Link>) {
    let leads: Vec<Option<PathBuf>> = targets.iter().map(|target| end(&target.folder)).collect();
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

/// Where a link leads, even if nothing is there.
fn end(path: &Path) -> Option<PathBuf> {
    let to = fs::read_link(path).ok()?;
    Some(real(&path.parent()?.join(to)))
}

impl SkillSet {
    /// A shelf for which folders that lead out of the project are used, or not.
    #[must_use]
    pub fn with_outside(self, outside: OutsideFolders) -> Self {
        Self { outside, ..self }
    }

    /// Where a skill lies for these agents, and what leads there.
    pub(super) fn skill_targets(
        &self,
        name: &str,
        ids: &[String],
    ) -> Result<(Vec<Target>, Vec<Link>), InstallFailure> {
        let parents = self.parents(ids)?.into_iter();
        let targets = parents.map(|parent| parent.inside(name)).collect();
        Ok(split(targets))
    }

    /// Refuses a folder of a record if a link leads out of the project since it was written.
    pub(super) fn check_still_inside(&self, folder: &Path) -> Result<(), InstallFailure> {
        self.resolve_inside(folder.parent().unwrap_or(folder)).map(drop)
    }

    /// Where a path of this shelf really is, which must be in the project if it is that of one.
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
    /// Links to folders that go lead nowhere, so they go, too.
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
    fn links_to_each_other_are_no_skill() {
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
