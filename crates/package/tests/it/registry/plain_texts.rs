//! Tests of texts without frontmatter, whose names and versions only the registry knows.

use std::fs;

use savoir_package::{
    File, Tree,
    install::{
        PlannedChange, UserEdits,
        updates::{Availability, load_cached_updates, save_updates},
    },
    registry::check_registries,
    resolve::Update,
};
use semver::Version;

use super::{gathered, installed, registries, site::Site, take, versions};
use crate::install::test_project::TestProject;

fn text(words: &str) -> Tree {
    let mut tree = Tree::default();
    let file = File { bytes: format!("# Tea\n\n{words}\n").into_bytes(), executable: false };
    tree.add("SKILL.md".to_owned(), file).unwrap();
    tree
}

fn publish(site: &Site, name: &str, patch: u64, words: &str) {
    site.publish_as(name, &text(words), |line| line.version = Version::new(0, 0, patch));
}

#[tokio::test]
async fn same_text_under_two_names_installs_both() {
    let (project, site) = (TestProject::new(), Site::start().await);
    for name in ["anon/one", "anon/two"] {
        publish(&site, name, 1, "Boil water.");
    }
    let all = registries(&project, vec![site.entry()]);
    let both = ["one 0.0.1", "two 0.0.1"];
    assert_eq!(installed(&project, &all, &["anon/one", "anon/two"]).await, both);
    let have_their_names = || {
        for name in ["one", "two"] {
            let text = project.read(&format!(".claude/skills/{name}/SKILL.md"));
            assert_eq!(text, "# Tea\n\nBoil water.\n", "{name}");
        }
    };
    have_their_names();
    assert_eq!(project.problems(), [""; 0]);
    for edits in [UserEdits::Keep, UserEdits::Discard] {
        let plan = project.sync(edits);
        assert_eq!((plan.changes(), plan.is_empty()), (&[][..], true));
    }
    // A clone on another machine, which has to fetch both skills.
    fs::remove_dir_all(project.path(".claude")).unwrap();
    fs::remove_dir_all(project.data()).unwrap();
    let again = project.skill_set().sync(UserEdits::Keep, &mut |_, _| Ok(text("Boil water.")));
    project.apply(&again.unwrap());
    have_their_names();
}

#[tokio::test]
async fn taken_down_text_is_replaced_by_its_next_version() {
    let (project, site) = (TestProject::new(), Site::start().await);
    publish(&site, "anon/tea", 1, "Boil water.");
    let all = registries(&project, vec![site.entry()]);
    installed(&project, &all, &["anon/tea"]).await;
    publish(&site, "anon/tea", 2, "Boil water.");
    site.take_down("anon/tea", "0.0.1", "it scalds");
    let cache = project.data().join("cache");
    let state = project.skill_set().state().unwrap();
    let root = project.path("");
    save_updates(&cache, &root, &state, &check_registries(&all, &state).await).unwrap();
    let cached = load_cached_updates(&cache, &root, &state).unwrap();
    let taken_down = |found: &Availability| matches!(found, Availability::Published(published) if published.taken_down);
    assert!(taken_down(&cached.skills["tea"]), "{cached:?}");
    let plan = take(&project, &gathered(&project, &all, &[], Update::All).await.unwrap());
    assert_eq!(versions(&project), ["tea 0.0.2"]);
    let (name, from, to) = ("tea".to_owned(), Version::new(0, 0, 1), Version::new(0, 0, 2));
    assert_eq!(plan.changes(), [PlannedChange::Updated { name, from, to }]);
    let cached = load_cached_updates(&cache, &root, &project.skill_set().state().unwrap()).unwrap();
    assert!(cached.skills.is_empty(), "another version is installed now: {cached:?}");
}
