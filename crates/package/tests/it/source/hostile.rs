//! Tests with malicious repositories.

use std::{fs, os::unix::fs::PermissionsExt as _};

use savoir_package::source::{GitSource, GitUrl, Source};

use super::{TestFetcher, paths, repository::Repository, skill};

fn one_skill() -> Repository {
    let repository = Repository::new();
    repository.write("a/SKILL.md", skill("a"));
    repository
}

#[tokio::test]
async fn links_out_of_the_repository_are_broken() {
    let repository = one_skill();
    repository.write("LICENSE", "l");
    repository.write("b/SKILL.md", skill("b"));
    repository.link("a/again.md", "SKILL.md");
    repository.link("a/third.md", "./again.md");
    repository.link("a/LICENSE", "../b/../LICENSE");
    repository.commit();
    let test = TestFetcher::new();
    let offers = test.offers(&repository.url()).await.unwrap();
    let tree = test.fetcher.fetch(&offers[0]).await.unwrap();
    assert_eq!(paths(&tree), ["LICENSE", "SKILL.md", "again.md", "third.md"]);
    assert_eq!(tree.get("third.md"), tree.get("SKILL.md"));
    assert_eq!(tree.get("LICENSE").unwrap().bytes, b"l");
    for target in ["../../secret", "/etc/passwd", "nowhere", "..", ".", "out", "../a/out/x"] {
        repository.link("a/out", target);
        repository.commit();
        let test = TestFetcher::new();
        let offers = test.offers(&repository.url()).await.unwrap();
        let trees = test.fetcher.fetch_all(&offers).await;
        assert_eq!(trees[0].as_ref().unwrap_err().code(), "link", "{target}");
        assert!(trees[1].is_ok(), "one bad skill does not matter to the others");
        fs::remove_file(repository.path().join("a/out")).unwrap();
    }
}

#[tokio::test]
async fn exponential_links_are_rejected() {
    let repository = one_skill();
    for level in 0..12 {
        for link in 0..8 {
            repository.write(&format!("l{level}/file"), "x");
            repository.link(&format!("l{level}/{link}"), &format!("../l{}", level + 1));
        }
    }
    repository.write("l12/file", "x");
    repository.link("a/many", "../l0");
    repository.commit();
    let refused = TestFetcher::new().code(&repository.url()).await;
    assert!(["too_large", "link"].contains(&refused), "{refused}");
}

#[tokio::test]
async fn a_submodule_is_not_fetched() {
    let repository = one_skill();
    let commit = repository.commit();
    let entry = format!("160000,{commit},a/module");
    repository.git(&["update-index", "--add", "--cacheinfo", &entry]);
    repository.git(&["commit", "--quiet", "--message=x"]);
    assert_eq!(TestFetcher::new().code(&repository.url()).await, "submodule");
}

#[tokio::test]
async fn names_like_options_are_not_options() {
    let (test, repository) = (TestFetcher::new(), one_skill());
    let place = tempfile::Builder::new().prefix("mark").tempdir().unwrap();
    let mark = place.path().join("mark");
    let commit = repository.commit();
    let name = format!("--upload-pack=touch${{IFS}}{}", mark.display());
    let broken = "--upload-pack=touch/.mark";
    let line = |name: &str| format!("{commit} refs/heads/{name}\n");
    let packed = repository.path().join(".git/packed-refs");
    fs::write(packed, line(&name) + &line(broken)).unwrap();
    let url = GitUrl::parse(&repository.url()).unwrap();
    let source = |name: &str| {
        Source::Git(GitSource { url: url.clone(), reference: Some(name.to_owned()), path: None })
    };
    assert_eq!(test.fetcher.offers(&source(&name)).await.unwrap().len(), 1);
    let refused = test.fetcher.offers(&source(broken)).await.unwrap_err();
    assert_eq!(refused.code(), "no_reference");
    let typed = Source::parse(&format!("{}@{name}", repository.url()), test.path());
    assert_eq!(typed.unwrap_err().code(), "source_text");
    assert!(!mark.exists());
}

#[tokio::test]
async fn hooks_and_filters_are_not_run() {
    let (test, repository) = (TestFetcher::new(), one_skill());
    let mark = test.path().join("mark");
    repository.write(".gitattributes", "* filter=evil text eol=crlf ident\n");
    repository.write("a/.gitattributes", "* filter=evil text eol=crlf ident\n");
    repository.write("a/id.txt", "$Id$\n");
    repository.commit();
    for key in ["filter.evil.smudge", "filter.evil.clean", "core.fsmonitor", "core.sshCommand"] {
        repository.git(&["config", key, &format!("touch {}", mark.display())]);
    }
    for hook in ["post-checkout", "post-upload-pack", "pre-receive", "reference-transaction"] {
        let path = repository.path().join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let (_, tree) = test.one(&repository.url()).await.unwrap();
    assert_eq!(tree.get("id.txt").unwrap().bytes, b"$Id$\n");
    assert!(!mark.exists());
}

#[tokio::test]
async fn too_large_repository_is_rejected() {
    let repository = one_skill();
    repository.write("a/huge.bin", vec![0; 6 * 1024 * 1024]);
    repository.commit();
    assert_eq!(TestFetcher::new().code(&repository.url()).await, "too_large");
    fs::remove_file(repository.path().join("a/huge.bin")).unwrap();
    for n in 0..2_001 {
        repository.write(&format!("a/data/{n}"), "");
    }
    repository.commit();
    assert_eq!(TestFetcher::new().code(&repository.url()).await, "too_large");
}

#[tokio::test]
async fn repository_size_is_limited() {
    let repository = one_skill();
    let noise = (0..400_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes());
    repository.write("a/noise.bin", noise.collect::<Vec<_>>());
    repository.commit();
    let small = TestFetcher::with(|settings| settings.max_repository_bytes = 50_000);
    assert_eq!(small.code(&repository.url()).await, "too_large");
}

#[tokio::test]
async fn forbidden_paths_are_rejected() {
    for (path, code) in [
        ("a/skill.md", "path_collision"),
        ("a/x/CON", "path_characters"),
        ("a/.claude/settings.json", "forbidden_path"),
        ("a/b\\c", "path_characters"),
    ] {
        let repository = one_skill();
        repository.write(path, "x");
        repository.commit();
        assert_eq!(TestFetcher::new().code(&repository.url()).await, code, "{path}");
    }
}

#[tokio::test]
async fn git_lfs_file_is_rejected() {
    let repository = one_skill();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 1\n";
    repository.write("a/font.ttf", pointer);
    repository.commit();
    assert_eq!(TestFetcher::new().code(&repository.url()).await, "git_lfs");
}

#[tokio::test]
async fn invalid_git_trees_are_rejected() {
    for (mode, name, code) in [
        ("100644", &b"SKILL.md"[..], "duplicate_entry"),
        ("100644", b"..", "path_traversal"),
        ("100644", b"../../x", "path_traversal"),
        ("100644", b"/etc/x", "absolute_path"),
        ("100644", b"x\ny", "path_characters"),
    ] {
        let repository = one_skill();
        repository.commit();
        let file = repository.git(&["rev-parse", "HEAD:a/SKILL.md"]);
        let skill = repository.raw_tree(&[("100644", b"SKILL.md", &file), (mode, name, &file)]);
        repository.commit_raw(&[("40000", b"a", &skill)]);
        let found = TestFetcher::new().code(&repository.url()).await;
        assert_eq!(found, code, "{}", name.escape_ascii());
    }
}
