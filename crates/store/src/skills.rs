//! Stores skills as plain files: `skills/{name}/SKILL.md`.
//!
//! Names are unique per owner. The first skill of a name has its name as the key; that of another
//! owner has the key `name~owner`, where `owner` is the number of an account or `shared`.
//!
//! Users may edit the files and track them in git; manual changes are visible immediately. Beside
//! each file is `SKILL.md.lock`, which writers lock.

mod bucket;
mod folder;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use savoir_skill::folder::{IGNORED_FOLDERS, is_skill_file};
use thiserror::Error;

use crate::{
    StoreError, Timestamp,
    storage::{Bucket, on_a_thread},
};
use bucket::BucketSkills;
use folder::FolderSkills;

/// Maximum size of a SKILL.md in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The skills of a storage. Clones share them.
#[derive(Clone, Debug)]
pub struct SkillFiles(SkillLocation);

#[derive(Clone, Debug)]
enum SkillLocation {
    Folder(Arc<FolderSkills>),
    Bucket(Arc<BucketSkills>),
}

/// Separates the name of a skill from its owner in a key. No name has it.
const OWNER_SEPARATOR: char = '~';
/// The owner in the key of a skill that belongs to all users.
const SHARED_OWNER: &str = "shared";

/// The key of a skill whose name is the key of another owner's skill.
pub fn owner_key(name: &str, owner: Option<&str>) -> String {
    format!("{name}{OWNER_SEPARATOR}{}", owner.unwrap_or(SHARED_OWNER))
}

/// The name of the skill that has a key.
pub fn name_of_key(key: &str) -> &str {
    key.split_once(OWNER_SEPARATOR).map_or(key, |(name, _)| name)
}

/// The account in a key.
pub fn owner_of_key(key: &str) -> Option<&str> {
    let (_, owner) = key.split_once(OWNER_SEPARATOR)?;
    Some(owner).filter(|owner| *owner != SHARED_OWNER)
}

/// The SKILL.md of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFile {
    /// The name of the skill's folder: its key.
    pub key: String,
    /// The text. Shared, because an unchanged file is not read again.
    pub text: Arc<str>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// An opaque version that changes with every write.
    pub version: String,
    /// Whether the file is valid text. Otherwise `text` has replacement characters, or not all of
    /// the file.
    pub is_valid: bool,
}

impl SkillFile {
    /// The name of the skill.
    pub fn name(&self) -> &str {
        name_of_key(&self.key)
    }
}

/// A SKILL.md that may be no valid text.
#[derive(Clone, Debug)]
struct ReadFile {
    /// The file, with replacement characters for what cannot be read.
    file: SkillFile,
    /// Why it is not valid text.
    problem: Option<&'static str>,
}

impl ReadFile {
    fn into_valid(self) -> Result<SkillFile, StoreError> {
        match self.problem {
            None => Ok(self.file),
            Some(problem) => Err(damaged(&self.file.key, problem)),
        }
    }
}

const TOO_LARGE: &str = "its file is larger than one mebibyte";
const NOT_UTF8: &str = "it is not UTF-8";

/// A file of a skill beside its `SKILL.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The path inside the skill, with `/`.
    pub path: String,
    pub bytes: Bytes,
    pub executable: bool,
}

impl Resource {
    /// Whether a path is valid for a file of a skill. It must not lead out of the skill, to its
    /// `SKILL.md`, or to a hidden file.
    pub fn can_be_at(path: &str) -> bool {
        is_resource_path(path)
    }
}

/// The path and the size of a file of a skill.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceEntry {
    /// The path inside the skill, with `/`.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
}

/// Why a skill was not written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// A skill of this name exists; case is ignored.
    #[error("the skill `{existing}` is there already")]
    Exists {
        existing: String,
        /// Whether the skill has a `SKILL.md`, or is an empty folder.
        has_file: bool,
    },
    /// There is no such skill.
    #[error("there is no such skill")]
    Missing,
    /// Another writer changed the skill after it was read.
    #[error("the skill was changed in the meantime")]
    Changed,
    /// The storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Checks a key again, although callers have checked it, so that no path can be built from it.
fn is_valid_key(key: &str) -> bool {
    let is_name = |name: &str| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    };
    match key.split_once(OWNER_SEPARATOR) {
        Some((name, owner)) => {
            let is_account = owner.bytes().all(|b| b.is_ascii_digit());
            is_name(name) && is_name(owner) && (is_account || owner == SHARED_OWNER)
        }
        None => is_name(key),
    }
}

