//! Tests `savoir registry` commands that import, back up, restore and check a registry.

mod backup;
mod conformance;
mod defects;
mod import;

use std::{fs, path::Path};

use crate::support::Sandbox;
use savoir_package::{File, Tree, archive};
use savoir_skill::permission::Tier;
use savoir_store::{
    Database, Role, Storage,
    registry::{
        Actor, NewSignature, NewVersion, PackageName, Published, Registry, ScanResult, ScanVerdict,
        VersionFacts,
    },
};

#[test]
fn failures_have_stable_error_codes() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("mirror/index/v1")).expect("a folder");
    sandbox.write("mirror/index/v1/config.json", r#"{"version": 1}"#);
    sandbox.write("there.tar", "x");
    let nowhere = "http://127.0.0.1:1/registry";
    for (args, code, exit) in [
        (&["import", "none"][..], "folder_missing", 2),
        (&["import", ".", "--namespace", "A B"], "invalid_namespace", 2),
        (&["import", "mirror", "--namespace", "acme"], "mirror_keeps_names", 2),
        (&["import", ".", "--owner", "none@example.org"], "account_missing", 2),
        (&["backup", "."], "is_a_folder", 2),
        (&["backup", "there.tar"], "file_exists", 2),
        (&["backup", "b.tar", "--data", "none"], "registry_missing", 2),
        (&["restore", "none.tar"], "file_missing", 2),
        (&["restore", "there.tar"], "backup_damaged", 1),
        (&["sweep", "--data", "none"], "registry_missing", 2),
        (&["sweep", "--forget", "nobody"], "unknown_database", 2),
        (&["conformance", nowhere], "registry_unreachable", 2),
        (&["conformance", "nowhere"], "registry_unreachable", 2),
    ] {
        let done = sandbox.run(&[&["registry"], args, &["--json"]].concat());
        assert_eq!(done.code, exit, "{args:?}: {done}");
        let error = &done.json()["error"];
        assert_eq!(error["code"], code, "{args:?}: {done}");
        assert!(error["message"].is_string() && error["hints"][0].is_string(), "{done}");
        assert!(done.stderr.starts_with("error: "), "{done}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unreferenced_blobs_are_deleted() {
    let sandbox = Sandbox::new();
    let registry_storage = RegistryStorage::open(&sandbox.path("data")).await;
    let ada = registry_storage.account("ada@example.org").await;
    registry_storage.publish(&ada, "acme/tool", "1.0.0", &[]).await;
    let lost = registry_storage
        .registry()
        .put_blob("nobody needs it".into())
        .await
        .expect("it is written");
    let sweep = |more: &[&str]| {
        sandbox.run(&[&["registry", "sweep", "--data", "data", "--json"], more].concat())
    };
    assert_eq!(sweep(&[]).json()["removed"], 0, "it is too young");
    let mark = sandbox.path("data/registry/databases/another");
    fs::write(&mark, "").expect("a mark");
    let refused = sweep(&["--hours", "0"]);
    assert_eq!((refused.code, &refused.json()["error"]["code"]), (1, &"shared_storage".into()));
    assert!(refused.stderr.contains("another") && refused.stderr.contains("--forget"), "{refused}");
    assert!(registry_storage.registry().blob(&lost).await.expect("it is read").is_some());
    let swept = sweep(&["--hours", "0", "--forget", "another"]);
    assert_eq!((swept.code, &swept.json()["removed"]), (0, &1.into()), "{swept}");
    let text = sandbox.run(&["registry", "sweep", "--data", "data", "--hours", "0"]);
    assert_eq!((text.code, text.stdout.as_str()), (0, "removed 0 files\n"));
    assert!(
        registry_storage.registry().blob(&lost).await.expect("it is read").is_none()
            && !mark.exists()
    );
    registry_storage.database.close().await;
}

/// A skill that can be published.
pub(crate) fn skill_md(name: &str, version: &str, body: &str) -> String {
    format!(
        "---\nname: {name}\nversion: \"{version}\"\ndescription: Does something useful. Use it in \
         tests.\nlicense: MIT\ntags: [web]\n---\n\n# {name}\n\n{body}\n"
    )
}

pub(crate) fn tree(name: &str, version: &str, body: &str) -> Tree {
    let mut tree = Tree::default();
    let bytes = skill_md(name, version, body).into_bytes();
    tree.add("SKILL.md".to_owned(), File { bytes, executable: false }).expect("a file");
    tree
}

/// A data folder with a database and a storage, for `--data`.
pub(crate) struct RegistryStorage {
    pub(crate) database: Database,
    pub(crate) storage: Storage,
}

impl RegistryStorage {
    pub(crate) async fn open(folder: &Path) -> Self {
        fs::create_dir_all(folder).expect("a folder");
        let database = Database::open_folder(folder).await.expect("a database");
        Self { database, storage: Storage::folder(folder).expect("a storage") }
    }

    pub(crate) fn registry(&self) -> Registry<'_> {
        self.database.registry(&self.storage)
    }

    pub(crate) async fn account(&self, email: &str) -> Actor {
        let made = self.database.accounts().create(email, "h", Role::User).await;
        Actor::person(&made.expect("an answer").expect("an account"))
    }

    /// Makes an account an administrator, and creates it if necessary.
    pub(crate) async fn make_admin(&self, email: &str) {
        let accounts = self.database.accounts();
        if accounts.create(email, "h", Role::Admin).await.expect("an answer").is_none() {
            let (user, _) = accounts.by_email(email).await.expect("an answer").expect("an account");
            assert!(accounts.set_role(user.id, Role::Admin).await.expect("an answer"));
        }
    }

    pub(crate) async fn publish(
        &self,
        actor: &Actor,
        package: &str,
        version: &str,
        signatures: &[NewSignature],
    ) -> Published {
        let package: PackageName = package.parse().expect("a name");
        let tree = tree(package.name(), version, "Do it.");
        let facts = VersionFacts {
            description: "Does something useful.".to_owned(),
            tags: vec!["web".to_owned()],
            ..VersionFacts::default()
        };
        let report = serde_json::json!({"findings": []});
        let new = NewVersion {
            package: &package,
            version: &version.parse().expect("a version"),
            artefact: archive::pack(package.name(), &tree).expect("a zip").into(),
            skill_md: skill_md(package.name(), version, "Do it.").into_bytes().into(),
            integrity: &tree.integrity(),
            claimed: Some(Tier::Community),
            facts: &facts,
            signatures,
            scan: Some(&ScanResult { verdict: ScanVerdict::Allow, report }),
            published_at: None,
        };
        self.registry().publish(actor, new).await.expect("published")
    }

    pub(crate) async fn close(self) {
        self.database.close().await;
    }
}
