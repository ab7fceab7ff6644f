//! Repairs frontmatter whose fences are missing, misplaced or wrapped.

use savoir_lint::{Edit, Safety, Span};

use super::{Repair, lines::split};
use crate::frontmatter::{Block, line_at};

/// Looks for a frontmatter in a file that does not begin with one.
pub(crate) fn find_block(text: &str, bom: usize) -> Option<Repair> {
    wrapped_in_code(text, bom).or_else(|| leading_blank(text, bom)).or_else(|| bare_yaml(text, bom))
}

/// Finds the place where a forgotten closing fence belongs.
pub(crate) fn close_block(text: &str, block: &Block) -> Option<Repair> {
    let end = run_of_entries(text, block.yaml.start)?;
    let is_open = open_brackets(&text[block.yaml.start..end]) > 0;
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
        // Nobody knows where the bracket was to end.
        safety: if is_open { Safety::Unsafe } else { Safety::Safe },
    })
}

/// The whole file is inside a code block.
fn wrapped_in_code(text: &str, bom: usize) -> Option<Repair> {
    let (first, next) = line_at(text, bom);
    let opening = first.slice(text);
    let info = opening.trim_start_matches('`');
    let fence = &opening[..opening.len() - info.len()];
    if fence.len() < 3 {
        return None;
    }
    let (second, _) = line_at(text, next);
    if info.contains('`') || second.slice(text).trim_end() != "---" {
        return None;
    }
    let mut edits = vec![Edit::delete(Span::new(bom, next))];
    let last = text.trim_end().len();
    let last_line = text[..last].rfind('\n').map_or(0, |at| at + 1);
    if last_line > next && &text[last_line..last] == fence {
        edits.push(Edit::delete(Span::new(last_line, text.len())));
    }
    Some(Repair {
        code: "code-fenced",
        message: "the whole file is inside a code block".into(),
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
                message: "there are blank lines before the frontmatter".into(),
                help: "start the file with `---`",
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
    // Whether the last line of the run leaves a bracket open, or is a key whose map may follow.
    let (mut open, mut expects_map) = (0, false);
    for line in split(rest) {
        let content = line.content(rest);
        if line.is_blank {
            // A blank line may be inside a value; the next lines decide.
            continue;
        }
        let is_key = line.indent == 0 && !line.is_item(rest) && line.key_value(rest).is_some();
        let is_comment = line.indent == 0 && content.starts_with("# ") && end.is_none();
        let adjacent = end == Some(line.span.start);
        let in_brackets = open > 0 || expects_map && adjacent && content.starts_with(['{', '[']);
        let continues =
            in_entry && (line.indent > 0 || line.is_item(rest) && adjacent || in_brackets);
        if !(is_key && (end.is_none() || adjacent || in_entry && is_field(content))
            || is_comment
            || continues)
        {
            break;
        }
        in_entry |= is_key;
        end = Some(line.next);
        let pair = line.key_value(rest).filter(|_| is_key && open == 0);
        expects_map = pair.is_some_and(|pair| pair.value.is_empty());
        let value = match pair {
            Some(pair) if pair.value.slice(rest).starts_with(['{', '[']) => pair.value.slice(rest),
            None if in_brackets => content,
            _ => "",
        };
        open = (open + bracket_balance(value)).max(0);
    }
    end.filter(|_| in_entry).map(|end| start + end)
}

/// How many brackets of flow style are open at the end of some lines.
fn open_brackets(yaml: &str) -> i32 {
    let mut open = 0;
    for line in split(yaml) {
        let value = match line.key_value(yaml) {
            Some(pair) if open == 0 => pair.value.slice(yaml),
            _ => line.content(yaml),
        };
        if open > 0 || value.starts_with(['{', '[']) {
            open = (open + bracket_balance(value)).max(0);
        }
    }
    open
}

/// Brackets that a line opens, less those that it closes, outside of double quotes.
fn bracket_balance(line: &str) -> i32 {
    let mut balance = 0;
    let mut quoted = false;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if quoted => {
                letters.next();
            }
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => balance += 1,
            '}' | ']' if !quoted => balance -= 1,
            _ => {}
        }
    }
    balance
}

/// Whether a line after a blank line is a known field; `Note: …` is the body.
fn is_field(content: &str) -> bool {
    const FIELDS: [&str; 12] = [
        "name", "description", "version", "license", "metadata", "allowed-tools", "compatibility",
        "author", "tags", "inputs", "tools", "permissions",
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
    fn fence_is_not_inserted_inside_a_bracket() {
        let json = "---\nname: a\nmetadata: {\n\"a\": {\n  \"b\": \"}\"\n}\n}\n";
        assert_eq!(closed(&format!("{json}\n# T\n")), format!("{json}---\n\n# T\n"));
        let below = "---\nname: a\nmetadata:\n{\n  \"a\": 1\n}\n";
        assert_eq!(closed(&format!("{below}\n# T\n")), format!("{below}---\n\n# T\n"));
        let open = "---\nname: a\nmetadata: {\n  \"a\": 1\n";
        let block = Layout::new(open, Fences::LENIENT).block.unwrap();
        let repair = close_block(open, &block).unwrap();
        assert_eq!(repair.safety, Safety::Unsafe);
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
        assert_eq!(found("````skill\n---\na: 1\n---\nb\n````\n"), "---\na: 1\n---\nb\n");
        assert_eq!(found("\n\n---\na: 1\n---\n"), "---\na: 1\n---\n");
        assert_eq!(
            found("name: a\ndescription: b\n\n# T\n"),
            "---\nname: a\ndescription: b\n---\n\n# T\n"
        );
        assert_eq!(found("name: a\n---\n# T\n"), "---\nname: a\n---\n# T\n");
        assert_eq!(find_block("# Title\n", 0), None);
    }
}
