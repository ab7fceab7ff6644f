//! Names and descriptions that nobody filled in.

use crate::{
    check::{Context, rule::rule},
    diagnostic::Diagnostic,
    document::{Document, State},
    source::Span,
};

rule! {
    /// The name or the description is still a template.
    ///
    /// ## Why
    ///
    /// The file was copied and never filled in. Hosts show the braces or the note to the model,
    /// which cannot tell from them when to use the skill.
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
        let Some(leftover) = leftover(span.slice(document.text())) else { continue };
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

/// The first sign of a template.
fn leftover(source: &str) -> Option<&str> {
    braces(source).or_else(|| {
        let start = source.trim_start_matches(['"', '\'', ' ', '>', '|', '\n', '-']);
        let note = ["TODO:", "TODO "].iter().any(|mark| start.starts_with(mark));
        source.find("[TODO").map(|at| &source[at..at + 5]).or_else(|| note.then(|| &start[..4]))
    })
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
        for (source, expected) in [
            ("{{project_name}}", Some("{{project_name}}")),
            ("\"Works on {{ topic }}.\"", Some("{{ topic }}")),
            ("[TODO: name]", Some("[TODO")),
            ("TODO: write", Some("TODO")),
            (">\n  TODO: write", Some("TODO")),
            ("Finds TODO: comments", None),
            ("TODOs of a project", None),
            ("Renders {{ }} and {{ a b }}", None),
            ("Object {{a: 1}}", None),
        ] {
            assert_eq!(leftover(source), expected, "{source}");
        }
    }

    #[test]
    fn braces_that_yaml_takes_for_a_map() {
        let text = "---\nname: {{project_name}}\ndescription: d\n---\n# x\n";
        assert_eq!(find(UNRENDERED_TEMPLATE.code, text).len(), 1);
    }
}
