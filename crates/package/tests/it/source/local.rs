//! Tests of local folders and files.

use std::{fs, os::unix::fs::symlink};

use savoir_package::source::PinnedSource;

use super::{TestFetcher, names, paths, skill, zip};

#[tokio::test]
async fn folder_is_a_skill_or_contains_skills() {
    let test = TestFetcher::new();
    for name in ["pdf", "csv"] {
        let folder = test.path().join("all/deep").join(name);
        fs::create_dir_all(folder.join("assets")).unwrap();
        fs::write(folder.join("SKILL.md"), skill(name)).unwrap();
        fs::write(folder.join("assets/SKILL.md"), "a template").unwrap();
    }
    let (offer, tree) = test.one("./all/deep/pdf").await.unwrap();
    assert_eq!((offer.name.as_str(), offer.description.as_deref()), ("pdf", Some("Does pdf.")));
    assert_eq!(paths(&tree), ["SKILL.md", "assets/SKILL.md"]);
    let text = offer.source.text(test.path());
    assert_eq!(text, "path+./all/deep/pdf");
    let place = PinnedSource::parse(&text, test.path()).unwrap();
    assert_eq!(test.fetcher.fetch_locked(&place).await.unwrap(), tree);
    assert_eq!(names(&test.offers("./all").await.unwrap()), ["csv", "pdf"]);
    fs::create_dir(test.path().join("none")).unwrap();
    assert_eq!(test.code("./none").await, "no_skill");
}

#[tokio::test]
async fn links_must_stay_in_named_folder() {
    let test = TestFetcher::new();
    let all = test.path().join("all");
    fs::create_dir_all(all.join("skills/a")).unwrap();
    fs::create_dir_all(all.join("shared/x")).unwrap();
    fs::create_dir_all(all.join("skills/bad")).unwrap();
    fs::write(all.join("skills/a/SKILL.md"), skill("a")).unwrap();
    fs::write(all.join("skills/bad/SKILL.md"), skill("bad")).unwrap();
    fs::write(all.join("shared/x/SKILL.md"), skill("x")).unwrap();
    fs::write(all.join("LICENSE"), "l").unwrap();
    fs::write(test.path().join("secret"), "s").unwrap();
    symlink("../../LICENSE", all.join("skills/a/LICENSE")).unwrap();
    symlink("../shared/x", all.join("skills/x")).unwrap();
    symlink("../../../secret", all.join("skills/bad/secret")).unwrap();
    let offers = test.offers("./all").await.unwrap();
    assert_eq!(names(&offers), ["x", "a", "bad"]);
    let trees = test.fetcher.fetch_all(&offers).await;
    assert_eq!(paths(trees[0].as_ref().unwrap()), ["SKILL.md"]);
    assert_eq!(paths(trees[1].as_ref().unwrap()), ["LICENSE", "SKILL.md"]);
    assert_eq!(trees[2].as_ref().unwrap_err().code(), "link");
    let text = offers[1].source.text(test.path());
    assert_eq!(text, "path+./all#skills/a");
    let place = PinnedSource::parse(&text, test.path()).unwrap();
    assert!(test.fetcher.fetch_locked(&place).await.is_ok());
    let climbing = PinnedSource::parse("path+./all#../secret", test.path()).unwrap();
    assert!(test.fetcher.fetch_locked(&climbing).await.is_err());
    // If only the skill is named, nothing shows that the folder above belongs to it.
    assert_eq!(test.code("./all/skills/a").await, "link");
}

#[tokio::test]
async fn an_archive_may_have_many() {
    let test = TestFetcher::new();
    let (a, b) = (skill("a"), skill("b"));
    let files = [("repo-1/README.md", ""), ("repo-1/a/SKILL.md", &a), ("repo-1/b/SKILL.md", &b)];
    fs::write(test.path().join("x.bin"), zip(&files)).unwrap();
    let offers = test.offers("./x.bin").await.unwrap();
    assert_eq!(names(&offers), ["a", "b"]);
    assert_eq!(offers[1].source.text(test.path()), "path+./x.bin#repo-1/b");
    assert_eq!(paths(&test.fetcher.fetch(&offers[1]).await.unwrap()), ["SKILL.md"]);
    fs::write(test.path().join("one.skill"), zip(&[("SKILL.md", "prose")])).unwrap();
    let (offer, tree) = test.one("one.skill").await.unwrap();
    assert_eq!((offer.name.as_str(), paths(&tree)), ("one", vec!["SKILL.md"]));
    fs::write(test.path().join("bad.zip"), b"PK\x03\x04nothing").unwrap();
    assert_eq!(test.code("bad.zip").await, "zip_malformed");
    fs::write(test.path().join("odd.zip"), b"\0\xff").unwrap();
    assert_eq!(test.code("odd.zip").await, "not_an_archive");
}

#[tokio::test]
async fn a_markdown_file_is_a_skill() {
    let test = TestFetcher::new();
    let text = "# Notes\r\n\r\nAlways be brief.\r\n";
    fs::write(test.path().join("My Notes.md"), text).unwrap();
    let (offer, tree) = test.one("./My Notes.md").await.unwrap();
    assert_eq!(offer.name, "my-notes");
    assert_eq!(paths(&tree), ["SKILL.md"]);
    assert_eq!(tree.get("SKILL.md").unwrap().bytes, text.as_bytes());
    fs::create_dir(test.path().join("pdf")).unwrap();
    fs::write(test.path().join("pdf/SKILL.md"), "prose").unwrap();
    assert_eq!(test.one("./pdf/SKILL.md").await.unwrap().0.name, "pdf");
}

#[tokio::test]
async fn registry_source_is_rejected() {
    let refused = TestFetcher::new().offers("acme/pdf@^1.2").await.unwrap_err();
    assert_eq!(refused.code(), "no_registry");
    assert!(refused.to_string().starts_with("`acme/pdf@^1.2` "), "{refused}");
}
