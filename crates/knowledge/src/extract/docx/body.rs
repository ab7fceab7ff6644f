//! Reads the text of a Word document: paragraphs, headings, lists and tables.

use quick_xml::events::{BytesStart, Event};

use super::{
    Xml, attribute, each_event, local, reference,
    styles::{Style, Styles},
};
use crate::{extract::ExtractError, limits};

/// Elements that are not part of the current text: deleted or moved text, and copies for older
/// programs.
const SKIPPED_ELEMENTS: [&[u8]; 3] = [b"Fallback", b"del", b"moveFrom"];

/// Maximum indentation of nested lists.
const MAX_LIST_DEPTH: usize = 8;

/// The Markdown written so far, and the current paragraph.
pub(super) struct Body {
    styles: Styles,
    out: String,
    paragraph: String,
    heading: Option<u8>,
    /// The nesting depth of the current list item.
    item: Option<usize>,
    /// Whether the last block was a list item or a table row; the next one then needs no blank line
    /// before it.
    tight: bool,
    /// The cells of the current row, only of the outermost table.
    row: Vec<String>,
    tables: usize,
    /// Whether the current element is in `<w:t>`.
    in_text: bool,
    /// The nesting depth inside a skipped element.
    skipped: usize,
}

impl Body {
    pub(super) fn new(styles: Styles) -> Self {
        Self {
            styles,
            out: String::new(),
            paragraph: String::new(),
            heading: None,
            item: None,
            tight: false,
            row: Vec::new(),
            tables: 0,
            in_text: false,
            skipped: 0,
        }
    }

    pub(super) fn read(mut self, xml: Xml<'_, '_>) -> Result<String, ExtractError> {
        each_event(xml, |event| {
            self.handle_event(&event);
            if self.out.len() + self.paragraph.len() > limits::MAX_DOCUMENT_TEXT_BYTES {
                return Err(ExtractError::TooMuchText);
            }
            Ok(())
        })?;
        self.end_paragraph();
        self.end_row();
        self.out.truncate(self.out.trim_end().len());
        Ok(self.out)
    }

    fn handle_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Start(start) if SKIPPED_ELEMENTS.contains(&local(start)) => self.skipped += 1,
            Event::End(end) if SKIPPED_ELEMENTS.contains(&end.local_name().into_inner()) => {
                self.skipped = self.skipped.saturating_sub(1);
            }
            _ if self.skipped > 0 => {}
            Event::Start(start) => self.open(start),
            Event::Empty(start) => {
                self.open(start);
                self.close(local(start));
            }
            Event::End(end) => self.close(end.local_name().into_inner()),
            Event::Text(text) if self.in_text => self.text(text),
            Event::CData(text) if self.in_text => self.text(text),
            Event::GeneralRef(name) if self.in_text => self.paragraph.extend(reference(name)),
            _ => {}
        }
    }

    fn text(&mut self, bytes: &[u8]) {
        self.paragraph.push_str(&String::from_utf8_lossy(bytes));
    }

    fn open(&mut self, start: &BytesStart<'_>) {
        match local(start) {
            b"t" => self.in_text = true,
            b"tab" => self.paragraph.push('\t'),
            b"br" | b"cr" => self.paragraph.push('\n'),
            b"noBreakHyphen" => self.paragraph.push('-'),
            b"pStyle" => match attribute(start, b"val").and_then(|id| self.styles.get(&id)) {
                Some(Style::Heading(level)) => self.heading = Some(level),
                Some(Style::Item) => self.item = Some(0),
                None => {}
            },
            b"outlineLvl" => {
                let level = attribute(start, b"val").and_then(|level| level.parse::<u8>().ok());
                // Outline level 9 is body text.
                self.heading = level.filter(|level| *level < 9).map(|level| level + 1);
            }
            b"numPr" => self.item = Some(0),
            b"ilvl" => {
                let level = attribute(start, b"val").and_then(|level| level.parse().ok());
                self.item = Some(level.unwrap_or(0));
            }
            b"tbl" => self.tables += 1,
            b"tc" if self.tables == 1 => self.row.push(String::new()),
            _ => {}
        }
    }

    fn close(&mut self, name: &[u8]) {
        match name {
            b"t" => self.in_text = false,
            b"p" => self.end_paragraph(),
            b"tr" if self.tables == 1 => self.end_row(),
            b"tbl" => {
                self.tables = self.tables.saturating_sub(1);
                if self.tables == 0 {
                    self.end_row();
                    self.tight = false;
                }
            }
            _ => {}
        }
    }

    fn end_paragraph(&mut self) {
        let paragraph = std::mem::take(&mut self.paragraph);
        let (heading, item) = (self.heading.take(), self.item.take());
        let text = paragraph.trim();
        if text.is_empty() {
            return;
        }
        if let Some(cell) = self.row.last_mut().filter(|_| self.tables > 0) {
            // A cell must be on one line.
            for word in text.split_whitespace() {
                if !cell.is_empty() {
                    cell.push(' ');
                }
                cell.push_str(word);
            }
            return;
        }
        match (heading, item) {
            (Some(level), _) => {
                let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
                self.block(false, &format!("{} {line}", "#".repeat(level.min(6).into())));
            }
            (None, Some(depth)) => {
                let indent = "  ".repeat(depth.min(MAX_LIST_DEPTH));
                self.block(true, &format!("{indent}- {text}"));
            }
            (None, None) => self.block(false, text),
        }
    }

    fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        if row.iter().any(|cell| !cell.is_empty()) {
            self.block(true, &format!("| {} |", row.join(" | ")));
        }
    }

    /// Writes a block. List items and rows follow each other; other blocks are separated by a blank
    /// line.
    fn block(&mut self, tight: bool, text: &str) {
        if !self.out.is_empty() {
            self.out.push_str(if tight && self.tight { "\n" } else { "\n\n" });
        }
        self.out.push_str(text);
        self.tight = tight;
    }
}
