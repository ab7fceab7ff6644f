//! Answers requests.

use lsp_server::ErrorCode;
use lsp_types::{
    CodeActionRequest, CodeActionResolveRequest, CodeLensRequest, CompletionRequest,
    CompletionResponse, Definition, DefinitionRequest, DefinitionResponse,
    DocumentDiagnosticReport, DocumentDiagnosticRequest, DocumentFormattingRequest,
    DocumentLinkRequest, DocumentSymbolRequest, DocumentSymbolResponse,
    FullDocumentDiagnosticReport, HoverRequest, InlayHintRequest, LspRequestMethod, Position,
    PrepareRenameRequest, ReferencesRequest, RelatedFullDocumentDiagnosticReport, RenameRequest,
    Request, TextDocumentPositionParams,
};
use serde_json::Value;

use crate::{
    actions, completion, diagnostics, failure::Failure, formatting, hover, inlay_hints, lenses,
    navigation, open_file::OpenFile, rename, state::State, symbols,
};

/// Answers one request.
pub(super) fn answer(state: &State, method: &str, params: Value) -> Result<Value, Failure> {
    use LspRequestMethod as M;
    match LspRequestMethod::from(method) {
        M::TextDocumentDiagnostic => call::<DocumentDiagnosticRequest>(params, |params| {
            Ok(report(diagnostics::of(state, state.file(&params.text_document.uri)?)))
        }),
        M::TextDocumentHover => call::<HoverRequest>(params, |params| {
            let (file, position) = file_and_position(state, &params.text_document_position_params)?;
            Ok(hover::at(state, file, position))
        }),
        M::TextDocumentCompletion => call::<CompletionRequest>(params, |params| {
            let (file, position) = file_and_position(state, &params.text_document_position_params)?;
            let items = completion::at(state, file, position);
            Ok(Some(CompletionResponse::CompletionItemList(items)))
        }),
        M::TextDocumentDefinition => call::<DefinitionRequest>(params, |params| {
            let (file, position) = file_and_position(state, &params.text_document_position_params)?;
            let locations = navigation::definition(state, file, position);
            Ok(Some(DefinitionResponse::Definition(Definition::LocationList(locations))))
        }),
        M::TextDocumentReferences => call::<ReferencesRequest>(params, |params| {
            let (file, position) = file_and_position(state, &params.text_document_position_params)?;
            let with_declaration = params.context.include_declaration;
            Ok(Some(navigation::references(state, file, position, with_declaration)))
        }),
        M::TextDocumentDocumentSymbol => call::<DocumentSymbolRequest>(params, |params| {
            let symbols = symbols::of(state, state.file(&params.text_document.uri)?);
            Ok(Some(DocumentSymbolResponse::DocumentSymbolList(symbols)))
        }),
        M::TextDocumentDocumentLink => call::<DocumentLinkRequest>(params, |params| {
            Ok(Some(navigation::links(state, state.file(&params.text_document.uri)?)))
        }),
        M::TextDocumentFormatting => call::<DocumentFormattingRequest>(params, |params| {
            Ok(Some(formatting::edits(state, state.file(&params.text_document.uri)?)))
        }),
        M::TextDocumentPrepareRename => call::<PrepareRenameRequest>(params, |params| {
            let (file, position) = file_and_position(state, &params.text_document_position_params)?;
            Ok(rename::prepare(state, file, position))
        }),
        M::TextDocumentRename => call::<RenameRequest>(params, |params| {
            let (file, position) = file_and_position(state, &params.text_document_position_params)?;
            rename::rename(state, file, position, &params.new_name).map(Some)
        }),
        M::TextDocumentCodeLens => call::<CodeLensRequest>(params, |params| {
            Ok(Some(lenses::of(state, state.file(&params.text_document.uri)?)))
        }),
        M::TextDocumentInlayHint => call::<InlayHintRequest>(params, |params| {
            let file = state.file(&params.text_document.uri)?;
            Ok(Some(inlay_hints::of(state, file, file.span(params.range))))
        }),
        M::TextDocumentCodeAction => call::<CodeActionRequest>(params, |params| {
            let file = state.file(&params.text_document.uri)?;
            Ok(Some(actions::of(state, file, params.range, &params.context)))
        }),
        M::CodeActionResolve => {
            call::<CodeActionResolveRequest>(params, |action| actions::resolve(state, action))
        }
        _ => {
            let message = format!("this server does not answer {method}");
            Err(Failure::new(ErrorCode::MethodNotFound, message))
        }
    }
}

fn file_and_position<'a>(
    state: &'a State,
    params: &TextDocumentPositionParams,
) -> Result<(&'a OpenFile, Position), Failure> {
    Ok((state.file(&params.text_document.uri)?, params.position))
}

fn report(items: Vec<lsp_types::Diagnostic>) -> DocumentDiagnosticReport {
    let report = FullDocumentDiagnosticReport { result_id: None, items };
    DocumentDiagnosticReport::RelatedFullDocumentDiagnosticReport(
        RelatedFullDocumentDiagnosticReport {
            related_documents: None,
            full_document_diagnostic_report: report,
        },
    )
}

/// Parses the parameters of a request, and serializes its result.
fn call<R: Request>(
    params: Value,
    handler: impl FnOnce(R::Params) -> Result<R::Result, Failure>,
) -> Result<Value, Failure> {
    let params = serde_json::from_value(params).map_err(|error| {
        let message = format!("the parameters are wrong: {error}");
        Failure::new(ErrorCode::InvalidParams, message)
    })?;
    let result = handler(params)?;
    serde_json::to_value(result)
        .map_err(|error| Failure::new(ErrorCode::InternalError, error.to_string()))
}
