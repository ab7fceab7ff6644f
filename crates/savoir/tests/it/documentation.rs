//! Tests that the transcripts in the documentation are correct.
//!
//! A block ```` ```console ```` contains commands after `$ ` and their output. The commands of one
//! page run in order in one folder that starts with a copy of `examples/` and `docs/samples/`. A
//! line `...` matches any number of lines. `cat FILE` prints a file; only `savoir` and `cat` are
//! run. Commands that examine the whole machine use `docs/samples/machine` as the home folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::support::{Sandbox, copy, repository};

struct Step {
    command: String,
    expected: Vec<String>,
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match (inside, line) {
            (false, "```console") => inside = true,
            (true, "```") => inside = false,
            (true, line) => match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => {
                    steps.push(Step { command: command.into(), expected: Vec::new() });
                }
                (None, Some(step)) => step.expected.push(line.to_owned()),
                (None, None) => panic!("output before a command: {line}"),
            },
            (false, _) => {}
        }
    }
    steps
}

/// Splits a command as a shell would, as far as the documentation needs it.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        let word = words.last_mut().expect("a word");
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, ' ') => words.push(String::new()),
            (_, c) => word.push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn matches(expected: &[String], got: &[&str]) -> bool {
    match expected.split_first() {
        None => got.is_empty(),
        Some((dots, rest)) if dots.trim() == "..." => {
            (0..=got.len()).any(|skipped| matches(rest, &got[skipped..]))
        }
        Some((line, rest)) => got.first() == Some(&line.as_str()) && matches(rest, &got[1..]),
    }
}

fn run(sandbox: &Sandbox, command: &str) -> String {
    let words = words(command);
    let args: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    match words.first().map(String::as_str) {
        Some("savoir") => {
            let run = match args.first() {
                // These commands must not see the developer's skills and agents.
                Some(&("list" | "status" | "info" | "which" | "enable" | "disable")) => sandbox
                    .run_as("docs/samples/machine/home", "docs/samples/machine/project", &args),
                Some(
                    &("install" | "sync" | "update" | "outdated" | "remove" | "undo" | "adopt"
                    | "agent"),
                ) => sandbox.run_as("docs/samples/machine/home", "", &args),
                Some(&"verify") if args.len() == 1 => {
                    sandbox.run_as("docs/samples/machine/home", "", &args)
                }
                _ => sandbox.run(&args),
            };
            format!("{}{}", run.stdout, run.stderr)
        }
        Some("cat") => sandbox.read(args[0]),
        other => panic!("the documentation runs {other:?}"),
    }
}

/// The pages in `docs/`, and these pages of the repository's root.
fn pages(root: &[&str]) -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = root.iter().map(|name| repository().join(name)).collect();
    add_pages(&repository().join("docs"), &mut pages);
    pages
}

/// Adds the pages of a folder and of the folders below it.
fn add_pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("docs") {
        let path = entry.expect("entry").path();
        if path.is_dir() && !path.ends_with("samples") {
            add_pages(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

#[test]
fn documented_transcripts_match() {
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages(&["README.md"]) {
        let sandbox = Sandbox::with_examples();
        copy(&repository().join("docs/samples"), &sandbox.path("docs/samples"));
        for step in steps(&fs::read_to_string(&page).expect("a page")) {
            count += 1;
            let got = run(&sandbox, &step.command);
            let lines: Vec<&str> = got.lines().map(str::trim_end).collect();
            if !matches(&step.expected, &lines) {
                wrong.push(format!(
                    "{}: `{}` prints\n{got}\ninstead of\n{}",
                    page.display(),
                    step.command,
                    step.expected.join("\n")
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(count >= 20, "only {count} commands are shown in the documentation");
}

/// The lines of a page that are not code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut fence: Option<&str> = None;
    page.lines().filter(move |line| {
        let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            Some(open) if line.trim_end() == open => fence = None,
            None if ticks.len() >= 3 => fence = Some(ticks),
            None => return true,
            Some(_) => {}
        }
        false
    })
}

/// The targets of the links and pictures in a line, apart from those in code.
fn targets(line: &str) -> Vec<String> {
    let text: String = line.split('`').step_by(2).collect();
    let links = text.split("](").skip(1);
    links.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// The anchors of a page, made from its headings as forges make them.
fn anchors(page: &str) -> Vec<String> {
    let headings = prose(page).filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
            title.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
        })
        .collect()
}

/// The reason why a link of a page is broken; `None` if it works.
fn broken(page: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path =
        if file.is_empty() { page.to_owned() } else { page.parent().expect("docs").join(file) };
    if !path.exists() {
        return Some(format!("{}: {target} does not exist", page.display()));
    }
    if anchor.is_empty() {
        return None;
    }
    let known = fs::read_to_string(&path).is_ok_and(|text| anchors(&text).contains(&anchor.into()));
    (!known).then(|| format!("{}: {target} has no such heading", page.display()))
}

#[test]
fn documentation_links_are_valid() {
    let mut count = 0;
    let mut problems = Vec::new();
    for page in pages(&["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]) {
        let text = fs::read_to_string(&page).expect("a page");
        for target in prose(&text).flat_map(targets) {
            count += 1;
            problems.extend(broken(&page, &target));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count >= 20, "only {count} links were found");
}

/// `cargo run` in the README names no binary, so there must be exactly one to choose from.
#[test]
fn cargo_run_has_a_default_binary() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = std::process::Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(repository())
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let default = metadata["workspace_default_members"].as_array().expect("members");
    let packages = metadata["packages"].as_array().expect("packages");
    let binaries: Vec<&str> = packages
        .iter()
        .filter(|package| default.contains(&package["id"]))
        .flat_map(|package| package["targets"].as_array().expect("targets"))
        .filter(|target| target["kind"][0] == "bin")
        .filter_map(|target| target["name"].as_str())
        .collect();
    assert_eq!(binaries, ["savoir"]);
}
