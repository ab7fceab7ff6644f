//! Finds the element at an offset of a parsed SKILL.md: a field, a placeholder, a link.

use std::path::PathBuf;

use savoir_lint::Span;
use savoir_skill::{
    Dialect, Document,
    template::{self, Grammar, claude},
    yaml::{Entry, Node, NodeData},
};

use crate::schema::Step;

/// The entry whose key is at an offset, with the path that ends with its key.
pub(crate) fn key_at(document: &Document, offset: usize) -> Option<(Vec<Step>, &Entry)> {
    key_in(document.fields()?, offset, &mut Vec::new())
}

fn key_in<'a>(
    node: &'a Node,
    offset: usize,
    path: &mut Vec<Step>,
) -> Option<(Vec<Step>, &'a Entry)> {
    match &node.data {
        NodeData::Mapping { entries, .. } => entries.iter().find_map(|entry| {
            path.push(Step::Key(entry.key.clone()));
            let found = if touches(entry.key_span, offset) {
                Some((path.clone(), entry))
            } else {
                key_in(&entry.value, offset, path)
            };
            path.pop();
            found
        }),
        NodeData::Sequence { items, .. } => {
            path.push(Step::Item);
            let found = items.iter().find_map(|item| key_in(item, offset, path));
            path.pop();
            found
        }
        NodeData::Scalar { .. } => None,
    }
}

/// Whether the cursor is in a span or at its end.
pub(crate) fn touches(span: Span, offset: usize) -> bool {
    span.start <= offset && offset <= span.end && !span.is_empty()
}

/// How a dialect writes placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// `$ARGUMENTS`, `$name`
    Arguments,
    /// `{{name}}`
    Braces(Grammar),
    /// `{baseDir}`
    BaseDir,
    None,
}

pub(crate) fn syntax(dialect: Dialect) -> Syntax {
    let known = [
        (Dialect::CLAUDE_CODE, Syntax::Arguments),
        (Dialect::AGENT_FLOW, Syntax::Braces(Grammar::AgentFlow)),
        (Dialect::SKILLRT, Syntax::Braces(Grammar::Skillrt)),
        (Dialect::OPENCLAW, Syntax::BaseDir),
    ];
    let found = known.into_iter().find(|(known, _)| *known == dialect);
    found.map_or(Syntax::None, |(_, syntax)| syntax)
}

/// A placeholder of an input in the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlaceholderUse {
    /// The name of the input.
    pub(crate) name: String,
    pub(crate) span: Span,
}

/// The placeholders of inputs in the body, in order.
pub(crate) fn placeholders(document: &Document, dialect: Dialect) -> Vec<PlaceholderUse> {
    let body = document.body();
    let start = document.body_span().start;
    let shift = |span: std::ops::Range<usize>| Span::new(span.start, span.end).shifted(start);
    let syntax = syntax(dialect);
    if syntax == Syntax::Arguments {
        let names: Vec<String> =
            declarations(document, dialect).into_iter().map(|(name, _)| name).collect();
        let uses = claude::scan(body, &names).into_iter().filter_map(|found| {
            let name = match found.target {
                claude::Target::Name(at) | claude::Target::Position(at) => names.get(at)?.clone(),
                _ => return None,
            };
            Some(PlaceholderUse { name, span: shift(found.span) })
        });
        return uses.collect();
    }
    let Syntax::Braces(grammar) = syntax else { return Vec::new() };
    let uses = template::scan(body, grammar).into_iter();
    uses.map(|found| PlaceholderUse { name: found.name, span: shift(found.span) }).collect()
}

/// The inputs that the frontmatter declares, each with the place of its name.
pub(crate) fn declarations(document: &Document, dialect: Dialect) -> Vec<(String, Span)> {
    if syntax(dialect) == Syntax::Arguments {
        let Some(node) = document.field("arguments") else { return Vec::new() };
        return match (node.items(), node.text()) {
            (Some(items), _) => {
                items.iter().filter_map(|item| Some((item.text()?.to_owned(), item.span))).collect()
            }
            (None, Some(text)) => {
                text.split_whitespace().map(|name| (name.to_owned(), node.span)).collect()
            }
            (None, None) => Vec::new(),
        };
    }
    let items = document.field("inputs").and_then(Node::items).unwrap_or_default();
    let name = |item: &Node| {
        let name = item.get("name")?;
        Some((name.text()?.to_owned(), name.span))
    };
    items.iter().filter_map(name).collect()
}

