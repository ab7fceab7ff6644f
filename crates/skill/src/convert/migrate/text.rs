//! Writes the text of a migrated skill: the lines of the source with the changes applied.

use serde_json::Value;

use super::{MigrationNote, plan::MigrationPlan};
use crate::{
    convert::{
        field_lines::{FieldLines, FrontmatterLines},
        field_mapper::{top, top_keys, value_of},
        fields::WrittenField,
        metadata,
        stash::{self, newline, with_newlines},
    },
    dialect::Dialect,
    document::Document,
    yaml::{NodeData, Tree, YamlVersion, write::write_entry},
};

/// Key for values that GAIA would misread in their original place.
const SET_ASIDE_KEY: &str = "original";

/// Fields that GAIA ignores and that stay unchanged.
const PASSED_FIELDS: [&str; 2] = ["compatibility", "allowed-tools"];

/// Writes the text and adds notes about fields without a meaning in GAIA.
pub(super) fn write(plan: &mut MigrationPlan<'_>, written: &[WrittenField]) -> String {
    let document = plan.document;
    let newline = newline(document.text());
    let FrontmatterLines { preamble, fields, tail } = frontmatter_lines(document, newline);
    let own = top_keys(written);
    let consumed = plan.consumed.clone();
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut block = None;
    for source_lines in
        fields.into_iter().filter(|source_lines| !consumed.contains(&source_lines.key))
    {
        let key = source_lines.key.clone();
        if key == "metadata" {
            lines.push((key, String::new()));
            block = Some(source_lines);
        } else if own.contains(&key.as_str()) {
            let text = field(plan, source_lines, written, newline);
            lines.push((key, text));
        } else if is_read(&key) {
            set_aside(plan, &source_lines);
        } else {
            plan.notes.push(MigrationNote::new(key.clone(), "preserved; GAIA does not read it"));
            lines.push((key, source_lines.text));
        }
    }
    missing(&mut lines, written, newline);
    let block = block.and_then(|source_lines| mapping(plan, source_lines));
    let text = metadata(block.as_ref(), written, &plan.originals, newline);
    match lines.iter_mut().find(|(key, _)| key == "metadata") {
        Some((_, place)) => *place = text,
        None => lines.push(("metadata".into(), text)),
    }
    let lines: String = lines.into_iter().map(|(_, lines)| lines).collect();
    fenced(document, &format!("{preamble}{lines}{tail}"), newline)
}

fn frontmatter_lines(document: &Document, newline: &str) -> FrontmatterLines {
    let block = document.layout().closed_block().map(|block| block.yaml);
    let cut = block.and_then(|yaml| FrontmatterLines::cut(yaml.slice(document.text())));
    cut.unwrap_or_else(|| {
        let mut frontmatter_lines = FrontmatterLines::rewritten(document);
        for source_lines in &mut frontmatter_lines.fields {
            source_lines.text = with_newlines(&source_lines.text, newline);
        }
        frontmatter_lines
    })
}

/// Writes a field that GAIA has; keeps the source lines if they have the same value. A list or a
/// map with another value is stored separately.
fn field(
    plan: &mut MigrationPlan<'_>,
    source_lines: FieldLines,
    written: &[WrittenField],
    newline: &str,
) -> String {
    let value = value_of(written, &source_lines.key);
    let same = source_lines.value.to_value(YamlVersion::V1_1) == value;
    if same || PASSED_FIELDS.contains(&source_lines.key.as_str()) {
        return source_lines.text;
    }
    if source_lines.value.text().is_none() {
        set_aside(plan, &source_lines);
    }
    let before = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let comments: String = source_lines.text.split_inclusive('\n').take_while(before).collect();
    comments + &with_newlines(&write_entry(&source_lines.key, &value, 0), newline)
}

/// Whether GAIA reads a field of this name in any of its shapes.
fn is_read(key: &str) -> bool {
    let shapes = Dialect::GAIA.language().shapes();
    shapes.into_iter().flatten().any(|field| field.key == key)
}

fn set_aside(plan: &mut MigrationPlan<'_>, source_lines: &FieldLines) {
    let key = &source_lines.key;
    if !plan.originals.iter().any(|(known, _)| known == key) {
        plan.originals.push((key.clone(), source_lines.value.to_value(YamlVersion::V1_1)));
    }
    let message =
        format!("GAIA would read it as its own field; it is `metadata.{SET_ASIDE_KEY}.{key}` now");
    plan.notes.push(MigrationNote::review(key.clone(), message));
}

/// Returns `metadata` as a map, also if it is a JSON string; other values are stored separately.
fn mapping(plan: &mut MigrationPlan<'_>, mut source_lines: FieldLines) -> Option<FieldLines> {
    if let Some(text) = source_lines.value.text() {
        let read = Tree::parse(text).ok().and_then(|tree| tree.root);
        if let Some(root) = read.filter(|root| root.entries().is_some()) {
            plan.notes
                .push(MigrationNote::new("metadata", "it was a string of JSON and is a map now"));
            source_lines.text.clear();
            source_lines.value = root;
        }
    }
    match &source_lines.value.data {
        NodeData::Mapping { .. } => Some(source_lines),
        _ if source_lines.value.is_null(YamlVersion::V1_1) => None,
        _ => {
            set_aside(plan, &source_lines);
            None
        }
    }
}

/// Writes fields that GAIA needs and the source does not have, next to related fields.
fn missing(lines: &mut Vec<(String, String)>, written: &[WrittenField], newline: &str) {
    let mut at = 0;
    for key in top_keys(written).into_iter().filter(|key| *key != "metadata") {
        if let Some(found) = lines.iter().position(|(known, _)| known == key) {
            at = found + 1;
            continue;
        }
        let text = with_newlines(&write_entry(key, &value_of(written, key), 0), newline);
        lines.insert(at, (key.to_owned(), text));
        at += 1;
    }
}

fn metadata(
    block: Option<&FieldLines>,
    written: &[WrittenField],
    originals: &[(String, Value)],
    newline: &str,
) -> String {
    let aside: Vec<(String, &Value)> =
        originals.iter().map(|(key, value)| (format!("{SET_ASIDE_KEY}.{key}"), value)).collect();
    let own = written.iter().filter(|written| top(&written.path) == "metadata");
    let additions: Vec<(&str, &Value)> = own
        .filter_map(|written| Some((written.path.strip_prefix("metadata.")?, &written.value)))
        .chain(aside.iter().map(|(path, value)| (path.as_str(), *value)))
        .collect();
    if let Some(block) = block.filter(|_| additions.is_empty()).filter(|one| !one.text.is_empty()) {
        return block.text.clone();
    }
    let appended =
        block.and_then(|block| metadata::append_entries(block, &additions, None, newline));
    appended.unwrap_or_else(|| with_newlines(&metadata::rewrite(block, &additions, None), newline))
}

/// Puts the lines between the fences of the source and appends its body.
fn fenced(document: &Document, lines: &str, newline: &str) -> String {
    let text = document.text();
    if let Some(block) = document.layout().closed_block() {
        let open = text.get(..block.yaml.start).unwrap_or_default();
        let close = text.get(block.yaml.end..).unwrap_or_default();
        return format!("{open}{lines}{close}");
    }
    let mark = stash::byte_order_mark(document);
    format!("{mark}---{newline}{lines}---{newline}{}", document.body())
}
