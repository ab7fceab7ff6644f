//! Tests `savoir registry backup` and `restore`.

use std::{
    fs,
    path::Path,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use savoir_skill::digest::sha256_hex;
use savoir_store::registry::{
    Actor, AuditFilter, NewKey, NewSignature, OwnerScope, Registry, Signer, TeamRole,
};
use serde_json::{Value, json};

use super::RegistryStorage;
use crate::{services::RunEnvironment, support::Sandbox};

/// Fills a registry with at least one item of every kind.
async fn fill(registry_storage: &RegistryStorage) {
    let registry = registry_storage.registry();
    // An additional account, so that the ids differ from those of the restored registry.
    registry_storage.account("nobody@example.org").await;
    let (ada, bob) = (
        registry_storage.account("ada@example.org").await,
        registry_storage.account("bob@example.org").await,
    );
    registry_storage.publish(&ada, "acme/tool", "1.0.0", &[]).await;
    let acme: OwnerScope = "acme".parse().expect("it works");
    let key = NewKey {
        owner_scope: &acme,
        key_id: "k1",
        public_key: "p",
        label: "l",
        account: None,
        proved: false,
    };
    registry.add_key(&ada, key).await.expect("it works");
    let signature =
        NewSignature { signer: Signer::Publisher, key_id: "k1".into(), record: "{}".into() };
    registry_storage.publish(&ada, "acme/tool", "1.1.0", &[signature]).await;
    for version in ["1.0.0", "1.1.0", "2.0.0-rc.1"] {
        registry_storage.publish(&bob, "other", version, &[]).await;
    }
    let bob_id = registry_storage
        .database
        .accounts()
        .by_email("bob@example.org")
        .await
        .expect("it works")
        .expect("it works")
        .0
        .id;
    registry.set_member(&ada, &acme, bob_id, TeamRole::Publisher).await.expect("it works");
    let other = "other".parse().expect("it works");
    registry
        .yank(&bob, &other, &"1.1.0".parse().expect("it works"), Some("broken"))
        .await
        .expect("it works");
    registry
        .withdraw(&Actor::operator(), &other, &"1.0.0".parse().expect("it works"), "secret")
        .await
        .expect("it works");
    registry
        .deprecate(&ada, &"acme/tool".parse().expect("it works"), None, Some("use other"))
        .await
        .expect("it works");
    registry.grant_prefix(&Actor::operator(), bob_id, "mcp-").await.expect("it works");
}

/// All data of a registry, with email addresses instead of account ids.
async fn all(registry_storage: &RegistryStorage) -> Value {
    let registry = registry_storage.registry();
    let mut people = serde_json::Map::new();
    for user in registry_storage.database.accounts().list().await.expect("it works") {
        people.insert(user.id.to_string(), user.email.into());
    }
    let who = |id: Option<i64>| id.and_then(|id| people.get(&id.to_string()).cloned());
    let mut packages = Vec::new();
    for index in registry.indexes_after(None, 1000).await.expect("it works") {
        packages.push(package(registry, index, &who).await);
    }
    let acme: OwnerScope = "acme".parse().expect("it works");
    let members = registry.members(&acme).await.expect("it works");
    let members: Vec<Value> =
        members.iter().map(|one| json!([who(Some(one.user_id)), one.role.as_str()])).collect();
    let keys = registry.keys(&acme).await.expect("it works");
    let keys: Vec<Value> = keys.iter().map(|key| json!([key.key_id, key.public_key])).collect();
    let audit = registry.audit(&AuditFilter::default(), None, 1000).await.expect("it works");
    let audit: Vec<Value> = audit
        .iter()
        .filter(|entry| entry.change.act.as_str() != "imported")
        .map(|entry| {
            let (change, at) = (&entry.change, entry.done_at.to_string());
            json!([change.seq, change.act.as_str(), at, who(entry.account), change.package])
        })
        .collect();
    json!({"packages": packages, "members": members, "keys": keys, "audit": audit})
}

async fn package(
    registry: Registry<'_>,
    index: savoir_store::registry::IndexText,
    who: &impl Fn(Option<i64>) -> Option<Value>,
) -> Value {
    let found = registry.package(&index.package).await.expect("it works").expect("it works");
    let mut versions = Vec::new();
    for version in &found.versions {
        let whole = registry.version(&index.package, &version.version).await.expect("it works");
        let blob = registry.blob(&whole.sha256).await.expect("it works").expect("it works");
        let text = registry.blob(&whole.skill_md).await.expect("it works").expect("it works");
        versions.push(json!([
            version.version.to_string(),
            sha256_hex(&blob),
            sha256_hex(&text),
            version.yanked,
            whole.attested.as_str(),
            who(whole.published_by),
            whole.facts,
        ]));
    }
    json!([index.package, index.text, index.tag, index.updated_at.to_string(), versions])
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("it works")
}

/// A sandbox with a registry in `old` and its backup in `b.tar`.
fn with_backup() -> (Sandbox, Value) {
    let sandbox = Sandbox::new();
    let before = runtime().block_on(async {
        let registry_storage = RegistryStorage::open(&sandbox.path("old")).await;
        fill(&registry_storage).await;
        let before = all(&registry_storage).await;
        registry_storage.close().await;
        before
    });
    let done = sandbox.run(&["registry", "backup", "b.tar", "--data", "old", "--json"]);
    assert_eq!(done.code, 0, "{done}");
    let output = done.json();
    assert_eq!((&output["packages"], &output["versions"]), (&json!(2), &json!(5)), "{output}");
    (sandbox, before)
}

fn read_all(folder: &Path) -> Value {
    runtime().block_on(async {
        let registry_storage = RegistryStorage::open(folder).await;
        let found = all(&registry_storage).await;
        registry_storage.close().await;
        found
    })
}

fn is_empty(folder: &Path) -> bool {
    let found = read_all(folder);
    found["packages"] == json!([]) && found["audit"] == json!([])
}

#[test]
fn restore_returns_all_data() {
    let (sandbox, before) = with_backup();
    let done = sandbox.run(&["registry", "restore", "b.tar", "--data", "new", "--json"]);
    assert_eq!(done.code, 0, "{done}");
    let made = json!(["nobody@example.org", "ada@example.org", "bob@example.org"]);
    assert_eq!(done.json()["accounts_made"], made, "also who never changed anything");
    assert_eq!(read_all(&sandbox.path("new")), before);

    // A second backup has the same bytes, and an existing file is not replaced.
    let again = sandbox.run(&["registry", "backup", "c.tar", "--data", "old"]);
    assert_eq!(again.code, 0, "{again}");
    assert_eq!(
        fs::read(sandbox.path("b.tar")).expect("it works"),
        fs::read(sandbox.path("c.tar")).expect("it works")
    );
    let refused = sandbox.run(&["registry", "backup", "c.tar", "--data", "old"]);
    assert_eq!(refused.code, 2, "{refused}");
    let forced = sandbox.run(&["registry", "backup", "c.tar", "--data", "old", "--force"]);
    assert_eq!(forced.code, 0, "{forced}");

    // A backup is not restored into a registry that is not empty.
    let full = sandbox.run(&["registry", "restore", "b.tar", "--data", "old"]);
    assert_eq!(full.code, 1, "{full}");
    assert!(full.stderr.contains("the registry is not empty"), "{full}");
    assert_eq!(read_all(&sandbox.path("old")), before);
}

#[test]
fn restore_gives_nothing_to_existing_accounts() {
    let (sandbox, before) = with_backup();
    runtime().block_on(async {
        let registry_storage = RegistryStorage::open(&sandbox.path("new")).await;
        registry_storage.account("ada@example.org").await;
        registry_storage.account("nobody@example.org").await;
        registry_storage.close().await;
    });
    let restore = ["registry", "restore", "b.tar", "--data", "new", "--json"];
    let refused = sandbox.run(&restore);
    assert_eq!(refused.code, 1, "{refused}");
    let error = &refused.json()["error"];
    assert_eq!(error["code"], "accounts_exist", "{refused}");
    assert!(error["message"].as_str().expect("a text").ends_with(": ada@example.org"), "{refused}");
    assert!(error.to_string().contains("--keep-accounts"), "{refused}");
    assert!(is_empty(&sandbox.path("new")));
    let kept = sandbox.run(&[&restore[..], &["--keep-accounts"]].concat());
    assert_eq!(kept.code, 0, "{kept}");
    assert_eq!(kept.json()["accounts_made"], json!(["bob@example.org"]));
    assert_eq!(read_all(&sandbox.path("new"))["members"], before["members"]);
}

#[test]
fn lost_administrators_are_reported() {
    let sandbox = Sandbox::new();
    runtime().block_on(async {
        let registry_storage = RegistryStorage::open(&sandbox.path("old")).await;
        fill(&registry_storage).await;
        for email in ["root@example.org", "ada@example.org"] {
            registry_storage.make_admin(email).await;
        }
        registry_storage.close().await;
        let registry_storage = RegistryStorage::open(&sandbox.path("new")).await;
        registry_storage.account("ada@example.org").await;
        registry_storage.make_admin("root@example.org").await;
        registry_storage.close().await;
    });
    let backup = sandbox.run(&["registry", "backup", "b.tar", "--data", "old"]);
    assert_eq!(backup.code, 0, "{backup}");
    fs::create_dir_all(sandbox.path("text")).expect("it works");
    fs::copy(sandbox.path("new/savoir.sqlite"), sandbox.path("text/savoir.sqlite"))
        .expect("it works");
    let restore = ["registry", "restore", "b.tar", "--keep-accounts"];
    let kept = sandbox.run(&[&restore[..], &["--data", "new", "--json"]].concat());
    assert_eq!(kept.code, 0, "{kept}");
    assert_eq!(kept.json()["administrators_not_made"], json!(["ada@example.org"]), "{kept}");
    let text = sandbox.run(&[&restore[..], &["--data", "text"]].concat());
    let words = "ada@example.org was an administrator in the backup, but stays a normal user here";
    assert!(text.code == 0 && text.stdout.contains(words), "{text}");
    assert!(!text.stdout.contains("root@example.org was"), "{text}");
}

#[test]
fn backup_moves_between_database_kinds() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let (sandbox, before) = with_backup();
    let (database, storage) = run_env.place();
    let place = ["--database", &*database, "--storage", &*storage];
    let run = |args: &[&str]| run_env.run(&sandbox, &[args, &place].concat());
    let restored = run(&["registry", "restore", "b.tar"]);
    assert_eq!(restored.code, 0, "{restored}");
    let again = run(&["registry", "restore", "b.tar"]);
    assert_eq!(again.code, 1, "{again}");
    let backup = run(&["registry", "backup", "c.tar"]);
    assert_eq!(backup.code, 0, "{backup}");
    let back = sandbox.run(&["registry", "restore", "c.tar", "--data", "back"]);
    assert_eq!(back.code, 0, "{back}");
    assert_eq!(read_all(&sandbox.path("back")), before);
}

