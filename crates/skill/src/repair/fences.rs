//! Frontmatter whose fences are missing, misplaced or wrapped.

use super::{Repair, lines::split};
use crate::{
    diagnostic::{Edit, Safety},
    frontmatter::{Block, line_at},
    source::Span,
};

/// Looks for a frontmatter in a file that does not begin with one.
pub(crate) fn find_block(text: &str, bom: usize) -> Option<Repair> {
    wrapped_in_code(text, bom).or_else(|| leading_blank(text, bom)).or_else(|| bare_yaml(text, bom))
}

/// Finds the place where a forgotten closing fence belongs.
pub(crate) fn close_block(text: &str, block: &Block) -> Option<Repair> {
    let end = run_of_entries(text, block.yaml.start)?;
    let newline = newline(text);
    let fence = if text[..end].ends_with('\n') {
        format!("---{newline}")
    } else {
        format!("{newline}---{newline}")
    };
    Some(Repair {
        code: "unclosed-frontmatter",
        message: "Missing closing '---': the frontmatter is never closed".into(),
        help: "add a line `---` after the last field",
        span: block.open,
        edits: vec![Edit::insert(end, fence)],
        safety: Safety::Safe,
    })
}

/// The whole file stands in a code block.
fn wrapped_in_code(text: &str, bom: usize) -> Option<Repair> {
    let (first, next) = line_at(text, bom);
    let info = first.slice(text).strip_prefix("```")?;
    let (second, _) = line_at(text, next);
    if info.contains('`') || second.slice(text).trim_end() != "---" {
        return None;
    }
    let mut edits = vec![Edit::delete(Span::new(bom, next))];
    let last = text.trim_end().len();
    let last_line = text[..last].rfind('\n').map_or(0, |at| at + 1);
    if last_line > next && &text[last_line..last] == "```" {
        edits.push(Edit::delete(Span::new(last_line, text.len())));
    }
    Some(Repair {
        code: "code-fenced",
        message: "the whole file stands in a code block".into(),
        help: "remove the lines of the code block",
        span: first,
        edits,
        safety: Safety::Safe,
    })
}

fn leading_blank(text: &str, bom: usize) -> Option<Repair> {
    let mut at = bom;
    while at < text.len() {
        let (line, next) = line_at(text, at);
        let content = line.slice(text);
        if !content.trim().is_empty() {
            let is_fence = content.trim_end() == "---";
            return (is_fence && at > bom).then(|| Repair {
                code: "blank-before-frontmatter",
                message: "blank lines stand before the frontmatter".into(),
                help: "begin the file with `---`",
                span: Span::new(at, at + 3),
                edits: vec![Edit::delete(Span::new(bom, at))],
                safety: Safety::Safe,
            });
        }
        at = next;
    }
    None
}

/// The file begins with `name: …` but has no fence.
fn bare_yaml(text: &str, bom: usize) -> Option<Repair> {
    let (first, _) = line_at(text, bom);
    let is_field = ["name:", "description:"].iter().any(|key| first.slice(text).starts_with(key));
    if !is_field {
        return None;
    }
    let end = run_of_entries(text, bom)?;
    let newline = newline(text);
    let mut edits = vec![Edit::insert(bom, format!("---{newline}"))];
    let (after, _) = line_at(text, end);
    if after.slice(text).trim_end() != "---" {
        let gap = if text[..end].ends_with('\n') { "" } else { newline };
        edits.push(Edit::insert(end, format!("{gap}---{newline}")));
    }
    Some(Repair {
        code: "missing-fence",
        message: "Missing opening '---': the fields are not fenced".into(),
        help: "put a line `---` before the first field and after the last",
        span: first,
        edits,
        safety: Safety::Safe,
    })
}

/// The end of the run of `key: value` lines that begins at `start`.
fn run_of_entries(text: &str, start: usize) -> Option<usize> {
    let rest = &text[start..];
    let mut end = None;
    let mut in_entry = false;
    for line in split(rest) {
        let content = line.content(rest);
        if line.blank {
            // A blank line may stand inside a value; what follows decides.
            continue;
        }
        let is_key = line.indent == 0 && !line.is_item(rest) && line.key(rest).is_some();
        let is_comment = line.indent == 0 && content.starts_with("# ") && end.is_none();
        let adjacent = end == Some(line.span.start);
        let continues = in_entry && (line.indent > 0 || line.is_item(rest) && adjacent);
        if !(is_key && (end.is_none() || adjacent || in_entry && is_field(content))
            || is_comment
            || continues)
        {
            break;
        }
        in_entry |= is_key;
        end = Some(line.next);
    }
    end.filter(|_| in_entry).map(|end| start + end)
}

/// After a blank line only a well-known field goes on; `Note: …` is the body.
fn is_field(content: &str) -> bool {
    const FIELDS: [&str; 12] = [
        "name",
        "description",
        "version",
        "license",
        "metadata",
        "allowed-tools",
        "compatibility",
        "author",
        "tags",
        "inputs",
        "tools",
        "permissions",
    ];
    content.split(':').next().is_some_and(|key| FIELDS.contains(&key))
}

fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        edit::apply,
        frontmatter::{Fences, Layout},
    };

    fn closed(text: &str) -> String {
        let block = Layout::new(text, Fences::LENIENT).block.unwrap();
        apply(text, &close_block(text, &block).unwrap().edits)
    }

    #[test]
    fn closes_after_the_last_field() {
        assert_eq!(closed("---\nname: a\nx: 1\n\n# T\n"), "---\nname: a\nx: 1\n---\n\n# T\n");
        assert_eq!(closed("---\nx:\n- a\n- b\n\nYou are\n"), "---\nx:\n- a\n- b\n---\n\nYou are\n");
        assert_eq!(closed("---\nname: a"), "---\nname: a\n---\n");
        assert_eq!(closed("---\r\na: 1\r\n\r\nb"), "---\r\na: 1\r\n---\r\n\r\nb");
    }

    #[test]
    fn prose_after_a_rule_is_not_closed() {
        let text = "---\n\nJust a rule then prose\n";
        let block = Layout::new(text, Fences::LENIENT).block.unwrap();
        assert_eq!(close_block(text, &block), None);
    }

    #[test]
    fn finds_wrapped_shifted_and_bare_frontmatter() {
        let found = |text: &str| apply(text, &find_block(text, 0).unwrap().edits);
        assert_eq!(found("```skill\n---\na: 1\n---\nb\n```\n"), "---\na: 1\n---\nb\n");
        assert_eq!(found("\n\n---\na: 1\n---\n"), "---\na: 1\n---\n");
        assert_eq!(
            found("name: a\ndescription: b\n\n# T\n"),
            "---\nname: a\ndescription: b\n---\n\n# T\n"
        );
        assert_eq!(found("name: a\n---\n# T\n"), "---\nname: a\n---\n# T\n");
        assert_eq!(find_block("# Title\n", 0), None);
    }
}
