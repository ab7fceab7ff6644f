use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use savoir_store::{SkillFiles, Storage, StoreError, WriteError};

use crate::harness::for_each_storage;

async fn names(skills: &SkillFiles) -> Vec<String> {
    let names = skills.keys().await.unwrap();
    let listed: Vec<_> = skills.list().await.unwrap().into_iter().map(|file| file.key).collect();
    assert!(listed.iter().all(|name| names.contains(name)));
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn skill_file_lifecycle() {
    for_each_storage(async |files| {
        let (skills, other) = (files.storage.skills(), files.again().skills());
        assert!(names(&skills).await.is_empty());
        assert_eq!(skills.read("a-1").await.unwrap(), None);
        let made = skills.create("a-1", "text ä").await.unwrap();
        assert_eq!((made.key.as_str(), &*made.text), ("a-1", "text ä"));
        assert_eq!(other.read("a-1").await.unwrap().as_ref(), Some(&made));
        assert_eq!(other.list().await.unwrap(), std::slice::from_ref(&made));
        let again = skills.create("a-1", "other").await.unwrap_err();
        assert!(matches!(again, WriteError::Exists { has_file: true, .. }), "{again}");

        let changed = other.replace("a-1", "more text", &made.version).await.unwrap();
        assert_ne!(changed.version, made.version);
        assert_eq!(changed.created_at, made.created_at);
        assert!(changed.updated_at >= made.updated_at);
        assert_eq!(skills.read("a-1").await.unwrap().as_ref(), Some(&changed));
        let late = skills.replace("a-1", "lost", &made.version).await.unwrap_err();
        assert!(matches!(late, WriteError::Changed), "{late}");
        let missing = skills.replace("b", "x", &made.version).await.unwrap_err();
        assert!(matches!(missing, WriteError::Missing), "{missing}");

        files.storage.put("skills/a-1/scripts/run.py", Bytes::new()).await.unwrap();
        skills.create("b", "b").await.unwrap();
        assert_eq!(names(&other).await, ["a-1", "b"]);
        let old = other.delete("a-1", Some("another")).await;
        assert!(matches!(old, Err(WriteError::Changed)));
        other.delete("a-1", None).await.unwrap();
        assert!(matches!(skills.delete("a-1", None).await, Err(WriteError::Missing)));
        assert_eq!(skills.read("a-1").await.unwrap(), None);
        assert_eq!(names(&skills).await, ["b"]);
        assert!(
            files.storage.list("skills/a-1").await.unwrap().is_empty(),
            "with all that is in it"
        );
        skills.create("a-1", "new").await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_create_succeeds_once() {
    for_each_storage(async |files| {
        for round in 0..3 {
            let tasks: Vec<_> = (0..8)
                .map(|n| {
                    let skills = files.again().skills();
                    tokio::spawn(async move {
                        skills.create(&format!("same-{round}"), &format!("text {n}")).await
                    })
                })
                .collect();
            let mut made = Vec::new();
            for task in tasks {
                match task.await.unwrap() {
                    Ok(file) => made.push(file),
                    Err(WriteError::Exists { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
            assert_eq!(made.len(), 1);
            let found = files.storage.skills().read(&made[0].key).await.unwrap();
            assert_eq!(found.as_ref(), Some(&made[0]));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_replace_succeeds_once() {
    for_each_storage(async |files| {
        let made = files.storage.skills().create("a", "text").await.unwrap();
        let tasks: Vec<_> = (0..8)
            .map(|n| {
                let (skills, version) = (files.again().skills(), made.version.clone());
                tokio::spawn(
                    async move { skills.replace("a", &format!("text {n}"), &version).await },
                )
            })
            .collect();
        let mut texts = BTreeSet::new();
        for task in tasks {
            match task.await.unwrap() {
                Ok(file) => assert!(texts.insert(file.text.to_string())),
                Err(WriteError::Changed) => {}
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(texts.len(), 1);
        let found = files.storage.skills().read("a").await.unwrap().unwrap();
        assert!(texts.contains(&*found.text));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_skill_names_are_rejected() {
    for_each_storage(async |files| {
        let skills = files.storage.skills();
        files.storage.put("secret/SKILL.md", Bytes::from_static(b"secret")).await.unwrap();
        for name in ["", ".", "..", "../secret", "a/b", "A", "ä", "a_b", "a\0", &"x".repeat(65)] {
            assert_eq!(skills.read(name).await.unwrap(), None, "{name:?}");
            assert!(matches!(skills.create(name, "x").await, Err(WriteError::Store(_))));
            assert!(matches!(skills.replace(name, "x", "v").await, Err(WriteError::Missing)));
            assert!(
                matches!(skills.delete(name, None).await, Err(WriteError::Missing)),
                "{name:?}"
            );
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_created_by_hand_are_found() {
    for_each_storage(async |files| {
        let (storage, skills) = (&files.storage, files.storage.skills());
        let put = async |key: &str, bytes: &[u8]| {
            storage.put(key, Bytes::copy_from_slice(bytes)).await.unwrap();
        };
        put("skills/Upper/SKILL.md", b"x").await;
        put("skills/empty/notes.txt", b"x").await;
        put("skills/binary/SKILL.md", b"\xff\xfe").await;
        put("skills/large/SKILL.md", &vec![b'x'; (1 << 20) + 1]).await;
        put("skills/full/SKILL.md", &vec![b'x'; 1 << 20]).await;
        put("skills/SKILL.md", b"x").await;
        assert_eq!(names(&skills).await, ["binary", "full", "large"]);
        let listed = skills.list().await.unwrap();
        assert_eq!(listed.iter().map(|file| file.key.as_str()).collect::<Vec<_>>(), ["full"]);
        for name in ["binary", "large"] {
            for _ in 0..2 {
                let error = skills.read(name).await.unwrap_err();
                assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
            }
        }
        assert_eq!(skills.read("empty").await.unwrap(), None);
        for (name, expected, file) in [("upper", "Upper", true), ("empty", "empty", false)] {
            match skills.create(name, "x").await.unwrap_err() {
                WriteError::Exists { existing, has_file } => {
                    assert_eq!((existing.as_str(), has_file), (expected, file));
                }
                other => panic!("{other}"),
            }
        }
        // Files that are not valid text can be replaced and deleted.
        let binary = skills.read_lossy("binary").await.unwrap().unwrap();
        assert_eq!(&*binary.text, "\u{fffd}\u{fffd}");
        let wrong = skills.replace("binary", "x", "another version").await.unwrap_err();
        assert!(matches!(wrong, WriteError::Changed), "{wrong}");
        let fixed = skills.replace("binary", "text", &binary.version).await.unwrap();
        assert_eq!(&*fixed.text, "text");
        put("skills/binary/SKILL.md", b"\xff\xfe").await;
        let large = skills.read_lossy("large").await.unwrap().unwrap();
        skills.delete("large", Some(&large.version)).await.unwrap();
        assert_eq!(skills.read("large").await.unwrap(), None);
        skills.delete("binary", None).await.unwrap();
        put("skills/full/SKILL.md", b"short now").await;
        assert_eq!(&*skills.read("full").await.unwrap().unwrap().text, "short now");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_file_is_not_read_again() {
    for_each_storage(async |files| {
        let skills = files.storage.skills();
        skills.create("a", "text").await.unwrap();
        // A file that changed recently is always read again, because it could change twice within
        // the clock's resolution.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let first = skills.read("a").await.unwrap().unwrap();
        let second = skills.read("a").await.unwrap().unwrap();
        assert!(Arc::ptr_eq(&first.text, &second.text));
        let listed = skills.list().await.unwrap();
        assert!(Arc::ptr_eq(&first.text, &listed[0].text));
    })
    .await;
}

fn folder() -> (tempfile::TempDir, Storage, std::path::PathBuf) {
    let temp = tempfile::TempDir::new().unwrap();
    let storage = Storage::folder(&temp.path().join("data")).unwrap();
    let root = temp.path().join("data/skills");
    std::fs::create_dir_all(&root).unwrap();
    (temp, storage, root)
}

#[tokio::test(flavor = "multi_thread")]
async fn manual_edits_are_seen_immediately() {
    let (_temp, storage, root) = folder();
    let skills = storage.skills();
    let made = skills.create("a", "text 0").await.unwrap();
    let path = root.join("a/SKILL.md");
    assert!(root.join("a/SKILL.md.lock").exists());
    for n in 1..50 {
        // The new text has the same length and is in the same file.
        std::fs::write(&path, format!("text {}", n % 10)).unwrap();
        let read = skills.read("a").await.unwrap().unwrap();
        assert_eq!(*read.text, *format!("text {}", n % 10));
    }
    let late = skills.replace("a", "lost", &made.version).await.unwrap_err();
    assert!(matches!(late, WriteError::Changed));
    let current = skills.read("a").await.unwrap().unwrap();
    std::fs::remove_file(root.join("a/SKILL.md.lock")).unwrap();
    std::fs::write(root.join("a/.tmp-left"), "x").unwrap();
    skills.replace("a", "fine", &current.version).await.unwrap();
    let names: BTreeSet<_> =
        std::fs::read_dir(root.join("a")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, BTreeSet::from(["SKILL.md".into(), "SKILL.md.lock".into()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn symlinks_out_of_the_folder_are_ignored() {
    let (temp, storage, root) = folder();
    let outside = temp.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("SKILL.md"), "secret").unwrap();
    let skills = storage.skills();
    skills.create("good", "good").await.unwrap();
    let link = |from: &Path, to: &Path| std::os::unix::fs::symlink(from, to).unwrap();
    link(&outside, &root.join("folder"));
    std::fs::create_dir(root.join("file")).unwrap();
    link(&outside.join("SKILL.md"), &root.join("file/SKILL.md"));
    link(&root.join("good"), &root.join("alias"));
    link(Path::new("/nowhere"), &root.join("broken"));
    std::fs::create_dir(root.join("lock")).unwrap();
    std::fs::write(root.join("lock/SKILL.md"), "x").unwrap();
    link(&outside.join("made"), &root.join("lock/SKILL.md.lock"));

    assert_eq!(names(&skills).await, ["alias", "good", "lock"]);
    for name in ["folder", "file", "broken"] {
        assert_eq!(skills.read(name).await.unwrap(), None, "{name}");
        assert!(matches!(skills.create(name, "x").await, Err(WriteError::Exists { .. })));
        assert!(skills.replace(name, "x", "v").await.is_err());
    }
    assert!(matches!(skills.delete("folder", None).await, Err(WriteError::Missing)));
    let version = skills.read("lock").await.unwrap().unwrap().version;
    assert!(skills.replace("lock", "y", &version).await.is_err());
    assert!(!outside.join("made").exists());
    assert_eq!(&*skills.read("alias").await.unwrap().unwrap().text, "good");
    skills.delete("alias", None).await.unwrap();
    assert_eq!(&*skills.read("good").await.unwrap().unwrap().text, "good");
    assert_eq!(std::fs::read_to_string(outside.join("SKILL.md")).unwrap(), "secret");
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_never_see_partial_files() {
    let (_temp, storage, _root) = folder();
    let skills = storage.skills();
    let mut version = skills.create("a", &"0".repeat(100_000)).await.unwrap().version;
    let reader = tokio::spawn({
        let skills = storage.skills();
        async move {
            for _ in 0..200 {
                let text = skills.read("a").await.unwrap().unwrap().text;
                assert_eq!(text.len(), 100_000);
                assert_eq!(text.bytes().collect::<BTreeSet<_>>().len(), 1);
            }
        }
    });
    for n in 1..20 {
        let text = (n % 10).to_string().repeat(100_000);
        version = skills.replace("a", &text, &version).await.unwrap().version;
    }
    reader.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_create_and_delete_are_atomic() {
    let (_temp, storage, root) = folder();
    let tasks: Vec<_> = (0..8)
        .map(|n| {
            let skills = storage.skills();
            tokio::spawn(async move {
                let (mut made, mut removed) = (0, 0);
                for _ in 0..10 {
                    if n % 2 == 0 {
                        made += i32::from(skills.create("a", "x").await.is_ok());
                    } else {
                        removed += i32::from(skills.delete("a", None).await.is_ok());
                    }
                }
                made - removed
            })
        })
        .collect();
    let mut left = 0;
    for task in tasks {
        left += task.await.unwrap();
    }
    assert_eq!(left, i32::from(root.join("a").exists()));
    let unfinished = std::fs::read_dir(&root).unwrap().flatten();
    assert!(unfinished.into_iter().all(|e| !e.file_name().to_string_lossy().starts_with(".tmp-")));
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_folder_sync_is_not_an_error() {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    let (_temp, storage, root) = folder();
    let skills = storage.skills();
    let made = skills.create("a", "text").await.unwrap();
    // Files in this folder can be written, but the folder itself cannot be opened and synced.
    fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o300)).unwrap();
    let changed = skills.replace("a", "more text", &made.version).await;
    fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(&*changed.unwrap().text, "more text");
    assert_eq!(&*skills.read("a").await.unwrap().unwrap().text, "more text");
}
