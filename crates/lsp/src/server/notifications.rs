//! Handles notifications about changes of files, folders and settings.

use lsp_types::{
    DidChangeTextDocumentParams, DidChangeWatchedFilesParams, DidChangeWorkspaceFoldersParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, DidSaveTextDocumentParams,
};
use savoir_package::manifest;
use savoir_skill::folder::is_skill_file;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{path::Path, sync::Arc};
use url::Url;

use crate::{client::path_of, file_kind::FileKind, open_file::OpenFile, state::State};

/// Files whose diagnostics changed.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) outdated: Option<Url>,
    pub(super) closed: Option<Url>,
    pub(super) all_outdated: bool,
}

impl Effects {
    fn one(uri: Url) -> Self {
        Self { outdated: Some(uri), ..Self::default() }
    }

    fn all() -> Self {
        Self { all_outdated: true, ..Self::default() }
    }
}

/// Handles a notification, or returns why it is invalid.
pub(super) fn handle(state: &mut State, method: &str, params: Value) -> Result<Effects, String> {
    match method {
        "textDocument/didOpen" => Ok(open(state, parse(params)?)),
        "textDocument/didChange" => change(state, parse(params)?),
        "textDocument/didClose" => {
            let DidCloseTextDocumentParams { text_document } = parse(params)?;
            state.files.remove(&text_document.uri);
            Ok(Effects { closed: Some(text_document.uri), ..Effects::default() })
        }
        "textDocument/didSave" => {
            let DidSaveTextDocumentParams { text_document, .. } = parse(params)?;
            Ok(changed_on_disk(state, &[text_document.uri]))
        }
        "workspace/didChangeWatchedFiles" => {
            let DidChangeWatchedFilesParams { changes } = parse(params)?;
            let uris: Vec<Url> = changes.into_iter().map(|change| change.uri).collect();
            Ok(changed_on_disk(state, &uris))
        }
        "workspace/didChangeWorkspaceFolders" => {
            change_folders(state, &parse(params)?);
            Ok(Effects::all())
        }
        "workspace/didChangeConfiguration" => {
            state.clear_settings();
            state.needs_refresh = true;
            Ok(Effects::all())
        }
        // Other notifications, such as `$/setTrace`, have no effect.
        _ => Ok(Effects::default()),
    }
}

fn parse<T: DeserializeOwned>(params: Value) -> Result<T, String> {
    serde_json::from_value(params).map_err(|error| format!("the parameters are wrong: {error}"))
}

fn open(state: &mut State, params: DidOpenTextDocumentParams) -> Effects {
    let item = params.text_document;
    let language = item.language_id.to_string();
    let encoding = state.client.encoding;
    let file = OpenFile::new(item.uri.clone(), &language, item.version, item.text, encoding);
    let is_known = file.kind != FileKind::Other;
    state.files.insert(item.uri.clone(), file);
    if is_known { Effects::one(item.uri) } else { Effects::default() }
}

fn change(state: &mut State, params: DidChangeTextDocumentParams) -> Result<Effects, String> {
    let uri = params.text_document.text_document_identifier.uri;
    let file = state.files.get_mut(&uri).ok_or_else(|| format!("{uri} is not open"))?;
    file.version = params.text_document.version;
    file.apply(params.content_changes);
    let is_known = file.kind != FileKind::Other;
    Ok(if is_known { Effects::one(uri) } else { Effects::default() })
}

/// Updates data that was read from disk.
fn changed_on_disk(state: &mut State, uris: &[Url]) -> Effects {
    let paths: Vec<_> = uris.iter().filter_map(path_of).collect();
    let name = |path: &Path| {
        path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned()
    };
    for path in paths.iter().filter(|path| is_skill_file(&name(path))) {
        state.index.update(path);
    }
    if paths.iter().any(|path| name(path) == manifest::FILE) {
        state.clear_settings();
        state.needs_refresh = true;
        return Effects::all();
    }
    for file in state.files.values_mut() {
        let folder = file.path.as_deref().and_then(Path::parent);
        if folder.is_some_and(|folder| paths.iter().any(|path| path.starts_with(folder))) {
            file.forget_folder();
        }
    }
    state.needs_refresh = true;
    Effects::all()
}

fn change_folders(state: &mut State, params: &DidChangeWorkspaceFoldersParams) {
    let paths = |folders: &[lsp_types::WorkspaceFolder]| -> Vec<_> {
        folders.iter().filter_map(|folder| path_of(&folder.uri)).collect()
    };
    let (added, removed) = (paths(&params.event.added), paths(&params.event.removed));
    state.folders.retain(|folder| !removed.contains(folder));
    for folder in added {
        if !state.folders.contains(&folder) {
            state.folders.push(folder);
        }
    }
    state.clear_settings();
    state.needs_refresh = true;
    state.index.start(Arc::clone(&state.environment), state.folders.clone());
}
