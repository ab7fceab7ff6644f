//! Tests installing skills by name from a registry of files.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    thread,
};

use savoir_package::{
    Tree,
    archive::pack,
    registry::{
        Name,
        wire::{Config, IndexLine},
    },
};

use super::{PDF, TestEnv};

impl TestEnv {
    /// Serves a static registry; returns its URL.
    pub(super) fn registry(&self) -> String {
        let config = serde_json::to_vec(&Config::of_files()).expect("JSON");
        self.sandbox.write("site/index/v1/config.json", config);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let root = self.sandbox.path("site");
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let root = root.clone();
                thread::spawn(move || answer(stream, &root));
            }
        });
        address
    }

    /// Publishes the skill in a folder.
    pub(super) fn publish(&self, name: &str, folder: &str) {
        let name = Name::parse(name).expect("a name");
        let tree = Tree::read(&self.sandbox.path(folder)).expect("a skill");
        let bytes = pack(name.last(), &tree).expect("an archive");
        let line = IndexLine::describe(&name, &tree, &bytes).expect("a skill");
        self.sandbox.write(&format!("site/artifacts/{}/{}", line.sha256, line.filename), bytes);
        let index = format!("site/index/v1/{}", name.index_path());
        let known = fs::read_to_string(self.sandbox.path(&index)).unwrap_or_default();
        let line = serde_json::to_string(&line).expect("JSON");
        self.sandbox.write(&index, format!("{known}{line}\n"));
    }
}

fn answer(mut stream: TcpStream, root: &Path) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    let path: PathBuf = head.split(' ').nth(1)?.trim_start_matches('/').into();
    let (status, body) = match fs::read(root.join(path)) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let size = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&body).ok()
}

#[test]
fn a_name_is_installed_locked_updated_and_fetched_again() {
    let test_env = TestEnv::new();
    let url = test_env.registry();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    test_env.publish("pdf", "elsewhere/pdf");
    let install = ["install", "pdf@^1.0", "--registry", &url, "--allow-experimental"];
    test_env.run_ok(&install);
    assert_eq!(test_env.read(PDF), test_env.read("elsewhere/pdf/SKILL.md"));
    let lock = test_env.read("project/savoir.lock");
    assert!(lock.contains(&format!("source = \"registry+{url}\"")), "{lock}");
    test_env.skill("elsewhere/pdf", "1.1.0", "Read it twice.");
    test_env.publish("pdf", "elsewhere/pdf");
    test_env.skill("elsewhere/pdf", "2.0.0", "Read it backwards.");
    test_env.publish("pdf", "elsewhere/pdf");
    test_env.run_ok(&["sync", "--frozen", "--registry", &url]);
    assert!(test_env.read(PDF).contains("Read it."), "the lock holds");
    let updated = test_env.run_ok(&["update", "--all", "--registry", &url]);
    assert!(updated.stdout.contains("`pdf` goes from 1.0.0 to 1.1.0"), "{updated}");
    fs::remove_dir_all(test_env.sandbox.path("project/.claude")).expect("it was there");
    fs::remove_dir_all(test_env.sandbox.path("home/.local")).expect("it was there");
    test_env.run_ok(&["sync", "--frozen", "--allow-experimental"]);
    assert!(test_env.read(PDF).contains("Read it twice."));
    test_env.run_ok(&["verify"]);
}

#[test]
fn published_skill_is_shown_without_installing() {
    let test_env = TestEnv::new();
    let url = test_env.registry();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    test_env.publish("pdf", "elsewhere/pdf");
    test_env.sandbox.write("project/savoir.toml", format!("[registries]\nhouse = \"{url}\"\n"));
    let shown = test_env.run_ok(&["show", "registry:pdf", "--json"]).json();
    assert_eq!(shown["version"], "1.0.0");
    test_env.run_ok(&["scan", "registry:pdf@^1"]);
    let missing = test_env.run(&["show", "registry:pdf@^2"]);
    assert_ne!(missing.code, 0, "{missing}");
    assert!(!test_env.has("project/savoir.lock"), "nothing is installed");
}

#[test]
fn project_registries_and_the_cache_are_used() {
    let test_env = TestEnv::new();
    let url = test_env.registry();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    test_env.publish("acme/pdf", "elsewhere/pdf");
    let manifest = format!(
        "[skills]\npdf = {{ version = \"^1.0\", namespace = \"acme\" }}\n\n\
         [registries.house]\nurl = \"{url}\"\nnamespaces = [\"acme\"]\n"
    );
    test_env.sandbox.write("project/savoir.toml", manifest);
    test_env.run_ok(&["sync", "--allow-experimental"]);
    assert!(test_env.has(PDF));
    test_env.run_ok(&["undo"]);
    fs::remove_dir_all(test_env.sandbox.path("site")).expect("it was there");
    test_env.run_ok(&["sync", "--allow-experimental", "--offline"]);
    assert!(test_env.has(PDF));
}

