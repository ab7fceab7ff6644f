//! Tests of mirrors.

use std::{fs, os::unix::fs::PermissionsExt as _};

use savoir_package::{
    registry::mirror::{MirrorSelection, mirror},
    resolve::Update,
};
use tempfile::TempDir;

use super::{client, gathered, installed, name, registries, site::Site, versions};
use crate::install::test_project::{TestProject, gaia, skill};

/// Creates a registry with three skills, one of which depends on another.
async fn origin(project: &TestProject) -> Site {
    let site = Site::start().await;
    for version in ["1.0.0", "1.1.0"] {
        let base = project.signed("base", version, &gaia("base", version, &[], &[]));
        site.publish("acme/base", &base);
    }
    let top = project.signed("top", "1.0.0", &gaia("top", "1.0.0", &[], &["acme/base"]));
    site.publish("top", &top);
    site.publish("alone", &skill("alone", "1.0.0", "Text."));
    site.list(&["acme/base", "alone", "top"]);
    site
}

#[tokio::test]
async fn mirror_serves_as_registry() {
    let (project, folder) = (TestProject::new(), TempDir::new().unwrap());
    let site = origin(&project).await;
    // Unknown fields are mirrored, too.
    let path = site.path("index/v1/al/alone");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen('{', "{\"later\":[1],", 1)).unwrap();
    let client = client(&project.data(), site.address());
    let copied = mirror(&client, folder.path(), &MirrorSelection::Everything).await.unwrap();
    assert_eq!((copied.skills, copied.versions, copied.fetched), (3, 4, 4));
    assert!(copied.failed.is_empty() && copied.bytes > 0);
    let index = folder.path().join("index/v1/al/alone");
    assert!(fs::read_to_string(&index).unwrap().contains("\"later\":[1]"));
    assert_eq!(fs::metadata(&index).unwrap().permissions().mode() & 0o777, 0o644);
    let copy = Site::of(folder.path()).await;
    let all = registries(&project, vec![copy.entry()]);
    assert_eq!(installed(&project, &all, &["top", "alone"]).await.len(), 3);
    assert_eq!(versions(&project), ["alone 1.0.0", "base 1.1.0", "top 1.0.0"]);
    // A mirror of the mirror is equal, if the skills are named.
    let second = TempDir::new().unwrap();
    let client = super::client(&project.data(), copy.address());
    let what = MirrorSelection::Skills(vec![name("top")]);
    let copied = mirror(&client, second.path(), &what).await.unwrap();
    assert_eq!((copied.skills, copied.versions), (2, 3), "with what it needs");
    let same = "index/v1/ba/acme/base";
    assert_eq!(
        fs::read(folder.path().join(same)).unwrap(),
        fs::read(second.path().join(same)).unwrap()
    );
    let everything =
        mirror(&client, second.path(), &MirrorSelection::Everything).await.unwrap_err();
    assert_eq!(everything.code(), "files_only");
    let unknown =
        mirror(&client, second.path(), &MirrorSelection::Skills(vec![name("zebra")])).await;
    assert_eq!(unknown.unwrap_err().code(), "unknown_skill");
}

#[tokio::test]
async fn interrupted_mirror_continues() {
    let (project, folder) = (TestProject::new(), TempDir::new().unwrap());
    let site = origin(&project).await;
    let client = client(&project.data(), site.address());
    mirror(&client, folder.path(), &MirrorSelection::Everything).await.unwrap();
    // An earlier run was interrupted by a full disk or a power failure.
    let archives: Vec<_> = fs::read_dir(folder.path().join("artifacts"))
        .unwrap()
        .map(|entry| fs::read_dir(entry.unwrap().path()).unwrap().next().unwrap().unwrap().path())
        .collect();
    fs::write(&archives[0], "half").unwrap();
    fs::remove_file(&archives[1]).unwrap();
    fs::create_dir(folder.path().join(".savoir-partial")).unwrap();
    fs::write(folder.path().join(".savoir-partial/x"), "half").unwrap();
    site.edit("acme/base", |line| line.yanked = line.version.minor == 1);
    site.seen();
    let again = mirror(&client, folder.path(), &MirrorSelection::Everything).await.unwrap();
    assert_eq!((again.skills, again.versions, again.fetched), (3, 4, 2));
    let seen = site.seen();
    assert_eq!(seen.iter().filter(|path| path.starts_with("artifacts/")).count(), 2, "{seen:?}");
    assert!(!folder.path().join(".savoir-partial").exists());
    let index = fs::read_to_string(folder.path().join("index/v1/ba/acme/base")).unwrap();
    assert!(index.contains("\"yanked\":true"), "what changed is copied again");
}

