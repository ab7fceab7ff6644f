//! Tests of git repositories.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use savoir_package::{
    Tree,
    install::{locked_source, requirement_for},
    manifest::SkillRequirement,
    source::{ExtraKind, OfferedSkill, PinnedSource, Source, SourceError},
};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::path};

use super::{
    TestFetcher, names, paths,
    repository::{Repository, cached, git, objects},
    skill,
};

fn collection() -> Repository {
    let repository = Repository::new();
    repository.write("README.md", "# Skills\n");
    repository.write("skills/pdf/SKILL.md", skill("pdf"));
    repository.write("skills/pdf/scripts/run.sh", "#!/bin/sh\n");
    let run = repository.path().join("skills/pdf/scripts/run.sh");
    fs::set_permissions(run, fs::Permissions::from_mode(0o755)).unwrap();
    repository.write("skills/csv/SKILL.md", skill("csv"));
    repository.write("big.bin", vec![7; 100_000]);
    repository
}

#[tokio::test]
async fn a_repository_lists_its_skills() {
    let (test, repository) = (TestFetcher::new(), collection());
    let commit = repository.commit();
    repository.git(&["tag", "-a", "v1", "--message=v1"]);
    let offers = test.offers(&format!("{}@v1", repository.url())).await.unwrap();
    assert_eq!(names(&offers), ["csv", "pdf"]);
    assert_eq!(offers[1].description.as_deref(), Some("Does pdf."));
    let text = offers[1].source.text(test.path());
    assert_eq!(text, format!("git+{}?tag=v1#{commit}:skills/pdf", repository.url()));
    let tree = test.fetcher.fetch(&offers[1]).await.unwrap();
    assert_eq!(paths(&tree), ["SKILL.md", "scripts/run.sh"]);
    assert!(tree.get("scripts/run.sh").unwrap().executable);
    let folder = Tree::read(&repository.path().join("skills/pdf")).unwrap();
    assert_eq!(tree.integrity(), folder.integrity());
}

#[tokio::test]
async fn only_needed_objects_are_fetched() {
    let (test, repository) = (TestFetcher::new(), collection());
    repository.write("old", "1");
    repository.commit();
    repository.write("old", "2");
    repository.commit();
    let offers = test.offers(&repository.url()).await.unwrap();
    // One commit, the trees `.`, `skills`, `csv`, `pdf` and `scripts`, and two SKILL.md files.
    let trees = ["tree"; 5];
    let listed = [&["blob"; 2][..], &["commit"], &trees].concat();
    assert_eq!(objects(test.path()), listed);
    test.fetcher.fetch(&offers[1]).await.unwrap();
    let fetched = [&["blob"; 3][..], &["commit"], &trees].concat();
    assert_eq!(objects(test.path()), fetched);
    test.fetcher.fetch(&offers[1]).await.unwrap();
    assert_eq!(objects(test.path()), fetched, "it is there already");
}

#[tokio::test]
async fn server_without_filter_support_works() {
    let (test, repository) = (TestFetcher::new(), collection());
    repository.git(&["config", "uploadpack.allowFilter", "false"]);
    repository.commit();
    let offers = test.offers(&repository.url()).await.unwrap();
    let tree = test.fetcher.fetch(&offers[0]).await.unwrap();
    assert_eq!(paths(&tree), ["SKILL.md"]);
}

