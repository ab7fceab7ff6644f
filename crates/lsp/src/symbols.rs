//! Builds the outline of a SKILL.md: its fields and its headings.

use lsp_types::{DocumentSymbol, SymbolKind};
use savoir_lint::{Span, visible};
use savoir_skill::{
    markdown::Heading,
    yaml::{Entry, Node},
};

use crate::{open_file::OpenFile, state::State};

/// Longest value that the outline shows, in characters.
const MAX_DETAIL_CHARS: usize = 80;

pub(crate) fn of(state: &State, file: &OpenFile) -> Vec<DocumentSymbol> {
    let Some(checked) = state.checked(file) else { return Vec::new() };
    let document = &checked.reading.document;
    let mut symbols: Vec<DocumentSymbol> =
        document.entries().iter().map(|entry| field(file, entry)).collect();
    let headings = &document.outline().headings;
    symbols.extend(sections(file, headings, document.body_span().end));
    symbols
}

fn field(file: &OpenFile, entry: &Entry) -> DocumentSymbol {
    let children: Vec<DocumentSymbol> = match (entry.value.entries(), entry.value.items()) {
        (Some(entries), _) => entries.iter().map(|entry| field(file, entry)).collect(),
        (None, Some(items)) => items.iter().filter_map(|item| named_item(file, item)).collect(),
        (None, None) => Vec::new(),
    };
    let whole = Span::new(entry.key_span.start, entry.value.span.end.max(entry.key_span.end));
    let detail = entry.value.text().map(shorten);
    let kind = if children.is_empty() { SymbolKind::Property } else { SymbolKind::Object };
    symbol(file, (&entry.key, detail), kind, (whole, entry.key_span), children)
}

/// An item of `inputs` or `tools`, by its name.
fn named_item(file: &OpenFile, item: &Node) -> Option<DocumentSymbol> {
    let name = item.get("name")?;
    let text = name.text().filter(|text| !text.is_empty())?;
    let detail = item.get("type").and_then(Node::text).map(shorten);
    let spans = (item.span, name.span);
    Some(symbol(file, (text, detail), SymbolKind::Variable, spans, Vec::new()))
}

/// Headings as a tree: each contains the following ones of deeper levels.
fn sections(file: &OpenFile, headings: &[Heading], end: usize) -> Vec<DocumentSymbol> {
    let mut symbols = Vec::new();
    let mut rest = headings;
    while let Some((heading, below)) = rest.split_first() {
        let count = below.iter().take_while(|inner| inner.level > heading.level).count();
        let (inner, next) = below.split_at(count);
        let section_end = next.first().map_or(end, |next| next.line.start);
        let title = heading.title.slice(file.text());
        let title = if title.is_empty() { "(no title)" } else { title };
        let spans = (Span::new(heading.line.start, section_end), heading.line);
        let children = sections(file, inner, section_end);
        symbols.push(symbol(file, (title, None), SymbolKind::String, spans, children));
        rest = next;
    }
    symbols
}

fn symbol(
    file: &OpenFile,
    (name, detail): (&str, Option<String>),
    kind: SymbolKind,
    (whole, selection): (Span, Span),
    children: Vec<DocumentSymbol>,
) -> DocumentSymbol {
    // The protocol requires that the range contains the selection.
    let whole = Span::new(whole.start.min(selection.start), whole.end.max(selection.end));
    #[expect(deprecated, reason = "the field has no default")]
    DocumentSymbol {
        name: shorten(name),
        detail,
        kind,
        tags: None,
        deprecated: None,
        range: file.range(whole),
        selection_range: file.range(selection),
        children: (!children.is_empty()).then_some(children),
    }
}

fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let short: String = line.chars().take(MAX_DETAIL_CHARS).collect();
    visible(&short).into_owned()
}
