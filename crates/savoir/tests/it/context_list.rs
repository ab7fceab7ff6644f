//! Tests `savoir context`: which skills a model sees.

use std::fs;

use crate::support::{Sandbox, Transcript};

/// A home with skills for two agents.
fn test_env(skills: &[(&str, &str)]) -> Sandbox {
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
    let sandbox = test_env(&SKILLS);
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

/// `savoir chat` and `savoir mcp` read these, too, and use the same cache.
#[test]
fn spellings_of_personal_agent_are_read_in_every_folder() {
    let head = "description: d\nwhen-to-use: On Fridays.";
    let sandbox = test_env(&[(".claude/skills/hyp", head), (".agents/skills/hyp2", head)]);
    let all = run(&sandbox, &["context", "show"]);
    let expected = "- hyp: d — When to use: On Fridays.\n- hyp2: d — When to use: On Fridays.\n";
    assert_eq!(all.stdout, expected, "{all}");
}

#[test]
fn agent_without_skills_is_named_if_others_have_some() {
    let sandbox = test_env(&SKILLS[3..]);
    let none = run(&sandbox, &["context", "show", "--agent", "claude-code"]);
    assert!(none.stderr.contains("no skills are installed here for claude-code"), "{none}");
    assert!(none.stderr.contains("savoir install SOURCE --agent claude-code"), "{none}");
    let none = run(&test_env(&[]), &["context", "show", "--agent", "claude-code"]);
    assert!(none.stderr.contains("no skills are installed here; "), "{none}");
}

#[test]
fn hidden_skills_are_named_and_a_harmless_misspelling_hides_nothing() {
    let issue = (".claude/skills/issue", "description: Files issues.\nuser_invocable: true");
    let sandbox = test_env(&[SKILLS[2], issue]);
    let all = run(&sandbox, &["context", "show"]);
    assert_eq!(all.stdout, "- issue: Files issues.\n", "{all}");
    assert!(all.stderr.contains("deploy is hidden from models"), "{all}");
    let json = run(&sandbox, &["context", "show", "--json"]).json();
    assert_eq!(json["hidden"][0]["name"], "deploy", "{json}");
    let check = run(&sandbox, &["check", ".claude/skills/issue"]);
    assert!(check.stdout.contains("did you mean `user-invocable`?"), "{check}");
}

#[test]
fn skills_that_codex_brings_are_listed_for_codex_only() {
    let sandbox = test_env(&SKILLS[3..]);
    let text = "---\nname: imagegen\ndescription: Makes images.\n---\nDo it.\n";
    sandbox.write("home/.codex/skills/.system/imagegen/SKILL.md", text);
    let all = run(&sandbox, &["context", "show"]);
    assert_eq!(all.stdout, "- pdf: Reads PDF files.\n", "{all}");
    let codex = run(&sandbox, &["context", "show", "--agent", "codex"]);
    assert_eq!(codex.stdout, "- imagegen: Makes images.\n- pdf: Reads PDF files.\n", "{codex}");
}

#[test]
fn disabled_skill_is_not_visible_in_the_simulation() {
    let sandbox = test_env(&SKILLS[..2]);
    let disabled = run(&sandbox, &["disable", "mail", "--agent", "claude-code"]);
    assert_eq!(disabled.code, 0, "{disabled}");
    let check = ["context", "simulate", "--agent", "claude-code", "--check", "mail"];
    let simulated = run(&sandbox, &check);
    assert_eq!(simulated.code, 1, "{simulated}");
    assert!(simulated.stdout.contains("it is disabled"), "{simulated}");
}

#[test]
fn recently_used_skills_come_first() {
    let sandbox = test_env(&SKILLS);
    let used = r#"{"format":1,"skills":{"pdf":{"last":1700000000,"times":1},"gone":{"last":1700000009,"times":1}}}"#;
    sandbox.write("home/.local/share/savoir/skills/usage.json", used);
    let output = run(&sandbox, &["preamble", "--json"]).json();
    let names: Vec<_> =
        output["shown"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["pdf", "mail", "report"], "{output}");
}

#[test]
fn cut_skills_are_listed_in_json() {
    let skills: Vec<(String, String)> = (0..30)
        .map(|n| {
            (format!(".claude/skills/s{n:02}"), format!("description: {}", "word ".repeat(40)))
        })
        .collect();
    let skills: Vec<(&str, &str)> =
        skills.iter().map(|(place, head)| (place.as_str(), head.as_str())).collect();
    let sandbox = test_env(&skills);
    let output = run(&sandbox, &["preamble", "--budget", "200", "--pin", "s29", "--json"]).json();
    assert_eq!(output["shown"][0]["name"], "s29");
    assert!(output["tokens"].as_u64().unwrap() <= 200, "{output}");
    let (shown, left) =
        (output["shown"].as_array().unwrap(), output["left_out"].as_array().unwrap());
    assert_eq!(shown.len() + left.len(), 30);
    assert!(!left.is_empty() && shown.iter().all(|one| one["truncated"] == true), "{output}");
}

#[test]
fn simulation_lists_hidden_skills() {
    let sandbox = test_env(&SKILLS);
    let shown = run(&sandbox, &["simulate", "--agent", "claude-code"]);
    assert_eq!(shown.code, 0, "{shown}");
    assert!(shown.stdout.contains("2 of 3 skills are visible"), "{shown}");
    let seen = |args: &[&str]| {
        let all = [&["simulate", "--agent", "claude-code", "--json"], args].concat();
        let run = run(&sandbox, &all);
        (run.code, run.json())
    };
    let (code, output) = seen(&[]);
    assert_eq!((code, &output["budget"]), (0, &serde_json::json!(2000)));
    assert!(output["rules"][0]["source"].is_string(), "{output}");
    assert_eq!(seen(&["--check", "report", "mail"]).0, 0);
    assert_eq!(seen(&["--check", "report", "deploy"]).0, 1);
    assert_eq!(seen(&["--check", "nobody"]).0, 1);
    assert_eq!(seen(&["--check"]).0, 1, "one of all is hidden");
    let wrong = run(&sandbox, &["simulate", "--agent", "nobody"]);
    assert_eq!(wrong.code, 2, "{wrong}");
    assert!(wrong.stderr.contains("claude-code, codex"), "{wrong}");
}

#[test]
fn simulation_without_a_skill_lists_what_changes() {
    // The descriptions do not fit into the list.
    let skills: Vec<(String, String)> = (0..40)
        .map(|n| {
            (format!(".claude/skills/s{n:02}"), format!("description: {}", "word ".repeat(60)))
        })
        .collect();
    let skills: Vec<(&str, &str)> =
        skills.iter().map(|(place, head)| (place.as_str(), head.as_str())).collect();
    let sandbox = test_env(&skills);
    let simulate = ["simulate", "--agent", "claude-code", "--json"];
    let now = run(&sandbox, &simulate).json();
    assert!(now.get("difference").is_none(), "{now}");
    let visible = |output: &serde_json::Value| {
        output["skills"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["description"] == "whole")
            .count()
    };
    assert!(visible(&now) < 40, "not all fit: {now}");
    let names: Vec<String> = (0..35).map(|n| format!("s{n:02}")).collect();
    let without = format!("--without={}", names.join(","));
    let then = run(&sandbox, &[&simulate[..], &[without.as_str()]].concat()).json();
    let left_out = then["skills"].as_array().unwrap().iter().find(|one| one["name"] == "s00");
    assert_eq!(left_out.unwrap()["why"], "it is left out with --without");
    let difference = &then["difference"];
    assert_eq!(difference["without"].as_array().unwrap().len(), 35);
    let changes = difference["changes"].as_array().unwrap();
    assert!(changes.iter().any(|one| one["after"] == "whole"), "{difference}");
    let printed = run(&sandbox, &["simulate", "--agent", "claude-code", "--without", "s00"]);
    assert!(printed.stdout.contains("Without s00, the skill list takes "), "{printed}");
    let wrong = run(&sandbox, &["simulate", "--agent", "claude-code", "--without", "nothing"]);
    assert_eq!(wrong.code, 2, "{wrong}");
    assert!(wrong.stderr.contains("savoir list"), "{wrong}");
}

/// The result of a simulation for each skill: its name, whether it is visible, and its line or the
/// reason.
fn visible_skills(sandbox: &Sandbox, agent: &str) -> Vec<(String, bool, String)> {
    let output = run(sandbox, &["simulate", "--agent", agent, "--json"]).json();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let one = |sight: &serde_json::Value| {
        let seen = sight["visible"] == true;
        (text(&sight["name"]), seen, text(&sight[if seen { "line" } else { "why" }]))
    };
    output["skills"].as_array().expect("skills").iter().map(one).collect()
}

fn visibility_of<'a>(sights: &'a [(String, bool, String)], name: &str) -> (bool, &'a str) {
    let (_, seen, text) = sights.iter().find(|(own, ..)| own == name).expect(name);
    (*seen, text)
}

