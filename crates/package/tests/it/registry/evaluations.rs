//! Tests of versions whose signed evaluations cannot be read.

use savoir_package::{
    registry::{
        GatherNote,
        mirror::{MirrorSelection, mirror},
    },
    resolve::Update,
};
use semver::Version;
use serde_json::json;
use tempfile::TempDir;

use super::{client, gathered, name, registries, site::Site, take, versions};
use crate::install::test_project::{TestProject, skill};

const ROUTE: &str = "api/v1/skills/calm/1.0.0/attestations";

#[tokio::test]
async fn version_with_unreadable_evaluations_is_installed_and_mirrored() {
    let (project, site) = (TestProject::new(), Site::start().await);
    site.publish_as("calm", &skill("calm", "1.0.0", "Text."), |line| line.attestations = 2);
    site.write(ROUTE, &vec![b' '; 5 << 20]);
    let all = registries(&project, vec![site.entry()]);
    let found = gathered(&project, &all, &["calm"], Update::Nothing).await.unwrap();
    assert!(matches!(found.notes[..], [GatherNote::NoEvaluations { .. }]), "{:?}", found.notes);
    take(&project, &found);
    assert_eq!(versions(&project), ["calm 1.0.0"]);
    let folder = TempDir::new().unwrap();
    let client = client(&project.data(), site.address());
    let calm = MirrorSelection::Skills(vec![name("calm")]);
    let copied = mirror(&client, folder.path(), &calm).await.unwrap();
    assert_eq!((copied.versions, copied.failed.len()), (1, 1));
    assert!(folder.path().join("index/v1/ca/calm").exists());
}

#[tokio::test]
async fn evaluations_of_unknown_form_are_skipped() {
    let (project, site) = (TestProject::new(), Site::start().await);
    let item = |verdict: &str| {
        json!({
            "id": "1", "key_id": "k", "statement": {},
            "evaluation": {
                "verdict": verdict, "trials": 1, "all_trials": 1, "invalid_trials": 0,
                "host": {"name": "savoir", "version": "0.1.0", "model": "ollama:m"},
                "eval_set": "ab", "harness": "savoir 0.1.0", "finished": "2026-01-01T00:00:00Z",
            },
        })
    };
    let items = json!({"items": [item("excellent"), 7, item("pass")]}).to_string();
    site.write(ROUTE, items.as_bytes());
    let client = client(&project.data(), site.address());
    let found = client.attestations(&name("calm"), &Version::new(1, 0, 0), &[]).await.unwrap();
    assert_eq!(found.items.len(), 1);
}
