//! Tests `savoir mcp` with a JSON-RPC [`Client`], which sends valid and invalid messages.

mod changing_skills;
mod conformance;
mod converted;
mod install;
mod people;
mod protocol_errors;
mod real_agents;
mod real_clients;
mod relay;
mod running;
mod script;
mod sharing_skills;
mod usable_skills;

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{Sandbox, copy, repository};

/// How long a response may take on a busy machine.
const REPLY_TIMEOUT: Duration = Duration::from_mins(1);

/// A folder `skills` with some of the examples, a home and a working folder.
fn sandbox_with_examples(examples: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    for folder in ["home", "work", "skills"] {
        fs::create_dir(sandbox.path(folder)).expect("a folder");
    }
    for name in examples {
        copy(&repository().join("examples").join(name), &sandbox.path("skills").join(name));
    }
    sandbox
}

/// An MCP client that talks to `savoir mcp`.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// Notifications and requests that were received but not read yet.
    notices: Vec<Value>,
    next: i64,
}

impl Client {
    /// Starts a client without the handshake.
    fn start_uninitialized(sandbox: &Sandbox, args: &[&str]) -> Self {
        let mut command = sandbox.command(&[&["mcp"], args].concat());
        command.current_dir(sandbox.path("work")).env("HOME", sandbox.path("home"));
        // Programs in this folder take precedence over those of the system.
        let own = sandbox.path("bin");
        if own.is_dir() {
            let usual = env::var_os("PATH").unwrap_or_default();
            let all = [own].into_iter().chain(env::split_paths(&usual));
            command.env("PATH", env::join_paths(all).expect("folders"));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("savoir runs");
        let output = BufReader::new(child.stdout.take().expect("an output"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).expect("every line is JSON");
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, lines, notices: Vec::new(), next: 0 }
    }

    /// Starts a client with the handshake.
    fn with(sandbox: &Sandbox, args: &[&str], capabilities: &Value) -> Self {
        let mut client = Self::start_uninitialized(sandbox, args);
        let begun = client.ask(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25", "capabilities": capabilities,
                "clientInfo": {"name": "tests", "version": "1"},
            }),
        );
        assert_eq!(begun["result"]["serverInfo"]["name"], "savoir", "{begun}");
        client.write_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client
    }

    fn new(sandbox: &Sandbox) -> Self {
        Self::with(sandbox, &["../skills"], &json!({}))
    }

    /// Writes a raw line.
    fn write_line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("an open input");
        writeln!(input, "{line}").expect("a line is written");
    }

    /// Reads the next message.
    fn read_message(&mut self) -> Value {
        self.lines.recv_timeout(REPLY_TIMEOUT).expect("an answer")
    }

    /// Sends a request without waiting for its response.
    fn send(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        let (id, params) = (self.next, params);
        self.write_line(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        id
    }

    /// Sends a request and waits for its response.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Waits for the response to a request; responses may arrive in any order.
    fn answer(&mut self, id: i64) -> Value {
        let is_it = |heard: &Value| heard["id"] == id && heard.get("method").is_none();
        if let Some(place) = self.notices.iter().position(is_it) {
            return self.notices.remove(place);
        }
        loop {
            let heard = self.read_message();
            if is_it(&heard) {
                return heard;
            }
            self.notices.push(heard);
        }
    }

    /// Calls a tool; returns the result.
    fn call(&mut self, name: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": name, "arguments": arguments}));
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// The names of the listed tools.
    fn tools(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().expect("tools");
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// Closes the input; returns the exit code.
    fn end(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().expect("it ends").code().unwrap_or(-1)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The error code of a failed tool call.
fn code(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    result["structuredContent"]["error"]["code"].as_str().unwrap_or_default()
}
