//! Finds the folders that are skills in a list of paths.

use std::collections::BTreeSet;

use savoir_skill::folder::{IGNORED_FOLDERS, is_skill_file};

/// Returns the folders with a SKILL.md, sorted; the root is the empty path. Everything below a
/// skill belongs to it, including a SKILL.md further down. Exception: if the root is a skill,
/// SKILL.md files in a folder `skills` are separate skills.
pub(super) fn skill_folders<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let found: BTreeSet<&str> = paths.filter_map(skill_folder).collect();
    let is_own = |folder: &&str| match skill_above(folder, &found) {
        None => true,
        Some("") => folder.split('/').any(|part| part == "skills"),
        Some(_) => false,
    };
    found.iter().copied().filter(is_own).map(str::to_owned).collect()
}

/// Returns the folder of a path that ends in SKILL.md.
fn skill_folder(path: &str) -> Option<&str> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let ignored = folder.split('/').any(|part| IGNORED_FOLDERS.contains(&part));
    (is_skill_file(name) && !ignored).then_some(folder)
}

/// Returns the skill that contains a folder. The root is checked last, since it has exceptions.
fn skill_above<'a>(folder: &str, found: &BTreeSet<&'a str>) -> Option<&'a str> {
    let above = folder.match_indices('/').map(|(end, _)| &folder[..end]);
    let mut above = above.chain((!folder.is_empty()).then_some(""));
    above.find_map(|folder| found.get(folder).copied())
}

/// Returns the skill that a path belongs to, among those that [`skill_folders`] found.
pub(super) fn owner<'a>(path: &str, skills: &'a [String]) -> Option<&'a str> {
    let is_skill = |folder: &str| skills.binary_search_by(|skill| skill.as_str().cmp(folder)).ok();
    let above = path.match_indices('/').map(|(end, _)| &path[..end]);
    let nearest = above.rev().find_map(is_skill);
    let root = || is_skill("").filter(|_| !path.split('/').any(|part| part == "skills"));
    nearest.or_else(root).map(|at| skills[at].as_str())
}

/// Returns the only folder at the root, which archive tools wrap around a skill; empty if there are
/// several.
pub(super) fn common_folder<'a>(mut paths: impl Iterator<Item = &'a str>) -> &'a str {
    let Some((first, _)) = paths.next().and_then(|path| path.split_once('/')) else { return "" };
    let is_inside = |path: &str| below(path, first).is_some();
    if paths.all(is_inside) { first } else { "" }
}

/// Returns a path relative to a folder that contains it.
pub(super) fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    if folder.is_empty() { Some(path) } else { path.strip_prefix(folder)?.strip_prefix('/') }
}

/// Joins a folder and a path.
pub(super) fn join(folder: &str, path: &str) -> String {
    match (folder, path) {
        ("", path) => path.to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, path) => format!("{folder}/{path}"),
    }
}

/// Whether a file name has an extension of Markdown.
pub(super) fn is_markdown(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    [".md", ".markdown", ".mdx"].iter().any(|ending| path.ends_with(ending))
}

/// Returns the last component of a path.
pub(super) fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(paths: &[&str]) -> Vec<String> {
        skill_folders(paths.iter().copied())
    }

    #[test]
    fn nested_skill_files_belong_to_outer_skill() {
        let paths = ["README.md", "a/SKILL.md", "a/assets/SKILL.md", ".claude/skills/b/skill.md"];
        assert_eq!(found(&paths), [".claude/skills/b", "a"]);
        let ignored = ["node_modules/x/SKILL.md", "x/SKILL.md.txt", "y/skills.md"];
        assert_eq!(found(&ignored), [""; 0]);
    }

    #[test]
    fn root_skill_may_have_further_skills() {
        let paths =
            ["SKILL.md", "assets/SKILL.md", "skills/b/SKILL.md", "skills/b/template/SKILL.md"];
        assert_eq!(found(&paths), ["", "skills/b"]);
    }

    #[test]
    fn path_in_skill_has_owner() {
        let skills = ["", "skills/b"].map(str::to_owned);
        for (path, skill) in [
            ("assets/x", Some("")),
            ("skills/b/x", Some("skills/b")),
            ("skills/c/x", None),
            ("skills/b", None),
        ] {
            assert_eq!(owner(path, &skills), skill, "{path}");
        }
        assert_eq!(owner("x", &skills[1..]), None);
    }

    #[test]
    fn common_top_folder_is_found() {
        assert_eq!(common_folder(["x/SKILL.md", "x/a/b"].into_iter()), "x");
        assert_eq!(common_folder(["x/SKILL.md", "y"].into_iter()), "");
        assert_eq!(common_folder(["SKILL.md"].into_iter()), "");
        assert_eq!(common_folder([].into_iter()), "");
    }
}
