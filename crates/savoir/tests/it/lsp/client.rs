//! An LSP client that talks to the real program.

use std::{
    collections::VecDeque,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use serde_json::{Value, json};

use crate::support::Sandbox;

/// Capabilities of a client that requests diagnostics.
pub(super) fn pulling() -> Value {
    json!({"textDocument": {"diagnostic": {}}})
}

/// Capabilities of a client that applies every kind of edit.
pub(super) fn with_all_edits() -> Value {
    json!({
        "textDocument": {
            "codeAction": {"dataSupport": true, "resolveSupport": {"properties": ["edit"]}},
        },
        "workspace": {"workspaceEdit": {
            "documentChanges": true,
            "resourceOperations": ["create", "rename", "delete"],
            "changeAnnotationSupport": {},
        }},
    })
}

pub(super) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    root: PathBuf,
    next_id: i64,
    /// Messages of the server that the test has not read yet.
    others: VecDeque<Value>,
    pub(super) initialized: Value,
}

impl Client {
    pub(super) fn spawn(sandbox: &Sandbox) -> Self {
        let mut command = sandbox.command(&["lsp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("savoir lsp starts");
        let output = BufReader::new(child.stdout.take().expect("output"));
        Self {
            input: child.stdin.take(),
            child,
            output,
            root: sandbox.path("").canonicalize().expect("a folder"),
            next_id: 0,
            others: VecDeque::new(),
            initialized: Value::Null,
        }
    }

    pub(super) fn start(sandbox: &Sandbox, capabilities: &Value) -> Self {
        let mut client = Self::spawn(sandbox);
        client.initialize(capabilities, &[""]);
        client
    }

    pub(super) fn initialize(&mut self, capabilities: &Value, folders: &[&str]) {
        let folder = |name: &&str| json!({"uri": self.uri(name), "name": name});
        let folders: Vec<Value> = folders.iter().map(folder).collect();
        let params = json!({
            "processId": null, "rootUri": null, "capabilities": capabilities,
            "workspaceFolders": folders,
        });
        self.initialized = self.request("initialize", &params);
        self.notify("initialized", &json!({}));
    }

    pub(super) fn uri(&self, path: &str) -> String {
        format!("file://{}", self.root.join(path).display()).trim_end_matches('/').to_owned()
    }

    pub(super) fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("an open input");
        input.write_all(bytes).expect("the server reads");
        input.flush().expect("the server reads");
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        let text = message.to_string();
        self.send_bytes(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
    }

    pub(super) fn notify(&mut self, method: &str, params: &Value) {
        self.send(json!({"method": method, "params": params}));
    }

    pub(super) fn send_request(&mut self, method: &str, params: &Value) -> i64 {
        self.next_id += 1;
        self.send(json!({"id": self.next_id, "method": method, "params": params}));
        self.next_id
    }

    fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("output") > 0, "the server ended");
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().expect("a length");
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut content = vec![0; length];
        self.output.read_exact(&mut content).expect("a whole message");
        serde_json::from_slice(&content).expect("JSON")
    }

    /// Waits for the response to a request, a result or an error.
    pub(super) fn answer(&mut self, id: i64) -> Value {
        loop {
            let message = self.read();
            if message["id"] == json!(id) && message.get("method").is_none() {
                return message;
            }
            self.others.push_back(message);
        }
    }

    pub(super) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send_request(method, params);
        let answer = self.answer(id);
        assert_eq!(answer.get("error"), None, "{method}");
        answer["result"].clone()
    }

    pub(super) fn request_error(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send_request(method, params);
        let answer = self.answer(id);
        answer.get("error").unwrap_or_else(|| panic!("{method}: {answer}")).clone()
    }

    /// Waits for the next notification of a method; returns its parameters.
    pub(super) fn wait_for(&mut self, method: &str) -> Value {
        if let Some(at) = self.others.iter().position(|message| message["method"] == method) {
            return self.others.remove(at).map(|message| message["params"].clone()).expect("it");
        }
        loop {
            let message = self.read();
            if message["method"] == method {
                return message["params"].clone();
            }
            self.others.push_back(message);
        }
    }

    pub(super) fn open(&mut self, path: &str) {
        let text = std::fs::read_to_string(self.root.join(path)).expect(path);
        let uri = self.uri(path);
        let item = json!({"uri": uri, "languageId": "markdown", "version": 1, "text": text});
        self.notify("textDocument/didOpen", &json!({"textDocument": item}));
    }

    pub(super) fn change(&mut self, path: &str, version: i32, range: [[u32; 2]; 2], text: &str) {
        let uri = self.uri(path);
        let change = json!({"range": super::range(range), "text": text});
        self.notify(
            "textDocument/didChange",
            &json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]}),
        );
    }

    /// Opens a file and requests its diagnostics.
    pub(super) fn diagnostics(&mut self, path: &str) -> Vec<Value> {
        self.open(path);
        self.pull(path)
    }

    pub(super) fn pull(&mut self, path: &str) -> Vec<Value> {
        let params = json!({"textDocument": {"uri": self.uri(path)}});
        let report = self.request("textDocument/diagnostic", &params);
        report["items"].as_array().expect("items").clone()
    }

    pub(super) fn place(&self, path: &str, [line, character]: [u32; 2]) -> Value {
        json!({
            "textDocument": {"uri": self.uri(path)},
            "position": {"line": line, "character": character},
        })
    }

    pub(super) fn at(&mut self, method: &str, path: &str, position: [u32; 2]) -> Value {
        let params = self.place(path, position);
        self.request(method, &params)
    }

    pub(super) fn references(&mut self, path: &str, position: [u32; 2]) -> Value {
        let mut params = self.place(path, position);
        params["context"] = json!({"includeDeclaration": true});
        self.request("textDocument/references", &params)
    }

    /// Ends the session as the protocol requires, and checks that the program succeeded.
    pub(super) fn end(mut self) {
        self.request("shutdown", &Value::Null);
        self.notify("exit", &Value::Null);
        assert_eq!(self.wait(), 0);
    }

    pub(super) fn wait(&mut self) -> i32 {
        self.input = None;
        self.child.wait().expect("it ends").code().unwrap_or(-1)
    }
}

/// Applies text edits with UTF-16 positions as a client does.
pub(super) fn apply(text: &str, edits: &Value) -> String {
    let offset = |position: &Value| {
        let number = |key: &str| position[key].as_u64().expect("a number") as usize;
        let lines = text.split_inclusive('\n').take(number("line"));
        let start: usize = lines.map(str::len).sum();
        let mut units = 0;
        let inside = text[start..].chars().take_while(|c| {
            units += c.len_utf16();
            units <= number("character")
        });
        start + inside.map(char::len_utf8).sum::<usize>()
    };
    let mut edits: Vec<(usize, usize, &str)> = edits
        .as_array()
        .expect("edits")
        .iter()
        .map(|edit| {
            let (start, end) = (&edit["range"]["start"], &edit["range"]["end"]);
            (offset(start), offset(end), edit["newText"].as_str().expect("a text"))
        })
        .collect();
    edits.sort_unstable_by_key(|(start, ..)| std::cmp::Reverse(*start));
    let mut result = text.to_owned();
    for (start, end, new) in edits {
        result.replace_range(start..end, new);
    }
    result
}
