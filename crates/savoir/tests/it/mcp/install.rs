//! Tests `mcp install` and `mcp uninstall`, which change settings of other agents.

use std::fs;

use serde_json::Value;

use super::sandbox_with_examples;
use crate::support::{Sandbox, Transcript};

fn run(sandbox: &Sandbox, args: &[&str]) -> Transcript {
    sandbox.run_as("home", "work", &[&["mcp"], args].concat())
}

/// The settings files of each agent, of the user and of a project.
const FILES: [(&str, &str, Option<&str>); 8] = [
    ("claude-code", ".claude.json", Some(".mcp.json")),
    ("codex", ".codex/config.toml", Some(".codex/config.toml")),
    ("cursor", ".cursor/mcp.json", Some(".cursor/mcp.json")),
    ("gemini", ".gemini/settings.json", Some(".gemini/settings.json")),
    ("opencode", ".config/opencode/opencode.json", Some("opencode.json")),
    ("qwen", ".qwen/settings.json", Some(".qwen/settings.json")),
    ("vscode", ".config/Code/User/mcp.json", Some(".vscode/mcp.json")),
    ("windsurf", ".codeium/windsurf/mcp_config.json", None),
];

#[cfg(target_os = "linux")]
#[test]
fn uninstall_removes_the_entry() {
    for (agent, user, project) in FILES {
        let sandbox = sandbox_with_examples(&[]);
        let places = [
            ("user", Some(format!("home/{user}"))),
            ("project", project.map(|file| format!("work/{file}"))),
        ];
        for (scope, file) in places {
            let change =
                |verb: &str| run(&sandbox, &[verb, "--agent", agent, "--scope", scope, "--yes"]);
            let Some(file) = file else {
                assert_eq!(change("install").code, 2, "{agent}");
                continue;
            };
            let shown =
                run(&sandbox, &["install", "--agent", agent, "--scope", scope, "--dry-run"]);
            assert_eq!(shown.code, 0, "{shown}");
            assert!(shown.stdout.contains("savoir"), "{shown}");
            assert!(!sandbox.path(&file).exists(), "{agent}");
            assert_eq!(change("install").code, 0, "{agent} {scope}");
            let text = sandbox.read(&file);
            assert!(text.contains("savoir") && text.contains("mcp"), "{text}");
            assert_eq!(change("install").code, 0, "twice is as good as once");
            assert_eq!(sandbox.read(&file), text);
            let out = change("uninstall");
            assert_eq!(out.code, 0, "{out}");
            assert!(!sandbox.path(&file).exists(), "{agent} {scope}");
            assert_eq!(change("uninstall").code, 2, "{agent} {scope}");
        }
    }
}

#[test]
fn other_settings_and_later_changes_are_kept() {
    let sandbox = sandbox_with_examples(&[]);
    let before = "{\n  // my servers\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"},\n  },\n  \"theme\": \"dark\"\n}\n";
    let file = "home/.cursor/mcp.json";
    sandbox.write(file, before);
    assert_eq!(run(&sandbox, &["install", "--agent", "cursor", "--yes"]).code, 0);
    let after = sandbox.read(file);
    for piece in ["// my servers", "\"other\": {\"command\": \"x\"},", "\"theme\": \"dark\""] {
        assert!(after.contains(piece), "{after}");
    }
    assert_eq!(run(&sandbox, &["uninstall", "--agent", "cursor", "--yes"]).code, 0);
    assert_eq!(sandbox.read(file), before);

    run(&sandbox, &["install", "--agent", "cursor", "--yes"]);
    let changed = sandbox.read(file).replace("dark", "light");
    sandbox.write(file, &changed);
    assert_eq!(run(&sandbox, &["uninstall", "--agent", "cursor", "--yes"]).code, 0);
    let left = sandbox.read(file);
    assert!(left.contains("light") && left.contains("other") && !left.contains("savoir"), "{left}");

    let toml = "# mine\nmodel = \"x\" # fast\n\n[mcp_servers.other]\ncommand = \"y\"\n";
    sandbox.write("home/.codex/config.toml", toml);
    run(&sandbox, &["install", "--agent", "codex", "--yes"]);
    let with = sandbox.read("home/.codex/config.toml");
    assert!(with.starts_with(toml) && with.contains("[mcp_servers.savoir]"), "{with}");
    sandbox.write("home/.codex/config.toml", format!("{with}\n[more]\na = 1\n"));
    assert_eq!(run(&sandbox, &["uninstall", "--agent", "codex", "--yes"]).code, 0);
    let left = sandbox.read("home/.codex/config.toml");
    assert!(
        left.starts_with(toml) && left.contains("[more]") && !left.contains("savoir"),
        "{left}"
    );
}

