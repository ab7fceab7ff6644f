//! Converts an edited file back to its original dialect, keeping the edits.
//!
//! This is a three-way merge of the original, its conversion, and the edited conversion. Where the
//! conversion and the edited file agree, the lines of the original are restored. Where they differ,
//! the edit is applied to the original.

use savoir_lint::Source;
use serde_json::Value;

use super::{
    Conversion, FieldOutcome, FieldReport,
    draft::write_draft,
    field_lines::{FieldLines, FrontmatterLines, same},
    field_mapper::{FieldAction, FieldMapper, find, probe, top, top_keys, value_of, write},
    fields::WrittenField,
    metadata,
    stash::{Stash, StashedHead, is_own, newline, with_newlines},
};
use crate::{
    dialect::NewFile,
    document::{Document, State},
    reading::{Reading, read_as},
    yaml::{Entry, Node, NodeData, write::write_entry},
};

const RESTORED: &str = "restored as it was before the conversion";
const EDITED: &str = "edited since the conversion";

/// Restores the original, when only parts were edited that both files share.
pub(super) fn restore_original(reading: &Reading, original: &Reading) -> Conversion {
    let (here, there) =
        (frontmatter_lines(&reading.document), frontmatter_lines(&original.document));
    let fields = there.fields.iter().map(|source_lines| {
        let same = here.get(&source_lines.key).is_some_and(|here| here.text == source_lines.text);
        field_report(&source_lines.key, same)
    });
    let mut report: Vec<FieldReport> = fields.collect();
    report.push(field_report("body", reading.document.body() == original.document.body()));
    Conversion::new(vec![NewFile::new("SKILL.md", original.document.text())], report)
}

fn field_report(key: &str, same: bool) -> FieldReport {
    let (how, why) =
        if same { (FieldOutcome::Kept, "the same field") } else { (FieldOutcome::Moved, RESTORED) };
    FieldReport::new(key, key, how, why)
}

fn frontmatter_lines(document: &Document) -> FrontmatterLines {
    let block = document.layout().closed_block();
    block
        .and_then(|block| FrontmatterLines::cut(block.yaml.slice(document.text())))
        .unwrap_or_else(|| FrontmatterLines::rewritten(document))
}

/// Returns the original with the edits of its conversion, or `None` if they cannot be merged.
pub(super) fn merge(reading: &Reading, original: &Reading) -> Option<Conversion> {
    let (dialect, target) = (reading.skill.dialect, original.skill.dialect);
    if !dialect.has_frontmatter() {
        return Some(restore_original(reading, original));
    }
    if !target.has_frontmatter() || original.document.layout().closed_block().is_none() {
        return None;
    }
    let made = write_draft(original, dialect).ok()?;
    let made = read_as(Source::new(made.text), dialect, None);
    let mapper = FieldMapper::new(&reading.skill, target).ok()?;
    let mut merge = Merge {
        original: frontmatter_lines(&original.document),
        made: frontmatter_lines(&made.document),
        now: frontmatter_lines(&reading.document),
        original_fields: write(target, &original.skill).written,
        made_fields: write(target, &made.skill).written,
        mapper,
        newline: newline(original.document.text()),
        lines: Vec::new(),
        keep: String::new(),
        report: Vec::new(),
    };
    merge.fields();
    merge.new_fields();
    merge.metadata();
    let text = merge.text(&original.document)?;
    merge.verify(&text, original.document.body())?;
    let same = reading.document.body() == original.document.body();
    merge.report.push(field_report("body", same));
    Some(Conversion::new(vec![NewFile::new("SKILL.md", text)], merge.report))
}

struct Merge<'a> {
    original: FrontmatterLines,
    made: FrontmatterLines,
    now: FrontmatterLines,
    original_fields: Vec<WrittenField>,
    /// The fields of the unedited conversion, in the target dialect.
    made_fields: Vec<WrittenField>,
    /// Maps the edited file to the target dialect.
    mapper: FieldMapper<'a>,
    newline: &'static str,
    lines: Vec<(String, String)>,
    keep: String,
    report: Vec<FieldReport>,
}

