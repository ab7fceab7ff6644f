//! Writing a skill for another system.

mod telling;

use savoir_lint::{Diagnostic, Source};
use serde_json::Value;
use telling::{body_report, body_tools};

use super::{
    ConvertError, FieldReport, How,
    body::{self, Translation},
    bridge::{Bridge, Fate, Judged, top, top_keys, value_of},
    metadata,
    pieces::{Piece, Pieces},
    prose,
    stash::{self, Head, Stash, newline, with_newlines},
};
use crate::{
    dialect::{Dialect, NewFile},
    document::{Document, State},
    reading::{Reading, read_as},
    yaml::write::write_entry,
};

/// A finished text, and what happened on the way.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) text: String,
    pub(super) files: Vec<NewFile>,
    pub(super) report: Vec<FieldReport>,
}

/// How the original is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// Not at all: the file serves both dialects.
    Unneeded,
    /// Field by field.
    Lines,
    /// As one text.
    Whole,
    /// There is nothing but a body.
    Nothing,
}

/// Writes a skill for another system. What comes out is read again, and the original is restored
/// from it, before anyone sees it.
pub(super) fn forward(reading: &Reading, target: Dialect) -> Result<Draft, ConvertError> {
    if !target.has_frontmatter() {
        return into_prose(reading, target);
    }
    let bridge = Bridge::new(&reading.skill, target)?;
    let mut problem = ConvertError::unfaithful("frontmatter", target);
    for (memories, judge) in ways(&reading.document) {
        let Some(head) = judge(&reading.document, &bridge) else { continue };
        for memory in *memories {
            let Some(draft) = Build::draft(reading, &bridge, &head, *memory) else { continue };
            match verify(reading, &bridge, &draft) {
                Ok(()) => return Ok(draft),
                Err(error) => problem = error,
            }
        }
    }
    Err(problem)
}

/// Whether a skill converted to another dialect is exactly this text.
pub(super) fn makes(reading: &Reading, target: Dialect, text: &str) -> bool {
    if !target.has_frontmatter() {
        return prose::write(&reading.document, reading.skill.dialect).as_deref() == Some(text);
    }
    let Ok(bridge) = Bridge::new(&reading.skill, target) else { return false };
    ways(&reading.document).iter().any(|(memories, judge)| {
        judge(&reading.document, &bridge).is_some_and(|head| {
            memories.iter().any(|memory| {
                Build::draft(reading, &bridge, &head, *memory)
                    .is_some_and(|draft| draft.text == text)
            })
        })
    })
}

/// Cuts a frontmatter and judges its fields.
type Cut = fn(&Document, &Bridge<'_>) -> Option<JudgedHead>;

/// The ways to convert a file, the nicest first.
fn ways(document: &Document) -> &'static [(&'static [Memory], Cut)] {
    if document.layout().closed_block().is_none() {
        return &[(&[Memory::Nothing], JudgedHead::anew)];
    }
    &[
        (&[Memory::Unneeded, Memory::Lines], JudgedHead::as_it_is),
        (&[Memory::Whole], JudgedHead::anew),
    ]
}

/// A frontmatter whose fields were judged.
#[derive(Debug)]
struct JudgedHead {
    preamble: String,
    fields: Vec<Judged>,
    tail: String,
}

