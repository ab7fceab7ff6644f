//! Code actions: fixes of findings, all safe fixes at once, and conversion to other systems.

use std::collections::HashMap;

use lsp_types::{
    CodeAction, CodeActionContext, CodeActionKind, CodeActionResponse, CreateFile,
    CreateFileOptions, DocumentChange, Edit as DocumentEdit,
    OptionalVersionedTextDocumentIdentifier, Range, TextDocumentEdit, TextDocumentIdentifier,
    TextEdit, WorkspaceEdit,
};
use savoir_lint::{Diagnostic, Safety, Span, visible};
use savoir_skill::{Dialect, State as ReadingState, check::CheckedSkill, convert};
use serde_json::{Value, json};
use url::Url;

use crate::{
    diagnostics, failure::Failure, formatting, open_file::OpenFile, server::FIX_ALL, state::State,
};

pub(crate) fn of(
    state: &State,
    file: &OpenFile,
    range: Range,
    context: &CodeActionContext,
) -> Vec<CodeActionResponse> {
    let Some(checked) = state.checked(file) else { return Vec::new() };
    let span = file.span(range);
    let wants = |kind: &str| {
        context
            .only
            .as_ref()
            .is_none_or(|only| only.iter().any(|wanted| contains(wanted.as_str(), kind)))
    };
    let mut actions = Vec::new();
    if wants("quickfix") {
        actions.extend(fixes(state, file, &checked, span));
    }
    if wants(FIX_ALL) {
        actions.extend(fix_all(state, file));
    }
    // Conversions are offered in the frontmatter, so that the list stays short in the text.
    let in_head = span.start < checked.reading.document.body_span().start;
    let is_asked = context.only.as_ref().is_some_and(|_| wants("refactor.rewrite"));
    if wants("refactor.rewrite") && (in_head || is_asked) {
        actions.extend(conversions(state, file, &checked));
    }
    actions.into_iter().map(CodeActionResponse::CodeAction).collect()
}

/// Whether a kind is the wanted one or below it.
fn contains(wanted: &str, kind: &str) -> bool {
    wanted.is_empty()
        || kind == wanted
        || kind.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('.'))
}

/// One action per finding at the selection.
fn fixes<'a>(
    state: &'a State,
    file: &'a OpenFile,
    checked: &'a CheckedSkill,
    span: Span,
) -> impl Iterator<Item = CodeAction> + 'a {
    let at =
        move |found: &&Diagnostic| found.span.start <= span.end && span.start <= found.span.end;
    checked.diagnostics.iter().filter(at).filter_map(move |found| {
        let fix = found.fix.as_ref().filter(|fix| !fix.edits.is_empty())?;
        let edits = fix.edits.iter().map(|edit| file.text_edit(edit)).collect();
        let safe = fix.safety == Safety::Safe;
        let about = found.help.as_deref().unwrap_or(&found.message);
        let review = if safe { "" } else { " (review the result)" };
        Some(CodeAction {
            title: format!("Fix {}: {}{review}", found.code, visible(about)),
            kind: Some(CodeActionKind::QuickFix),
            diagnostics: Some(vec![diagnostics::of_finding(file, found)]),
            is_preferred: Some(safe),
            edit: Some(edit_of(state, file, edits)),
            ..CodeAction::default()
        })
    })
}

fn fix_all(state: &State, file: &OpenFile) -> Option<CodeAction> {
    let edits = formatting::edits(state, file);
    (!edits.is_empty()).then(|| CodeAction {
        title: "Apply all safe fixes".to_owned(),
        kind: Some(CodeActionKind::new(FIX_ALL)),
        edit: Some(edit_of(state, file, edits)),
        ..CodeAction::default()
    })
}

/// Edits of one file. A version lets the client reject edits of an older text.
fn edit_of(state: &State, file: &OpenFile, edits: Vec<TextEdit>) -> WorkspaceEdit {
    if !state.client.has_document_changes {
        let changes = Some(HashMap::from([(file.uri.clone(), edits)]));
        return WorkspaceEdit { changes, ..WorkspaceEdit::default() };
    }
    let change = document_edit(&file.uri, Some(file.version), edits);
    WorkspaceEdit { document_changes: Some(vec![change]), ..WorkspaceEdit::default() }
}