impl Merge<'_> {
    fn written(&self) -> &[WrittenField] {
        &self.mapper.fields.written
    }

    /// Whether the value of a target field was edited.
    fn is_edited(&self, key: &str) -> bool {
        values_under_key(self.written(), key) != values_under_key(&self.made_fields, key)
    }

    fn push(&mut self, key: &str, lines: String, how: FieldOutcome, why: &str) {
        self.lines.push((key.to_owned(), lines));
        self.report.push(FieldReport::new(key, key, how, why));
    }

    fn push_written(&mut self, key: &str) {
        let [original, made, now] = [&self.original_fields, &self.made_fields, self.written()]
            .map(|written| value_of(written, key));
        let lines = write_entry(key, &three_way(&original, &made, now), 0);
        self.push(key, with_newlines(&lines, self.newline), FieldOutcome::Moved, EDITED);
    }

    /// Writes the fields of the original.
    fn fields(&mut self) {
        for source_lines in self.original.fields.clone() {
            let key = source_lines.key.as_str();
            if key == "metadata" {
                self.lines.push((source_lines.key, String::new()));
                continue;
            }
            let shared = self.made.get(key).is_some_and(|made| made.text == source_lines.text);
            let now = self.now.get(key).filter(|_| shared).cloned();
            match now {
                Some(now) if now.text == source_lines.text => {
                    self.push(key, source_lines.text.clone(), FieldOutcome::Kept, "the same field");
                }
                Some(now) if self.reads_same(&now) => {
                    self.push(key, now.text, FieldOutcome::Kept, EDITED);
                }
                None if !shared && !self.is_edited(key) => {
                    self.push(key, source_lines.text.clone(), FieldOutcome::Moved, RESTORED);
                }
                _ if !values_under_key(self.written(), key).is_empty() => self.push_written(key),
                _ => self.report.push(removed_report(key)),
            }
        }
    }

    /// Whether the target reads the lines of a field as the edited value.
    fn reads_same(&self, source_lines: &FieldLines) -> bool {
        let read = probe(self.mapper.target, &source_lines.text);
        read.is_some_and(|read| {
            let read = write(self.mapper.target, &read).written;
            values_under_key(&read, &source_lines.key)
                == values_under_key(self.written(), &source_lines.key)
        })
    }

    /// Writes the fields that the original did not have.
    fn new_fields(&mut self) {
        let keys: Vec<String> = top_keys(self.written()).into_iter().map(str::to_owned).collect();
        for key in keys.iter().filter(|key| *key != "metadata") {
            if self.original.get(key).is_none() && self.is_edited(key) {
                self.push_written(key);
            }
        }
        for source_lines in self.now.fields.clone() {
            let known = self.original.get(&source_lines.key).is_some()
                || self
                    .made
                    .get(&source_lines.key)
                    .is_some_and(|made| made.text == source_lines.text)
                || self.lines.iter().any(|(key, _)| *key == source_lines.key);
            if known || source_lines.key == "metadata" {
                continue;
            }
            let field = self.mapper.plan_field(source_lines);
            let key = field.source_lines.key.as_str();
            match field.action {
                FieldAction::KeepLines => {
                    self.push(key, field.source_lines.text.clone(), FieldOutcome::Kept, EDITED);
                }
                FieldAction::Requote | FieldAction::Stash | FieldAction::Extend => {
                    self.keep.push_str(&field.source_lines.text.replace("\r\n", "\n"));
                    let why = self.mapper.why_stashed(&field.source_lines);
                    let place = super::stash::KEEP_PATH;
                    self.report.push(FieldReport::new(key, place, FieldOutcome::Moved, why));
                }
                FieldAction::Rewrite => {}
            }
        }
    }

    /// Merges `metadata` entry by entry.
    fn metadata(&mut self) {
        let original = self.original.get("metadata").cloned();
        let merged = self.merged_metadata();
        let additions: Vec<(String, Value)> = self
            .written()
            .iter()
            .filter(|new| {
                find(&self.made_fields, &new.path).is_none_or(|old| old.value != new.value)
            })
            .filter_map(|new| {
                Some((new.path.strip_prefix("metadata.")?.to_owned(), new.value.clone()))
            })
            .collect();
        let additions: Vec<(&str, &Value)> =
            additions.iter().map(|(path, value)| (path.as_str(), value)).collect();
        let stash = (!self.keep.is_empty()).then(|| self.stash());
        let untouched = original.clone().filter(|original| {
            additions.is_empty()
                && merged.as_ref().is_some_and(|merged| same(&merged.value, &original.value))
        });
        let lines = match (&untouched, &stash) {
            (Some(original), None) => original.text.clone(),
            (Some(original), Some(stash)) => {
                let appended = metadata::append_entries(original, &[], Some(stash), self.newline);
                appended.unwrap_or_else(|| {
                    self.rewrite_metadata(merged.as_ref(), &additions, Some(stash))
                })
            }
            (None, stash) => self.rewrite_metadata(merged.as_ref(), &additions, stash.as_ref()),
        };
        if let Some(original) = &original {
            let why = if untouched.is_some() { RESTORED } else { EDITED };
            let how = if lines == original.text { FieldOutcome::Kept } else { FieldOutcome::Moved };
            self.report.push(FieldReport::new("metadata", "metadata", how, why));
        }
        match self.lines.iter_mut().find(|(key, _)| key == "metadata") {
            Some((_, place)) => *place = lines,
            None => self.lines.push(("metadata".into(), lines)),
        }
    }

    fn rewrite_metadata(
        &self,
        merged: Option<&FieldLines>,
        additions: &metadata::Additions<'_>,
        stash: Option<&Stash>,
    ) -> String {
        with_newlines(&metadata::rewrite(merged, additions, stash), self.newline)
    }

    fn stash(&self) -> Stash {
        let order = self.now.fields.iter().map(|source_lines| source_lines.key.clone()).collect();
        let head = StashedHead::Lines { keep: self.keep.clone(), order };
        Stash { from: self.mapper.source, body: None, head }
    }

    /// Returns the entries of the original and of the edited file, without those that a conversion
    /// adds.
    fn merged_metadata(&self) -> Option<FieldLines> {
        let entries = |frontmatter_lines: &FrontmatterLines| -> Vec<Entry> {
            let source_lines = frontmatter_lines.get("metadata");
            let entries = source_lines
                .and_then(|source_lines| source_lines.value.entries())
                .unwrap_or_default();
            entries.iter().filter(|entry| !is_own(&entry.key)).cloned().collect()
        };
        let (old, made, now) = (entries(&self.original), entries(&self.made), entries(&self.now));
        let get = |list: &[Entry], key: &str| list.iter().find(|entry| entry.key == key).cloned();
        let mut merged = Vec::new();
        for entry in &old {
            match (get(&made, &entry.key), get(&now, &entry.key)) {
                (Some(made), Some(now)) if !same(&made.value, &now.value) => merged.push(now),
                (Some(_), None) => {}
                _ => merged.push(entry.clone()),
            }
        }
        for entry in now {
            let added = get(&made, &entry.key).is_some() || get(&old, &entry.key).is_some();
            let path = format!("metadata.{}", entry.key);
            let written = self.written().iter().any(|written| written.path.starts_with(&path));
            if !added && !written {
                merged.push(entry);
            }
        }
        let template = self.original.get("metadata").or_else(|| self.now.get("metadata"))?;
        if template.value.entries().is_none() {
            return Some(template.clone());
        }
        let data = NodeData::Mapping { entries: merged, flow: false };
        Some(FieldLines { value: Node { data, ..template.value.clone() }, ..template.clone() })
    }

    fn text(&self, original: &Document) -> Option<String> {
        let text = original.text();
        let block = original.layout().closed_block()?;
        let FrontmatterLines { preamble, tail, .. } = &self.original;
        let lines: String = self.lines.iter().map(|(_, lines)| lines.as_str()).collect();
        let open = text.get(..block.yaml.start)?;
        let rest = text.get(block.yaml.end..)?;
        Some(format!("{open}{preamble}{lines}{tail}{rest}"))
    }

    /// Checks that the target reads every edit.
    fn verify(&self, text: &str, body: &str) -> Option<()> {
        let result = read_as(Source::new(text.to_owned()), self.mapper.target, None);
        let read = write(self.mapper.target, &result.skill).written;
        let value = |written: &[WrittenField], path: &str| {
            find(written, path).map(|written| written.value.clone()).unwrap_or_default()
        };
        let arrived = self.mapper.in_file().all(|new| {
            let path = new.path.as_str();
            let original = value(&self.original_fields, path);
            let made = value(&self.made_fields, path);
            let wanted = three_way(&original, &made, new.value.clone());
            matches!(path, "name" | "description") || value(&read, path) == wanted
        });
        let clean = result.document.state() == State::Clean && result.document.body() == body;
        (arrived && clean).then_some(())
    }
}

