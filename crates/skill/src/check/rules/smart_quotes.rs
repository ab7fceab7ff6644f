//! Finds typographic quotes around YAML values.

use savoir_lint::{Diagnostic, Edit, Fix};

use crate::{
    check::{Context, rule::rule},
    document::State,
    yaml::{Node, NodeData, Style},
};

rule! {
    /// A value is in typographic quotes.
    ///
    /// ## Why
    ///
    /// YAML reads them as letters: they become part of the value and do not quote it, so a colon
    /// or a hash inside them breaks the file. They come from word processors.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: “Shows a rule. Use when learning.”
    /// ---
    /// # Demo
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: "Shows a rule. Use when learning."
    /// ---
    /// # Demo
    /// ````
    SMART_QUOTES = "smart-quotes", Warning, fix Unsafe, run smart_quotes
}

fn smart_quotes(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let document = &context.reading.document;
    let (Some(block), Some(fields)) = (document.layout().closed_block(), document.fields()) else {
        return;
    };
    if document.state() == State::Clean && !block.yaml.slice(document.text()).is_ascii() {
        visit(fields, document.text(), found);
    }
}

fn visit(node: &Node, text: &str, found: &mut Vec<Diagnostic>) {
    match &node.data {
        NodeData::Scalar { text: value, style: Style::Plain } => {
            // A value over several lines is folded; its source is left alone.
            if node.span.slice(text) == value
                && let Some(inner) = quoted(value)
            {
                found.push(problem(node, inner));
            }
        }
        NodeData::Scalar { .. } => {}
        NodeData::Sequence { items, .. } => items.iter().for_each(|item| visit(item, text, found)),
        NodeData::Mapping { entries, .. } => {
            for entry in entries {
                visit(&entry.value, text, found);
            }
        }
    }
}

/// Returns the text between typographic quotes that enclose the whole value.
fn quoted(value: &str) -> Option<&str> {
    let double = |c: char| matches!(c, '“' | '”' | '„' | '‟');
    let single = |c: char| matches!(c, '‘' | '’' | '‚' | '‛');
    let inner = value.strip_prefix(double).and_then(|rest| rest.strip_suffix(double));
    if let Some(inner) = inner {
        // Two quotations in a row only look enclosed.
        return (!inner.contains(double)).then_some(inner);
    }
    let inner = value.strip_prefix(['‘', '‚', '‛', '’'])?.strip_suffix(single)?;
    (!inner.contains(['‘', '‚', '‛'])).then_some(inner)
}

fn problem(node: &Node, inner: &str) -> Diagnostic {
    let plain = format!("\"{}\"", inner.replace('\\', "\\\\").replace('"', "\\\""));
    Diagnostic::warning(
        SMART_QUOTES.code,
        node.span,
        "typographic quotes are part of the value, not around it",
    )
    .help("use plain quotes")
    .fix(Fix::unsafe_edits(vec![Edit::replace(node.span, plain)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rules::testing::{find, fixed};

    #[test]
    fn only_enclosing_quotes_are_reported() {
        for (value, expected) in [
            ("“a”", Some("a")),
            ("”a”", Some("a")),
            ("„a“", Some("a")),
            ("‘it’s’", Some("it’s")),
            ("“a” and “b”", None),
            ("“a” b", None),
            ("a “b”", None),
            ("\"a\"", None),
            ("”", None),
        ] {
            assert_eq!(quoted(value), expected, "{value}");
        }
    }

    #[test]
    fn the_fix_keeps_what_is_inside() {
        let text = "---\nname: x\ndescription: “Say \"hi\" \\ é”\n---\n# x\n";
        let expected = "---\nname: x\ndescription: \"Say \\\"hi\\\" \\\\ é\"\n---\n# x\n";
        assert_eq!(fixed(SMART_QUOTES.code, text).as_deref(), Some(expected));
        assert!(find(SMART_QUOTES.code, expected).is_empty());
    }
}
