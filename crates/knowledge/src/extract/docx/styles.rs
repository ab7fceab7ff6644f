//! Which styles of a document are headings or lists: their ids are in the language of its author,
//! the names of headings are not.

use std::collections::HashMap;

use quick_xml::events::Event;

use super::{Xml, attribute, each_event, local};
use crate::extract::ExtractError;

/// What each style stands for, if it is more than looks.
#[derive(Debug, Default)]
pub(super) struct Styles(HashMap<String, Style>);

/// What a style stands for.
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

    /// What a style stands for; `Heading1` is one also without a list of styles.
    pub(super) fn get(&self, id: &str) -> Option<Style> {
        self.0.get(id).copied().or_else(|| named(id))
    }
}

/// What `heading 1`, `Heading1` or `Title` stands for.
fn named(name: &str) -> Option<Style> {
    let name = name.to_ascii_lowercase();
    if name == "title" {
        return Some(Style::Heading(1));
    }
    let level = name.strip_prefix("heading")?.trim_start().parse().ok()?;
    (1..=9).contains(&level).then_some(Style::Heading(level))
}
