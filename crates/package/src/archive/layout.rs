use std::collections::BTreeMap;

use savoir_skill::folder::is_skill_file;

use super::ArchiveError;
use crate::Tree;

/// Splits an archive into its skills, sorted by folder. Returns the folder name of each, `None` for
/// the root; paths are relative to the skill's folder. A file belongs to the nearest skill above
/// it; other files are dropped.
pub fn skills(tree: Tree) -> Result<Vec<(Option<String>, Tree)>, ArchiveError> {
    let mut found: BTreeMap<String, Tree> =
        skill_folders(&tree).map(|folder| (folder.to_owned(), Tree::default())).collect();
    if found.is_empty() {
        return Err(ArchiveError::Layout("it has no SKILL.md".to_owned()));
    }
    for (path, file) in tree.into_files() {
        let nearest = folders_above(&path).find(|folder| found.contains_key(*folder));
        let Some(folder) = nearest else { continue };
        let inside = below(&path, folder).to_owned();
        if let Some(skill) = found.get_mut(folder) {
            skill.add(inside, file)?;
        }
    }
    Ok(found.into_iter().map(|(folder, skill)| (last_part(&folder), skill)).collect())
}

/// Returns the only skill of a package with its folder name. SKILL.md must be at the root or in the
/// only top-level folder. All files belong to the skill.
pub fn one_skill(tree: Tree) -> Result<(Option<String>, Tree), ArchiveError> {
    let layout = |why: String| Err(ArchiveError::Layout(why));
    let mut outermost = skill_folders(&tree).filter(|folder| !folder.contains('/'));
    let folder = match (outermost.next(), outermost.next()) {
        (None, _) => {
            return layout("it has no SKILL.md at its root or in a folder there".to_owned());
        }
        (Some(a), Some(b)) => {
            return layout(format!(
                "it has more than one skill, in {} and {}",
                display_folder(a),
                display_folder(b)
            ));
        }
        (Some(folder), None) => folder.to_owned(),
    };
    drop(outermost);
    let mut skill = Tree::default();
    for (path, file) in tree.into_files() {
        let inside = below(&path, &folder);
        if !folder.is_empty() && inside.len() == path.len() {
            return layout(format!("`{path}` lies outside the skill's folder `{folder}`"));
        }
        skill.add(inside.to_owned(), file)?;
    }
    Ok((last_part(&folder), skill))
}

/// Returns the folders with a SKILL.md; the root is the empty string.
fn skill_folders(tree: &Tree) -> impl Iterator<Item = &str> {
    tree.files().filter_map(|(path, _)| {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        is_skill_file(name).then_some(folder)
    })
}

/// Returns the ancestor folders of a path, from the nearest to the root.
fn folders_above(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').map(|(end, _)| &path[..end]).chain([""])
}

fn below<'a>(path: &'a str, folder: &str) -> &'a str {
    path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')).unwrap_or(path)
}

fn last_part(folder: &str) -> Option<String> {
    folder.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned)
}

fn display_folder(folder: &str) -> String {
    if folder.is_empty() { "its root".to_owned() } else { format!("`{folder}`") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::File;

    fn tree(paths: &[&str]) -> Tree {
        let mut tree = Tree::default();
        for path in paths {
            tree.add((*path).to_owned(), File::default()).unwrap();
        }
        tree
    }

    fn paths(tree: &Tree) -> Vec<&str> {
        tree.files().map(|(path, _)| path).collect()
    }

    #[test]
    fn package_must_have_one_skill() {
        let (name, skill) = one_skill(tree(&["SKILL.md", "a/b.md"])).unwrap();
        assert_eq!((name.as_deref(), paths(&skill)), (None, vec!["SKILL.md", "a/b.md"]));
        let deeper = ["x/SKILL.md", "x/a/b.md", "x/assets/SKILL.md"];
        let (name, skill) = one_skill(tree(&deeper)).unwrap();
        assert_eq!(name.as_deref(), Some("x"));
        assert_eq!(paths(&skill), ["SKILL.md", "a/b.md", "assets/SKILL.md"]);
        for paths in [
            &["a/x", "b/y"][..],
            &["a/b/SKILL.md"],
            &["a/SKILL.md", "b/SKILL.md"],
            &["SKILL.md", "b/SKILL.md"],
            &["README.md", "b/SKILL.md"],
            &["b/SKILL.md", "bc"],
            &[],
        ] {
            assert_eq!(one_skill(tree(paths)).unwrap_err().code(), "layout", "{paths:?}");
        }
    }

    #[test]
    fn archive_may_have_many_skills() {
        let all = [
            "repo-1/README.md",
            "repo-1/skills/b/SKILL.md",
            "repo-1/skills/b/nested/SKILL.md",
            "repo-1/skills/b/nested/x.md",
            "repo-1/skills/b/y.md",
            "repo-1/skills/a/skill.md",
        ];
        let found = skills(tree(&all)).unwrap();
        let found: Vec<_> =
            found.iter().map(|(name, skill)| (name.as_deref().unwrap(), paths(skill))).collect();
        assert_eq!(
            found,
            [
                ("a", vec!["skill.md"]),
                ("b", vec!["SKILL.md", "y.md"]),
                ("nested", vec!["SKILL.md", "x.md"]),
            ]
        );
        let root = skills(tree(&["SKILL.md", "x.md"])).unwrap();
        assert_eq!((root.len(), &root[0].0), (1, &None));
        assert_eq!(skills(tree(&["a.md"])).unwrap_err().code(), "layout");
    }
}
