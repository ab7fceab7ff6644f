//! Reports what happened to each field in a conversion.

use serde::Serialize;

/// What happened to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldOutcome {
    /// Same place, same value.
    Kept,
    /// Another place or shape, same meaning.
    Moved,
    /// Nearly the same meaning.
    Approximated,
    /// Gone.
    Dropped,
}

/// What happened to one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldReport {
    /// The field by its name in the source, or in the target when the source has none.
    pub field: String,
    /// Dotted path in the source; nothing when the target needed it and the source had none.
    pub from: Option<String>,
    /// Dotted path in the result.
    pub to: Option<String>,
    /// What happened.
    pub how: FieldOutcome,
    /// Why, in words.
    pub why: String,
}

impl FieldReport {
    /// A field that went from one place to another.
    pub(super) fn new(from: &str, to: &str, how: FieldOutcome, why: impl Into<String>) -> Self {
        Self {
            field: from.to_owned(),
            from: Some(from.to_owned()),
            to: Some(to.to_owned()),
            how,
            why: why.into(),
        }
    }

    /// A field that the target needed and the source did not have.
    pub(super) fn added(to: &str, how: FieldOutcome, why: impl Into<String>) -> Self {
        Self { field: to.to_owned(), from: None, to: Some(to.to_owned()), how, why: why.into() }
    }
}
