//! Tests that publish, find and install the example skills of this repository.

use std::{fs, path::Path};

use savoir_package::{
    Tree,
    install::{CheckedSkill, UserEdits},
    registry::{GatherRequest, Network, Registries, Settings, gather},
    resolve::Update,
};

use super::{client, gathered, name, registries, site::Site, take, versions};
use crate::install::test_project::{TestProject, gaia, skill};

/// Publishes every example with a version and a valid registry name.
fn publish_examples(site: &Site) -> Vec<String> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut published = Vec::new();
    for entry in fs::read_dir(examples).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.join("SKILL.md").is_file() {
            continue;
        }
        let called = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let tree = Tree::read(&folder).unwrap();
        site.publish(&called, &tree);
        published.push(called);
    }
    published.sort();
    published
}

#[tokio::test]
async fn examples_are_installed_from_files() {
    let (project, site) = (TestProject::new(), Site::start().await);
    let published = publish_examples(&site);
    assert!(published.len() >= 10, "{published:?}");
    let all = registries(&project, vec![site.entry()]);
    let wanted: Vec<&str> = published.iter().map(String::as_str).collect();
    let found = gathered(&project, &all, &wanted, Update::Nothing).await.unwrap();
    assert_eq!(found.arrivals.len(), published.len());
    take(&project, &found);
    assert_eq!(project.problems(), Vec::<String>::new());
    let state = project.skill_set().state().unwrap();
    let source = state.lock.skills[&published[0]].source.to_string();
    assert_eq!(source, format!("registry+{}", site.address()));
    assert!(project.read("savoir.toml").contains(&format!("{} = \"*\"", published[0])));
    // Installing again changes nothing, and requests only the index.
    site.seen();
    let again = gathered(&project, &all, &[], Update::All).await.unwrap();
    assert!(again.arrivals.is_empty());
    assert!(site.seen().iter().all(|path| path.starts_with("index/")));
}

