//! Stores skills as objects in a bucket.

mod with_files;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use object_store::{
    Attribute, Attributes, Error, GetOptions, GetResult, ObjectStore as _, ObjectStoreExt as _,
    PutMode, PutOptions, UpdateVersion,
};

use super::{
    MAX_FILE_BYTES, NOT_UTF8, ReadFile, SkillFile, TOO_LARGE, WriteError, damaged,
    invalid_name_error, is_valid_key,
};
use crate::{StoreError, Timestamp, storage::Bucket};

/// The attribute that stores when a skill was created, in microseconds.
const CREATED_AT_ATTRIBUTE: Attribute =
    Attribute::Metadata(std::borrow::Cow::Borrowed("created-at"));

#[derive(Debug)]
pub(super) struct BucketSkills {
    bucket: Arc<Bucket>,
    cache: Mutex<HashMap<String, SkillFile>>,
}

fn key(name: &str) -> String {
    format!("skills/{name}/SKILL.md")
}

impl BucketSkills {
    pub(super) fn new(bucket: Arc<Bucket>) -> Self {
        Self { bucket, cache: Mutex::default() }
    }

    fn cache(&self) -> MutexGuard<'_, HashMap<String, SkillFile>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, name: &str, error: &Error) -> StoreError {
        self.bucket.failed(&key(name), error)
    }

    /// Returns the names of the skills and the versions of their SKILL.md files, sorted by name.
    async fn versions(&self) -> Result<Vec<(String, Option<String>)>, StoreError> {
        let mut found = Vec::new();
        for object in self.bucket.objects("skills").await? {
            let name = self
                .bucket
                .key(&object.location)
                .and_then(|key| key.strip_prefix("skills/")?.strip_suffix("/SKILL.md"))
                .filter(|name| is_valid_key(name));
            if let Some(name) = name {
                found.push((name.to_owned(), object.e_tag));
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    pub(super) async fn names(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.versions().await?.into_iter().map(|(name, _)| name).collect())
    }

    pub(super) async fn list(&self) -> Result<Vec<SkillFile>, StoreError> {
        let versions = self.versions().await?;
        let there: BTreeSet<&str> = versions.iter().map(|(name, _)| name.as_str()).collect();
        self.cache().retain(|name, _| there.contains(name.as_str()));
        let files: Vec<Option<SkillFile>> = stream::iter(versions)
            .map(async |(name, version)| self.read_version(&name, version.as_deref()).await)
            .buffered(8)
            .try_collect()
            .await?;
        Ok(files.into_iter().flatten().collect())
    }

    /// Returns the SKILL.md of a listed version; `None` if it is not valid text.
    async fn read_version(
        &self,
        name: &str,
        version: Option<&str>,
    ) -> Result<Option<SkillFile>, StoreError> {
        let cached = self.cache().get(name).cloned();
        if let Some(cached) = cached
            && version == Some(cached.version.as_str())
        {
            return Ok(Some(cached));
        }
        match self.read(name).await {
            Err(StoreError::Damaged { .. }) => Ok(None),
            other => other,
        }
    }

    pub(super) async fn read(&self, name: &str) -> Result<Option<SkillFile>, StoreError> {
        self.read_any(name).await?.map(ReadFile::into_valid).transpose()
    }

    /// Like `read`, but also returns a file that is not valid text.
    pub(super) async fn read_any(&self, name: &str) -> Result<Option<ReadFile>, StoreError> {
        if !is_valid_key(name) {
            return Ok(None);
        }
        let cached = self.cache().get(name).cloned();
        let options = GetOptions {
            if_none_match: cached.as_ref().map(|file| file.version.clone()),
            ..GetOptions::default()
        };
        match self.bucket.store().get_opts(&self.bucket.path(&key(name))?, options).await {
            Ok(found) => {
                let read = self.file(name, found).await?;
                if read.problem.is_none() {
                    self.cache().insert(name.to_owned(), read.file.clone());
                }
                Ok(Some(read))
            }
            Err(Error::NotModified { .. }) => {
                Ok(cached.map(|file| ReadFile { file, problem: None }))
            }
            Err(Error::NotFound { .. }) => {
                self.cache().remove(name);
                Ok(None)
            }
            Err(error) => Err(self.failed(name, &error)),
        }
    }

    async fn file(&self, name: &str, found: GetResult) -> Result<ReadFile, StoreError> {
        let is_too_large = found.meta.size > MAX_FILE_BYTES;
        let updated_at = Timestamp::from_micros(found.meta.last_modified.timestamp_micros());
        let version = found
            .meta
            .e_tag
            .clone()
            .ok_or_else(|| damaged(name, "the storage gives no version"))?;
        let created_at = found
            .attributes
            .get(&CREATED_AT_ATTRIBUTE)
            .and_then(|micros| micros.parse().ok())
            .map_or(updated_at, Timestamp::from_micros);
        // Do not download a file that is too large.
        let bytes = if is_too_large {
            Bytes::new()
        } else {
            found.bytes().await.map_err(|error| self.failed(name, &error))?
        };
        let problem = match std::str::from_utf8(&bytes) {
            _ if is_too_large => Some(TOO_LARGE),
            Ok(_) => None,
            Err(_) => Some(NOT_UTF8),
        };
        let text = String::from_utf8_lossy(&bytes).into();
        let (key, is_valid) = (name.to_owned(), problem.is_none());
        let file = SkillFile { key, text, created_at, updated_at, version, is_valid };
        Ok(ReadFile { file, problem })
    }

    pub(super) async fn create(&self, name: &str, text: &str) -> Result<SkillFile, WriteError> {
        if !is_valid_key(name) {
            return Err(invalid_name_error(name));
        }
        self.check_free(name).await?;
        match self.put(name, text, Timestamp::now(), None, PutMode::Create).await? {
            Ok(()) => self.read(name).await?.ok_or(WriteError::Missing),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                Err(WriteError::Exists { existing: name.to_owned(), has_file: true })
            }
            Err(error) => Err(self.failed(name, &error).into()),
        }
    }

    pub(super) async fn check_free(&self, name: &str) -> Result<(), WriteError> {
        let Some(existing) = self.existing(name).await? else { return Ok(()) };
        let has_file = self.has_file(&existing).await?;
        Err(WriteError::Exists { existing, has_file })
    }

    /// Returns the name of an existing skill that differs at most in case.
    async fn existing(&self, name: &str) -> Result<Option<String>, StoreError> {
        let prefix = self.bucket.path("skills")?;
        let listed = self.bucket.store().list_with_delimiter(Some(&prefix)).await;
        let listed = listed.map_err(|error| self.failed(name, &error))?;
        Ok(listed
            .common_prefixes
            .iter()
            .filter_map(|path| path.filename())
            .find(|existing| existing.eq_ignore_ascii_case(name))
            .map(ToOwned::to_owned))
    }

    async fn has_file(&self, name: &str) -> Result<bool, StoreError> {
        match self.bucket.store().head(&self.bucket.path(&key(name))?).await {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.failed(name, &error)),
        }
    }

    /// The outer error is an invalid path, the inner one comes from the bucket.
    async fn put(
        &self,
        name: &str,
        text: &str,
        created_at: Timestamp,
        files: Option<&str>,
        mode: PutMode,
    ) -> Result<Result<(), Error>, StoreError> {
        let mut attributes = Attributes::from_iter([
            (CREATED_AT_ATTRIBUTE, created_at.micros().to_string()),
            (Attribute::ContentType, "text/markdown; charset=utf-8".to_owned()),
        ]);
        if let Some(files) = files {
            attributes.insert(with_files::FILES_ATTRIBUTE, files.to_owned().into());
        }
        let options = PutOptions { mode, attributes, ..PutOptions::default() };
        let path = self.bucket.path(&key(name))?;
        let bytes = text.to_owned().into_bytes();
        // Remove it from the cache even if the text is unchanged: the version would be the same,
        // but not the time.
        self.cache().remove(name);
        Ok(self.bucket.store().put_opts(&path, bytes.into(), options).await.map(drop))
    }

    pub(super) async fn replace(
        &self,
        name: &str,
        text: &str,
        version: &str,
    ) -> Result<SkillFile, WriteError> {
        let current = self.read_any(name).await?.ok_or(WriteError::Missing)?.file;
        if current.version != version {
            return Err(WriteError::Changed);
        }
        let mode =
            PutMode::Update(UpdateVersion { e_tag: Some(version.to_owned()), version: None });
        // The other files of the skill stay.
        let files = self.files_folder(name).await?;
        match self.put(name, text, current.created_at, files.as_deref(), mode).await? {
            Ok(()) => self.read(name).await?.ok_or(WriteError::Missing),
            Err(Error::Precondition { .. }) => Err(WriteError::Changed),
            Err(Error::NotFound { .. }) => Err(WriteError::Missing),
            Err(error) => Err(self.failed(name, &error).into()),
        }
    }

    pub(super) async fn delete(&self, name: &str, version: Option<&str>) -> Result<(), WriteError> {
        if !is_valid_key(name) {
            return Err(WriteError::Missing);
        }
        let below = self.bucket.list(&format!("skills/{name}")).await?;
        if below.is_empty() {
            return Err(WriteError::Missing);
        }
        if let Some(version) = version
            && self.read_any(name).await?.is_some_and(|read| read.file.version != version)
        {
            return Err(WriteError::Changed);
        }
        self.cache().remove(name);
        // Delete SKILL.md first: without it, the skill does not exist.
        self.bucket.delete(&key(name)).await?;
        for other in below.iter().filter(|other| **other != key(name)) {
            self.bucket.delete(other).await?;
        }
        Ok(())
    }
}
