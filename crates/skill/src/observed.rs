//! Defines [`ObservedPermissions`]: the permissions that recorded runs used, and the fields that declare them.
//!
//! The file is in the skill's folder, so that it is committed with the skill and `check` can
//! compare it with the declaration.

use std::collections::BTreeMap;

use savoir_lint::{Edit, Span};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    document::Document, permission::Permission, reading::Reading, yaml::write::write_entry,
};

/// Path of the file in a skill's folder.
pub const OBSERVED_FILE: &str = ".savoir/observed.json";

/// The permissions that recorded runs of a skill used, per tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedPermissions {
    /// The form of this file: 1.
    pub version: u32,
    /// The smallest permissions that would have done, by tool.
    pub tools: BTreeMap<String, Vec<Permission>>,
}

impl ObservedPermissions {
    /// Parses the file.
    pub fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// Adds the permissions that a run of a tool used.
    pub fn add(&mut self, tool: &str, permissions: &[Permission]) {
        self.version = 1;
        let known = self.tools.entry(tool.to_owned()).or_default();
        for permission in permissions {
            if !known.iter().any(|old| old.covers(permission)) {
                known.retain(|old| !permission.covers(old));
                known.push(permission.clone());
            }
        }
        known.sort();
    }

    /// Returns the permissions that all tools use, without duplicates.
    pub fn all(&self) -> Vec<Permission> {
        let mut all = Self::default();
        for permissions in self.tools.values() {
            all.add("", permissions);
        }
        all.tools.remove("").unwrap_or_default()
    }
}

/// The fields that declare these permissions in the skill's dialect, as whole lines; `None` if it
/// has no fields for them.
pub fn declaration_lines(reading: &Reading, permissions: &[Permission]) -> Option<String> {
    let fields = fields(reading, permissions);
    let lines: String = fields.iter().map(|(key, value)| write_entry(key, value, 0)).collect();
    (!fields.is_empty()).then_some(lines)
}

/// The edits that put the declaration into the file; `None` if its dialect has no fields for them.
pub fn declare(reading: &Reading, permissions: &[Permission]) -> Option<Vec<Edit>> {
    let document = &reading.document;
    let fields = fields(reading, permissions);
    let newline = if document.text().contains("\r\n") { "\r\n" } else { "\n" };
    let edits = fields.iter().map(|(key, value)| {
        let nested = key.contains('.').then(|| document.fields()?.path(key)).flatten();
        if let Some(node) = nested {
            return Some(Edit { span: node.span, text: value.to_string() });
        }
        let text = write_entry(key, value, 0).replace('\n', newline);
        Some(Edit { span: place(document, key)?, text })
    });
    let edits: Option<Vec<Edit>> = edits.collect();
    edits.filter(|edits| !edits.is_empty())
}

fn fields(reading: &Reading, permissions: &[Permission]) -> Vec<(String, Value)> {
    reading.skill.dialect.language().declare(&reading.document, permissions)
}

/// The lines of an entry, else the end of the frontmatter.
fn place(document: &Document, key: &str) -> Option<Span> {
    let lines = document.entry_lines(key).map(|lines| {
        // Comments before the key stay.
        let entry = document.entries().iter().find(|entry| entry.key == key);
        Span::new(entry.map_or(lines.start, |entry| entry.key_span.start), lines.end)
    });
    lines.or_else(|| Some(Span::at(document.layout().closed_block()?.yaml.end)))
}
