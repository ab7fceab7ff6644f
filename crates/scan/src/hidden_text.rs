//! Finds text that models read but people rarely see: comments, docstrings, alternative texts, link
//! titles, frontmatter fields, strings in data files.

use savoir_skill::{Span, markdown::Outline};

use super::fragment::{Language, Role, TextFragment, is_fenced};

/// Minimum length of a text that can be an instruction.
const MIN_HIDDEN_TEXT_BYTES: usize = 24;

/// A hidden text with its position in the fragment and a description of its container.
pub(super) struct HiddenText {
    pub(super) text: String,
    pub(super) what: &'static str,
    pub(super) span: Span,
}

/// Returns all texts of a fragment that people usually do not see.
pub(super) fn find_hidden_texts(fragment: &TextFragment<'_>) -> Vec<HiddenText> {
    let text: &str = &fragment.text;
    let mut found = Vec::new();
    match fragment.language {
        Language::Markdown if fragment.depth == 0 => {
            find_in_markdown(text, &mut found);
            find_in_frontmatter(text, &mut found);
            find_fake_messages(text, &mut found);
        }
        Language::Python => {
            find_quoted(text, "\"\"\"", "a docstring", &mut found);
            find_quoted(text, "'''", "a docstring", &mut found);
            find_line_comments(text, "#", &mut found);
        }
        Language::Shell => {
            find_line_comments(text, "#", &mut found);
            find_here_documents(text, &mut found);
            find_long_values(text, &mut found);
        }
        Language::JavaScript => {
            find_block_comments(text, &mut found);
            find_line_comments(text, "//", &mut found);
        }
        Language::Other if fragment.depth == 0 => {
            find_block_comments(text, &mut found);
            find_line_comments(text, "//", &mut found);
            find_line_comments(text, "#", &mut found);
            if fragment.role == Role::Data {
                find_strings(text, &mut found);
            }
            find_in_markdown(text, &mut found);
        }
        Language::Markdown | Language::Other => {}
    }
    found.retain(|aside| aside.text.trim().len() >= MIN_HIDDEN_TEXT_BYTES);
    found
}

fn push_if_long(text: &str, span: Span, what: &'static str, found: &mut Vec<HiddenText>) {
    found.push(HiddenText { text: span.slice(text).to_owned(), what, span });
}

/// Finds comments, alternative texts and link titles.
fn find_in_markdown(text: &str, found: &mut Vec<HiddenText>) {
    let outline = Outline::new(text, Span::new(0, text.len()));
    let inside = |at: usize| is_fenced(&outline, at);
    for (open, close) in find_enclosed(text, "<!--", "-->", true) {
        if !inside(open) {
            push_if_long(text, Span::new(open + 4, close), "a comment", found);
        }
    }
    for (open, close) in find_enclosed(text, "![", "](", false) {
        if !inside(open) {
            push_if_long(
                text,
                Span::new(open + 2, close),
                "the alternative text of an image",
                found,
            );
        }
    }
    let mut all: Option<HiddenText> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let (open, close) = (start + line.find("[//]: #").unwrap_or(0), start + line.len());
        start += line.len();
        if !line.trim_start().starts_with("[//]: #") {
            continue;
        }
        let span = Span::new((open + 7).min(close), close);
        push_if_long(text, span, "a comment", found);
        // An instruction may be split over several comments, so they are also joined.
        let joined = all.get_or_insert(HiddenText { text: String::new(), what: "a comment", span });
        joined.text.push_str(span.slice(text));
        joined.text.push('\n');
    }
    found.extend(all);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if !inside(at) {
            find_titles(text, line, at, found);
        }
        at += line.len();
    }
}

