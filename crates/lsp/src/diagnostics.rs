//! Converts findings to diagnostics of the protocol.

use lsp_types::{Code, CodeDescription, Diagnostic, DiagnosticSeverity, DiagnosticTag, Message};
use savoir_lint::{Severity, Span, visible};
use savoir_skill::limits::MAX_FILE_BYTES;
use url::Url;

use crate::{
    FileProblem, file_kind::FileKind, foreign_fields, open_file::OpenFile, side_files, state::State,
};

/// The page of each rule.
const RULE_PAGES: &str = "https://github.com/savoir-dev/savoir/blob/main/docs/reference/rules";

pub(crate) const SOURCE: &str = "savoir";

/// All findings of an open file.
pub(crate) fn of(state: &State, file: &OpenFile) -> Vec<Diagnostic> {
    match file.kind {
        FileKind::Skill => skill(state, file),
        FileKind::Other => Vec::new(),
        _ => side_files::problems(state, file)
            .iter()
            .map(|problem| of_problem(file, problem))
            .collect(),
    }
}

fn skill(state: &State, file: &OpenFile) -> Vec<Diagnostic> {
    let settings = state.settings(file.path.as_deref());
    let Some(checked) = file.checked(&settings.options) else {
        let message = format!("the file has more than {MAX_FILE_BYTES} bytes");
        return vec![finding(file, Span::default(), Severity::Error, "file-too-large", message)];
    };
    let mut found: Vec<Diagnostic> =
        checked.diagnostics.iter().map(|found| of_finding(file, found)).collect();
    if let Some(problem) = &settings.problem {
        // `savoir check` fails with such settings; the editor continues with the defaults.
        let message = format!("the settings cannot be read, so the defaults apply: {problem}");
        let head = checked.reading.document.head_span();
        found.push(Diagnostic {
            range: file.range(head),
            severity: Some(DiagnosticSeverity::Warning),
            source: Some(SOURCE.to_owned()),
            message: Message::String(visible(&message).into_owned()),
            ..Diagnostic::default()
        });
    }
    found.extend(foreign_fields::find(&checked).into_iter().map(|field| Diagnostic {
        range: file.range(field.span),
        severity: Some(DiagnosticSeverity::Hint),
        code: Some(Code::String("foreign-field".to_owned())),
        source: Some(SOURCE.to_owned()),
        message: Message::String(field.message),
        tags: Some(vec![DiagnosticTag::Unnecessary]),
        ..Diagnostic::default()
    }));
    found
}

/// A finding of `savoir check`.
pub(crate) fn of_finding(file: &OpenFile, found: &savoir_lint::Diagnostic) -> Diagnostic {
    let message = match &found.help {
        Some(help) => format!("{}\nhint: {}", visible(&found.message), visible(help)),
        None => visible(&found.message).into_owned(),
    };
    finding(file, found.span, found.severity, found.code, message)
}

fn finding(
    file: &OpenFile,
    span: Span,
    severity: Severity,
    code: &str,
    message: String,
) -> Diagnostic {
    let page = Url::parse(&format!("{RULE_PAGES}/{code}.md"));
    Diagnostic {
        range: file.range(span),
        severity: Some(match severity {
            Severity::Error => DiagnosticSeverity::Error,
            Severity::Warning => DiagnosticSeverity::Warning,
        }),
        code: Some(Code::String(code.to_owned())),
        code_description: page.ok().map(|href| CodeDescription { href }),
        source: Some(SOURCE.to_owned()),
        message: Message::String(message),
        ..Diagnostic::default()
    }
}

fn of_problem(file: &OpenFile, problem: &FileProblem) -> Diagnostic {
    let message = match &problem.hint {
        Some(hint) => format!("{}\nhint: {}", visible(&problem.message), visible(hint)),
        None => visible(&problem.message).into_owned(),
    };
    let severity =
        if problem.is_error { DiagnosticSeverity::Error } else { DiagnosticSeverity::Warning };
    Diagnostic {
        range: file.range(Span::new(problem.span.start, problem.span.end)),
        severity: Some(severity),
        source: Some(SOURCE.to_owned()),
        message: Message::String(message),
        ..Diagnostic::default()
    }
}
