//! Tests of the update check.

use std::{
    collections::BTreeMap,
    fs,
    sync::{Arc, Mutex},
};

use savoir_package::{
    Tree,
    install::{
        CheckedSkill, FetchReason, FetchedSkill, locked_source, requirement_for,
        updates::{self, Availability, find_latest, load_cached_updates, save_updates},
    },
    manifest::{Revision, SkillRequirement},
    source::{Digest, Fetcher, OfferedSkill, PinnedSource, Progress, Settings, Source},
};
use serde_json::json;
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::path};

use super::{
    adopt::fetcher,
    test_project::{TestProject, install, put, skill},
};
use crate::source::repository::Repository;

pub(super) async fn look(
    project: &TestProject,
    fetcher: &Fetcher,
) -> BTreeMap<String, Availability> {
    let skill_set = project.skill_set();
    updates::check_sources(fetcher, skill_set.root(), &skill_set.state().unwrap()).await
}

/// Installs every skill of a source.
async fn add(project: &TestProject, fetcher: &Fetcher, text: &str) -> Vec<OfferedSkill> {
    let offers = fetcher.offers(&Source::parse(text, &project.path("")).unwrap()).await.unwrap();
    let mut ready = Vec::new();
    for offer in &offers {
        let skill_set = project.skill_set();
        let arrival = FetchedSkill {
            tree: fetcher.fetch(offer).await.unwrap(),
            called: offer.name.clone(),
            source: locked_source(&offer.source, skill_set.root()).unwrap(),
            why: FetchReason::Requested(requirement_for(&offer.source, skill_set.root())),
            counted: None,
        };
        ready.push(CheckedSkill::check(arrival, &project.trust()).unwrap());
    }
    project.apply(&project.skill_set().install(&ready, &install(&["codex"])).unwrap());
    offers
}

fn write(repository: &Repository, folder: &str, tree: &Tree) {
    for (path, file) in tree.files() {
        repository.write(&format!("{folder}/{path}"), &file.bytes);
    }
}

fn newer(found: &BTreeMap<String, Availability>) -> Vec<(&str, Option<String>)> {
    let newer = found.iter().filter_map(|(name, found)| match found {
        Availability::Newer { version, .. } => {
            Some((name.as_str(), version.as_ref().map(ToString::to_string)))
        }
        _ => None,
    });
    newer.collect()
}

fn unknown<'a>(found: &'a BTreeMap<String, Availability>, name: &str) -> &'a str {
    match &found[name] {
        Availability::Unknown(why) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn update_check_asks_each_repository_once() {
    let (project, repository) = (TestProject::new(), Repository::new());
    for name in ["a", "b", "c"] {
        write(&repository, &format!("skills/{name}"), &skill(name, "1.0.0", name));
    }
    repository.commit();
    let asked = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&asked);
    let mut settings = Settings::new(project.data().join("cache"));
    settings.watcher = Some(Arc::new(move |progress| {
        if let Progress::Asking { .. } = progress {
            *counted.lock().unwrap() += 1;
        }
    }));
    let fetcher = Fetcher::new(settings);
    add(&project, &fetcher, &format!("git+{}", repository.url())).await;
    assert_eq!(newer(&look(&project, &fetcher).await), []);

    repository.write("README.md", "nothing of a skill");
    repository.commit();
    *asked.lock().unwrap() = 0;
    let found = look(&project, &fetcher).await;
    assert!(found.values().all(|found| *found == Availability::Current), "{found:?}");
    assert_eq!(*asked.lock().unwrap(), 1);

    write(&repository, "skills/b", &skill("b", "1.1.0", "b"));
    let commit = repository.commit();
    let found = look(&project, &fetcher).await;
    assert_eq!(newer(&found), [("b", Some("1.1.0".into()))]);
    let Availability::Newer { place: PinnedSource::Git(place), .. } = &found["b"] else { panic!() };
    assert_eq!((place.commit.as_str(), place.path.as_str()), (commit.as_str(), "skills/b"));

    // If the cache lost the repository, the files are compared.
    fs::remove_dir_all(project.data().join("cache")).unwrap();
    assert_eq!(newer(&look(&project, &fetcher).await).len(), 1);
}