#[tokio::test]
async fn invalid_versions_are_not_mirrored() {
    let (project, folder) = (TestProject::new(), TempDir::new().unwrap());
    let site = origin(&project).await;
    let line = site.publish("alone", &skill("alone", "2.0.0", "Text."));
    let path = format!("artifacts/{}/{}", line.sha256, line.filename);
    site.write(&path, b"changed");
    site.write("index/v1/br/broken", b"<html>");
    site.list(&["acme/base", "alone", "broken", "removed", "top"]);
    let client = client(&project.data(), site.address());
    let copied = mirror(&client, folder.path(), &MirrorSelection::Everything).await.unwrap();
    let mut failed: Vec<_> = copied
        .failed
        .iter()
        .map(|failed| {
            let version = failed.version.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{} {version} {}", failed.name, failed.error.code())
        })
        .collect();
    failed.sort();
    assert_eq!(failed, ["alone 2.0.0 digest_mismatch", "broken  answer_malformed"]);
    assert!(!folder.path().join(&path).exists());
    let copy = Site::of(folder.path()).await;
    let all = registries(&project, vec![copy.entry()]);
    let found = gathered(&project, &all, &["alone"], Update::Nothing).await.unwrap();
    assert_eq!(found.resolution.chosen["alone"].version.to_string(), "1.0.0");
}

#[tokio::test]
async fn mirrored_version_never_changes() {
    let (project, folder) = (TestProject::new(), TempDir::new().unwrap());
    let site = origin(&project).await;
    let client = client(&project.data(), site.address());
    mirror(&client, folder.path(), &MirrorSelection::Everything).await.unwrap();
    let index = folder.path().join("index/v1/al/alone");
    let before = fs::read_to_string(&index).unwrap();
    // An attacker controls the registry and replaces the bytes of a version; another version is
    // new.
    fs::remove_file(site.path("index/v1/al/alone")).unwrap();
    site.publish("alone", &skill("alone", "1.0.0", "Evil."));
    site.publish("alone", &skill("alone", "1.1.0", "Text."));
    for _ in 0..2 {
        let again = mirror(&client, folder.path(), &MirrorSelection::Everything).await.unwrap();
        let failed = again.failed.iter().map(|one| (one.name.to_string(), one.error.code()));
        assert_eq!(failed.collect::<Vec<_>>(), [("alone".to_owned(), "version_changed")]);
        assert!(again.failed[0].error.to_string().contains("was changed after it was copied"));
        assert_eq!(again.versions, 5, "what was copied stays, and the new one comes");
        let now = fs::read_to_string(&index).unwrap();
        assert!(now.starts_with(&before) && now.lines().count() == 2, "{now}");
    }
    let copy = Site::of(folder.path()).await;
    let all = registries(&project, vec![copy.entry()]);
    let found = gathered(&project, &all, &["alone@1.0.0"], Update::Nothing).await.unwrap();
    assert_eq!(found.resolution.chosen["alone"].version.to_string(), "1.0.0");
    // The same files in another archive count as changed bytes.
    site.edit("top", |line| line.sha256 = "0".repeat(64));
    let again = mirror(&client, folder.path(), &MirrorSelection::Everything).await.unwrap();
    assert_eq!(again.failed.len(), 2, "{:?}", again.failed);
}

