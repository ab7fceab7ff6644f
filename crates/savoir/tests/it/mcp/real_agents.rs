//! Tests third-party agents end to end: `savoir mcp install` writes their settings, a scripted
//! model makes them call tools, and their next request shows the result.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};

use super::{
    sandbox_with_examples,
    script::{LAST_WORDS, Model, PROMPT, programs},
};
use crate::{
    services::service,
    support::{Sandbox, Transcript, copy},
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_savoir");

/// An agent with its settings before `savoir mcp install`.
struct Agent {
    id: &'static str,
    variable: &'static str,
    /// The prefix that the agent adds to the names of our tools.
    prefix: &'static str,
    /// The number of model answers before the first user message.
    said_before: usize,
    /// Its user and project settings files with their initial content.
    settings: [&'static str; 2],
    before: fn(&str) -> Option<Value>,
    /// Runs a prompt without a terminal.
    ask: fn(&mut Command, &str),
}

const CLAUDE_CODE: Agent = Agent {
    id: "claude-code",
    variable: "SAVOIR_TEST_CLAUDE_CODE",
    prefix: "mcp__savoir__",
    said_before: 0,
    settings: ["home/.claude.json", "work/.mcp.json"],
    before: |_| None,
    ask: |command, url| {
        command
            .args(["-p", PROMPT, "--allowedTools", "mcp__savoir", "--output-format", "json"])
            // The agent starts servers of a project only after an approval.
            .args(["--settings", r#"{"enabledMcpjsonServers": ["savoir"]}"#])
            .env("ANTHROPIC_BASE_URL", url)
            .env("ANTHROPIC_API_KEY", "none")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .env("ENABLE_TOOL_SEARCH", "false");
    },
};

const OPENCODE: Agent = Agent {
    id: "opencode",
    variable: "SAVOIR_TEST_OPENCODE",
    prefix: "savoir_",
    said_before: 0,
    settings: ["home/.config/opencode/opencode.json", "work/opencode.json"],
    before: |url| {
        Some(json!({
            "model": "script/any",
            "provider": {"script": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": format!("{url}/v1"), "apiKey": "none"},
                "models": {"any": {}},
            }},
        }))
    },
    ask: |command, _| {
        command
            .args(["run", "--title", "a test", PROMPT])
            .env("OPENCODE_DISABLE_MODELS_FETCH", "1")
            .env("OPENCODE_DISABLE_AUTOUPDATE", "1");
    },
};

const GEMINI: Agent = Agent {
    id: "gemini",
    variable: "SAVOIR_TEST_GEMINI",
    prefix: "mcp_savoir_",
    said_before: 0,
    settings: ["home/.gemini/settings.json", "work/.gemini/settings.json"],
    before: |_| Some(json!({"security": {"auth": {"selectedType": "gemini-api-key"}}})),
    ask: |command, url| {
        command
            .args(["--yolo", "-m", "gemini-2.5-flash", "-p", PROMPT])
            .env("GEMINI_CLI_TRUST_WORKSPACE", "true")
            .env("GEMINI_API_KEY", "none")
            .env("GOOGLE_GEMINI_BASE_URL", url);
    },
};

const QWEN: Agent = Agent {
    id: "qwen",
    variable: "SAVOIR_TEST_QWEN",
    prefix: "mcp__savoir__",
    said_before: 1,
    settings: ["home/.qwen/settings.json", "work/.qwen/settings.json"],
    before: |_| None,
    ask: |command, url| {
        command
            .args(["--yolo", "--auth-type", "openai", "-p", PROMPT])
            .env("OPENAI_BASE_URL", format!("{url}/v1"))
            .env("OPENAI_API_KEY", "none")
            .env("OPENAI_MODEL", "any");
    },
};

/// A home with an agent, and a project with skills.
struct McpContext {
    sandbox: Sandbox,
    agent: &'static Agent,
    program: String,
}

impl McpContext {
    fn new(agent: &'static Agent) -> Option<Self> {
        let program = service(agent.variable, agent.id)?;
        let desk = Self {
            sandbox: sandbox_with_examples(&["text-statistics", "git-helper"]),
            agent,
            program,
        };
        let made = desk.run("git", &["init", "--quiet"]).status().expect("git runs");
        assert!(made.success());
        desk.run_ok(&["install", "../skills/text-statistics", "--allow-experimental"]);
        // This skill is part of the project.
        let inside = desk.sandbox.path("work/.agents/skills/git-helper");
        copy(&desk.sandbox.path("skills/git-helper"), &inside);
        Some(desk)
    }

    /// A command with an empty home folder.
    fn run(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        let own = Path::new(PROGRAM).parent().expect("a folder").display().to_string();
        command
            .args(args)
            .current_dir(self.sandbox.path("work"))
            .env_clear()
            .env("HOME", self.sandbox.path("home"))
            .env("PATH", format!("{own}:{}", programs()))
            .env("NO_COLOR", "1")
            .stdin(std::process::Stdio::null());
        command
    }

    /// Runs `savoir`, which must work.
    fn run_ok(&self, args: &[&str]) -> Transcript {
        let run = Transcript::of(self.run(PROGRAM, args));
        assert_eq!(run.code, 0, "{args:?}: {run}");
        run
    }

    /// Starts a scripted model that calls our tools by the names that the agent uses.
    fn model(&self, calls: &[(&str, Value)]) -> Option<Model> {
        let named = |(name, arguments): &(&str, Value)| {
            (format!("{}{name}", self.agent.prefix), arguments.clone())
        };
        let calls: Vec<_> = calls.iter().map(named).collect();
        Model::new(&self.sandbox, self.agent.said_before, &calls)
    }

    /// Lets Savoir add its entry to existing settings.
    fn connect(&self, scope: &str, model: &Model) {
        let file = self.agent.settings[usize::from(scope == "project")];
        if let Some(before) = (self.agent.before)(&model.url) {
            self.sandbox.write(self.agent.settings[0], before.to_string());
        }
        self.run_ok(&["mcp", "install", "--agent", self.agent.id, "--scope", scope, "--yes"]);
        assert!(self.sandbox.read(file).contains("savoir"), "{file}");
    }

    /// Sends the prompt to the agent, and waits until it ends.
    fn ask(&self, model: &Model) -> Output {
        let mut command = self.run(&self.program, &[]);
        (self.agent.ask)(&mut command, &model.url);
        let output = command.output().expect("the agent runs");
        let printed = [output.stdout.clone(), output.stderr.clone()].concat();
        let printed = String::from_utf8_lossy(&printed);
        assert!(output.status.success() && printed.contains(LAST_WORDS), "{printed}");
        output
    }
}

/// A text that occurs only in the instructions of the skill.
const INSTRUCTIONS: &str = "of `tools.py` that need nothing but the text they are given";

/// Returns the text after these words in a request of the agent.
fn found<'a>(questions: &'a [String], words: &str) -> Option<&'a str> {
    questions.iter().find_map(|question| Some(question.split_once(words)?.1))
}

fn uses_a_skill(agent: &'static Agent) {
    for scope in ["user", "project"] {
        let Some(desk) = McpContext::new(agent) else { return };
        let calls = [("use_skill", json!({"name": "text-statistics"}))];
        let Some(model) = desk.model(&calls) else { return };
        desk.connect(scope, &model);
        desk.ask(&model);
        let questions = model.questions();
        assert!(!questions[0].contains(INSTRUCTIONS), "{scope}: {}", questions[0]);
        assert!(found(&questions, INSTRUCTIONS).is_some(), "{scope}: {questions:?}");
    }
}

#[test]
fn claude_code_uses_a_skill() {
    uses_a_skill(&CLAUDE_CODE);
}

#[test]
fn opencode_uses_a_skill() {
    uses_a_skill(&OPENCODE);
}

#[test]
fn gemini_uses_a_skill() {
    uses_a_skill(&GEMINI);
}

#[test]
fn qwen_uses_a_skill() {
    uses_a_skill(&QWEN);
}

/// Text that the tool prints, and that no agent produces itself.
const STATUS: &str = "## No commits yet on ";

/// The tool is rejected with a hint. After running exactly the command in the hint, the tool runs.
fn runs_a_tool_after_an_approval(agent: &'static Agent) {
    let Some(desk) = McpContext::new(agent) else { return };
    let call = json!({"skill": "git-helper", "tool": "git_status", "arguments": {}});
    let calls = [("use_skill", json!({"name": "git-helper"})), ("run_skill_tool", call)];
    let Some(model) = desk.model(&calls) else { return };
    desk.connect("user", &model);
    desk.ask(&model);
    let refused = model.questions();
    assert_eq!(found(&refused, STATUS), None, "{refused:?}");
    let command = found(&refused, "savoir approve ").expect("the way out");
    let (path, _) = command.split_once(')').expect("the end of the way out");
    assert!(path.ends_with("/work/.agents/skills/git-helper"), "{path}");
    desk.run_ok(&["approve", path, "--yes"]);
    desk.ask(&model);
    assert!(found(&model.questions(), STATUS).is_some(), "{:?}", model.questions());
}

#[test]
fn claude_code_runs_a_tool_after_an_approval() {
    runs_a_tool_after_an_approval(&CLAUDE_CODE);
}

#[test]
fn opencode_runs_a_tool_after_an_approval() {
    runs_a_tool_after_an_approval(&OPENCODE);
}

#[test]
fn codex_reads_the_written_settings() {
    let Some(codex) = service("SAVOIR_TEST_CODEX", "Codex, which comes with make soak") else {
        return;
    };
    let sandbox = sandbox_with_examples(&[]);
    // The agent uses project settings only if the project is trusted.
    let trusted = sandbox.path("work").canonicalize().expect("a folder");
    let before = format!("[projects.{:?}]\ntrust_level = \"trusted\"\n", trusted.display());
    for (scope, ends) in [("user", "/savoir"), ("project", "savoir")] {
        sandbox.write("home/.codex/config.toml", &before);
        let run = |program: &str, words: &[&str]| {
            let mut command = Command::new(program);
            command.args(words).current_dir(&trusted).env_clear();
            command.env("HOME", sandbox.path("home")).env("PATH", programs());
            Transcript::of(command)
        };
        let install = ["mcp", "install", "--agent", "codex", "--scope", scope, "--yes"];
        assert_eq!(run(PROGRAM, &install).code, 0);
        let listed = run(&codex, &["mcp", "list", "--json"]).json();
        let server = &listed[0];
        assert_eq!((&server["name"], &server["enabled"]), (&json!("savoir"), &json!(true)));
        assert_eq!(server["transport"]["args"], json!(["mcp"]), "{listed}");
        let command = server["transport"]["command"].as_str().expect("a command");
        assert!(command.ends_with(ends), "{listed}");
    }
}
