//! Tests downloads of archives, complete and in ranges.

use reqwest::Method;
use savoir_skill::digest::sha256_hex;
use savoir_store::registry::Published;

use super::{API, Draft, draft, tree};
use crate::harness::{Client, Reply, TestServer, for_each_server};

/// A skill whose archive is larger than one chunk. Its content is random, because repetitive
/// content would be compressed.
fn large() -> Draft {
    let mut state = 1_u64;
    let noise: Vec<u8> = (0..1_500_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    let mut draft = draft("acme/large", "1.0.0");
    draft.tree = tree(&[("SKILL.md", b"---\nname: large\n---\nHi\n"), ("noise.bin", &noise)]);
    draft
}

fn route(published: &Published, filename: &str) -> String {
    format!("/registry/artifacts/{}/{filename}", published.sha256)
}

async fn given(who: &Client, path: &str) -> (Reply, Vec<u8>) {
    let response = who.request(Method::GET, path).send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes = response.bytes().await.unwrap().to_vec();
    (Reply { status, headers, text: String::new() }, bytes)
}

#[tokio::test]
async fn archives_of_every_size() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            for (draft, filename) in
                [(draft("acme/tool", "1.0.0"), "tool-1.0.0.zip"), (large(), "large-1.0.0.zip")]
            {
                let archive = draft.archive();
                let range = format!("{API}/skills/{}/download?version=^1", draft.package);
                let published = draft.publish(server, &ada).await;
                let path = route(&published, filename);
                let stranger = server.stranger();
                for _ in 0..2 {
                    let (head, bytes) = given(&stranger, &path).await;
                    assert!(bytes == archive && head.status == 200, "{filename}");
                    assert_eq!(head.header("cache-control"), "public, max-age=31536000, immutable");
                    assert_eq!(head.header("etag"), format!("\"{}\"", published.sha256));
                    assert_eq!(head.header("content-type"), "application/zip");
                    assert_eq!(head.header("content-length"), archive.len().to_string());
                }
                let (head, bytes) = given(&stranger, &range).await;
                assert_eq!(head.header("x-skill-version"), "1.0.0");
                assert!(head.header("x-integrity").starts_with("sha256-"));
                assert_eq!(head.header("cache-control"), "public, no-cache");
                let attached = format!("attachment; filename=\"{filename}\"");
                assert_eq!(head.header("content-disposition"), attached);
                assert_eq!(sha256_hex(&bytes), published.sha256);
                parts(server, &path, &archive).await;
                let wrong = route(&published, "other-1.0.0.zip");
                stranger.get(&wrong).await.refused(404, "not_found");
            }
        },
    )
    .await;
}

async fn parts(server: &TestServer, path: &str, archive: &[u8]) {
    let (stranger, size) = (server.stranger(), archive.len());
    for (asked, from, to) in [
        ("bytes=0-0".to_owned(), 0, 1),
        ("bytes=5-9".to_owned(), 5, 10),
        (format!("bytes={}-", size - 3), size - 3, size),
        ("bytes=-4".to_owned(), size - 4, size),
        (format!("bytes=1-{}", size * 2), 1, size),
    ] {
        let (head, bytes) = given(&stranger.header("range", &asked), path).await;
        assert_eq!(head.status, 206, "{asked}");
        let value = format!("bytes {from}-{}/{size}", to - 1);
        assert_eq!(head.header("content-range"), value);
        assert!(bytes == archive[from..to], "{asked}");
    }
    let (head, _) = given(&stranger.header("range", &format!("bytes={size}-")), path).await;
    assert_eq!(
        (head.status.as_u16(), head.header("content-range")),
        (416, &*format!("bytes */{size}"))
    );
    let head = Reply::of(stranger.request(Method::HEAD, path)).await;
    assert_eq!(head.header("content-length"), size.to_string());
    let tag = head.header("etag").to_owned();
    let same = stranger.header("if-none-match", &tag).get(path).await;
    assert_eq!(same.status, 304);
    // If the tag of `If-Range` does not match, the whole archive is sent.
    let other = stranger.header("if-range", "\"other\"").header("range", "bytes=0-0");
    assert_eq!(given(&other, path).await.0.status, 200);
}

#[tokio::test]
async fn damaged_archives_are_not_served() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            for (draft, filename) in
                [(draft("acme/tool", "1.0.0"), "tool-1.0.0.zip"), (large(), "large-1.0.0.zip")]
            {
                let published = draft.publish(server, &ada).await;
                let (digest, path) = (&published.sha256, route(&published, filename));
                let file = server.files().join("registry/blobs").join(&digest[..2]).join(digest);
                let mut bytes = std::fs::read(&file).unwrap();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                std::fs::write(&file, &bytes).unwrap();
                let whole = arrived(&server.stranger(), &path).await;
                assert!(whole.is_none(), "{filename}: damaged bytes arrived as if they were whole");
                // A truncated archive does not arrive either.
                std::fs::write(&file, &bytes[..middle]).unwrap();
                assert!(arrived(&server.stranger(), &path).await.is_none(), "{filename}");
                std::fs::remove_file(&file).unwrap();
                assert!(arrived(&server.stranger(), &path).await.is_none(), "{filename}");
            }
        },
    )
    .await;
}

/// The bytes of a complete response; `None` if it was aborted.
async fn arrived(who: &Client, path: &str) -> Option<Vec<u8>> {
    let response = who.request(Method::GET, path).send().await.ok()?;
    let success = response.status().is_success();
    let bytes = response.bytes().await.ok()?;
    success.then(|| bytes.to_vec())
}
