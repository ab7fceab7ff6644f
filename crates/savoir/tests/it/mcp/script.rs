//! Starts a third-party scripted model with a script for one test.

use std::{
    env,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use super::relay::{Relay, RelayedRequests};
use crate::{services::service, support::Sandbox};

/// The user's message to the agent.
pub(super) const PROMPT: &str = "Do as the skill says.";
/// The last answer of the model.
pub(super) const LAST_WORDS: &str = "All of it was done.";

/// A scripted model that makes its calls in order, whatever the results are.
pub(super) struct Model {
    child: Child,
    pub(super) url: String,
    relayed_requests: RelayedRequests,
}

impl Model {
    /// Starts a model for an agent that sends `before` answers of its own before the first user
    /// message.
    pub(super) fn new(sandbox: &Sandbox, before: usize, calls: &[(String, Value)]) -> Option<Self> {
        let program = service("SAVOIR_TEST_AIMOCK_PROGRAM", "a scripted model")?;
        let turn = |turn: usize, response: Value| json!({"match": {"userMessage": PROMPT, "turnIndex": before + turn}, "response": response});
        let mut turns: Vec<Value> = Vec::new();
        for (place, (name, arguments)) in calls.iter().enumerate() {
            turns.push(turn(place, json!({"toolCalls": [{"name": name, "arguments": arguments}]})));
        }
        turns.push(turn(calls.len(), json!({"content": LAST_WORDS})));
        let script = sandbox.write("script.json", json!({"fixtures": turns}).to_string());
        let mut child = Command::new("node")
            .arg(program)
            .args(["--host", "127.0.0.1", "--port", "0", "--fixtures"])
            .arg(script)
            .env("AIMOCK_STRICT_TURN_INDEX", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node runs");
        let output = BufReader::new(child.stdout.take().expect("an output"));
        let mut lines = output.lines().map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.split_once("http://")?.1.trim().to_owned()));
        // The log must be read, because a full pipe would block the program.
        std::thread::spawn(move || lines.for_each(drop));
        let relay = Relay::new();
        let url = format!("http://{}", relay.address);
        let relayed_requests = relay.forward_to(&address.expect("an address"), None);
        Some(Self { child, url, relayed_requests })
    }

    /// All requests of the agent, oldest first, including those besides the conversation, for
    /// example for a title.
    pub(super) fn questions(&self) -> Vec<String> {
        self.relayed_requests.all().iter().map(Value::to_string).collect()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The `PATH` for programs, with a newer Node first if there is one.
pub(super) fn programs() -> String {
    let usual = env::var("PATH").expect("a path");
    match env::var("SAVOIR_TEST_NODE") {
        Ok(node) => format!("{node}:{usual}"),
        Err(_) => usual,
    }
}
