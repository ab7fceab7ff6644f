//! Checks byte order marks and line endings.

use memchr::memmem;
use savoir_lint::{Diagnostic, Edit, Fix, Span};

use crate::check::{Context, rule::rule};

rule! {
    /// The file starts with a byte order mark.
    ///
    /// ## Why
    ///
    /// UTF-8 does not need one, and the reference validator does not find the frontmatter after
    /// it.
    ///
    /// ## Bad
    ///
    /// ````markdown escaped
    /// \u{feff}---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// # Demo
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// # Demo
    /// ````
    BYTE_ORDER_MARK = "byte-order-mark", Warning, fix Safe, run byte_order_mark
}

fn byte_order_mark(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let bom = context.reading.document.layout().bom;
    if bom > 0 {
        let span = Span::new(0, bom);
        found.push(
            Diagnostic::warning(
                BYTE_ORDER_MARK.code,
                span,
                "the file starts with a byte order mark",
            )
            .help("save the file as UTF-8 without it")
            .fix(Fix::safe(vec![Edit::delete(span)])),
        );
    }
}

rule! {
    /// Lines end with carriage return and line feed.
    ///
    /// ## Why
    ///
    /// Every dialect accepts them, but digests, diffs and shell scripts differ between machines.
    /// Only `--strict` reports them.
    ///
    /// ## Bad
    ///
    /// ````markdown strict escaped
    /// ---\r
    /// name: demo\r
    /// description: Shows a rule. Use when learning.\r
    /// ---\r
    /// # Demo\r
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// # Demo
    /// ````
    CRLF_LINE_ENDINGS = "crlf-line-endings", Warning, fix Safe, run line_endings
}

/// One look at the line ends serves both rules.
fn line_endings(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let bytes = context.text().as_bytes();
    let Some(first) = memchr::memchr(b'\r', bytes) else { return };
    let crlf: Vec<usize> =
        memmem::find_iter(&bytes[first..], b"\r\n").map(|at| first + at).collect();
    let Some(first) = crlf.first().copied() else { return };
    let (code, message) = if memchr::memchr_iter(b'\n', bytes).count() == crlf.len() {
        (CRLF_LINE_ENDINGS.code, "lines end with CRLF")
    } else {
        (MIXED_LINE_ENDINGS.code, "some lines end with CRLF, others with LF")
    };
    if !context.options.is_strict(code) {
        return;
    }
    let edits =
        crlf.into_iter().map(|at| Edit::delete(Span::new(run_start(bytes, at), at + 1))).collect();
    found.push(
        Diagnostic::warning(code, Span::new(first, first + 1), message)
            .help("end every line with a line feed only")
            .fix(Fix::safe(edits)),
    );
}

rule! {
    /// Some lines end with carriage return and line feed, others with a line feed only.
    ///
    /// ## Why
    ///
    /// Editors and version control rewrite such files at random.
    ///
    /// ## Bad
    ///
    /// ````markdown strict escaped
    /// ---\r
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// # Demo
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// # Demo
    /// ````
    MIXED_LINE_ENDINGS = "mixed-line-endings", Warning, fix Safe
}

/// The start of the carriage returns that end at `at`: `\r\r\n` is one broken line end.
fn run_start(bytes: &[u8], at: usize) -> usize {
    let run = bytes[..at].iter().rev().take_while(|byte| **byte == b'\r').count();
    at - run
}

#[cfg(test)]
mod tests {
    use crate::check::{Options, fix};
    use savoir_lint::Safety;

    #[test]
    fn many_carriage_returns_go_at_once() {
        let text = format!("---\nname: a\n---\nb{}\nc\n", "\r".repeat(40));
        let options = Options { strict: true, ..Options::default() };
        let fixed = fix(&text, None, &options, Safety::Safe);
        assert_eq!(fixed.text, "---\nname: a\n---\nb\nc\n");
    }
}
