//! The text of a migrated skill: the source's lines, with what changed.

use serde_json::Value;

use super::{Note, plan::Plan};
use crate::{
    convert::{
        bridge::{top, top_keys, value_of},
        fields::Written,
        metadata,
        pieces::{Piece, Pieces},
        stash::{self, newline, with_newlines},
    },
    dialect::Dialect,
    document::Document,
    yaml::{Data, Tree, YamlVersion, write::write_entry},
};

/// Where values go that GAIA would misread where they were.
const ASIDE: &str = "original";

/// Fields that GAIA lets pass as they are.
const UNTOUCHED: [&str; 2] = ["compatibility", "allowed-tools"];

/// Writes the text, and notes which fields stay without a meaning.
pub(super) fn write(plan: &mut Plan<'_>, written: &[Written]) -> String {
    let document = plan.document;
    let newline = newline(document.text());
    let Pieces { preamble, fields, tail } = pieces(document, newline);
    let own = top_keys(written);
    let consumed = plan.consumed.clone();
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut block = None;
    for piece in fields.into_iter().filter(|piece| !consumed.contains(&piece.key)) {
        let key = piece.key.clone();
        if key == "metadata" {
            lines.push((key, String::new()));
            block = Some(piece);
        } else if own.contains(&key.as_str()) {
            let text = field(plan, piece, written, newline);
            lines.push((key, text));
        } else if is_read(&key) {
            set_aside(plan, &piece);
        } else {
            plan.notes.push(Note::new(key.clone(), "kept; GAIA does not read it"));
            lines.push((key, piece.text));
        }
    }
    missing(&mut lines, written, newline);
    let block = block.and_then(|piece| mapping(plan, piece));
    let text = metadata(block.as_ref(), written, &plan.originals, newline);
    match lines.iter_mut().find(|(key, _)| key == "metadata") {
        Some((_, place)) => *place = text,
        None => lines.push(("metadata".into(), text)),
    }
    let lines: String = lines.into_iter().map(|(_, lines)| lines).collect();
    fenced(document, &format!("{preamble}{lines}{tail}"), newline)
}

fn pieces(document: &Document, newline: &str) -> Pieces {
    let block = document.layout().closed_block().map(|block| block.yaml);
    let cut = block.and_then(|yaml| Pieces::cut(yaml.slice(document.text())));
    cut.unwrap_or_else(|| {
        let mut pieces = Pieces::rewritten(document);
        for piece in &mut pieces.fields {
            piece.text = with_newlines(&piece.text, newline);
        }
        pieces
    })
}

/// A field that GAIA writes, in its own lines when they say the same. A list or a map that says
/// something else is kept beside it.
fn field(plan: &mut Plan<'_>, piece: Piece, written: &[Written], newline: &str) -> String {
    let value = value_of(written, &piece.key);
    let same = piece.value.to_value(YamlVersion::V1_1) == value;
    if same || UNTOUCHED.contains(&piece.key.as_str()) {
        return piece.text;
    }
    if piece.value.text().is_none() {
        set_aside(plan, &piece);
    }
    let before = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let comments: String = piece.text.split_inclusive('\n').take_while(before).collect();
    comments + &with_newlines(&write_entry(&piece.key, &value, 0), newline)
}

/// Whether GAIA reads a field of this name in one of its shapes.
fn is_read(key: &str) -> bool {
    let shapes = Dialect::GAIA.language().shapes();
    shapes.into_iter().flatten().any(|field| field.key == key)
}

fn set_aside(plan: &mut Plan<'_>, piece: &Piece) {
    let key = &piece.key;
    if !plan.originals.iter().any(|(known, _)| known == key) {
        plan.originals.push((key.clone(), piece.value.to_value(YamlVersion::V1_1)));
    }
    let message =
        format!("GAIA would read it as its own field; it is `metadata.{ASIDE}.{key}` now");
    plan.notes.push(Note::review(key.clone(), message));
}

/// `metadata` as a map, also when it is a string of JSON; anything else is set aside.
fn mapping(plan: &mut Plan<'_>, mut piece: Piece) -> Option<Piece> {
    if let Some(text) = piece.value.text() {
        let read = Tree::parse(text).ok().and_then(|tree| tree.root);
        if let Some(root) = read.filter(|root| root.entries().is_some()) {
            plan.notes.push(Note::new("metadata", "it was a string of JSON and is a map now"));
            piece.text.clear();
            piece.value = root;
        }
    }
    match &piece.value.data {
        Data::Mapping { .. } => Some(piece),
        _ if piece.value.is_null(YamlVersion::V1_1) => None,
        _ => {
            set_aside(plan, &piece);
            None
        }
    }
}

/// Writes what GAIA needs and the source did not have, after its neighbour.
fn missing(lines: &mut Vec<(String, String)>, written: &[Written], newline: &str) {
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
    block: Option<&Piece>,
    written: &[Written],
    originals: &[(String, Value)],
    newline: &str,
) -> String {
    let aside: Vec<(String, &Value)> =
        originals.iter().map(|(key, value)| (format!("{ASIDE}.{key}"), value)).collect();
    let own = written.iter().filter(|written| top(&written.path) == "metadata");
    let additions: Vec<(&str, &Value)> = own
        .filter_map(|written| Some((written.path.strip_prefix("metadata.")?, &written.value)))
        .chain(aside.iter().map(|(path, value)| (path.as_str(), *value)))
        .collect();
    if let Some(block) = block.filter(|_| additions.is_empty()).filter(|one| !one.text.is_empty()) {
        return block.text.clone();
    }
    let appended = block.and_then(|block| metadata::appended(block, &additions, None, newline));
    appended
        .unwrap_or_else(|| with_newlines(&metadata::rewritten(block, &additions, None), newline))
}

/// The lines between the fences of the source, with its body.
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