impl JudgedHead {
    fn as_it_is(document: &Document, bridge: &Bridge<'_>) -> Option<Self> {
        let block = document.layout().closed_block()?;
        Pieces::cut(block.yaml.slice(document.text())).map(|pieces| Self::new(pieces, bridge))
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is one of two ways to cut")]
    fn anew(document: &Document, bridge: &Bridge<'_>) -> Option<Self> {
        let mut pieces = Pieces::rewritten(document);
        for piece in &mut pieces.fields {
            piece.text = with_newlines(&piece.text, newline(document.text()));
        }
        Some(Self::new(pieces, bridge))
    }

    fn new(pieces: Pieces, bridge: &Bridge<'_>) -> Self {
        let fields = pieces.fields.into_iter().map(|piece| bridge.judge(piece)).collect();
        Self { preamble: pieces.preamble, fields, tail: pieces.tail }
    }

    fn get(&self, key: &str) -> Option<&Judged> {
        self.fields.iter().find(|field| field.piece.key == key)
    }
}

fn verify(reading: &Reading, bridge: &Bridge<'_>, draft: &Draft) -> Result<(), ConvertError> {
    let result = read_as(Source::new(draft.text.clone()), bridge.target, None);
    let document = &result.document;
    let clean =
        document.state() == State::Clean && !document.problems().iter().any(Diagnostic::is_error);
    if !clean {
        return Err(ConvertError::unfaithful("frontmatter", bridge.target));
    }
    if let Some(field) = bridge.lost(&result.skill) {
        return Err(ConvertError::unfaithful(field, bridge.target));
    }
    let text = reading.document.text();
    let restored = if draft.text == text {
        let back = Bridge::new(&result.skill, bridge.source)?;
        JudgedHead::as_it_is(document, &back)
            .and_then(|head| Build::draft(&result, &back, &head, Memory::Unneeded))
            .map(|draft| draft.text)
    } else {
        stash::original(&result).map(|original| original.text)
    };
    if restored.as_deref() != Some(text) {
        return Err(ConvertError::unfaithful("metadata.savoir-from", bridge.target));
    }
    Ok(())
}

fn into_prose(reading: &Reading, target: Dialect) -> Result<Draft, ConvertError> {
    let document = &reading.document;
    let failed = || ConvertError::unfaithful("body", target);
    let text = prose::write(document, reading.skill.dialect).ok_or_else(failed)?;
    let result = read_as(Source::new(text.clone()), target, None);
    let restored = stash::original(&result).map(|original| original.text);
    if result.document.state() != State::Absent || restored.as_deref() != Some(document.text()) {
        return Err(failed());
    }
    let why = "prose has no fields; a comment keeps its lines so that converting back restores it";
    let fields = document.entries().iter();
    let mut report: Vec<FieldReport> =
        fields.map(|entry| FieldReport::new(&entry.key, "comment", How::Moved, why)).collect();
    report.push(body_report(&Translation::Same, reading, target));
    report.extend(body_tools(reading, target));
    Ok(Draft { text, files: Vec::new(), report })
}

/// A text that is being put together.
struct Build<'b, 'a> {
    reading: &'b Reading,
    bridge: &'b Bridge<'a>,
    head: &'b JudgedHead,
    memory: Memory,
    newline: &'static str,
    /// Keys and lines of the result.
    lines: Vec<(String, String)>,
    /// Lines that the result does not have.
    keep: String,
    /// Whether a field differs from the original.
    changed: bool,
    /// Paths of the target that a field of the source went to.
    covered: Vec<String>,
    report: Vec<FieldReport>,
}

impl<'b, 'a> Build<'b, 'a> {
    fn draft(
        reading: &'b Reading,
        bridge: &'b Bridge<'a>,
        head: &'b JudgedHead,
        memory: Memory,
    ) -> Option<Draft> {
        let document = &reading.document;
        let text = document.text();
        let mut build = Self {
            reading,
            bridge,
            head,
            memory,
            newline: newline(text),
            lines: Vec::new(),
            keep: String::new(),
            changed: memory != Memory::Unneeded,
            covered: Vec::new(),
            report: Vec::new(),
        };
        build.fields();
        build.missing_fields();
        let translation = body::translate(document.body(), &reading.skill, bridge.target);
        build.metadata(&translation);
        // A file that remembers another must not be mistaken for what that one became.
        let remembers = Stash::find(document).is_some();
        if memory == Memory::Unneeded && (build.changed || remembers) {
            return None;
        }
        build.side_files();
        build.report.push(body_report(&translation, reading, bridge.target));
        build.report.extend(body_tools(reading, bridge.target));
        let body = match translation {
            Translation::Rewritten { body, .. } => body,
            _ => document.body().to_owned(),
        };
        let text = build.text(document, &body)?;
        // What came from somewhere was not added.
        let origins: Vec<Option<String>> = build
            .report
            .iter()
            .filter(|field| field.from.is_some())
            .map(|field| field.to.clone())
            .collect();
        build.report.retain(|field| field.from.is_some() || !origins.contains(&field.to));
        Some(Draft { text, files: bridge.fields.files.clone(), report: build.report })
    }

    /// Goes through the fields of the source, in order.
    fn fields(&mut self) {
        for field in &self.head.fields {
            let piece = &field.piece;
            if piece.key == "metadata" {
                self.lines.push((piece.key.clone(), String::new()));
                continue;
            }
            match field.fate {
                Fate::Stays => self.lines.push((piece.key.clone(), piece.text.clone())),
                Fate::Spelled => {
                    let value = piece.value.to_value(self.bridge.source.yaml());
                    self.write(&piece.key, &value);
                    self.keep(piece);
                }
                Fate::Written => {
                    self.write_images(field);
                    self.keep(piece);
                }
                Fate::Stashed | Fate::Extended => self.keep(piece),
            }
            self.tell(field);
        }
    }