#[tokio::test]
async fn cached_skills_install_offline() {
    let (project, site) = (TestProject::new(), Site::start().await);
    let tree = project.signed("base", "1.0.0", &gaia("base", "1.0.0", &[], &[]));
    site.publish("base", &tree);
    let tree = project.signed("top", "1.0.0", &gaia("top", "1.0.0", &[], &["base"]));
    site.publish("acme/top", &tree);
    let all = registries(&project, vec![site.entry()]);
    gathered(&project, &all, &["acme/top"], Update::Nothing).await.unwrap();
    site.seen();
    let offline = Settings { network: Network::Offline, ..super::settings(&project.data()) };
    let offline = Registries::new(offline, vec![site.entry()]).unwrap();
    let found = gathered(&project, &offline, &["acme/top"], Update::Nothing).await.unwrap();
    assert_eq!(found.arrivals.len(), 2);
    take(&project, &found);
    assert_eq!(versions(&project), ["base 1.0.0", "top 1.0.0"]);
    let error = gathered(&project, &offline, &["other"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "offline");
    assert!(error.to_string().contains("`other` was not fetched before"), "{error}");
    let client = offline.clients().next().unwrap();
    assert_eq!(client.search("pdf").await.unwrap_err().code(), "offline");
    assert_eq!(site.seen(), Vec::<String>::new(), "nobody was asked");
}

#[tokio::test]
async fn locked_skills_are_fetched_from_their_registry() {
    let (project, site) = (TestProject::new(), Site::start().await);
    let one = skill("notes", "1.0.0", "One.");
    site.publish("acme/notes", &one);
    let all = registries(&project, vec![site.entry()]);
    take(&project, &gathered(&project, &all, &["acme/notes"], Update::Nothing).await.unwrap());
    let locked = project.skill_set().state().unwrap().lock.skills["notes"].clone();
    assert_eq!(locked.source.to_string(), format!("registry+{}#acme/notes", site.address()));
    // A clone on another machine, with another cache and other registries.
    let other = TestProject::new();
    let elsewhere = registries(&other, Vec::new());
    assert_eq!(elsewhere.fetch_locked("notes", &locked).await.unwrap(), one);
    // Yanked versions can still be fetched for a lock.
    site.edit("acme/notes", |line| line.yanked = true);
    assert!(elsewhere.fetch_locked("notes", &locked).await.is_ok());
    // Different files are rejected, even if the index was changed to match them.
    fs::remove_file(site.path("index/v1/no/acme/notes")).unwrap();
    site.publish("acme/notes", &skill("notes", "1.0.0", "Two."));
    let error = elsewhere.fetch_locked("notes", &locked).await.unwrap_err();
    assert_eq!(error.code(), "version_changed");
    let error = gathered(&project, &all, &[], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "version_changed", "{error}");
    fs::remove_file(site.path("index/v1/no/acme/notes")).unwrap();
    let error = elsewhere.fetch_locked("notes", &locked).await.unwrap_err();
    assert_eq!(error.code(), "unknown_skill");
}

#[tokio::test]
async fn skill_of_other_source_may_depend_on_registry_skills() {
    let (project, site) = (TestProject::new(), Site::start().await);
    let base = project.signed("base", "1.1.0", &gaia("base", "1.1.0", &[], &[]));
    site.publish("base", &base);
    let tree = gaia("mine", "0.1.0", &[], &["base, version: \"^1\""]);
    let mine = project.ready(tree, crate::install::test_project::asked());
    let state = project.skill_set().state().unwrap();
    let wish = GatherRequest { arrived: std::slice::from_ref(&mine), ..GatherRequest::new(&state) };
    let all = registries(&project, vec![site.entry()]);
    let found = gather(&all, &wish).await.unwrap();
    assert_eq!(found.arrivals.len(), 1);
    let mut ready = vec![mine];
    for arrival in found.arrivals {
        ready.push(CheckedSkill::check(arrival, &project.trust()).unwrap());
    }
    project.apply(&project.plan(&ready, &["claude-code"]).unwrap());
    assert_eq!(versions(&project), ["base 1.1.0", "mine 0.1.0"]);
    // No registry is asked about a skill from a folder.
    site.publish("mine", &skill("mine", "9.0.0", "Not mine."));
    site.seen();
    let found = gathered(&project, &all, &[], Update::All).await.unwrap();
    assert!(found.arrivals.is_empty());
    assert_eq!(site.seen(), ["index/v1/ba/base"]);
}

#[tokio::test]
async fn sync_restores_registry_skills() {
    let (project, site) = (TestProject::new(), Site::start().await);
    site.publish("notes", &skill("notes", "1.0.0", "One."));
    let all = registries(&project, vec![site.entry()]);
    take(&project, &gathered(&project, &all, &["notes"], Update::Nothing).await.unwrap());
    fs::remove_dir_all(project.data().join("store")).unwrap();
    fs::remove_dir_all(project.path(".claude/skills/notes")).unwrap();
    let locked = project.skill_set().state().unwrap().lock.skills["notes"].clone();
    let mut tree = Some(all.fetch_locked("notes", &locked).await.unwrap());
    let plan =
        project.skill_set().sync(UserEdits::Keep, &mut |_, _| Ok(tree.take().unwrap())).unwrap();
    project.apply(&plan);
    assert!(project.path(".claude/skills/notes/SKILL.md").is_file());
}

#[tokio::test]
async fn client_reads_static_registry() {
    let (project, site) = (TestProject::new(), Site::start().await);
    site.publish("acme/notes", &skill("notes", "1.0.0", "One."));
    let client = client(&project.data(), &format!("{}/", site.address()));
    let package = client.index(&name("acme/notes")).await.unwrap().unwrap();
    assert_eq!(package[0].filename, "notes-1.0.0.zip");
    assert_eq!(client.index(&name("notes")).await.unwrap(), None);
    assert_eq!(client.search("x").await.unwrap_err().code(), "files_only");
}
