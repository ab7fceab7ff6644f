//! Skills that are asked for by name, from a registry of files.

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

use super::{Machine, PDF};

impl Machine {
    /// Serves a registry of files; gives its address.
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
    let machine = Machine::new();
    let url = machine.registry();
    machine.skill("elsewhere/pdf", "1.0.0", "Read it.");
    machine.publish("pdf", "elsewhere/pdf");
    let install = ["install", "pdf@^1.0", "--registry", &url, "--allow-experimental"];
    machine.well(&install);
    assert_eq!(machine.read(PDF), machine.read("elsewhere/pdf/SKILL.md"));
    let lock = machine.read("project/savoir.lock");
    assert!(lock.contains(&format!("source = \"registry+{url}\"")), "{lock}");
    machine.skill("elsewhere/pdf", "1.1.0", "Read it twice.");
    machine.publish("pdf", "elsewhere/pdf");
    machine.skill("elsewhere/pdf", "2.0.0", "Read it backwards.");
    machine.publish("pdf", "elsewhere/pdf");
    machine.well(&["sync", "--frozen", "--registry", &url]);
    assert!(machine.read(PDF).contains("Read it."), "the lock holds");
    let updated = machine.well(&["update", "--all", "--registry", &url]);
    assert!(updated.stdout.contains("`pdf` goes from 1.0.0 to 1.1.0"), "{updated}");
    fs::remove_dir_all(machine.sandbox.path("project/.claude")).expect("it was there");
    fs::remove_dir_all(machine.sandbox.path("home/.local")).expect("it was there");
    machine.well(&["sync", "--frozen", "--allow-experimental"]);
    assert!(machine.read(PDF).contains("Read it twice."));
    machine.well(&["verify"]);
}

#[test]
fn a_published_skill_is_looked_at_without_installing_it() {
    let machine = Machine::new();
    let url = machine.registry();
    machine.skill("elsewhere/pdf", "1.0.0", "Read it.");
    machine.publish("pdf", "elsewhere/pdf");
    machine.sandbox.write("project/savoir.toml", format!("[registries]\nhouse = \"{url}\"\n"));
    let shown = machine.well(&["show", "registry:pdf", "--json"]).json();
    assert_eq!(shown["version"], "1.0.0");
    machine.well(&["scan", "registry:pdf@^1"]);
    let missing = machine.run(&["show", "registry:pdf@^2"]);
    assert_ne!(missing.code, 0, "{missing}");
    assert!(!machine.has("project/savoir.lock"), "nothing is installed");
}

#[test]
fn registries_of_the_project_are_asked_and_what_is_cached_will_do() {
    let machine = Machine::new();
    let url = machine.registry();
    machine.skill("elsewhere/pdf", "1.0.0", "Read it.");
    machine.publish("acme/pdf", "elsewhere/pdf");
    let manifest = format!(
        "[skills]\npdf = {{ version = \"^1.0\", namespace = \"acme\" }}\n\n\
         [registries.house]\nurl = \"{url}\"\nnamespaces = [\"acme\"]\n"
    );
    machine.sandbox.write("project/savoir.toml", manifest);
    machine.well(&["sync", "--allow-experimental"]);
    assert!(machine.has(PDF));
    machine.well(&["undo"]);
    fs::remove_dir_all(machine.sandbox.path("site")).expect("it was there");
    machine.well(&["sync", "--allow-experimental", "--offline"]);
    assert!(machine.has(PDF));
}