#[tokio::test]
async fn paths_and_references() {
    let (test, repository) = (TestFetcher::new(), collection());
    repository.write("prompts/My Notes.md", "Just prose.\n");
    let commit = repository.commit();
    repository.git(&["branch", "feature/x"]);
    let url = repository.url();
    let (offer, tree) = test.one(&format!("{url}/.git/skills/pdf@{commit}")).await.unwrap();
    assert_eq!(offer.name, "pdf");
    assert_eq!(tree.files().len(), 2);
    let (offer, _) = test.one(&format!("{url}/.git/skills/csv@feature/x")).await.unwrap();
    assert!(offer.source.text(test.path()).contains("?branch=feature/x#"));
    let notes = format!("git+{url}/.git/prompts/My%20Notes.md");
    let (offer, tree) = test.one(&notes).await.unwrap();
    assert_eq!(offer.name, "my-notes");
    assert_eq!(tree.get("SKILL.md").unwrap().bytes, b"Just prose.\n");
    let missing = test.offers(&format!("{url}/.git/skills/pdff")).await.unwrap_err();
    assert_eq!(missing.code(), "no_path_inside");
    assert!(missing.to_string().contains("`skills/pdf`"), "{missing}");
    let missing = test.offers(&format!("{url}@mian")).await.unwrap_err();
    assert!(missing.to_string().ends_with("commit `mian`; it has `main`"), "{missing}");
    assert_eq!(test.code(&format!("{url}/.git/README.md@{}", "1".repeat(40))).await, "no_commit");
}

#[tokio::test]
async fn moved_tag_is_an_error() {
    let (test, repository) = (TestFetcher::new(), collection());
    let first = repository.commit();
    repository.git(&["tag", "v1"]);
    let text = format!("{}/.git/skills/pdf@v1", repository.url());
    let (offer, tree) = test.one(&text).await.unwrap();
    let locked = offer.source.text(test.path());
    let place = PinnedSource::parse(&locked, test.path()).unwrap();
    assert_eq!(test.fetcher.fetch_locked(&place).await.unwrap(), tree);
    repository.write("skills/pdf/evil.sh", "rm\n");
    let second = repository.commit();
    repository.git(&["tag", "--force", "v1"]);
    let moved = test.fetcher.fetch_locked(&place).await.unwrap_err();
    assert_eq!(moved.code(), "tag_moved");
    assert!(moved.to_string().contains(&first) && moved.to_string().contains(&second), "{moved}");
    repository.git(&["tag", "--delete", "v1"]);
    let gone = test.fetcher.fetch_locked(&place).await.unwrap_err();
    assert!(gone.to_string().contains("to nowhere"), "{gone}");
    // A branch may move, because the lock pins the commit.
    let branch = locked.replace("?tag=v1", "?branch=main");
    let place = PinnedSource::parse(&branch, test.path()).unwrap();
    assert_eq!(test.fetcher.fetch_locked(&place).await.unwrap(), tree);
}

#[tokio::test]
async fn other_folders_are_not_fetched() {
    let (test, repository) = (TestFetcher::new(), collection());
    repository.write(".claude/settings.json", "{}");
    repository.write(".vscode/tasks.json", "{}");
    repository.write(".claude/skills/inner/SKILL.md", skill("inner"));
    for n in 0..3_000 {
        repository.write(&format!("data/{}/{n}", n % 50), "");
    }
    repository.commit();
    let offers = test.offers(&repository.url()).await.unwrap();
    assert_eq!(names(&offers), ["inner", "csv", "pdf"]);
    for offer in &offers {
        test.fetcher.fetch(offer).await.unwrap();
    }
}