/// A link of the body to a file of the skill or to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BodyLink {
    pub(crate) span: Span,
    pub(crate) target: LinkTarget,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkTarget {
    File(PathBuf),
    Address(String),
}

/// Maximum length of a path in backticks that may name a file.
const MAX_PATH_BYTES: usize = 256;

/// Links, and paths in backticks that name a file of the skill.
pub(crate) fn links(document: &Document, folder: Option<&savoir_skill::Folder>) -> Vec<BodyLink> {
    let (text, body) = (document.text(), document.body_span());
    let mut links: Vec<BodyLink> = Vec::new();
    for link in document.outline().links(text, body) {
        let written = link.target.slice(text);
        let target = if written.contains("://") || written.starts_with("mailto:") {
            LinkTarget::Address(written.to_owned())
        } else {
            let path = written.split(['#', '?']).next().unwrap_or_default();
            let Some(folder) = folder.filter(|_| !path.is_empty()) else { continue };
            LinkTarget::File(folder.root().join(decode(path)))
        };
        links.push(BodyLink { span: link.target, target });
    }
    if let Some(folder) = folder {
        links.extend(paths_in_code(text, body, folder));
    }
    links.sort_by_key(|link| link.span.start);
    links
}

/// A path of a link, in which blanks are written as `%20`.
fn decode(path: &str) -> String {
    path.replace("%20", " ")
}

fn paths_in_code<'a>(
    text: &'a str,
    body: Span,
    folder: &'a savoir_skill::Folder,
) -> impl Iterator<Item = BodyLink> + 'a {
    let files: std::collections::HashSet<&str> =
        folder.files().iter().map(|file| file.path.as_str()).collect();
    let mut at = body.start;
    body.slice(text).split('`').filter_map(move |part| {
        let start = at;
        at += part.len() + 1;
        let is_path = part.len() <= MAX_PATH_BYTES && part.contains(['/', '.']);
        let path = part.strip_prefix("./").unwrap_or(part);
        (is_path && files.contains(path)).then(|| BodyLink {
            span: Span::new(start, start + part.len()),
            target: LinkTarget::File(folder.root().join(path)),
        })
    })
}

#[cfg(test)]
mod tests {
    use savoir_skill::{Folder, Source, folder::File, read};

    use super::*;

    #[test]
    fn keys_are_found_with_their_path() {
        let text = "---\nname: a\ninputs:\n  - name: x\n    type: text\n---\n{{x}}\n";
        let reading = read(Source::new(text.into()), None);
        let (path, entry) = key_at(&reading.document, text.find("type").unwrap() + 2).unwrap();
        assert_eq!(entry.key, "type");
        assert_eq!(path.len(), 3);
        let uses = placeholders(&reading.document, reading.detection.dialect);
        assert_eq!(uses[0].span.slice(text), "{{x}}");
        assert_eq!(declarations(&reading.document, reading.detection.dialect)[0].0, "x");
    }

    #[test]
    fn links_and_paths_in_code_are_found() {
        let text = "---\nname: a\ndescription: d\n---\n[x](a%20b.md#top), `scripts/run.sh`, `rm -rf /`, <https://a.example>\n[y](https://b.example)\n";
        let files = ["SKILL.md", "a b.md", "scripts/run.sh"];
        let files = files.map(|path| File { path: path.into(), link: false }).to_vec();
        let folder = Folder::in_memory(Some("s"), files, |_| None);
        let reading = read(Source::new(text.into()), Some(&folder));
        let links = links(&reading.document, Some(&folder));
        let targets: Vec<_> = links.into_iter().map(|link| link.target).collect();
        assert_eq!(
            targets,
            [
                LinkTarget::File("s/a b.md".into()),
                LinkTarget::File("s/scripts/run.sh".into()),
                LinkTarget::Address("https://b.example".into()),
            ]
        );
    }
}
