//! Parses TOML with the position of every value.

use savoir_skill::Position;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::text_file::{ContentError, FilePosition, Text};

/// A parsed file.
pub(crate) struct Document<'a> {
    text: Text<'a>,
    root: Spanned<DeTable<'a>>,
}

/// Parses TOML.
pub(crate) fn parse<'a>(file: &'a str, text: &'a str) -> Result<Document<'a>, ContentError> {
    let text = Text { file, text };
    let root = DeTable::parse(text.text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        text.content_error(at, error.message().to_owned())
    })?;
    Ok(Document { text, root })
}

impl Document<'_> {
    pub(crate) fn root(&self) -> Table<'_> {
        Table { text: self.text, start: 0, inner: self.root.get_ref() }
    }
}

/// A table of a file.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    text: Text<'a>,
    start: usize,
    inner: &'a DeTable<'a>,
}

impl<'a> Table<'a> {
    /// Returns keys, their offsets, and values.
    pub(crate) fn entries(self) -> impl Iterator<Item = (&'a str, usize, Value<'a>)> {
        self.inner.iter().map(move |(key, value)| {
            let name: &'a str = key.get_ref();
            (name, key.span().start, Value { text: self.text, inner: value })
        })
    }

    pub(crate) fn get(self, key: &str) -> Option<Value<'a>> {
        Some(Value { text: self.text, inner: self.inner.get(key)? })
    }

    pub(crate) fn has(self, key: &str) -> bool {
        self.inner.contains_key(key)
    }

    pub(crate) fn required(self, key: &str) -> Result<Value<'a>, ContentError> {
        self.get(key).ok_or_else(|| self.content_error(self.start, format!("`{key}` is missing")))
    }

    /// Converts ascending offsets to positions.
    pub(crate) fn positions(self, places: impl Iterator<Item = usize>) -> Vec<Position> {
        self.text.positions(places)
    }

    pub(crate) fn content_error(self, at: usize, message: impl Into<String>) -> ContentError {
        self.text.content_error(at, message)
    }
}

/// A value of a file.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    text: Text<'a>,
    inner: &'a Spanned<DeValue<'a>>,
}

impl<'a> Value<'a> {
    pub(crate) fn as_str(self) -> Option<&'a str> {
        self.inner.get_ref().as_str()
    }

    pub(crate) fn string(self, expected: &str) -> Result<&'a str, ContentError> {
        self.as_str().ok_or_else(|| self.wrong_type_error(expected))
    }

    pub(crate) fn table(self, expected: &str) -> Result<Table<'a>, ContentError> {
        let inner =
            self.inner.get_ref().as_table().ok_or_else(|| self.wrong_type_error(expected))?;
        Ok(Table { text: self.text, start: self.inner.span().start, inner })
    }

    pub(crate) fn items(self, expected: &str) -> Result<Vec<Self>, ContentError> {
        let items =
            self.inner.get_ref().as_array().ok_or_else(|| self.wrong_type_error(expected))?;
        Ok(items.iter().map(|inner| Self { text: self.text, inner }).collect())
    }

    pub(crate) fn integer(self) -> Result<i64, ContentError> {
        let integer = self.inner.get_ref().as_integer();
        let integer = integer.and_then(|i| i64::from_str_radix(i.as_str(), i.radix()).ok());
        integer.ok_or_else(|| self.wrong_type_error("a whole number"))
    }

    pub(crate) fn boolean(self) -> Result<bool, ContentError> {
        self.inner.get_ref().as_bool().ok_or_else(|| self.wrong_type_error("true or false"))
    }

    /// Returns the value in a normalized format, to write unknown fields back.
    pub(crate) fn plain(self) -> Option<toml_edit::Value> {
        let written = self.text.text.get(self.inner.span())?;
        match written.parse::<toml_edit::Value>() {
            Ok(mut value) => {
                value.decor_mut().clear();
                Some(value)
            }
            // A table with its own header is not one range of the text.
            Err(_) => inline_value(self.inner.get_ref()),
        }
    }

    pub(crate) fn content_error(self, message: impl Into<String>) -> ContentError {
        self.text.content_error(self.inner.span().start, message)
    }

    pub(crate) fn place(self) -> FilePosition {
        let position = self.text.position(self.inner.span().start);
        FilePosition { file: self.text.file.to_owned(), position }
    }

    fn wrong_type_error(self, expected: &str) -> ContentError {
        self.content_error(format!("this must be {expected}"))
    }
}

/// Formats a value on one line.
fn inline_value(value: &DeValue<'_>) -> Option<toml_edit::Value> {
    Some(match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok()?.into()
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().ok()?.into(),
        DeValue::Boolean(truth) => (*truth).into(),
        DeValue::Datetime(time) => time.to_string().parse::<toml_edit::Value>().ok()?,
        DeValue::Array(items) => {
            let items = items.iter().map(|item| inline_value(item.get_ref()));
            toml_edit::Value::Array(items.collect::<Option<toml_edit::Array>>()?)
        }
        DeValue::Table(table) => {
            let mut inline_table = toml_edit::InlineTable::new();
            for (key, value) in table {
                inline_table.insert(key.get_ref().as_ref(), inline_value(value.get_ref())?);
            }
            toml_edit::Value::InlineTable(inline_table)
        }
    })
}
