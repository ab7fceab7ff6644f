//! What a dialect makes of the model: which value goes to which field.

use serde_json::Value;

use crate::dialect::NewFile;

/// One value in its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Written {
    /// The part of the model, such as `policy.timeout`.
    pub(crate) model: &'static str,
    /// Dotted path in the frontmatter, such as `metadata.version`; a path in another file is
    /// written `agents/openai.yaml#policy.products`.
    pub(crate) path: String,
    pub(crate) value: Value,
    /// Why the meaning is not quite the same, when it is not.
    pub(crate) near: Option<String>,
}

/// The fields of a skill in one dialect, in the order in which they are written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    pub(crate) written: Vec<Written>,
    pub(crate) files: Vec<NewFile>,
}

impl Fields {
    /// Puts a part of the model at a path. Null, empty text and empty lists are left out.
    pub(crate) fn put(&mut self, model: &'static str, path: &str, value: impl Into<Value>) {
        self.add(model, path, value.into(), None);
    }

    /// Puts a part of the model where it means nearly the same, and says how it differs.
    pub(crate) fn near(
        &mut self,
        model: &'static str,
        path: &str,
        value: impl Into<Value>,
        why: &str,
    ) {
        self.add(model, path, value.into(), Some(why.to_owned()));
    }

    fn add(&mut self, model: &'static str, path: &str, value: Value, near: Option<String>) {
        let nothing = match &value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        if !nothing {
            self.written.push(Written { model, path: path.to_owned(), value, near });
        }
    }
}
