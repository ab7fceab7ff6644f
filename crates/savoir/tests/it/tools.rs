//! Tests `savoir tools`.

use serde_json::json;

use crate::support::{Sandbox, Transcript};

const SKILLS: [&str; 2] = ["examples/git-helper", "examples/hello-world"];

fn tools(args: &[&str]) -> Transcript {
    let all: Vec<&str> = ["tools"].iter().chain(args).copied().collect();
    Sandbox::with_examples().run(&all)
}

fn in_format(format: &str) -> Transcript {
    tools(&[SKILLS[0], SKILLS[1], "--format", format])
}

/// Writes a copy of the skill `hello-world` into the folder `other`, with another name.
fn second_hello(sandbox: &Sandbox, name: &str) {
    let text = sandbox.read("examples/hello-world/SKILL.md").replace("hello-world", name);
    sandbox.write(&format!("other/{name}/SKILL.md"), text);
    let tools = sandbox.read("examples/hello-world/tools.py");
    sandbox.write(&format!("other/{name}/tools.py"), tools);
}

#[test]
fn text_output_is_a_list() {
    insta::assert_snapshot!(tools(&SKILLS));
}

#[test]
fn json_has_names_and_policies() {
    let run = in_format("json");
    assert_eq!(run.json(), tools(&[SKILLS[0], SKILLS[1], "--json"]).json());
    insta::assert_snapshot!(run);
}

#[test]
fn openai_has_functions() {
    insta::assert_snapshot!(in_format("openai"));
}

#[test]
fn anthropic_has_input_schemas() {
    insta::assert_snapshot!(in_format("anthropic"));
}

#[test]
fn mcp_has_annotations() {
    insta::assert_snapshot!(in_format("mcp"));
}

#[test]
fn functiongemma_has_a_prompt() {
    insta::assert_snapshot!(in_format("functiongemma"));
}

#[test]
fn tools_of_every_dialect_are_found() {
    let run = tools(&["examples", "--json"]);
    let found = run.json();
    let runners: Vec<_> = found["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| (tool["skill"].as_str().unwrap_or(""), tool["runner"].as_str().unwrap_or("")))
        .collect();
    for expected in [
        ("deploy-preview", "command"),
        ("web-page-summary", "command"),
        ("web-search", "python"),
        ("word-count-claw", "handler"),
    ] {
        assert!(runners.contains(&expected), "{expected:?}: {runners:?}");
    }
    assert!(runners.is_sorted_by_key(|(skill, _)| *skill), "{runners:?}");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
}

#[test]
fn mode_option_selects_tools() {
    let names = |mode: &str| tools(&["examples", "--mode", mode]).stdout;
    assert!(names("Dev").contains("deploy_preview") && names("Dev").contains("fetch_page"));
    assert!(!names("Global").contains("deploy_preview") && names("Global").contains("git_log"));
    assert!(names("meeting").contains("say_hello"));
    assert_eq!(tools(&["examples", "--mode", "Night"]).code, 2);
}

#[test]
fn shared_names_are_qualified() {
    let sandbox = Sandbox::with_examples();
    second_hello(&sandbox, "hello-again");
    let paths = ["tools", "examples/hello-world", "other"];
    let run = sandbox.run(&paths);
    assert!(run.stdout.contains("  hello-again/say_hello("), "{run}");
    assert!(run.stdout.contains("  hello-world/say_hello("), "{run}");
    let with = |format: &str| sandbox.run(&[&paths[..], &["--format", format]].concat()).json();
    assert_eq!(with("openai")[0]["function"]["name"], "hello-again__say_hello");
    assert_eq!(with("anthropic")[1]["name"], "hello-world__say_hello");
    let all = with("json");
    assert_eq!(
        (&all["tools"][0]["name"], &all["tools"][0]["api_name"]),
        (&json!("hello-again/say_hello"), &json!("hello-again__say_hello"))
    );
}

#[test]
fn unusable_skills_are_skipped_with_a_warning() {
    let sandbox = Sandbox::with_examples();
    sandbox.write("bad/SKILL.md", "---\nname: bad\nmodes: [Dev]\n---\nno tools\n");
    let run = sandbox.run(&["tools", "examples/hello-world", "bad"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("say_hello") && !run.stdout.contains("bad"), "{run}");
    assert!(run.stderr.starts_with("warning: skipped bad/SKILL.md: "), "{run}");
    assert_eq!(sandbox.run(&["tools", "examples/hello-world", "bad", "--strict"]).code, 1);
    let run = sandbox.run(&["tools", "bad"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run}");
}

#[test]
fn two_skills_with_one_name_are_an_error() {
    let sandbox = Sandbox::with_examples();
    second_hello(&sandbox, "hello-world");
    let run = sandbox.run(&["tools", "examples/hello-world", "other", "--json"]);
    assert_eq!(run.json()["tools"].as_array().map(Vec::len), Some(1), "{run}");
    assert_eq!(
        run.stderr,
        "warning: skipped other/hello-world/SKILL.md: \
         examples/hello-world/SKILL.md also has the name `hello-world`\n"
    );
    // Passing the same skill twice is not a conflict.
    let run = sandbox.run(&["tools", "examples/hello-world", "examples/hello-world/SKILL.md"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run}");
}

#[test]
fn missing_paths_are_reported() {
    let run = tools(&["nowhere"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
    assert!(run.stderr.contains("there is no skill `nowhere`"), "{run}");
    let run = tools(&["examples/hello-world", "nowhere"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stdout.contains("say_hello"), "{run}");
    // A skill without tools is not an error.
    let run = tools(&["examples/article-summary"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "no tools\n"), "{run}");
}
