//! Maps the fields of one dialect to another.
//!
//! This module knows no dialect in particular. The source dialect reads each field alone, the
//! target dialect writes the resulting model, and the written fields are the mapping of that field.

use savoir_lint::Source;
use serde_json::{Map, Value};

use super::{
    ConvertError,
    field_lines::FieldLines,
    fields::{Fields, WrittenField},
};
use crate::{
    dialect::Dialect, document::State, reading::read_as, shape::UnknownFields, skill::Skill,
    yaml::write::write_entry,
};

/// Maps the fields of a skill from its dialect to the target dialect.
#[derive(Debug)]
pub(super) struct FieldMapper<'a> {
    pub(super) source: Dialect,
    pub(super) target: Dialect,
    pub(super) skill: &'a Skill,
    /// The fields that the target writes.
    pub(super) fields: Fields,
    /// The fields that the target writes after reading its own output.
    settled: Vec<WrittenField>,
    /// The paths where the source writes each part of the model.
    places: Vec<WrittenField>,
    /// The fields that the target writes for an empty file of the source, and of its own dialect.
    nothing: Vec<WrittenField>,
    own_nothing: Vec<WrittenField>,
}

/// The action of the converter for a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FieldAction {
    /// Copy the lines unchanged.
    KeepLines,
    /// Add quotes that give the value the same meaning in the target's YAML version.
    Requote,
    /// Write the field in the format of the target.
    Rewrite,
    /// Store the lines in the stash, because the target has no such field.
    Stash,
    /// Extend `metadata`, which may get more entries.
    Extend,
}

/// A source field, the target fields that it maps to, and the action for its lines.
#[derive(Clone, Debug)]
pub(super) struct PlannedField {
    pub(super) source_lines: FieldLines,
    pub(super) images: Vec<WrittenField>,
    pub(super) action: FieldAction,
}

impl<'a> FieldMapper<'a> {
    pub(super) fn new(skill: &'a Skill, target: Dialect) -> Result<Self, ConvertError> {
        let source = skill.dialect;
        let fields = write(target, skill);
        let blank =
            |dialect: Dialect| probe(dialect, "").map(|skill| write(target, &skill).written);
        let text: String = top_keys(&fields.written)
            .iter()
            .map(|key| write_entry(key, &value_of(&fields.written, key), 0))
            .collect();
        let settled =
            probe(target, &text).ok_or_else(|| ConvertError::unfaithful("frontmatter", target))?;
        let mapper = Self {
            source,
            target,
            skill,
            settled: write(target, &settled).written,
            places: write(source, skill).written,
            nothing: blank(source).unwrap_or_default(),
            own_nothing: blank(target).unwrap_or_default(),
            fields,
        };
        mapper.check_output_is_stable()?;
        Ok(mapper)
    }

    /// Checks that the target reads its own output unchanged. Names and descriptions may be
    /// normalized.
    fn check_output_is_stable(&self) -> Result<(), ConvertError> {
        let lost = self.in_file().find(|written| {
            let tidied = matches!(written.path.as_str(), "name" | "description");
            !tidied && self.value_as_read(&written.path) != Some(&written.value)
        });
        lost.map_or(Ok(()), |lost| Err(ConvertError::unfaithful(&lost.path, self.target)))
    }

    /// Returns the fields that are written to SKILL.md itself, not to other files.
    pub(super) fn in_file(&self) -> impl Iterator<Item = &WrittenField> {
        self.fields.written.iter().filter(|written| !written.path.contains('#'))
    }

    /// Returns the value as the target reads it, if it differs from the written one.
    pub(super) fn normalized_value(&self, written: &WrittenField) -> Option<String> {
        if written.path.contains('#') {
            return None;
        }
        match find(&self.settled, &written.path) {
            None => Some(format!("{} cannot read it", self.target.title())),
            Some(read) if read.value == written.value => None,
            Some(read) => Some(format!("{} reads it as {}", self.target.title(), read.value)),
        }
    }

    /// Returns the first field of a result that the target reads differently.
    pub(super) fn first_lost_field(&self, result: &Skill) -> Option<&str> {
        let read = write(self.target, result).written;
        let same = |written: &&WrittenField| {
            find(&read, &written.path).map(|read| &read.value) == self.value_as_read(&written.path)
        };
        self.in_file().find(|written| !same(written)).map(|written| written.path.as_str())
    }

