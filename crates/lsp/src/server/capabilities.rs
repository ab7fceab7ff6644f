//! Lists the capabilities of the server.

use serde_json::{Value, json};

use crate::client::Client;

/// The kind of the action that applies all safe fixes.
pub(crate) const FIX_ALL: &str = "source.fixAll.savoir";

pub(super) fn new(client: &Client) -> Value {
    const INCREMENTAL: u8 = 2;
    let mut capabilities = json!({
        "positionEncoding": client.encoding.kind(),
        "textDocumentSync": {
            "openClose": true, "change": INCREMENTAL, "save": {"includeText": false},
        },
        "diagnosticProvider": {
            "identifier": "savoir", "interFileDependencies": true, "workspaceDiagnostics": false,
        },
        "hoverProvider": true,
        "completionProvider": {
            "triggerCharacters": [":", " ", "-", "$", "{", "(", "/", "\"", "`"],
        },
        "definitionProvider": true,
        "referencesProvider": true,
        "documentSymbolProvider": true,
        "documentLinkProvider": {"resolveProvider": false},
        "documentFormattingProvider": true,
        "renameProvider": {"prepareProvider": true},
        "codeLensProvider": {"resolveProvider": false},
        "inlayHintProvider": {"resolveProvider": false},
        "codeActionProvider": {
            "codeActionKinds": ["quickfix", FIX_ALL, "refactor.rewrite"],
            "resolveProvider": client.resolves_code_actions,
        },
        "workspace": {
            "workspaceFolders": {"supported": true, "changeNotifications": true},
        },
    });
    if client.pulls_diagnostics {
        return capabilities;
    }
    // A client that does not request diagnostics gets them pushed.
    if let Some(capabilities) = capabilities.as_object_mut() {
        capabilities.remove("diagnosticProvider");
    }
    capabilities
}

/// The files whose changes on disk affect the diagnostics.
pub(super) fn file_watchers() -> Value {
    let patterns = [
        "**/{SKILL,skill,Skill}.md",
        "**/SKILL.MD",
        "**/savoir.toml",
        "**/tools.py",
        "**/{references,scripts,assets,agents}/**",
    ];
    let watchers: Vec<Value> =
        patterns.iter().map(|pattern| json!({"globPattern": pattern})).collect();
    json!({"registrations": [{
        "id": "savoir-files",
        "method": "workspace/didChangeWatchedFiles",
        "registerOptions": {"watchers": watchers},
    }]})
}
