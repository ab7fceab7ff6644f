//! Writes a skill with all its files to a bucket.
//!
//! The files are written below a new random folder, whose name is an attribute of `SKILL.md`.
//! `SKILL.md` is written last, so that all files change atomically.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use object_store::{
    Attribute, Attributes, Error, GetOptions, ObjectStore as _, PutMode, PutOptions, UpdateVersion,
};

use super::{BucketSkills, key};
use crate::{
    StoreError, Timestamp,
    skills::{Resource, ResourceEntry, SkillFile, WriteError, is_key, is_resource, no_name},
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
    /// Creates a skill with its files, or replaces one that still has the version.
    pub(in crate::skills) async fn put_whole(
        &self,
        name: &str,
        text: &str,
        resources: &[Resource],
        version: Option<&str>,
    ) -> Result<SkillFile, WriteError> {
        if !is_key(name) {
            return Err(no_name(name));
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
        let files = new_id();
        let written = self.write_files(name, &files, resources).await;
        let put = match written {
            Ok(()) => self.put(name, text, created_at, Some(&files), mode).await,
            Err(error) => Err(error),
        };
        if !matches!(put, Ok(Ok(()))) {
            // Nothing refers to this folder, so it does no harm if deleting fails.
            let removing = self.remove_files(name, |found| found == files);
            let _ = tokio::time::timeout(CLEAN_UP_TIMEOUT, removing).await;
        }
        match put? {
            Ok(()) => {
                if let Err(error) = self.remove_files(name, |found| found != files).await {
                    tracing::warn!(skill = name, %error, "old files of a skill are not gone");
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
        files: &str,
        resources: &[Resource],
    ) -> Result<(), StoreError> {
        let write = async |resource: &Resource| {
            let key = format!("skills/{name}/{FILES_FOLDER}/{files}/{}", resource.path);
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
        let own = format!("skills/{name}/");
        for key in self.bucket.list(&format!("skills/{name}")).await? {
            let Some(path) = key.strip_prefix(&own).filter(|path| *path != "SKILL.md") else {
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
    pub(super) async fn files(&self, name: &str) -> Result<Option<String>, StoreError> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        match self.bucket.store().get_opts(&self.bucket.path(&key(name))?, options).await {
            Ok(found) => Ok(found.attributes.get(&FILES_ATTRIBUTE).map(|files| files.to_string())),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(name, &error)),
        }
    }

    /// Returns the prefix of the keys of a skill's files.
    async fn beginning(&self, name: &str) -> Result<String, StoreError> {
        Ok(match self.files(name).await? {
            Some(files) => format!("skills/{name}/{FILES_FOLDER}/{files}"),
            None => format!("skills/{name}"),
        })
    }

    pub(in crate::skills) async fn resources(
        &self,
        name: &str,
    ) -> Result<Vec<ResourceEntry>, StoreError> {
        if !is_key(name) {
            return Ok(Vec::new());
        }
        let beginning = self.beginning(name).await?;
        let mut found = Vec::new();
        for object in self.bucket.objects(&beginning).await? {
            let key =
                self.bucket.key(&object.location).and_then(|key| key.strip_prefix(&beginning));
            let path = key.and_then(|key| key.strip_prefix('/')).filter(|path| is_resource(path));
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
        most: u64,
    ) -> Result<Option<Resource>, StoreError> {
        if !is_key(name) || !is_resource(path) {
            return Ok(None);
        }
        let key = format!("{}/{path}", self.beginning(name).await?);
        let place = self.bucket.path(&key)?;
        let found = match self.bucket.store().get_opts(&place, GetOptions::default()).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(self.bucket.failed(&key, &error)),
        };
        if found.meta.size > most {
            let message = format!("it has more than {most} bytes");
            return Err(StoreError::File { path: key, message });
        }
        let executable = found.attributes.get(&EXECUTABLE_ATTRIBUTE).is_some();
        let bytes = found.bytes().await.map_err(|error| self.bucket.failed(&key, &error))?;
        Ok(Some(Resource { path: path.to_owned(), bytes, executable }))
    }
}
