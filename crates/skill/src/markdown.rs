//! The structure of a Markdown body, found in one pass over its lines: headings, code fences and
//! links. Text inside a code fence or an HTML comment is not structure.
//!
//! This is not a Markdown renderer. A full parser costs more than reading the file, and a checker
//! needs only what decides where tools begin and which files a text points to.

use memchr::{memchr, memmem};
use savoir_lint::Span;

use crate::limits;

/// `## Title`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heading {
    /// One to six.
    pub level: u8,
    /// The title without marks and blanks.
    pub title: Span,
    /// The whole line, without its line end.
    pub line: Span,
}

/// A fenced code block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeFence {
    /// The info string, such as `bash`.
    pub info: Span,
    /// The lines between the fences.
    pub content: Span,
    /// Everything, fences included.
    pub whole: Span,
    /// Whether the closing fence is there.
    pub closed: bool,
}

/// Hints on code blocks, and the program that runs such code.
const INTERPRETERS: [(&str, &str); 6] = [
    ("bash", "bash"),
    ("sh", "sh"),
    ("python", "python3"),
    ("python3", "python3"),
    ("node", "node"),
    ("javascript", "node"),
];

/// The first word of an info string, also when attributes follow it.
pub fn code_hint(info: &str) -> &str {
    info.split([' ', '\t', '{', ',']).next().unwrap_or_default()
}

/// The program that runs a code block with this info string, if blocks of this kind can be run.
pub fn code_interpreter(info: &str) -> Option<&'static str> {
    let hint = code_hint(info);
    let found = INTERPRETERS.iter().find(|(word, _)| word.eq_ignore_ascii_case(hint));
    found.map(|(_, program)| *program)
}

/// A link or image target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The target as written, without title.
    pub target: Span,
}

/// The structure of one body.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// Headings in order, those inside fences left out.
    pub headings: Vec<Heading>,
    /// Fenced code blocks in order.
    pub fences: Vec<CodeFence>,
    /// HTML comments that begin a line, in order.
    pub comments: Vec<Span>,
    /// Number of lines.
    pub lines: usize,
    /// Lines that may define a link, from their bracket on.
    definitions: Vec<Span>,
}

impl Outline {
    /// Reads the part `body` of `text`; every span is an offset into `text`.
    pub fn new(text: &str, body: Span) -> Self {
        let mut scan = Scan { text, outline: Self::default(), fence: None, comment: None };
        let mut at = body.start;
        while at < body.end {
            let rest = &text.as_bytes()[at..body.end];
            let next = memchr(b'\n', rest).map_or(body.end, |newline| at + newline + 1);
            scan.line(at, next);
            scan.outline.lines += 1;
            at = next;
        }
        scan.finish(body.end)
    }

    /// Whether `at` is inside a code fence or an HTML comment.
    pub fn is_literal(&self, at: usize) -> bool {
        let fence = self.fences.partition_point(|fence| fence.whole.start <= at);
        let comment = self.comments.partition_point(|comment| comment.start <= at);
        (fence > 0 && self.fences[fence - 1].whole.contains(at))
            || (comment > 0 && self.comments[comment - 1].contains(at))
    }

    /// Link and image targets outside code, in order.
    pub fn links(&self, text: &str, body: Span) -> Vec<Link> {
        let mut links: Vec<Link> =
            self.definitions.iter().filter_map(|line| definition(text, *line)).collect();
        let mut code = CodeSpans::new(text, body);
        for found in memmem::find_iter(body.slice(text).as_bytes(), b"](") {
            let at = body.start + found;
            if self.is_literal(at) || code.contains(at) {
                continue;
            }
            if let Some(target) = link_target(text, at + 2, body.end) {
                links.push(Link { target });
            }
        }
        links.sort_by_key(|link| link.target.start);
        links
    }
}

/// `[name]: target`
fn definition(text: &str, line: Span) -> Option<Link> {
    let content = line.slice(text);
    let label = content.find("]:")?;
    if content.starts_with("[^") || content[1..label].contains('[') {
        return None;
    }
    let rest = Span::new(line.start + label + 2, line.end);
    let target = trimmed(text, rest).slice(text);
    let start = rest.start + (rest.slice(text).len() - rest.slice(text).trim_start().len());
    let length = target.find(char::is_whitespace).unwrap_or(target.len());
    let target = without_angles(text, Span::new(start, start + length));
    (!target.is_empty()).then_some(Link { target })
}

struct OpenFence {
    mark: u8,
    length: usize,
    start: usize,
    info: Span,
    content: usize,
}

