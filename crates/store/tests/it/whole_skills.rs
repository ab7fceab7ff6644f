//! Tests of skills with files beside their `SKILL.md`.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use bytes::Bytes;
use savoir_store::{Resource, SkillFiles, Storage, StoreError, WriteError};

use crate::harness::for_each_storage;

fn resource(path: &str, text: &str) -> Resource {
    Resource { path: path.to_owned(), bytes: Bytes::from(text.to_owned()), executable: false }
}

async fn paths(skills: &SkillFiles, name: &str) -> Vec<String> {
    skills.resources(name).await.unwrap().into_iter().map(|entry| entry.path).collect()
}

async fn text(skills: &SkillFiles, name: &str, path: &str) -> Option<String> {
    let found = skills.resource(name, path, 1024).await.unwrap()?;
    Some(String::from_utf8(found.bytes.to_vec()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn skill_files_are_replaced_and_deleted_together() {
    for_each_storage(async |files| {
        let (skills, other) = (files.storage.skills(), files.again().skills());
        assert!(paths(&skills, "a").await.is_empty());
        let script = Resource { executable: true, ..resource("scripts/run.sh", "#!") };
        let both = vec![resource("references/ä.md", "one"), script.clone()];
        let made = skills.put("a", "text", both, None).await.unwrap();
        assert_eq!(&*made.text, "text");
        assert_eq!(paths(&other, "a").await, ["references/ä.md", "scripts/run.sh"]);
        assert_eq!(other.resources("a").await.unwrap()[0].size, 3);
        let found = other.resource("a", "scripts/run.sh", 2).await.unwrap();
        assert_eq!(found, Some(script), "with its right to be run");
        let large = other.resource("a", "references/ä.md", 2).await.unwrap_err();
        assert!(matches!(large, StoreError::File { .. }), "{large}");

        let taken = skills.put("a", "x", Vec::new(), None).await.unwrap_err();
        assert!(matches!(taken, WriteError::Exists { has_file: true, .. }), "{taken}");
        let late = skills.put("a", "x", Vec::new(), Some("other")).await.unwrap_err();
        assert!(matches!(late, WriteError::Changed), "{late}");
        let gone = skills.put("b", "x", Vec::new(), Some("other")).await.unwrap_err();
        assert!(matches!(gone, WriteError::Missing), "{gone}");
        assert_eq!(text(&other, "a", "references/ä.md").await.unwrap(), "one", "nothing is lost");

        // Replacing the text keeps the files; replacing the whole skill does not.
        let edited = other.replace("a", "edited", &made.version).await.unwrap();
        assert_eq!(paths(&skills, "a").await.len(), 2);
        let second = vec![resource("assets/b.txt", "two")];
        let replaced = skills.put("a", "new", second, Some(&edited.version)).await.unwrap();
        assert_eq!(replaced.created_at, made.created_at, "it was not made again");
        assert_ne!(replaced.version, edited.version);
        assert_eq!(paths(&other, "a").await, ["assets/b.txt"]);
        assert_eq!(text(&other, "a", "references/ä.md").await, None);
        let again = other.replace("a", "edited again", &replaced.version).await.unwrap();
        assert_eq!(text(&skills, "a", "assets/b.txt").await.unwrap(), "two");

        other.delete("a", Some(&again.version)).await.unwrap();
        assert!(files.storage.list("skills/a").await.unwrap().is_empty(), "with all its files");
        assert!(paths(&skills, "a").await.is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_resource_paths_are_rejected() {
    for_each_storage(async |files| {
        let skills = files.storage.skills();
        files.storage.put("secret.txt", Bytes::from_static(b"secret")).await.unwrap();
        skills.put("b", "b", vec![resource("secret.md", "secret")], None).await.unwrap();
        let made = skills.put("a", "a", vec![resource("x/y.md", "y")], None).await.unwrap();
        let long = "x".repeat(256);
        for path in [
            "", ".", "..", "../b/secret.md", "../../secret.txt", "/etc/passwd", "x//y.md", "x/",
            "SKILL.md", "SKILL.md.lock", ".hidden", ".tmp-x", "x/.git/config", "a\\b", "c:x",
            "a\0b", "__MACOSX/x", &long,
        ] {
            assert_eq!(skills.resource("a", path, 1024).await.unwrap(), None, "{path:?}");
            let written =
                skills.put("a", "x", vec![resource(path, "x")], Some(&made.version)).await;
            assert!(matches!(written, Err(WriteError::Store(_))), "{path:?}");
        }
        for name in ["", "..", "a/x", "A"] {
            assert!(skills.resources(name).await.unwrap().is_empty());
            assert_eq!(skills.resource(name, "y.md", 1024).await.unwrap(), None);
            assert!(skills.put(name, "x", Vec::new(), None).await.is_err());
        }
        // A file and a folder cannot have the same name: the old skill stays unchanged.
        let clash = vec![resource("x/y.md", "new"), resource("x/y.md/z", "new")];
        if skills.put("a", "new", clash, Some(&made.version)).await.is_err() {
            assert_eq!(&*skills.read("a").await.unwrap().unwrap().text, "a");
            assert_eq!(text(&skills, "a", "x/y.md").await.unwrap(), "y");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_added_by_hand_are_listed() {
    for_each_storage(async |files| {
        let (storage, skills) = (&files.storage, files.storage.skills());
        let put = async |key: &str| storage.put(key, Bytes::from_static(b"x")).await.unwrap();
        put("skills/a/SKILL.md").await;
        put("skills/a/references/b.md").await;
        put("skills/a/notes.txt").await;
        put("skills/a/.env").await;
        assert_eq!(paths(&skills, "a").await, ["notes.txt", "references/b.md"]);
        assert_eq!(text(&skills, "a", ".env").await, None);
        let version = skills.read("a").await.unwrap().unwrap().version;
        skills.put("a", "new", vec![resource("c.md", "c")], Some(&version)).await.unwrap();
        assert_eq!(paths(&skills, "a").await, ["c.md"]);
    })
    .await;
}

#[test]
fn symlinked_resources_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let skills = Storage::folder(folder.path()).unwrap().skills();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        std::fs::write(folder.path().join("secret"), "secret").unwrap();
        skills.put("a", "a", vec![resource("x.md", "x")], None).await.unwrap();
        let own = folder.path().join("skills/a");
        std::os::unix::fs::symlink(folder.path().join("secret"), own.join("link.md")).unwrap();
        std::os::unix::fs::symlink(folder.path(), own.join("up")).unwrap();
        assert_eq!(paths(&skills, "a").await, ["x.md"]);
        assert_eq!(text(&skills, "a", "link.md").await, None);
        assert_eq!(text(&skills, "a", "up/secret").await, None);
        std::os::unix::fs::symlink("a", folder.path().join("skills/b")).unwrap();
        let version = skills.read("b").await.unwrap().unwrap().version;
        let linked = skills.put("b", "x", Vec::new(), Some(&version)).await.unwrap_err();
        assert!(linked.to_string().contains("is a link"), "{linked}");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_put_succeeds_once() {
    for_each_storage(async |files| {
        let made = files.storage.skills().put("a", "0", Vec::new(), None).await.unwrap();
        let tasks: Vec<_> = (1..8)
            .map(|n: u32| {
                let (skills, version) = (files.again().skills(), made.version.clone());
                tokio::spawn(async move {
                    let own = vec![resource("n.txt", &n.to_string())];
                    skills.put("a", &n.to_string(), own, Some(&version)).await
                })
            })
            .collect();
        let mut done = Vec::new();
        for task in tasks {
            match task.await.unwrap() {
                Ok(file) => done.push(file.text.to_string()),
                Err(WriteError::Changed) => {}
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(done.len(), 1);
        let skills = files.storage.skills();
        assert_eq!(&*skills.read("a").await.unwrap().unwrap().text, done[0]);
        assert_eq!(text(&skills, "a", "n.txt").await.unwrap(), done[0], "never a mix");
    })
    .await;
}

/// The folder in which the child process writes until it is killed.
const DOOMED: &str = "SAVOIR_TEST_DOOMED_FOLDER";

#[test]
#[ignore = "runs in a process of its own, which is killed"]
fn write_skills_until_killed() {
    let Some(folder) = std::env::var_os(DOOMED).map(PathBuf::from) else { return };
    let skills = Storage::folder(&folder).unwrap().skills();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for n in 0..100_000u32 {
            let version = skills.read("a").await.unwrap().unwrap().version;
            let files = (0..5).map(|file| resource(&format!("f/{file}.txt"), &n.to_string()));
            skills.put("a", &n.to_string(), files.collect(), Some(&version)).await.unwrap();
        }
    });
}

#[test]
fn killed_writer_leaves_old_or_new_skill() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let open = |path: &Path| Storage::folder(path).unwrap().skills();
    runtime.block_on(async {
        open(folder.path()).put("a", "start", Vec::new(), None).await.unwrap();
    });
    let mut seen = BTreeSet::new();
    for round in 0..6u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "whole_skills::write_skills_until_killed"])
            .env(DOOMED, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(150 + 37 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        runtime.block_on(async {
            let skills = open(folder.path());
            let file = skills.read("a").await.unwrap().expect("it is there");
            seen.insert(file.text.to_string());
            for path in paths(&skills, "a").await {
                assert_eq!(text(&skills, "a", &path).await.unwrap(), &*file.text, "{path}");
            }
            // No lock is left over, so the skill can be changed.
            skills.replace("a", &file.text, &file.version).await.unwrap();
        });
    }
    assert!(seen.len() > 1, "something was written: {seen:?}");
}