#[test]
fn a_name_with_a_namespace_is_one_of_the_registry_that_was_named() {
    let machine = Machine::new();
    let url = machine.registry();
    machine.skill("elsewhere/pdf", "1.0.0", "Read it.");
    machine.publish("acme/pdf", "elsewhere/pdf");
    for asked in ["acme/pdf", "acme/pdf@^1.0"] {
        machine.well(&["install", asked, "--registry", &url, "--allow-experimental"]);
        let lock = machine.read("project/savoir.lock");
        assert!(lock.contains(&format!("source = \"registry+{url}#acme/pdf\"")), "{lock}");
        machine.well(&["remove", "pdf"]);
        assert!(!machine.has(PDF));
    }
    // So is one of a namespace that belongs to a registry of the settings.
    let manifest = format!("[registries.house]\nurl = \"{url}\"\nnamespaces = [\"acme\"]\n");
    machine.sandbox.write("project/savoir.toml", manifest);
    machine.well(&["install", "acme/pdf", "--allow-experimental"]);
    assert!(machine.has(PDF));
    // What it does not have is not looked for in repositories of others.
    let none = machine.run(&["install", "acme/other", "--registry", &url]);
    assert!(none.code == 1 && !none.to_string().contains("github"), "{none}");
}

#[test]
fn a_name_is_no_repository_of_a_stranger_where_somebody_has_a_registry() {
    let machine = Machine::new();
    let url = machine.registry();
    machine.skill("elsewhere/pdf", "1.0.0", "Read it.");
    machine.publish("acme/pdf", "elsewhere/pdf");
    let ambiguous = |asked: &str, words: &str| {
        let refused = machine.run(&["install", asked, "--allow-experimental", "--json"]);
        let error = &refused.json()["error"];
        assert_eq!((refused.code, &error["code"]), (2, &"source_ambiguous".into()), "{refused}");
        let ways = format!("`registry:{asked}` or `github:{asked}`");
        for words in [&ways, words, "--registry URL"] {
            assert!(refused.stderr.contains(words), "{words}: {refused}");
        }
    };
    // Set in the project, or of the person who is logged in.
    let set = format!("[registries]\nhouse = \"{url}\"\n");
    let token = format!("[\"{url}\"]\ntoken = \"sav_secret\"\n");
    let credentials = "home/.config/savoir/credentials.toml";
    for (file, text) in [("project/savoir.toml", &set), (credentials, &token)] {
        machine.sandbox.write(file, text);
        private(&machine.sandbox.path(file));
        for asked in ["acme/pdf", "acme/pdf@1.0.0", "acme/pdf@1"] {
            machine.well(&["install", asked, "--allow-experimental"]);
            let lock = machine.read("project/savoir.lock");
            assert!(lock.contains(&format!("source = \"registry+{url}#acme/pdf\"")), "{lock}");
            machine.well(&["remove", "pdf"]);
        }
        ambiguous("acme/other", "none of the queried registries has it");
        ambiguous("acme/pdf@latest", "not branches or tags");
        never_github(&machine, &[]);
        fs::remove_file(machine.sandbox.path(file)).expect("it was there");
    }
    // What cannot be asked has not said that it does not know it.
    machine.sandbox.write("project/savoir.toml", "[registries]\nhouse = \"http://127.0.0.1:1\"\n");
    ambiguous("acme/pdf", "could not check");
    fs::remove_file(machine.sandbox.path("project/savoir.toml")).expect("it was there");
    let two = format!("{token}[\"http://127.0.0.1:1\"]\ntoken = \"sav_other\"\n");
    machine.sandbox.write(credentials, two);
    private(&machine.sandbox.path(credentials));
    ambiguous("acme/pdf", "none of them is set");
}

/// Names with a slip, which somebody could take on GitHub.
fn never_github(machine: &Machine, more: &[&str]) {
    for asked in [
        "Acme/pdf",
        "acme/my_pdf",
        "acme/pdf/",
        "@acme/pdf",
        "acme/skills/pdf",
        "acme/pdf@v1",
        " acme/other",
        "acme/other\r",
        "a:b/c",
        "Github:acme/pdf",
        "ACME+x/pdf",
    ] {
        let refused = machine.run(&[&["install", asked, "--json"], more].concat());
        let code = &refused.json()["error"]["code"];
        let codes = ["source_text", "source_ambiguous", "unknown_skill"];
        assert!(codes.iter().any(|one| code == one), "{asked}: {refused}");
        assert!(!refused.stderr.contains("https://github.com"), "{asked}: {refused}");
    }
}