#[test]
fn a_simulation_reads_skills_as_its_host_does() {
    let sandbox = test_env(&[]);
    let write = |name: &str, text: &str| {
        for folder in [".claude/skills", ".agents/skills"] {
            sandbox.write(&format!("project/{folder}/{name}/SKILL.md"), text);
        }
    };
    write("nameless", "---\ndescription: Has no name.\n---\nDo it.\n");
    write(
        "odd",
        "---\nname: Odd Name\ndescription: Is odd.\nversion: 1.0\ncolour: red\n---\nDo.\n",
    );
    write("text-meta", "---\nname: text-meta\ndescription: Reads.\nmetadata: hello\n---\nDo.\n");
    write("bare", "---\nname: bare\n---\n# Bare\n\nPlaces bets\nfor you.\n\nMore.\n");
    write("prose", "Only prose.\n");
    write("colon", "---\nname: colon\ndescription: Do this: that\n---\nDo.\n");
    write("garbage", "---\nname: [\n  }\n---\nDo.\n");

    let claude = visible_skills(&sandbox, "claude-code");
    assert_eq!(visibility_of(&claude, "nameless"), (true, "- nameless: Has no name."));
    assert_eq!(visibility_of(&claude, "odd"), (true, "- odd: Is odd."), "the folder wins");
    assert_eq!(visibility_of(&claude, "text-meta"), (true, "- text-meta: Reads."));
    assert_eq!(visibility_of(&claude, "bare"), (true, "- bare: Bare"), "the first line");
    assert_eq!(visibility_of(&claude, "prose"), (true, "- prose: Only prose."));
    assert_eq!(visibility_of(&claude, "colon"), (true, "- colon: Do this: that"), "it repairs");
    assert_eq!(visibility_of(&claude, "garbage"), (true, "- garbage: Do."), "the text remains");

    let codex = visible_skills(&sandbox, "codex");
    let line = |name: &str| visibility_of(&codex, name).1.split(" (file: ").next().unwrap();
    assert_eq!(line("nameless"), "- nameless: Has no name.");
    assert_eq!(line("Odd Name"), "- Odd Name: Is odd.");
    assert_eq!(line("colon"), "- colon: Do this: that", "it repairs");
    for name in ["bare", "prose"] {
        let (seen, why) = visibility_of(&codex, name);
        assert!(!seen && why.contains("description"), "{name}: {why}");
    }
    for name in ["garbage", "text-meta"] {
        let (seen, why) = visibility_of(&codex, name);
        assert!(!seen && why.contains("YAML") && why.contains("savoir check"), "{name}: {why}");
    }
    let found = run(&sandbox, &["simulate", "--agent", "codex", "--check", "odd", "Odd Name"]);
    assert_eq!(found.code, 0, "by its folder and by its name: {found}");
}