/// Whether a path is valid for a file beside `SKILL.md`. It must not lead out of the skill, to a
/// file of Savoir, or to a hidden file.
fn is_resource_path(path: &str) -> bool {
    let good = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !IGNORED_FOLDERS.contains(&part)
            && part.len() <= 255
            && !part.chars().any(|c| c.is_control() || matches!(c, '\\' | ':'))
    };
    path.len() <= 1024
        && path.split('/').all(good)
        && !is_skill_file(path)
        && !path.eq_ignore_ascii_case("SKILL.md.lock")
}

fn invalid_path_error(path: &str) -> WriteError {
    let message = format!("`{}` cannot be a file of a skill", path.escape_debug());
    WriteError::Store(StoreError::Setting(message))
}

fn damaged(name: &str, message: &str) -> StoreError {
    StoreError::Damaged { what: format!("the skill `{name}`"), message: message.to_owned() }
}

fn invalid_name_error(name: &str) -> WriteError {
    WriteError::Store(StoreError::Setting(format!("`{name}` cannot be the name of a skill")))
}

impl SkillFiles {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self(SkillLocation::Folder(Arc::new(FolderSkills::new(folder.join("skills")))))
    }

    pub(crate) fn in_bucket(bucket: Arc<Bucket>) -> Self {
        Self(SkillLocation::Bucket(Arc::new(BucketSkills::new(bucket))))
    }

    /// Whether the skills are in a local folder.
    pub fn is_local(&self) -> bool {
        matches!(self.0, SkillLocation::Folder(_))
    }

    /// The canonical path of a skill's folder, if the skills are in a local folder. Blocks on the
    /// disk.
    pub fn place(&self, name: &str) -> Result<Option<PathBuf>, StoreError> {
        match &self.0 {
            SkillLocation::Bucket(_) => Ok(None),
            SkillLocation::Folder(skills) => skills.place(name),
        }
    }

    /// The keys of all folders that have a `SKILL.md`, sorted. Folders with invalid skill names
    /// are left out.
    pub async fn keys(&self) -> Result<Vec<String>, StoreError> {
        match &self.0 {
            SkillLocation::Bucket(skills) => skills.names().await,
            SkillLocation::Folder(skills) => {
                let skills = Arc::clone(skills);
                on_a_thread(move || skills.names()).await
            }
        }
    }

    /// All SKILL.md files that are valid text, sorted by name. Unreadable ones are left out.
    pub async fn list(&self) -> Result<Vec<SkillFile>, StoreError> {
        match &self.0 {
            SkillLocation::Bucket(skills) => skills.list().await,
            SkillLocation::Folder(skills) => {
                let skills = Arc::clone(skills);
                on_a_thread(move || skills.list()).await
            }
        }
    }

    /// Reads the SKILL.md of a skill by its key.
    pub async fn read(&self, name: &str) -> Result<Option<SkillFile>, StoreError> {
        match &self.0 {
            SkillLocation::Bucket(skills) => skills.read(name).await,
            SkillLocation::Folder(skills) => {
                // Checking whether a file changed is faster than switching to another thread.
                if let Some(file) = skills.unchanged(name) {
                    return Ok(Some(file));
                }
                let skills = Arc::clone(skills);
                let name = name.to_owned();
                on_a_thread(move || skills.read(&name)).await
            }
        }
    }

    /// Like `read`, but also returns a file that is not valid text, with replacement characters for
    /// what cannot be read. For finding its owner, replacing it and deleting it.
    pub async fn read_lossy(&self, name: &str) -> Result<Option<SkillFile>, StoreError> {
        let read = match &self.0 {
            SkillLocation::Bucket(skills) => skills.read_any(name).await?,
            SkillLocation::Folder(skills) => {
                if let Some(file) = skills.unchanged(name) {
                    return Ok(Some(file));
                }
                let skills = Arc::clone(skills);
                let name = name.to_owned();
                on_a_thread(move || skills.read_any(&name)).await?
            }
        };
        Ok(read.map(|read| read.file))
    }

    /// Removes what processes left that were killed while they wrote.
    pub(crate) async fn remove_unfinished(&self) -> Result<(), StoreError> {
        match &self.0 {
            SkillLocation::Bucket(_) => Ok(()),
            SkillLocation::Folder(skills) => {
                let skills = Arc::clone(skills);
                on_a_thread(move || skills.remove_unfinished()).await
            }
        }
    }

    /// Fails with [`WriteError::Exists`] if a skill of this name exists; case is ignored.
    pub async fn check_free(&self, name: &str) -> Result<(), WriteError> {
        match &self.0 {
            SkillLocation::Bucket(skills) => skills.check_free(name).await,
            SkillLocation::Folder(skills) => {
                let skills = Arc::clone(skills);
                let name = name.to_owned();
                on_a_thread(move || skills.check_free(&name, &skills.entries()?)).await
            }
        }
    }

    /// Creates a skill. Of two concurrent callers, even in different processes, one succeeds.
    pub async fn create(&self, name: &str, text: &str) -> Result<SkillFile, WriteError> {
        match &self.0 {
            SkillLocation::Bucket(skills) => skills.create(name, text).await,
            SkillLocation::Folder(skills) => {
                let skills = Arc::clone(skills);
                let name = name.to_owned();
                let text = text.to_owned();
                on_a_thread(move || skills.create(&name, &text)).await
            }
        }
    }

    /// Replaces the text of a skill if it still has the version that was read.
    pub async fn replace(
        &self,
        name: &str,
        text: &str,
        version: &str,
    ) -> Result<SkillFile, WriteError> {
        match &self.0 {
            SkillLocation::Bucket(skills) => skills.replace(name, text, version).await,
            SkillLocation::Folder(skills) => {
                let skills = Arc::clone(skills);
                let name = name.to_owned();
                let text = text.to_owned();
                let version = version.to_owned();
                on_a_thread(move || skills.replace(&name, &text, &version)).await
            }
        }
    }

    /// Deletes the folder of a skill. If a version is passed, only if the skill still has it.
    pub async fn delete(&self, name: &str, version: Option<&str>) -> Result<(), WriteError> {
        match &self.0 {
            SkillLocation::Bucket(skills) => skills.delete(name, version).await,
            SkillLocation::Folder(skills) => {
                let skills = Arc::clone(skills);
                let (name, version) = (name.to_owned(), version.map(str::to_owned));
                on_a_thread(move || skills.delete(&name, version.as_deref())).await
            }
        }
    }

    /// Creates a skill with its files, or replaces one that still has the version that was read.
    /// The change is atomic, even if the process is killed.
    pub async fn put(
        &self,
        name: &str,
        text: &str,
        resources: Vec<Resource>,
        version: Option<&str>,
    ) -> Result<SkillFile, WriteError> {
        if let Some(wrong) = resources.iter().find(|resource| !is_resource_path(&resource.path)) {
            return Err(invalid_path_error(&wrong.path));
        }
        match &self.0 {
            SkillLocation::Bucket(skills) => {
                skills.put_with_files(name, text, &resources, version).await
            }
            SkillLocation::Folder(skills) => {
                let skills = Arc::clone(skills);
                let (name, text) = (name.to_owned(), text.to_owned());
                let version = version.map(str::to_owned);
                on_a_thread(move || skills.put(&name, &text, &resources, version.as_deref())).await
            }
        }
    }

    /// The files of a skill beside its `SKILL.md`, sorted; empty if the skill does not exist.
    pub async fn resources(&self, name: &str) -> Result<Vec<ResourceEntry>, StoreError> {
        match &self.0 {
            SkillLocation::Bucket(skills) => skills.resources(name).await,
            SkillLocation::Folder(skills) => {
                let skills = Arc::clone(skills);
                let name = name.to_owned();
                on_a_thread(move || skills.resources(&name)).await
            }
        }
    }

    /// Reads one of these files; fails if it has more than `most` bytes.
    pub async fn resource(
        &self,
        name: &str,
        path: &str,
        most: u64,
    ) -> Result<Option<Resource>, StoreError> {
        match &self.0 {
            SkillLocation::Bucket(skills) => skills.resource(name, path, most).await,
            SkillLocation::Folder(skills) => {
                let skills = Arc::clone(skills);
                let (name, path) = (name.to_owned(), path.to_owned());
                on_a_thread(move || skills.resource(&name, &path, most)).await
            }
        }
    }
}
