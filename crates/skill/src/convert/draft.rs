//! Writes a skill in another dialect and stores the original in the result.

mod field_reports;

use field_reports::{body_report, body_tools};
use savoir_lint::{Diagnostic, Source};
use serde_json::Value;

use super::{
    ConvertError, FieldOutcome, FieldReport,
    body::{self, Translation},
    field_lines::{FieldLines, FrontmatterLines},
    field_mapper::{FieldAction, FieldMapper, PlannedField, top, top_keys, value_of},
    metadata, prose,
    stash::{self, Stash, StashedHead, newline, with_newlines},
};
use crate::{
    dialect::{self, Detection, Dialect, NewFile, Strength},
    document::{Document, State},
    reading::{Reading, read_as},
    yaml::write::write_entry,
};

/// A converted text with its additional files and report.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) text: String,
    pub(super) files: Vec<NewFile>,
    pub(super) report: Vec<FieldReport>,
}

/// How the original is stored in the converted file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StashKind {
    /// Not stored: the file is valid in both dialects.
    Unneeded,
    /// As the lines of single fields.
    Lines,
    /// As one text.
    Whole,
    /// Nothing to store: the source has only a body.
    Nothing,
}

/// Writes a skill in the target dialect and verifies it: the result is read again and the original
/// is restored from it.
pub(super) fn write_draft(reading: &Reading, target: Dialect) -> Result<Draft, ConvertError> {
    if !target.has_frontmatter() {
        return write_prose(reading, target);
    }
    let mapper = FieldMapper::new(&reading.skill, target)?;
    let mut problem = ConvertError::unfaithful("frontmatter", target);
    for (stash_kinds, plan_head) in strategies(&reading.document) {
        let Some(head) = plan_head(&reading.document, &mapper) else { continue };
        for stash_kind in *stash_kinds {
            let Some(draft) = Build::draft(reading, &mapper, &head, *stash_kind) else { continue };
            match verify(reading, &mapper, &draft) {
                Ok(()) => return Ok(draft),
                Err(error) => problem = error,
            }
        }
    }
    Err(problem)
}

/// Whether converting a skill to `target` gives exactly this text.
pub(super) fn converts_to(reading: &Reading, target: Dialect, text: &str) -> bool {
    if !target.has_frontmatter() {
        return prose::write(&reading.document, reading.skill.dialect).as_deref() == Some(text);
    }
    let Ok(mapper) = FieldMapper::new(&reading.skill, target) else { return false };
    strategies(&reading.document).iter().any(|(stash_kinds, plan_head)| {
        plan_head(&reading.document, &mapper).is_some_and(|head| {
            stash_kinds.iter().any(|stash_kind| {
                Build::draft(reading, &mapper, &head, *stash_kind)
                    .is_some_and(|draft| draft.text == text)
            })
        })
    })
}

/// A function that splits a frontmatter and plans the action for each field.
type PlanHead = fn(&Document, &FieldMapper<'_>) -> Option<PlannedHead>;

/// Returns the strategies to convert a file, the preferred one first.
fn strategies(document: &Document) -> &'static [(&'static [StashKind], PlanHead)] {
    if document.layout().closed_block().is_none() {
        return &[(&[StashKind::Nothing], PlannedHead::rewritten)];
    }
    &[
        (&[StashKind::Unneeded, StashKind::Lines], PlannedHead::unchanged_lines),
        (&[StashKind::Whole], PlannedHead::rewritten),
    ]
}

/// A frontmatter with a plan for each field.
#[derive(Debug)]
struct PlannedHead {
    preamble: String,
    fields: Vec<PlannedField>,
    tail: String,
}