#[test]
fn codex_has_its_own_rules() {
    let long = format!("description: {}", "x".repeat(1100));
    let sandbox = test_env(&[
        (".agents/skills/hidden", "description: Hides."),
        (".agents/skills/flagged", "description: Flagged.\ndisable-model-invocation: true"),
        (".agents/skills/claude-hidden", "description: Both.\ndisable-model-invocation: true"),
        (".agents/skills/twice", "description: Here."),
        (".agents/skills/long", &long),
        (".claude/skills/twice", "description: Here."),
    ]);
    let quiet = "policy:\n  allow_implicit_invocation: false\n";
    for name in ["hidden", "claude-hidden"] {
        sandbox.write(&format!("project/.agents/skills/{name}/agents/openai.yaml"), quiet);
    }
    sandbox.write("project/.claude/skills/twice/agents/openai.yaml", quiet);
    for place in ["home/.agents/skills", "home/.claude/skills"] {
        let text = "---\nname: twice\ndescription: There.\n---\nDo.\n";
        sandbox.write(&format!("{place}/twice/SKILL.md"), text);
    }
    let codex = visible_skills(&sandbox, "codex");
    assert!(visibility_of(&codex, "flagged").0, "Codex does not read the field of Claude Code");
    for name in ["hidden", "claude-hidden"] {
        assert!(!visibility_of(&codex, name).0, "{name}");
    }
    let twins = codex.iter().filter(|(name, seen, _)| name == "twice" && *seen).count();
    assert_eq!(twins, 2, "{codex:?}");
    let (seen, line) = visibility_of(&codex, "long");
    // The path of the file may contain the character, too.
    let text = line.split(" (file: ").next().unwrap_or_default();
    assert!(seen && text.ends_with("x...") && text.matches('x').count() == 1021, "{line}");

    let claude = visible_skills(&sandbox, "claude-code");
    let twins: Vec<_> = claude.iter().filter(|(name, ..)| name == "twice").collect();
    assert_eq!(twins.iter().filter(|(_, seen, _)| *seen).count(), 1, "{twins:?}");
}

