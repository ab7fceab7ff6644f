//! Writes migrated skills atomically.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use super::{ExistingOutput, MigrationBlocker, SKILL_FILE};
use crate::Tree;

/// A result in a staging folder.
pub(super) struct StagedSkill {
    staging: TempDir,
    folder: PathBuf,
}

impl StagedSkill {
    /// Writes to a staging folder beside the target, so that it can be renamed.
    pub(super) fn write_beside(tree: &Tree, target: &Path) -> Result<Self, MigrationBlocker> {
        let output = target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(output).map_err(|error| io_blocker(output, &error))?;
        let staging = tempfile::Builder::new().prefix(".savoir-").tempdir_in(output);
        let name = target.file_name().unwrap_or_default();
        Self::write(tree, staging.map_err(|error| io_blocker(output, &error))?, Path::new(name))
    }

    /// Writes to a temporary folder, for a dry run.
    pub(super) fn write_to_temp(tree: &Tree, name: &str) -> Result<Self, MigrationBlocker> {
        let staging = tempfile::tempdir().map_err(|error| io_blocker(Path::new(name), &error))?;
        Self::write(tree, staging, Path::new(name))
    }

    /// The folder gets the name of the skill, because some rules check it.
    fn write(tree: &Tree, staging: TempDir, name: &Path) -> Result<Self, MigrationBlocker> {
        let folder = staging.path().join(name);
        tree.write(&folder)?;
        Ok(Self { staging, folder })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Moves the skill to the target. An existing target is moved into the staging folder, which is
    /// deleted afterwards.
    pub(super) fn move_to(self, target: &Path) -> Result<(), MigrationBlocker> {
        let fail = |error: io::Error| io_blocker(target, &error);
        if fs::symlink_metadata(target).is_err() {
            return fs::rename(&self.folder, target).map_err(fail);
        }
        let old = self.staging.path().join(".old");
        fs::rename(target, &old).map_err(fail)?;
        fs::rename(&self.folder, target).map_err(|error| {
            // Restore the old folder; report the first error.
            let _ = fs::rename(&old, target);
            fail(error)
        })
    }
}

/// Checks whether the result may be written to a path.
pub(super) fn check_target(
    target: &Path,
    source: Option<&Path>,
    existing: ExistingOutput,
) -> Result<(), MigrationBlocker> {
    if fs::symlink_metadata(target).is_err() {
        return Ok(());
    }
    let shown = target.display();
    let real = target.canonicalize().ok();
    if let (Some(real), Some(source)) = (&real, source)
        && source.starts_with(real)
    {
        let message = format!("{shown} is or contains the skill that is migrated");
        return Err(MigrationBlocker::new("output_is_source", message));
    }
    match existing {
        ExistingOutput::Keep => {
            Err(MigrationBlocker::new("exists", format!("{shown} exists already")))
        }
        ExistingOutput::Replace if target.join(SKILL_FILE).is_file() => Ok(()),
        ExistingOutput::Replace => {
            let message = format!("{shown} is not a skill, so it is not replaced");
            Err(MigrationBlocker::new("exists", message))
        }
    }
}

/// Whether a path, which need not exist, is a folder or inside it.
pub(super) fn is_inside(path: &Path, folder: &Path) -> bool {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let real = absolute.ancestors().find_map(|ancestor| {
        let rest = absolute.strip_prefix(ancestor).ok()?;
        Some(ancestor.canonicalize().ok()?.join(rest))
    });
    real.is_some_and(|real| real.starts_with(folder))
}

fn io_blocker(path: &Path, error: &io::Error) -> MigrationBlocker {
    // Only the kind of the error: its message would contain the path of a temporary file.
    MigrationBlocker::new("io", format!("{} cannot be written: {}", path.display(), error.kind()))
}