impl PlannedHead {
    fn unchanged_lines(document: &Document, mapper: &FieldMapper<'_>) -> Option<Self> {
        let block = document.layout().closed_block()?;
        FrontmatterLines::cut(block.yaml.slice(document.text()))
            .map(|frontmatter_lines| Self::new(frontmatter_lines, mapper))
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is one of two ways to cut")]
    fn rewritten(document: &Document, mapper: &FieldMapper<'_>) -> Option<Self> {
        let mut frontmatter_lines = FrontmatterLines::rewritten(document);
        for source_lines in &mut frontmatter_lines.fields {
            source_lines.text = with_newlines(&source_lines.text, newline(document.text()));
        }
        Some(Self::new(frontmatter_lines, mapper))
    }

    fn new(frontmatter_lines: FrontmatterLines, mapper: &FieldMapper<'_>) -> Self {
        let fields = frontmatter_lines
            .fields
            .into_iter()
            .map(|source_lines| mapper.plan_field(source_lines))
            .collect();
        Self { preamble: frontmatter_lines.preamble, fields, tail: frontmatter_lines.tail }
    }

    fn get(&self, key: &str) -> Option<&PlannedField> {
        self.fields.iter().find(|field| field.source_lines.key == key)
    }
}

fn verify(reading: &Reading, mapper: &FieldMapper<'_>, draft: &Draft) -> Result<(), ConvertError> {
    let result = read_as(Source::new(draft.text.clone()), mapper.target, None);
    let document = &result.document;
    let clean =
        document.state() == State::Clean && !document.problems().iter().any(Diagnostic::is_error);
    if !clean {
        return Err(ConvertError::unfaithful("frontmatter", mapper.target));
    }
    if let Some(field) = mapper.first_lost_field(&result.skill) {
        return Err(ConvertError::unfaithful(field, mapper.target));
    }
    let text = reading.document.text();
    if draft.text == text && is_detected_again(reading) {
        return Ok(());
    }
    let restored = if draft.text == text {
        let back = FieldMapper::new(&result.skill, mapper.source)?;
        PlannedHead::unchanged_lines(document, &back)
            .and_then(|head| Build::draft(&result, &back, &head, StashKind::Unneeded))
            .map(|draft| draft.text)
    } else {
        stash::original(&result).map(|original| original.text)
    };
    if restored.as_deref() != Some(text) {
        return Err(ConvertError::unfaithful("metadata.savoir-from", mapper.target));
    }
    Ok(())
}

/// Whether the text alone shows the dialect that it was detected as. Such a text needs no stash if
/// it stays the same: converting it back does nothing.
fn is_detected_again(reading: &Reading) -> bool {
    let Detection { dialect, strength, .. } = reading.detection;
    let detected = dialect::detect(&reading.document, None);
    strength != Strength::Explicit && detected.is_some_and(|found| found.dialect == dialect)
}

fn write_prose(reading: &Reading, target: Dialect) -> Result<Draft, ConvertError> {
    let document = &reading.document;
    let failed = || ConvertError::unfaithful("body", target);
    let text = prose::write(document, reading.skill.dialect).ok_or_else(failed)?;
    let result = read_as(Source::new(text.clone()), target, None);
    let restored = stash::original(&result).map(|original| original.text);
    if result.document.state() != State::Absent || restored.as_deref() != Some(document.text()) {
        return Err(failed());
    }
    let why =
        "prose has no fields; a comment stores its lines so that converting back restores them";
    let fields = document.entries().iter();
    let mut report: Vec<FieldReport> = fields
        .map(|entry| FieldReport::new(&entry.key, "comment", FieldOutcome::Moved, why))
        .collect();
    report.push(body_report(&Translation::Same, reading, target));
    report.extend(body_tools(reading, target));
    Ok(Draft { text, files: Vec::new(), report })
}

/// The state while a text is being assembled.
struct Build<'b, 'a> {
    reading: &'b Reading,
    mapper: &'b FieldMapper<'a>,
    head: &'b PlannedHead,
    stash_kind: StashKind,
    newline: &'static str,
    /// Keys and lines of the result.
    lines: Vec<(String, String)>,
    /// Lines of the source that are not in the result.
    keep: String,
    /// Whether a field differs from the original.
    changed: bool,
    /// Paths in the target that a field of the source was written to.
    covered: Vec<String>,
    report: Vec<FieldReport>,
}

impl<'b, 'a> Build<'b, 'a> {
    fn draft(
        reading: &'b Reading,
        mapper: &'b FieldMapper<'a>,
        head: &'b PlannedHead,
        stash_kind: StashKind,
    ) -> Option<Draft> {
        let document = &reading.document;
        let text = document.text();
        let mut build = Self {
            reading,
            mapper,
            head,
            stash_kind,
            newline: newline(text),
            lines: Vec::new(),
            keep: String::new(),
            changed: stash_kind != StashKind::Unneeded,
            covered: Vec::new(),
            report: Vec::new(),
        };
        build.fields();
        build.missing_fields();
        let translation = body::translate(document.body(), &reading.skill, mapper.target);
        build.metadata(&translation);
        // A file that contains a stash must not be mistaken for the conversion of its original.
        let remembers = Stash::find(document).is_some();
        if stash_kind == StashKind::Unneeded && (build.changed || remembers) {
            return None;
        }
        build.side_files();
        build.report.push(body_report(&translation, reading, mapper.target));
        build.report.extend(body_tools(reading, mapper.target));
        let body = match translation {
            Translation::Rewritten { body, .. } => body,
            _ => document.body().to_owned(),
        };
        let text = build.text(document, &body)?;
        // Fields that have a source were not added.
        let origins: Vec<Option<String>> = build
            .report
            .iter()
            .filter(|field| field.from.is_some())
            .map(|field| field.to.clone())
            .collect();
        build.report.retain(|field| field.from.is_some() || !origins.contains(&field.to));
        Some(Draft { text, files: mapper.fields.files.clone(), report: build.report })
    }