/// The files of a tar: offset, path and size.
fn files(tar: &[u8]) -> Vec<(usize, String, usize)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while tar[at] != 0 {
        let path = String::from_utf8_lossy(&tar[at..at + 100]);
        let path = path.trim_end_matches('\0').to_owned();
        let digits = std::str::from_utf8(&tar[at + 124..at + 135]).expect("it works");
        let size = usize::from_str_radix(digits, 8).expect("it works");
        found.push((at, path, size));
        at += 512 + size.div_ceil(512) * 512;
    }
    found
}

#[test]
fn a_damaged_backup_changes_nothing() {
    let (sandbox, _) = with_backup();
    let good = fs::read(sandbox.path("b.tar")).expect("it works");
    let files = files(&good);
    assert_eq!(files.len(), 2 + 4 * 2, "records, two blobs for each live version, the end");
    let (blob, _, size) = files[3];
    let block = 512 + size.div_ceil(512) * 512;
    let mut cases: Vec<(String, Vec<u8>)> = Vec::new();
    // Damages a byte in every file and in every header.
    for (start, path, size) in &files {
        for at in [start + 3, start + 512, start + 511 + size] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            cases.push((format!("a flipped byte at {at} of {path}"), bad));
        }
    }
    for length in [0, 100, 600, blob + 700, good.len() - 1024, good.len() - 1] {
        cases.push((format!("cut off after {length} bytes"), good[..length].to_vec()));
    }
    let without = [&good[..blob], &good[blob + block..]].concat();
    cases.push(("a missing blob".into(), without));
    let twice = [&good[..blob], &good[blob..blob + block], &good[blob..]].concat();
    cases.push(("a blob twice".into(), twice));
    cases.push((
        "an extra blob".into(),
        [&good[..blob], &extra(&good, blob), &good[blob..]].concat(),
    ));
    cases.push(("more at its end".into(), [&good[..], b"x"].concat()));
    cases.push(("something else".into(), b"hello".repeat(1000)));
    for (what, bytes) in cases {
        fs::write(sandbox.path("bad.tar"), bytes).expect("it works");
        let done = sandbox.run(&["registry", "restore", "bad.tar", "--data", "new", "--check"]);
        assert_eq!(done.code, 1, "{what}: {done}");
        assert!(done.stderr.contains("the backup is damaged: "), "{what}: {done}");
    }
    let done = sandbox.run(&["registry", "restore", "bad.tar", "--data", "new"]);
    assert_eq!(done.code, 1, "{done}");
    assert!(is_empty(&sandbox.path("new")));
    let missing = sandbox.run(&["registry", "restore", "nowhere.tar", "--data", "new"]);
    assert_eq!(missing.code, 2, "{missing}");
}

