use std::{collections::BTreeMap, fs};

use savoir_skill::Folder;

use super::*;
use crate::set::Grader;

/// Reads the files of a skill with the name `pdf`.
fn read_files(files: &[(&str, &str)]) -> EvalReading {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    read(&Folder::open(dir.path()).unwrap(), "pdf")
}

fn codes(reading: &EvalReading) -> BTreeMap<&str, Vec<(&'static str, String)>> {
    let found = |file: &EvalFile| {
        let slice = |found: &Diagnostic| {
            let text = file.source.as_ref().map(Source::text).unwrap_or_default();
            (found.code, found.span.slice(text).to_owned())
        };
        file.diagnostics.iter().map(slice).collect::<Vec<_>>()
    };
    reading.files.iter().map(|file| (file.path.as_str(), found(file))).collect()
}

fn clean(files: &[(&str, &str)]) -> EvalSet {
    let reading = read_files(files);
    let found: Vec<_> = reading.files.iter().flat_map(|file| &file.diagnostics).collect();
    assert!(found.is_empty(), "{found:?}");
    reading.set
}

#[test]
fn agentskills_and_skill_creator_files_are_read() {
    let set = clean(&[
        (
            "evals/evals.json",
            r#"{"skill_name": "pdf", "evals": [
                {"id": 1, "prompt": "Sum it.", "expected_output": "A sum", "files": ["evals/files/a.csv"],
                 "assertions": ["It has a sum", {"type": "file-exists", "path": "sum.txt", "weight": 2}]},
                {"id": "two", "prompt": "Read it.", "expectations": ["It read it"]}]}"#,
        ),
        ("evals/files/a.csv", "1,2\n"),
    ]);
    assert_eq!(set.skill.as_deref(), Some("pdf"));
    let [first, second] = set.cases.as_slice() else { panic!("{set:?}") };
    assert_eq!((first.id.as_str(), first.expected.as_deref()), ("1", Some("A sum")));
    assert_eq!(first.files[0].path, "a.csv");
    assert_eq!(first.files[0].source, "evals/files/a.csv");
    assert_eq!(first.assertions[0].grader, Grader::Judge);
    assert_eq!(first.assertions[1].weight.to_string(), "2");
    assert_eq!(first.assertions[1].text, "sum.txt exists");
    assert_eq!((second.id.as_str(), second.assertions[0].text.as_str()), ("two", "It read it"));
}

#[test]
fn structured_assertions_of_every_type_are_read() {
    let set = clean(&[(
        "evals/evals.json",
        r#"{"evals": [{"prompt": "p", "assertions": [
            {"type": "contains", "text": "a"}, {"type": "not_contains", "value": "b", "name": "no b"},
            {"type": "regex", "path": "x.txt", "pattern": "^a$"}, {"type": "not-matches", "pattern": "b"},
            {"type": "json-schema", "schema": {"type": "object"}},
            {"type": "command", "command": "test -f x", "exit_code": 0},
            {"type": "tool-called", "tool": "use_skill", "called": false},
            {"type": "judge", "text": "It is polite"}, {"text": "It is short"}]}]}"#,
    )]);
    let assertions = &set.cases[0].assertions;
    let texts: Vec<_> = assertions.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(texts[..2], ["the answer contains \"a\"", "no b"]);
    assert_eq!(
        texts[5..],
        [
            "`test -f x` exits with 0",
            "the tool use_skill is not called",
            "It is polite",
            "It is short"
        ]
    );
    assert_eq!(assertions.iter().filter(|one| one.grader.is_deterministic()).count(), 7);
}

#[test]
fn trigger_sets_are_read() {
    let set = clean(&[
        (
            "evals/trigger-eval.json",
            r#"[{"query": "Read this PDF", "should_trigger": true},
            {"query": "Send a mail", "should_trigger": false}]"#,
        ),
        (
            "trigger_evals.json",
            r#"{"should_trigger": {"train": ["a"], "val": ["b"]},
            "should_not_trigger": ["c"]}"#,
        ),
    ]);
    let found: Vec<_> =
        set.triggers.iter().map(|one| (one.query.as_str(), one.should_trigger)).collect();
    assert_eq!(
        found,
        [("Read this PDF", true), ("Send a mail", false), ("a", true), ("b", true), ("c", false)]
    );
    assert!(set.cases.is_empty());
}

