//! Merges three versions of a skill: the installed one, the edited one, and the new one.

use std::collections::BTreeSet;

use crate::{File, Tree, TreeError, merge::merge, tree::SIGNATURE_FILES};

/// The result of a merge.
#[derive(Clone, Debug, Default)]
pub(super) struct MergedSkill {
    pub(super) tree: Tree,
    /// Files that both sides changed at different places.
    pub(super) merged: Vec<String>,
    /// Files that both sides changed at the same place, with the number of conflicts.
    pub(super) conflicts: Vec<(String, usize)>,
    /// Files that both sides changed and that cannot be merged: the user's version stays.
    pub(super) kept: Vec<String>,
}

/// Merges file by file. `title` names the new version in conflict markers.
pub(super) fn merge_skill(
    base: &Tree,
    mine: &Tree,
    new: &Tree,
    title: &str,
) -> Result<MergedSkill, TreeError> {
    let mut combined = MergedSkill::default();
    let trees = [base, mine, new];
    let paths: BTreeSet<&str> =
        trees.iter().flat_map(|tree| tree.files().map(|(path, _)| path)).collect();
    for path in paths {
        if SIGNATURE_FILES.contains(&path) {
            combined.put_file(path, new.get(path).cloned())?;
            continue;
        }
        combined.merge_file(path, trees.map(|tree| tree.get(path)), title)?;
    }
    Ok(combined)
}

impl MergedSkill {
    fn put_file(&mut self, path: &str, file: Option<File>) -> Result<(), TreeError> {
        file.map_or(Ok(()), |file| self.tree.add(path.to_owned(), file))
    }

    fn merge_file(
        &mut self,
        path: &str,
        [base, mine, new]: [Option<&File>; 3],
        title: &str,
    ) -> Result<(), TreeError> {
        if same_bytes(mine, base) || same_bytes(mine, new) {
            return self.put_file(path, new.cloned());
        }
        if same_bytes(new, base) {
            return self.put_file(path, mine.cloned());
        }
        let (Some(before), Some(ours), Some(theirs)) =
            (base.map_or(Some(""), text), mine.and_then(text), new.and_then(text))
        else {
            self.kept.push(path.to_owned());
            return self.put_file(path, mine.cloned());
        };
        let merged = merge(before, ours, theirs, title);
        if merged.conflicts > 0 {
            self.conflicts.push((path.to_owned(), merged.conflicts));
        } else {
            self.merged.push(path.to_owned());
        }
        let executable = new.is_some_and(|file| file.executable);
        self.put_file(path, Some(File { bytes: merged.text.into_bytes(), executable }))
    }
}

fn same_bytes(one: Option<&File>, other: Option<&File>) -> bool {
    one.map(|file| &file.bytes) == other.map(|file| &file.bytes)
}

fn text(file: &File) -> Option<&str> {
    str::from_utf8(&file.bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        for (path, text) in files {
            let file = File { bytes: (*text).into(), executable: false };
            tree.add((*path).to_owned(), file).unwrap();
        }
        tree
    }

    #[test]
    fn each_file_is_merged() {
        let base = tree(&[("a", "1\n2\n3\n"), ("b", "b"), ("c", "c"), ("d", "\0d"), ("e", "e")]);
        let mine =
            tree(&[("a", "0\n1\n2\n3\n"), ("b", "mine"), ("c", "c"), ("d", "\0m"), ("f", "f")]);
        let new =
            tree(&[("a", "1\n2\n3\n4\n"), ("b", "new"), ("d", "\0n"), ("e", "E"), ("g", "g")]);
        let combined = merge_skill(&base, &mine, &new, "2.0.0").unwrap();
        let expected = tree(&[
            ("a", "0\n1\n2\n3\n4\n"),
            ("b", "<<<<<<< yours\nmine\n=======\nnew\n>>>>>>> 2.0.0\n"),
            ("d", "\0m"),
            ("f", "f"),
            ("g", "g"),
        ]);
        assert_eq!(combined.tree, expected);
        assert_eq!(combined.merged, ["a"]);
        assert_eq!(combined.conflicts, [("b".to_owned(), 1)]);
        assert_eq!(combined.kept, ["d", "e"], "binary, and deleted by its owner");
    }
}