/// Merges the edits of a value: unedited parts come from the original. List elements are matched by
/// their `name`.
fn three_way(original: &Value, made: &Value, now: Value) -> Value {
    if *made == now {
        return original.clone();
    }
    match (original, made, now) {
        (Value::Object(original), Value::Object(made), Value::Object(mut now)) => {
            for (key, value) in &mut now {
                if let (Some(original), Some(made)) = (original.get(key), made.get(key)) {
                    *value = three_way(original, made, value.take());
                }
            }
            // Keys that the conversion could not express were not deleted by an edit.
            for (key, value) in original.iter().filter(|(key, _)| !made.contains_key(*key)) {
                now.entry(key).or_insert_with(|| value.clone());
            }
            Value::Object(now)
        }
        (Value::Array(original), Value::Array(made), Value::Array(now)) => {
            let merged = now.into_iter().map(|item| {
                match (find_by_name(original, &item), find_by_name(made, &item)) {
                    (Some(original), Some(made)) => three_way(original, made, item),
                    _ => item,
                }
            });
            Value::Array(merged.collect())
        }
        (_, _, now) => now,
    }
}

/// Finds the list element with the same name.
fn find_by_name<'v>(list: &'v [Value], item: &Value) -> Option<&'v Value> {
    let name = item.get("name")?;
    list.iter().find(|other| other.get("name") == Some(name))
}

fn values_under_key<'w>(written: &'w [WrittenField], key: &str) -> Vec<(&'w str, &'w Value)> {
    let own = written.iter().filter(|written| top(&written.path) == key);
    own.map(|written| (written.path.as_str(), &written.value)).collect()
}

fn removed_report(key: &str) -> FieldReport {
    FieldReport {
        to: None,
        ..FieldReport::new(key, key, FieldOutcome::Dropped, "removed since the conversion")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn edits_leave_the_rest_alone() {
        let original = json!([{"name": "a", "type": "url", "default": 1}, {"name": "b"}]);
        let made = json!([{"name": "a", "type": "text"}, {"name": "b", "type": "text"}]);
        let now = json!([{"name": "c"}, {"name": "a", "type": "text", "label": "A"}]);
        let expected = json!([
            {"name": "c"},
            {"name": "a", "type": "url", "label": "A", "default": 1}
        ]);
        assert_eq!(three_way(&original, &made, now), expected);
    }
}