/// Finds `](url "title")`, `[name]: url 'title'`, `alt="…"`, `title="…"`, and invisible elements.
fn find_titles(text: &str, line: &str, at: usize, found: &mut Vec<HiddenText>) {
    let linked = line.contains("](") || line.trim_start().starts_with('[') && line.contains("]: ");
    let element = line.contains("alt=") || line.contains("title=") || line.contains("aria-label=");
    if linked || element {
        for mark in ['"', '\''] {
            let mut quotes = line.match_indices(mark).map(|(quote, _)| quote);
            while let (Some(open), Some(close)) = (quotes.next(), quotes.next()) {
                push_if_long(
                    text,
                    Span::new(at + open + 1, at + close),
                    "the title of a link",
                    found,
                );
            }
        }
    }
    let lower = line.to_ascii_lowercase();
    let unseen = [
        "display:none", "display: none", "visibility:hidden", "font-size:0", "font-size: 0",
        "color:white", "color: white", "color:#fff", "color: #fff", "opacity:0", "opacity: 0",
        " hidden>", "aria-hidden=\"true\">", "display : none", "height:0", "max-height:0",
        "font-size:1px", "text-indent:-", "left:-9999", "color:transparent", "color: transparent",
    ];
    if lower.contains('<') && unseen.iter().any(|style| lower.contains(style)) {
        let lines = text[at..].split_inclusive('\n').take(6).map(str::len).sum::<usize>();
        push_if_long(text, Span::new(at, at + lines), "an element that is not shown", found);
    }
}

/// Finds messages that pretend to come from the system, a tool or the model.
fn find_fake_messages(text: &str, found: &mut Vec<HiddenText>) {
    let marks = [
        ("<|im_start|>system", "<|im_end|>"),
        ("<<SYS>>", "<</SYS>>"),
        ("<system>", "</system>"),
        ("<system-reminder>", "</system-reminder>"),
        ("<function_results>", "</function_results>"),
        ("<tool_result>", "</tool_result>"),
    ];
    for (open, close) in marks {
        for (from, to) in find_enclosed(text, open, close, false) {
            push_if_long(
                text,
                Span::new(from + open.len(), to),
                "a message that is not from the system",
                found,
            );
        }
    }
}

/// Finds frontmatter values, except those of commonly displayed fields.
fn find_in_frontmatter(text: &str, found: &mut Vec<HiddenText>) {
    let Some(rest) = text.strip_prefix("---\n") else { return };
    let Some(end) = rest.find("\n---").map(|end| end + 4) else { return };
    let mut at = 4;
    let mut folded: Option<Span> = None;
    for line in text[4..end].split_inclusive('\n') {
        let shown = line.starts_with("name:");
        if let (false, Some((_, value))) = (shown, line.split_once(": "))
            && value.trim().contains(' ')
        {
            push_if_long(
                text,
                Span::new(at, at + line.trim_end().len()),
                "a field of the header",
                found,
            );
        }
        // A value may continue on several lines.
        match &mut folded {
            Some(span) if line.starts_with([' ', '\t']) => span.end = at + line.len(),
            open => {
                if let Some(span) = open.take() {
                    push_if_long(text, span, "a field of the header", found);
                }
                let value = line.split_once(": ").map_or("", |(_, value)| value.trim());
                if matches!(value, ">" | "|" | ">-" | "|-" | ">+" | "|+") {
                    folded = Some(Span::at(at + line.len()));
                }
            }
        }
        at += line.len();
    }
    if let Some(span) = folded {
        push_if_long(text, span, "a field of the header", found);
    }
}

fn find_quoted(text: &str, mark: &str, what: &'static str, found: &mut Vec<HiddenText>) {
    let mut marks = memchr::memmem::find_iter(text.as_bytes(), mark);
    while let (Some(open), Some(close)) = (marks.next(), marks.next()) {
        push_if_long(text, Span::new(open + mark.len(), close), what, found);
    }
}

