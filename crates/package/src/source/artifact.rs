//! Reads skills from a single file: an archive or Markdown. The content decides the format, not the
//! file name.

use savoir_skill::folder::is_skill_file;

use super::{
    SourceError,
    layout::{below, common_folder, is_markdown, join, last_part, skill_folders},
    summary::Summary,
};
use crate::{
    File, Tree,
    archive::{self, ArchiveError},
};

/// The detected format.
enum Content {
    Archive(Tree),
    Markdown(Vec<u8>),
}

/// Lists the skills of the file at a path or an address, each with its folder in it. `name` is the
/// name of a skill that has none.
pub(super) fn list(
    bytes: Vec<u8>,
    place: &str,
    name: &str,
) -> Result<Vec<(String, Summary)>, SourceError> {
    match content(bytes, name)? {
        Content::Markdown(bytes) if !is_markdown(place) && !has_frontmatter(&bytes) => {
            Err(SourceError::NoSkillFile { place: place.to_owned() })
        }
        Content::Markdown(bytes) => Ok(vec![(String::new(), Summary::read(&bytes, name))]),
        Content::Archive(tree) => {
            let found = folders(&tree);
            if found.is_empty() {
                let error = ArchiveError::Layout("it has no SKILL.md".to_owned());
                return Err(SourceError::Archive { place: name.to_owned(), error });
            }
            Ok(found.into_iter().map(|folder| summary(&tree, folder, name)).collect())
        }
    }
}

/// Reads one skill of a file by its folder.
pub(super) fn tree(bytes: Vec<u8>, name: &str, folder: &str) -> Result<Tree, SourceError> {
    match content(bytes, name)? {
        Content::Markdown(bytes) => text_skill(bytes),
        Content::Archive(tree) => subtree(tree, folder),
    }
}

/// Reads a Markdown file as a skill.
pub(super) fn text_skill(bytes: Vec<u8>) -> Result<Tree, SourceError> {
    let mut tree = Tree::default();
    tree.add("SKILL.md".to_owned(), File { bytes, executable: false })?;
    Ok(tree)
}

fn content(bytes: Vec<u8>, name: &str) -> Result<Content, SourceError> {
    let is_text = || !bytes.contains(&0) && str::from_utf8(&bytes).is_ok();
    if archive::kind(&bytes).is_some() || !is_text() {
        let tree = archive::unpack(&bytes)
            .map_err(|error| SourceError::Archive { place: name.to_owned(), error })?;
        return Ok(Content::Archive(tree));
    }
    if is_page(&bytes) {
        return Err(SourceError::Page { place: name.to_owned() });
    }
    Ok(Content::Markdown(bytes))
}

fn has_frontmatter(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes.split(|byte| *byte == b'\n').next().is_some_and(|line| line.trim_ascii_end() == b"---")
}

/// Whether a text is an HTML page, such as a login, an error, or a view of the file.
pub(super) fn is_page(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let begins = |with: &str| {
        bytes.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()))
    };
    begins("<!doctype") || begins("<html")
}

fn folders(tree: &Tree) -> Vec<String> {
    let paths = || tree.files().map(|(path, _)| path);
    let root = common_folder(paths());
    let found = skill_folders(paths().filter_map(|path| below(path, root)));
    found.into_iter().map(|folder| join(root, &folder)).collect()
}

fn summary(tree: &Tree, folder: String, name: &str) -> (String, Summary) {
    let place = if folder.is_empty() { name } else { last_part(&folder) };
    let manifest = tree.files().find(|(path, _)| below(path, &folder).is_some_and(is_skill_file));
    let summary = match manifest {
        Some((_, file)) => Summary::read(&file.bytes, place),
        None => Summary::named(place),
    };
    (folder, summary)
}

fn subtree(tree: Tree, folder: &str) -> Result<Tree, SourceError> {
    let mut skill = Tree::default();
    for (path, file) in tree.into_files() {
        if let Some(inside) = below(&path, folder) {
            skill.add(inside.to_owned(), file)?;
        }
    }
    if skill.files().any(|(path, _)| is_skill_file(path)) {
        Ok(skill)
    } else {
        Err(SourceError::NoSkill { place: folder.to_owned() })
    }
}
