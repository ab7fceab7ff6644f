//! Loads the skills that commands work on.

use std::path::{Path, PathBuf};

use savoir_engine::approval::shell_word;
use savoir_package::skill_file::{self, folder_of};
pub(crate) use savoir_package::skill_file::{Origin, origin_of, source};
use savoir_skill::{
    Diagnostic, Dialect, Folder, Reading,
    check::{Options, check},
    read, read_as,
};

use crate::{error::CommandError, skill_archive};

/// A skill that a command works on.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) path: PathBuf,
    pub(crate) folder: Option<Folder>,
    pub(crate) reading: Reading,
}

/// Loads the skill at a path: a folder with SKILL.md, or a file.
pub(crate) fn load(path: &Path, dialect: Option<Dialect>) -> Result<Loaded, CommandError> {
    let file = skill_file(path)?;
    let folder = folder_of(&file);
    let source = source(&file, origin_of(&file)).map_err(|problem| {
        let failed = CommandError::input(format!("{}: {}", file.display(), problem.message));
        problem.help.iter().fold(failed, CommandError::hint)
    })?;
    let reading = match dialect {
        Some(dialect) => read_as(source, dialect, folder.as_ref()),
        None => read(source, folder.as_ref()),
    };
    Ok(Loaded { path: file, folder, reading })
}

/// The error for an archive, which only some commands read.
pub(crate) fn archive_error(path: &Path) -> CommandError {
    let word = shell_word(&path.display().to_string());
    CommandError::input(format!("{} is an archive", path.display()))
        .hint(format!("install it: savoir install {word}; or unpack it, and name the folder"))
}

pub(crate) fn skill_file(path: &Path) -> Result<PathBuf, CommandError> {
    if path.is_file() && skill_archive::is_archive(path) {
        return Err(archive_error(path));
    }
    skill_file::find(path).map_err(|error| CommandError::input(&error).hint(error.hint()))
}

/// Rejects a skill that even a lenient reader of its dialect cannot use.
pub(crate) fn require_usable(loaded: &Loaded) -> Result<(), CommandError> {
    if loaded.reading.is_usable() {
        return Ok(());
    }
    Err(refusal(loaded, loaded.reading.error()))
}

/// Rejects a skill with any finding.
pub(crate) fn require_clean(loaded: &Loaded) -> Result<(), CommandError> {
    refuse_first(loaded, |_| true)
}

/// Rejects a skill with an error, even one that a lenient reader would repair.
pub(crate) fn require_correct(loaded: &Loaded) -> Result<(), CommandError> {
    refuse_first(loaded, Diagnostic::is_error)
}

fn refuse_first(loaded: &Loaded, counts: fn(&Diagnostic) -> bool) -> Result<(), CommandError> {
    let options = Options { dialect: Some(loaded.reading.detection.dialect), ..Options::default() };
    let source = loaded.reading.document.source().clone();
    let found = check(source, loaded.folder.as_ref(), &options).diagnostics;
    match loaded.reading.diagnostics.iter().chain(&found).find(|found| counts(found)) {
        None => Ok(()),
        found => Err(refusal(loaded, found)),
    }
}

fn refusal(loaded: &Loaded, found: Option<&Diagnostic>) -> CommandError {
    let path = loaded.path.display();
    let place = found.map_or_else(String::new, |found| {
        let at = loaded.reading.document.source().position(found.span.start);
        format!(":{}:{}: {}", at.line, at.column, found.message)
    });
    CommandError::findings(format!("{path}{place}"))
        .hint(format!("see all findings with: savoir check {path}"))
}
