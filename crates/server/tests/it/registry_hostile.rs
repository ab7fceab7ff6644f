//! Publishes malicious archives: the registry must reject each with the same error code as the
//! other commands.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use savoir_package::{
    File, Tree, archive,
    limits::MAX_ARCHIVE_BYTES,
    submission::{PublishOptions, Submission},
};
use serde_json::Value;

use crate::{
    harness::TestServer,
    registry_publish::{SKILLS, publish},
};

/// The malicious inputs, sorted; `None` if their generator is not available.
fn inputs(place: &Path) -> Option<Vec<PathBuf>> {
    let generator = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/badinputs/gen.py");
    let Ok(generator) = generator.canonicalize() else {
        eprintln!("=== SKIPPED: the hostile inputs are not beside the repository ===");
        return None;
    };
    let made = Command::new("python3").arg(generator).current_dir(place).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let entries = fs::read_dir(place.join("in")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    Some(paths)
}

/// An archive with a file that our own packer rejects.
fn zipped(place: &Path, file: &Path) -> Vec<u8> {
    let folder = place.join("zipped/demo");
    fs::create_dir_all(&folder).unwrap();
    fs::copy(file, folder.join("SKILL.md")).unwrap();
    let mut zip = Command::new("python3");
    zip.args(["-m", "zipfile", "-c", "../zipped.zip", "demo"]).current_dir(place.join("zipped"));
    let made = zip.output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    fs::read(place.join("zipped.zip")).unwrap()
}

/// The archive to publish for an input, and the expected error code; no code if it is accepted.
fn sent(place: &Path, path: &Path) -> Option<(Vec<u8>, Option<&'static str>)> {
    let bytes = fs::read(path).unwrap();
    let bytes = match path.extension()?.to_str()? {
        "zip" => bytes,
        "md" => {
            let mut tree = Tree::default();
            let file = File { bytes, executable: false };
            let folder = if path.ends_with("31_yaml_norway.md") { "no" } else { "demo" };
            match tree.add("SKILL.md".into(), file) {
                Ok(()) => archive::pack(folder, &tree).unwrap(),
                Err(_) => zipped(place, path),
            }
        }
        _ => return None,
    };
    let reason = match Submission::read(&bytes, &PublishOptions::default()) {
        Err(refused) => Some(refused.code()),
        // A nested archive causes a warning; it is not unpacked.
        Ok(found) => {
            assert!(path.ends_with("08_nested_zip.zip"), "{} is accepted", path.display());
            assert_eq!(found.warnings[0].rule, "nested-archive");
            None
        }
    };
    Some((bytes, reason))
}

#[tokio::test]
async fn hostile_inputs_are_rejected_with_the_expected_reason() {
    let place = tempfile::tempdir().unwrap();
    let Some(inputs) = inputs(place.path()) else { return };
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let (mut reasons, mut count) = (BTreeSet::new(), 0);
    for path in &inputs {
        let Some((bytes, reason)) = sent(place.path(), path) else { continue };
        count += 1;
        let reply = publish(&ada, "", bytes).await;
        let (status, shown) = (reply.status.as_u16(), path.display());
        let Some(reason) = reason else {
            assert_eq!(status, 201, "{shown}: {}", reply.text);
            continue;
        };
        assert!((400..500).contains(&status), "{shown}: {status}");
        assert_eq!(reply.json()["error"]["reason"], reason, "{shown}");
        reasons.insert(reason);
    }
    assert_eq!(count, 37, "each archive, and each text as who publishes packs it");
    assert!(reasons.len() >= 20, "{reasons:?}");
    let list = server.stranger().get(SKILLS).await.json();
    let there: Vec<&Value> =
        list["items"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(there, ["demo"], "nothing is left of those that were refused");
}

/// The size is checked before the content is read.
#[tokio::test]
async fn oversized_archive_is_rejected_without_reading_it() {
    let place = tempfile::tempdir().unwrap();
    let Some(inputs) = inputs(place.path()) else { return };
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let mut count = 0;
    for path in inputs {
        let bytes = fs::read(&path).unwrap();
        if bytes.len() as u64 > MAX_ARCHIVE_BYTES {
            let reply = publish(&ada, "", bytes).await;
            assert_eq!(reply.status, 413, "{}: {}", path.display(), reply.text);
            assert_eq!(reply.json()["error"]["code"], "artifact_too_large", "{}", reply.text);
            count += 1;
        }
    }
    assert!(count > 0, "none is so large");
}
