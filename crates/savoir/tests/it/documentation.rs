//! The examples in the documentation do what they say.
//!
//! A block ```` ```console ```` holds commands after `$ ` and what they print. The commands of one
//! page run in order in one folder that begins with a copy of `examples/`. A line `...` stands for
//! any number of lines. `cat FILE` prints a file; only `savoir` and `cat` are run.

use std::fs;

use crate::support::{Sandbox, repository};

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
            let run = sandbox.run(&args);
            format!("{}{}", run.stdout, run.stderr)
        }
        Some("cat") => sandbox.read(args[0]),
        other => panic!("the documentation runs {other:?}"),
    }
}

#[test]
fn every_transcript_is_true() {
    let mut pages = vec![repository().join("README.md")];
    for entry in fs::read_dir(repository().join("docs")).expect("docs") {
        let path = entry.expect("entry").path();
        if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    let mut count = 0;
    for page in pages {
        let sandbox = Sandbox::with_examples();
        for step in steps(&fs::read_to_string(&page).expect("a page")) {
            count += 1;
            let got = run(&sandbox, &step.command);
            let lines: Vec<&str> = got.lines().map(str::trim_end).collect();
            assert!(
                matches(&step.expected, &lines),
                "{}: `{}` prints\n{got}\ninstead of\n{}",
                page.display(),
                step.command,
                step.expected.join("\n")
            );
        }
    }
    assert!(count >= 10, "only {count} commands are shown in the documentation");
}
