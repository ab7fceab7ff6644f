//! Tests `savoir run`: calls of tools by users and programs, and what tools can access.
//!
//! [`RunTestEnv`] has a home, a working folder and skills; [`server`] is a local web server.

mod calls;
mod commands;
mod denials;
mod doctor;
mod environments;
mod events;
mod everyday;
mod examples;
mod fences;
mod first_hour;
mod limits;
mod mistakes;
mod origin;
mod permissions;
mod python;
mod recordings;
mod records;
mod refusals;
mod sandbox_escapes;
mod secrets;
mod server;
mod terminal;
mod tiers;
mod unrunnable;
mod worktrees;

use std::{
    env,
    fmt::Write as _,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::support::{Sandbox, Transcript, copy, repository};

/// A home, a working folder and skills for one test.
struct RunTestEnv {
    sandbox: Sandbox,
    variables: Vec<(String, String)>,
}

impl RunTestEnv {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        for folder in ["home", "work", "skills"] {
            fs::create_dir(sandbox.path(folder)).expect("a folder");
        }
        Self { sandbox, variables: Vec::new() }
    }

    /// Creates an environment with one of the examples, approved.
    fn with_example(name: &str) -> Self {
        let test_env = Self::new();
        copy(&repository().join("examples").join(name), &test_env.path("skills").join(name));
        test_env.approve(name);
        test_env
    }

    /// Creates an environment with an approved gibb.eri.sh skill.
    fn with_commands(fields: &str, tools: &[(&str, &str, &str)]) -> Self {
        let test_env = Self::new();
        test_env.commands("demo", fields, tools);
        test_env.approve("demo");
        test_env
    }

    /// Creates an environment with an approved GAIA skill whose only tool executes the given code.
    fn with_probe(permissions: &[&str]) -> Self {
        let test_env = Self::new();
        test_env.probe("probe", permissions, "");
        test_env.approve("probe");
        test_env
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.sandbox.path(relative)
    }

    fn write(&self, relative: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        self.sandbox.write(relative, bytes)
    }

    fn script(&self, relative: &str, text: &str) {
        let path = self.write(relative, text);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
    }

    /// Sets an environment variable for all later commands.
    fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Writes a gibb.eri.sh skill; each tool is a name, rows of parameters and a command.
    fn commands(&self, name: &str, fields: &str, tools: &[(&str, &str, &str)]) {
        let mut text = format!(
            "---\nname: {name}\nversion: 1.0.0\ndescription: Tries things. Use in tests.\n{fields}---\n"
        );
        for (tool, rows, command) in tools {
            let table = if rows.is_empty() {
                "None.\n".to_owned()
            } else {
                let head = "| Name | Type | Required | Description |\n|---|---|---|---|\n";
                format!("{head}{rows}\n")
            };
            let _ = write!(
                text,
                "\n### {tool}\n\nDoes it.\n\n#### Parameters\n\n{table}\n#### Command\n\n```bash\n{command}\n```\n"
            );
        }
        self.write(&format!("skills/{name}/SKILL.md"), text);
    }

    /// Writes a GAIA skill with one tool.
    fn gaia(&self, name: &str, permissions: &[&str], fields: &str, python: &str) {
        // JSON is also YAML.
        let permissions = serde_json::to_string(permissions).expect("a list");
        self.write(
            &format!("skills/{name}/SKILL.md"),
            format!(
                "---\nname: {name}\nversion: 1.0.0\ndescription: Tries things. Use in tests.\n\
                 author: Tests\nlicense: MIT\npermissions: {permissions}\n{fields}tools:\n  - name: probe\n    \
                 description: Execute code\n    parameters:\n      \
                 code: {{type: string, required: true}}\n    returns: {{type: object}}\n\
                 security_tier: experimental\n---\n\n# Probe\n\nExecutes code.\n"
            ),
        );
        self.write(&format!("skills/{name}/tools.py"), python);
    }

    fn probe(&self, name: &str, permissions: &[&str], fields: &str) {
        self.gaia(name, permissions, fields, PROBE);
    }

    /// Creates a repository in the working folder.
    fn repository(&self) {
        self.git(&["init", "--quiet", "--initial-branch=main"]);
    }

    fn git(&self, arguments: &[&str]) {
        let output = Command::new("git")
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
            .args(arguments)
            .current_dir(self.path("work"))
            .env("HOME", self.path("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("git runs");
        assert!(output.status.success(), "{output:?}");
    }

    fn approve(&self, skill: &str) {
        let run = self.savoir(&["approve", &self.skill(skill), "--yes"]);
        assert_eq!(run.code, 0, "{run}");
    }

    fn skill(&self, target: &str) -> String {
        self.path("skills").join(target).to_string_lossy().into_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.command(arguments);
        command.current_dir(self.path("work")).env("HOME", self.path("home"));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        command
    }

    fn savoir(&self, arguments: &[&str]) -> Transcript {
        let output = self.command(arguments).output().expect("savoir runs");
        Transcript {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs a tool and reads the envelope.
    fn run(&self, target: &str, options: &[&str]) -> Run {
        let skill = self.skill(target);
        let arguments = [&["run", &skill, "--json"], options].concat();
        Run(self.savoir(&arguments))
    }

    /// Runs a tool that is refused, and repeats it with the fingerprint in the error.
    fn run_agreed(&self, target: &str, options: &[&str]) -> Run {
        let asked = self.run(target, options);
        asked.fails(3, "not-approved");
        let digits = fingerprint(&asked.0);
        self.run(target, &[options, &["--approve", &digits]].concat())
    }

    /// Executes Python in the probe, and returns the value of `result`.
    fn execute(&self, code: &str) -> Value {
        let run = self.run("probe", &["--param", &format!("code={code}")]);
        run.succeeds()["parsed"]["result"].clone()
    }

    /// The newest record.
    fn record(&self) -> Value {
        self.records().into_iter().next().expect("a record")
    }

    fn records(&self) -> Vec<Value> {
        let run = self.savoir(&["runs", "--json"]);
        run.json()["runs"].as_array().unwrap_or_else(|| panic!("{run}")).clone()
    }
}

/// The fingerprint that a refusal prints.
fn fingerprint(refused: &Transcript) -> String {
    let after = refused.stderr.split("--approve ").nth(1).unwrap_or_else(|| panic!("{refused}"));
    after.split_whitespace().next().expect("digits").to_owned()
}

/// The output of a run with its envelope.
struct Run(Transcript);

impl Run {
    #[track_caller]
    fn envelope(&self) -> Value {
        let envelope = self.0.json();
        for field in ["success", "exit_code", "output", "truncated", "duration_ms"] {
            assert!(envelope.get(field).is_some(), "no {field}: {}", self.0);
        }
        envelope
    }

    #[track_caller]
    fn succeeds(&self) -> Value {
        let envelope = self.envelope();
        assert_eq!((self.0.code, &envelope["success"]), (0, &true.into()), "{}", self.0);
        envelope
    }

    #[track_caller]
    fn fails(&self, code: i32, name: &str) -> Value {
        let envelope = self.envelope();
        assert_eq!(self.0.code, code, "{}", self.0);
        assert_eq!((&envelope["success"], &envelope["code"]), (&false.into(), &name.into()));
        envelope
    }

    /// Like `fails`, for a prompt, whose failure is an event. Returns its message.
    #[track_caller]
    fn fails_in_events(&self, code: i32, name: &str) -> String {
        assert_eq!(self.0.code, code, "{}", self.0);
        let line = self.0.stdout.lines().next().unwrap_or_default();
        let event: Value = serde_json::from_str(line).expect("an event");
        assert_eq!((&event["event"], &event["data"]["code"]), (&"error".into(), &name.into()));
        event["data"]["message"].as_str().expect("a message").to_owned()
    }

    /// Asserts that the error message contains all parts.
    #[track_caller]
    fn assert_error_contains(&self, parts: &[&str]) {
        let said = format!("{}\n{}", self.envelope()["error"], self.0.stderr);
        for part in parts {
            assert!(said.contains(part), "no {part:?} in: {}", self.0);
        }
    }
}

/// A tool that executes the code in its parameter.
const PROBE: &str = r#""""Executes code."""

from gaia.agents.base.tools import tool


@tool
def probe(code: str) -> dict:
    """Execute code and give back what it leaves in `result`."""
    scope = {}
    exec(code, scope)
    return {"result": scope.get("result")}
"#;

/// Python code that evaluates expressions, and returns the value or the name of the exception of
/// each.
fn python_attempts(expressions: &[&str]) -> String {
    let list: Vec<String> =
        expressions.iter().map(|text| serde_json::to_string(text).expect("text")).collect();
    format!(
        "import os, socket, subprocess\ndef attempt(text):\n    try:\n        value = eval(text)\n        \
         return value if type(value) in (type(None), bool, int, str, list) else repr(value)\n    \
         except Exception as error:\n        return type(error).__name__\n\
         result = [attempt(text) for text in [{}]]\n",
        list.join(", ")
    )
}

/// A file below a folder whose name or content contains this text.
fn find_containing(folder: &Path, wanted: &str) -> Option<PathBuf> {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let named = path.file_name().is_some_and(|name| name.to_string_lossy().contains(wanted));
        let found = if path.is_dir() {
            find_containing(&path, wanted)
        } else {
            let bytes = fs::read(&path).unwrap_or_default();
            let held = bytes.windows(wanted.len()).any(|part| part == wanted.as_bytes());
            held.then(|| path.clone())
        };
        if found.is_some() || named {
            return found.or(Some(path));
        }
    }
    None
}

fn has_program(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).any(|folder| folder.join(name).is_file());
    if !found {
        // Skipped tests are printed.
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            format!("skipped: there is no {name}\n").as_bytes(),
        );
    }
    found
}
