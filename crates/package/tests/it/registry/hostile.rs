//! Tests with malicious registries.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use savoir_package::{
    File, Tree,
    limits::MAX_PACKAGE_INDEX_BYTES,
    registry::{Client, wire::IndexLine},
    source::Progress,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use wiremock::ResponseTemplate;

use super::{
    client,
    http_responses::{address, packed, registry, serve, text},
    name, settings,
};
use crate::install::test_project::{gaia, skill, with};

/// Returns the error for a skill whose bytes or index line were changed.
async fn refused(tree: &Tree, change: impl FnOnce(&mut IndexLine, &mut Vec<u8>)) -> String {
    let (place, server) = (TempDir::new().unwrap(), registry(false).await);
    let (mut line, mut bytes) = packed("notes", tree);
    change(&mut line, &mut bytes);
    let at = format!("/registry/artifacts/{}/{}", line.sha256, line.filename);
    serve(&server, &at, ResponseTemplate::new(200).set_body_bytes(bytes)).await;
    let client = client(place.path(), &address(&server));
    let error = client.download(&line).await.unwrap_err();
    // Rejected archives are not cached.
    assert!(client.download(&line).await.is_err());
    format!("{}: {error}", error.code())
}

#[tokio::test]
async fn archive_differing_from_index_is_rejected() {
    let tree = skill("notes", "1.0.0", "Text.");
    let error = refused(&tree, |_, bytes| bytes[40] ^= 1).await;
    assert!(error.starts_with("digest_mismatch: ") && error.contains("its sha256 is"), "{error}");
    let error = refused(&tree, |_, bytes| bytes.push(0)).await;
    assert!(error.starts_with("digest_mismatch: ") && error.contains("more than"), "{error}");
    let error = refused(&tree, |_, bytes| bytes.truncate(100)).await;
    assert!(error.contains("its size is 100 instead of"), "{error}");
    let error = refused(&tree, |line, _| line.size += 1).await;
    assert!(error.contains("its size is"), "{error}");
    let other = skill("notes", "1.0.0", "Other.").integrity();
    let error = refused(&tree, |line, _| line.integrity = other).await;
    assert!(error.contains("its integrity is"), "{error}");
}

#[tokio::test]
async fn skill_differing_from_index_is_rejected() {
    let tree = skill("other", "1.0.0", "Text.");
    let error = refused(&tree, |_, _| ()).await;
    assert!(error.starts_with("content_mismatch: "), "{error}");
    assert!(error.contains("the index says `notes`, its files say `other`"), "{error}");
    let tree = skill("notes", "1.0.0", "Text.");
    let error = refused(&tree, |line, _| line.version = semver::Version::new(9, 0, 0)).await;
    assert!(error.contains("the index says 9.0.0, its files say 1.0.0"), "{error}");
    // Otherwise a skill could bring dependencies that the resolver did not see.
    let tree = gaia("notes", "1.0.0", &[], &["evil"]);
    let error = refused(&tree, |line, _| line.dependencies.clear()).await;
    assert!(
        error.contains("says that it needs nothing, its files say that it needs evil"),
        "{error}"
    );
    let tree = with(&skill("notes", "1.0.0", "Text."), "SKILL.md", "---\nname: [\n---\n");
    let (line, _) = packed("notes", &skill("notes", "1.0.0", "Text."));
    let bytes = savoir_package::archive::pack("notes", &tree).unwrap();
    let error = refused(&skill("notes", "1.0.0", "Text."), |right, sent| {
        *right = IndexLine {
            integrity: tree.integrity(),
            sha256: savoir_skill::digest::sha256_hex(&bytes),
            size: bytes.len() as u64,
            ..line
        };
        *sent = bytes;
    })
    .await;
    assert!(error.starts_with("unclosed-bracket: "), "{error}");
}

#[tokio::test]
async fn malicious_archives_are_rejected() {
    let mut tree = Tree::default();
    tree.add("a.md".into(), File::default()).unwrap();
    let broken = |bytes: Vec<u8>| {
        let good = skill("notes", "1.0.0", "Text.");
        async move {
            refused(&good, |line, sent| {
                line.sha256 = savoir_skill::digest::sha256_hex(&bytes);
                line.size = bytes.len() as u64;
                *sent = bytes;
            })
            .await
        }
    };
    let error = broken(b"<html>log in</html>".to_vec()).await;
    assert!(error.starts_with("not_an_archive: "), "{error}");
    let error = broken(savoir_package::archive::pack("notes", &tree).unwrap()).await;
    assert!(error.starts_with("layout: "), "{error}");
}

#[tokio::test]
async fn endless_index_is_rejected() {
    let (place, server) = (TempDir::new().unwrap(), registry(false).await);
    let huge = vec![b'\n'; MAX_PACKAGE_INDEX_BYTES as usize + 1];
    let answer = ResponseTemplate::new(200).set_body_bytes(huge);
    serve(&server, "/registry/index/v1/no/notes", answer).await;
    let client = client(place.path(), &address(&server));
    assert_eq!(client.index(&name("notes")).await.unwrap_err().code(), "too_large");
}

