//! Renders diagnostics as one JSON document, file by file.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::{FileReport, Renderer, Summary};
use crate::{Diagnostic, Edit, Position, Safety, Severity, visible_json};

#[derive(Default)]
pub(super) struct JsonRenderer {
    files: usize,
}

impl Renderer for JsonRenderer {
    fn start(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"{\"files\":[")
    }

    fn file(&mut self, out: &mut dyn Write, report: &FileReport<'_>) -> io::Result<()> {
        out.write_all(if self.files == 0 { b"\n" } else { b",\n" })?;
        self.files += 1;
        let file = JsonFile {
            path: report.path,
            dialect: report.dialect,
            diagnostics: JsonDiagnostics(report),
        };
        let json = serde_json::to_string(&file)?;
        out.write_all(visible_json(&json).as_bytes())
    }

    fn finish(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        out.write_all(if self.files == 0 { b"],\"summary\":" } else { b"\n],\"summary\":" })?;
        let Summary { files, errors, warnings, fixable, .. } = *summary;
        serde_json::to_writer(&mut *out, &JsonSummary { files, errors, warnings, fixable })?;
        out.write_all(b"}\n")
    }
}

#[derive(Serialize)]
struct JsonSummary {
    files: usize,
    errors: usize,
    warnings: usize,
    fixable: usize,
}

#[derive(Serialize)]
struct JsonFile<'a> {
    path: &'a str,
    dialect: Option<&'static str>,
    diagnostics: JsonDiagnostics<'a>,
}

struct JsonDiagnostics<'a>(&'a FileReport<'a>);

impl Serialize for JsonDiagnostics<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(
            self.0.diagnostics.iter().map(|diagnostic| json_diagnostic(self.0, diagnostic)),
        )
    }
}

#[derive(Serialize)]
struct JsonDiagnostic<'a> {
    code: &'a str,
    severity: Severity,
    message: &'a str,
    start: Position,
    end: Position,
    help: Option<&'a str>,
    fix: Option<JsonFix<'a>>,
}

#[derive(Serialize)]
struct JsonFix<'a> {
    safety: Safety,
    edits: JsonEdits<'a>,
}

struct JsonEdits<'a>(&'a FileReport<'a>, &'a [Edit]);

impl Serialize for JsonEdits<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.1.iter().map(|edit| json_edit(self.0, edit)))
    }
}

#[derive(Serialize)]
struct JsonEdit<'a> {
    start: JsonPosition,
    end: JsonPosition,
    text: &'a str,
}

#[derive(Serialize)]
struct JsonPosition {
    #[serde(flatten)]
    position: Position,
    offset: usize,
}

fn json_diagnostic<'a>(
    report: &'a FileReport<'a>,
    diagnostic: &'a Diagnostic,
) -> JsonDiagnostic<'a> {
    let (start, end) = report.range_or_file_start(diagnostic.span);
    JsonDiagnostic {
        code: diagnostic.code,
        severity: diagnostic.severity,
        message: &diagnostic.message,
        start,
        end,
        help: diagnostic.help.as_deref(),
        fix: diagnostic
            .fix
            .as_ref()
            .map(|fix| JsonFix { safety: fix.safety, edits: JsonEdits(report, &fix.edits) }),
    }
}

fn json_edit<'a>(report: &FileReport<'_>, edit: &'a Edit) -> JsonEdit<'a> {
    let (start, end) = report.range_or_file_start(edit.span);
    JsonEdit {
        start: JsonPosition { position: start, offset: edit.span.start },
        end: JsonPosition { position: end, offset: edit.span.end },
        text: &edit.text,
    }
}