#[tokio::test]
async fn dropped_version_stays_yanked_and_cannot_change() {
    let (project, folder) = (TestProject::new(), TempDir::new().unwrap());
    let site = origin(&project).await;
    let client = client(&project.data(), site.address());
    mirror(&client, folder.path(), &MirrorSelection::Everything).await.unwrap();
    let index = folder.path().join("index/v1/al/alone");
    let codes = async || {
        let again = mirror(&client, folder.path(), &MirrorSelection::Everything).await.unwrap();
        again.failed.iter().map(|one| one.error.code().to_owned()).collect::<Vec<_>>()
    };
    // The version disappears, and then comes back with other bytes.
    fs::remove_file(site.path("index/v1/al/alone")).unwrap();
    site.publish("alone", &skill("alone", "1.1.0", "Text."));
    assert_eq!(codes().await, ["version_dropped"]);
    let kept = fs::read_to_string(&index).unwrap();
    assert!(kept.contains("\"1.0.0\"") && kept.contains("\"yanked\":true"), "{kept}");
    assert!(codes().await.is_empty(), "the drop is reported once");
    site.publish("alone", &skill("alone", "1.0.0", "Evil."));
    assert_eq!(codes().await, ["version_changed"]);
    assert!(!fs::read_to_string(&index).unwrap().contains("Evil"));
    // The same if it was taken down in between.
    let before = fs::read_to_string(site.path("index/v1/al/alone")).unwrap();
    let gone = "{\"name\":\"alone\",\"version\":\"1.0.0\",\"withdrawn\":true}";
    let newer = before.lines().find(|line| line.contains("\"1.1.0\"")).unwrap();
    site.write("index/v1/al/alone", format!("{newer}\n{gone}\n").as_bytes());
    assert!(codes().await.is_empty(), "its registry says so");
    let kept = fs::read_to_string(&index).unwrap();
    assert!(kept.ends_with(&format!("{gone}\n")), "{kept}");
    site.write("index/v1/al/alone", before.as_bytes());
    assert_eq!(codes().await, ["version_changed"]);
    assert_eq!(fs::read_to_string(&index).unwrap(), kept, "the takedown stays");
    // A package that disappeared is reported, too.
    fs::remove_file(site.path("index/v1/to/top")).unwrap();
    site.list(&["acme/base", "alone"]);
    assert!(codes().await.iter().any(|code| code == "version_dropped"));
}

#[tokio::test]
async fn versions_differing_only_in_build_metadata_are_equal() {
    let (project, folder) = (TestProject::new(), TempDir::new().unwrap());
    let site = origin(&project).await;
    let client = client(&project.data(), site.address());
    site.publish("built", &skill("built", "1.0.0+build.7", "Text."));
    let what = MirrorSelection::Skills(vec![name("built")]);
    mirror(&client, folder.path(), &what).await.unwrap();
    fs::remove_file(site.path("index/v1/bu/built")).unwrap();
    site.publish("built", &skill("built", "1.0.0+build.9", "Evil."));
    for _ in 0..2 {
        let copied = mirror(&client, folder.path(), &what).await.unwrap();
        assert_eq!(copied.failed[0].error.code(), "version_changed");
        let index = fs::read_to_string(folder.path().join("index/v1/bu/built")).unwrap();
        assert!(index.contains("build.7") && !index.contains("build.9"), "{index}");
    }
    let gone = r#"{"name":"built","version":"1.0.0","withdrawn":true}"#;
    site.write("index/v1/bu/built", gone.as_bytes());
    let copied = mirror(&client, folder.path(), &what).await.unwrap();
    assert_eq!((copied.failed.len(), copied.removed.len()), (0, 1));
    fs::remove_file(site.path("index/v1/bu/built")).unwrap();
    site.publish("built", &skill("built", "1.0.0+build.7", "Text."));
    let copied = mirror(&client, folder.path(), &what).await.unwrap();
    assert_eq!(copied.failed[0].error.code(), "version_returned");
}

#[tokio::test]
async fn second_build_of_a_version_is_not_mirrored() {
    let (project, folder) = (TestProject::new(), TempDir::new().unwrap());
    let site = origin(&project).await;
    let client = client(&project.data(), site.address());
    for version in ["1.0.0", "1.0.0+b"] {
        site.publish("built", &skill("built", version, version));
    }
    let what = MirrorSelection::Skills(vec![name("built")]);
    for _ in 0..2 {
        mirror(&client, folder.path(), &what).await.unwrap();
        let index = fs::read_to_string(folder.path().join("index/v1/bu/built")).unwrap();
        assert_eq!(index.lines().count(), 1, "{index}");
    }
}

