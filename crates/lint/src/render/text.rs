//! Renders diagnostics for people, in the style of rustc.

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

/// Longer messages are cut to this length.
const MAX_MESSAGE_CHARS: usize = 1_000;
/// Longer texts of a fix are not quoted.
const MAX_QUOTED_CHARS: usize = 40;
/// Lines are cut before annotate-snippets sees them, because its own cutting fails on characters
/// without width.
const UNLIMITED_WIDTH: usize = 1 << 20;

pub(super) struct TextRenderer {
    style: TextStyle,
    snippets: Snippets,
}

impl TextRenderer {
    pub(super) fn new(style: TextStyle) -> Self {
        let snippets = if style.color { Snippets::styled() } else { Snippets::plain() };
        Self { style, snippets: snippets.term_width(UNLIMITED_WIDTH) }
    }

    fn render_diagnostic(&self, report: &FileReport<'_>, diagnostic: &Diagnostic) -> String {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(shorten_message(&diagnostic.message)).id(diagnostic.code);
        let mut group = Group::with_title(title);
        let path = visible(report.path);
        let mut origin = None;
        if let Some(source) = report.source {
            let Position { line, column } = source.position(diagnostic.span.start);
            // The line is preceded by its number, a space, a bar and a space.
            let digits = line.to_string().len();
            let max_columns = self.style.width.saturating_sub(digits + 3);
            let window = Window::new(source.text(), diagnostic.span, max_columns);
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
        let help = diagnostic.help.as_deref().map(shorten_message);
        let fix_note =
            diagnostic.fix.as_ref().and_then(|fix| describe_fix(fix, diagnostic, report.source));
        let notes = help.into_iter().chain(fix_note.map(Cow::Owned));
        group = group.elements(notes.map(|text| Level::HELP.with_name("hint").message(text)));
        let rendered = self.snippets.render(&[group]);
        // The snippet counts columns of the cut line, so the real position is inserted here.
        match (origin, rendered.split_once('\n')) {
            (Some(origin), Some((title, rest))) => format!("{title}\n{origin}\n{rest}"),
            _ => rendered,
        }
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.style.color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

impl Renderer for TextRenderer {
    fn start(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn file(&mut self, out: &mut dyn Write, report: &FileReport<'_>) -> io::Result<()> {
        for diagnostic in report.diagnostics {
            writeln!(out, "{}\n", self.render_diagnostic(report, diagnostic))?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        let mut counts = Vec::new();
        if summary.errors > 0 {
            counts.push(self.paint(DEFAULT_ERROR_STYLE, &count_noun(summary.errors, "error")));
        }
        if summary.warnings > 0 {
            counts
                .push(self.paint(DEFAULT_WARNING_STYLE, &count_noun(summary.warnings, "warning")));
        }
        if counts.is_empty() && summary.files > 0 {
            counts.push(self.paint(DEFAULT_NOTE_STYLE, "all fine"));
        }
        let files = count_noun(summary.files, "skill");
        if counts.is_empty() {
            writeln!(out, "checked {files}")?;
        } else {
            writeln!(out, "checked {files}: {}", counts.join(", "))?;
        }
        let all = count_noun(summary.errors + summary.warnings, "finding");
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

fn count_noun(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns a message on one line, shortened and with hidden characters escaped.
fn shorten_message(message: &str) -> Cow<'_, str> {
    match message.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => Cow::Owned(format!("{}...", visible(&message[..end]))),
        None => visible(message),
    }
}

/// Describes what the fix would do, with the option that applies it.
fn describe_fix(fix: &Fix, diagnostic: &Diagnostic, source: Option<&Source>) -> Option<String> {
    let option = match fix.safety {
        Safety::Safe => "`--fix`",
        Safety::Unsafe => "`--fix --unsafe`",
    };
    let generic = if diagnostic.help.is_some() { "does this" } else { "fixes this" };
    let action = match fix.edits.as_slice() {
        [] => return None,
        [edit] => describe_edit(edit, source).unwrap_or_else(|| generic.to_owned()),
        _ => generic.to_owned(),
    };
    Some(format!("{option} {action}"))
}

/// Describes one small edit; `None` if the text is too long to quote.
fn describe_edit(edit: &Edit, source: Option<&Source>) -> Option<String> {
    let old = edit.span.slice(source?.text());
    match (old.is_empty(), edit.text.is_empty()) {
        (true, true) => None,
        (true, false) => Some(format!("inserts {}", quote_if_short(&edit.text)?)),
        (false, true) => Some(format!("removes {}", quote_if_short(old)?)),
        (false, false) => {
            Some(format!("replaces {} with {}", quote_if_short(old)?, quote_if_short(&edit.text)?))
        }
    }
}

/// Returns the text between backticks, if it is short and on one line.
fn quote_if_short(text: &str) -> Option<String> {
    let short = text.chars().nth(MAX_QUOTED_CHARS).is_none();
    let simple = !text.contains(['`', '\n', '\r']) && !text.trim().is_empty();
    (short && simple).then(|| format!("`{}`", visible(text)))
}