#[tokio::test]
async fn update_behind_symlink_is_found() {
    let (project, repository) = (TestProject::new(), Repository::new());
    write(&repository, "skills/a", &skill("a", "1.0.0", ""));
    write(&repository, "skills/b", &skill("b", "1.0.0", ""));
    repository.write("shared/notes.md", "old");
    repository.link("skills/a/notes.md", "../../shared/notes.md");
    repository.commit();
    let fetcher = fetcher(&project);
    add(&project, &fetcher, &format!("git+{}", repository.url())).await;
    repository.write("README.md", "nothing of a skill");
    repository.commit();
    assert_eq!(newer(&look(&project, &fetcher).await), []);
    repository.write("shared/notes.md", "new");
    repository.commit();
    let found = look(&project, &fetcher).await;
    let names: Vec<_> = newer(&found).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a"]);
}

#[tokio::test]
async fn moved_tag_is_an_update_and_commit_is_not() {
    let (project, repository) = (TestProject::new(), Repository::new());
    write(&repository, "a", &skill("a", "1.0.0", ""));
    write(&repository, "b", &skill("b", "1.0.0", ""));
    let first = repository.commit();
    repository.git(&["tag", "v1"]);
    let fetcher = fetcher(&project);
    let url = repository.url();
    for (name, at) in [("a", Revision::Tag("v1".into())), ("b", Revision::Rev(first))] {
        let path = Some(name.to_owned());
        let asked = SkillRequirement::Git { url: url.clone(), at, path };
        let offer = find_latest(&fetcher, &project.path(""), name, &asked).await.unwrap();
        let arrival = FetchedSkill {
            tree: fetcher.fetch(&offer).await.unwrap(),
            called: name.to_owned(),
            source: locked_source(&offer.source, &project.path("")).unwrap(),
            why: FetchReason::Requested(asked),
            counted: None,
        };
        let ready = [CheckedSkill::check(arrival, &project.trust()).unwrap()];
        project.apply(&project.skill_set().install(&ready, &install(&["codex"])).unwrap());
    }
    for name in ["a", "b"] {
        write(&repository, name, &skill(name, "2.0.0", ""));
    }
    repository.commit();
    assert_eq!(newer(&look(&project, &fetcher).await), []);
    repository.git(&["tag", "--force", "v1"]);
    assert_eq!(newer(&look(&project, &fetcher).await), [("a", Some("2.0.0".into()))]);
    repository.git(&["tag", "--delete", "v1"]);
    let found = look(&project, &fetcher).await;
    assert!(unknown(&found, "a").contains("v1"), "{found:?}");
    assert_eq!(found["b"], Availability::Current);
}

#[tokio::test]
async fn unreachable_host_does_not_hide_other_updates() {
    let (project, repository, gone) = (TestProject::new(), Repository::new(), Repository::new());
    write(&repository, "here", &skill("here", "1.0.0", ""));
    write(&gone, "there", &skill("there", "1.0.0", ""));
    repository.commit();
    gone.commit();
    let fetcher = fetcher(&project);
    add(&project, &fetcher, &format!("git+{}", repository.url())).await;
    add(&project, &fetcher, &format!("git+{}", gone.url())).await;
    drop(gone);
    write(&repository, "here", &skill("here", "1.1.0", ""));
    repository.commit();
    let found = look(&project, &fetcher).await;
    assert_eq!(newer(&found), [("here", Some("1.1.0".into()))]);
    assert!(!unknown(&found, "there").is_empty());
}

