//! Findings for people, in the manner of rustc.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use annotate_snippets::{
    AnnotationKind, Group, Level, Origin, Renderer as Snippets, Snippet,
    renderer::{
        DEFAULT_ERROR_STYLE, DEFAULT_LINE_NUM_STYLE, DEFAULT_NOTE_STYLE, DEFAULT_WARNING_STYLE,
        Style,
    },
};

use super::{FileReport, Renderer, Summary, TextStyle, window::Window};
use crate::{Diagnostic, Edit, Fix, Position, Safety, Severity, Source, visible};

/// Longest message that is shown whole, in characters.
const LONGEST_MESSAGE: usize = 1_000;
/// Longest text of a fix that is quoted, in characters.
const LONGEST_QUOTE: usize = 40;
/// Lines are cut before annotate-snippets sees them, since its own cutting trips over characters
/// without width.
const NEVER_CUT: usize = 1 << 20;

pub(super) struct Text {
    style: TextStyle,
    snippets: Snippets,
}

impl Text {
    pub(super) fn new(style: TextStyle) -> Self {
        let snippets = if style.color { Snippets::styled() } else { Snippets::plain() };
        Self { style, snippets: snippets.term_width(NEVER_CUT) }
    }

    fn diagnostic(&self, report: &FileReport<'_>, found: &Diagnostic) -> String {
        let level = match found.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(shortened(&found.message)).id(found.code);
        let mut group = Group::with_title(title);
        let path = visible(report.path);
        let mut origin = None;
        if let Some(source) = report.source {
            let Position { line, column } = source.position(found.span.start);
            // The line number, a space, a bar and a space stand before the line.
            let digits = line.to_string().len();
            let room = self.style.width.saturating_sub(digits + 3);
            let window = Window::new(source.text(), found.span, room);
            let label = match window.more_lines {
                0 => None,
                1 => Some("and 1 more line".to_owned()),
                more => Some(format!("and {more} more lines")),
            };
            let annotation = AnnotationKind::Primary.span(window.span).label(label);
            let snippet = Snippet::source(window.text).line_start(line);
            group = group.element(snippet.annotation(annotation));
            let arrow = self.paint(DEFAULT_LINE_NUM_STYLE, "-->");
            origin = Some(format!("{:digits$}{arrow} {path}:{line}:{column}", ""));
        } else {
            group = group.element(Origin::path(path));
        }
        let help = found.help.as_deref().map(shortened);
        let remedy = found.fix.as_ref().and_then(|fix| remedy(fix, found, report.source));
        let notes = help.into_iter().chain(remedy.map(Cow::Owned));
        group = group.elements(notes.map(|text| Level::HELP.message(text)));
        let shown = self.snippets.render(&[group]);
        // The snippet counts columns in what it shows, so the place is put in from here.
        match (origin, shown.split_once('\n')) {
            (Some(origin), Some((title, rest))) => format!("{title}\n{origin}\n{rest}"),
            _ => shown,
        }
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.style.color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

impl Renderer for Text {
    fn start(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn file(&mut self, out: &mut dyn Write, report: &FileReport<'_>) -> io::Result<()> {
        for found in report.diagnostics {
            writeln!(out, "{}\n", self.diagnostic(report, found))?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        let mut counts = Vec::new();
        if summary.errors > 0 {
            counts.push(self.paint(DEFAULT_ERROR_STYLE, &counted(summary.errors, "error")));
        }
        if summary.warnings > 0 {
            counts.push(self.paint(DEFAULT_WARNING_STYLE, &counted(summary.warnings, "warning")));
        }
        if counts.is_empty() && summary.files > 0 {
            counts.push(self.paint(DEFAULT_NOTE_STYLE, "all fine"));
        }
        let files = counted(summary.files, "skill");
        if counts.is_empty() {
            writeln!(out, "checked {files}")?;
        } else {
            writeln!(out, "checked {files}: {}", counts.join(", "))?;
        }
        let all = counted(summary.errors + summary.warnings, "finding");
        match (summary.fixable, summary.fixable_unsafe) {
            (0, 0) => Ok(()),
            (0, risky) => writeln!(out, "{risky} of {all} can be fixed with --fix --unsafe"),
            (safe, 0) => writeln!(out, "{safe} of {all} can be fixed with --fix"),
            (safe, risky) => {
                writeln!(out, "{safe} of {all} can be fixed with --fix, {risky} more with --unsafe")
            }
        }
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A message on one visible line that does not flood the screen.
fn shortened(message: &str) -> Cow<'_, str> {
    match message.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => Cow::Owned(format!("{}...", visible(&message[..end]))),
        None => visible(message),
    }
}

/// What the fix would do, with the option that makes it do so.
fn remedy(fix: &Fix, found: &Diagnostic, source: Option<&Source>) -> Option<String> {
    let option = match fix.safety {
        Safety::Safe => "`--fix`",
        Safety::Unsafe => "`--fix --unsafe`",
    };
    let plain = if found.help.is_some() { "does this" } else { "mends this" };
    let deed = match fix.edits.as_slice() {
        [] => return None,
        [edit] => deed(edit, source).unwrap_or_else(|| plain.to_owned()),
        _ => plain.to_owned(),
    };
    Some(format!("{option} {deed}"))
}

/// One small edit in words.
fn deed(edit: &Edit, source: Option<&Source>) -> Option<String> {
    let old = edit.span.slice(source?.text());
    match (old.is_empty(), edit.text.is_empty()) {
        (true, true) => None,
        (true, false) => Some(format!("inserts {}", quoted(&edit.text)?)),
        (false, true) => Some(format!("removes {}", quoted(old)?)),
        (false, false) => Some(format!("replaces {} with {}", quoted(old)?, quoted(&edit.text)?)),
    }
}

/// The text between backticks, when it is short and on one line.
fn quoted(text: &str) -> Option<String> {
    let short = text.chars().nth(LONGEST_QUOTE).is_none();
    let plain = !text.contains(['`', '\n', '\r']) && !text.trim().is_empty();
    (short && plain).then(|| format!("`{}`", visible(text)))
}
