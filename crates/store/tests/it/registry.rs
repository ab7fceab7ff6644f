//! Tests of the registry on SQLite with a folder, and on PostgreSQL with S3.

mod backup;
mod dead;
mod keys;
mod log;
mod look_alike;
mod names;
mod owners;
mod publish;
mod quotas;
mod races;
mod read;
mod speed;
mod storage_marks;
mod taken;
mod tokens;
mod trust;

use std::sync::Arc;

use bytes::Bytes;
use savoir_skill::{digest::sha256_hex, permission::Tier};
use savoir_store::{
    Database, Role, Storage, User,
    registry::{
        Actor, NewSignature, NewVersion, PackageName, Published, Registry, RegistryError,
        ScanResult, ScanVerdict, VersionFacts,
    },
};
use semver::Version;
use tempfile::TempDir;

use crate::harness::{Place, for_each_database, http, s3, server};

/// An empty registry with some accounts.
pub(crate) struct Shop<'a> {
    pub(crate) place: &'a Place,
    pub(crate) database: Database,
    pub(crate) storage: Storage,
    /// The URL with which another process opens the storage.
    pub(crate) storage_url: String,
    pub(crate) alice: User,
    pub(crate) bob: User,
    pub(crate) admin: User,
}

impl Shop<'_> {
    pub(crate) fn registry(&self) -> Registry<'_> {
        self.database.registry(&self.storage)
    }

    pub(crate) fn alice(&self) -> Actor {
        Actor::person(&self.alice)
    }

    pub(crate) fn bob(&self) -> Actor {
        Actor::person(&self.bob)
    }

    pub(crate) fn admin(&self) -> Actor {
        Actor::person(&self.admin)
    }

    /// Opens the registry a second time, like another process.
    pub(crate) async fn again(&self) -> (Database, Storage) {
        (self.place.again().await, open_storage(&self.storage_url))
    }
}

pub(crate) fn open_storage(url: &str) -> Storage {
    if url.starts_with("s3://") {
        let server = std::env::var("SAVOIR_TEST_S3").unwrap();
        return s3(url, &server);
    }
    Storage::folder(url.as_ref()).unwrap()
}

/// Passes an empty registry of each kind to a test.
pub(crate) async fn for_each_registry(test: impl AsyncFn(&Shop<'_>)) {
    let folder = TempDir::new().unwrap();
    for_each_database(async |place| {
        let bucket = if place.is_sqlite() { None } else { server("SAVOIR_TEST_S3", "S3") };
        let name = format!("test-{}", uuid::Uuid::new_v4().simple());
        let storage_url = match bucket {
            Some(server) => {
                http(&server, &format!("PUT /{name}"));
                format!("s3://{name}/registry")
            }
            None => folder.path().join(name).display().to_string(),
        };
        let accounts = place.database.accounts();
        let person =
            async |email: &str, role| accounts.create(email, "h", role).await.unwrap().unwrap();
        test(&Shop {
            place,
            database: place.database.clone(),
            storage: open_storage(&storage_url),
            storage_url,
            alice: person("alice@example.org", Role::User).await,
            bob: person("bob@example.org", Role::User).await,
            admin: person("admin@example.org", Role::Admin).await,
        })
        .await;
    })
    .await;
}

pub(crate) fn name(text: &str) -> PackageName {
    text.parse().unwrap()
}

pub(crate) fn version(text: &str) -> Version {
    text.parse().unwrap()
}

pub(crate) fn allow() -> ScanResult {
    ScanResult { verdict: ScanVerdict::Allow, report: serde_json::json!({"findings": []}) }
}

/// A version to publish, of which a test changes some parts.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) package: PackageName,
    pub(crate) version: Version,
    pub(crate) artefact: Bytes,
    pub(crate) skill_md: Bytes,
    pub(crate) facts: VersionFacts,
    pub(crate) claimed: Option<Tier>,
    pub(crate) signatures: Vec<NewSignature>,
    pub(crate) scan: Option<ScanResult>,
}

pub(crate) fn draft(package: &str, text: &str) -> Draft {
    Draft {
        package: name(package),
        version: version(text),
        artefact: Bytes::from(format!("the archive of {package} {text}")),
        skill_md: Bytes::from(format!("---\nname: {package}\n---\n{text}\n")),
        facts: VersionFacts {
            description: format!("{package} does something"),
            tags: vec!["web".to_owned(), "all".to_owned(), "web".to_owned()],
            author: Some("Somebody".to_owned()),
            license: Some("MIT".to_owned()),
            dialect: "gaia".to_owned(),
            needs: vec!["auth-helpers@>=1.0.0".to_owned()],
            permissions: vec!["network:read".to_owned()],
            manifest: serde_json::json!({"name": package}),
            ..VersionFacts::default()
        },
        claimed: Some(Tier::Verified),
        signatures: Vec::new(),
        scan: Some(allow()),
    }
}

impl Draft {
    /// A fake integrity hash that depends on the files.
    pub(crate) fn integrity(&self) -> String {
        format!("sha256-{}=", &sha256_hex(&self.artefact)[..43])
    }

    pub(crate) async fn publish(
        &self,
        registry: Registry<'_>,
        actor: &Actor,
    ) -> Result<Published, RegistryError> {
        let integrity = self.integrity();
        let new = NewVersion {
            package: &self.package,
            version: &self.version,
            artefact: self.artefact.clone(),
            skill_md: self.skill_md.clone(),
            integrity: &integrity,
            claimed: self.claimed,
            facts: &self.facts,
            signatures: &self.signatures,
            scan: self.scan.as_ref(),
            published_at: None,
        };
        registry.publish(actor, new).await
    }
}

/// Publishes a version, and panics if that fails.
pub(crate) async fn publish(
    shop: &Shop<'_>,
    actor: &Actor,
    package: &str,
    text: &str,
) -> Published {
    draft(package, text).publish(shop.registry(), actor).await.unwrap()
}

/// Runs tasks concurrently.
pub(crate) async fn run_concurrently<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    tasks: impl IntoIterator<Item = F>,
) -> Vec<T> {
    let tasks: Vec<F> = tasks.into_iter().collect();
    let start = Arc::new(tokio::sync::Barrier::new(tasks.len()));
    let tasks: Vec<_> = tasks
        .into_iter()
        .map(|task| {
            let start = Arc::clone(&start);
            tokio::spawn(async move {
                start.wait().await;
                task.await
            })
        })
        .collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}
