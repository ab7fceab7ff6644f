//! Finds the styles of a Word document that are headings or lists. Style IDs are in the language of
//! the author, but the names of heading styles are not.

use std::collections::HashMap;

use quick_xml::events::Event;

use super::{Xml, attribute, each_event, local};
use crate::extract::ExtractError;

/// The styles that are headings or lists.
#[derive(Debug, Default)]
pub(super) struct Styles(HashMap<String, Style>);

/// The meaning of a style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// A heading of this level.
    Heading(u8),
    /// An item of a list.
    Item,
}

impl Styles {
    pub(super) fn read(xml: Xml<'_, '_>) -> Result<Self, ExtractError> {
        let mut styles = HashMap::new();
        let mut id: Option<String> = None;
        each_event(xml, |event| {
            let (Event::Start(start) | Event::Empty(start)) = event else { return Ok(()) };
            match local(&start) {
                b"style" => id = attribute(&start, b"styleId"),
                b"name" => {
                    let style = attribute(&start, b"val").as_deref().and_then(named);
                    if let (Some(id), Some(style)) = (&id, style) {
                        styles.insert(id.clone(), style);
                    }
                }
                b"numPr" => {
                    if let Some(id) = &id {
                        // Headings may be numbered, too.
                        styles.entry(id.clone()).or_insert(Style::Item);
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(Self(styles))
    }

    /// Returns the meaning of a style; `Heading1` is known even without a list of styles.
    pub(super) fn get(&self, id: &str) -> Option<Style> {
        self.0.get(id).copied().or_else(|| named(id))
    }
}

/// Returns the meaning of names such as `heading 1`, `Heading1` and `Title`.
fn named(name: &str) -> Option<Style> {
    let name = name.to_ascii_lowercase();
    if name == "title" {
        return Some(Style::Heading(1));
    }
    let level = name.strip_prefix("heading")?.trim_start().parse().ok()?;
    (1..=9).contains(&level).then_some(Style::Heading(level))
}