struct Scan<'a> {
    text: &'a str,
    outline: Outline,
    fence: Option<OpenFence>,
    comment: Option<usize>,
}

impl Scan<'_> {
    fn line(&mut self, start: usize, next: usize) {
        let bytes = self.text.as_bytes();
        let mut end = next;
        while end > start && matches!(bytes[end - 1], b'\n' | b'\r') {
            end -= 1;
        }
        if let Some(from) = self.comment {
            if Span::new(start, end).slice(self.text).contains("-->") {
                self.outline.comments.push(Span::new(from, end));
                self.comment = None;
            }
            return;
        }
        let indent = blanks(self.text, start, end);
        let first = start + indent;
        if indent > 3 || first >= end {
            return;
        }
        match bytes[first] {
            mark @ (b'`' | b'~') => self.fence_line(mark, first, end, next),
            b'#' if self.fence.is_none() => self.heading(first, Span::new(start, end)),
            b'<' if self.fence.is_none() => self.comment_line(first, end),
            b'[' if self.fence.is_none() => self.outline.definitions.push(Span::new(first, end)),
            _ => {}
        }
    }

    fn fence_line(&mut self, mark: u8, first: usize, end: usize, next: usize) {
        let bytes = &self.text.as_bytes()[first..end];
        let length = bytes.iter().take_while(|byte| **byte == mark).count();
        let info = trimmed(self.text, Span::new(first + length, end));
        if let Some(open) = &self.fence {
            if open.mark == mark && length >= open.length && info.is_empty() {
                let content = Span::new(open.content, first);
                let content = Span::new(content.start, line_start(self.text, content));
                let whole = Span::new(open.start, end);
                let fence = CodeFence { info: open.info, content, whole, closed: true };
                self.outline.fences.push(fence);
                self.fence = None;
            }
        } else if length >= 3 && !(mark == b'`' && info.slice(self.text).contains('`')) {
            self.fence = Some(OpenFence { mark, length, start: first, info, content: next });
        }
    }

    fn heading(&mut self, first: usize, line: Span) {
        let bytes = &self.text.as_bytes()[first..line.end];
        let level = bytes.iter().take_while(|byte| **byte == b'#').count();
        let blank = bytes.get(level).is_none_or(|byte| matches!(byte, b' ' | b'\t'));
        if level > 6 || !blank {
            return;
        }
        let mut title = trimmed(self.text, Span::new(first + level, line.end));
        let text = title.slice(self.text);
        let bare = text.trim_end_matches('#');
        if bare.is_empty() || bare.ends_with([' ', '\t']) {
            title = trimmed(self.text, Span::new(title.start, title.start + bare.len()));
        }
        self.outline.headings.push(Heading { level: level as u8, title, line });
    }

    fn comment_line(&mut self, first: usize, end: usize) {
        let line = Span::new(first, end).slice(self.text);
        if !line.starts_with("<!--") {
            return;
        }
        if line[4..].contains("-->") {
            self.outline.comments.push(Span::new(first, end));
        } else {
            self.comment = Some(first);
        }
    }

    fn finish(mut self, end: usize) -> Outline {
        if let Some(open) = self.fence {
            let content = Span::new(open.content.min(end), end);
            let whole = Span::new(open.start, end);
            self.outline.fences.push(CodeFence { info: open.info, content, whole, closed: false });
        }
        if let Some(from) = self.comment {
            self.outline.comments.push(Span::new(from, end));
        }
        self.outline
    }
}

fn blanks(text: &str, start: usize, end: usize) -> usize {
    text.as_bytes()[start..end].iter().take_while(|byte| **byte == b' ').count()
}

fn trimmed(text: &str, span: Span) -> Span {
    let slice = span.slice(text);
    let start = span.start + (slice.len() - slice.trim_start().len());
    Span::new(start, start + slice.trim().len())
}

/// The start of the line on which `span` ends.
fn line_start(text: &str, span: Span) -> usize {
    memchr::memrchr(b'\n', span.slice(text).as_bytes()).map_or(span.start, |at| span.start + at + 1)
}

/// Decides for ascending offsets whether they are between backticks, reading each line once.
struct CodeSpans<'a> {
    text: &'a str,
    body: Span,
    line: Span,
    spans: Vec<Span>,
}

impl<'a> CodeSpans<'a> {
    fn new(text: &'a str, body: Span) -> Self {
        Self { text, body, line: Span::at(body.start), spans: Vec::new() }
    }