    /// Returns the target fields that exist because of a source field.
    fn images(&self, source_lines: &FieldLines) -> Vec<&WrittenField> {
        let Some(alone) = probe(self.source, &source_lines.text) else { return Vec::new() };
        let made: Vec<WrittenField> = write(self.target, &alone)
            .written
            .into_iter()
            .filter(|written| !self.nothing.iter().any(|other| same_written(other, written)))
            .collect();
        let exact: Vec<&WrittenField> = self
            .fields
            .written
            .iter()
            .filter(|written| {
                made.iter().any(|other| same_written(other, written) || same_part(other, written))
            })
            .collect();
        if !exact.is_empty() {
            return exact;
        }
        // Several source fields can map to one target field.
        let joint = |written: &&WrittenField| made.iter().any(|other| other.path == written.path);
        self.fields.written.iter().filter(joint).collect()
    }

    /// Plans the action for a field.
    pub(super) fn plan_field(&self, source_lines: FieldLines) -> PlannedField {
        let images: Vec<WrittenField> = self.images(&source_lines).into_iter().cloned().collect();
        let action = self.action(&source_lines, &images);
        PlannedField { source_lines, images, action }
    }

    fn action(&self, source_lines: &FieldLines, images: &[WrittenField]) -> FieldAction {
        let written = top_keys(&self.fields.written).contains(&source_lines.key.as_str());
        if source_lines.key == "metadata" {
            return if self.welcomes(source_lines) {
                FieldAction::Extend
            } else {
                FieldAction::Stash
            };
        }
        if !images.is_empty() {
            let here = images.iter().all(|image| top(&image.path) == source_lines.key)
                && self.target.language().defines_words(&source_lines.key, &source_lines.value);
            return if here && self.reads_same(source_lines) {
                FieldAction::KeepLines
            } else {
                FieldAction::Rewrite
            };
        }
        if written {
            return FieldAction::Stash;
        }
        let version = (self.source.yaml(), self.target.yaml());
        if declares(self.target, &source_lines.key) {
            let empty =
                source_lines.value.is_null(version.0) && source_lines.value.is_null(version.1);
            return if empty { FieldAction::KeepLines } else { FieldAction::Stash };
        }
        let known = declares(self.source, &source_lines.key);
        // Every open dialect ignores the fields of the base format.
        let welcome = self.target.language().unknown_fields() == UnknownFields::Open
            && (!known || declares(Dialect::AGENTSKILLS, &source_lines.key))
            && self.is_inert(source_lines);
        if !welcome {
            FieldAction::Stash
        } else if source_lines.value.to_value(version.0) == source_lines.value.to_value(version.1) {
            FieldAction::KeepLines
        } else {
            FieldAction::Requote
        }
    }

    /// Whether the target reads the lines of a field like its own output for that field.
    fn reads_same(&self, source_lines: &FieldLines) -> bool {
        let Some(read) = probe(self.target, &source_lines.text) else { return false };
        let here = |written: &[WrittenField]| -> Vec<(String, Value)> {
            let own = written.iter().filter(|written| top(&written.path) == source_lines.key);
            own.map(|written| (written.path.clone(), written.value.clone())).collect()
        };
        here(&write(self.target, &read).written) == here(&self.settled)
    }

    /// Whether the target ignores a field.
    fn is_inert(&self, source_lines: &FieldLines) -> bool {
        probe(self.target, &source_lines.text)
            .is_some_and(|skill| write(self.target, &skill).written == self.own_nothing)
    }

    /// Whether the target accepts `metadata` and still reads its own fields in it.
    fn welcomes(&self, metadata: &FieldLines) -> bool {
        let open = self.target.language().unknown_fields() == UnknownFields::Open;
        let mut lines: String = top_keys(&self.fields.written)
            .iter()
            .filter(|key| **key != "metadata")
            .map(|key| write_entry(key, &value_of(&self.fields.written, key), 0))
            .collect();
        lines.push_str(&metadata.text);
        let Some(read) = probe(self.target, &lines) else { return false };
        let read = write(self.target, &read).written;
        let own = self.in_file().filter(|written| top(&written.path) != "metadata");
        (open || declares(self.target, "metadata"))
            && own.into_iter().all(|written| {
                find(&read, &written.path).map(|read| &read.value)
                    == self.value_as_read(&written.path)
            })
    }

    fn value_as_read(&self, path: &str) -> Option<&Value> {
        find(&self.settled, path).map(|settled| &settled.value)
    }

