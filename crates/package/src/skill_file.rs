//! Reads skill files from disk, within limits and without following symlinks out of the folder.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use savoir_skill::{Diagnostic, Folder, Source, SourceError, Span, folder::is_skill_file, limits};
use thiserror::Error;

use crate::agents;

/// Why a path has no skill file.
#[derive(Debug, Error)]
pub enum FindError {
    /// The path cannot be opened.
    #[error("{}: {problem}", path.display())]
    Unreadable { path: PathBuf, problem: String },
    /// The folder cannot be listed.
    #[error("{} cannot be listed: {error}", path.display())]
    Unlisted { path: PathBuf, error: io::Error },
    /// The folder has no SKILL.md.
    #[error("{}: the folder has no SKILL.md", path.display())]
    NoSkill { path: PathBuf },
}

impl FindError {
    /// What the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "name a skill's folder, or a file",
            Self::Unlisted { .. } => "check the permissions of the folder",
            Self::NoSkill { .. } => {
                "name a skill's folder, or a file; `savoir new NAME` creates one"
            }
        }
    }
}

/// Finds the file of a skill: the SKILL.md of a folder, or the file itself.
pub fn find(path: &Path) -> Result<PathBuf, FindError> {
    let metadata = fs::metadata(path).map_err(|error| {
        let problem = match error.kind() {
            io::ErrorKind::NotFound if path.is_symlink() => "the symlink is broken".to_owned(),
            io::ErrorKind::NotFound => "the file or folder does not exist".to_owned(),
            _ => error.to_string(),
        };
        FindError::Unreadable { path: path.to_owned(), problem }
    })?;
    if !metadata.is_dir() {
        return Ok(path.to_owned());
    }
    let entries =
        fs::read_dir(path).map_err(|error| FindError::Unlisted { path: path.to_owned(), error })?;
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| is_skill_file(name));
    names.sort();
    let first = names.first().map(|name| path.join(name));
    first.ok_or_else(|| FindError::NoSkill { path: path.to_owned() })
}

/// The folder of a skill file; `None` for a file with another name.
pub fn folder_of(file: &Path) -> Option<Folder> {
    let name = file.file_name()?.to_string_lossy();
    let parent = file.parent().filter(|_| is_skill_file(&name))?;
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    Some(Folder::open(parent).ok()?.with_hint(agents::hint_at(parent)))
}

/// The origin of a file that the user gave. A symlink must not lead out of its folder.
pub fn origin_of(file: &Path) -> Origin<'_> {
    if file.is_symlink() {
        Origin::Link(file.parent().unwrap_or(Path::new(".")))
    } else {
        Origin::Named
    }
}

/// How a path was found, which decides what to check before it is opened.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// The walk saw a regular file.
    Walked,
    /// The user gave it, so it may be anything.
    Named,
    /// A symlink, whose target must be below this folder: a downloaded repository must not make
    /// Savoir print files outside of it.
    Link(&'a Path),
}

/// The text of a file, or a finding that says why there is none.
pub fn source(path: &Path, origin: Origin<'_>) -> Result<Source, Box<Diagnostic>> {
    let found = |message: String| Diagnostic::error("unreadable-file", Span::default(), message);
    let unreadable = |error: io::Error| {
        let found = found(error.to_string());
        Box::new(match error.kind() {
            io::ErrorKind::PermissionDenied => found.help("check the permissions of the file"),
            _ => found,
        })
    };
    if let Origin::Link(root) = origin {
        let inside = path.canonicalize().map_err(|_| {
            let found = found("the symlink is broken".to_owned());
            Box::new(found.help("remove it, or restore its target"))
        })?;
        let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
        if root.canonicalize().is_ok_and(|root| !inside.starts_with(root)) {
            let found = found("the symlink leads out of the folder that is checked".to_owned());
            return Err(Box::new(found.help("replace the symlink with the file")));
        }
    }
    if !matches!(origin, Origin::Walked) {
        // Opening a pipe would block until something is written to it.
        let metadata = fs::metadata(path).map_err(unreadable)?;
        if !metadata.is_file() {
            let what =
                if metadata.is_dir() { "it is a folder, not a file" } else { "it is not a file" };
            return Err(Box::new(found(what.to_owned()).help("SKILL.md must be a text file")));
        }
    }
    let file = fs::File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.len() > limits::MAX_FILE_BYTES as u64 {
        return Err(source_diagnostic(&SourceError::TooLarge { size: metadata.len() }));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize + 1);
    file.take(limits::MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    Source::from_bytes(bytes).map_err(|error| source_diagnostic_at(path, &error))
}

/// The error for a text, with line and column of the first byte that is not UTF-8.
fn source_diagnostic_at(path: &Path, error: &SourceError) -> Box<Diagnostic> {
    let mut found = source_diagnostic(error);
    if let (SourceError::NotUtf8 { offset, .. }, Ok(bytes)) = (error, fs::read(path)) {
        let before = &bytes[..(*offset).min(bytes.len())];
        let before = String::from_utf8_lossy(before);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        found.message = format!("line {line}, column {column}: {}", found.message);
    }
    found
}

fn source_diagnostic(error: &SourceError) -> Box<Diagnostic> {
    let found = Diagnostic::error(error.code(), Span::default(), error.to_string());
    Box::new(found.help(error.help()))
}
