//! Tests the response cache of the registry.

use std::time::Duration;

use reqwest::Method;
use savoir_store::registry::{
    Actor, PackageName, PackageRecord, Record, ScanResult, ScanVerdict, VersionRecord,
};
use semver::Version;
use serde_json::json;

use crate::harness::{Reply, TestServer};

const INDEX: &str = "/registry/index/v1/pd/acme/pdf";
const ZIP: &[u8] = b"the bytes of an archive";

fn pdf() -> PackageName {
    "acme/pdf".parse().unwrap()
}

/// Stores a skill in the registry; returns the path of its archive.
async fn fill(server: &TestServer) -> String {
    let registry = server.database.registry(&server.storage);
    let mut import = registry.import(&Actor::operator()).await.unwrap();
    let sha256 = registry.put_blob(ZIP.into()).await.unwrap();
    let version = VersionRecord {
        version: "1.0.0".to_owned(),
        integrity: "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=".to_owned(),
        sha256: sha256.clone(),
        size: ZIP.len() as u64,
        skill_md: registry.put_blob("# PDF".into()).await.unwrap(),
        scan: Some(ScanResult { verdict: ScanVerdict::Allow, report: json!({}) }),
        ..VersionRecord::default()
    };
    let package = PackageRecord {
        name: pdf(),
        created_by: None,
        created_at: 1,
        updated_at: 1,
        deprecated: None,
        versions: vec![version],
    };
    import.push(Record::Package(Box::new(package))).await.unwrap();
    import.finish().await.unwrap();
    format!("/registry/artifacts/{sha256}/pdf-1.0.0.zip")
}

/// The number of responses from the cache.
async fn remembered(server: &TestServer) -> u64 {
    let text = server.stranger().get("/metrics").await.text;
    let name = "savoir_registry_remembered_total ";
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().parse().unwrap()
}

#[tokio::test]
async fn cached_response_is_used_until_the_skill_changes() {
    let server = TestServer::start().await;
    fill(&server).await;
    let stranger = server.stranger();
    let first = stranger.get(INDEX).await;
    assert_eq!((first.status.as_u16(), remembered(&server).await), (200, 0));
    let second = stranger.get(INDEX).await;
    assert_eq!(remembered(&server).await, 1);
    assert_eq!((second.status, &second.text), (first.status, &first.text));
    for name in ["content-type", "cache-control", "etag", "content-length"] {
        assert!(!second.header(name).is_empty(), "{name}");
        assert_eq!(second.header(name), first.header(name), "{name}");
    }
    let unchanged = stranger.header("if-none-match", first.header("etag")).get(INDEX).await;
    assert_eq!((unchanged.status.as_u16(), unchanged.text.as_str()), (304, ""));
    let head = Reply::of(stranger.request(Method::HEAD, INDEX)).await;
    assert_eq!(head.header("content-length"), first.text.len().to_string());

    let registry = server.database.registry(&server.storage);
    let version = Version::new(1, 0, 0);
    registry.yank(&Actor::operator(), &pdf(), &version, Some("it was broken")).await.unwrap();
    // Other processes may return cached responses for this long.
    tokio::time::sleep(Duration::from_millis(150)).await;
    let third = stranger.get(INDEX).await;
    assert!(third.text.contains(r#""yanked":true"#), "{}", third.text);
    assert_ne!(third.header("etag"), first.header("etag"));
}

#[tokio::test]
async fn cross_origin_requests_bypass_the_cache() {
    let server = TestServer::start().await;
    fill(&server).await;
    let page = server.stranger().header("origin", "http://localhost:5173");
    for _ in 0..2 {
        let reply = page.get(INDEX).await;
        assert_eq!(reply.header("access-control-allow-origin"), "http://localhost:5173");
    }
    assert_eq!(remembered(&server).await, 0);
}

#[tokio::test]
async fn each_download_is_counted_once() {
    let server = TestServer::start().await;
    let path = fill(&server).await;
    let stranger = server.stranger();
    for _ in 0..3 {
        let reply = stranger.get(&path).await;
        assert_eq!((reply.status.as_u16(), reply.text.as_bytes()), (200, ZIP));
    }
    let part = stranger.header("range", "bytes=4-8").get(&path).await;
    assert_eq!((part.status.as_u16(), part.text.as_str()), (206, "bytes"));
    let tag = stranger.get(&path).await.header("etag").to_owned();
    assert_eq!(stranger.header("if-none-match", &tag).get(&path).await.status, 304);
    assert_eq!(Reply::of(stranger.request(Method::HEAD, &path)).await.status, 200);
    assert!(remembered(&server).await >= 5);

    let other = server.beside().await;
    server.stop();
    let registry = other.database.registry(&other.storage);
    let expected = vec![(Version::new(1, 0, 0), 4)];
    for _ in 0..100 {
        if registry.downloads(&pdf()).await.unwrap() == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(registry.downloads(&pdf()).await.unwrap(), expected);
}