#[test]
fn a_name_with_a_namespace_is_one_of_the_registry_that_was_named() {
    let test_env = TestEnv::new();
    let url = test_env.registry();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    test_env.publish("acme/pdf", "elsewhere/pdf");
    for asked in ["acme/pdf", "acme/pdf@^1.0"] {
        test_env.run_ok(&["install", asked, "--registry", &url, "--allow-experimental"]);
        let lock = test_env.read("project/savoir.lock");
        assert!(lock.contains(&format!("source = \"registry+{url}#acme/pdf\"")), "{lock}");
        test_env.run_ok(&["remove", "pdf"]);
        assert!(!test_env.has(PDF));
    }
    // The same for a namespace that belongs to a configured registry.
    let manifest = format!("[registries.house]\nurl = \"{url}\"\nnamespaces = [\"acme\"]\n");
    test_env.sandbox.write("project/savoir.toml", manifest);
    test_env.run_ok(&["install", "acme/pdf", "--allow-experimental"]);
    assert!(test_env.has(PDF));
    // A missing skill is not searched in repositories.
    let none = test_env.run(&["install", "acme/other", "--registry", &url]);
    assert!(none.code == 1 && !none.to_string().contains("github"), "{none}");
}

#[test]
fn name_is_not_a_github_repository_if_a_registry_is_set() {
    let test_env = TestEnv::new();
    let url = test_env.registry();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    test_env.publish("acme/pdf", "elsewhere/pdf");
    let ambiguous = |asked: &str, words: &str| {
        let refused = test_env.run(&["install", asked, "--allow-experimental", "--json"]);
        let error = &refused.json()["error"];
        assert_eq!((refused.code, &error["code"]), (2, &"source_ambiguous".into()), "{refused}");
        let ways = format!("`registry:{asked}` or `github:{asked}`");
        for words in [&ways, words, "--registry URL"] {
            assert!(refused.stderr.contains(words), "{words}: {refused}");
        }
    };
    // Either the registry is configured in the project, or the user is logged in to it.
    let set = format!("[registries]\nhouse = \"{url}\"\n");
    let token = format!("[\"{url}\"]\ntoken = \"sav_secret\"\n");
    let credentials = "home/.config/savoir/credentials.toml";
    for (file, text) in [("project/savoir.toml", &set), (credentials, &token)] {
        test_env.sandbox.write(file, text);
        private(&test_env.sandbox.path(file));
        for asked in ["acme/pdf", "acme/pdf@1.0.0", "acme/pdf@1"] {
            test_env.run_ok(&["install", asked, "--allow-experimental"]);
            let lock = test_env.read("project/savoir.lock");
            assert!(lock.contains(&format!("source = \"registry+{url}#acme/pdf\"")), "{lock}");
            test_env.run_ok(&["remove", "pdf"]);
        }
        ambiguous("acme/other", "none of the queried registries has it");
        ambiguous("acme/pdf@latest", "not branches or tags");
        assert_github_is_not_asked(&test_env, &[]);
        fs::remove_file(test_env.sandbox.path(file)).expect("it was there");
    }
    // If a registry cannot be reached, it is unknown whether it has the skill.
    test_env.sandbox.write("project/savoir.toml", "[registries]\nhouse = \"http://127.0.0.1:1\"\n");
    ambiguous("acme/pdf", "could not check");
    fs::remove_file(test_env.sandbox.path("project/savoir.toml")).expect("it was there");
    let two = format!("{token}[\"http://127.0.0.1:1\"]\ntoken = \"sav_other\"\n");
    test_env.sandbox.write(credentials, two);
    private(&test_env.sandbox.path(credentials));
    ambiguous("acme/pdf", "none of them is set");
}

/// Checks that misspelled names, which an attacker could register on GitHub, are not searched
/// there.
fn assert_github_is_not_asked(test_env: &TestEnv, more: &[&str]) {
    for asked in [
        "Acme/pdf", "acme/my_pdf", "acme/pdf/", "@acme/pdf", "acme/skills/pdf", "acme/pdf@v1",
        " acme/other", "acme/other\r", "a:b/c", "Github:acme/pdf", "ACME+x/pdf",
    ] {
        let refused = test_env.run(&[&["install", asked, "--json"], more].concat());
        let code = &refused.json()["error"]["code"];
        let codes = ["source_text", "source_ambiguous", "unknown_skill"];
        assert!(codes.iter().any(|one| code == one), "{asked}: {refused}");
        assert!(!refused.stderr.contains("https://github.com"), "{asked}: {refused}");
    }
}

