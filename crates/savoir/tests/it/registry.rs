//! Tests `login`, `search`, `info` and `registry` against a mock registry over HTTP.

mod accounts;
mod files_only;
mod hints;
mod live_registry;
mod messages;
mod review_decisions;
mod search;
mod server;
mod signed;
mod team;

use std::{
    fs,
    io::Write as _,
    process::{Command, Stdio},
};

use savoir_package::{
    Tree,
    archive::pack,
    registry::{Name, wire::IndexLine},
};
use serde_json::json;

use self::server::MockRegistry;
use crate::support::{Sandbox, Transcript};

/// A user with a home and a project, and a mock registry.
struct RegistryTestEnv {
    sandbox: Sandbox,
    server: MockRegistry,
}

impl RegistryTestEnv {
    fn new() -> Self {
        let test_env = Self { sandbox: Sandbox::new(), server: MockRegistry::start() };
        for folder in ["home/.claude", "project/.git", "elsewhere"] {
            fs::create_dir_all(test_env.sandbox.path(folder)).expect("a folder");
        }
        let config = json!({"version": 1, "closure": false});
        test_env.server.get("/registry/index/v1/config.json", &config);
        test_env
    }

    /// The address of the registry.
    fn url(&self) -> String {
        format!("{}/registry", self.server.address())
    }

    /// Configures this registry as the user's default.
    fn with_default_registry(self) -> Self {
        let text = format!("[registries]\ndefault = \"{}\"\n", self.url());
        self.sandbox.write("home/.config/savoir/config.toml", text);
        self
    }

    /// Stores a token for the registry.
    fn with_token(self) -> Self {
        let file = "home/.config/savoir/credentials.toml";
        let text = format!("[\"{}\"]\ntoken = \"sv_kept\"\nid = \"t1\"\n", self.url());
        let path = self.sandbox.write(file, text);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(path, mode).expect("a mode");
        self.with_default_registry()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.sandbox.command(args);
        command
            .current_dir(self.sandbox.path("project"))
            .env_clear()
            .env("HOME", self.sandbox.path("home"))
            .env("NO_COLOR", "1");
        command
    }

    fn run(&self, args: &[&str]) -> Transcript {
        piped(self.command(args), "")
    }

    /// Runs a command that must succeed.
    fn run_ok(&self, args: &[&str]) -> Transcript {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {ran}");
        ran
    }

    /// Runs a command with input on standard input.
    fn typed(&self, args: &[&str], input: &str) -> Transcript {
        piped(self.command(args), input)
    }

    /// Writes a skill with one file; returns its folder.
    fn write(&self, name: &Name, version: &str) -> String {
        let folder = format!("elsewhere/{}-{version}/{}", name.owner(), name.last());
        let text = format!(
            "---\nname: {}\ndescription: Does {name}. Use when needed.\nversion: \"{version}\"\n---\n\n\
             # It\n\nDo it.\n",
            name.last()
        );
        self.sandbox.write(&format!("{folder}/SKILL.md"), text);
        folder
    }

    /// Publishes a skill with one file, and files that were added to its folder.
    fn publish(&self, name: &str, version: &str, change: impl FnOnce(&mut IndexLine)) -> IndexLine {
        let name = Name::parse(name).expect("a name");
        let folder = self.write(&name, version);
        let tree = Tree::read(&self.sandbox.path(&folder)).expect("a skill");
        let bytes = pack(name.last(), &tree).expect("an archive");
        let mut line = IndexLine::describe(&name, &tree, &bytes).expect("a skill");
        change(&mut line);
        let at = format!("/registry/artifacts/{}/{}", line.sha256, line.filename);
        self.server.bytes("GET", &at, 200, bytes);
        let at = format!("/registry/index/v1/{}", name.index_path());
        self.server.append("GET", &at, &(serde_json::to_string(&line).expect("JSON") + "\n"));
        line
    }

    /// Replaces the port and the folders of this run.
    fn without_addresses(&self, ran: &Transcript) -> String {
        let text = ran.to_string().replace(self.server.address(), "http://registry.test");
        text.replace(&self.sandbox.path("").display().to_string(), "/")
    }
}

/// Runs a command with input on standard input.
pub(crate) fn piped(mut command: Command, input: &str) -> Transcript {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("savoir runs");
    // Ignored, because the command may end before it reads.
    let _ = child.stdin.take().expect("standard input").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("an end");
    Transcript {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