#[tokio::test]
async fn folders_files_and_sites() {
    let (project, server) = (TestProject::new(), MockServer::start().await);
    let fetcher = fetcher(&project);
    put(&project.path("mine/local"), &skill("local", "1.0.0", ""));
    add(&project, &fetcher, "./mine/local").await;
    let text = |version: &str| {
        let tree = skill("file", version, "");
        tree.get("SKILL.md").unwrap().bytes.clone()
    };
    let serve = |at: &'static str, bytes: Vec<u8>| {
        Mock::given(path(at)).respond_with(ResponseTemplate::new(200).set_body_bytes(bytes))
    };
    let index = |bytes: &[u8]| {
        json!({"$schema": "https://schemas.agentskills.io/discovery/0.2.0/schema.json",
            "skills": [{"name": "site", "type": "skill-md", "url": "site.md",
            "digest": Digest::of(bytes).to_string()}]})
        .to_string()
        .into_bytes()
    };
    let site = |version: &str| {
        String::from_utf8(text(version)).unwrap().replace("file", "site").into_bytes()
    };
    let list = "/.well-known/agent-skills/index.json";
    serve("/file.md", text("1.0.0")).mount(&server).await;
    serve(list, index(&site("1.0.0"))).mount(&server).await;
    serve("/.well-known/agent-skills/site.md", site("1.0.0")).mount(&server).await;
    add(&project, &fetcher, &format!("{}/file.md", server.uri())).await;
    add(&project, &fetcher, &server.uri()).await;
    let found = look(&project, &fetcher).await;
    assert_eq!(found.len(), 3);
    assert!(found.values().all(|found| *found == Availability::Current), "{found:?}");

    server.reset().await;
    serve("/file.md", text("1.1.0")).mount(&server).await;
    serve(list, index(&site("1.2.0"))).mount(&server).await;
    serve("/.well-known/agent-skills/site.md", site("1.2.0")).mount(&server).await;
    fs::write(project.path("mine/local/notes.md"), "more").unwrap();
    let version = |text: &str| Some(text.to_owned());
    let expected =
        [("file", version("1.1.0")), ("local", version("1.0.0")), ("site", version("1.2.0"))];
    assert_eq!(newer(&look(&project, &fetcher).await), expected);

    server.reset().await;
    fs::remove_dir_all(project.path("mine")).unwrap();
    let found = look(&project, &fetcher).await;
    for name in ["file", "local", "site"] {
        assert!(!unknown(&found, name).is_empty());
    }
}

#[tokio::test]
async fn registry_skills_are_not_checked_here() {
    let project = TestProject::new();
    let mut ready =
        project.ready(skill("pdf", "1.0.0", ""), FetchReason::Requested("^1".parse_range()));
    ready.source = "registry+https://skills.example.com".parse().unwrap();
    project.apply(&project.skill_set().install(&[ready], &install(&["codex"])).unwrap());
    let found = look(&project, &fetcher(&project)).await;
    assert!(found.is_empty(), "{found:?}");
    let asked = "^1".parse_range();
    let error =
        find_latest(&fetcher(&project), &project.path(""), "pdf", &asked).await.unwrap_err();
    assert_eq!(error.code(), "no_registry");
}

trait Ranged {
    fn parse_range(&self) -> SkillRequirement;
}

impl Ranged for str {
    fn parse_range(&self) -> SkillRequirement {
        let range = savoir_skill::version::VersionRange::parse(self).unwrap();
        SkillRequirement::Version { range, registry: None, namespace: None }
    }
}

