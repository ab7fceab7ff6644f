use memchr::memmem;

use crate::{
    check::{Context, rule::rule},
    diagnostic::{Diagnostic, Edit, Fix},
    source::Span,
};

rule! {
    /// The file begins with a byte order mark.
    ///
    /// ## Why
    ///
    /// UTF-8 needs none, and the reference validator does not see the frontmatter behind it.
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
                "the file begins with a byte order mark",
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
    /// Every dialect reads them, but digests, diffs and shell scripts differ between machines.
    ///
    /// ## Bad
    ///
    /// ````markdown escaped
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
    CRLF_LINE_ENDINGS = "crlf-line-endings", Warning, fix Safe, run crlf_line_endings
}

fn crlf_line_endings(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    line_endings(context, found, &Ends::AllCrlf);
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
    /// ````markdown escaped
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
    MIXED_LINE_ENDINGS = "mixed-line-endings", Warning, fix Safe, run mixed_line_endings
}

fn mixed_line_endings(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    line_endings(context, found, &Ends::Mixed);
}

#[derive(PartialEq, Eq)]
enum Ends {
    AllCrlf,
    Mixed,
}

fn line_endings(context: &Context<'_>, found: &mut Vec<Diagnostic>, wanted: &Ends) {
    let bytes = context.text().as_bytes();
    let Some(first) = memmem::find(bytes, b"\r\n") else { return };
    let crlf: Vec<usize> = memmem::find_iter(bytes, b"\r\n").collect();
    let newlines = memchr::memchr_iter(b'\n', bytes).count();
    let is = if crlf.len() == newlines { Ends::AllCrlf } else { Ends::Mixed };
    if is != *wanted {
        return;
    }
    let edits = crlf.into_iter().map(|at| Edit::delete(Span::new(at, at + 1))).collect();
    let (code, message) = match wanted {
        Ends::AllCrlf => (CRLF_LINE_ENDINGS.code, "lines end with CRLF"),
        Ends::Mixed => (MIXED_LINE_ENDINGS.code, "some lines end with CRLF, others with LF"),
    };
    found.push(
        Diagnostic::warning(code, Span::new(first, first + 1), message)
            .help("end every line with a line feed only")
            .fix(Fix::safe(edits)),
    );
}
