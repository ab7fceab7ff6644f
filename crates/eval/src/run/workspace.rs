//! Prepares the folder of a trial.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use savoir_skill::Folder;
use tempfile::TempDir;

use super::skill::EvaluatedSkill;
use crate::{limits::MAX_CASE_FILE_BYTES, set::CaseFile};

/// A folder for one trial, deleted when it is dropped.
#[derive(Debug)]
pub(super) struct TrialFolder {
    dir: TempDir,
}

impl TrialFolder {
    pub(super) fn new() -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("savoir-eval-").tempdir()?;
        fs::create_dir(dir.path().join("workspace"))?;
        fs::create_dir(dir.path().join("scratch"))?;
        Ok(Self { dir })
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    pub(super) fn scratch(&self) -> PathBuf {
        self.dir.path().join("scratch")
    }

    /// Copies the files of a case.
    pub(super) fn add_files(&self, files: &[CaseFile], skill: &Folder) -> Result<(), String> {
        for file in files {
            let failed = |error: io::Error| format!("the file `{}` is missing: {error}", file.path);
            let bytes = skill.read_up_to(&file.source, MAX_CASE_FILE_BYTES).map_err(failed)?;
            let path = self.workspace().join(&file.path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(failed)?;
            }
            fs::write(path, bytes).map_err(failed)?;
        }
        Ok(())
    }

    /// Places skills where the agent finds them.
    pub(super) fn add_skills(&self, folder: &str, skills: &[EvaluatedSkill]) -> Result<(), String> {
        let root = self.workspace().join(folder);
        if !skills.is_empty() {
            fs::create_dir_all(&root).map_err(|error| error.to_string())?;
        }
        for skill in skills {
            let place = root.join(&skill.record.name);
            skill.place(&place).map_err(|error| format!("a skill cannot be placed: {error}"))?;
        }
        Ok(())
    }
}

/// Whether a path of a workspace belongs to the skills that were placed there.
pub(super) fn is_placed(path: &str, skills_folder: &str) -> bool {
    Path::new(path).starts_with(skills_folder)
}
