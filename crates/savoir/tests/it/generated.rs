//! Tests that generated files are up to date.

use std::{collections::BTreeMap, fs, path::Path};

use crate::support::{Sandbox, repository};

/// The files of a folder by their names.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries
        .map(|entry| {
            let entry = entry.expect("an entry");
            let text = fs::read_to_string(entry.path()).expect("a file");
            (entry.file_name().to_string_lossy().into_owned(), text)
        })
        .collect()
}

#[test]
fn the_schemas_are_up_to_date() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["schema", "--all", "schemas"]);
    assert_eq!(run.code, 0, "{run}");
    let (kept, now) = (files(&repository().join("schemas")), files(&sandbox.path("schemas")));
    let (names, wanted): (Vec<_>, Vec<_>) = (kept.keys().collect(), now.keys().collect());
    assert_eq!(names, wanted, "schemas/ is stale: run `make generated`");
    for (name, text) in now {
        assert!(kept[&name] == text, "schemas/{name} is stale: run `make generated`");
    }
}

#[test]
fn reference_pages_are_up_to_date() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["reference", "reference"]);
    assert_eq!(run.code, 0, "{run}");
    let written = repository().join("docs/reference");
    let page = fs::read_to_string(written.join("commands.md")).expect("docs/reference/commands.md");
    let now = fs::read_to_string(sandbox.path("reference/commands.md")).expect("commands.md");
    assert!(page == now, "docs/reference/commands.md is outdated: run `make generated`");
    let (kept, now) = (files(&written.join("rules")), files(&sandbox.path("reference/rules")));
    assert!(kept == now, "docs/reference/rules is outdated: run `make generated`");
}
