//! Tests malicious uploads: ambiguous forms, and uploads that stall.

use std::{io::Write as _, net::TcpStream, time::Duration};

use savoir_package::archive;
use savoir_sandbox::SandboxSupport;
use savoir_server::RateLimits;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{SKILLS, form, is, noise, publish, send, skill, tree};
use crate::harness::{Client, TestServer};

/// Sends a form on an open connection, and reads the response.
async fn ask_on(stream: &mut tokio::net::TcpStream, client: &Client, body: &[u8]) -> String {
    let head = format!(
        "POST {SKILLS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\
         content-type: multipart/form-data; boundary=edge\r\n\r\n",
        client.token,
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat()).await.expect("the server listens");
    let mut answer = String::new();
    // The response is short and ends like JSON.
    while !answer.ends_with("}}") {
        let mut some = [0; 4096];
        let count = stream.read(&mut some).await.expect("an answer");
        assert!(count > 0, "the connection ends after: {answer}");
        answer.push_str(&String::from_utf8_lossy(&some[..count]));
    }
    answer
}

#[tokio::test]
async fn duplicate_form_fields_are_rejected() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let (one, two) = (skill("one", "1.0.0", ""), skill("two", "1.0.0", ""));
    for (first, second) in [(&one, &two), (&one, &one)] {
        let reply = send(&ada, &[("artifact", first), ("artifact", second)]).await;
        is(&reply, 400, "invalid_request");
        assert!(reply.text.contains("`artifact` is there twice"), "{}", reply.text);
    }
    let twice: [(&str, &[u8]); 3] =
        [("artifact", &one), ("namespace", b"acme"), ("namespace", b"other")];
    is(&send(&ada, &twice).await, 400, "invalid_request");
    // A client that sends much more data gets the response, too, and can continue on the same
    // connection.
    let rest = noise(2_000_000);
    let much: [(&str, &[u8]); 3] =
        [("changelog", b"a"), ("changelog", b"b"), ("artifact", rest.as_bytes())];
    let address = ada.url.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    for _ in 0..3 {
        let answer = ask_on(&mut stream, &ada, &form(&much)).await;
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("twice"), "{answer}");
    }
    assert_eq!(server.stranger().get(SKILLS).await.json()["items"], json!([]));
    // Unknown parts may occur several times.
    let more: [(&str, &[u8]); 3] = [("x", b"1"), ("artifact", &one), ("x", b"2")];
    assert_eq!(send(&ada, &more).await.status, 201);
}

/// An upload that stalls after its first bytes.
fn sleeping(client: &Client) -> TcpStream {
    let address = client.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST {SKILLS} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
         content-type: application/zip\r\ncontent-length: 1000000\r\n\r\nPK",
        client.token
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// Whether another upload gets a slot. The body is not a package, so it is rejected quickly.
async fn has_place(client: &Client) -> bool {
    let nothing = json!({});
    let sent = client.post(SKILLS, &nothing);
    match tokio::time::timeout(Duration::from_millis(600), sent).await {
        Ok(reply) => {
            assert_eq!(reply.status, 415, "{}", reply.text);
            true
        }
        // The request waits for a slot.
        Err(_) => false,
    }
}

/// Waits until a slot is free, or until none is.
async fn places(client: &Client, wanted: bool) {
    for _ in 0..1200 {
        if has_place(client).await == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("after a minute there is {} place", if wanted { "no" } else { "still a" });
}

/// A skill with a tool that runs endlessly.
fn endless() -> Vec<u8> {
    let text = "---\nname: endless\nversion: 1.0.0\ndescription: Looks something up. Use for \
         tests.\nauthor: Sam\nlicense: MIT\npermissions:\n  - network:none\ntools:\n  - name: look\n    \
         description: Look something up\n    parameters:\n      query: {type: string, required: \
         true}\nsecurity_tier: experimental\n---\n\n# Endless\n";
    let module = "from gaia.agents.base.tools import tool\n@tool\ndef look(query: str) -> str:\n    \
         \"\"\"Look something up.\"\"\"\n    import time\n    time.sleep(1000)\n    return query\n";
    archive::pack("endless", &tree(&[("SKILL.md", text), ("tools.py", module)])).unwrap()
}

#[tokio::test]
async fn disconnected_publish_occupies_its_slot_until_vetting_ends() {
    if !SandboxSupport::detect().sandbox.is_available() {
        eprintln!("=== SKIPPED: tools are not run here, so that vetting takes no time ===");
        return;
    }
    let server = TestServer::with(|config| {
        config.limits = RateLimits { runs: 0, routes: 0, all: 0 };
        let limits = &mut config.registry.vetting.limits;
        (limits.call, limits.skill) = (Duration::from_secs(5), Duration::from_secs(5));
    })
    .await;
    let ada = server.register("ada@example.org").await;
    // With all slots taken, another upload waits until one is free.
    let mut taken: Vec<TcpStream> = (0..8).map(|_| sleeping(&ada)).collect();
    places(&ada, false).await;
    taken.pop();
    places(&ada, true).await;
    let bytes = endless();
    let mut held = false;
    // The start of the vetting is not visible from outside, so several delays are tried.
    for patience in [500, 1500, 3000] {
        let sent =
            tokio::time::timeout(Duration::from_millis(patience), publish(&ada, "", bytes.clone()));
        if let Ok(reply) = sent.await {
            panic!("it was not vetted for long: {}", reply.text);
        }
        // By now the server has noticed that the client disconnected.
        tokio::time::sleep(Duration::from_secs(1)).await;
        held = !has_place(&ada).await;
        places(&ada, true).await;
        if held {
            break;
        }
    }
    assert!(held, "whoever hangs up can have more vetted at once than anybody else");
    drop(taken);
    is(&server.stranger().get(&format!("{SKILLS}/endless")).await, 404, "not_found");
}
