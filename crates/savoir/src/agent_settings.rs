//! The settings files of other agents: read, and changed without touching anything else in them.
//!
//! - `jsonc` and `lines` change JSON and keep the bytes of the rest.
//! - `switch` knows how each agent is told not to use a skill; `own` is the same for Savoir itself,
//!   and `off` answers both.

pub(crate) mod jsonc;
pub(crate) mod lines;
mod off;
mod own;
mod switch;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

pub(crate) use self::{
    off::Off,
    own::Disabled,
    switch::{Skill, Switch, Whose},
};
use crate::{error::CommandError, output, write};

/// Links that are followed one after the other.
const MAX_LINKS: usize = 40;
/// Bytes of settings that are read.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// What is wrong with settings.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) line: Option<usize>,
    pub(crate) message: String,
}

impl Wrong {
    /// The same, with the file and a hint.
    pub(crate) fn within(self, file: &Path) -> CommandError {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        CommandError::input(format!("{}{line}: {}", file.display(), self.message))
            .named("settings-unreadable")
            .hint("fix the file, and run this again; nothing was changed")
    }
}

impl From<jsonc::Wrong> for Wrong {
    fn from(wrong: jsonc::Wrong) -> Self {
        Self { line: Some(wrong.line), message: wrong.message.into_owned() }
    }
}

impl From<toml_edit::TomlError> for Wrong {
    fn from(error: toml_edit::TomlError) -> Self {
        let message = error.message().trim().to_owned();
        let line = error.to_string().lines().next().and_then(|first| {
            let (_, rest) = first.split_once("line ")?;
            rest.split(',').next()?.trim().parse().ok()
        });
        Self { line, message }
    }
}

/// Agents write their settings, too: what came while somebody thought about it must not be lost.
pub(crate) fn must_be(file: &Path, before: Option<&str>) -> Result<(), CommandError> {
    if read(file)?.as_deref() == before {
        return Ok(());
    }
    let message = format!("{} was changed by another program; nothing was written", file.display());
    Err(CommandError::refused(message).named("file-changed").hint("run it again"))
}

pub(crate) fn read(file: &Path) -> Result<Option<String>, CommandError> {
    let wrong = |why: &dyn std::fmt::Display| {
        CommandError::input(format!("{}: {why}", file.display())).named("settings-unreadable")
    };
    match fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            target(file)?;
            return Ok(None);
        }
        Err(error) => return Err(wrong(&error)),
        Ok(known) if !known.is_file() => return Err(wrong(&"it is not a file")),
        Ok(known) if known.len() > MAX_BYTES => return Err(wrong(&"it is too large")),
        Ok(_) => {}
    }
    fs::read_to_string(file).map(Some).map_err(|error| wrong(&error))
}

/// Where a file is written that is not there: a link that leads to nothing yet stays a link.
fn target(file: &Path) -> Result<PathBuf, CommandError> {
    let mut target = file.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&target) else { break };
        target = target.parent().unwrap_or(Path::new(".")).join(next);
    }
    if target == file || target.parent().is_some_and(Path::is_dir) {
        return Ok(target);
    }
    let message = format!(
        "{} is a link to {}, and there is no such folder",
        file.display(),
        output::harmless(&target.display().to_string())
    );
    Err(CommandError::input(message)
        .named("settings-unreadable")
        .hint("make the folder that the link leads to, or remove the link"))
}

/// Refuses a settings file of a project that is behind a link out of the project: the link comes
/// with the project, and must not choose which files of the user are written.
pub(crate) fn refuse_link_out(project: &Path, file: &Path) -> Result<(), CommandError> {
    let Ok(inside) = file.strip_prefix(project) else { return Ok(()) };
    let root = project.canonicalize();
    let stays = |path: &Path| match (path.canonicalize(), &root) {
        (Ok(real), Ok(root)) => real.starts_with(root),
        _ => false,
    };
    let mut path = project.to_owned();
    for part in inside {
        path.push(part);
        if path.is_symlink() && !stays(&path) {
            let message = format!(
                "{} is a link out of the project, or to nothing; nothing was written",
                path.display()
            );
            return Err(CommandError::refused(message)
                .named("link-out-of-project")
                .hint("replace the link by a file or folder of the project")
                .hint("or leave out --project to change your own settings"));
        }
    }
    Ok(())
}

pub(crate) fn put(file: &Path, text: &str) -> Result<(), CommandError> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|error| unwritten(folder, &error.kind()))?;
    let target = if file.exists() { file.to_owned() } else { target(file)? };
    write::replace(&target, text).map_err(|kind| unwritten(file, &kind))
}

pub(crate) fn unwritten(path: &Path, why: &dyn std::fmt::Display) -> CommandError {
    CommandError::input(format!("{} cannot be written: {why}", path.display()))
        .hint("check the permissions of the folder, and the space left")
}
