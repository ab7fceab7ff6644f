//! Finds names and descriptions that are still templates.

use savoir_lint::{Diagnostic, Span};

use super::placeholder_text::is_note;
use crate::{
    check::{Context, rule::rule},
    dialect::is_template_description,
    document::{Document, State},
    yaml::Node,
};

rule! {
    /// The name or the description is still a template.
    ///
    /// ## Why
    ///
    /// The file was copied and never filled in. Hosts show the braces or the note to the model,
    /// which does not learn from them when to use the skill.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: "[TODO: say what the skill does and when to use it]"
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
    UNRENDERED_TEMPLATE = "unrendered-template", Warning, run unrendered_template
}

fn unrendered_template(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let document = &context.reading.document;
    for key in ["name", "description"] {
        // Braces without quotes are a map to YAML, so the source is looked at, not the value.
        let span = match document.field(key) {
            Some(node) if document.state() != State::Unreadable => Some(node.span),
            _ => line_of(document, key),
        };
        let Some(span) = span else { continue };
        let source = span.slice(document.text());
        // Another rule reports empty texts. After `>` and `|`, the text is on the next lines.
        let is_empty = |c: char| c.is_whitespace() || "'\">|+-".contains(c);
        if source.trim_matches(is_empty).is_empty() {
            continue;
        }
        let braces = braces(source).filter(|braces| key == "name" || encloses(source, braces));
        let whole = (key == "description" && !source.trim().is_empty() && is_note(source))
            .then(|| source.trim());
        let template =
            document.field(key).and_then(Node::text).is_some_and(is_template_description);
        let whole = whole.or_else(|| template.then(|| source.trim()));
        let Some(leftover) = braces.or_else(|| author_note(source)).or(whole) else { continue };
        found.push(
            Diagnostic::warning(
                UNRENDERED_TEMPLATE.code,
                span,
                format!("`{key}` still has the placeholder `{leftover}`"),
            )
            .field(key)
            .help("put the real text in its place"),
        );
    }
}

/// The value on the line of a key in a frontmatter that cannot be read.
fn line_of(document: &Document, key: &str) -> Option<Span> {
    let block = document.layout().closed_block()?;
    let mut at = block.yaml.start;
    for line in block.yaml.slice(document.text()).split_inclusive('\n') {
        if let Some(value) = line.strip_prefix(key).and_then(|rest| rest.strip_prefix(':')) {
            let start = at + line.len() - value.trim_start().len();
            return Some(Span::new(start, start + value.trim().len()));
        }
        at += line.len();
    }
    None
}

/// Returns a note of the author, such as `TODO`.
fn author_note(source: &str) -> Option<&str> {
    if let Some(at) = source.find("[TODO") {
        return source.get(at..at + 5);
    }
    let start = source.trim_start_matches(['"', '\'', ' ', '>', '|', '\n', '-']);
    start.starts_with("TODO:").then(|| &start[..5])
}

/// Whether a text starts or ends with the braces; in between they may be part of the topic.
fn encloses(source: &str, braces: &str) -> bool {
    let bare = source.trim_matches(['"', '\'', ' ', '>', '|', '\n', '-', '.']);
    bare.starts_with(braces) || bare.ends_with(braces)
}

/// `{{ word }}`
fn braces(source: &str) -> Option<&str> {
    let open = source.find("{{")?;
    let inside = &source[open + 2..];
    let length = inside.find("}}")?;
    let word = inside[..length].trim();
    let is_word = !word.is_empty()
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    is_word.then(|| &source[open..open + length + 4])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rules::testing::find;

    #[test]
    fn signs_of_a_template() {
        let count = |name: &str, description: &str| {
            let text = format!("---\nname: {name}\ndescription: {description}\n---\n# x\n");
            find(UNRENDERED_TEMPLATE.code, &text).len()
        };
        for (description, expected) in [
            ("\"{{description}}\"", 1),
            ("\"Works on {{ topic }}.\"", 1),
            ("\"[TODO: what and when]\"", 1),
            ("'TODO: write'", 1),
            (">\n  TODO: write", 1),
            ("''", 0),
            ("\"\"", 0),
            ("Finds TODO: comments", 0),
            ("TODOs of a project", 0),
            ("\"Puts {{date}} into notes. Use when taking notes.\"", 0),
            ("Renders {{ }} and {{ a b }}", 0),
        ] {
            assert_eq!(count("demo", description), expected, "{description}");
        }
        assert_eq!(count("\"my-{{name}}-x\"", "Shows a rule."), 1);
    }

    #[test]
    fn description_of_a_new_skill() {
        let new = crate::dialect::template_description("demo");
        for description in [new.clone(), format!("\"{new}\""), format!(">-\n  {new}")] {
            let text = format!("---\nname: demo\ndescription: {description}\n---\n# x\n");
            assert_eq!(find(UNRENDERED_TEMPLATE.code, &text).len(), 1, "{text}");
        }
    }

    #[test]
    fn mark_of_a_block_scalar_is_not_a_placeholder() {
        for mark in [">", "|-"] {
            let text = format!("---\nname: x\ndescription: {mark}\n  A.\nB: [\n---\n# x\n");
            assert_eq!(find(UNRENDERED_TEMPLATE.code, &text).len(), 0, "{mark}");
        }
    }

    #[test]
    fn braces_that_yaml_takes_for_a_map() {
        let text = "---\nname: {{project_name}}\ndescription: d\n---\n# x\n";
        assert_eq!(find(UNRENDERED_TEMPLATE.code, text).len(), 1);
    }
}
