//! Tests that kill processes while they publish.

use std::{
    env,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use savoir_store::{Database, registry::Actor};

use super::{draft, for_each_registry, name, open_storage, version};

const DATABASE: &str = "SAVOIR_TEST_REGISTRY_DATABASE";
const STORAGE: &str = "SAVOIR_TEST_REGISTRY_STORAGE";
const NAME: &str = "SAVOIR_TEST_REGISTRY_NAME";

/// Publishes versions and prints each. Not a test of its own: the test below starts it as a child
/// process.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stderr, reason = "the test reads it")]
async fn child() {
    let Ok(url) = env::var(DATABASE) else { return };
    let database = Database::open(&url).await.unwrap();
    let storage = open_storage(&env::var(STORAGE).unwrap());
    let package = env::var(NAME).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    let mut n = 0;
    while Instant::now() < end {
        let new = draft(&package, &format!("1.{n}.0"));
        match new.publish(database.registry(&storage), &Actor::operator()).await {
            Ok(_) => eprintln!("published 1.{n}.0"),
            Err(error) if error.code() == "version_exists" => {}
            Err(error) => panic!("{error}"),
        }
        n += 1;
    }
}

/// Kills a child process a moment after it published some versions. Returns the versions that it
/// printed.
fn kill_one(url: &str, storage: &str, package: &str, moment: Duration) -> Vec<String> {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "registry::dead::child", "--nocapture"])
        .envs([(DATABASE, url), (STORAGE, storage), (NAME, package)])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let published = |line: String| line.strip_prefix("published ").map(ToOwned::to_owned);
    let mut done = Vec::new();
    for line in lines.by_ref() {
        assert!(!line.contains("panicked"), "{line}");
        done.extend(published(line));
        if !done.is_empty() {
            break;
        }
    }
    std::thread::sleep(moment);
    child.kill().unwrap();
    child.wait().unwrap();
    done.extend(lines.filter_map(published));
    done
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_publisher_keeps_acknowledged_versions_complete() {
    for_each_registry(async |shop| {
        let mut seed = 88_172_645_463_325_252_u64;
        for _ in 0..4 {
            // Two processes on the same database and storage.
            let killers = ["acme/one", "acme/two"].map(|package| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                let moment = Duration::from_micros(seed % 40_000);
                let (url, storage) = (shop.place.url.clone(), shop.storage_url.clone());
                tokio::task::spawn_blocking(move || {
                    (package, kill_one(&url, &storage, package, moment))
                })
            });
            for killer in killers {
                let (package, done) = killer.await.unwrap();
                let registry = shop.registry();
                let index = registry.index(&name(package)).await.unwrap().unwrap();
                for text in done {
                    assert!(index.text.contains(&format!("\"version\":\"{text}\"")), "{text}");
                    registry.version(&name(package), &version(&text)).await.unwrap();
                }
                let whole = registry.package(&name(package)).await.unwrap().unwrap();
                assert_eq!(index.text.lines().count(), whole.versions.len());
                for one in &whole.versions {
                    assert!(registry.blob(&one.sha256).await.unwrap().is_some(), "{}", one.version);
                }
            }
        }
        let registry = shop.registry();
        let changes = registry.changes(0, 1000).await.unwrap();
        let seqs: Vec<u64> = changes.iter().map(|change| change.seq).collect();
        assert_eq!(seqs, (1..=changes.len() as u64).collect::<Vec<_>>());
        let versions =
            async |package| registry.package(&name(package)).await.unwrap().unwrap().versions.len();
        let total = versions("acme/one").await + versions("acme/two").await;
        assert_eq!(changes.len(), total + 1, "a change for each version, and for the namespace");
    })
    .await;
}
