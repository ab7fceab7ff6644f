//! Reads the capabilities of the client. Invalid values are ignored, so that a client with one
//! mistake still works.

use std::path::PathBuf;

use lsp_types::PositionEncodingKind;
use serde_json::Value;
use url::Url;

use crate::position::Encoding;

#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a capability of the protocol")]
pub(crate) struct Client {
    pub(crate) encoding: Encoding,
    /// Whether the client requests diagnostics, so that they are not pushed.
    pub(crate) pulls_diagnostics: bool,
    /// Whether the client requests diagnostics again when the server asks for it.
    pub(crate) refreshes_diagnostics: bool,
    pub(crate) refreshes_hints: bool,
    /// Whether the client requests the edits of a code action when the user chooses it.
    pub(crate) resolves_code_actions: bool,
    /// Whether the client applies versioned edits of several files.
    pub(crate) has_document_changes: bool,
    pub(crate) can_create_files: bool,
    pub(crate) can_rename_files: bool,
    /// Whether the client asks the user about edits that need confirmation.
    pub(crate) confirms_changes: bool,
    pub(crate) registers_file_watchers: bool,
    /// Whether the client shows code lenses with the commands of the editor extension.
    pub(crate) shows_lenses: bool,
    pub(crate) folders: Vec<PathBuf>,
}

impl Client {
    /// Reads the parameters of `initialize`.
    pub(crate) fn new(params: &Value) -> Self {
        let at = |pointer: &str| params.pointer(&format!("/capabilities/{pointer}"));
        let is = |pointer: &str| at(pointer).and_then(Value::as_bool).unwrap_or(false);
        let lists = |pointer: &str, word: &str| {
            let list = at(pointer).and_then(Value::as_array);
            list.is_some_and(|list| list.iter().any(|value| value == word))
        };
        let encodings: Vec<PositionEncodingKind> = at("general/positionEncodings")
            .and_then(|list| serde_json::from_value(list.clone()).ok())
            .unwrap_or_default();
        Self {
            encoding: Encoding::choose(&encodings),
            pulls_diagnostics: at("textDocument/diagnostic").is_some_and(Value::is_object),
            refreshes_diagnostics: is("workspace/diagnostics/refreshSupport"),
            refreshes_hints: is("workspace/inlayHint/refreshSupport"),
            resolves_code_actions: is("textDocument/codeAction/dataSupport")
                && lists("textDocument/codeAction/resolveSupport/properties", "edit"),
            has_document_changes: is("workspace/workspaceEdit/documentChanges"),
            can_create_files: lists("workspace/workspaceEdit/resourceOperations", "create"),
            can_rename_files: lists("workspace/workspaceEdit/resourceOperations", "rename"),
            confirms_changes: at("workspace/workspaceEdit/changeAnnotationSupport")
                .is_some_and(Value::is_object),
            registers_file_watchers: is("workspace/didChangeWatchedFiles/dynamicRegistration"),
            shows_lenses: params.pointer("/initializationOptions/codeLens")
                != Some(&Value::Bool(false)),
            folders: folders(params),
        }
    }
}

/// The workspace folders, else the root of older clients.
fn folders(params: &Value) -> Vec<PathBuf> {
    let path = |value: &Value| path_of(&Url::parse(value.as_str()?).ok()?);
    let list = params.get("workspaceFolders").and_then(Value::as_array);
    if let Some(list) = list {
        return list.iter().filter_map(|folder| path(folder.get("uri")?)).collect();
    }
    let root = params.get("rootUri").and_then(path);
    let root_path = || params.get("rootPath")?.as_str().map(PathBuf::from);
    root.or_else(root_path).into_iter().collect()
}

/// The path of a `file:` URL.
pub(crate) fn path_of(uri: &Url) -> Option<PathBuf> {
    (uri.scheme() == "file").then(|| uri.to_file_path().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn odd_capabilities_are_ignored() {
        for params in [
            json!(null),
            json!([]),
            json!({"capabilities": 3, "workspaceFolders": "x"}),
            json!({"capabilities": {"general": {"positionEncodings": "utf-8"}}, "rootUri": 3}),
        ] {
            let client = Client::new(&params);
            assert_eq!(client.encoding, Encoding::Utf16);
            assert!(client.folders.is_empty());
        }
    }

    #[test]
    fn the_root_of_older_clients_is_a_folder() {
        let client = Client::new(&json!({"rootUri": "file:///a%20b", "capabilities": {}}));
        assert_eq!(client.folders, [PathBuf::from("/a b")]);
    }
}