    fn write(&mut self, key: &str, value: &Value) {
        let lines = with_newlines(&write_entry(key, value, 0), self.newline);
        self.lines.push((key.to_owned(), lines));
        self.changed = true;
    }

    /// Writes what a field became, unless a field of that name has its own place.
    fn write_images(&mut self, field: &Judged) {
        for image in &field.images {
            let key = top(&image.path);
            let own_place = key != field.piece.key && self.head.get(key).is_some();
            let elsewhere = key == "metadata" || image.path.contains('#');
            if !own_place && !elsewhere && !self.has(key) {
                self.write(key, &value_of(&self.bridge.fields.written, key));
            }
        }
    }

    fn has(&self, key: &str) -> bool {
        self.lines.iter().any(|(known, _)| known == key)
    }

    fn keep(&mut self, piece: &Piece) {
        self.changed = true;
        let pure = self.newline == "\n" || !piece.text.replace("\r\n", "").contains(['\r', '\n']);
        if pure {
            self.keep.push_str(&piece.text.replace("\r\n", "\n"));
        } else {
            self.keep.push_str(&piece.text);
        }
    }

    /// Writes what the target needs and no field of the source became, after its neighbour.
    fn missing_fields(&mut self) {
        let bridge = self.bridge;
        let written = &bridge.fields.written;
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
        for image in bridge.in_file().filter(|image| !image.path.starts_with("metadata.")) {
            if !self.covered.contains(&image.path) {
                let report = self.added(image);
                self.report.push(report);
            }
        }
    }

    /// Writes `metadata` with what the target puts there and what we must remember.
    fn metadata(&mut self, translation: &Translation) {
        let (bridge, head) = (self.bridge, self.head);
        let field = head.get("metadata");
        let piece = field.map(|field| &field.piece);
        let at_home = field.is_some_and(|field| field.fate == Fate::Extended);
        let homeless = field.is_some() && !at_home;
        let additions = bridge.metadata_additions(piece.filter(|_| at_home));
        let rewritten = matches!(translation, Translation::Rewritten { .. });
        self.changed |= !additions.is_empty() || rewritten || homeless;
        let lines = match piece {
            Some(piece) if !self.changed => piece.text.clone(),
            Some(piece) => {
                if homeless || !additions.is_empty() {
                    self.keep(piece);
                }
                let stash = self.stash(translation);
                let appended = at_home
                    .then(|| metadata::appended(piece, &additions, Some(&stash), self.newline))
                    .flatten();
                appended.unwrap_or_else(|| {
                    if at_home && additions.is_empty() {
                        self.keep(piece);
                    }
                    let stash = self.stash(translation);
                    let own = Some(piece).filter(|_| at_home);
                    let lines = metadata::rewritten(own, &additions, Some(&stash));
                    with_newlines(&lines, self.newline)
                })
            }
            None => {
                let stash = self.changed.then(|| self.stash(translation));
                with_newlines(&metadata::rewritten(None, &additions, stash.as_ref()), self.newline)
            }
        };
        match self.lines.iter_mut().find(|(key, _)| key == "metadata") {
            Some((_, place)) => *place = lines,
            None => self.lines.push(("metadata".into(), lines)),
        }
        self.tell_metadata(field, at_home);
    }

    fn stash(&self, translation: &Translation) -> Stash {
        let body = match translation {
            Translation::Rewritten { before, .. } => Some(*before),
            _ => None,
        };
        let document = &self.reading.document;
        let head = match self.memory {
            Memory::Unneeded | Memory::Nothing => Head::Absent,
            Memory::Whole => Head::Whole(
                document.text().get(..document.body_span().start).unwrap_or_default().to_owned(),
            ),
            Memory::Lines => Head::Lines {
                keep: self.keep.clone(),
                order: self.head.fields.iter().map(|field| field.piece.key.clone()).collect(),
            },
        };
        Stash { from: self.bridge.source, body, head }
    }

    fn text(&self, document: &Document, body: &str) -> Option<String> {
        let lines: String = self.lines.iter().map(|(_, lines)| lines.as_str()).collect();
        let text = document.text();
        let JudgedHead { preamble, tail, .. } = self.head;
        let own_fences = matches!(self.memory, Memory::Unneeded | Memory::Lines);
        if let Some(block) = document.layout().closed_block().filter(|_| own_fences) {
            let open = text.get(..block.yaml.start)?;
            let close = text.get(block.yaml.end..document.body_span().start)?;
            return Some(format!("{open}{preamble}{lines}{tail}{close}{body}"));
        }
        let (mark, newline) = (stash::byte_order_mark(document), self.newline);
        Some(format!("{mark}---{newline}{lines}---{newline}{body}"))
    }
}