    /// Writes the fields of the source, in order.
    fn fields(&mut self) {
        for field in &self.head.fields {
            let source_lines = &field.source_lines;
            if source_lines.key == "metadata" {
                self.lines.push((source_lines.key.clone(), String::new()));
                continue;
            }
            match field.action {
                FieldAction::KeepLines => {
                    self.lines.push((source_lines.key.clone(), source_lines.text.clone()));
                }
                FieldAction::Requote => {
                    let value = source_lines.value.to_value(self.mapper.source.yaml());
                    self.write(&source_lines.key, &value);
                    self.keep(source_lines);
                }
                FieldAction::Rewrite => {
                    self.write_images(field);
                    self.keep(source_lines);
                }
                FieldAction::Stash | FieldAction::Extend => self.keep(source_lines),
            }
            self.report_field(field);
        }
    }

    fn write(&mut self, key: &str, value: &Value) {
        let lines = with_newlines(&write_entry(key, value, 0), self.newline);
        self.lines.push((key.to_owned(), lines));
        self.changed = true;
    }

    /// Writes the target fields of a source field, except those that have their own source field.
    fn write_images(&mut self, field: &PlannedField) {
        for image in &field.images {
            let key = top(&image.path);
            let own_place = key != field.source_lines.key && self.head.get(key).is_some();
            let elsewhere = key == "metadata" || image.path.contains('#');
            if !own_place && !elsewhere && !self.has(key) {
                self.write(key, &value_of(&self.mapper.fields.written, key));
            }
        }
    }

    fn has(&self, key: &str) -> bool {
        self.lines.iter().any(|(known, _)| known == key)
    }

    fn keep(&mut self, source_lines: &FieldLines) {
        self.changed = true;
        let pure =
            self.newline == "\n" || !source_lines.text.replace("\r\n", "").contains(['\r', '\n']);
        if pure {
            self.keep.push_str(&source_lines.text.replace("\r\n", "\n"));
        } else {
            self.keep.push_str(&source_lines.text);
        }
    }