/// Finds line comments; comments on consecutive lines are joined.
fn find_line_comments(text: &str, mark: &str, found: &mut Vec<HiddenText>) {
    let mut run: Option<(Span, String)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = line.len() - line.trim_start().len();
        let comment = line.trim_start().strip_prefix(mark).map(|rest| (at + start, rest));
        // After code, a comment mark must have a blank on both sides.
        let comment = comment.or_else(|| {
            let tail = line.find(&format!(" {mark} "))?;
            Some((at + tail, &line[tail + mark.len() + 1..]))
        });
        match (comment, &mut run) {
            (Some((_, rest)), Some((span, said))) => {
                said.push_str(rest);
                span.end = at + line.trim_end().len();
            }
            (Some((start, rest)), None) => {
                let end = (at + line.trim_end().len()).max(start);
                run = Some((Span::new(start, end), rest.to_owned()));
            }
            (None, _) => finish_comment(&mut run, found),
        }
        at += line.len();
    }
    finish_comment(&mut run, found);
}

fn finish_comment(run: &mut Option<(Span, String)>, found: &mut Vec<HiddenText>) {
    if let Some((span, text)) = run.take() {
        found.push(HiddenText { text, what: "a comment", span });
    }
}

fn find_block_comments(text: &str, found: &mut Vec<HiddenText>) {
    for (open, close) in find_enclosed(text, "/*", "*/", false) {
        push_if_long(text, Span::new(open + 2, close), "a comment", found);
    }
}

/// Finds texts that a script writes or prints: `<<'EOF'` up to the line `EOF`.
fn find_here_documents(text: &str, found: &mut Vec<HiddenText>) {
    let mut open: Option<(&str, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        match open {
            Some((name, start)) if line.trim() == name => {
                push_if_long(text, Span::new(start, at), "a text that the script writes", found);
                open = None;
            }
            Some(_) => {}
            None => open = here_document_end(line).map(|name| (name, at + line.len())),
        }
        at += line.len();
    }
    // A here-document that never ends extends to the end of the script.
    if let Some((_, start)) = open {
        push_if_long(text, Span::new(start, text.len()), "a text that the script writes", found);
    }
}

/// Finds multi-line values of variables.
fn find_long_values(text: &str, found: &mut Vec<HiddenText>) {
    for mark in ["='", "=\""] {
        for (at, _) in text.match_indices(mark) {
            let start = at + mark.len();
            let Some(len) = text[start..].find(&mark[1..]) else { continue };
            if text[start..start + len].contains('\n') {
                let span = Span::new(start, start + len);
                push_if_long(text, span, "a text that the script writes", found);
            }
        }
    }
}

/// Returns the end mark of a here-document that begins on a line.
fn here_document_end(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("<<")?;
    let number = before.trim_end().ends_with(|c: char| c.is_ascii_digit() || c == ')');
    let rest = rest.trim_start_matches(['-', '~', ' ']).trim_start_matches(['\'', '"', '\\']);
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let name = &rest[..end];
    (!name.is_empty() && !number && !name.starts_with(|c: char| c.is_ascii_digit())).then_some(name)
}

/// Returns the ranges of texts between two marks, found in one pass. With `to_end`, an unclosed
/// text extends to the end.
fn find_enclosed(text: &str, open: &str, close: &str, to_end: bool) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find(open).map(|start| at + start) {
        let inner = start + open.len();
        let Some(end) = text[inner..].find(close) else {
            found.extend(to_end.then_some((start, text.len())));
            break;
        };
        found.push((start, inner + end));
        at = inner + end;
    }
    found
}

/// Finds long strings and cells of data files.
fn find_strings(text: &str, found: &mut Vec<HiddenText>) {
    let (mut at, mut done) = (0, 0);
    for line in text.split_inclusive('\n') {
        if at >= done && line.split_whitespace().count() >= 8 {
            // The following lines belong to a multi-line value.
            let mut end = at + line.len();
            for next in text[end..].split_inclusive('\n').take(6) {
                if next.split_whitespace().count() < 5 {
                    break;
                }
                end += next.len();
            }
            push_if_long(text, Span::new(at, end), "a value of a data file", found);
            done = end;
        }
        at += line.len();
    }
}