#[test]
fn nvidia_shapes_are_read() {
    let set = clean(&[
        (
            "evals/evals.json",
            r#"[
            {"question": "How?", "ground_truth": "So.", "expected_skill": "pdf", "expected_behavior": ["Loads the skill", "Says so"]},
            {"question": "What is the weather?", "ground_truth": "n/a", "expected_skill": null, "expected_behavior": ["Does not load it"]}]"#,
        ),
        ("evals/more.json", r#"{"cases": [{"prompt": "Do", "assertions": ["done"]}]}"#),
        (
            "evals/base.json",
            r#"{"skills": ["pdf", "deploy"], "resources": {"platforms": {"L40S": {"gpu_count": 1}}},
            "env": "a server on port 8000",
            "expects": [{"query": "Deploy on {{platform}}", "checks": ["`curl x` exits with 0", "It is up"]}]}"#,
        ),
        (
            "evals/routing.json",
            r#"{"version": "1.0", "skill": "pdf", "cases": [
            {"id": "r", "question": "Make a viewer", "expected_skill": "viewer", "acceptable_skills": ["pdf"],
             "expected_behavior": ["Uses RTX"], "must_not": ["Use WebGL"]},
            {"id": "s", "question": "Is it a PDF?", "expected_skill": "pdf", "should_trigger": false,
             "expected_behavior": ["Says no"]}]}"#,
        ),
        (
            "evals/typed.json",
            r#"{"evals": [{"prompt": "p", "should_trigger": true, "assertions": [
            {"type": "contains_phrase", "text": "It starts", "phrase": "gst-launch"},
            {"type": "not_contains_pattern", "text": "No token", "pattern": "sk-[a-z]+"}]}]}"#,
        ),
    ]);
    let ids: Vec<_> = set.cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["1", "1-2", "2", "1-3", "r", "s", "1-4"]);
    let [deploy, question, _, _, route, _, typed] = set.cases.as_slice() else { panic!("{set:?}") };
    assert_eq!(question.expected.as_deref(), Some("So."));
    assert_eq!(question.assertions.len(), 2);
    assert_eq!((deploy.prompt.as_str(), deploy.assertions.len()), ("Deploy on {{platform}}", 2));
    assert_eq!(deploy.requires, ["the platform L40S", "a server on port 8000"]);
    assert_eq!(route.assertions[1].text, "The agent did not do this: Use WebGL");
    let checks: Vec<_> =
        typed.assertions.iter().map(|one| (one.text.as_str(), &one.grader)).collect();
    let contains = Grader::Contains { path: None, text: "gst-launch".to_owned(), contains: true };
    let matches = Grader::Matches { path: None, pattern: "sk-[a-z]+".to_owned(), matches: false };
    assert_eq!(checks, [("It starts", &contains), ("No token", &matches)]);
    let triggers: Vec<_> = set.triggers.iter().map(|one| one.should_trigger).collect();
    assert_eq!(triggers, [true, false, false, true]);
}

#[test]
fn an_empty_list_is_a_warning_and_an_unknown_main_file_an_error() {
    let empty = read_files(&[("evals/evals.json", "[]")]);
    assert_eq!(codes(&empty)["evals/evals.json"], [("eval-no-cases", "[]".to_owned())]);
    assert!(!empty.has_errors());
    let unknown = read_files(&[("evals/evals.json", "{\"eval\": []}")]);
    assert_eq!(codes(&unknown)["evals/evals.json"], [("eval-unknown-format", "{".to_owned())]);
}

