//! Renders diagnostics as GitHub Actions workflow commands, which become annotations.

use std::io::{self, Write};

use super::{FileReport, Renderer, Summary};
use crate::visible::push_visible;

pub(super) struct GithubRenderer;

impl Renderer for GithubRenderer {
    fn start(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn file(&mut self, out: &mut dyn Write, report: &FileReport<'_>) -> io::Result<()> {
        for diagnostic in report.diagnostics {
            write!(out, "::{} file={}", diagnostic.severity, escape_property(report.path))?;
            if let Some((start, end)) = report.range(diagnostic.span) {
                write!(out, ",line={}", start.line)?;
                // GitHub rejects columns when the lines differ.
                if start.line == end.line {
                    write!(out, ",col={}", start.column)?;
                    write!(out, ",endLine={},endColumn={}", end.line, end.column)?;
                } else {
                    write!(out, ",endLine={}", end.line)?;
                }
            }
            write!(
                out,
                ",title={}::{}",
                escape_property(diagnostic.code),
                escape_text(&diagnostic.message)
            )?;
            if let Some(help) = &diagnostic.help {
                write!(out, "%0Ahint: {}", escape_text(help))?;
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn Write, _: &Summary) -> io::Result<()> {
        Ok(())
    }
}

/// Escapes the text of an annotation: line breaks, and characters that have an effect in a log.
fn escape_text(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '%' => result.push_str("%25"),
            '\r' => result.push_str("%0D"),
            '\n' => result.push_str("%0A"),
            _ => push_visible(&mut result, character),
        }
    }
    result
}

/// Escapes the value of a property, which a comma or colon would end.
fn escape_property(text: &str) -> String {
    escape_text(text).replace(':', "%3A").replace(',', "%2C")
}