#[test]
fn misspelled_name_is_not_a_github_repository() {
    let test_env = TestEnv::new();
    let url = test_env.registry();
    let owned = format!("[registries.house]\nurl = \"{url}\"\nnamespaces = [\"acme\"]\n");
    test_env.sandbox.write("project/savoir.toml", owned);
    assert_github_is_not_asked(&test_env, &[]);
    fs::remove_file(test_env.sandbox.path("project/savoir.toml")).expect("it was there");
    assert_github_is_not_asked(&test_env, &["--registry", &url]);
    // The name of an existing folder is ambiguous, too.
    test_env.skill("project/acme/pdf", "1.0.0", "Read it.");
    let both = test_env.run(&["install", "acme/pdf", "--registry", &url]);
    for words in ["`./acme/pdf`", "`registry:acme/pdf`"] {
        assert!(both.code == 2 && both.stderr.contains(words), "{words}: {both}");
    }
    test_env.run_ok(&["install", "./acme/pdf", "--allow-experimental"]);
    assert!(test_env.has(PDF));
}

#[test]
fn registry_of_the_manifest_is_used() {
    let test_env = TestEnv::new();
    let url = test_env.registry();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    test_env.publish("acme/pdf", "elsewhere/pdf");
    let from = format!("registry = \"{url}\", namespace = \"acme\"");
    let wanted = format!("[skills]\npdf = {{ version = \"*\", {from} }}\n");
    test_env.sandbox.write("project/savoir.toml", wanted);
    test_env.run_ok(&["sync", "--allow-experimental"]);
    assert!(test_env.has(PDF));
    // The manifest names a registry, so GitHub is not searched, and other skills of the namespace
    // come from this registry.
    assert_github_is_not_asked(&test_env, &[]);
    test_env.skill("elsewhere/tea", "1.0.0", "Boil it.");
    test_env.publish("acme/tea", "elsewhere/tea");
    test_env.run_ok(&["install", "acme/tea", "--allow-experimental"]);
    assert!(test_env.has("project/.claude/skills/tea/SKILL.md"));
    test_env.run_ok(&["remove", "tea"]);
    fs::remove_file(test_env.sandbox.path("project/savoir.lock")).expect("it was there");
    test_env.sandbox.write("project/savoir.toml", "[skills]\npdf = \"*\"\n");
    let nobody = test_env.run(&["sync", "--json"]);
    assert_eq!(nobody.json()["error"]["code"], "no_registry", "{nobody}");
}

#[test]
fn registry_is_only_asked_for_its_namespaces() {
    let test_env = TestEnv::new();
    let url = test_env.registry();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    test_env.publish("world/pdf", "elsewhere/pdf");
    // The registry of the namespace cannot be reached.
    let work = "work = { url = \"http://127.0.0.1:1\", namespaces = [\"acme\"] }";
    let set = format!("[registries]\n{work}\npublic = {{ url = \"{url}\" }}\n");
    test_env.sandbox.write("project/savoir.toml", &set);
    let info = test_env.run_ok(&["info", "world/pdf", "--json"]).json();
    assert_eq!(info["published"]["name"], "world/pdf", "{info}");
    // A second registry is not searched, and the error says so.
    let other = test_env.registry();
    let two = set.replace("public =", &format!("other = {{ url = \"{other}\" }}\npublic ="));
    test_env.sandbox.write("project/savoir.toml", two);
    let unasked = test_env.run(&["install", "world/nothing"]);
    for words in [format!("{url} was not asked").as_str(), "`namespaces`", "github:world/nothing"] {
        assert!(unasked.code == 2 && unasked.stderr.contains(words), "{words}: {unasked}");
    }
    test_env.sandbox.write("project/savoir.toml", &set);
    for asked in ["world/pdf@^1", "world/pdf"] {
        test_env.run_ok(&["install", asked, "--allow-experimental"]);
        assert!(test_env.has(PDF));
        test_env.run_ok(&["remove", "pdf"]);
    }
    test_env.sandbox.write("project/savoir.toml", format!("[registries]\n{work}\n"));
    let nobody = test_env.run(&["install", "world/pdf@^1", "--json"]);
    assert_eq!(nobody.json()["error"]["code"], "no_registry", "{nobody}");
    assert!(nobody.stderr.contains("fallback = true"), "{nobody}");
}

