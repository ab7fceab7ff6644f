//! Tests of the choice of versions.

use savoir_package::{
    install::{FetchReason, PlannedChange, UserEdits},
    registry::GatherNote,
    resolve::Update,
};

use super::{gathered, installed, registries, site::Site, take, versions};
use crate::install::test_project::{TestProject, gaia, skill};

/// Publishes a signed skill with dependencies.
fn publish(project: &TestProject, site: &Site, name: &str, version: &str, needs: &[&str]) {
    let last = name.rsplit('/').next().unwrap();
    let tree = project.signed(last, version, &gaia(last, version, &[], needs));
    site.publish(name, &tree);
}

#[tokio::test]
async fn newest_compatible_versions_are_chosen() {
    let (project, site) = (TestProject::new(), Site::start().await);
    publish(&project, &site, "base", "1.0.0", &[]);
    publish(&project, &site, "base", "1.4.0", &[]);
    publish(&project, &site, "base", "2.0.0", &[]);
    publish(&project, &site, "top", "1.0.0", &["base, version: \"^1\""]);
    publish(&project, &site, "top", "1.1.0", &["base, version: \"^1.3\""]);
    let all = registries(&project, vec![site.entry()]);
    assert_eq!(installed(&project, &all, &["top@^1"]).await, ["base 1.4.0", "top 1.1.0"]);
    assert!(project.read("savoir.toml").contains("top = \"^1\""));
    assert!(!project.read("savoir.toml").contains("base"));
    // Installed versions stay until an update is requested.
    publish(&project, &site, "base", "1.5.0", &[]);
    publish(&project, &site, "top", "1.2.0", &["base, version: \"^1.3\""]);
    assert!(gathered(&project, &all, &[], Update::Nothing).await.unwrap().arrivals.is_empty());
    let one = Update::Skills(["base".to_owned()].into());
    let found = gathered(&project, &all, &[], one).await.unwrap();
    assert_eq!(found.arrivals[0].why, FetchReason::Update);
    take(&project, &found);
    assert_eq!(versions(&project), ["base 1.5.0", "top 1.1.0"]);
    let found = gathered(&project, &all, &[], Update::All).await.unwrap();
    let plan = take(&project, &found);
    assert_eq!(versions(&project), ["base 1.5.0", "top 1.2.0"]);
    assert!(plan.changes().iter().any(|change| matches!(change, PlannedChange::Updated { .. })));
}

#[tokio::test]
async fn locked_version_changes_only_if_required() {
    let (project, site) = (TestProject::new(), Site::start().await);
    publish(&project, &site, "base", "1.0.0", &[]);
    let all = registries(&project, vec![site.entry()]);
    installed(&project, &all, &["base"]).await;
    publish(&project, &site, "base", "1.1.0", &[]);
    publish(&project, &site, "easy", "1.0.0", &["base"]);
    assert_eq!(installed(&project, &all, &["easy"]).await, ["base 1.0.0", "easy 1.0.0"]);
    publish(&project, &site, "hard", "1.0.0", &["base, version: \">=1.1\""]);
    let now = installed(&project, &all, &["hard"]).await;
    assert_eq!(now, ["base 1.1.0", "easy 1.0.0", "hard 1.0.0"]);
}

