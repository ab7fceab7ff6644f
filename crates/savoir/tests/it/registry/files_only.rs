//! Tests `savoir registry conformance` against a mirror of static files and a private registry.

use std::{collections::BTreeMap, fs};

use serde_json::json;

use super::{
    MockRegistry,
    live_registry::{LiveRegistryEnv, serve},
};
use crate::{live_server::TestServer, support::Sandbox};

#[test]
fn mirror_is_checked_as_static_files() {
    let test_env = LiveRegistryEnv::new();
    for version in ["1.0.0", "1.1.0"] {
        test_env.skill("greeter", version, "Greet.");
        test_env.run_ok("bob", &["publish", "greeter", "--namespace", "acme", "--yes"]);
    }
    let (copy, files) = (test_env.sandbox.path("copy"), MockRegistry::start());
    test_env.run_ok("root", &["registry", "mirror", &test_env.url, &copy.display().to_string()]);
    serve(&files, &copy, &copy);
    let check = |more: &[&str]| {
        let args = ["registry", "conformance", files.address(), "--json"];
        test_env.run("root", &[&args[..], more].concat())
    };
    let statuses = |report: &serde_json::Value| -> BTreeMap<String, String> {
        let all = report["checks"].as_array().expect("a list").iter();
        let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
        all.map(|check| (text(&check["id"]), text(&check["status"]))).collect()
    };
    let done = check(&["--skill", "acme/greeter"]);
    assert_eq!(done.code, 0, "{done}");
    let found = statuses(&done.json());
    for id in ["discovery/config", "pull/index-shape", "pull/artifact-digest"] {
        assert_eq!(found[id], "passed", "{id}: {done}");
    }
    for id in ["discovery/list", "search/shape", "publish/no-token", "pull/download"] {
        assert_eq!(found[id], "skipped", "{id}: {done}");
    }
    assert!(done.stdout.contains("a mirror has no API"), "{done}");
    let nameless = check(&[]);
    assert_eq!(statuses(&nameless.json())["pull/artifact-digest"], "skipped", "{nameless}");
    assert!(nameless.code == 0 && nameless.stdout.contains("--skill NAME"), "{nameless}");

    // Changing one bit of one archive is detected.
    let index = fs::read_to_string(copy.join("index/v1/gr/acme/greeter")).expect("an index");
    let newest = index.lines().next().expect("a line");
    let line: serde_json::Value = serde_json::from_str(newest).expect("a line");
    let part = |key: &str| line[key].as_str().expect("a text").to_owned();
    let place = format!("artifacts/{}/{}", part("sha256"), part("filename"));
    let mut bytes = fs::read(copy.join(&place)).expect("an archive");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    files.bytes("GET", &format!("/{place}"), 200, bytes);
    let spoilt = check(&["--skill", "acme/greeter"]);
    assert_eq!(spoilt.code, 1, "{spoilt}");
    assert_eq!(statuses(&spoilt.json())["pull/artifact-digest"], "failed", "{spoilt}");
}

#[test]
fn private_registry_is_reported_once() {
    let sandbox = Sandbox::new();
    let server = TestServer::start(
        &sandbox,
        &["--rate-limit", "off", "--registry-readers", "accounts"],
        None,
    );
    let url = format!("http://{}/registry", server.address);
    for (more, words) in [(&[][..], "needs an account"), (&["--token", "sav_x"], "this token")] {
        let args = [&["registry", "conformance", &url, "--json"], more].concat();
        let shut = sandbox.run(&args);
        assert_eq!(shut.code, 2, "{shut}");
        let error = &shut.json()["error"];
        assert_eq!(error["code"], "unauthorized", "{shut}");
        assert!(error["message"].as_str().expect("a text").contains(words), "{shut}");
        assert!(shut.stderr.contains("SAVOIR_TOKEN"), "{shut}");
    }
    // For a user with an account, the private registry passes all checks.
    let account = json!({"email": "ada@example.com", "password": "secret-word"});
    let made = server.ask("POST", "/api/v1/auth/register", "", Some(&account));
    assert!(made.status < 300, "{}", made.body);
    let login = server.ask("POST", "/api/v1/auth/login", "", Some(&account)).json();
    let token = login["token"].as_str().expect("a token");
    let only = ["--only", "discovery", "--only", "pull"];
    let args = [&["registry", "conformance", &url, "--json", "--token", token], &only[..]].concat();
    let open = sandbox.run(&args);
    assert_eq!(open.code, 0, "{open}");
}
