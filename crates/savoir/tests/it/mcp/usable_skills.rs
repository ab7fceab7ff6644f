//! Tests that skills which cannot be used here are refused or explained.

use serde_json::{Value, json};

use super::{Client, code, sandbox_with_examples};
use crate::support::Sandbox;

fn with_skills() -> Sandbox {
    let sandbox = sandbox_with_examples(&[]);
    let skill = |name: &str, fields: &str, body: &str| {
        let text = format!(
            "---\nname: {name}\nversion: 1.0.0\ndescription: Does {name}.\n{fields}\n---\n{body}\n"
        );
        sandbox.write(&format!("skills/{name}/SKILL.md"), text);
    };
    let input = "inputs: [{name: x, type: number}]\n";
    for (name, fields) in [
        ("fine", "runtime: {type: markdown-skill}"),
        ("missing", "dependencies: {tools: [no-such-tool]}"),
        ("foreign", "runtime: {type: foo-rt}"),
        ("later", "runtime: {type: markdown-skill, min-version: 9.0.0}"),
        ("wrapper", "runtime: {type: mcp-tool}"),
    ] {
        skill(name, &format!("{input}{fields}"), "Body {{ x }}");
    }
    let tool = "### dev_tool\n\nDo it.\n\n#### Command\n\n```bash\necho hi\n```";
    skill("dev-only", "modes: [Dev]", tool);
    sandbox
}

#[test]
fn skillrt_skills_that_cannot_run_here_are_refused() {
    let sandbox = with_skills();
    let mut client = Client::new(&sandbox);
    for (name, error, reason) in [
        ("missing", "missing-tools", "not on PATH: no-such-tool"),
        ("foreign", "unknown-runtime", "unknown runtime `foo-rt`"),
        ("later", "runtime-too-new", "it needs runtime 9.0.0"),
    ] {
        let result = client.call("use_skill", &json!({"name": name}));
        assert_eq!(code(&result), error, "{result}");
        assert!(result.to_string().contains(reason), "{result}");
        let prompt = json!({"name": name, "arguments": {"x": "5"}});
        let answer = client.ask("prompts/get", prompt);
        assert!(answer["error"]["message"].to_string().contains(reason), "{answer}");
    }
    let used = client.call("use_skill", &json!({"name": "fine"}));
    assert_eq!(used["isError"], false, "{used}");
    assert_eq!(used["structuredContent"].get("note"), None, "{used}");
    let used = client.call("use_skill", &json!({"name": "wrapper"}));
    let note = used["structuredContent"]["note"].as_str().unwrap_or_default();
    assert!(note.contains("a tool of an MCP server"), "{used}");
}

#[test]
fn skill_of_another_mode_is_withheld_with_the_reason() {
    let sandbox = with_skills();
    let mut client = Client::new(&sandbox);
    let result = client.call("use_skill", &json!({"name": "dev-only"}));
    assert_eq!(code(&result), "not-in-mode", "{result}");
    assert!(result.to_string().contains("are only offered in mode Dev"), "{result}");
    let found = client.call("search_skills", &json!({"query": "dev-only"}));
    let names = |found: &Value| found["structuredContent"]["skills"].to_string();
    assert!(!names(&found).contains("dev-only"), "{found}");
    assert!(found["structuredContent"]["unusable"].to_string().contains("mode Dev"), "{found}");
    let mut dev = Client::with(&sandbox, &["../skills", "--mode", "Dev"], &json!({}));
    let found = dev.call("search_skills", &json!({"query": "dev-only"}));
    assert!(names(&found).contains("dev-only"), "{found}");
    let used = dev.call("use_skill", &json!({"name": "dev-only"}));
    assert_eq!(used["isError"], false, "{used}");
}