#[test]
fn tessl_scenarios_are_read() {
    let set = clean(&[
        ("evals/checkout/task.md", "Build a checkout.\n"),
        (
            "evals/checkout/criteria.json",
            r#"{"context": "Tests retries", "type": "weighted_checklist", "checklist": [
                {"name": "retry", "description": "Retries twice", "max_score": 8},
                {"name": "log", "description": "Logs", "max_score": 2}]}"#,
        ),
        ("evals/checkout/scenario.json", r#"{"name": "Checkout flow"}"#),
        ("evals/checkout/inputs/cart.json", "{}"),
    ]);
    let [case] = set.cases.as_slice() else { panic!("{set:?}") };
    assert_eq!((case.id.as_str(), case.prompt.as_str()), ("Checkout flow", "Build a checkout."));
    assert_eq!(case.files[0].path, "inputs/cart.json");
    assert_eq!(case.assertions[0].text, "retry: Retries twice");
    assert_eq!(case.assertions[0].weight.to_string(), "8");
    assert_eq!(case.expected.as_deref(), Some("Tests retries"));
}

#[test]
fn mistakes_are_reported_at_their_place() {
    let reading = read_files(&[
        ("evals/a.json", "{\"evals\": [1,]}"),
        (
            "evals/b.json",
            r#"{"skill_name": "other", "eval": 1, "evals": [{"id": 1}, {"prompt": 5}, 7, {"prompt": " "},
            {"prompt": "p", "files": ["../x", "none.txt"], "assertions": [3, "", {"type": "file"},
            {"type": "matches", "pattern": "("}, {"type": "comand", "command": "x"}, {"type": "contains", "path": "/etc/passwd", "text": "x"},
            {"type": "json-schema", "schema": {"type": 1}}]}, {"prompt": "nothing"}]}"#,
        ),
        ("evals/c.json", r#"[{"should_trigger": "yes", "query": "x"}, {"should_trigger": true}]"#),
        ("evals/t/task.md", ""),
        ("evals/unknown.json", r#"{"a": 1}"#),
    ]);
    let found = codes(&reading);
    assert_eq!(found["evals/a.json"], [("eval-not-json", "]".to_owned())]);
    let b: Vec<_> =
        found["evals/b.json"].iter().map(|(code, text)| (*code, text.as_str())).collect();
    assert_eq!(
        b,
        [
            ("eval-other-skill", "\"other\""),
            ("eval-unknown-key", "\"eval\""),
            ("eval-missing-field", "{"),
            ("eval-wrong-type", "5"),
            ("eval-wrong-type", "7"),
            ("eval-missing-field", "\" \""),
            ("eval-wrong-type", "3"),
            ("eval-missing-field", "\"\""),
            ("eval-missing-field", "{"),
            ("eval-bad-pattern", "\"(\""),
            ("eval-unknown-type", "\"comand\""),
            ("eval-outside-path", "\"/etc/passwd\""),
            ("eval-bad-schema", "{\"type\": 1}"),
            ("eval-outside-path", "\"../x\""),
            ("eval-missing-file", "\"none.txt\""),
            ("eval-no-assertions", "{"),
        ]
    );
    let c: Vec<_> = found["evals/c.json"].iter().map(|(code, _)| *code).collect();
    assert_eq!(c, ["eval-wrong-type", "eval-missing-field"]);
    let t: Vec<_> = found["evals/t/task.md"].iter().map(|(code, _)| *code).collect();
    assert_eq!(t, ["eval-missing-field", "eval-missing-file"]);
    assert_eq!(reading.unknown, ["evals/unknown.json"]);
    for file in &reading.files {
        for found in &file.diagnostics {
            assert!(found.help.is_some(), "{found:?}");
        }
    }
}

#[test]
fn public_eval_files_are_read_without_errors() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let corpus = std::path::Path::new(corpus);
    if !corpus.is_dir() {
        #[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
        {
            eprintln!("=== SKIPPED: the collection of skills is not beside the repository ===");
        }
        return;
    }
    for skill in [
        "elastic__elastic-docs-skills/lens-chart-settings",
        "coreyhaines31__marketingskills/free-tools",
        "anthropics__claude-plugins-official/_h_3c9bf4ff/math-olympiad",
        "microsoft__apm/docs-sync",
    ] {
        let folder = Folder::open(&corpus.join(skill)).unwrap();
        let reading = read(&folder, skill.rsplit('/').next().unwrap());
        assert!(!reading.is_empty() && !reading.has_errors(), "{skill}: {:?}", reading.files);
    }
}
