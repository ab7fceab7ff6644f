//! Converts a skill to prose, which has no fields: the frontmatter is stored in an HTML comment.

use serde::{Deserialize, Serialize};

use super::stash::{Original, byte_order_mark, newline};
use crate::{dialect::Dialect, document::Document, frontmatter::Layout};

const COMMENT_START: &str = "<!-- savoir: ";
const COMMENT_END: &str = " -->";

/// The content of the comment.
#[derive(Debug, Serialize, Deserialize)]
struct Comment {
    from: String,
    /// Everything before the body, including byte order mark and fences.
    head: String,
    /// The line ending that was inserted before the comment, if the body has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    joined: String,
}

/// Returns the body of a document with a comment that stores the frontmatter.
pub(super) fn write(document: &Document, from: Dialect) -> Option<String> {
    let head = document.text().get(..document.body_span().start)?;
    let body = document.body();
    let newline = newline(document.text());
    let fenced = Layout::new(body, Dialect::PROSE.fences()).block.is_some();
    let ended = fenced || body.is_empty() || body.ends_with('\n');
    let joined = if ended { "" } else { newline };
    let comment =
        Comment { from: from.id().to_owned(), head: head.to_owned(), joined: joined.to_owned() };
    // The JSON must not end the comment, and some parsers reject two hyphens.
    let json = serde_json::to_string(&comment).ok()?.replace("--", "-\\u002d");
    let json = json.replace('<', "\\u003c").replace('>', "\\u003e");
    let comment = format!("{COMMENT_START}{json}{COMMENT_END}{newline}");
    let mark = byte_order_mark(document);
    // A body that begins with a fence would be read as frontmatter, so the comment comes first.
    Some(if fenced {
        format!("{mark}{comment}{body}")
    } else {
        format!("{mark}{body}{joined}{comment}")
    })
}

/// Restores the file that a comment stores, with the current body.
pub(super) fn original(document: &Document) -> Option<Original> {
    if document.layout().closed_block().is_some() {
        return None;
    }
    let text = document.body();
    let start = text.rfind(COMMENT_START)?;
    let (before, rest) = text.split_at_checked(start)?;
    let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let json = line.trim_end().strip_prefix(COMMENT_START)?.strip_suffix(COMMENT_END)?;
    let comment: Comment = serde_json::from_str(json).ok()?;
    let dialect = comment.from.parse().ok()?;
    let before = match after {
        "" => before.strip_suffix(&comment.joined).unwrap_or(before),
        _ => before,
    };
    Some(Original { dialect, text: format!("{}{before}{after}", comment.head) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use savoir_lint::Source;

    fn document(text: &str) -> Document {
        Document::parse(Source::new(text.to_owned()))
    }

    #[test]
    fn the_comment_cannot_end_early() {
        let text = "---\nname: \"--> <b>\"\n---\nBody";
        let prose = write(&document(text), Dialect::GAIA).unwrap();
        assert_eq!(prose.matches("-->").count(), 1);
        assert!(prose.starts_with("Body\n<!-- savoir: "));
        assert_eq!(original(&document(&prose)).unwrap().text, text);
    }

    #[test]
    fn body_that_starts_with_a_rule_follows_the_comment() {
        let text = "---\nname: x\n---\n\n---\nnot: fields\n---\n";
        let prose = write(&document(text), Dialect::GAIA).unwrap();
        assert!(prose.starts_with("<!-- savoir: "));
        assert_eq!(original(&document(&prose)).unwrap().text, text);
    }
}