    fn contains(&mut self, at: usize) -> bool {
        if !self.line.contains(at) {
            self.enter_line(at);
        }
        let after = self.spans.partition_point(|span| span.start <= at);
        after > 0 && self.spans[after - 1].contains(at)
    }

    fn enter_line(&mut self, at: usize) {
        let start = line_start(self.text, Span::new(self.line.end.min(at), at));
        let rest = &self.text.as_bytes()[at..self.body.end];
        let end = memchr(b'\n', rest).map_or(self.body.end, |length| at + length + 1);
        self.line = Span::new(start, end);
        self.spans = code_spans(&self.text.as_bytes()[start..end], start);
    }
}

fn code_spans(line: &[u8], offset: usize) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut from = 0;
    while let Some(tick) = memchr(b'`', &line[from..]).map(|tick| from + tick) {
        let run = line[tick..].iter().take_while(|byte| **byte == b'`').count();
        from = tick + run;
        if let Some(close) = closing_run(line, from, run) {
            from = close + run;
            spans.push(Span::new(offset + tick, offset + from));
        }
    }
    spans
}

fn closing_run(bytes: &[u8], mut from: usize, length: usize) -> Option<usize> {
    while let Some(tick) = memchr(b'`', &bytes[from..]).map(|tick| from + tick) {
        let run = bytes[tick..].iter().take_while(|byte| **byte == b'`').count();
        if run == length {
            return Some(tick);
        }
        from = tick + run;
    }
    None
}

fn link_target(text: &str, start: usize, end: usize) -> Option<Span> {
    // Without a bound, a line of unclosed links would take quadratic time.
    let bytes = &text.as_bytes()[start..end.min(start + limits::MAX_LINK_BYTES)];
    let mut depth = 0usize;
    for (offset, byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' => return None,
            b'(' => depth += 1,
            b')' if depth > 0 => depth -= 1,
            b')' | b' ' | b'\t' => {
                let target = without_angles(text, Span::new(start, start + offset));
                return (!target.is_empty()).then_some(target);
            }
            b'<' if offset == 0 => {
                let close = memchr(b'>', bytes)?;
                return Some(Span::new(start + 1, start + close));
            }
            _ => {}
        }
    }
    None
}

fn without_angles(text: &str, target: Span) -> Span {
    match target.slice(text).strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
        Some(inner) => Span::new(target.start + 1, target.start + 1 + inner.len()),
        None => target,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(text: &str) -> Outline {
        Outline::new(text, Span::new(0, text.len()))
    }

    fn titles(text: &str) -> Vec<(u8, &str)> {
        outline(text).headings.iter().map(|h| (h.level, h.title.slice(text))).collect()
    }

    fn targets(text: &str) -> Vec<&str> {
        let links = outline(text).links(text, Span::new(0, text.len()));
        links.iter().map(|link| link.target.slice(text)).collect()
    }

    #[test]
    fn finds_headings_but_not_in_code_or_comments() {
        let text = "# One\n```md\n## no\n```\n<!--\n### no\n-->\n### two ###\n    #### no\n#no\n";
        assert_eq!(titles(text), [(1, "One"), (3, "two")]);
    }

    #[test]
    fn a_fence_closes_only_with_its_own_mark_and_length() {
        let text = "````bash\n```\necho\n````\n~~~\n```\n~~~\n";
        let fences = outline(text).fences;
        assert_eq!(fences.len(), 2);
        assert_eq!(fences[0].info.slice(text), "bash");
        assert_eq!(fences[0].content.slice(text), "```\necho\n");
        assert_eq!(fences[1].content.slice(text), "```\n");
    }

    #[test]
    fn an_unclosed_fence_runs_to_the_end() {
        let text = "a\n```\n# no\n";
        let outline = outline(text);
        assert!(!outline.fences[0].closed);
        assert!(outline.headings.is_empty());
    }

    #[test]
    fn finds_links_but_not_in_code() {
        let text = "[a](one.md) `[b](no.md)` ![c](<two x.md> \"t\") [d](x(y).md)\n```\n[e](no)\n```\n[f]: three.md\n[^n]: note\n";
        assert_eq!(targets(text), ["one.md", "two x.md", "x(y).md", "three.md"]);
    }

    #[test]
    fn windows_line_ends_are_not_part_of_anything() {
        let text = "# One\r\n```bash\r\necho\r\n```\r\n";
        assert_eq!(titles(text), [(1, "One")]);
        assert_eq!(outline(text).fences[0].content.slice(text), "echo\r\n");
        assert_eq!(outline(text).lines, 4);
    }
}
