//! Tests of versions that were taken down, and of registries that no longer exist.

use std::collections::BTreeSet;

use savoir_package::{
    registry::{GatherNote, Registries, RegistryEntry, check_still_available},
    resolve::Update,
};
use semver::Version;

use super::{gathered, installed, registries, site::Site, take, versions};
use crate::install::test_project::{TestProject, gaia};

fn publish(project: &TestProject, site: &Site, name: &str, version: &str) {
    let last = name.rsplit('/').next().unwrap();
    site.publish(name, &project.signed(last, version, &gaia(last, version, &[], &[])));
}

/// A project with `calm` 1.1.0 installed, of which 1.0.0 exists, too.
async fn project_with_one_registry() -> (TestProject, Site, Registries) {
    let (project, site) = (TestProject::new(), Site::start().await);
    publish(&project, &site, "calm", "1.0.0");
    publish(&project, &site, "calm", "1.1.0");
    let all = registries(&project, vec![site.entry()]);
    assert_eq!(installed(&project, &all, &["calm"]).await, ["calm 1.1.0"]);
    (project, site, all)
}

fn note(reason: &str) -> GatherNote {
    let (name, version) = ("calm".to_owned(), Version::new(1, 1, 0));
    GatherNote::TakenDown { name, version, reason: Some(reason.to_owned()) }
}

#[tokio::test]
async fn requesting_taken_down_version_again_installs_another() {
    let (project, site, all) = project_with_one_registry().await;
    site.take_down("calm", "1.1.0", "it steals");
    let found = gathered(&project, &all, &[], Update::Nothing).await.unwrap();
    assert_eq!((found.arrivals.len(), found.notes), (0, vec![note("it steals")]));
    let found = gathered(&project, &all, &["calm"], Update::Nothing).await.unwrap();
    assert_eq!(found.notes, []);
    take(&project, &found);
    assert_eq!(versions(&project), ["calm 1.0.0"]);
}

#[tokio::test]
async fn update_replaces_or_keeps_taken_down_version() {
    let (project, site, all) = project_with_one_registry().await;
    publish(&project, &site, "other", "1.0.0");
    assert_eq!(installed(&project, &all, &["other"]).await, ["calm 1.1.0", "other 1.0.0"]);
    site.take_down("calm", "1.1.0", "it steals");
    publish(&project, &site, "other", "1.2.0");
    let state = project.skill_set().state().unwrap();
    take(&project, &gathered(&project, &all, &[], Update::All).await.unwrap());
    assert_eq!(versions(&project), ["calm 1.0.0", "other 1.2.0"]);
    // All versions are taken down, which must not prevent updates of other skills.
    site.take_down("calm", "1.0.0", "it steals, too");
    publish(&project, &site, "other", "1.3.0");
    let found = gathered(&project, &all, &[], Update::All).await.unwrap();
    assert_eq!(found.notes.len(), 1, "{:?}", found.notes);
    take(&project, &found);
    assert_eq!(versions(&project), ["calm 1.0.0", "other 1.3.0"]);
    // An old lock cannot install it, neither from the registry nor from a cache.
    let locked = &state.lock.skills["calm"];
    let error = all.fetch_locked("calm", locked).await.unwrap_err();
    assert_eq!(error.code(), "taken_down");
    assert!(error.to_string().contains("was taken down: it steals;"), "{error}");
    let names: BTreeSet<String> = ["calm".to_owned(), "other".to_owned()].into();
    let error = check_still_available(&all, &state, &names).await.unwrap_err();
    assert_eq!(error.code(), "taken_down");
    let names: BTreeSet<String> = ["other".to_owned()].into();
    assert!(check_still_available(&all, &state, &names).await.unwrap().is_empty());
}

#[tokio::test]
async fn taken_down_skill_is_not_reported_as_unknown() {
    let (_, site, _) = project_with_one_registry().await;
    let other = TestProject::new();
    let all = registries(&other, vec![site.entry()]);
    site.take_down("calm", "1.1.0", "it steals");
    let error = gathered(&other, &all, &["calm@1.1.0"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "version_conflict");
    let hint = "`calm` 1.1.0 was taken down by its registry: it steals";
    assert!(error.hints().iter().any(|said| said == hint), "{:?}", error.hints());
    site.take_down("calm", "1.0.0", "it steals, too");
    let error = gathered(&other, &all, &["calm"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "taken_down", "{error}");
    assert!(error.to_string().contains("`calm` 1.1.0 in"), "{error}");
    assert_eq!(error.hints(), Vec::<String>::new());
}

#[tokio::test]
async fn unresponsive_registry_does_not_unlock_versions() {
    let (project, site, other) = (TestProject::new(), Site::start().await, Site::start().await);
    publish(&project, &site, "acme/calm", "1.0.0");
    publish(&project, &other, "world/quiet", "1.0.0");
    let owned = |site: &Site, namespace: &str| RegistryEntry {
        namespaces: vec![namespace.to_owned()],
        ..site.entry()
    };
    let entries = || vec![owned(&site, "acme"), owned(&other, "world")];
    let all = registries(&project, entries());
    installed(&project, &all, &["acme/calm", "world/quiet"]).await;
    let state = project.skill_set().state().unwrap();
    let names: BTreeSet<String> = ["calm".to_owned(), "quiet".to_owned()].into();
    site.take_down("acme/calm", "1.0.0", "it steals");
    let entries = entries();
    other.stop().await;
    // An answer of one registry counts even if another does not answer.
    let error = check_still_available(&all, &state, &names).await.unwrap_err();
    assert_eq!(error.code(), "taken_down");
    let quiet: BTreeSet<String> = ["quiet".to_owned()].into();
    assert!(check_still_available(&all, &state, &quiet).await.unwrap().contains_key("quiet"));
    // A cached takedown counts even if the registry no longer answers.
    site.stop().await;
    let later = registries(&project, entries);
    let error = check_still_available(&later, &state, &names).await.unwrap_err();
    assert_eq!(error.code(), "taken_down", "{error}");
}

#[tokio::test]
async fn removed_registry_does_not_block_others() {
    let (project, lost, living) = (TestProject::new(), Site::start().await, Site::start().await);
    publish(&project, &lost, "acme/old", "1.0.0");
    let all = registries(&project, vec![lost.entry()]);
    assert_eq!(installed(&project, &all, &["acme/old"]).await, ["old 1.0.0"]);
    let address = lost.address().to_owned();
    lost.stop().await;
    publish(&project, &living, "new", "1.0.0");
    let all = registries(&project, vec![living.entry()]);
    let found = gathered(&project, &all, &["new"], Update::Nothing).await.unwrap();
    let [GatherNote::Unanswered { registry, names, why }] = &found.notes[..] else {
        panic!("{:?}", found.notes)
    };
    assert_eq!((registry, &names[..]), (&address, &["acme/old".to_owned()][..]));
    assert!(!why.is_empty());
    take(&project, &found);
    assert_eq!(versions(&project), ["new 1.0.0", "old 1.0.0"]);
    // The error names the registry and the requested skill.
    let error = gathered(&project, &all, &["acme/old"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "unreachable");
    for said in [&address, "`acme/old`"] {
        assert!(error.to_string().contains(said), "{error}");
    }
    let known = RegistryEntry { namespaces: vec!["acme".to_owned()], ..living.entry() };
    let moved = registries(&project, vec![known]);
    let state = project.skill_set().state().unwrap();
    let error =
        check_still_available(&moved, &state, &["old".to_owned()].into()).await.unwrap_err();
    assert_eq!(error.code(), "wrong_registry");
}
