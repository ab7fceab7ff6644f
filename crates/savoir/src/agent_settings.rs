//! Reads and edits the settings files of other agents. All other content of the files is preserved.
//!
//! - `jsonc` and `lines` edit JSON and line ends, and keep the rest byte for byte.
//! - `switch` disables a skill in each agent, `savoir_disable_list` does the same for Savoir
//!   itself, and
//!   `disabled_skills` queries both.

mod disabled_skills;
pub(crate) mod jsonc;
pub(crate) mod lines;
mod savoir_disable_list;
mod switch;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

pub(crate) use self::{
    disabled_skills::DisabledSkills,
    savoir_disable_list::SavoirDisableList,
    switch::{DisableSetting, SettingsScope, Skill},
};
use crate::{error::CommandError, output, write};

/// Maximum length of a chain of symlinks.
const MAX_LINKS: usize = 40;
/// Maximum size of a settings file in bytes.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// An error in a settings file.
#[derive(Debug)]
pub(crate) struct SettingsFileError {
    pub(crate) line: Option<usize>,
    pub(crate) message: String,
}

impl SettingsFileError {
    /// Adds the path of the file and a hint.
    pub(crate) fn in_file(self, file: &Path) -> CommandError {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        CommandError::input(format!("{}{line}: {}", file.display(), self.message))
            .with_code("settings-unreadable")
            .hint("fix the file and run the command again; nothing was changed")
    }
}

impl From<jsonc::JsoncError> for SettingsFileError {
    fn from(wrong: jsonc::JsoncError) -> Self {
        Self { line: Some(wrong.line), message: wrong.message.into_owned() }
    }
}

impl From<toml_edit::TomlError> for SettingsFileError {
    fn from(error: toml_edit::TomlError) -> Self {
        let message = error.message().trim().to_owned();
        let line = error.to_string().lines().next().and_then(|first| {
            let (_, rest) = first.split_once("line ")?;
            rest.split(',').next()?.trim().parse().ok()
        });
        Self { line, message }
    }
}

/// Fails if the file changed while the user was asked: agents write their settings, too, and their
/// changes must not be lost.
pub(crate) fn must_be(file: &Path, before: Option<&str>) -> Result<(), CommandError> {
    if read(file)?.as_deref() == before {
        return Ok(());
    }
    let message = format!("{} was changed by another program; nothing was written", file.display());
    Err(CommandError::refused(message).with_code("file-changed").hint("run the command again"))
}

pub(crate) fn read(file: &Path) -> Result<Option<String>, CommandError> {
    let wrong = |why: &dyn std::fmt::Display| {
        CommandError::input(format!("{}: {why}", file.display())).with_code("settings-unreadable")
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

/// The path at which to create a missing file. A dangling symlink is followed, so that it stays a
/// symlink.
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
        "{} is a symlink to {}, in a folder that does not exist",
        file.display(),
        output::sanitize(&target.display().to_string())
    );
    Err(CommandError::input(message)
        .with_code("settings-unreadable")
        .hint("create the folder that the symlink points to, or remove the symlink"))
}

/// Rejects a settings file of a project behind a symlink that leads out of the project: the symlink
/// comes with the project and must not choose which files of the user are written.
pub(crate) fn check_link_stays_inside(project: &Path, file: &Path) -> Result<(), CommandError> {
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
                "{} is a symlink that is broken or leads out of the project; nothing was written",
                path.display()
            );
            return Err(CommandError::refused(message)
                .with_code("link-out-of-project")
                .hint("replace the symlink with a file or folder of the project")
                .hint("or leave out --project to change the settings of the user"));
        }
    }
    Ok(())
}

pub(crate) fn put(file: &Path, text: &str) -> Result<(), CommandError> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|error| write_error(folder, &error.kind()))?;
    let target = if file.exists() { file.to_owned() } else { target(file)? };
    write::replace(&target, text).map_err(|kind| write_error(file, &kind))
}

pub(crate) fn write_error(path: &Path, why: &dyn std::fmt::Display) -> CommandError {
    CommandError::input(format!("{} cannot be written: {why}", path.display()))
        .hint("check the permissions of the folder, and the space left")
}