#[tokio::test]
async fn skills_in_agent_folders_are_listed() {
    let (test, repository) = (TestFetcher::new(), Repository::new());
    let folders = [".agents", ".claude", ".codex", ".cursor", ".github"];
    for folder in folders {
        let name = folder.trim_start_matches('.');
        repository.write(&format!("{folder}/skills/{name}/SKILL.md"), skill(name));
        repository.write(&format!("{folder}/skills/{name}/scripts/run.sh"), "#!/bin/sh\n");
    }
    // A forbidden file rejects only its own skill.
    repository.write(".claude/skills/evil/SKILL.md", skill("evil"));
    repository.write(".claude/skills/evil/.claude/settings.json", "{}");
    repository.commit();
    let offers = test.offers(&repository.url()).await.unwrap();
    assert_eq!(names(&offers), ["agents", "claude", "evil", "codex", "cursor", "github"]);
    for (offer, tree) in offers.iter().zip(test.fetcher.fetch_all(&offers).await) {
        if offer.name == "evil" {
            assert_eq!(tree.unwrap_err().code(), "forbidden_path");
            continue;
        }
        assert_eq!(paths(&tree.unwrap()), ["SKILL.md", "scripts/run.sh"]);
        let locked = locked_source(&offer.source, test.path()).unwrap();
        let place = PinnedSource::parse(&locked.to_string(), test.path()).unwrap();
        assert!(test.fetcher.fetch_locked(&place).await.is_ok(), "{locked}");
        let requirement_for = requirement_for(&offer.source, test.path());
        assert!(
            matches!(requirement_for, SkillRequirement::Git { path: Some(path), .. } if path.starts_with('.'))
        );
    }
}

#[tokio::test]
async fn links_inside_a_repository_are_followed() {
    let (test, repository) = (TestFetcher::new(), Repository::new());
    repository.write("LICENSE", "l");
    repository.write("skills/a/SKILL.md", skill("a"));
    repository.link("skills/a/LICENSE", "../../LICENSE");
    repository.write("shared/x/SKILL.md", skill("x"));
    repository.write("shared/docs/one.md", "1");
    repository.link("skills/x", "../shared/x");
    repository.link("skills/a/docs", "../../shared/docs");
    repository.write("texts/z.md", skill("z"));
    repository.write("skills/z/notes.md", "n");
    repository.link("skills/z/SKILL.md", "../../texts/z.md");
    repository.write(".claude/settings.json", "{}");
    repository.link(".claude/skills", "../skills");
    repository.link("skills/gone", "../nowhere");
    repository.commit();
    let url = repository.url();
    let offers = test.offers(&url).await.unwrap();
    assert_eq!(places(&offers), ["shared/x", "skills/a", "skills/z"]);
    assert_eq!(names(&offers), ["x", "a", "z"]);
    let trees = test.fetcher.fetch_all(&offers).await;
    let trees: Vec<Tree> = trees.into_iter().map(Result::unwrap).collect();
    assert_eq!(paths(&trees[1]), ["LICENSE", "SKILL.md", "docs/one.md"]);
    assert_eq!(trees[2].get("SKILL.md").unwrap().bytes, skill("z").into_bytes());
    for inside in ["skills", ".claude/skills", ".claude"] {
        let offers = test.offers(&format!("{url}/.git/{inside}")).await.unwrap();
        assert_eq!(places(&offers), ["shared/x", "skills/a", "skills/z"], "{inside}");
    }
    let (offer, tree) = test.one(&format!("{url}/.git/.claude/skills/x")).await.unwrap();
    assert_eq!((places(&[offer]), tree), (vec!["shared/x".to_owned()], trees[0].clone()));
    // The same in a work tree.
    let folder = repository.path().join(".claude/skills").display().to_string();
    for named in [repository.path().display().to_string(), folder] {
        let offers = test.offers(&named).await.unwrap();
        let mut names = names(&offers);
        names.sort_unstable();
        assert_eq!(names, ["a", "x", "z"], "{named}");
        for (offer, tree) in offers.iter().zip(test.fetcher.fetch_all(&offers).await) {
            assert!(trees.contains(&tree.unwrap()), "{}", offer.name);
        }
    }
}

fn places(offers: &[OfferedSkill]) -> Vec<String> {
    let path = |offer: &OfferedSkill| match &offer.source {
        PinnedSource::Git(place) => place.path.clone(),
        other => format!("{other:?}"),
    };
    offers.iter().map(path).collect()
}

