//! Tests the registry over HTTP, on both kinds of databases.

mod account;
mod attestations;
mod browse;
mod change;
mod files;
mod keys;
mod log;
mod people;
mod reviews;
mod several;

use std::time::Duration;

use bytes::Bytes;
use savoir_package::{
    File, Tree, archive,
    trust::{SigningKey, sign},
};
use savoir_skill::{digest::sha256_hex, permission::Tier};
use savoir_store::registry::{
    Actor, FileFact, NewSignature, NewVersion, PackageName, Published, ScanResult, ScanVerdict,
    Signer, VersionFacts,
};
use semver::Version;
use serde_json::{Value, json};

use crate::harness::{Client, Reply, TestServer};

pub(crate) const API: &str = "/registry/api/v1";

/// A complete version, of which a test changes some parts.
pub(crate) struct Draft {
    pub(crate) package: PackageName,
    pub(crate) version: Version,
    pub(crate) tree: Tree,
    pub(crate) facts: VersionFacts,
    pub(crate) signatures: Vec<NewSignature>,
}

pub(crate) fn draft(package: &str, version: &str) -> Draft {
    let package: PackageName = package.parse().unwrap();
    let name = package.name().to_owned();
    let text = format!("---\nname: {name}\nversion: {version}\n---\nDo what {package} does.\n");
    let tree = tree(&[("SKILL.md", text.as_bytes()), ("notes.md", b"some notes")]);
    let facts = VersionFacts {
        description: format!("{package} does something"),
        tags: vec!["web".to_owned()],
        author: Some("Ada".to_owned()),
        dialect: "gaia".to_owned(),
        manifest: json!({"name": name}),
        ..VersionFacts::default()
    };
    Draft { package, version: version.parse().unwrap(), tree, facts, signatures: Vec::new() }
}

pub(crate) fn tree(files: &[(&str, &[u8])]) -> Tree {
    let mut tree = Tree::default();
    for (path, bytes) in files {
        let file = File { bytes: bytes.to_vec(), executable: false };
        tree.add((*path).to_owned(), file).unwrap();
    }
    tree
}

impl Draft {
    /// The signature record of a key for this version.
    pub(crate) fn record(&self, key: &SigningKey) -> Value {
        let version = self.version.to_string();
        let record = sign(&self.tree, self.package.name(), &version, "somebody", key);
        serde_json::from_slice(&record).unwrap()
    }

    pub(crate) fn signed(mut self, key: &SigningKey) -> Self {
        let (record, key_id) = (self.record(key).to_string(), key.key_id());
        self.signatures.push(NewSignature { signer: Signer::Publisher, key_id, record });
        self
    }

    pub(crate) fn archive(&self) -> Vec<u8> {
        archive::pack(self.package.name(), &self.tree).unwrap()
    }

    /// Publishes the version directly in the database.
    pub(crate) async fn publish(mut self, server: &TestServer, who: &Client) -> Published {
        let archive = self.archive();
        let plain = archive::pack_plain(&self.tree).unwrap();
        self.facts.more.insert("plain_sha256".to_owned(), sha256_hex(&plain).into());
        self.facts.files = self
            .tree
            .files()
            .map(|(path, file)| FileFact {
                path: path.to_owned(),
                sha256: sha256_hex(&file.bytes),
                size: file.bytes.len() as u64,
            })
            .collect();
        let user = server.database.accounts().by_id(who.id()).await.unwrap().unwrap();
        let skill_md = self.tree.get("SKILL.md").unwrap().bytes.clone();
        let new = NewVersion {
            package: &self.package,
            version: &self.version,
            artefact: Bytes::from(archive),
            skill_md: Bytes::from(skill_md),
            integrity: &self.tree.integrity(),
            claimed: Some(Tier::Verified),
            facts: &self.facts,
            signatures: &self.signatures,
            scan: Some(&ScanResult {
                verdict: ScanVerdict::Allow,
                report: json!({"findings": []}),
            }),
            published_at: None,
        };
        let registry = server.database.registry(&server.storage);
        let published = registry.publish(&Actor::person(&user), new).await.unwrap();
        // The server notices changes in the database after a moment.
        tokio::time::sleep(Duration::from_millis(120)).await;
        published
    }
}

/// Publishes a version for a user.
pub(crate) async fn publish(server: &TestServer, who: &Client, package: &str, version: &str) {
    draft(package, version).publish(server, who).await;
}

/// A client with an API token of a user.
pub(crate) async fn program(server: &TestServer, who: &Client, body: &Value) -> Client {
    let mut body = body.clone();
    body["name"] = "a program".into();
    let reply = who.post(&format!("{API}/tokens"), &body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    server.client(reply.json()["token"].as_str().unwrap())
}

/// The lines of the index for a package.
pub(crate) async fn index(server: &TestServer, package: &str) -> Vec<Value> {
    let name = package.rsplit('/').next().unwrap();
    let reply =
        server.stranger().get(&format!("/registry/index/v1/{}/{package}", &name[..2])).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether the only version of a package is yanked, according to the index.
pub(crate) async fn is_yanked(server: &TestServer, package: &str) -> bool {
    index(server, package).await[0]["yanked"].as_bool().unwrap_or(false)
}

impl Reply {
    /// Checks that the response is a registry error; returns its message.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) -> String {
        let body = self.json();
        assert_eq!(
            (self.status.as_u16(), &body["error"]["code"]),
            (status, &json!(code)),
            "{body}"
        );
        assert_eq!(self.header("cache-control"), "no-store");
        assert_eq!(self.header("www-authenticate"), if status == 401 { "Bearer" } else { "" });
        body["error"]["message"].as_str().unwrap().to_owned()
    }

    /// Checks the status of a successful response; returns its body.
    #[track_caller]
    pub(crate) fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        if self.text.is_empty() { Value::Null } else { self.json() }
    }
}
