//! Tests of company networks: private repositories, proxies, own certificates, mirrors. All servers
//! are local.

use std::{
    env, fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ServerConfig, ServerConnection, Stream, pki_types::PrivateKeyDer};
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{any, header},
};

use super::{TestFetcher, names, repository::Repository, skill};

/// The environment variable with the source for the child process.
const SOURCE: &str = "SAVOIR_TEST_SOURCE";

/// Creates a `git` program with these user settings.
fn git_with(place: &Path, settings: &str) -> PathBuf {
    let (config, program) = (place.join("gitconfig"), place.join("git"));
    fs::write(&config, settings).unwrap();
    let script = format!("#!/bin/sh\nGIT_CONFIG_GLOBAL='{}' exec git \"$@\"\n", config.display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

#[tokio::test]
async fn git_insteadof_setting_is_used() {
    let (place, repository) = (tempfile::tempdir().unwrap(), Repository::new());
    repository.write("a/SKILL.md", skill("a"));
    repository.commit();
    let settings =
        format!("[url \"{}\"]\n\tinsteadOf = https://host.invalid/o/r\n", repository.url());
    let git = git_with(place.path(), &settings);
    let test = TestFetcher::with(|settings| settings.git = git);
    let offers = test.offers("https://host.invalid/o/r").await.unwrap();
    assert_eq!(names(&offers), ["a"]);
    assert!(test.fetcher.fetch(&offers[0]).await.is_ok());
    let locked = offers[0].source.text(test.path());
    assert!(locked.starts_with("git+https://host.invalid/o/r#"), "{locked}");
    // A setting cannot start a program.
    let mark = place.path().join("mark");
    let settings = format!(
        "[url \"ext::touch {}\"]\n\tinsteadOf = https://host.invalid/o/r\n",
        mark.display()
    );
    let git = git_with(place.path(), &settings);
    let test = TestFetcher::with(|settings| settings.git = git);
    assert!(test.offers("https://host.invalid/o/r").await.is_err());
    assert!(!mark.exists());
}

#[tokio::test]
async fn git_credential_helper_is_used() {
    let (place, server) = (tempfile::tempdir().unwrap(), MockServer::start().await);
    let login = ResponseTemplate::new(401).insert_header("www-authenticate", "Basic realm=x");
    Mock::given(header("authorization", "Basic dXNlcjpzZWNyZXQ="))
        .respond_with(ResponseTemplate::new(500))
        .expect(1..)
        .mount(&server)
        .await;
    Mock::given(any()).respond_with(login).with_priority(9).mount(&server).await;
    let helper =
        "[credential]\n\thelper = \"!f() { echo username=user; echo password=secret; }; f\"\n";
    let git = git_with(place.path(), helper);
    let test = TestFetcher::with(|settings| settings.git = git);
    let refused = test.offers(&format!("{}/o/r.git", server.uri())).await.unwrap_err();
    assert_eq!(refused.code(), "git_failed", "the server has a problem after the login: {refused}");
    assert!(!refused.to_string().contains("secret"));
}

#[tokio::test]
async fn git_never_prompts_for_password() {
    let (place, server) = (tempfile::tempdir().unwrap(), MockServer::start().await);
    let login = ResponseTemplate::new(401).insert_header("www-authenticate", "Basic realm=x");
    Mock::given(any()).respond_with(login).mount(&server).await;
    let git = git_with(place.path(), "");
    let test = TestFetcher::with(|settings| {
        settings.git = git;
        settings.git_timeout = Duration::from_secs(20);
    });
    let refused = test.offers(&format!("{}/o/r.git", server.uri())).await.unwrap_err();
    assert_eq!(refused.code(), "no_repository", "{refused}");
}

#[tokio::test]
async fn git_uses_the_proxy_of_its_settings() {
    let (place, proxy) = (tempfile::tempdir().unwrap(), MockServer::start().await);
    Mock::given(any()).respond_with(ResponseTemplate::new(404)).expect(1..).mount(&proxy).await;
    let git = git_with(place.path(), &format!("[http]\n\tproxy = {}\n", proxy.uri()));
    let test = TestFetcher::with(|settings| settings.git = git);
    // Nothing listens on this port, so an answer comes from the proxy.
    let refused = test.offers("http://127.0.0.1:1/o/r.git").await.unwrap_err();
    assert_eq!(refused.code(), "no_repository", "{refused}");
}

/// Looks at a source in a child process with these environment variables. It prints the names of
/// the skills, or the error.
fn in_a_child(source: &str, variables: &[(&str, &str)]) -> String {
    let name = "source::proxies_and_mirrors::fetch_in_child_process";
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", name, "--ignored", "--nocapture"]).env(SOURCE, source);
    for name in ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"] {
        child.env_remove(name);
    }
    let output = child.envs(variables.iter().copied()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
#[ignore = "it is started by other tests"]
#[expect(clippy::print_stdout, reason = "the parent process reads it")]
async fn fetch_in_child_process() {
    let Ok(source) = env::var(SOURCE) else { return };
    match TestFetcher::new().offers(&source).await {
        Ok(offers) => println!("found {:?}", names(&offers)),
        Err(error) => println!("failed {}: {error}", error.code()),
    }
}

/// Starts an HTTPS server that answers every request with a text.
fn https(key: &CertifiedKey<rcgen::KeyPair>, text: &'static str) -> u16 {
    let certificate = key.cert.der().clone();
    let secret = PrivateKeyDer::Pkcs8(key.signing_key.serialize_der().into());
    let config = ServerConfig::builder().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![certificate], secret).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let mut connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut tls = Stream::new(&mut connection, &mut stream);
            let mut request = [0; 4096];
            // A client that does not trust the certificate closes the connection.
            if tls.read(&mut request).is_ok() {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n", text.len());
                let _ = tls.write_all(format!("{head}connection: close\r\n\r\n{text}").as_bytes());
                connection.send_close_notify();
                let _ = connection.write_tls(&mut stream);
            }
        }
    });
    port
}

#[test]
fn company_certificates_of_curl_are_trusted() {
    let place = tempfile::tempdir().unwrap();
    let key = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let bundle = place.path().join("company.pem");
    fs::write(&bundle, key.cert.pem()).unwrap();
    let source = format!("https://localhost:{}/notes.md", https(&key, "Always be brief."));
    let bundle = bundle.display().to_string();
    let refused = in_a_child(&source, &[]);
    assert!(refused.contains("failed unreachable") && refused.contains("ertificate"), "{refused}");
    for variable in ["SSL_CERT_FILE", "CURL_CA_BUNDLE"] {
        let found = in_a_child(&source, &[(variable, &bundle)]);
        assert!(found.contains("found [\"notes\"]"), "{variable}: {found}");
    }
}

/// Starts a proxy that records requests and rejects them.
fn proxy() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    let (sender, asked) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let mut request = [0; 1024];
            let length = stream.read(&mut request).unwrap_or(0);
            let text = String::from_utf8_lossy(&request[..length]).into_owned();
            let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
            if sender.send(text).is_err() {
                break;
            }
        }
    });
    (address, asked)
}

#[test]
fn proxy_variables_are_used() {
    for source in ["https://host.invalid/notes.md", "https://host.invalid/o/r.git"] {
        let (address, asked) = proxy();
        in_a_child(source, &[("https_proxy", &address)]);
        let request = asked.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(request.starts_with("CONNECT host.invalid:443 "), "{source}: {request}");
        in_a_child(source, &[("https_proxy", &address), ("no_proxy", "host.invalid")]);
        assert!(asked.recv_timeout(Duration::from_millis(100)).is_err(), "{source}");
    }
}
