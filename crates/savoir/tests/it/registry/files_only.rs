//! `savoir registry conformance` where there is no program, or where nobody is let in.

use std::{collections::BTreeMap, fs};

use serde_json::json;

use super::{
    Server,
    real::{Town, serve},
};
use crate::{live_server::House, support::Sandbox};

#[test]
fn a_mirror_is_checked_as_the_files_that_it_is() {
    let town = Town::new();
    for version in ["1.0.0", "1.1.0"] {
        town.skill("greeter", version, "Greet.");
        town.well("bob", &["publish", "greeter", "--namespace", "acme", "--yes"]);
    }
    let (copy, files) = (town.sandbox.path("copy"), Server::start());
    town.well("root", &["registry", "mirror", &town.url, &copy.display().to_string()]);
    serve(&files, &copy, &copy);
    let check = |more: &[&str]| {
        let args = ["registry", "conformance", files.address(), "--json"];
        town.run("root", &[&args[..], more].concat())
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

    // One bit of one archive, and it is found.
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
fn a_private_registry_says_so_once() {
    let sandbox = Sandbox::new();
    let house =
        House::start(&sandbox, &["--rate-limit", "off", "--registry-readers", "accounts"], None);
    let url = format!("http://{}/registry", house.address);
    for (more, words) in [(&[][..], "needs an account"), (&["--token", "sav_x"], "this token")] {
        let args = [&["registry", "conformance", &url, "--json"], more].concat();
        let shut = sandbox.run(&args);
        assert_eq!(shut.code, 2, "{shut}");
        let error = &shut.json()["error"];
        assert_eq!(error["code"], "unauthorized", "{shut}");
        assert!(error["message"].as_str().expect("a text").contains(words), "{shut}");
        assert!(shut.stderr.contains("SAVOIR_TOKEN"), "{shut}");
    }
    // Whoever has an account sees that it is as any other.
    let account = json!({"email": "ada@example.com", "password": "secret-word"});
    let made = house.ask("POST", "/api/v1/auth/register", "", Some(&account));
    assert!(made.status < 300, "{}", made.body);
    let login = house.ask("POST", "/api/v1/auth/login", "", Some(&account)).json();
    let token = login["token"].as_str().expect("a token");
    let only = ["--only", "discovery", "--only", "pull"];
    let args = [&["registry", "conformance", &url, "--json", "--token", token], &only[..]].concat();
    let open = sandbox.run(&args);
    assert_eq!(open.code, 0, "{open}");
}
