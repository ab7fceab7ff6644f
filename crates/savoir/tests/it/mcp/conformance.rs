//! Runs the official conformance tests of MCP against `/mcp` of a real server.

use std::{
    path::Path,
    process::{Command, Output},
};

use super::relay::Relay;
use crate::{live_server::TestServer, services::service, support::Sandbox};

/// Scenarios that apply to every server, and all scenarios of the skills extension (SEP-2640). A
/// missing tool is an error that a model can read.
const TESTED_SCENARIOS: [&str; 16] = [
    "server-initialize", "server-session-lifecycle", "ping", "completion-complete", "tools-list",
    "tools-call-error", "server-sse-multiple-streams", "resources-list",
    "sep-2164-resource-not-found", "sep-2640-skills-directory", "sep-2640-skills-enumeration",
    "sep-2640-skills-manifest", "prompts-list", "dns-rebinding-protection", "caching",
    "http-header-validation",
];

/// Features that Savoir neither has nor announces: it sends no log, and files of skills are read
/// again for each request. A client that uses them nevertheless gets the error that the method does
/// not exist.
const NOT_OFFERED: [&str; 3] =
    ["logging-set-level", "resources-subscribe", "resources-unsubscribe"];

/// Scenarios that need tools, prompts or resources with certain names and results.
const NEED_FIXTURES: [&str; 36] = [
    "server-stateless",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "json-schema-2020-12",
    "elicitation-sep1034-defaults",
    "server-sse-polling",
    "elicitation-sep1330-enums",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "http-custom-header-server-validation",
    "input-required-result-basic-elicitation",
    "input-required-result-basic-sampling",
    "input-required-result-basic-list-roots",
    "input-required-result-request-state",
    "input-required-result-multiple-input-requests",
    "input-required-result-multi-round",
    "input-required-result-missing-input-response",
    "input-required-result-non-tool-request",
    "input-required-result-result-type",
    "input-required-result-unsupported-methods",
    "input-required-result-tampered-state",
    "input-required-result-capability-check",
    "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
];

/// An extension that Savoir does not support.
const TASKS_EXTENSION: [&str; 10] = [
    "tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields",
    "tasks-request-state-removal", "tasks-mrtr-input", "tasks-request-headers",
    "tasks-dispatch-and-envelope", "tasks-status-notifications", "tasks-required-task-error",
    "tasks-mrtr-composition",
];

/// The program of the conformance tests, if it is installed.
struct Runner {
    node: String,
    script: String,
}

impl Runner {
    fn new() -> Option<Self> {
        let script = service("SAVOIR_TEST_MCP_CONFORMANCE", "the MCP conformance tests")?;
        Some(Self { node: service("SAVOIR_TEST_NODE", "a new node")?, script })
    }

    fn run(&self, words: &[&str]) -> Output {
        Command::new(Path::new(&self.node).join("node"))
            .arg(&self.script)
            .args(words)
            .env("NO_PROXY", "127.0.0.1")
            .output()
            .expect("node runs")
    }

    /// Runs a scenario; returns whether it passed, and the output.
    fn passes(&self, address: &str, scenario: &str) -> (bool, String) {
        let url = format!("http://{address}/mcp");
        let output = self.run(&["server", "--url", &url, "--scenario", scenario]);
        let printed = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
    }
}

/// Starts a server, and a relay that adds a token, because the program cannot send one.
fn server(sandbox: &Sandbox) -> (TestServer, String) {
    let relay = Relay::new();
    let origin = format!("http://{}", relay.address);
    let server = TestServer::start(sandbox, &["--cors-origin", &origin], None);
    let token = server.log_in(sandbox);
    let address = relay.address.clone();
    relay.forward_to(&server.address, Some(format!("authorization: Bearer {token}")));
    (server, address)
}

#[test]
fn the_official_conformance_tests_pass() {
    let Some(runner) = Runner::new() else { return };
    let sandbox = Sandbox::new();
    // The scenarios read the first skill and one of its folders.
    let (server, address) = server(&sandbox);
    let skill = "---\nname: a-skill\ndescription: Does it. Use when testing.\n---\nDo it.\n";
    sandbox.write("a-skill/SKILL.md", skill);
    sandbox.write("a-skill/references/a.md", "a");
    let imported = sandbox.run(&["import", "a-skill"]);
    assert_eq!(imported.code, 0, "{imported}");
    for scenario in TESTED_SCENARIOS {
        let (passed, printed) = runner.passes(&address, scenario);
        assert!(passed, "{scenario}: {printed}");
        assert!(!scenario.starts_with("sep-2640") || printed.contains("0 warnings"), "{printed}");
    }
    for scenario in NOT_OFFERED {
        let (passed, printed) = runner.passes(&address, scenario);
        assert!(!passed && printed.contains("Error: Failed: "), "{scenario}: {printed}");
    }
    // Without the relay's token, the scenario fails.
    let (passed, printed) = runner.passes(&server.address, "ping");
    assert!(!passed && printed.contains("Authorization header"), "{printed}");
}

#[test]
fn every_conformance_test_is_run_or_left_out_for_a_reason() {
    let Some(runner) = Runner::new() else { return };
    let listed = String::from_utf8(runner.run(&["list", "--server"]).stdout).expect("a text");
    let mut listed: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- ")?.split_whitespace().next())
        .collect();
    let mut known =
        [&TESTED_SCENARIOS[..], &NOT_OFFERED, &NEED_FIXTURES, &TASKS_EXTENSION].concat();
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known);
}