#[test]
fn user_additions_to_the_entry_are_kept() {
    let sandbox = sandbox_with_examples(&[]);
    let json = "{\n  \"mcpServers\": {\n    \"savoir\": {\n      \"command\": \"/old/savoir\", // here\n      \
                \"args\": [\"mcp\", \"--pin\", \"pdf\"],\n      \"env\": {\"TOKEN\": \"x\"},\n      \
                \"timeout\": 5\n    }\n  }\n}\n";
    sandbox.write("home/.cursor/mcp.json", json);
    assert_eq!(run(&sandbox, &["install", "--agent", "cursor", "--yes"]).code, 0);
    let settings = sandbox.read("home/.cursor/mcp.json");
    let (before, rest) = json.split_once("/old/savoir").unwrap();
    assert!(settings.starts_with(before) && settings.ends_with(rest), "{settings}");
    assert!(!settings.contains("/old/"), "{settings}");

    let words = "{\"mcp\": {\"savoir\": {\"type\": \"local\", \"enabled\": false, \
                 \"command\": [\"/old/savoir\", \"mcp\", \"--pin\", \"pdf\"]}}}";
    sandbox.write("home/.config/opencode/opencode.json", words);
    assert_eq!(run(&sandbox, &["install", "--agent", "opencode", "--yes"]).code, 0);
    let text = sandbox.read("home/.config/opencode/opencode.json");
    let entry: Value = serde_json::from_str(&text).unwrap();
    let entry = &entry["mcp"]["savoir"];
    assert_eq!(entry["enabled"], false, "{text}");
    assert!(entry["command"][0].as_str().unwrap() != "/old/savoir", "{text}");
    assert_eq!(entry["command"][3], "pdf", "{text}");

    let toml = "# mine\n[mcp_servers.savoir]\ncommand = \"/old/savoir\" # here\n\
                args = [\"mcp\", \"--pin\", \"pdf\"]\nstartup_timeout_sec = 20\n\n\
                [mcp_servers.savoir.env]\nTOKEN = \"x\"\n";
    sandbox.write("home/.codex/config.toml", toml);
    assert_eq!(run(&sandbox, &["install", "--agent", "codex", "--yes"]).code, 0);
    let settings = sandbox.read("home/.codex/config.toml");
    let (before, rest) = toml.split_once("/old/savoir").unwrap();
    assert!(settings.starts_with(before) && settings.ends_with(rest), "{settings}");
}

#[test]
fn line_ends_are_preserved() {
    let sandbox = sandbox_with_examples(&[]);
    let toml = "# mine\r\nmodel = \"x\"\r\n\r\n[mcp_servers.other]\r\ncommand = \"y\" # z\r\n";
    let json = "\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"other\": {} // mine\r\n\t}\r\n}\r\n";
    for (agent, file, before) in
        [("codex", "home/.codex/config.toml", toml), ("cursor", "home/.cursor/mcp.json", json)]
    {
        sandbox.write(file, before);
        assert_eq!(run(&sandbox, &["install", "--agent", agent, "--yes"]).code, 0);
        let with = sandbox.read(file);
        assert!(with.contains("savoir"), "{with}");
        assert_eq!(with.matches('\n').count(), with.matches("\r\n").count(), "{with:?}");
        // If other settings change afterwards, only our entry is removed.
        sandbox.write(file, with.replace("other", "another"));
        assert_eq!(run(&sandbox, &["uninstall", "--agent", agent, "--yes"]).code, 0);
        assert_eq!(sandbox.read(file), before.replace("other", "another"));
    }
}

