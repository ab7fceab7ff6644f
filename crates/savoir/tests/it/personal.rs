//! Tests `import` and `export` of personal skills of a server.

use std::{fs, process::Stdio};

use serde_json::json;

use crate::support::Sandbox;

const TEXT: &str =
    "---\nname: Tea\ndescription: Makes tea.\nallowed-tools: [Read, Write]\n---\nBoil water.\n";
const CLEAN: &str =
    "---\nname: tea\ndescription: Makes tea.\nallowed-tools: Read Write\n---\nBoil water.\n";

#[test]
fn a_file_and_a_folder() {
    let sandbox = Sandbox::new();
    sandbox.write("tea.md", TEXT);
    let run = sandbox.run(&["import", "tea.md"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "tea was added\n"), "{run}");
    let run = sandbox.run(&["export", "tea"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, CLEAN), "{run}");

    sandbox.write("pots/SKILL.md", TEXT);
    sandbox.write("pots/references/pots.md", "Round ones.\n");
    sandbox.write("pots/notes.md", "Square ones.\n");
    let item = sandbox.run(&["import", "pots", "--json"]).json();
    assert_eq!(item["name"], "tea");
    assert_eq!(item["resources"], json!(["notes.md", "references/pots.md"]));
    assert_eq!((&item["source"], &item["enabled"]), (&json!("imported"), &json!(true)));
    let output = sandbox.run(&["export", "tea", "-o", "tea.zip", "--json"]).json();
    assert_eq!((&output["kind"], &output["name"]), (&json!("zip"), &json!("tea")));
    let again = sandbox.run(&["import", "tea.zip", "--json"]).json();
    assert_eq!(again["resources"], json!(["references/pots.md"]), "what a zip may bring");
}

#[test]
fn owners_have_skills_of_the_same_name() {
    let sandbox = Sandbox::new();
    sandbox.write("tea.md", TEXT);
    sandbox.write("password", "correct horse\n");
    for email in ["ann@example.org", "bob@example.org"] {
        let password = Stdio::from(fs::File::open(sandbox.path("password")).expect("a file"));
        let made = sandbox.command(&["admin", "create", email]).stdin(password).output();
        assert!(made.expect("savoir runs").status.success(), "{email}");
    }
    let run = sandbox.run(&["import", "tea.md", "--owner", "ann@example.org"]);
    assert_eq!(run.code, 0, "{run}");
    let run = sandbox.run(&["import", "tea.md", "--owner", "bob@example.org"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "tea was added\n"), "{run}");
    let run = sandbox.run(&["import", "tea.md", "--json"]);
    assert_eq!(run.json()["name"], "tea", "{run}");
    assert_eq!(run.json()["owner"], "shared", "{run}");
    sandbox.write("tea.md", TEXT.replace("Boil", "Heat"));
    let run = sandbox.run(&["import", "tea.md", "--owner", "bob@example.org"]);
    assert!(run.stdout.starts_with("tea was replaced"), "{run}");
    let run = sandbox.run(&["import", "tea.md", "--owner", "nobody@example.org"]);
    assert!(run.code == 2 && run.stderr.contains("savoir admin list"), "{run}");
    for (owner, word) in [("ann@example.org", "Boil"), ("bob@example.org", "Heat")] {
        let run = sandbox.run(&["export", "tea", "--owner", owner]);
        assert_eq!(run.stdout, CLEAN.replace("Boil", word), "without its owner: {run}");
    }
    let run = sandbox.run(&["export", "tea"]);
    assert_eq!(run.stdout, CLEAN, "that of all users: {run}");
}

#[test]
fn importing_a_non_skill_is_rejected() {
    let sandbox = Sandbox::new();
    sandbox.write("bad.zip", "no zip");
    sandbox.write("empty.md", "");
    fs::create_dir(sandbox.path("nothing")).expect("a folder");
    for path in ["bad.zip", "empty.md", "nothing", "gone.md"] {
        let run = sandbox.run(&["import", path]);
        assert!(run.code == 2 && run.stderr.contains(path), "{run}");
    }
    let run = sandbox.run(&["export", "../gone"]);
    assert!(run.code == 2 && run.stderr.contains("the server has no skill"), "{run}");
}