#[test]
fn mirror_reports_registry_changes() {
    let test_env = TestEnv::new();
    let url = test_env.registry();
    let publish = |body: &str| {
        test_env.skill("elsewhere/pdf", "1.0.0", body);
        test_env.publish("pdf", "elsewhere/pdf");
    };
    publish("Read it.");
    let mirror = ["registry", "mirror", &url, "copy", "--skill", "pdf", "--json"];
    test_env.run_ok(&mirror);
    let index = test_env.read("project/copy/index/v1/pd/pdf");
    fs::remove_file(test_env.sandbox.path("site/index/v1/pd/pdf")).expect("it was there");
    publish("Read it, and tell everybody.");
    let again = test_env.run(&mirror);
    let failed = &again.json()["failed"][0];
    assert_eq!((again.code, &failed["code"]), (1, &"version_changed".into()), "{again}");
    assert_eq!(failed["version"], "1.0.0", "{again}");
    assert_eq!(test_env.read("project/copy/index/v1/pd/pdf"), index, "the copy keeps what it has");
    let words = test_env.run(&mirror[..mirror.len() - 1]);
    assert!(words.stderr.contains("`pdf` 1.0.0 is unchanged in the copy: "), "{words}");
}

/// Makes a file readable only by its owner, as required for tokens.
fn private(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("a file");
}

#[test]
fn missing_skill_is_an_error() {
    let test_env = TestEnv::new();
    let none = test_env.run(&["install", "pdf@^1.0"]);
    assert!(none.code == 2 && none.stderr.contains("--registry"), "{none}");
    let url = test_env.registry();
    let unknown = test_env.run(&["install", "pdf", "--registry", &url]);
    assert!(unknown.code == 1 && unknown.stderr.contains("pdf"), "{unknown}");
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    test_env.publish("pdf", "elsewhere/pdf");
    let range = test_env.run(&["install", "pdf@^2.0", "--registry", &url]);
    assert!(range.code == 1 && range.stderr.contains("2.0"), "{range}");
    let index = test_env.read("site/index/v1/pd/pdf");
    let artifacts = fs::read_dir(test_env.sandbox.path("site/artifacts")).expect("a folder");
    for entry in artifacts.flatten() {
        for file in fs::read_dir(entry.path()).expect("a folder").flatten() {
            let mut bytes = fs::read(file.path()).expect("a file");
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(file.path(), bytes).expect("a file");
        }
    }
    let forged = test_env.run(&["install", "pdf", "--registry", &url, "--allow-experimental"]);
    assert_eq!(forged.code, 3, "{forged}\n{index}");
    assert!(!test_env.has("project/savoir.lock"));
}

#[test]
fn hint_for_a_newer_version_of_the_user_has_the_option() {
    let test_env = TestEnv::new();
    let url = test_env.registry();
    for version in ["1.0.0", "2.0.0"] {
        test_env.skill("elsewhere/pdf", version, "Read it.");
        test_env.publish("acme/pdf", "elsewhere/pdf");
    }
    test_env.run_ok(&["install", "acme/pdf@^1.0", "--registry", &url, "--user", "-y"]);
    let all = test_env.run_ok(&["update", "--all", "--user", "-y"]);
    let note = "1 skill has a newer version that savoir.toml or another skill does not allow: \
                savoir outdated --user\n";
    assert!(all.stderr.contains(note), "{all}");
    let updated = test_env.run_ok(&["update", "pdf", "--user", "-y"]);
    let line = updated.stderr.split_once("to get it: savoir ").expect("a hint").1;
    let words: Vec<&str> = line.lines().next().expect("a line").split(' ').collect();
    assert!(words.contains(&"--user"), "{updated}");
    test_env.run_ok(&[&words[..], &["-y"]].concat());
    assert!(!test_env.has("project/.claude/skills/pdf"), "no second copy");
    assert!(test_env.read("home/.claude/skills/pdf/SKILL.md").contains("2.0.0"));
}

