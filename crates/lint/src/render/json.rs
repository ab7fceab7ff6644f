//! Findings as one JSON document, written file by file.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::{FileReport, Renderer, Summary};
use crate::{Diagnostic, Edit, Position, Safety, Severity};

#[derive(Default)]
pub(super) struct Json {
    files: usize,
}

impl Renderer for Json {
    fn start(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"{\"files\":[")
    }

    fn file(&mut self, out: &mut dyn Write, report: &FileReport<'_>) -> io::Result<()> {
        out.write_all(if self.files == 0 { b"\n" } else { b",\n" })?;
        self.files += 1;
        let file =
            File { path: report.path, dialect: report.dialect, diagnostics: Findings(report) };
        Ok(serde_json::to_writer(out, &file)?)
    }

    fn finish(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        out.write_all(if self.files == 0 { b"],\"summary\":" } else { b"\n],\"summary\":" })?;
        let Summary { files, errors, warnings, fixable, .. } = *summary;
        serde_json::to_writer(&mut *out, &Totals { files, errors, warnings, fixable })?;
        out.write_all(b"}\n")
    }
}

#[derive(Serialize)]
struct Totals {
    files: usize,
    errors: usize,
    warnings: usize,
    fixable: usize,
}

#[derive(Serialize)]
struct File<'a> {
    path: &'a str,
    dialect: Option<&'static str>,
    diagnostics: Findings<'a>,
}

struct Findings<'a>(&'a FileReport<'a>);

impl Serialize for Findings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.diagnostics.iter().map(|found| finding(self.0, found)))
    }
}

#[derive(Serialize)]
struct Finding<'a> {
    code: &'a str,
    severity: Severity,
    message: &'a str,
    start: Position,
    end: Position,
    help: Option<&'a str>,
    fix: Option<Remedy<'a>>,
}

#[derive(Serialize)]
struct Remedy<'a> {
    safety: Safety,
    edits: Edits<'a>,
}

struct Edits<'a>(&'a FileReport<'a>, &'a [Edit]);

impl Serialize for Edits<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.1.iter().map(|edit| change(self.0, edit)))
    }
}

#[derive(Serialize)]
struct Change<'a> {
    start: Place,
    end: Place,
    text: &'a str,
}

#[derive(Serialize)]
struct Place {
    #[serde(flatten)]
    position: Position,
    offset: usize,
}

fn finding<'a>(report: &'a FileReport<'a>, found: &'a Diagnostic) -> Finding<'a> {
    let (start, end) = report.range_or_beginning(found.span);
    Finding {
        code: found.code,
        severity: found.severity,
        message: &found.message,
        start,
        end,
        help: found.help.as_deref(),
        fix: found
            .fix
            .as_ref()
            .map(|fix| Remedy { safety: fix.safety, edits: Edits(report, &fix.edits) }),
    }
}

fn change<'a>(report: &FileReport<'_>, edit: &'a Edit) -> Change<'a> {
    let (start, end) = report.range_or_beginning(edit.span);
    Change {
        start: Place { position: start, offset: edit.span.start },
        end: Place { position: end, offset: edit.span.end },
        text: &edit.text,
    }
}
