//! Defines the list of fields that a dialect writes for a skill.

use serde_json::Value;

use crate::dialect::NewFile;

/// One value and its path in the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WrittenField {
    /// The part of the model, such as `policy.timeout`.
    pub(crate) model: &'static str,
    /// Dotted path in the frontmatter, such as `metadata.version`; a path in another file is
    /// written `agents/openai.yaml#policy.products`.
    pub(crate) path: String,
    pub(crate) value: Value,
    /// How the meaning differs, if the target only has an approximate field.
    pub(crate) approximation: Option<String>,
}

/// The fields of a skill in one dialect, in the order in which they are written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    pub(crate) written: Vec<WrittenField>,
    pub(crate) files: Vec<NewFile>,
}

impl Fields {
    /// Adds a part of the model at a path. Null, empty text and empty lists are skipped.
    pub(crate) fn put(&mut self, model: &'static str, path: &str, value: impl Into<Value>) {
        self.add(model, path, value.into(), None);
    }

    /// Adds a part of the model to a field with a similar meaning, and records the difference.
    pub(crate) fn put_approximate(
        &mut self,
        model: &'static str,
        path: &str,
        value: impl Into<Value>,
        why: &str,
    ) {
        self.add(model, path, value.into(), Some(why.to_owned()));
    }

    fn add(
        &mut self,
        model: &'static str,
        path: &str,
        value: Value,
        approximation: Option<String>,
    ) {
        let nothing = match &value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        if !nothing {
            self.written.push(WrittenField { model, path: path.to_owned(), value, approximation });
        }
    }
}
