//! What a tree has.

use std::{
    fs,
    path::{Path, PathBuf},
};

use savoir_package::registry::{
    Name,
    wire::{GoneLine, IndexLine},
};
use savoir_skill::folder::is_skill_file;

use super::{Refusal, is_mirror};

/// Folders in folders that are looked into.
const DEEPEST: usize = 12;

/// What there is.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) jobs: Vec<Job>,
    /// Markdown files that are no skill's SKILL.md, and lie in no skill.
    pub(super) texts: Vec<PathBuf>,
    pub(super) refused: Vec<Refusal>,
}

/// Something to be read.
#[derive(Debug)]
pub(super) enum Job {
    /// A skill's folder.
    Folder(PathBuf),
    /// An archive of a skill.
    Archive(PathBuf),
    /// A text that is a skill by itself.
    Text(PathBuf),
    /// The versions of one package of a mirror.
    Package(Mirrored),
}

/// A package of a mirror.
#[derive(Debug)]
pub(super) struct Mirrored {
    /// The root of the mirror.
    pub(super) root: PathBuf,
    /// Its index.
    pub(super) index: PathBuf,
    /// Each with its line.
    pub(super) versions: Vec<(usize, IndexLine)>,
    /// What was taken down: nobody can have it any more, and nothing else gets its number.
    pub(super) gone: Vec<GoneLine>,
}

pub(super) fn found(folder: &Path) -> Found {
    let mut found = Found::default();
    if is_mirror(folder) {
        let index = folder.join("index/v1");
        indexes(folder, &index, &index, 0, &mut found);
    } else {
        skills(folder, 0, &mut found);
    }
    found
}

/// The entries of a folder, by name.
fn entries(folder: &Path, found: &mut Found) -> Vec<fs::DirEntry> {
    let listed = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match listed {
        Ok(mut entries) => {
            entries.sort_by_key(fs::DirEntry::file_name);
            entries
        }
        Err(error) => {
            found.refused.push(Refusal::new(folder, "io", error));
            Vec::new()
        }
    }
}

fn skills(folder: &Path, depth: usize, found: &mut Found) {
    let entries = entries(folder, found);
    let name = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    if entries.iter().any(|entry| is_skill_file(&name(entry))) {
        found.jobs.push(Job::Folder(folder.to_owned()));
        return;
    }
    for entry in entries {
        let (path, name) = (entry.path(), name(&entry));
        // Links could lead anywhere; what is hidden belongs to other programs.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !name.starts_with('.') => {
                if depth < DEEPEST {
                    skills(&path, depth + 1, found);
                } else {
                    found.refused.push(Refusal::new(&path, "too_deep", "it lies too deep"));
                }
            }
            Ok(kind) if kind.is_file() && is_archive(&path) => found.jobs.push(Job::Archive(path)),
            Ok(kind) if kind.is_file() && is_text(&path) => found.texts.push(path),
            _ => {}
        }
    }
}

fn is_archive(path: &Path) -> bool {
    ends_with(path, &["zip", "skill"])
}

/// A README tells of the others, and is none of them.
fn is_text(path: &Path) -> bool {
    let is_readme = path.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case("readme"));
    ends_with(path, &["md"]) && !is_readme
}

fn ends_with(path: &Path, known: &[&str]) -> bool {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    known.iter().any(|known| end.eq_ignore_ascii_case(known))
}

fn indexes(root: &Path, index: &Path, folder: &Path, depth: usize, found: &mut Found) {
    for entry in entries(folder, found) {
        let path = entry.path();
        match entry.file_type() {
            // The letters, the namespace, and the files.
            Ok(kind) if kind.is_dir() && depth < 2 => {
                indexes(root, index, &path, depth + 1, found);
            }
            Ok(kind) if kind.is_file() && depth > 0 => package(root, index, path, found),
            _ => {}
        }
    }
}

fn package(root: &Path, index: &Path, path: PathBuf, found: &mut Found) {
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return found.refused.push(Refusal::new(&path, "io", error)),
    };
    let (mut versions, mut gone) = (Vec::new(), Vec::new());
    for (at, text) in text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
        let mut refuse = |reason: String| {
            let refusal = Refusal::new(&path, "invalid_index", reason);
            found.refused.push(Refusal { line: Some(at + 1), ..refusal });
        };
        if let Some(line) = GoneLine::read(text) {
            match misplaced(&line.name, index, &path) {
                Some(why) => refuse(why),
                None => gone.push(line),
            }
            continue;
        }
        match serde_json::from_str::<IndexLine>(text) {
            Err(error) => refuse(format!("it is no version of a skill: {error}")),
            Ok(line) => match wrong(&line, index, &path) {
                Some(why) => refuse(why),
                None => versions.push((at + 1, line)),
            },
        }
    }
    found.jobs.push(Job::Package(Mirrored { root: root.to_owned(), index: path, versions, gone }));
}

/// What keeps a line from being followed.
fn wrong(line: &IndexLine, index: &Path, path: &Path) -> Option<String> {
    let small_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    if let Some(why) = misplaced(&line.name, index, path) {
        return Some(why);
    }
    if line.sha256.len() != 64 || !line.sha256.bytes().all(small_hex) {
        return Some("its sha256 is not 64 hexadecimal digits".to_owned());
    }
    if line.filename.starts_with('.') || !line.filename.bytes().all(plain) {
        return Some("its archive is called what no file can be called".to_owned());
    }
    None
}

fn misplaced(name: &Name, index: &Path, path: &Path) -> Option<String> {
    let elsewhere = || format!("it is about `{name}`, whose index lies elsewhere");
    (index.join(name.index_path()) != path).then(elsewhere)
}
