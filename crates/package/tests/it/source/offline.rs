//! Tests without a network: cached data is used, and missing data is reported.

use std::fs;

use savoir_package::source::{Fetcher, GitUrl, Network, PinnedSource, Settings, Source};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::path};

use super::{TestFetcher, names, paths, repository::Repository, skill, zip};

/// A fetcher with the same cache that sends no requests.
fn offline(test: &TestFetcher) -> Fetcher {
    let mut settings = Settings::new(test.path().join("cache"));
    settings.network = Network::Offline;
    Fetcher::new(settings)
}

#[tokio::test]
async fn cached_files_are_used_offline() {
    let (test, server) = (TestFetcher::new(), MockServer::start().await);
    let answer = ResponseTemplate::new(200).set_body_bytes(zip(&[("a/SKILL.md", &skill("a"))]));
    Mock::given(path("/x.zip")).respond_with(answer).expect(1).mount(&server).await;
    let source =
        |name: &str| Source::parse(&format!("{}/{name}.zip", server.uri()), test.path()).unwrap();
    let online = test.fetcher.offers(&source("x")).await.unwrap();
    let fetcher = offline(&test);
    assert_eq!(fetcher.offers(&source("x")).await.unwrap(), online);
    assert_eq!(paths(&fetcher.fetch(&online[0]).await.unwrap()), ["SKILL.md"]);
    let missing = fetcher.offers(&source("y")).await.unwrap_err();
    assert_eq!(missing.code(), "offline");
    assert!(missing.to_string().contains("/y.zip is not in the cache"), "{missing}");
    assert!(missing.hint().unwrap().contains("without --offline"));
}

#[tokio::test]
async fn cached_repository_is_used_offline() {
    let (test, repository) = (TestFetcher::new(), Repository::new());
    repository.write("a/SKILL.md", skill("a"));
    repository.write("a/big.txt", "x");
    repository.write("b/SKILL.md", skill("b"));
    repository.write("b/big.txt", "y");
    repository.commit();
    repository.git(&["tag", "v1"]);
    // The cache finds a repository by its address. Move the cached `file://` repository to the
    // folder of an HTTPS address.
    let here = format!("{}@v1", repository.url());
    let offers = test.offers(&here).await.unwrap();
    test.fetcher.fetch(&offers[0]).await.unwrap();
    let elsewhere = GitUrl::parse("https://host.invalid/o/r").unwrap();
    let folder = |url: &str| {
        let digest = savoir_skill::digest::sha256_hex(url.as_bytes());
        test.path().join("cache/git").join(&digest[..32])
    };
    fs::rename(folder(&repository.url()), folder(elsewhere.as_str())).unwrap();
    let fetcher = offline(&test);
    let source = |text: &str| Source::parse(text, test.path()).unwrap();
    let known = fetcher.offers(&source("https://host.invalid/o/r@v1")).await.unwrap();
    assert_eq!(names(&known), ["a", "b"]);
    let trees = fetcher.fetch_all(&known).await;
    assert_eq!(paths(trees[0].as_ref().unwrap()), ["SKILL.md", "big.txt"]);
    assert_eq!(trees[1].as_ref().unwrap_err().code(), "offline", "it was never fetched");
    let locked = PinnedSource::parse(&known[0].source.text(test.path()), test.path()).unwrap();
    assert!(fetcher.fetch_locked(&locked).await.is_ok(), "the tag cannot be asked for");
    let missing = fetcher.offers(&source("https://host.invalid/o/other")).await.unwrap_err();
    assert_eq!(missing.code(), "offline");
    assert!(missing.to_string().contains("https://host.invalid/o/other"), "{missing}");
    // Local repositories need no network.
    assert_eq!(fetcher.offers(&source(&here)).await.unwrap().len(), 2);
}