#[test]
fn a_slip_in_a_name_is_no_repository_of_a_stranger() {
    let machine = Machine::new();
    let url = machine.registry();
    let owned = format!("[registries.house]\nurl = \"{url}\"\nnamespaces = [\"acme\"]\n");
    machine.sandbox.write("project/savoir.toml", owned);
    never_github(&machine, &[]);
    fs::remove_file(machine.sandbox.path("project/savoir.toml")).expect("it was there");
    never_github(&machine, &["--registry", &url]);
    // A folder that is there can be meant, too.
    machine.skill("project/acme/pdf", "1.0.0", "Read it.");
    let both = machine.run(&["install", "acme/pdf", "--registry", &url]);
    for words in ["`./acme/pdf`", "`registry:acme/pdf`"] {
        assert!(both.code == 2 && both.stderr.contains(words), "{words}: {both}");
    }
    machine.well(&["install", "./acme/pdf", "--allow-experimental"]);
    assert!(machine.has(PDF));
}

#[test]
fn a_manifest_that_names_a_registry_is_enough() {
    let machine = Machine::new();
    let url = machine.registry();
    machine.skill("elsewhere/pdf", "1.0.0", "Read it.");
    machine.publish("acme/pdf", "elsewhere/pdf");
    let from = format!("registry = \"{url}\", namespace = \"acme\"");
    let wanted = format!("[skills]\npdf = {{ version = \"*\", {from} }}\n");
    machine.sandbox.write("project/savoir.toml", wanted);
    machine.well(&["sync", "--allow-experimental"]);
    assert!(machine.has(PDF));
    // It knows a registry, so that nothing leads to GitHub, and the rest of the namespace is there.
    never_github(&machine, &[]);
    machine.skill("elsewhere/tea", "1.0.0", "Boil it.");
    machine.publish("acme/tea", "elsewhere/tea");
    machine.well(&["install", "acme/tea", "--allow-experimental"]);
    assert!(machine.has("project/.claude/skills/tea/SKILL.md"));
    machine.well(&["remove", "tea"]);
    fs::remove_file(machine.sandbox.path("project/savoir.lock")).expect("it was there");
    machine.sandbox.write("project/savoir.toml", "[skills]\npdf = \"*\"\n");
    let nobody = machine.run(&["sync", "--json"]);
    assert_eq!(nobody.json()["error"]["code"], "no_registry", "{nobody}");
}

#[test]
fn a_registry_with_namespaces_is_asked_about_no_others() {
    let machine = Machine::new();
    let url = machine.registry();
    machine.skill("elsewhere/pdf", "1.0.0", "Read it.");
    machine.publish("world/pdf", "elsewhere/pdf");
    // Nobody is there whom it could ask.
    let work = "work = { url = \"http://127.0.0.1:1\", namespaces = [\"acme\"] }";
    let set = format!("[registries]\n{work}\npublic = {{ url = \"{url}\" }}\n");
    machine.sandbox.write("project/savoir.toml", &set);
    let info = machine.well(&["info", "world/pdf", "--json"]).json();
    assert_eq!(info["published"]["name"], "world/pdf", "{info}");
    // A second one is not asked, and that is told.
    let other = machine.registry();
    let two = set.replace("public =", &format!("other = {{ url = \"{other}\" }}\npublic ="));
    machine.sandbox.write("project/savoir.toml", two);
    let unasked = machine.run(&["install", "world/nothing"]);
    for words in [format!("{url} was not asked").as_str(), "`namespaces`", "github:world/nothing"] {
        assert!(unasked.code == 2 && unasked.stderr.contains(words), "{words}: {unasked}");
    }
    machine.sandbox.write("project/savoir.toml", &set);
    for asked in ["world/pdf@^1", "world/pdf"] {
        machine.well(&["install", asked, "--allow-experimental"]);
        assert!(machine.has(PDF));
        machine.well(&["remove", "pdf"]);
    }
    machine.sandbox.write("project/savoir.toml", format!("[registries]\n{work}\n"));
    let nobody = machine.run(&["install", "world/pdf@^1", "--json"]);
    assert_eq!(nobody.json()["error"]["code"], "no_registry", "{nobody}");
    assert!(nobody.stderr.contains("fallback = true"), "{nobody}");
}