pub(crate) fn document_edit(
    uri: &Url,
    version: Option<i32>,
    edits: Vec<TextEdit>,
) -> DocumentChange {
    DocumentChange::TextDocumentEdit(TextDocumentEdit {
        text_document: OptionalVersionedTextDocumentIdentifier {
            version,
            text_document_identifier: TextDocumentIdentifier { uri: uri.clone() },
        },
        edits: edits.into_iter().map(DocumentEdit::TextEdit).collect(),
    })
}

/// "Convert to …" for every other system.
fn conversions(state: &State, file: &OpenFile, checked: &CheckedSkill) -> Vec<CodeAction> {
    let reading = &checked.reading;
    if reading.document.state() == ReadingState::Unreadable {
        return Vec::new();
    }
    let targets = Dialect::ALL
        .into_iter()
        .filter(|dialect| *dialect != reading.detection.dialect && *dialect != Dialect::PROSE);
    let action = |target: Dialect| {
        let mut action = CodeAction {
            title: format!("Convert to {}", target.title()),
            kind: Some(CodeActionKind::RefactorRewrite),
            ..CodeAction::default()
        };
        if state.client.resolves_code_actions {
            action.data = Some(json!({"uri": file.uri, "convert": target.id()}));
        } else {
            action.edit = conversion(state, file, target).ok();
            action.edit.as_ref()?;
        }
        Some(action)
    };
    targets.filter_map(action).collect()
}

/// Computes the edits of an action that the user chose.
pub(crate) fn resolve(state: &State, mut action: CodeAction) -> Result<CodeAction, Failure> {
    let data = action.data.clone().unwrap_or_default();
    let text = |key: &str| data.get(key).and_then(Value::as_str);
    let (Some(uri), Some(target)) = (text("uri"), text("convert")) else { return Ok(action) };
    let uri = Url::parse(uri).map_err(|error| Failure::refused(format!("{uri}: {error}")))?;
    let target: Dialect = target.parse().map_err(|error| Failure::refused(format!("{error}")))?;
    action.edit = Some(conversion(state, state.file(&uri)?, target)?);
    Ok(action)
}

/// The edits that convert a skill in place, and create the other files that the target needs.
fn conversion(state: &State, file: &OpenFile, target: Dialect) -> Result<WorkspaceEdit, Failure> {
    let checked = state.checked(file).ok_or_else(|| Failure::refused("the file is too large"))?;
    let folder = file.folder();
    let converted =
        convert::convert(&checked.reading, folder.as_deref(), target).map_err(|error| {
            let error = visible(&error.to_string()).into_owned();
            Failure::refused(format!(
                "the skill cannot be converted to {}: {error}",
                target.title()
            ))
        })?;
    let mut files = converted.files.iter();
    let text = files.next().map_or("", |first| first.text.as_str());
    let edits = formatting::differences(file.text(), text);
    let edits: Vec<TextEdit> = edits.iter().map(|edit| file.text_edit(edit)).collect();
    let mut edit = edit_of(state, file, edits);
    let root = file.path.as_deref().and_then(std::path::Path::parent);
    for other in files {
        let (Some(root), Some(changes), true) =
            (root, &mut edit.document_changes, state.client.can_create_files)
        else {
            let message = format!(
                "{} needs the file {}, which this editor cannot create; use: savoir convert --to {target} -o DIR",
                target.title(),
                other.path
            );
            return Err(Failure::refused(message));
        };
        let path = root.join(&other.path);
        if path.exists() {
            continue;
        }
        let uri = Url::from_file_path(&path)
            .map_err(|()| Failure::refused(format!("{} has no address", path.display())))?;
        let options = CreateFileOptions { overwrite: Some(false), ignore_if_exists: Some(true) };
        changes.push(DocumentChange::CreateFile(CreateFile {
            uri: uri.clone(),
            options: Some(options),
            annotation_id: None,
        }));
        let whole = TextEdit { range: Range::default(), new_text: other.text.clone() };
        changes.push(document_edit(&uri, None, vec![whole]));
    }
    Ok(edit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_contain_those_below() {
        assert!(contains("source.fixAll", FIX_ALL));
        assert!(contains("", "quickfix"));
        assert!(!contains("source.fix", FIX_ALL));
    }
}
