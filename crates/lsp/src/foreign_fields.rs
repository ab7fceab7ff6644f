//! Finds fields that the dialect of a file does not define, with the systems that define them.
//!
//! Agents ignore such fields, so `savoir check` accepts them silently. In an editor, a hint shows
//! which systems read the field.

use savoir_lint::{Diagnostic, Span, visible, words};
use savoir_skill::{Dialect, check::CheckedSkill};

use crate::schema::{self, Step};

/// A field that the agents of this dialect ignore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignField {
    pub(crate) span: Span,
    pub(crate) message: String,
}

/// Codes of findings that already report an unknown field.
const UNKNOWN: [&str; 2] = ["unknown-field", "unknown-dialect"];

pub(crate) fn find(checked: &CheckedSkill) -> Vec<ForeignField> {
    let dialect = checked.reading.detection.dialect;
    let known = schema::fields(dialect, &[]);
    let is_reported = |span: Span| {
        let about = |found: &&Diagnostic| found.span == span && UNKNOWN.contains(&found.code);
        checked.diagnostics.iter().find(about).is_some()
    };
    let entries = checked.reading.document.entries().iter();
    entries
        .filter(|entry| known.iter().all(|(key, _)| *key != entry.key))
        .filter(|entry| dialect != Dialect::PROSE && !is_reported(entry.key_span))
        .map(|entry| ForeignField { span: entry.key_span, message: message(&entry.key, dialect) })
        .collect()
}

fn message(key: &str, dialect: Dialect) -> String {
    let owners = schema::owners(&[Step::Key(key.to_owned())]);
    let owners: Vec<&str> = owners.iter().map(|docs| docs.dialect.title()).collect();
    let (key, dialect) = (visible(key), dialect.title());
    if owners.is_empty() {
        format!("`{key}` is not a field of {dialect}, nor of any system that Savoir knows")
    } else {
        let owners = words::and(&owners);
        format!("`{key}` is a field of {owners}; {dialect} does not define it")
    }
}

#[cfg(test)]
mod tests {
    use savoir_skill::{
        Source,
        check::{self, Options},
    };

    use super::*;

    fn hints(text: &str) -> Vec<String> {
        let checked = check::check(Source::new(text.into()), None, &Options::default());
        find(&checked).into_iter().map(|field| field.message).collect()
    }

    #[test]
    fn a_field_of_another_system_names_its_owner() {
        let text = "---\nname: demo\ndescription: Shows it.\nknowledge_base: kb\nx-own: 1\neffort: low\n---\n";
        let found = hints(text);
        assert!(
            found.iter().any(|hint| hint.contains("x-own") && hint.contains("nor of any")),
            "{found:?}"
        );
    }

    #[test]
    fn own_fields_get_no_hint() {
        assert!(hints("---\nname: demo\ndescription: Shows it.\neffort: low\n---\n").is_empty());
        assert!(hints("# Only text\n").is_empty());
    }
}
