//! A session of the language server with any text, edits and requests: every request is answered,
//! and never with the failure of the server itself.
#![no_main]

use std::{
    io::Cursor,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use libfuzzer_sys::fuzz_target;
use savoir_lsp::{Environment, FileProblem, ListedSkill, Listing, serve};
use savoir_skill::{Folder, check::Options};
use serde_json::{Value, json};

/// Nothing is around the server: no settings, no other skills.
struct Nowhere;

impl Environment for Nowhere {
    fn check_options(&self, _: &Path) -> Result<Options, String> {
        Ok(Options::default())
    }

    fn find_skills(&self, _: &Path, _: &mut dyn FnMut(PathBuf) -> bool) {}

    fn check_settings(&self, _: &Path, _: &str) -> Vec<FileProblem> {
        Vec::new()
    }

    fn check_workflow(&self, text: &str) -> Vec<FileProblem> {
        problem(0..text.len())
    }

    fn check_evals(&self, _: &Folder, _: &str, _: &str) -> Vec<FileProblem> {
        Vec::new()
    }

    fn listings(&self, skill: &ListedSkill<'_>) -> Vec<Listing> {
        let description = skill.text.chars().take(40).collect();
        vec![Listing { agent: "An agent".into(), description, is_cut: true, hidden: None }]
    }

    fn models(&self) -> Vec<String> {
        vec!["local:small".into()]
    }
}

fn problem(span: Range<usize>) -> Vec<FileProblem> {
    vec![FileProblem { span, message: "a problem".into(), hint: None, is_error: true }]
}

/// The first byte of an input chooses the file.
const FILES: [&str; 8] = [
    "/nowhere/demo/SKILL.md",
    "/nowhere/demo/SKILL.md",
    "/nowhere/.claude/skills/demo/SKILL.md",
    "/nowhere/skills/demo/SKILL.md",
    "/nowhere/AGENT.yaml",
    "/nowhere/savoir.toml",
    "/nowhere/workflows/w.json",
    "/nowhere/demo/evals/evals.json",
];

/// What edits insert: pieces that change how the rest is read.
const PIECES: [&str; 32] = [
    "", "a", "\n", "\r\n", "\r", "é", "😀", "e\u{301}", "\u{feff}", "\u{202e}", "---\n", "name: ",
    "description: x: y\n", "  - [", "{", "\"", "'", "|\n", "\t", "```\n", "](a.md)", "{{x}}",
    "$ARGUMENTS", "# T\n", "<!--", "allowed-tools: Bash(", "inputs:\n  - name: x\n",
    "skills:\n  - ", "[check]\nselect = [\"", "\"nodes\": [", "metadata:\n  openclaw:\n    ",
    "&a *a",
];

const REQUESTS: [&str; 14] = [
    "textDocument/diagnostic", "textDocument/hover", "textDocument/completion",
    "textDocument/definition", "textDocument/references", "textDocument/documentSymbol",
    "textDocument/documentLink", "textDocument/formatting", "textDocument/prepareRename",
    "textDocument/rename", "textDocument/codeLens", "textDocument/inlayHint",
    "textDocument/codeAction", "textDocument/completion",
];

/// The bytes of an input, read from the start; zeros follow them.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn position(&mut self) -> Value {
        let (line, character) = (self.next(), self.next());
        // Most positions are inside a small file, some are far outside.
        let far = |n: u8| if n == u8::MAX { u32::MAX } else { u32::from(n) };
        json!({"line": far(line) % 97, "character": far(character)})
    }

    fn range(&mut self) -> Value {
        json!({"start": self.position(), "end": self.position()})
    }
}

/// The messages of a client.
#[derive(Default)]
struct Session {
    sent: Vec<u8>,
    requests: usize,
}

impl Session {
    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        let text = message.to_string();
        self.sent.extend(format!("Content-Length: {}\r\n\r\n{text}", text.len()).into_bytes());
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"method": method, "params": params}));
    }

    fn request(&mut self, method: &str, params: Value) {
        self.requests += 1;
        self.send(json!({"id": self.requests, "method": method, "params": params}));
    }

    /// An edit, or a request about a place.
    fn act(&mut self, uri: &str, version: usize, bytes: &mut Bytes<'_>) {
        let document = json!({"uri": uri});
        let choice = bytes.next();
        if choice >= 96 {
            let text = match PIECES.get(usize::from(choice) % 40) {
                Some(piece) => (*piece).to_owned(),
                None => char::from(choice).to_string(),
            };
            let change = json!({"range": bytes.range(), "text": text});
            let document = json!({"uri": uri, "version": version});
            let params = json!({"textDocument": document, "contentChanges": [change]});
            return self.notify("textDocument/didChange", params);
        }
        let method = REQUESTS[usize::from(choice) % REQUESTS.len()];
        let mut params = json!({"textDocument": document, "position": bytes.position()});
        params["range"] = bytes.range();
        params["newName"] = PIECES[usize::from(choice) % PIECES.len()].into();
        params["options"] = json!({"tabSize": 2, "insertSpaces": true});
        params["context"] =
            json!({"triggerKind": 1, "includeDeclaration": true, "diagnostics": []});
        self.request(method, params);
    }
}

fuzz_target!(|bytes: &[u8]| {
    // A header, the actions, and the text at the end, so that seeds are plain files.
    let Some((&[file, mode, count], rest)) = bytes.split_first_chunk() else { return };
    let (actions, text) = rest.split_at(rest.len().min(usize::from(count)));
    let Ok(text) = std::str::from_utf8(text) else { return };
    let uri = format!("file://{}", FILES[usize::from(file) % FILES.len()]);
    let encodings = [json!(null), json!(["utf-8"]), json!(["utf-16"]), json!(["utf-32"])];
    let mut capabilities = json!({
        "general": {"positionEncodings": encodings[usize::from(mode) % 4]},
        "textDocument": {"codeAction": {"dataSupport": true, "resolveSupport": {"properties": ["edit"]}}},
        "workspace": {"workspaceEdit": {
            "documentChanges": true, "resourceOperations": ["create", "rename"],
            "changeAnnotationSupport": {},
        }},
    });
    if mode & 4 != 0 {
        capabilities["textDocument"]["diagnostic"] = json!({});
    }

    let mut session = Session::default();
    session.request("initialize", json!({"capabilities": capabilities, "workspaceFolders": []}));
    session.notify("initialized", json!({}));
    let item = json!({"uri": uri, "languageId": "markdown", "version": 1, "text": text});
    session.notify("textDocument/didOpen", json!({"textDocument": item}));
    let mut bytes = Bytes(actions);
    let mut version = 2;
    while !bytes.0.is_empty() {
        session.act(&uri, version, &mut bytes);
        version += 1;
    }
    session.request("textDocument/diagnostic", json!({"textDocument": {"uri": uri}}));
    session.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}}));
    session.request("shutdown", Value::Null);
    session.notify("exit", Value::Null);

    let mut output = Vec::new();
    let ending =
        serve(Cursor::new(session.sent), &mut output, Arc::new(Nowhere)).expect("a session");
    assert_eq!(ending, savoir_lsp::Ending::Shutdown);
    let output = String::from_utf8(output).expect("text");
    assert!(!output.contains("this is a defect of savoir"), "{output}");
    for id in 1..=session.requests {
        assert!(output.contains(&format!("\"id\":{id},")), "request {id} has no answer: {output}");
    }
});