#[test]
fn a_copy_tells_what_a_registry_changed() {
    let machine = Machine::new();
    let url = machine.registry();
    let publish = |body: &str| {
        machine.skill("elsewhere/pdf", "1.0.0", body);
        machine.publish("pdf", "elsewhere/pdf");
    };
    publish("Read it.");
    let mirror = ["registry", "mirror", &url, "copy", "--skill", "pdf", "--json"];
    machine.well(&mirror);
    let index = machine.read("project/copy/index/v1/pd/pdf");
    fs::remove_file(machine.sandbox.path("site/index/v1/pd/pdf")).expect("it was there");
    publish("Read it, and tell everybody.");
    let again = machine.run(&mirror);
    let failed = &again.json()["failed"][0];
    assert_eq!((again.code, &failed["code"]), (1, &"version_changed".into()), "{again}");
    assert_eq!(failed["version"], "1.0.0", "{again}");
    assert_eq!(machine.read("project/copy/index/v1/pd/pdf"), index, "the copy keeps what it has");
    let words = machine.run(&mirror[..mirror.len() - 1]);
    assert!(words.stderr.contains("`pdf` 1.0.0 is unchanged in the copy: "), "{words}");
}

/// Tokens are not read that others can read, too.
fn private(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("a file");
}

#[test]
fn what_a_registry_does_not_have() {
    let machine = Machine::new();
    let none = machine.run(&["install", "pdf@^1.0"]);
    assert!(none.code == 1 && none.stderr.contains("--registry"), "{none}");
    let url = machine.registry();
    let unknown = machine.run(&["install", "pdf", "--registry", &url]);
    assert!(unknown.code == 1 && unknown.stderr.contains("pdf"), "{unknown}");
    machine.skill("elsewhere/pdf", "1.0.0", "Read it.");
    machine.publish("pdf", "elsewhere/pdf");
    let range = machine.run(&["install", "pdf@^2.0", "--registry", &url]);
    assert!(range.code == 1 && range.stderr.contains("2.0"), "{range}");
    let index = machine.read("site/index/v1/pd/pdf");
    let artifacts = fs::read_dir(machine.sandbox.path("site/artifacts")).expect("a folder");
    for entry in artifacts.flatten() {
        for file in fs::read_dir(entry.path()).expect("a folder").flatten() {
            let mut bytes = fs::read(file.path()).expect("a file");
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(file.path(), bytes).expect("a file");
        }
    }
    let forged = machine.run(&["install", "pdf", "--registry", &url, "--allow-experimental"]);
    assert_eq!(forged.code, 3, "{forged}\n{index}");
    assert!(!machine.has("project/savoir.lock"));
}

