//! Writes a skill with all its files to a bucket.
//!
//! The files are written below a new random folder, whose name is an attribute of `SKILL.md`.
//! `SKILL.md` is written last: readers see either all old or all new files.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use object_store::{
    Attribute, Attributes, Error, GetOptions, ObjectStore as _, PutMode, PutOptions, UpdateVersion,
};

use super::{BucketSkills, key};
use crate::{
    StoreError, Timestamp,
    skills::{
        Resource, ResourceEntry, SkillFile, WriteError, invalid_name_error, is_resource_path,
        is_valid_key,
    },
    sql::new_id,
};

/// The attribute of `SKILL.md` with the name of the folder that has the other files.
pub(super) const FILES_ATTRIBUTE: Attribute =
    Attribute::Metadata(std::borrow::Cow::Borrowed("files"));
/// The attribute that marks an executable file.
const EXECUTABLE_ATTRIBUTE: Attribute =
    Attribute::Metadata(std::borrow::Cow::Borrowed("executable"));
/// How long a write that failed may clean up. The bucket may hang.
const CLEAN_UP_TIMEOUT: Duration = Duration::from_secs(2);
/// The folder that contains the folders with random names.
const FILES_FOLDER: &str = ".files";

impl BucketSkills {
    /// Creates a skill with its files, or replaces it if its version is still `version`.
    pub(in crate::skills) async fn put_with_files(
        &self,
        name: &str,
        text: &str,
        resources: &[Resource],
        version: Option<&str>,
    ) -> Result<SkillFile, WriteError> {
        if !is_valid_key(name) {
            return Err(invalid_name_error(name));
        }
        let (created_at, mode) = match version {
            None => {
                self.check_free(name).await?;
                (Timestamp::now(), PutMode::Create)
            }
            Some(version) => {
                let current = self.read_any(name).await?.ok_or(WriteError::Missing)?.file;
                if current.version != version {
                    return Err(WriteError::Changed);
                }
                let version = UpdateVersion { e_tag: Some(version.to_owned()), version: None };
                (current.created_at, PutMode::Update(version))
            }
        };
        let files_folder = new_id();
        let written = self.write_files(name, &files_folder, resources).await;
        let put = match written {
            Ok(()) => self.put(name, text, created_at, Some(&files_folder), mode).await,
            Err(error) => Err(error),
        };
        if !matches!(put, Ok(Ok(()))) {
            // Nothing refers to this folder, so it does no harm if deleting fails.
            let removing = self.remove_files(name, |folder| folder == files_folder);
            let _ = tokio::time::timeout(CLEAN_UP_TIMEOUT, removing).await;
        }
        match put? {
            Ok(()) => {
                if let Err(error) = self.remove_files(name, |folder| folder != files_folder).await {
                    tracing::warn!(skill = name, %error, "old files of a skill could not be deleted");
                }
                self.read(name).await?.ok_or(WriteError::Missing)
            }
            Err(Error::AlreadyExists { .. }) => {
                Err(WriteError::Exists { existing: name.to_owned(), has_file: true })
            }
            Err(Error::Precondition { .. }) if version.is_none() => {
                Err(WriteError::Exists { existing: name.to_owned(), has_file: true })
            }
            Err(Error::Precondition { .. }) => Err(WriteError::Changed),
            Err(Error::NotFound { .. }) => Err(WriteError::Missing),
            Err(error) => Err(self.failed(name, &error).into()),
        }
    }

    async fn write_files(
        &self,
        name: &str,
        files_folder: &str,
        resources: &[Resource],
    ) -> Result<(), StoreError> {
        let write = async |resource: &Resource| {
            let key = format!("skills/{name}/{FILES_FOLDER}/{files_folder}/{}", resource.path);
            let mut attributes = Attributes::new();
            if resource.executable {
                attributes.insert(EXECUTABLE_ATTRIBUTE, "1".into());
            }
            let options = PutOptions { attributes, ..PutOptions::default() };
            let path = self.bucket.path(&key)?;
            let put = self.bucket.store().put_opts(&path, resource.bytes.clone().into(), options);
            put.await.map(drop).map_err(|error| self.bucket.failed(&key, &error))
        };
        stream::iter(resources).map(write).buffer_unordered(8).try_collect().await
    }

    /// Deletes files in folders that `SKILL.md` no longer refers to.
    async fn remove_files(
        &self,
        name: &str,
        is_old: impl Fn(&str) -> bool,
    ) -> Result<(), StoreError> {
        let skill_prefix = format!("skills/{name}/");
        for key in self.bucket.list(&format!("skills/{name}")).await? {
            let Some(path) = key.strip_prefix(&skill_prefix).filter(|path| *path != "SKILL.md")
            else {
                continue;
            };
            let below = path.strip_prefix(FILES_FOLDER).and_then(|rest| rest.strip_prefix('/'));
            // Files directly beside `SKILL.md` have an empty folder name; they belong to an earlier
            // version of the skill.
            let folder = below.and_then(|rest| rest.split('/').next()).unwrap_or_default();
            if is_old(folder) {
                self.bucket.delete(&key).await?;
            }
        }
        Ok(())
    }

    /// Returns the name of the folder with the files of a skill; `None` if they are beside its
    /// `SKILL.md`.
    pub(super) async fn files_folder(&self, name: &str) -> Result<Option<String>, StoreError> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        match self.bucket.store().get_opts(&self.bucket.path(&key(name))?, options).await {
            Ok(found) => {
                Ok(found.attributes.get(&FILES_ATTRIBUTE).map(|folder| folder.to_string()))
            }
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(name, &error)),
        }
    }

    /// Returns the prefix of the keys of a skill's files.
    async fn files_prefix(&self, name: &str) -> Result<String, StoreError> {
        Ok(match self.files_folder(name).await? {
            Some(folder) => format!("skills/{name}/{FILES_FOLDER}/{folder}"),
            None => format!("skills/{name}"),
        })
    }

    pub(in crate::skills) async fn resources(
        &self,
        name: &str,
    ) -> Result<Vec<ResourceEntry>, StoreError> {
        if !is_valid_key(name) {
            return Ok(Vec::new());
        }
        let prefix = self.files_prefix(name).await?;
        let mut found = Vec::new();
        for object in self.bucket.objects(&prefix).await? {
            let key = self.bucket.key(&object.location).and_then(|key| key.strip_prefix(&prefix));
            let path =
                key.and_then(|key| key.strip_prefix('/')).filter(|path| is_resource_path(path));
            if let Some(path) = path {
                found.push(ResourceEntry { path: path.to_owned(), size: object.size });
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    pub(in crate::skills) async fn resource(
        &self,
        name: &str,
        path: &str,
        max_bytes: u64,
    ) -> Result<Option<Resource>, StoreError> {
        if !is_valid_key(name) || !is_resource_path(path) {
            return Ok(None);
        }
        let key = format!("{}/{path}", self.files_prefix(name).await?);
        let location = self.bucket.path(&key)?;
        let found = match self.bucket.store().get_opts(&location, GetOptions::default()).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(self.bucket.failed(&key, &error)),
        };
        if found.meta.size > max_bytes {
            let message =
                format!("the file has {} bytes, the limit is {max_bytes}", found.meta.size);
            return Err(StoreError::File { path: key, message });
        }
        let executable = found.attributes.get(&EXECUTABLE_ATTRIBUTE).is_some();
        let bytes = found.bytes().await.map_err(|error| self.bucket.failed(&key, &error))?;
        Ok(Some(Resource { path: path.to_owned(), bytes, executable }))
    }
}
