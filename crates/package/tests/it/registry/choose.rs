//! Which versions are chosen.

use savoir_package::{
    install::{FetchReason, PlannedChange, UserEdits},
    registry::GatherNote,
    resolve::Update,
};

use super::{gathered, installed, registries, site::Site, take, versions};
use crate::shelf::bench::{Bench, gaia, skill};

/// Publishes a skill that is trusted, and needs others.
fn publish(bench: &Bench, site: &Site, name: &str, version: &str, needs: &[&str]) {
    let last = name.rsplit('/').next().unwrap();
    let tree = bench.signed(last, version, &gaia(last, version, &[], needs));
    site.publish(name, &tree);
}

#[tokio::test]
async fn the_newest_that_go_together() {
    let (bench, site) = (Bench::new(), Site::start().await);
    publish(&bench, &site, "base", "1.0.0", &[]);
    publish(&bench, &site, "base", "1.4.0", &[]);
    publish(&bench, &site, "base", "2.0.0", &[]);
    publish(&bench, &site, "top", "1.0.0", &["base, version: \"^1\""]);
    publish(&bench, &site, "top", "1.1.0", &["base, version: \"^1.3\""]);
    let all = registries(&bench, vec![site.entry()]);
    assert_eq!(installed(&bench, &all, &["top@^1"]).await, ["base 1.4.0", "top 1.1.0"]);
    assert!(bench.read("savoir.toml").contains("top = \"^1\""));
    assert!(!bench.read("savoir.toml").contains("base"));
    // What is installed stays until somebody wants it newer.
    publish(&bench, &site, "base", "1.5.0", &[]);
    publish(&bench, &site, "top", "1.2.0", &["base, version: \"^1.3\""]);
    assert!(gathered(&bench, &all, &[], Update::Nothing).await.unwrap().arrivals.is_empty());
    let one = Update::Skills(["base".to_owned()].into());
    let found = gathered(&bench, &all, &[], one).await.unwrap();
    assert_eq!(found.arrivals[0].why, FetchReason::Update);
    take(&bench, &found);
    assert_eq!(versions(&bench), ["base 1.5.0", "top 1.1.0"]);
    let found = gathered(&bench, &all, &[], Update::All).await.unwrap();
    let plan = take(&bench, &found);
    assert_eq!(versions(&bench), ["base 1.5.0", "top 1.2.0"]);
    assert!(plan.changes().iter().any(|change| matches!(change, PlannedChange::Updated { .. })));
}

#[tokio::test]
async fn a_locked_version_moves_only_when_it_must() {
    let (bench, site) = (Bench::new(), Site::start().await);
    publish(&bench, &site, "base", "1.0.0", &[]);
    let all = registries(&bench, vec![site.entry()]);
    installed(&bench, &all, &["base"]).await;
    publish(&bench, &site, "base", "1.1.0", &[]);
    publish(&bench, &site, "easy", "1.0.0", &["base"]);
    assert_eq!(installed(&bench, &all, &["easy"]).await, ["base 1.0.0", "easy 1.0.0"]);
    publish(&bench, &site, "hard", "1.0.0", &["base, version: \">=1.1\""]);
    let now = installed(&bench, &all, &["hard"]).await;
    assert_eq!(now, ["base 1.1.0", "easy 1.0.0", "hard 1.0.0"]);
}

#[tokio::test]
async fn withdrawn_versions_are_kept_and_not_given() {
    let (bench, site) = (Bench::new(), Site::start().await);
    publish(&bench, &site, "base", "1.0.0", &[]);
    publish(&bench, &site, "base", "1.1.0", &[]);
    let all = registries(&bench, vec![site.entry()]);
    assert_eq!(installed(&bench, &all, &["base"]).await, ["base 1.1.0"]);
    site.edit("base", |line| line.yanked = line.version.minor == 1);
    let found = gathered(&bench, &all, &[], Update::Nothing).await.unwrap();
    assert!(found.arrivals.is_empty());
    let (name, version) = ("base".to_owned(), semver::Version::new(1, 1, 0));
    assert_eq!(found.notes, [GatherNote::Withdrawn { name, version, reason: None }]);
    let other = Bench::new();
    let all = registries(&other, vec![site.entry()]);
    let found = gathered(&other, &all, &["base"], Update::Nothing).await.unwrap();
    assert_eq!(found.resolution.chosen["base"].version.to_string(), "1.0.0");
    let error = gathered(&other, &all, &["base@1.1.0"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "version_conflict");
    assert!(error.to_string().contains("was withdrawn"), "{error}");
}

#[tokio::test]
async fn pre_releases_are_for_those_who_ask() {
    let (bench, site) = (Bench::new(), Site::start().await);
    for version in ["1.0.0", "2.0.0-rc.1"] {
        site.publish("notes", &skill("notes", version, "Text."));
    }
    let all = registries(&bench, vec![site.entry()]);
    let chosen = async |wanted: &str| {
        let found = gathered(&bench, &all, &[wanted], Update::Nothing).await.unwrap();
        found.resolution.chosen["notes"].version.to_string()
    };
    assert_eq!(chosen("notes").await, "1.0.0");
    assert_eq!(chosen("notes@>=1").await, "1.0.0");
    assert_eq!(chosen("notes@>=2.0.0-rc.0").await, "2.0.0-rc.1");
}

#[tokio::test]
async fn a_pre_release_that_nothing_else_replaces_is_not_stale() {
    let (bench, site) = (Bench::new(), Site::start().await);
    for version in ["1.0.0", "1.5.0-rc.1", "2.0.0"] {
        publish(&bench, &site, "base", version, &[]);
    }
    publish(&bench, &site, "a", "1.0.0", &["base, version: \">=1.1\""]);
    publish(&bench, &site, "b", "1.0.0", &["base, version: \"<2\""]);
    let all = registries(&bench, vec![site.entry()]);
    let now = installed(&bench, &all, &["a", "b"]).await;
    assert_eq!(now, ["a 1.0.0", "b 1.0.0", "base 1.5.0-rc.1"]);
}

#[tokio::test]
async fn an_unsigned_dependency_is_gathered_and_keeps_its_tier() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let base = skill("base", "1.0.0", "Text.");
    site.publish_as("base", &base, |line| line.tier = savoir_package::trust::Tier::Experimental);
    publish(&bench, &site, "top", "1.0.0", &["base"]);
    let all = registries(&bench, vec![site.entry()]);
    assert_eq!(installed(&bench, &all, &["top"]).await, ["base 1.0.0", "top 1.0.0"]);
    // A registry's word is not a signature: the trusted keys decide the tier.
    site.edit("base", |line| line.tier = savoir_package::trust::Tier::Verified);
    let other = Bench::new();
    let all = registries(&other, vec![site.entry()]);
    let found = gathered(&other, &all, &["top"], Update::Nothing).await.unwrap();
    let check =
        |arrival| savoir_package::install::CheckedSkill::check(arrival, &bench.trust()).unwrap();
    let ready: Vec<_> = found.arrivals.into_iter().map(check).collect();
    let base = ready.iter().find(|one| one.summary.name == "base").unwrap();
    assert_eq!(base.tier, savoir_package::trust::Tier::Experimental);
}

