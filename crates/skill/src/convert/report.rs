//! Reports what happened to each field in a conversion.

use serde::Serialize;

/// The outcome of a conversion for one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldOutcome {
    /// Same path, same value.
    Kept,
    /// Different path or format, same meaning.
    Moved,
    /// Similar meaning.
    Approximated,
    /// Not in the result.
    Dropped,
}

/// The outcome for one field, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldReport {
    /// The name of the field in the source, or in the target if the source does not have it.
    pub field: String,
    /// Dotted path in the source; `None` if only the target needed the field.
    pub from: Option<String>,
    /// Dotted path in the result.
    pub to: Option<String>,
    /// The outcome.
    pub how: FieldOutcome,
    /// The reason, as a text for users.
    pub why: String,
}

impl FieldReport {
    /// Makes a report for a field that has a path in source and target.
    pub(super) fn new(from: &str, to: &str, how: FieldOutcome, why: impl Into<String>) -> Self {
        Self {
            field: from.to_owned(),
            from: Some(from.to_owned()),
            to: Some(to.to_owned()),
            how,
            why: why.into(),
        }
    }

    /// Makes a report for a field that the target needed and the source did not have.
    pub(super) fn added(to: &str, how: FieldOutcome, why: impl Into<String>) -> Self {
        Self { field: to.to_owned(), from: None, to: Some(to.to_owned()), how, why: why.into() }
    }
}
