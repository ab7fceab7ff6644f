//! Finds bodies with a second frontmatter, an unclosed code block, or only the path of another
//! file.

use savoir_lint::{Diagnostic, Span};

use crate::{
    check::{Context, rule::rule},
    document::Document,
    frontmatter::line_at,
};

rule! {
    /// The body starts with another block of frontmatter.
    ///
    /// ## Why
    ///
    /// Only the first block is read. The second one, usually left by a converter, is shown to the
    /// agent as text, and its fields have no effect.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    ///
    /// ---
    /// name: older-demo
    /// description: What the skill said before.
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
    SECOND_FRONTMATTER = "second-frontmatter", Warning, run second_frontmatter
}

/// Most lines of a second block that are looked at.
const MAX_BLOCK_LINES: usize = 200;

fn second_frontmatter(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let document = &context.reading.document;
    if document.layout().closed_block().is_none() {
        return;
    }
    let body = document.body();
    let blank = body.len() - body.trim_start().len();
    let start = document.body_span().start + blank;
    if !body[blank..].starts_with("---") {
        return;
    }
    if let Some(block) = block_at(document.text(), start) {
        let message = "a second frontmatter starts here and is read as text";
        found.push(
            Diagnostic::warning(SECOND_FRONTMATTER.code, block, message)
                .help("move the fields that matter into the first one, and delete this one"),
        );
    }
}

/// The fenced block of fields at `start`.
fn block_at(text: &str, start: usize) -> Option<Span> {
    let (open, mut at) = line_at(text, start);
    if open.slice(text).trim_end() != "---" {
        return None;
    }
    let mut keys = 0usize;
    let mut known = false;
    for _ in 0..MAX_BLOCK_LINES {
        let (span, next) = line_at(text, at);
        let line = span.slice(text);
        if line.trim_end() == "---" {
            // A thematic break, a note and another break are text.
            return (known || keys > 1).then_some(Span::new(open.start, span.end));
        }
        if let Some(key) = key_of(line) {
            keys += 1;
            known |= matches!(key, "name" | "description");
        } else if !line.trim().is_empty() && !line.starts_with([' ', '\t', '-', '#']) {
            return None;
        }
        if next >= text.len() {
            return None;
        }
        at = next;
    }
    None
}

/// The key of `key: value` at the start of a line.
fn key_of(line: &str) -> Option<&str> {
    let (key, value) = line.split_once(':')?;
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let fine = key.starts_with(|c: char| c.is_ascii_lowercase()) && key.chars().all(word);
    (fine && (value.is_empty() || value.starts_with([' ', '\r']))).then_some(key)
}

rule! {
    /// A fenced code block is never closed.
    ///
    /// ## Why
    ///
    /// Markdown readers treat everything below it as code: headings, links and tools there are
    /// ignored. The usual cause is a code block inside another one with the same fence.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// ```bash
    /// echo hello
    ///
    /// ## Next step
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// ```bash
    /// echo hello
    /// ```
    ///
    /// ## Next step
    /// ````
    UNCLOSED_CODE_FENCE = "unclosed-code-fence", Warning, run unclosed_code_fence
}

fn unclosed_code_fence(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let document = &context.reading.document;
    let Some(fence) = document.outline().fences.last().filter(|fence| !fence.closed) else {
        return;
    };
    let (line, _) = line_at(document.text(), fence.whole.start);
    let message = "the code block that starts here is never closed";
    let nested = document.outline().fences.len() > 1;
    found.push(Diagnostic::warning(UNCLOSED_CODE_FENCE.code, line, message).help(if nested {
        "close it; a block that contains another one needs a longer fence, such as four backticks"
    } else {
        "close it with a fence of its own line"
    }));
}

rule! {
    /// The file or its body is only the path of another file.
    ///
    /// ## Why
    ///
    /// It is a symbolic link that was copied as text, or an include that no host resolves: the
    /// agent gets the path instead of the instructions.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// @../../shared/demo/SKILL.md
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Say hello in the language of the user.
    /// ````
    INCLUDE_STUB = "include-stub", Error, run include_stub
}

fn include_stub(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let document = &context.reading.document;
    let Some(span) = stub(document) else { return };
    let path = span.slice(document.text());
    let (message, help) = if document.layout().block.is_some() || path.starts_with('@') {
        (
            format!("the body is only the include `{path}`"),
            "put the instructions here; hosts do not resolve includes",
        )
    } else {
        (
            format!("the file is only the path `{path}`, a link that was stored as text"),
            "put the file itself here, or check out with symbolic links",
        )
    };
    found.push(Diagnostic::error(INCLUDE_STUB.code, span, message).help(help));
}

/// Longest path that is looked at.
const MAX_PATH_BYTES: usize = 512;

fn stub(document: &Document) -> Option<Span> {
    let body = document.body();
    // Cheap for every body that is not one short line.
    if body.len() > MAX_PATH_BYTES * 2 {
        return None;
    }
    let path = body.trim();
    let start = document.body_span().start + (body.len() - body.trim_start().len());
    let include = path.strip_prefix('@');
    let bare = include.unwrap_or(path);
    let file = bare.rsplit('/').next().unwrap_or_default();
    let is_path = !path.is_empty()
        && path.len() <= MAX_PATH_BYTES
        && !path.contains(|c: char| c.is_whitespace() || matches!(c, '(' | '<' | '`' | '*'))
        && !path.contains("://")
        && (include.is_some() || document.layout().block.is_none())
        && bare.contains('/')
        && file.contains('.');
    is_path.then(|| Span::new(start, start + path.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rules::testing::{find, skill};

    #[test]
    fn a_second_block_has_fields() {
        let count = |body: &str| find(SECOND_FRONTMATTER.code, &skill(body)).len();
        assert_eq!(count("---\nname: x\n---\ntext\n"), 1);
        assert_eq!(count("\n\n---\nhooks:\n  - a\nversion: 1\n---\n"), 1);
        assert_eq!(count("---\nnote: this is text\n---\n"), 0);
        assert_eq!(count("---\nNote: text\nTip: text\n---\n"), 0);
        assert_eq!(count("---\n\n# Title\n\n---\n"), 0);
        assert_eq!(count("---\nname: x\ndescription: y\n"), 0);
        assert_eq!(count("-----\nname: x\n---\n"), 0);
    }

    #[test]
    fn the_last_fence_counts() {
        let count = |body: &str| find(UNCLOSED_CODE_FENCE.code, &skill(body)).len();
        assert_eq!(count("```\ncode\n```\n"), 0);
        assert_eq!(count("```\ncode\n\n# x\n"), 1);
        assert_eq!(count("````md\n```sh\nls\n```\n````\n"), 0);
        assert_eq!(count("```md\n```sh\nls\n```\n```\ntext\n"), 1);
        assert_eq!(count("~~~\n```\n~~~\n"), 0);
    }

    #[test]
    fn a_path_alone_is_a_stub() {
        let count = |text: &str| find(INCLUDE_STUB.code, text).len();
        assert_eq!(count("../../../engineering/x/SKILL.md"), 1);
        assert_eq!(count("@../x/SKILL.md\n"), 1);
        assert_eq!(count(&skill("\n@../../a/b.md\n")), 1);
        assert_eq!(count(&skill("@someone\n")), 0);
        assert_eq!(count(&skill("references/a.md\n")), 0);
        assert_eq!(count(&skill("Read @../x/SKILL.md\n")), 0);
        assert_eq!(count("https://example.com/a.md"), 0);
        assert_eq!(count("Hello."), 0);
    }
}