#[tokio::test]
async fn invalid_skill_does_not_block_others() {
    let test = TestFetcher::with(|settings| settings.max_repository_bytes = 5_000_000);
    let repository = collection();
    let commit = repository.commit();
    repository.write("skills/huge/SKILL.md", skill("huge"));
    let noise = (0..1_400_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes());
    repository.write("skills/huge/noise.bin", noise.collect::<Vec<_>>());
    repository.write("skills/odd/SKILL.md", skill("odd"));
    repository.write("skills/odd/a\nb", "x");
    for n in 0..2_001 {
        repository.write(&format!("skills/many/{n}"), "");
    }
    repository.write("skills/many/SKILL.md", skill("many"));
    repository.commit();
    for module in ["skills/module/m", "skills/m2/SKILL.md", "elsewhere"] {
        let entry = format!("160000,{commit},{module}");
        repository.git(&["update-index", "--add", "--cacheinfo", &entry]);
    }
    repository.git(&["commit", "--quiet", "--message=x"]);
    let offers = test.offers(&repository.url()).await.unwrap();
    assert_eq!(names(&offers), ["csv", "huge", "many", "odd", "pdf"]);
    let trees = test.fetcher.fetch_all(&offers).await;
    let codes: Vec<_> =
        trees.iter().map(|tree| tree.as_ref().map_or_else(SourceError::code, |_| "ok")).collect();
    assert_eq!(codes, ["ok", "too_large", "too_large", "path_characters", "ok"]);
}

#[tokio::test]
async fn bare_repository_is_read_in_place() {
    let (test, repository) = (TestFetcher::new(), collection());
    let commit = repository.commit();
    let bare = test.path().join("a b.git");
    let place = bare.display().to_string();
    git(repository.path(), &["clone", "--quiet", "--bare", ".", &place]);
    let offers = test.offers(&place).await.unwrap();
    assert_eq!(names(&offers), ["csv", "pdf"]);
    let trees = test.fetcher.fetch_all(&offers).await;
    assert_eq!(paths(trees[1].as_ref().unwrap()), ["SKILL.md", "scripts/run.sh"]);
    let locked = locked_source(&offers[1].source, test.path()).unwrap().to_string();
    assert!(
        locked.starts_with("git+file:///") && locked.ends_with(&format!("#{commit}:skills/pdf"))
    );
    let packs = cached(test.path())[0].join("objects/pack");
    assert_eq!(fs::read_dir(packs).map_or(0, Iterator::count), 0, "nothing was copied");
    let again = test.offers(&format!("file://{}", place.replace(' ', "%20"))).await.unwrap();
    assert_eq!(again, offers);
    assert_eq!(test.offers("./a b.git/").await.unwrap(), offers);
    assert!(!bare.join("SKILL.md").exists() && !bare.join("skills").exists());
    // Later commits are found.
    repository.write("skills/new/SKILL.md", skill("new"));
    repository.commit();
    git(&bare, &["fetch", "--quiet", &repository.url(), "main:main"]);
    assert_eq!(names(&test.offers(&place).await.unwrap()), ["csv", "new", "pdf"]);
}

#[tokio::test]
async fn plugin_extras_are_listed() {
    let (test, repository) = (TestFetcher::new(), Repository::new());
    let plugin = r#"{"name": "tools", "mcpServers": {"db": {"command": "db"}}}"#;
    let hooks = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}}"#;
    repository.write(".claude-plugin/plugin.json", plugin);
    repository.write("hooks/hooks.json", hooks);
    repository.write("commands/deploy.md", "x");
    repository.write("skills/a/SKILL.md", skill("a"));
    repository.link("skills/gone", "../nowhere");
    repository.commit();
    let folder = repository.path().display().to_string();
    for text in [repository.url(), folder] {
        let source = Source::parse(&text, test.path()).unwrap();
        let found = test.fetcher.look(&source).await.unwrap();
        assert_eq!(names(&found.skills), ["a"]);
        assert!(found.skills[0].location().ends_with("skills/a"));
        assert_eq!(found.skipped[0].path, "skills/gone");
        let extras = found.not_installed.iter().map(|extra| (extra.kind, extra.name.as_str()));
        let expected = [
            (ExtraKind::Hook, "Stop"),
            (ExtraKind::Command, "deploy"),
            (ExtraKind::McpServer, "db"),
        ];
        assert_eq!(extras.collect::<Vec<_>>(), expected, "{text}");
        assert!(found.not_installed.iter().all(|extra| extra.plugin == "tools"));
    }
}

