//! Tests of files from URLs.

use std::time::Duration;

use savoir_package::source::{Digest, PinnedSource};
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{any, path},
};

use super::{TestFetcher, names, paths, skill, zip};

async fn serve(server: &MockServer, at: &str, bytes: impl Into<Vec<u8>>) {
    let answer = ResponseTemplate::new(200).set_body_raw(bytes, "text/html");
    Mock::given(path(at)).respond_with(answer).mount(server).await;
}

async fn redirect(server: &MockServer, from: &str, to: &str) {
    let answer = ResponseTemplate::new(302).insert_header("location", to);
    Mock::given(path(from)).respond_with(answer).mount(server).await;
}

#[tokio::test]
async fn an_archive_is_loaded_once() {
    let (test, server) = (TestFetcher::new(), MockServer::start().await);
    let (a, b) = (skill("a"), skill("b"));
    let bytes = zip(&[("a/SKILL.md", &a), ("b/SKILL.md", &b)]);
    let answer = ResponseTemplate::new(200).set_body_bytes(bytes.clone());
    Mock::given(path("/x.zip")).respond_with(answer).expect(1).mount(&server).await;
    let offers = test.offers(&format!("{}/x.zip", server.uri())).await.unwrap();
    assert_eq!(names(&offers), ["a", "b"]);
    let text = offers[1].source.text(test.path());
    assert_eq!(text, format!("url+{}/x.zip#{}:b", server.uri(), Digest::of(&bytes)));
    assert_eq!(paths(&test.fetcher.fetch(&offers[1]).await.unwrap()), ["SKILL.md"]);
    let place = PinnedSource::parse(&text, test.path()).unwrap();
    test.fetcher.fetch_locked(&place).await.unwrap();
}

#[tokio::test]
async fn content_decides_file_format() {
    let (test, server) = (TestFetcher::new(), MockServer::start().await);
    serve(&server, "/docs/notes/SKILL.md", "Be brief.").await;
    serve(&server, "/x.md", zip(&[("x/SKILL.md", "prose")])).await;
    serve(&server, "/page.zip", "\n<!DOCTYPE html><p>Log in").await;
    let (offer, tree) = test.one(&format!("{}/docs/notes/SKILL.md", server.uri())).await.unwrap();
    assert_eq!((offer.name.as_str(), paths(&tree)), ("notes", vec!["SKILL.md"]));
    assert_eq!(test.one(&format!("{}/x.md", server.uri())).await.unwrap().0.name, "x");
    assert_eq!(test.code(&format!("{}/page.zip", server.uri())).await, "not_a_file");
}

#[tokio::test]
async fn different_digest_is_rejected() {
    let (test, server) = (TestFetcher::new(), MockServer::start().await);
    serve(&server, "/x.md", "new").await;
    let url = format!("{}/x.md", server.uri());
    let (old, new) = (Digest::of(b"old"), Digest::of(b"new"));
    let typed = test.one(&format!("{url}#{old}")).await.unwrap_err();
    assert_eq!(typed.code(), "digest_mismatch");
    let both = [old.to_string(), new.to_string()];
    assert!(both.iter().all(|digest| typed.to_string().contains(digest)), "{typed}");
    assert!(test.one(&format!("{url}#{new}")).await.is_ok());
    let locked = PinnedSource::parse(&format!("url+{url}#{old}"), test.path()).unwrap();
    let locked = test.fetcher.fetch_locked(&locked).await.unwrap_err();
    assert_eq!(locked.code(), "digest_mismatch");
}

#[tokio::test]
async fn redirects_are_checked() {
    let (test, server) = (TestFetcher::new(), MockServer::start().await);
    serve(&server, "/0.md", "prose").await;
    for n in 1..=6 {
        redirect(&server, &format!("/{n}.md"), &format!("/{}.md", n - 1)).await;
    }
    assert!(test.one(&format!("{}/5.md", server.uri())).await.is_ok());
    assert_eq!(test.code(&format!("{}/6.md", server.uri())).await, "address_refused");
    for (n, target) in
        ["http://x.example/a.md", "http://10.0.0.1/a.md", "ftp://x.example/", "file:///etc/passwd"]
            .iter()
            .enumerate()
    {
        redirect(&server, &format!("/to{n}.md"), target).await;
        let refused = test.code(&format!("{}/to{n}.md", server.uri())).await;
        assert_eq!(refused, "address_refused", "{target}");
    }
}

#[tokio::test]
async fn http_errors_are_reported() {
    let test = TestFetcher::new();
    let short = TestFetcher::with(|settings| settings.http_timeout = Duration::from_millis(700));
    let server = MockServer::start().await;
    serve(&server, "/large.zip", vec![b'x'; 10 * 1024 * 1024 + 1]).await;
    let slow = ResponseTemplate::new(200).set_delay(Duration::from_secs(20));
    Mock::given(path("/slow.zip")).respond_with(slow).mount(&server).await;
    let private = ResponseTemplate::new(403);
    Mock::given(path("/private.zip")).respond_with(private).mount(&server).await;
    Mock::given(any())
        .respond_with(ResponseTemplate::new(404))
        .with_priority(9)
        .mount(&server)
        .await;
    let at = |name: &str| format!("{}/{name}.zip", server.uri());
    assert_eq!(test.code(&at("large")).await, "too_large");
    assert_eq!(short.code(&at("slow")).await, "timed_out");
    assert_eq!(test.code(&at("none")).await, "http_status");
    let login = test.one(&at("private")).await.unwrap_err().to_string();
    assert!(login.contains("answers 403: it needs a login"), "{login}");
    let nobody = test.one("http://127.0.0.1:1/x.zip").await.unwrap_err();
    assert_eq!(nobody.code(), "unreachable");
    assert!(nobody.to_string().contains("refused"), "{nobody}");
    let nameless = TestFetcher::new().one("https://no-such-host.invalid/x.zip").await.unwrap_err();
    assert_eq!(nameless.code(), "unreachable", "{nameless}");
}