#[test]
fn what_registries_say_of_installed_skills_is_told() {
    let machine = Machine::new();
    let url = machine.registry();
    let publish = |version: &str| {
        machine.skill("elsewhere/pdf", version, "Read it.");
        machine.publish("acme/pdf", "elsewhere/pdf");
    };
    publish("1.0.0");
    machine.well(&["install", "acme/pdf@^1.0", "--registry", &url, "--allow-experimental"]);
    assert_eq!(machine.well(&["outdated"]).stdout, "all skills are up to date\n");
    publish("1.1.0");
    publish("2.0.0");
    let index = machine.read("site/index/v1/pd/acme/pdf");
    let first = index.replacen("\"deprecated\":null", "\"deprecated\":\"use acme/paper\"", 1);
    machine.sandbox.write("site/index/v1/pd/acme/pdf", first.replacen("false", "true", 1));
    let looked = machine.well(&["outdated"]);
    let expected = "`pdf` can be updated from 1.0.0 to 1.1.0\n\
                    `pdf` 2.0.0 is available, but savoir.toml asks for ^1.0; to get it: \
                    savoir install acme/pdf@^2.0.0 --registry [URL]\n\
                    `pdf` 1.0.0 was yanked, and stays installed\n\
                    `pdf` 1.0.0 is deprecated: use acme/paper\n";
    assert_eq!(looked.stdout.replace(&url, "[URL]"), expected, "{looked}");
    let listed = machine.well(&["list", "--long"]);
    assert!(listed.stdout.contains("1.1.0"), "{listed}");
    let json = machine.well(&["outdated", "--json"]).json();
    let skill = &json["skills"][0];
    assert_eq!((&skill["state"], &skill["version"]), (&"newer".into(), &"1.1.0".into()));
    assert_eq!((&skill["beyond"], &skill["yanked"]), (&"2.0.0".into(), &true.into()));
    // What is told to be run does it.
    machine.well(&["update", "--all", "--registry", &url]);
    let beyond = machine.well(&["outdated"]);
    assert!(!beyond.stderr.contains("savoir update"), "an update does not get it: {beyond}");
    let way = beyond.stdout.split_once("to get it: savoir ").expect("a way").1.trim_end();
    machine.well(&[&way.split(' ').collect::<Vec<_>>()[..], &["--allow-experimental"]].concat());
    assert!(machine.read("project/savoir.lock").contains("version = \"2.0.0\""));
    std::fs::remove_dir_all(machine.sandbox.path("site")).expect("it was there");
    let silent = machine.run(&["outdated"]);
    assert!(silent.code == 1 && silent.stdout.contains("`pdf` could not be checked"), "{silent}");
}

#[test]
fn what_was_withdrawn_or_deprecated_is_told_when_it_is_installed() {
    let machine = Machine::new();
    let url = machine.registry();
    for version in ["1.0.0", "2.0.0"] {
        machine.skill("elsewhere/pdf", version, "Read it.");
        machine.publish("pdf", "elsewhere/pdf");
    }
    let index = machine.read("site/index/v1/pd/pdf");
    let index = index.replacen("\"deprecated\":null", "\"deprecated\":\"use paper\"", 1);
    let (first, second) = index.split_once('\n').expect("two lines");
    let second = second.replacen("\"yanked\":false", "\"yanked\":true", 1);
    machine.sandbox.write("site/index/v1/pd/pdf", format!("{first}\n{second}"));
    let install = |range: &str| {
        let source = format!("pdf@{range}");
        machine.run(&["install", &source, "--registry", &url, "--allow-experimental"])
    };
    let withdrawn = install("2.0.0");
    assert!(withdrawn.code == 1 && withdrawn.stderr.contains("was withdrawn"), "{withdrawn}");
    let deprecated = install("*");
    assert_eq!(deprecated.code, 0, "{deprecated}");
    assert!(deprecated.stderr.contains("`pdf` 1.0.0 is deprecated: use paper"), "{deprecated}");
}

#[test]
fn a_registry_elsewhere_is_asked_with_encryption_unless_a_person_says_so() {
    let machine = Machine::new();
    let url = "http://registry.invalid/registry";
    let refused = machine.run(&["install", "pdf", "--registry", url]);
    assert!(refused.stderr.contains("without encryption"), "{refused}");
    assert!(refused.stderr.contains("--allow-http"), "{refused}");
    let table = format!("[registries.house]\nurl = \"{url}\"\nallow-http = true\n");
    machine.sandbox.write("project/savoir.toml", &table);
    let of_project = machine.run(&["install", "pdf"]);
    assert!(of_project.code == 2 && of_project.stderr.contains("for a person"), "{of_project}");
    std::fs::remove_file(machine.sandbox.path("project/savoir.toml")).expect("it was there");
    let flag = machine.run(&["install", "pdf", "--registry", url, "--allow-http"]);
    assert!(flag.code == 1 && !flag.stderr.contains("without encryption"), "{flag}");
    machine.sandbox.write("home/.config/savoir/config.toml", &table);
    let own = machine.run(&["install", "pdf"]);
    assert!(own.code == 1 && !own.stderr.contains("without encryption"), "{own}");
}
