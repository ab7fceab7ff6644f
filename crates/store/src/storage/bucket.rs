//! Stores bytes as objects in a bucket.

use std::{
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use bytes::Bytes;
use futures::TryStreamExt as _;
use http::Method;
use object_store::{
    ClientOptions, Error, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, RetryConfig,
    UpdateVersion,
    aws::{AmazonS3, AmazonS3Builder, S3ConditionalPut},
    path::Path,
    signer::Signer as _,
};
use url::Url;

use crate::{StoreError, Timestamp};

/// Timeout of a read, and total time for retries. An upload must finish in this time, too.
const READ_TIMEOUT: Duration = Duration::from_secs(15);

/// The object that is written to test whether the bucket is writable.
const WRITE_TEST_KEY: &str = ".ready";

#[derive(Debug)]
pub(crate) struct Bucket {
    store: AmazonS3,
    /// Empty, or folder names without a slash at the end.
    prefix: String,
    /// The URL for messages.
    url: String,
    /// Whether the last write failed.
    write_failed: AtomicBool,
}

impl Bucket {
    pub(crate) fn open<'a>(
        url: &str,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, StoreError> {
        let wrong = |message: &str| StoreError::Setting(format!("the storage {url}: {message}"));
        let parsed = Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
        let bucket = parsed.host_str().filter(|_| parsed.scheme() == "s3");
        let bucket = bucket.ok_or_else(|| wrong("use s3://bucket or s3://bucket/prefix"))?;
        let mut client = ClientOptions::new()
            .with_timeout(Duration::from_mins(1))
            // Without a read timeout, a server that accepts a request and never answers would block
            // forever.
            .with_read_timeout(READ_TIMEOUT)
            .with_connect_timeout(Duration::from_secs(5));
        let mut builder = AmazonS3Builder::new();
        for (key, value) in settings {
            if key.starts_with("AWS_ENDPOINT") && value.starts_with("http://") {
                client = client.with_allow_http(true);
            }
            if let Ok(key) = key.to_ascii_lowercase().parse() {
                builder = builder.with_config(key, value);
            }
        }
        let store = builder
            .with_bucket_name(bucket)
            .with_client_options(client)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_retry(RetryConfig {
                max_retries: 4,
                retry_timeout: READ_TIMEOUT,
                ..RetryConfig::default()
            })
            .build()
            .map_err(|error| wrong(&error.to_string()))?;
        let prefix = parsed.path().trim_matches('/').to_owned();
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { store, prefix, url, write_failed: AtomicBool::new(false) })
    }

    pub(crate) fn store(&self) -> &AmazonS3 {
        &self.store
    }

    pub(crate) fn path(&self, key: &str) -> Result<Path, StoreError> {
        let whole = match (self.prefix.as_str(), key) {
            ("", key) => key.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, key) => format!("{prefix}/{key}"),
        };
        Path::parse(whole).map_err(|error| self.unusable(key, &error))
    }

    /// Returns the key of a listed path.
    pub(crate) fn key<'a>(&self, path: &'a Path) -> Option<&'a str> {
        let path = path.as_ref();
        if self.prefix.is_empty() {
            return Some(path);
        }
        path.strip_prefix(&self.prefix)?.strip_prefix('/')
    }

    pub(crate) fn failed(&self, key: &str, error: &Error) -> StoreError {
        let what = format!("the bucket {}", self.url);
        match error {
            Error::Generic { source, .. } => {
                StoreError::Unavailable { what, message: source.to_string() }
            }
            Error::PermissionDenied { source, .. } | Error::Unauthenticated { source, .. } => {
                StoreError::Denied { what, message: source.to_string() }
            }
            _ => self.unusable(key, error),
        }
    }

    fn unusable(&self, key: &str, error: &dyn std::error::Error) -> StoreError {
        StoreError::File { path: format!("{}/{key}", self.url), message: error.to_string() }
    }

    /// Returns all objects below a prefix.
    pub(crate) async fn objects(&self, prefix: &str) -> Result<Vec<ObjectMeta>, StoreError> {
        let path = self.path(prefix)?;
        let path = (!path.as_ref().is_empty()).then_some(&path);
        self.store.list(path).try_collect().await.map_err(|error| self.failed(prefix, &error))
    }

    pub(crate) async fn ping(&self) -> Result<(), StoreError> {
        let path = self.path(".ping")?;
        self.store
            .list(Some(&path))
            .try_next()
            .await
            .map(drop)
            .map_err(|error| self.failed("", &error))
    }

    /// Tries whether the bucket takes a write. Many buckets keep each version of an object, so
    /// usually it is a write that the bucket refuses because the object exists: it checks the
    /// permission first. After a write that failed, it is a real one.
    pub(crate) async fn try_write(&self) -> Result<(), StoreError> {
        let bytes = Bytes::from_static(b"ready");
        if self.write_failed.load(Ordering::Relaxed) {
            return self.put(WRITE_TEST_KEY, bytes).await;
        }
        self.put_if_absent(WRITE_TEST_KEY, bytes).await.map(drop)
    }

    pub(crate) async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        let put = self.store.put(&self.path(key)?, bytes.into()).await;
        self.write_failed.store(put.is_err(), Ordering::Relaxed);
        put.map(drop).map_err(|error| self.failed(key, &error))
    }

    pub(crate) async fn put_if_absent(&self, key: &str, bytes: Bytes) -> Result<bool, StoreError> {
        match self.store.put_opts(&self.path(key)?, bytes.into(), PutMode::Create.into()).await {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
            Err(error) => {
                self.write_failed.store(true, Ordering::Relaxed);
                Err(self.failed(key, &error))
            }
        }
    }

    pub(crate) async fn swap(
        &self,
        key: &str,
        old: &Bytes,
        new: Bytes,
    ) -> Result<bool, StoreError> {
        let path = self.path(key)?;
        let found = match self.store.get(&path).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(self.failed(key, &error)),
        };
        let seen =
            UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
        if found.bytes().await.map_err(|error| self.failed(key, &error))? != old {
            return Ok(false);
        }
        let mode = PutMode::Update(seen);
        match self.store.put_opts(&path, new.clone().into(), mode.into()).await {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. } | Error::Precondition { .. }) => Ok(false),
            // Some buckets do not support conditional writes.
            Err(Error::NotImplemented { .. }) => self.put(key, new).await.map(|()| true),
            Err(error) => Err(self.failed(key, &error)),
        }
    }

    pub(crate) async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let found = match self.store.get(&self.path(key)?).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(self.failed(key, &error)),
        };
        found.bytes().await.map(Some).map_err(|error| self.failed(key, &error))
    }

    pub(crate) async fn size(&self, key: &str) -> Result<Option<u64>, StoreError> {
        match self.store.head(&self.path(key)?).await {
            Ok(known) => Ok(Some(known.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(key, &error)),
        }
    }

    pub(crate) async fn get_range(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> Result<Option<Bytes>, StoreError> {
        match self.store.get_range(&self.path(key)?, range).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(key, &error)),
        }
    }

    pub(crate) async fn link(&self, key: &str, lasts: Duration) -> Result<String, StoreError> {
        let path = self.path(key)?;
        let url = self.store.signed_url(Method::GET, &path, lasts).await;
        url.map(String::from).map_err(|error| self.failed(key, &error))
    }

    pub(crate) async fn delete(&self, key: &str) -> Result<(), StoreError> {
        match self.store.delete(&self.path(key)?).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(key, &error)),
        }
    }

    pub(crate) async fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let objects = self.objects(prefix).await?;
        Ok(objects
            .iter()
            .filter_map(|object| self.key(&object.location))
            .map(ToOwned::to_owned)
            .collect())
    }

    pub(crate) async fn folders(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let found = self.store.list_with_delimiter(Some(&self.path(prefix)?)).await;
        let found = found.map_err(|error| self.failed(prefix, &error))?;
        let name = |path: &Path| path.filename().map(ToOwned::to_owned);
        Ok(found.common_prefixes.iter().filter_map(name).collect())
    }

    pub(crate) async fn list_with_times(
        &self,
        prefix: &str,
    ) -> Result<Vec<(String, Timestamp)>, StoreError> {
        let objects = self.objects(prefix).await?;
        let time =
            |object: &ObjectMeta| Timestamp::from_micros(object.last_modified.timestamp_micros());
        Ok(objects
            .iter()
            .filter_map(|object| Some((self.key(&object.location)?.to_owned(), time(object))))
            .collect())
    }
}