#[cfg(unix)]
#[test]
fn dangling_link_to_settings_is_kept() {
    let sandbox = sandbox_with_examples(&[]);
    let (file, link) = ("home/.cursor/mcp.json", sandbox.path("home/.cursor/mcp.json"));
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("../dotfiles/mcp.json", &link).unwrap();
    let refused = run(&sandbox, &["install", "--agent", "cursor", "--yes"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.contains("dotfiles/mcp.json") && refused.stderr.contains("hint:"));
    fs::create_dir(sandbox.path("home/dotfiles")).unwrap();
    assert_eq!(run(&sandbox, &["install", "--agent", "cursor", "--yes"]).code, 0);
    assert!(link.is_symlink() && sandbox.read("home/dotfiles/mcp.json").contains("savoir"));
    assert!(sandbox.read(file).contains("savoir"));
    assert_eq!(run(&sandbox, &["uninstall", "--agent", "cursor", "--yes"]).code, 0);
    assert!(link.is_symlink() && !sandbox.path("home/dotfiles/mcp.json").exists());
}

#[test]
fn broken_files_and_foreign_entries_are_unchanged() {
    let sandbox = sandbox_with_examples(&[]);
    for (agent, file, text, code, why) in [
        (
            "cursor", "home/.cursor/mcp.json", "{\n  \"a\": 1\n  \"b\": 2\n}", 2,
            "mcp.json:3: a , is missing",
        ),
        ("gemini", "home/.gemini/settings.json", "[]", 2, "settings.json:1:"),
        ("codex", "home/.codex/config.toml", "a = 1\nb = \n", 2, "config.toml:2:"),
        (
            "windsurf",
            "home/.codeium/windsurf/mcp_config.json",
            "{\"mcpServers\": 5}",
            2,
            "not an object",
        ),
        (
            "qwen",
            "home/.qwen/settings.json",
            "{\"mcpServers\": {\"savoir\": {\"command\": \"npx\"}}}",
            3,
            "another server",
        ),
    ] {
        sandbox.write(file, text);
        let refused = run(&sandbox, &["install", "--agent", agent, "--yes"]);
        assert_eq!(refused.code, code, "{refused}");
        assert!(refused.stderr.contains(why) && refused.stderr.contains("hint:"), "{refused}");
        assert_eq!(sandbox.read(file), text);
        assert_eq!(run(&sandbox, &["uninstall", "--agent", agent, "--yes"]).code, 2, "{agent}");
        assert_eq!(sandbox.read(file), text);
    }
    let silent = run(&sandbox, &["install", "--agent", "claude-code"]);
    assert_eq!(silent.code, 3, "{silent}");
    assert!(silent.stderr.contains("--yes"), "{silent}");
    assert!(!sandbox.path("home/.claude.json").exists());
}

#[test]
fn user_is_asked_before_settings_change() {
    let sandbox = sandbox_with_examples(&[]);
    let args = ["mcp", "install", "--agent", "claude-code"];
    let no = sandbox.type_as("home", "work", &args, "n\n");
    assert_eq!(no.code, 3, "{no}");
    let yes = sandbox.type_as("home", "work", &args, "y\n");
    assert_eq!(yes.code, 0, "{yes}");
    let text = fs::read_to_string(sandbox.path("home/.claude.json")).unwrap();
    let settings: Value = serde_json::from_str(&text).unwrap();
    let server = &settings["mcpServers"]["savoir"];
    assert_eq!((&server["type"], &server["args"][0]), (&"stdio".into(), &"mcp".into()), "{text}");
    assert!(server["command"].as_str().unwrap().ends_with("/savoir"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn several_agents_are_configured_at_once() {
    let sandbox = sandbox_with_examples(&[]);
    let all =
        run(&sandbox, &["install", "-a", "cursor,gemini-cli", "--agent", "github-copilot", "-y"]);
    assert_eq!(all.code, 0, "{all}");
    for (agent, file) in [
        ("cursor", "home/.cursor/mcp.json"),
        ("gemini-cli", "home/.gemini/settings.json"),
        ("github-copilot", "home/.config/Code/User/mcp.json"),
    ] {
        assert!(all.stderr.contains(&format!("{agent} now starts Savoir")), "{all}");
        assert!(sandbox.read(file).contains("savoir"), "{agent}");
    }
    let gone = run(&sandbox, &["uninstall", "--agent", "gemini", "--yes"]);
    assert!(gone.stderr.contains("gemini-cli no longer starts Savoir"), "{gone}");
}

#[cfg(target_os = "linux")]
#[test]
fn without_agent_those_in_use_are_configured() {
    let sandbox = sandbox_with_examples(&[]);
    let none = run(&sandbox, &["install", "--yes"]);
    assert_eq!(none.code, 2, "{none}");
    assert!(none.stderr.contains("name agents with --agent: claude-code, codex,"), "{none}");
    for folder in ["home/.claude", "home/.codex", "home/.config/goose"] {
        fs::create_dir_all(sandbox.path(folder)).expect("a folder");
    }
    let found = run(&sandbox, &["install", "--yes"]);
    assert_eq!(found.code, 0, "{found}");
    assert!(sandbox.read("home/.claude.json").contains("savoir"), "{found}");
    assert!(sandbox.read("home/.codex/config.toml").contains("savoir"), "{found}");
    assert!(!found.stderr.contains("cursor"), "{found}");
    let gone = run(&sandbox, &["uninstall", "--yes"]);
    assert_eq!(gone.code, 0, "{gone}");
    assert!(!sandbox.path("home/.claude.json").exists(), "{gone}");
}

#[test]
fn agents_that_cannot_be_configured_are_explained() {
    let sandbox = sandbox_with_examples(&[]);
    let goose = run(&sandbox, &["install", "--agent", "goose"]);
    assert_eq!(goose.code, 2, "{goose}");
    assert!(goose.stderr.contains("cannot change the MCP settings of goose"), "{goose}");
    assert!(goose.stderr.contains("by hand"), "{goose}");
    let unknown = run(&sandbox, &["install", "--agent", "emacs"]);
    assert!(unknown.stderr.contains("`savoir help --agents` lists all agents"), "{unknown}");
}