#[test]
fn registry_notices_of_installed_skills_are_shown() {
    let test_env = TestEnv::new();
    let url = test_env.registry();
    let publish = |version: &str| {
        test_env.skill("elsewhere/pdf", version, "Read it.");
        test_env.publish("acme/pdf", "elsewhere/pdf");
    };
    publish("1.0.0");
    test_env.run_ok(&["install", "acme/pdf@^1.0", "--registry", &url, "--allow-experimental"]);
    assert_eq!(test_env.run_ok(&["outdated"]).stdout, "all skills are up to date\n");
    publish("1.1.0");
    publish("2.0.0");
    let index = test_env.read("site/index/v1/pd/acme/pdf");
    let first = index.replacen("\"deprecated\":null", "\"deprecated\":\"use acme/paper\"", 1);
    test_env.sandbox.write("site/index/v1/pd/acme/pdf", first.replacen("false", "true", 1));
    let looked = test_env.run_ok(&["outdated"]);
    let expected = "`pdf` can be updated from 1.0.0 to 1.1.0\n\
                    `pdf` 2.0.0 is available, but savoir.toml asks for ^1.0; to get it: \
                    savoir install acme/pdf@^2.0.0 --registry [URL]\n\
                    `pdf` 1.0.0 was yanked, and stays installed\n\
                    `pdf` 1.0.0 is deprecated: use acme/paper\n";
    assert_eq!(looked.stdout.replace(&url, "[URL]"), expected, "{looked}");
    let listed = test_env.run_ok(&["list", "--long"]);
    assert!(listed.stdout.contains("1.1.0"), "{listed}");
    let json = test_env.run_ok(&["outdated", "--json"]).json();
    let skill = &json["skills"][0];
    assert_eq!((&skill["state"], &skill["version"]), (&"newer".into(), &"1.1.0".into()));
    assert_eq!((&skill["beyond"], &skill["yanked"]), (&"2.0.0".into(), &true.into()));
    // The suggested command works.
    test_env.run_ok(&["update", "--all", "--registry", &url]);
    let beyond = test_env.run_ok(&["outdated"]);
    assert!(!beyond.stderr.contains("savoir update"), "an update does not get it: {beyond}");
    let way = beyond.stdout.split_once("to get it: savoir ").expect("a way").1.trim_end();
    test_env.run_ok(&[&way.split(' ').collect::<Vec<_>>()[..], &["--allow-experimental"]].concat());
    assert!(test_env.read("project/savoir.lock").contains("version = \"2.0.0\""));
    std::fs::remove_dir_all(test_env.sandbox.path("site")).expect("it was there");
    let silent = test_env.run(&["outdated"]);
    assert!(silent.code == 1 && silent.stdout.contains("`pdf` could not be checked"), "{silent}");
}

#[test]
fn yanked_and_deprecated_versions_are_reported_on_install() {
    let test_env = TestEnv::new();
    let url = test_env.registry();
    for version in ["1.0.0", "2.0.0"] {
        test_env.skill("elsewhere/pdf", version, "Read it.");
        test_env.publish("pdf", "elsewhere/pdf");
    }
    let index = test_env.read("site/index/v1/pd/pdf");
    let index = index.replacen("\"deprecated\":null", "\"deprecated\":\"use paper\"", 1);
    let (first, second) = index.split_once('\n').expect("two lines");
    let second = second.replacen("\"yanked\":false", "\"yanked\":true", 1);
    test_env.sandbox.write("site/index/v1/pd/pdf", format!("{first}\n{second}"));
    let install = |range: &str| {
        let source = format!("pdf@{range}");
        test_env.run(&["install", &source, "--registry", &url, "--allow-experimental"])
    };
    let withdrawn = install("2.0.0");
    assert!(withdrawn.code == 1 && withdrawn.stderr.contains("is yanked"), "{withdrawn}");
    let deprecated = install("*");
    assert_eq!(deprecated.code, 0, "{deprecated}");
    assert!(deprecated.stderr.contains("`pdf` 1.0.0 is deprecated: use paper"), "{deprecated}");
}

#[test]
fn remote_registries_need_https_by_default() {
    let test_env = TestEnv::new();
    let url = "http://registry.invalid/registry";
    let refused = test_env.run(&["install", "pdf", "--registry", url]);
    assert!(refused.stderr.contains("without encryption"), "{refused}");
    assert!(refused.stderr.contains("--allow-http"), "{refused}");
    let table = format!("[registries.house]\nurl = \"{url}\"\nallow-http = true\n");
    test_env.sandbox.write("project/savoir.toml", &table);
    let of_project = test_env.run(&["install", "pdf"]);
    assert!(of_project.code == 2 && of_project.stderr.contains("for a person"), "{of_project}");
    std::fs::remove_file(test_env.sandbox.path("project/savoir.toml")).expect("it was there");
    let flag = test_env.run(&["install", "pdf", "--registry", url, "--allow-http"]);
    assert!(flag.code == 1 && !flag.stderr.contains("without encryption"), "{flag}");
    test_env.sandbox.write("home/.config/savoir/config.toml", &table);
    let own = test_env.run(&["install", "pdf"]);
    assert!(own.code == 1 && !own.stderr.contains("without encryption"), "{own}");
}
