//! Tests that texts of a skill cannot inject code, and that its files cannot leave its folder.

use std::{fs, os::unix::fs::symlink};

use proptest::prelude::*;
use savoir_skill::python;
use serde_json::json;

use super::{TestFolder, codes, python as run_python};

#[test]
fn handlers_do_not_leave_the_skill() {
    let place = TestFolder::new();
    place.write("secret.py", "def run():\n    return 1\n");
    for handler in [
        "../secret.py:run", "a/../../secret.py:run", "/etc/passwd.py:run", "C:\\secret.py:run",
        "a//b.py:run", ".git/hooks/x.py:run", "x\n.py:run", "x\u{202e}.py:run",
    ] {
        let report = place.action(handler);
        assert_eq!(codes(&report), ["handler_path"], "{handler}");
        assert!(!place.path("out/demo").exists());
    }
}

#[test]
fn symlinked_files_stay_in_the_skill() {
    let place = TestFolder::new();
    place.write("secret.py", "def run():\n    return 1\n");
    fs::create_dir_all(place.path("demo")).unwrap();
    symlink("../secret.py", place.path("demo/x.py")).unwrap();
    assert_eq!(codes(&place.action("x.py:run")), ["link"]);
}

/// Texts that try to end a literal, a line or a comment.
const TEXTS: [&str; 12] = [
    "\"\"\"\nimport os; os.system('x')\n\"\"\"",
    "\\\"\"\"; raise SystemExit #",
    "ends with a backslash \\",
    "ends with a quote \"",
    "'''{__import__('os')}'''",
    "line\u{2028}separator\u{85}next\u{c}page\r\nwindows",
    "nul \u{0} and \u{1b}[31m",
    "\u{202e}turned\u{2066}",
    "😀 größe",
    "x): pass\n\n@tool\ndef evil(",
    "%s {0} {name!r} $x",
    "# -*- coding: utf-7 -*- +AGEAYg-",
];

/// Migrates a skill in which all texts are this text.
fn with_text(place: &TestFolder, text: &str) -> savoir_package::migrate::MigrationReport {
    let fields = json!({
        "name": "demo", "description": "Shows.", "claw_version": text, "version": text,
        "author": text, "license": text, "pip_requires": [text],
        "actions": [
            {"name": text, "description": text, "handler": format!("h.py:{text}"), "parameters": {
                text: {"type": text, "default": text, "description": text},
                "plain": {"type": "object", "default": {text: [text, null, true, 1.5]}},
            }},
            {"name": text, "description": text, "handler": "h.py:run"},
        ],
    });
    let _ = fs::remove_dir_all(place.path("out"));
    place.write("demo/h.py", "def run():\n    return 'ran'\n");
    place.migrate(&place.write("demo/SKILL.md", &format!("---\n{fields}\n---\nText.\n")))
}

#[test]
fn skill_text_is_escaped_in_generated_code() {
    let place = TestFolder::new();
    for text in TEXTS {
        let report = with_text(&place, text);
        if !report.migrated {
            // The only accepted errors are texts that YAML cannot represent or that are not package
            // names.
            assert!(
                ["unreadable", "handler_path", "invalid_result"].contains(&codes(&report)[0]),
                "{text:?}: {report:#?}"
            );
            continue;
        }
        let source = place.read("out/demo/tools.py");
        assert!(source.is_ascii(), "{source}");
        let module = python::parse(&source).unwrap();
        let tools = module.functions.iter().filter(|one| one.decorator.is_some());
        let tools: Vec<_> = tools.collect();
        assert_eq!(tools.len(), 2, "{source}");
        assert_eq!(module.functions.len(), 4, "{source}");
        let name = &tools[0].parameters[0].name;
        let script = format!(
            "import json, tools\nprint(json.dumps([tools.{}.__doc__, tools.{}.__defaults__[0], tools.{}()]))",
            tools[0].name, tools[0].name, tools[1].name
        );
        if let Some(said) = run_python(&place.path("out/demo"), &script) {
            let said: serde_json::Value = serde_json::from_str(&said).unwrap();
            assert_eq!(said, json!([text.trim(), text, "ran"]), "{name}: {source}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_gives_valid_module(text in any::<String>()) {
        let place = TestFolder::new();
        let report = with_text(&place, &text);
        if report.migrated {
            let module = python::parse(&place.read("out/demo/tools.py")).unwrap();
            prop_assert_eq!(module.functions.len(), 4);
        }
    }
}