#[tokio::test]
async fn yanked_version_stays_installed_but_is_not_chosen() {
    let (project, site) = (TestProject::new(), Site::start().await);
    publish(&project, &site, "base", "1.0.0", &[]);
    publish(&project, &site, "base", "1.1.0", &[]);
    let all = registries(&project, vec![site.entry()]);
    assert_eq!(installed(&project, &all, &["base"]).await, ["base 1.1.0"]);
    site.edit("base", |line| line.yanked = line.version.minor == 1);
    let found = gathered(&project, &all, &[], Update::Nothing).await.unwrap();
    assert!(found.arrivals.is_empty());
    let (name, version) = ("base".to_owned(), semver::Version::new(1, 1, 0));
    assert_eq!(found.notes, [GatherNote::Withdrawn { name, version, reason: None }]);
    let other = TestProject::new();
    let all = registries(&other, vec![site.entry()]);
    let found = gathered(&other, &all, &["base"], Update::Nothing).await.unwrap();
    assert_eq!(found.resolution.chosen["base"].version.to_string(), "1.0.0");
    let error = gathered(&other, &all, &["base@1.1.0"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "version_conflict");
    assert!(error.to_string().contains("is yanked"), "{error}");
}

#[tokio::test]
async fn pre_release_is_chosen_only_if_requested() {
    let (project, site) = (TestProject::new(), Site::start().await);
    for version in ["1.0.0", "2.0.0-rc.1"] {
        site.publish("notes", &skill("notes", version, "Text."));
    }
    let all = registries(&project, vec![site.entry()]);
    let chosen = async |wanted: &str| {
        let found = gathered(&project, &all, &[wanted], Update::Nothing).await.unwrap();
        found.resolution.chosen["notes"].version.to_string()
    };
    assert_eq!(chosen("notes").await, "1.0.0");
    assert_eq!(chosen("notes@>=1").await, "1.0.0");
    assert_eq!(chosen("notes@>=2.0.0-rc.0").await, "2.0.0-rc.1");
}

#[tokio::test]
async fn pre_release_without_alternative_is_not_stale() {
    let (project, site) = (TestProject::new(), Site::start().await);
    for version in ["1.0.0", "1.5.0-rc.1", "2.0.0"] {
        publish(&project, &site, "base", version, &[]);
    }
    publish(&project, &site, "a", "1.0.0", &["base, version: \">=1.1\""]);
    publish(&project, &site, "b", "1.0.0", &["base, version: \"<2\""]);
    let all = registries(&project, vec![site.entry()]);
    let now = installed(&project, &all, &["a", "b"]).await;
    assert_eq!(now, ["a 1.0.0", "b 1.0.0", "base 1.5.0-rc.1"]);
}

#[tokio::test]
async fn unsigned_dependency_keeps_its_tier() {
    let (project, site) = (TestProject::new(), Site::start().await);
    let base = skill("base", "1.0.0", "Text.");
    site.publish_as("base", &base, |line| line.tier = savoir_package::trust::Tier::Experimental);
    publish(&project, &site, "top", "1.0.0", &["base"]);
    let all = registries(&project, vec![site.entry()]);
    assert_eq!(installed(&project, &all, &["top"]).await, ["base 1.0.0", "top 1.0.0"]);
    // The tier in an index has no effect: only signatures of trusted keys count.
    site.edit("base", |line| line.tier = savoir_package::trust::Tier::Verified);
    let other = TestProject::new();
    let all = registries(&other, vec![site.entry()]);
    let found = gathered(&other, &all, &["top"], Update::Nothing).await.unwrap();
    let check =
        |arrival| savoir_package::install::CheckedSkill::check(arrival, &project.trust()).unwrap();
    let ready: Vec<_> = found.arrivals.into_iter().map(check).collect();
    let base = ready.iter().find(|one| one.summary.name == "base").unwrap();
    assert_eq!(base.tier, savoir_package::trust::Tier::Experimental);
}

#[tokio::test]
async fn deprecation_message_is_a_note() {
    let (project, site) = (TestProject::new(), Site::start().await);
    site.publish_as("notes", &skill("notes", "1.0.0", "Text."), |line| {
        line.deprecated = Some("use `other`\u{1b}[2J\ninstead".into());
    });
    let all = registries(&project, vec![site.entry()]);
    let found = gathered(&project, &all, &["notes"], Update::Nothing).await.unwrap();
    let [GatherNote::Deprecated { message, .. }] = &found.notes[..] else {
        panic!("{:?}", found.notes)
    };
    assert_eq!(message, "use `other` [2J instead");
}

#[tokio::test]
async fn conflicts_and_cycles_are_explained() {
    let (project, site) = (TestProject::new(), Site::start().await);
    publish(&project, &site, "base", "1.0.0", &[]);
    publish(&project, &site, "base", "2.0.0", &[]);
    publish(&project, &site, "a", "1.0.0", &["base, version: \"^1\""]);
    publish(&project, &site, "b", "1.0.0", &["base, version: \"^2\""]);
    publish(&project, &site, "c", "1.0.0", &["d"]);
    publish(&project, &site, "d", "1.0.0", &["c"]);
    publish(&project, &site, "e", "1.0.0", &["basse"]);
    let all = registries(&project, vec![site.entry()]);
    let error = gathered(&project, &all, &["a", "b"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "version_conflict");
    let said = error.to_string();
    assert!(
        said.contains("`a` 1.0.0 needs `base` ^1") && said.contains("`b` 1.0.0 needs"),
        "{said}"
    );
    let error = gathered(&project, &all, &["c"], Update::Nothing).await.unwrap_err();
    assert_eq!((error.code(), error.to_string().contains('→')), ("dependency_cycle", true));
    let error = gathered(&project, &all, &["e", "base"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "unknown_skill");
    assert_eq!(error.hints(), ["did you mean `base`?"]);
}

#[tokio::test]
async fn skills_of_a_namespace() {
    let (project, site) = (TestProject::new(), Site::start().await);
    publish(&project, &site, "acme/base", "1.0.0", &[]);
    publish(&project, &site, "acme/top", "1.0.0", &["acme/base, version: \"^1\""]);
    let all = registries(&project, vec![site.entry()]);
    assert_eq!(installed(&project, &all, &["acme/top@1"]).await, ["base 1.0.0", "top 1.0.0"]);
    let text = project.read("savoir.toml");
    assert!(text.contains("top = { version = \"1\", namespace = \"acme\" }"), "{text}");
    assert!(project.read("savoir.lock").contains("\"acme/base@^1\""));
    publish(&project, &site, "acme/base", "1.2.0", &[]);
    take(&project, &gathered(&project, &all, &[], Update::All).await.unwrap());
    assert_eq!(versions(&project), ["base 1.2.0", "top 1.0.0"]);
    // A skill that others need stays, and is removed with them.
    let plan = project.skill_set().remove(&["base".to_owned()], UserEdits::default());
    assert!(
        plan.unwrap()
            .changes()
            .iter()
            .any(|change| matches!(change, PlannedChange::StillNeeded { .. }))
    );
    let plan = project.skill_set().remove(&["top".to_owned()], UserEdits::default()).unwrap();
    project.apply(&plan);
    assert_eq!(versions(&project), Vec::<String>::new());
}

#[tokio::test]
async fn two_skills_in_one_folder_are_rejected() {
    let (project, site) = (TestProject::new(), Site::start().await);
    publish(&project, &site, "base", "1.0.0", &[]);
    publish(&project, &site, "acme/base", "2.0.0", &[]);
    publish(&project, &site, "top", "1.0.0", &["base"]);
    let all = registries(&project, vec![site.entry()]);
    let error = gathered(&project, &all, &["top", "acme/base"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "same_folder");
    assert!(error.to_string().contains("`acme/base` and `base`"), "{error}");
    // Requesting the other skill of that name replaces the first.
    assert_eq!(installed(&project, &all, &["base"]).await, ["base 1.0.0"]);
    assert_eq!(installed(&project, &all, &["acme/base"]).await, ["base 2.0.0"]);
}