#[tokio::test]
async fn people_are_told_what_to_use_instead() {
    let (bench, site) = (Bench::new(), Site::start().await);
    site.publish_as("notes", &skill("notes", "1.0.0", "Text."), |line| {
        line.deprecated = Some("use `other`\u{1b}[2J\ninstead".into());
    });
    let all = registries(&bench, vec![site.entry()]);
    let found = gathered(&bench, &all, &["notes"], Update::Nothing).await.unwrap();
    let [GatherNote::Deprecated { message, .. }] = &found.notes[..] else {
        panic!("{:?}", found.notes)
    };
    assert_eq!(message, "use `other` [2J instead");
}

#[tokio::test]
async fn conflicts_and_circles_are_explained() {
    let (bench, site) = (Bench::new(), Site::start().await);
    publish(&bench, &site, "base", "1.0.0", &[]);
    publish(&bench, &site, "base", "2.0.0", &[]);
    publish(&bench, &site, "a", "1.0.0", &["base, version: \"^1\""]);
    publish(&bench, &site, "b", "1.0.0", &["base, version: \"^2\""]);
    publish(&bench, &site, "c", "1.0.0", &["d"]);
    publish(&bench, &site, "d", "1.0.0", &["c"]);
    publish(&bench, &site, "e", "1.0.0", &["basse"]);
    let all = registries(&bench, vec![site.entry()]);
    let error = gathered(&bench, &all, &["a", "b"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "version_conflict");
    let said = error.to_string();
    assert!(
        said.contains("`a` 1.0.0 needs `base` ^1") && said.contains("`b` 1.0.0 needs"),
        "{said}"
    );
    let error = gathered(&bench, &all, &["c"], Update::Nothing).await.unwrap_err();
    assert_eq!((error.code(), error.to_string().contains('→')), ("dependency_cycle", true));
    let error = gathered(&bench, &all, &["e", "base"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "unknown_skill");
    assert_eq!(error.hints(), ["did you mean `base`?"]);
}

#[tokio::test]
async fn skills_of_a_namespace() {
    let (bench, site) = (Bench::new(), Site::start().await);
    publish(&bench, &site, "acme/base", "1.0.0", &[]);
    publish(&bench, &site, "acme/top", "1.0.0", &["acme/base, version: \"^1\""]);
    let all = registries(&bench, vec![site.entry()]);
    assert_eq!(installed(&bench, &all, &["acme/top@1"]).await, ["base 1.0.0", "top 1.0.0"]);
    let text = bench.read("savoir.toml");
    assert!(text.contains("top = { version = \"1\", namespace = \"acme\" }"), "{text}");
    assert!(bench.read("savoir.lock").contains("\"acme/base@^1\""));
    publish(&bench, &site, "acme/base", "1.2.0", &[]);
    take(&bench, &gathered(&bench, &all, &[], Update::All).await.unwrap());
    assert_eq!(versions(&bench), ["base 1.2.0", "top 1.0.0"]);
    // What others need stays, and goes with them.
    let plan = bench.shelf().remove(&["base".to_owned()], UserEdits::default());
    assert!(
        plan.unwrap()
            .changes()
            .iter()
            .any(|change| matches!(change, PlannedChange::StillNeeded { .. }))
    );
    let plan = bench.shelf().remove(&["top".to_owned()], UserEdits::default()).unwrap();
    bench.apply(&plan);
    assert_eq!(versions(&bench), Vec::<String>::new());
}

#[tokio::test]
async fn two_skills_cannot_have_one_folder() {
    let (bench, site) = (Bench::new(), Site::start().await);
    publish(&bench, &site, "base", "1.0.0", &[]);
    publish(&bench, &site, "acme/base", "2.0.0", &[]);
    publish(&bench, &site, "top", "1.0.0", &["base"]);
    let all = registries(&bench, vec![site.entry()]);
    let error = gathered(&bench, &all, &["top", "acme/base"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "same_folder");
    assert!(error.to_string().contains("`acme/base` and `base`"), "{error}");
    // Whoever asks for the other one gets it in place of the first.
    assert_eq!(installed(&bench, &all, &["base"]).await, ["base 1.0.0"]);
    assert_eq!(installed(&bench, &all, &["acme/base"]).await, ["base 2.0.0"]);
}