/// Starts a server whose responses start like this, and continue with a number of pieces.
async fn begins(head: &'static str, piece: &'static [u8], times: usize, pause: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(head.as_bytes()).await;
                for _ in 0..times {
                    if stream.write_all(piece).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
            });
        }
    });
    address
}

#[tokio::test]
async fn endless_responses_are_stopped() {
    let place = TempDir::new().unwrap();
    // The short timeout is only for slow servers, because this machine may be busy.
    let (short, long) = (Duration::from_secs(2), Duration::from_mins(1));
    let code = async |response_timeout: Duration, address: &str| {
        let mut settings = settings(place.path());
        settings.response_timeout = response_timeout;
        let client = Client::new(settings, address, None).unwrap();
        client.index(&name("notes")).await.unwrap_err().code().to_owned()
    };
    // Truncated.
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    assert_eq!(code(long, &begins(head, b"{", 1, 0).await).await, "unreachable");
    // One byte now and then.
    assert_eq!(code(short, &begins(head, b"{", 1000, 100).await).await, "timed_out");
    // Endless, without a content length.
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    let endless = begins(head, &[b'\n'; 16 * 1024], 1000, 0).await;
    assert_eq!(code(long, &endless).await, "too_large");
    // Not HTTP.
    let mail = begins("220 mail.example ESMTP\r\n", b"", 0, 0).await;
    assert_eq!(code(long, &mail).await, "unreachable");
}

#[tokio::test]
async fn index_lines_of_other_skills_are_rejected() {
    let (place, server) = (TempDir::new().unwrap(), registry(false).await);
    let (good, _) = packed("notes", &skill("notes", "1.0.0", "Text."));
    let (other, _) = packed("other", &skill("other", "1.0.0", "Text."));
    let good_text = text(std::slice::from_ref(&good));
    for (at, body) in [
        ("aa", text(&[good.clone(), other])),
        ("bb", format!("{good_text}{good_text}")),
        ("cc", good_text[..50].to_owned()),
        ("dd", "<html>".to_owned()),
        ("ee", "[".repeat(100_000)),
    ] {
        let body = body.replace("\"notes\"", &format!("\"{at}\""));
        let path = format!("/registry/index/v1/{at}/{at}");
        serve(&server, &path, ResponseTemplate::new(200).set_body_string(body)).await;
        let client = client(place.path(), &address(&server));
        let error = client.index(&name(at)).await.unwrap_err();
        assert_eq!(error.code(), "answer_malformed", "{at}: {error}");
        assert!(error.to_string().len() < 600, "{at}: {error}");
    }
    let path = "/registry/index/v1/ff/ff";
    serve(&server, path, ResponseTemplate::new(200).set_body_bytes([0xff, 0xfe])).await;
    let client = client(place.path(), &address(&server));
    assert_eq!(client.index(&name("ff")).await.unwrap_err().code(), "answer_malformed");
}

#[tokio::test]
async fn path_traversal_names_are_skipped_and_reported() {
    let (place, server) = (TempDir::new().unwrap(), registry(false).await);
    let (good, _) = packed("notes", &skill("notes", "1.0.0", "Text."));
    let line = serde_json::to_string(&good).unwrap();
    let body = [
        line.replace("\"notes\"", "\"../../etc/passwd\""),
        line.replace("notes-1.0.0.zip", "../notes.zip"),
        line.replace(&good.sha256, "../../../../etc/passwd"),
        line.replace("\"1.0.0\"", "\"1.0.0/../..\""),
        line,
    ];
    let answer = ResponseTemplate::new(200).set_body_string(body.join("\n"));
    serve(&server, "/registry/index/v1/no/notes", answer).await;
    let skipped = Arc::new(Mutex::new(Vec::new()));
    let mut settings = settings(place.path());
    let log = skipped.clone();
    settings.watcher = Some(Arc::new(move |progress| {
        if let Progress::Skipped { why, .. } = progress {
            log.lock().unwrap().push(why);
        }
    }));
    let client = Client::new(settings, &address(&server), None).unwrap();
    let package = client.index(&name("notes")).await.unwrap().unwrap();
    assert_eq!(*package, [good]);
    assert_eq!(skipped.lock().unwrap().len(), 4);
    assert!(skipped.lock().unwrap()[0].contains("../../etc/passwd"));
}

#[tokio::test]
async fn unparsable_dependencies_are_rejected() {
    let (place, server) = (TempDir::new().unwrap(), registry(false).await);
    let (mut bad, _) = packed("notes", &skill("notes", "2.0.0", "Text."));
    bad.dependencies = vec!["x@1||2".into()];
    let (mut strange, _) = packed("notes", &skill("notes", "1.0.0", "Text."));
    strange.dependencies = vec!["../../x".into()];
    let answer = ResponseTemplate::new(200).set_body_string(text(&[strange, bad]));
    serve(&server, "/registry/index/v1/no/notes", answer).await;
    let client = client(place.path(), &address(&server));
    let closure = client.closure(&[name("notes")]).await.unwrap();
    assert_eq!(closure.packages.len(), 1, "nobody is asked for what is not a name");
}
