//! Finds the skills in a folder, also behind links that lead to other folders of the same
//! repository.

use std::collections::BTreeSet;

use savoir_skill::folder::IGNORED_FOLDERS;

use super::{
    SourceError,
    layout::{below, join, owner, skill_folders},
};
use crate::limits::MAX_LINKED_FOLDERS;

/// A repository or a local folder to search for skills. Paths are relative to its root.
pub(super) trait FolderView {
    /// Lists the SKILL.md files and the links below a folder, relative to that folder.
    fn list(&mut self, folder: &str) -> Result<FolderListing, SourceError>;

    /// Returns the target of a link.
    fn target(&self, link: &str) -> LinkTarget;
}

/// The SKILL.md files and links below a folder.
#[derive(Debug, Default)]
pub(super) struct FolderListing {
    pub(super) skill_files: Vec<String>,
    pub(super) links: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum LinkTarget {
    /// A folder of the repository, by its path without links.
    Folder(String),
    /// A file of the repository.
    File,
    /// Outside of the repository, part of a cycle, or missing.
    Nowhere,
}

/// The result of a search.
#[derive(Debug, Default)]
pub(super) struct DiscoveredSkills {
    /// The skill folders by their paths without links, sorted. A link to a skill is not listed
    /// again.
    pub(super) skills: Vec<String>,
    /// Broken links beside skills.
    pub(super) broken: Vec<String>,
}

/// A folder that was searched, with its skills relative to it.
struct SearchedFolder {
    folder: String,
    skills: Vec<String>,
}

impl SearchedFolder {
    /// Whether searching another folder would find nothing new.
    fn covers(&self, folder: &str) -> bool {
        if self.folder == folder {
            return true;
        }
        let Some(inside) = below(folder, &self.folder) else { return false };
        let is_skill = || self.skills.binary_search_by(|skill| skill.as_str().cmp(inside)).is_ok();
        !is_ignored(inside) && (is_skill() || owner(inside, &self.skills).is_none())
    }
}

/// Searches a folder for skills.
pub(super) fn discover(
    view: &mut impl FolderView,
    start: &str,
) -> Result<DiscoveredSkills, SourceError> {
    let mut found = BTreeSet::new();
    let mut broken = Vec::new();
    let mut seen: Vec<SearchedFolder> = Vec::new();
    let mut waiting = vec![start.to_owned()];
    while let Some(folder) = waiting.pop() {
        if seen.len() > MAX_LINKED_FOLDERS || seen.iter().any(|seen| seen.covers(&folder)) {
            continue;
        }
        let listed = view.list(&folder)?;
        let skills = skill_folders(listed.skill_files.iter().map(String::as_str));
        for link in listed.links {
            // Links inside a skill belong to the skill.
            if is_ignored(&link) || owner(&link, &skills).is_some() {
                continue;
            }
            let whole = join(&folder, &link);
            match view.target(&whole) {
                LinkTarget::Folder(target) => waiting.push(target),
                LinkTarget::Nowhere if is_in_skills_folder(&whole) => broken.push(whole),
                LinkTarget::File | LinkTarget::Nowhere => {}
            }
        }
        found.extend(skills.iter().map(|skill| join(&folder, skill)));
        seen.push(SearchedFolder { folder, skills });
    }
    Ok(DiscoveredSkills { skills: found.into_iter().collect(), broken })
}

fn is_ignored(path: &str) -> bool {
    path.split('/').any(|part| IGNORED_FOLDERS.contains(&part))
}

/// Whether a link is where a skill is expected.
fn is_in_skills_folder(link: &str) -> bool {
    link.rsplit('/').nth(1) == Some("skills") || link.ends_with("/skills")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths of files, and links with their targets.
    struct Paths<'a>(&'a [&'a str], &'a [(&'a str, &'a str)]);

    impl FolderView for Paths<'_> {
        fn list(&mut self, folder: &str) -> Result<FolderListing, SourceError> {
            let inside = |path: &&str| below(path, folder).map(str::to_owned);
            Ok(FolderListing {
                skill_files: self.0.iter().filter_map(inside).collect(),
                links: self.1.iter().filter_map(|(link, _)| inside(link)).collect(),
            })
        }

        fn target(&self, link: &str) -> LinkTarget {
            match self.1.iter().find(|(path, _)| *path == link).map(|(_, target)| *target) {
                Some("nowhere") | None => LinkTarget::Nowhere,
                Some("file") => LinkTarget::File,
                Some(folder) => LinkTarget::Folder(folder.to_owned()),
            }
        }
    }

    fn found(files: &[&str], links: &[(&str, &str)], start: &str) -> Vec<String> {
        discover(&mut Paths(files, links), start).unwrap().skills
    }

    #[test]
    fn link_to_a_skill_is_not_listed_again() {
        let files = ["skills/a/SKILL.md", "skills/b/SKILL.md", "shared/x/SKILL.md"];
        let links = [(".claude/skills", "skills"), ("skills/x", "shared/x"), ("back", "")];
        assert_eq!(found(&files, &links, ""), ["shared/x", "skills/a", "skills/b"]);
        assert_eq!(found(&files, &links, "skills"), ["shared/x", "skills/a", "skills/b"]);
        assert_eq!(found(&files, &links, ".claude"), ["shared/x", "skills/a", "skills/b"]);
        assert_eq!(found(&files, &[("loop", "skills"), ("skills/up", "")], "skills").len(), 3);
    }

    #[test]
    fn symlink_can_reveal_hidden_skill() {
        let files = ["big/SKILL.md", "big/parts/mini/SKILL.md", "node_modules/p/s/SKILL.md"];
        assert_eq!(found(&files, &[], ""), ["big"]);
        let links = [("skills/mini", "big/parts/mini"), ("skills/s", "node_modules/p/s")];
        assert_eq!(found(&files, &links, ""), ["big", "big/parts/mini", "node_modules/p/s"]);
        // A link inside a skill belongs to the skill.
        assert_eq!(found(&files, &[("big/other", "big/parts")], ""), ["big"]);
    }

    #[test]
    fn broken_links_beside_skills_are_listed() {
        let links = [("skills/x", "nowhere"), ("docs/y", "nowhere"), ("skills/z", "file")];
        let found = discover(&mut Paths(&["a/SKILL.md"], &links), "").unwrap();
        assert_eq!((found.skills, found.broken), (vec!["a".into()], vec!["skills/x".into()]));
    }
}
