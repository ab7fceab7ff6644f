//! Finds skills in a folder or a mirror.

use std::{
    fs,
    path::{Path, PathBuf},
};

use savoir_package::registry::{
    Name,
    wire::{IndexLine, TakenDownLine},
};
use savoir_skill::folder::is_skill_file;

use super::{ImportRefusal, is_mirror};

/// Maximum depth of nested folders.
const MAX_DEPTH: usize = 12;

#[derive(Debug, Default)]
pub(super) struct FoundSkills {
    pub(super) jobs: Vec<ImportJob>,
    /// Markdown files that are not part of a skill.
    pub(super) texts: Vec<PathBuf>,
    pub(super) refused: Vec<ImportRefusal>,
}

#[derive(Debug)]
pub(super) enum ImportJob {
    /// A skill's folder.
    Folder(PathBuf),
    /// An archive of a skill.
    Archive(PathBuf),
    /// A text without frontmatter.
    Text(PathBuf),
    /// The versions of one package of a mirror.
    Package(MirroredPackage),
}

/// A package of a mirror.
#[derive(Debug)]
pub(super) struct MirroredPackage {
    /// The root of the mirror.
    pub(super) root: PathBuf,
    /// Path of its index file.
    pub(super) index: PathBuf,
    /// Each with its line number.
    pub(super) versions: Vec<(usize, IndexLine)>,
    /// Versions that were taken down; their numbers cannot be used again.
    pub(super) gone: Vec<TakenDownLine>,
}

pub(super) fn find_skills(folder: &Path) -> FoundSkills {
    let mut found = FoundSkills::default();
    if is_mirror(folder) {
        let index = folder.join("index/v1");
        indexes(folder, &index, &index, 0, &mut found);
    } else {
        skills(folder, 0, &mut found);
    }
    found
}

/// The entries of a folder, sorted by name.
fn entries(folder: &Path, found: &mut FoundSkills) -> Vec<fs::DirEntry> {
    let listed = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match listed {
        Ok(mut entries) => {
            entries.sort_by_key(fs::DirEntry::file_name);
            entries
        }
        Err(error) => {
            found.refused.push(ImportRefusal::new(folder, "io", error));
            Vec::new()
        }
    }
}

fn skills(folder: &Path, depth: usize, found: &mut FoundSkills) {
    let entries = entries(folder, found);
    let name = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    if entries.iter().any(|entry| is_skill_file(&name(entry))) {
        found.jobs.push(ImportJob::Folder(folder.to_owned()));
        return;
    }
    for entry in entries {
        let (path, name) = (entry.path(), name(&entry));
        // Skip symlinks, which could lead anywhere, and hidden folders, which belong to other programs.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !name.starts_with('.') => {
                if depth < MAX_DEPTH {
                    skills(&path, depth + 1, found);
                } else {
                    found
                        .refused
                        .push(ImportRefusal::new(&path, "too_deep", "it is nested too deeply"));
                }
            }
            Ok(kind) if kind.is_file() && is_archive(&path) => {
                found.jobs.push(ImportJob::Archive(path));
            }
            Ok(kind) if kind.is_file() && is_text(&path) => found.texts.push(path),
            _ => {}
        }
    }
}

fn is_archive(path: &Path) -> bool {
    ends_with(path, &["zip", "skill"])
}

/// A README describes the skills, and is not one of them.
fn is_text(path: &Path) -> bool {
    let is_readme = path.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case("readme"));
    ends_with(path, &["md"]) && !is_readme
}

fn ends_with(path: &Path, known: &[&str]) -> bool {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    known.iter().any(|known| end.eq_ignore_ascii_case(known))
}

fn indexes(root: &Path, index: &Path, folder: &Path, depth: usize, found: &mut FoundSkills) {
    for entry in entries(folder, found) {
        let path = entry.path();
        match entry.file_type() {
            // Folders of letters and namespaces contain the index files.
            Ok(kind) if kind.is_dir() && depth < 2 => {
                indexes(root, index, &path, depth + 1, found);
            }
            Ok(kind) if kind.is_file() && depth > 0 => package(root, index, path, found),
            _ => {}
        }
    }
}

fn package(root: &Path, index: &Path, path: PathBuf, found: &mut FoundSkills) {
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return found.refused.push(ImportRefusal::new(&path, "io", error)),
    };
    let (mut versions, mut gone) = (Vec::new(), Vec::new());
    for (at, text) in text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
        let mut refuse = |reason: String| {
            let refusal = ImportRefusal::new(&path, "invalid_index", reason);
            found.refused.push(ImportRefusal { line: Some(at + 1), ..refusal });
        };
        if let Some(line) = TakenDownLine::read(text) {
            match misplaced(&line.name, index, &path) {
                Some(why) => refuse(why),
                None => gone.push(line),
            }
            continue;
        }
        match serde_json::from_str::<IndexLine>(text) {
            Err(error) => refuse(format!("it is not a version of a skill: {error}")),
            Ok(line) => match wrong(&line, index, &path) {
                Some(why) => refuse(why),
                None => versions.push((at + 1, line)),
            },
        }
    }
    found.jobs.push(ImportJob::Package(MirroredPackage {
        root: root.to_owned(),
        index: path,
        versions,
        gone,
    }));
}

/// Why a line cannot be used.
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
        return Some("the file name of its archive is invalid".to_owned());
    }
    None
}

fn misplaced(name: &Name, index: &Path, path: &Path) -> Option<String> {
    let elsewhere = || format!("it is about `{name}`, which has another index file");
    (index.join(name.index_path()) != path).then(elsewhere)
}
