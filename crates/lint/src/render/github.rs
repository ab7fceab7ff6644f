//! Findings as workflow commands, which GitHub Actions shows beside the lines of a change.

use std::io::{self, Write};

use super::{FileReport, Renderer, Summary};
use crate::visible::push_visible;

pub(super) struct Github;

impl Renderer for Github {
    fn start(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn file(&mut self, out: &mut dyn Write, report: &FileReport<'_>) -> io::Result<()> {
        for found in report.diagnostics {
            write!(out, "::{} file={}", found.severity, property(report.path))?;
            if let Some((start, end)) = report.range(found.span) {
                write!(out, ",line={}", start.line)?;
                // Columns on different lines are refused.
                if start.line == end.line {
                    write!(out, ",col={}", start.column)?;
                    write!(out, ",endLine={},endColumn={}", end.line, end.column)?;
                } else {
                    write!(out, ",endLine={}", end.line)?;
                }
            }
            write!(out, ",title={}::{}", property(found.code), data(&found.message))?;
            if let Some(help) = &found.help {
                write!(out, "%0Ahelp: {}", data(help))?;
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn Write, _: &Summary) -> io::Result<()> {
        Ok(())
    }
}

/// The text of an annotation: line breaks are escaped, what would do something in a log is shown.
fn data(text: &str) -> String {
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

/// The value of a property, which would end at a comma or colon.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