#[test]
fn a_preamble_never_has_more_than_its_budget() {
    let sandbox = test_env(&SKILLS);
    for budget in [0, 1, 12, 13, 20] {
        let words = budget.to_string();
        let output = run(&sandbox, &["preamble", "--budget", &words, "--json"]).json();
        assert!(output["tokens"].as_u64().unwrap() <= budget, "{output}");
        let count = |list: &str| output[list].as_array().unwrap().len();
        assert_eq!(count("shown") + count("left_out"), 3, "{output}");
    }
    assert_eq!(run(&sandbox, &["preamble", "--budget", "0"]).stdout, "");
}

#[test]
fn invalid_skills_are_reported() {
    let sandbox = test_env(&[
        (".claude/skills/short", "description: Has a short version.\nversion: 1.0"),
        (".claude/skills/texts", "description: Has other data.\nversion: 1.0.0\nmetadata: hello"),
        (".claude/skills/tools", "description: Locks.\nversion: 1.0\nallowed-tools: {a: b}"),
        (".claude/skills/garbage", "description: [\n  }"),
        (".claude/skills/quiet", "description: Quiet.\ndisable-model-invocation: true"),
    ]);
    let output = run(&sandbox, &["preamble", "--json"]).json();
    let names = |list: &str| -> Vec<String> {
        let all = output[list].as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("shown"), ["short", "texts"], "{output}");
    assert_eq!(output["shown"][0]["line"], "- short: Has a short version.");
    assert_eq!(names("unusable"), ["garbage", "tools"], "{output}");
    for one in output["unusable"].as_array().unwrap() {
        assert!(one["reason"].as_str().unwrap().len() > 10, "{one}");
    }
    let shown = run(&sandbox, &["preamble"]);
    assert!(shown.stderr.contains("garbage") && shown.stderr.contains("tools"), "{shown}");
    assert!(!shown.stdout.contains("garbage"), "{shown}");
}