#[tokio::test]
async fn a_skill_and_a_namespace_may_have_the_same_name() {
    let (project, folder) = (TestProject::new(), TempDir::new().unwrap());
    let site = origin(&project).await;
    site.publish("acme/acorn", &skill("acorn", "1.0.0", "Text."));
    site.publish("acme", &skill("acme", "1.0.0", "Text."));
    let what = MirrorSelection::Skills(vec![name("acme/acorn"), name("acme")]);
    let client = client(&project.data(), site.address());
    let copied = mirror(&client, folder.path(), &what).await.unwrap();
    assert_eq!((copied.skills, copied.failed.len()), (2, 0));
    for index in ["index/v1/ac_/acme/acorn", "index/v1/ac/acme"] {
        assert!(folder.path().join(index).is_file(), "{index}");
    }
}

#[tokio::test]
async fn second_mirror_process_is_rejected() {
    let (project, folder) = (TestProject::new(), TempDir::new().unwrap());
    let site = origin(&project).await;
    let client = client(&project.data(), site.address());
    let busy = fs::File::create(folder.path().join(".savoir-mirror")).unwrap();
    busy.lock().unwrap();
    let error = mirror(&client, folder.path(), &MirrorSelection::Everything).await.unwrap_err();
    assert_eq!(error.code(), "busy");
    drop(busy);
    assert!(mirror(&client, folder.path(), &MirrorSelection::Everything).await.is_ok());
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert_eq!(
        mirror(&client, &file, &MirrorSelection::Everything).await.unwrap_err().code(),
        "io"
    );
}

#[tokio::test]
async fn taken_down_version_is_recorded_and_its_archive_removed() {
    let (project, folder) = (TestProject::new(), TempDir::new().unwrap());
    let site = origin(&project).await;
    // Another package has the same archive, which must stay.
    site.publish("alone", &skill("alone", "1.1.0", "More."));
    site.publish("other/alone", &skill("alone", "1.1.0", "More."));
    site.list(&["acme/base", "alone", "other/alone", "top"]);
    let client = client(&project.data(), site.address());
    let copied =
        async || mirror(&client, folder.path(), &MirrorSelection::Everything).await.unwrap();
    copied().await;
    let index = folder.path().join("index/v1/al/alone");
    let archives = || {
        let text = fs::read_to_string(site.path("index/v1/al/alone.before")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let there = lines.filter(|line: &serde_json::Value| {
            let (sha256, file) = (line["sha256"].as_str(), line["filename"].as_str());
            let path = format!("artifacts/{}/{}", sha256.unwrap(), file.unwrap());
            folder.path().join(path).exists()
        });
        let versions = there.map(|line| line["version"].as_str().unwrap().to_owned());
        versions.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    let before = fs::read_to_string(site.path("index/v1/al/alone")).unwrap();
    site.write("index/v1/al/alone.before", before.as_bytes());
    assert_eq!(archives(), ["1.0.0", "1.1.0"]);
    let gone = |version: &str| {
        format!("{{\"name\":\"alone\",\"version\":\"{version}\",\"withdrawn\":true}}\n")
    };
    let both = gone("1.1.0") + &gone("1.0.0");
    site.write("index/v1/al/alone", both.as_bytes());
    let report = copied().await;
    assert!(report.failed.is_empty(), "{:?}", report.failed);
    let removed: Vec<String> =
        report.removed.iter().map(|(name, version)| format!("{name} {version}")).collect();
    assert_eq!(removed, ["alone 1.0.0"]);
    assert_eq!(archives(), ["1.1.0"], "another skill has it still");
    assert!(copied().await.removed.is_empty(), "a removal is reported once");
    // The registry drops the takedown, or publishes the version again; the mirror keeps the
    // takedown.
    site.write("index/v1/al/alone", gone("1.1.0").as_bytes());
    copied().await;
    assert_eq!(fs::read_to_string(&index).unwrap(), both);
    site.write("index/v1/al/alone", before.as_bytes());
    let codes: Vec<String> =
        copied().await.failed.iter().map(|failed| failed.error.code().to_owned()).collect();
    assert_eq!(codes, ["version_returned", "version_returned"]);
    assert_eq!(fs::read_to_string(&index).unwrap(), both);
    assert_eq!(archives(), ["1.1.0"]);
}