    /// Writes fields that the target needs and the source does not have, next to related fields.
    fn missing_fields(&mut self) {
        let mapper = self.mapper;
        let written = &mapper.fields.written;
        let mut after: Option<usize> = None;
        for key in top_keys(written).into_iter().filter(|key| *key != "metadata") {
            if let Some(at) = self.lines.iter().position(|(known, _)| known == key) {
                after = Some(at);
                continue;
            }
            self.write(key, &value_of(written, key));
            let at = after.map_or(0, |at| at + 1);
            if let Some(line) = self.lines.pop() {
                self.lines.insert(at, line);
            }
            after = Some(at);
        }
        for image in mapper.in_file().filter(|image| !image.path.starts_with("metadata.")) {
            if !self.covered.contains(&image.path) {
                let report = self.added(image);
                self.report.push(report);
            }
        }
    }

    /// Writes `metadata` with the entries of the target and the stash.
    fn metadata(&mut self, translation: &Translation) {
        let (mapper, head) = (self.mapper, self.head);
        let field = head.get("metadata");
        let source_lines = field.map(|field| &field.source_lines);
        let at_home = field.is_some_and(|field| field.action == FieldAction::Extend);
        let homeless = field.is_some() && !at_home;
        let additions = mapper.metadata_additions(source_lines.filter(|_| at_home));
        let rewritten = matches!(translation, Translation::Rewritten { .. });
        self.changed |= !additions.is_empty() || rewritten || homeless;
        let lines = match source_lines {
            Some(source_lines) if !self.changed => source_lines.text.clone(),
            Some(source_lines) => {
                if homeless || !additions.is_empty() {
                    self.keep(source_lines);
                }
                let stash = self.stash(translation);
                let appended = at_home
                    .then(|| {
                        metadata::append_entries(
                            source_lines,
                            &additions,
                            Some(&stash),
                            self.newline,
                        )
                    })
                    .flatten();
                appended.unwrap_or_else(|| {
                    if at_home && additions.is_empty() {
                        self.keep(source_lines);
                    }
                    let stash = self.stash(translation);
                    let own = Some(source_lines).filter(|_| at_home);
                    let lines = metadata::rewrite(own, &additions, Some(&stash));
                    with_newlines(&lines, self.newline)
                })
            }
            None => {
                let stash = self.changed.then(|| self.stash(translation));
                with_newlines(&metadata::rewrite(None, &additions, stash.as_ref()), self.newline)
            }
        };
        match self.lines.iter_mut().find(|(key, _)| key == "metadata") {
            Some((_, place)) => *place = lines,
            None => self.lines.push(("metadata".into(), lines)),
        }
        self.report_metadata(field, at_home);
    }

    fn stash(&self, translation: &Translation) -> Stash {
        let body = match translation {
            Translation::Rewritten { before, .. } => Some(*before),
            _ => None,
        };
        let document = &self.reading.document;
        let head = match self.stash_kind {
            StashKind::Unneeded | StashKind::Nothing => StashedHead::Absent,
            StashKind::Whole => StashedHead::Whole(
                document.text().get(..document.body_span().start).unwrap_or_default().to_owned(),
            ),
            StashKind::Lines => StashedHead::Lines {
                keep: self.keep.clone(),
                order: self
                    .head
                    .fields
                    .iter()
                    .map(|field| field.source_lines.key.clone())
                    .collect(),
            },
        };
        Stash { from: self.mapper.source, body, head }
    }

    fn text(&self, document: &Document, body: &str) -> Option<String> {
        let lines: String = self.lines.iter().map(|(_, lines)| lines.as_str()).collect();
        let text = document.text();
        let PlannedHead { preamble, tail, .. } = self.head;
        let own_fences = matches!(self.stash_kind, StashKind::Unneeded | StashKind::Lines);
        if let Some(block) = document.layout().closed_block().filter(|_| own_fences) {
            let open = text.get(..block.yaml.start)?;
            let close = text.get(block.yaml.end..document.body_span().start)?;
            return Some(format!("{open}{preamble}{lines}{tail}{close}{body}"));
        }
        let (mark, newline) = (stash::byte_order_mark(document), self.newline);
        Some(format!("{mark}---{newline}{lines}---{newline}{body}"))
    }
}