#[tokio::test]
async fn a_repository_may_be_a_skill() {
    let (test, repository) = (TestFetcher::new(), Repository::new());
    repository.write("SKILL.md", "Prose without a name.\n");
    repository.write("node_modules/x/SKILL.md", "x");
    repository.write("references/a.md", "a");
    repository.write(".claude/settings.json", "{}");
    repository.commit();
    let (_, tree) = test.one(&repository.url()).await.unwrap();
    assert_eq!(paths(&tree), ["SKILL.md", "references/a.md"]);
}

#[tokio::test]
async fn concurrent_fetches_wait_for_lock() {
    let (test, repository) = (TestFetcher::new(), collection());
    repository.commit();
    let url = repository.url();
    let (a, b, c) = tokio::join!(test.offers(&url), test.offers(&url), test.offers(&url));
    assert_eq!((a.unwrap().len(), b.unwrap().len(), c.unwrap().len()), (2, 2, 2));
    assert_eq!(cached(test.path()).len(), 1);
}

#[tokio::test]
async fn git_errors_are_explained() {
    let test = TestFetcher::new();
    let unreachable = test.offers("https://127.0.0.1:1/o/r").await.unwrap_err();
    assert_eq!(unreachable.code(), "unreachable");
    assert!(unreachable.to_string().starts_with("`127.0.0.1` cannot be reached: "));
    assert_eq!(test.code("file:///no/such/repository").await, "no_repository");
    let empty = Repository::new();
    assert_eq!(test.code(&empty.url()).await, "empty_repository");
    empty.write("README.md", "x");
    empty.commit();
    assert_eq!(test.code(&empty.url()).await, "no_skill");
    let without = TestFetcher::with(|settings| settings.git = "/no/such/git".into());
    let missing = without.offers(&empty.url()).await.unwrap_err();
    assert!(missing.to_string().ends_with("install git"), "{missing}");
}

#[tokio::test]
async fn git_and_its_helpers_are_killed() {
    let place = tempfile::tempdir().unwrap();
    let (program, mark) = (place.path().join("git"), place.path().join("mark"));
    let script = format!("#!/bin/sh\n(sleep 2; echo late > '{}') &\nsleep 30\n", mark.display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let test = TestFetcher::with(|settings| {
        settings.git = program;
        settings.git_timeout = Duration::from_millis(300);
    });
    assert_eq!(test.code("file:///x").await, "timed_out");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!mark.exists());
}

#[tokio::test]
async fn git_server_errors_are_explained() {
    let (test, server) = (TestFetcher::new(), MockServer::start().await);
    let repository = collection();
    repository.commit();
    let answer = |status: u16| ResponseTemplate::new(status);
    let login = answer(401).insert_header("www-authenticate", "Basic realm=x");
    let local = answer(302).insert_header("location", repository.url() + "/.git/info/refs");
    for (at, answer) in
        [("private", login), ("none", answer(404)), ("broken", answer(500)), ("local", local)]
    {
        let at = format!("/o/{at}.git/info/refs");
        Mock::given(path(at)).respond_with(answer).mount(&server).await;
    }
    for (at, code) in [
        ("private", "no_repository"),
        ("none", "no_repository"),
        ("broken", "git_failed"),
        // A URL over HTTP cannot redirect git to local files.
        ("local", "git_failed"),
    ] {
        assert_eq!(test.code(&format!("{}/o/{at}.git", server.uri())).await, code, "{at}");
    }
}
