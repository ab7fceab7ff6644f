//! `preamble` and `simulate`: what models are told of the skills of a made-up machine.

use std::fs;

use crate::support::{Sandbox, Transcript};

/// A machine with skills for two agents.
fn machine(skills: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::new();
    for folder in ["home", "project/.git"] {
        fs::create_dir_all(sandbox.path(folder)).expect("a folder");
    }
    for (place, head) in skills {
        let name = place.rsplit('/').next().expect("a name");
        let text = format!("---\nname: {name}\n{head}\n---\nDo it.\n");
        sandbox.write(&format!("project/{place}/SKILL.md"), text);
    }
    sandbox
}

fn run(sandbox: &Sandbox, args: &[&str]) -> Transcript {
    sandbox.run_as("home", "project", args)
}

const SKILLS: [(&str, &str); 4] = [
    (".claude/skills/report", "description: Writes the report.\nwhen_to_use: On Fridays."),
    (".claude/skills/mail", "description: Sends mail."),
    (".claude/skills/deploy", "description: Deploys.\ndisable-model-invocation: true"),
    (".agents/skills/pdf", "description: Reads PDF files."),
];

#[test]
fn a_preamble_has_a_line_for_each_skill() {
    let sandbox = machine(&SKILLS);
    let all = run(&sandbox, &["preamble", "--pin", "report"]);
    assert_eq!(all.code, 0, "{all}");
    assert_eq!(
        all.stdout,
        "- report: Writes the report. — When to use: On Fridays.\n\
         - mail: Sends mail.\n- pdf: Reads PDF files.\n"
    );
    let one = run(&sandbox, &["preamble", "--agent", "codex"]);
    assert_eq!(one.stdout, "- pdf: Reads PDF files.\n", "{one}");
}

#[test]
fn what_was_used_last_comes_first() {
    let sandbox = machine(&SKILLS);
    let used = r#"{"format":1,"skills":{"pdf":{"last":1700000000,"times":1},"gone":{"last":1700000009,"times":1}}}"#;
    sandbox.write("home/.local/share/savoir/skills/usage.json", used);
    let told = run(&sandbox, &["preamble", "--json"]).json();
    let names: Vec<_> = told["shown"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["pdf", "mail", "report"], "{told}");
}

#[test]
fn what_does_not_fit_is_told_to_programs() {
    let skills: Vec<(String, String)> = (0..30)
        .map(|n| {
            (format!(".claude/skills/s{n:02}"), format!("description: {}", "word ".repeat(40)))
        })
        .collect();
    let skills: Vec<(&str, &str)> =
        skills.iter().map(|(place, head)| (place.as_str(), head.as_str())).collect();
    let sandbox = machine(&skills);
    let told = run(&sandbox, &["preamble", "--budget", "200", "--pin", "s29", "--json"]).json();
    assert_eq!(told["shown"][0]["name"], "s29");
    assert!(told["tokens"].as_u64().unwrap() <= 200, "{told}");
    let (shown, left) = (told["shown"].as_array().unwrap(), told["left_out"].as_array().unwrap());
    assert_eq!(shown.len() + left.len(), 30);
    assert!(!left.is_empty() && shown.iter().all(|one| one["truncated"] == true), "{told}");
}

#[test]
fn a_simulation_tells_what_is_not_seen() {
    let sandbox = machine(&SKILLS);
    let shown = run(&sandbox, &["simulate", "--agent", "claude-code"]);
    assert_eq!(shown.code, 0, "{shown}");
    assert!(shown.stdout.contains("2 of 3 skills are seen"), "{shown}");
    let seen = |args: &[&str]| {
        let all = [&["simulate", "--agent", "claude-code", "--json"], args].concat();
        let run = run(&sandbox, &all);
        (run.code, run.json())
    };
    let (code, told) = seen(&[]);
    assert_eq!((code, &told["budget"]), (0, &serde_json::json!(2000)));
    assert!(told["rules"][0]["source"].is_string(), "{told}");
    assert_eq!(seen(&["--check", "report", "mail"]).0, 0);
    assert_eq!(seen(&["--check", "report", "deploy"]).0, 1);
    assert_eq!(seen(&["--check", "nobody"]).0, 1);
    assert_eq!(seen(&["--check"]).0, 1, "one of all is hidden");
    let wrong = run(&sandbox, &["simulate", "--agent", "nobody"]);
    assert_eq!(wrong.code, 2, "{wrong}");
    assert!(wrong.stderr.contains("claude-code and codex"), "{wrong}");
}
