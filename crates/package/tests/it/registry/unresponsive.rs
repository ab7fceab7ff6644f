//! Tests with registries that accept requests and never answer.

use std::{path::Path, time::Duration};

use savoir_package::{
    install::updates::Availability,
    registry::{Client, Registries, RegistryEntry, Settings, check_registries, wire::Config},
    resolve::Update,
};
use semver::Version;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::{gathered, http_responses::packed, installed, name, registries, settings, site::Site};
use crate::install::test_project::{TestProject, skill};

/// Longer than any test runs.
const FOR_EVER: Duration = Duration::from_hours(1);

/// Settings with a short idle timeout for lookups only.
fn settings_with_short_timeouts(cache: &Path) -> Settings {
    let mut settings = settings(cache);
    (settings.response_timeout, settings.download_idle_timeout) = (FOR_EVER, FOR_EVER);
    settings.lookup_idle_timeout = Duration::from_millis(300);
    settings
}

/// Starts a server that returns its configuration, if there is one, and otherwise only sends pieces
/// of a text.
async fn server(config: Option<Config>, head: String, pieces: Vec<Vec<u8>>, pause: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (config, head, pieces) = (config.clone(), head.clone(), pieces.clone());
            tokio::spawn(async move {
                let mut asked = [0; 4096];
                let size = stream.read(&mut asked).await.unwrap_or(0);
                let asked = String::from_utf8_lossy(&asked[..size]).into_owned();
                if let (Some(config), true) = (config, asked.contains("config.json")) {
                    let body = serde_json::to_string(&config).unwrap();
                    let size = body.len();
                    let head =
                        format!("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\nconnection: close");
                    let _ = stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await;
                    return;
                }
                let _ = stream.write_all(head.as_bytes()).await;
                for piece in pieces {
                    let _ = stream.write_all(&piece).await;
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
                // Keep the connection open.
                tokio::time::sleep(FOR_EVER).await;
            });
        }
    });
    address
}

async fn unresponsive_server() -> String {
    server(None, String::new(), Vec::new(), 0).await
}

#[tokio::test]
async fn lookup_in_unresponsive_registry_times_out() {
    let (place, address) = (TempDir::new().unwrap(), unresponsive_server().await);
    let client = Client::new(settings_with_short_timeouts(place.path()), &address, None).unwrap();
    let notes = name("notes");
    assert_eq!(client.config().await.unwrap_err().code(), "timed_out");
    assert_eq!(client.index(&notes).await.unwrap_err().code(), "timed_out");
    assert_eq!(client.closure(std::slice::from_ref(&notes)).await.unwrap_err().code(), "timed_out");
    let detail = client.version(&notes, &Version::new(1, 0, 0)).await;
    assert_eq!(detail.unwrap_err().code(), "timed_out");
}

#[tokio::test]
async fn install_update_and_fetch_time_out() {
    let (project, site) = (TestProject::new(), Site::start().await);
    site.publish("notes", &skill("notes", "1.0.0", "Text."));
    installed(&project, &registries(&project, vec![site.entry()]), &["notes"]).await;
    let address = unresponsive_server().await;
    let lock = project.read("savoir.lock").replace(site.address(), &address);
    project.write("savoir.lock", &lock);
    let entries = vec![RegistryEntry::at(&address)];
    let all = Registries::new(settings_with_short_timeouts(&project.data().join("other")), entries)
        .unwrap();
    let state = project.skill_set().state().unwrap();
    let found = check_registries(&all, &state).await;
    assert!(matches!(found["notes"], Availability::Unknown(_)), "{found:?}");
    let error = all.fetch_locked("notes", &state.lock.skills["notes"]).await.unwrap_err();
    assert_eq!(error.code(), "timed_out");
    for (wanted, update) in [(&["other"][..], Update::Nothing), (&[], Update::All)] {
        let error = gathered(&project, &all, wanted, update).await.unwrap_err();
        assert_eq!(error.code(), "timed_out", "{error}");
    }
    assert_eq!(all.find(&name("other")).await.unwrap_err().code(), "timed_out");
}

#[tokio::test]
async fn slow_archive_download_has_no_total_timeout() {
    let place = TempDir::new().unwrap();
    let (line, bytes) = packed("notes", &skill("notes", "1.0.0", "Text."));
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", bytes.len());
    let pieces: Vec<Vec<u8>> = bytes.chunks(bytes.len() / 6).map(<[u8]>::to_vec).collect();
    let config = || Some(Config::of_files());
    let slow = server(config(), head.clone(), pieces.clone(), 500).await;
    let mut patient = settings(place.path());
    // Shorter than the whole download.
    patient.response_timeout = Duration::from_secs(2);
    let client = Client::new(patient, &slow, None).unwrap();
    client.download(&line).await.unwrap();
    // The server stops in the middle without closing the connection.
    let other = TempDir::new().unwrap();
    let stuck = server(config(), head, pieces[..2].to_vec(), 0).await;
    let mut settings = settings(other.path());
    (settings.response_timeout, settings.lookup_idle_timeout) = (FOR_EVER, FOR_EVER);
    settings.download_idle_timeout = Duration::from_millis(300);
    let client = Client::new(settings, &stuck, None).unwrap();
    assert_eq!(client.download(&line).await.unwrap_err().code(), "timed_out");
}

/// The server keeps sending, but far too slowly.
#[tokio::test]
async fn too_slow_archive_download_is_stopped() {
    // Random text of some kilobytes, which does not compress well.
    let noise = (0..1500_u32).map(|n| format!("{:08x} ", n.wrapping_mul(0x9e37_79b1)));
    let (line, bytes) = packed("notes", &skill("notes", "1.0.0", &noise.collect::<String>()));
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", bytes.len());
    let drops: Vec<Vec<u8>> = bytes.iter().map(|byte| vec![*byte]).collect();
    // The first half is fast, so that the average rate would hide the slow second half.
    let half = bytes.len() / 2;
    let later = [vec![bytes[..half].to_vec()], drops[half..].to_vec()].concat();
    for pieces in [drops, later] {
        let place = TempDir::new().unwrap();
        let address = server(Some(Config::of_files()), head.clone(), pieces, 100).await;
        let mut settings = settings(place.path());
        (settings.response_timeout, settings.lookup_idle_timeout) = (FOR_EVER, FOR_EVER);
        settings.download_idle_timeout = Duration::from_secs(1);
        let client = Client::new(settings, &address, None).unwrap();
        let asked = tokio::time::timeout(Duration::from_secs(20), client.download(&line)).await;
        let error = asked.expect("nobody waits for it").unwrap_err();
        assert_eq!(error.code(), "too_slow");
        let text = error.to_string();
        for words in [address.as_str(), "bytes", "seconds", "try again"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