/// Adds an unused blob with a valid header before the one at an offset.
fn extra(good: &[u8], place: usize) -> Vec<u8> {
    let before = String::from_utf8_lossy(&good[place..place + 100]).into_owned();
    let before = before.trim_end_matches('\0');
    // The digests are sorted, so the new digest must be smaller than the next one.
    let content = (0..100_000).map(|number| format!("extra {number}")).find(|content| {
        let digest = sha256_hex(content.as_bytes());
        let previous = &files(good)[2].1;
        let path = format!("savoir-registry/blobs/{}/{digest}", &digest[..2]);
        path.as_str() < before && path.as_str() > previous.as_str()
    });
    let content = content.expect("a digest between two others");
    let digest = sha256_hex(content.as_bytes());
    let mut block = good[place..place + 512].to_vec();
    block[..100].fill(0);
    let path = format!("savoir-registry/blobs/{}/{digest}", &digest[..2]);
    block[..path.len()].copy_from_slice(path.as_bytes());
    block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block.extend(content.as_bytes());
    block.resize(1024, 0);
    block
}

#[test]
fn killed_restore_changes_nothing_and_can_be_repeated() {
    let sandbox = Sandbox::new();
    let before = runtime().block_on(async {
        let registry_storage = RegistryStorage::open(&sandbox.path("old")).await;
        fill(&registry_storage).await;
        let bob = registry_storage.account("many@example.org").await;
        for number in 0..150 {
            registry_storage.publish(&bob, &format!("many-{number}"), "1.0.0", &[]).await;
        }
        let before = all(&registry_storage).await;
        registry_storage.close().await;
        before
    });
    let done = sandbox.run(&["registry", "backup", "b.tar", "--data", "old"]);
    assert_eq!(done.code, 0, "{done}");
    let new = sandbox.path("new");
    let mut killed = 0;
    for pause in 1..12 {
        let mut child = sandbox
            .command(&["registry", "restore", "b.tar", "--data", "new"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it works");
        let begun = Instant::now();
        // Once the first blobs exist, the restore is in progress.
        while fs::read_dir(new.join("registry/blobs")).is_err() && begun.elapsed().as_secs() < 20 {
            thread::sleep(Duration::from_millis(1));
            if child.try_wait().expect("it works").is_some() {
                break;
            }
        }
        thread::sleep(Duration::from_millis(pause * 2));
        child.kill().expect("it works");
        if child.wait().expect("it works").success() {
            break;
        }
        killed += 1;
        assert!(is_empty(&new), "after {pause}");
        fs::remove_dir_all(new.join("registry")).expect("it works");
    }
    assert!(killed > 0, "it was never in the middle");
    if is_empty(&new) {
        let done = sandbox.run(&["registry", "restore", "b.tar", "--data", "new"]);
        assert_eq!(done.code, 0, "{done}");
    }
    assert_eq!(read_all(&new), before);
}

#[test]
fn a_backup_needs_every_blob_and_a_registry() {
    let (sandbox, _) = with_backup();
    let nothing = sandbox.run(&["registry", "backup", "x.tar", "--data", "nowhere"]);
    assert_eq!(nothing.code, 2, "{nothing}");
    // A damaged or missing blob of a version is an error.
    let (_, used, _) = files(&fs::read(sandbox.path("b.tar")).expect("it works")).swap_remove(1);
    let blob = sandbox.path(&used.replace("savoir-registry", "old/registry"));
    assert!(blob.is_file());
    fs::write(&blob, "something else").expect("it works");
    let damaged = sandbox.run(&["registry", "backup", "x.tar", "--data", "old"]);
    assert_eq!(damaged.code, 1, "{damaged}");
    fs::remove_file(&blob).expect("it works");
    let missing = sandbox.run(&["registry", "backup", "x.tar", "--data", "old"]);
    assert_eq!(missing.code, 1, "{missing}");
    assert!(missing.stderr.contains("is missing"), "{missing}");
    let left: Vec<_> = fs::read_dir(sandbox.path("."))
        .expect("it works")
        .map(|entry| entry.expect("it works").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("backup") || name == "x.tar")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