    /// Returns the entries to add to `metadata`: the path below it and the value.
    pub(super) fn metadata_additions(&self, at_home: Option<&FieldLines>) -> Vec<(&str, &Value)> {
        let read = at_home
            .and_then(|source_lines| probe(self.target, &source_lines.text))
            .map(|skill| write(self.target, &skill).written)
            .unwrap_or_default();
        // Defaults that a dialect assumes do not count as present.
        let stands = |path: &str| {
            let inside = path.strip_prefix("metadata.");
            inside.is_some_and(|path| {
                at_home.is_some_and(|source_lines| source_lines.value.path(path).is_some())
            })
        };
        let missing = |written: &&WrittenField| {
            let there = find(&read, &written.path).map(|read| &read.value);
            there.is_none() || there != self.value_as_read(&written.path) || !stands(&written.path)
        };
        self.in_file()
            .filter(missing)
            .filter_map(|written| Some((written.path.strip_prefix("metadata.")?, &written.value)))
            .collect()
    }

    /// Returns the path in the source of the model part of a target field.
    pub(super) fn place(&self, image: &WrittenField) -> Option<&str> {
        let place = self.places.iter().find(|place| place.model == image.model);
        place.map(|place| place.path.as_str())
    }

    /// Returns files other than SKILL.md that the source reads and the target ignores.
    pub(super) fn unread_files(&self) -> Vec<String> {
        let mut files: Vec<String> = Vec::new();
        for place in &self.places {
            let Some((file, _)) = place.path.split_once('#') else { continue };
            let carried = self.fields.written.iter().any(|other| other.model == place.model);
            if !carried && !files.iter().any(|known| known == file) {
                files.push(file.to_owned());
            }
        }
        files
    }

    /// Returns the reason, for the report, why a field was stored in the stash.
    pub(super) fn why_stashed(&self, source_lines: &FieldLines) -> String {
        let declared = declares(self.target, &source_lines.key);
        let reason = if declared && !declares(self.source, &source_lines.key) {
            format!("`{}` means something else in {}", source_lines.key, self.target.title())
        } else {
            format!("{} has no field for it", self.target.title())
        };
        format!("{reason}; its lines are stored so that converting back restores it")
    }
}

/// Whether a dialect declares a field of this name.
fn declares(dialect: Dialect, key: &str) -> bool {
    dialect.language().fields(None).iter().any(|field| field.key == key)
}

pub(super) fn write(dialect: Dialect, skill: &Skill) -> Fields {
    let mut fields = Fields::default();
    dialect.language().write(skill, &mut fields);
    fields
}

/// Parses YAML as the frontmatter of a dialect.
pub(super) fn probe(dialect: Dialect, yaml: &str) -> Option<Skill> {
    let source = Source::new(format!("---\n{yaml}---\n"));
    let reading = read_as(source, dialect, None);
    (reading.document.state() == State::Clean).then_some(reading.skill)
}

pub(super) fn find<'w>(written: &'w [WrittenField], path: &str) -> Option<&'w WrittenField> {
    written.iter().find(|written| written.path == path)
}

fn same_written(a: &WrittenField, b: &WrittenField) -> bool {
    a.path == b.path && a.value == b.value
}

/// Whether two fields are the same part of the model, possibly in different shapes of the target.
fn same_part(a: &WrittenField, b: &WrittenField) -> bool {
    let key = |written: &WrittenField| written.path.rsplit('.').next().map(str::to_owned);
    a.model == b.model && a.value == b.value && key(a) == key(b)
}

/// The top-level key of a path.
pub(super) fn top(path: &str) -> &str {
    path.split_once('.').map_or(path, |(top, _)| top)
}

/// Returns the top-level keys in SKILL.md in their written order.
pub(super) fn top_keys(written: &[WrittenField]) -> Vec<&str> {
    let mut keys = Vec::new();
    for written in written.iter().filter(|written| !written.path.contains('#')) {
        let key = top(&written.path);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// Returns the value of a top-level key, assembled from its paths.
pub(super) fn value_of(written: &[WrittenField], key: &str) -> Value {
    let mut value = Value::Null;
    for written in written.iter().filter(|written| top(&written.path) == key) {
        match written.path.split_once('.') {
            Some((_, path)) => put(&mut value, path, written.value.clone()),
            None => value = written.value.clone(),
        }
    }
    value
}

/// Sets the value at a dotted path and creates missing maps.
pub(super) fn put(place: &mut Value, path: &str, value: Value) {
    let mut at = place;
    for key in path.split('.') {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(map) = at else { return };
        at = map.entry(key).or_insert(Value::Null);
    }
    *at = value;
}