#[tokio::test]
async fn moved_missing_or_renamed_skill_is_reported() {
    let (project, repository) = (TestProject::new(), Repository::new());
    for name in ["a", "b", "c"] {
        write(&repository, &format!("skills/{name}"), &skill(name, "1.0.0", ""));
    }
    repository.commit();
    let fetcher = fetcher(&project);
    add(&project, &fetcher, &format!("git+{}", repository.url())).await;
    repository.git(&["mv", "skills/a", "tools"]);
    repository.git(&["rm", "-r", "--quiet", "skills/b"]);
    write(&repository, "skills/c", &skill("other", "1.0.0", ""));
    repository.commit();
    let url = repository.url();
    let (project, fetcher, url) = (&project, &fetcher, &url);
    let error = |name: &'static str| async move {
        let path = Some(format!("skills/{name}"));
        let asked = SkillRequirement::Git { url: url.clone(), at: Revision::Default, path };
        find_latest(fetcher, &project.path(""), name, &asked).await.unwrap_err()
    };
    let moved = error("a").await;
    assert_eq!(moved.code(), "moved");
    assert!(moved.to_string().ends_with("to `tools`"), "{moved}");
    assert!(moved.hint().unwrap().contains("path = \"tools\""));
    assert_eq!(error("b").await.code(), "gone");
    let renamed = error("c").await;
    assert_eq!(renamed.code(), "renamed");
    assert!(renamed.hint().unwrap().contains("write `other` instead of `c`"));
    let found = look(project, fetcher).await;
    assert!(unknown(&found, "a").contains("no longer has `skills/a`"));
    assert!(unknown(&found, "b").contains("no longer has `skills/b`"));
}

#[tokio::test]
async fn update_check_of_single_skill_repository() {
    let (project, repository) = (TestProject::new(), Repository::new());
    let text = String::from_utf8(skill("pdf", "1.0.0", "").get("SKILL.md").unwrap().bytes.clone())
        .unwrap();
    repository.write("SKILL.md", &text);
    repository.commit();
    let fetcher = fetcher(&project);
    add(&project, &fetcher, &format!("git+{}", repository.url())).await;
    repository.write(".vscode/settings.json", "steers tools, and is not part of the skill");
    repository.commit();
    let found = look(&project, &fetcher).await;
    assert_eq!(found["pdf"], Availability::Current);
    repository.write("SKILL.md", text.replace("1.0.0", "1.0.1"));
    repository.commit();
    assert_eq!(newer(&look(&project, &fetcher).await), [("pdf", Some("1.0.1".into()))]);
}

#[tokio::test]
async fn update_results_are_cached() {
    let (project, repository) = (TestProject::new(), Repository::new());
    for name in ["a", "b"] {
        write(&repository, name, &skill(name, "1.0.0", ""));
    }
    repository.commit();
    let (fetcher, cache) = (fetcher(&project), project.data().join("cache"));
    add(&project, &fetcher, &format!("git+{}", repository.url())).await;
    write(&repository, "a", &skill("a", "1.1.0", ""));
    repository.commit();
    let (skill_set, state) = (project.skill_set(), project.skill_set().state().unwrap());
    assert_eq!(load_cached_updates(&cache, skill_set.root(), &state), None, "nobody looked yet");
    let mut found = look(&project, &fetcher).await;
    found.insert("gone".into(), Availability::Current);
    save_updates(&cache, skill_set.root(), &state, &found).unwrap();
    let memory = load_cached_updates(&cache, skill_set.root(), &state).unwrap();
    found.remove("gone");
    assert_eq!(memory.skills, found);
    let later = project.skill_set_of(savoir_package::manifest::Scope::User, &project.home("x"));
    assert_eq!(
        load_cached_updates(&cache, later.root(), &state),
        None,
        "it is about another shelf"
    );

    add(&project, &fetcher, &format!("git+{}", repository.url())).await;
    let now = project.skill_set().state().unwrap();
    let memory = load_cached_updates(&cache, skill_set.root(), &now).unwrap();
    assert!(!memory.skills.contains_key("a"), "it is not what it was: {memory:?}");

    let folder = cache.join("updates");
    let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let good = fs::read(&file).unwrap();
    for cut in [0, 1, good.len() / 2, good.len() - 1] {
        fs::write(&file, &good[..cut]).unwrap();
        assert_eq!(load_cached_updates(&cache, skill_set.root(), &state), None, "cut at {cut}");
    }
}
