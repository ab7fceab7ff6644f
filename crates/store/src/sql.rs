//! Statements with their values, and rows as Rust values.
//!
//! One text serves both databases: `$1` placeholders, and only the types that both have.

use sqlx::{
    Any, Executor, Row as _,
    any::{AnyArguments, AnyRow},
    query::Query,
};

use crate::{StoreError, Time};

/// A statement that gets its values one after the other.
pub(crate) struct Sql(Query<'static, Any, AnyArguments>);

/// A statement whose text is known when the program is built.
pub(crate) fn sql(text: &'static str) -> Sql {
    Sql(sqlx::query(text))
}

impl Sql {
    /// PostgreSQL has no zero bytes in text; they become the sign for what cannot be read.
    pub(crate) fn text(self, value: &str) -> Self {
        Self(self.0.bind(value.replace('\0', "\u{fffd}")))
    }

    pub(crate) fn maybe_text(self, value: Option<&str>) -> Self {
        Self(self.0.bind(value.map(|value| value.replace('\0', "\u{fffd}"))))
    }

    pub(crate) fn number(self, value: i64) -> Self {
        Self(self.0.bind(value))
    }

    pub(crate) fn count(self, value: u64) -> Self {
        self.number(i64::try_from(value).unwrap_or(i64::MAX))
    }

    pub(crate) fn maybe_number(self, value: Option<i64>) -> Self {
        Self(self.0.bind(value))
    }

    pub(crate) fn time(self, value: Time) -> Self {
        self.number(value.micros())
    }

    pub(crate) fn maybe_time(self, value: Option<Time>) -> Self {
        self.maybe_number(value.map(Time::micros))
    }

    pub(crate) fn bytes(self, value: &[u8]) -> Self {
        Self(self.0.bind(value.to_vec()))
    }

    /// How many rows were changed.
    pub(crate) async fn run<'e, E>(self, executor: E) -> Result<u64, StoreError>
    where
        E: Executor<'e, Database = Any>,
    {
        Ok(self.0.execute(executor).await?.rows_affected())
    }

    pub(crate) async fn all<'e, E>(self, executor: E) -> Result<Vec<Row>, StoreError>
    where
        E: Executor<'e, Database = Any>,
    {
        Ok(self.0.fetch_all(executor).await?.into_iter().map(Row).collect())
    }

    /// The first row. The statement runs to its end nevertheless: in SQLite, one that writes and
    /// returns is only then committed.
    pub(crate) async fn optional<'e, E>(self, executor: E) -> Result<Option<Row>, StoreError>
    where
        E: Executor<'e, Database = Any>,
    {
        Ok(self.all(executor).await?.into_iter().next())
    }

    pub(crate) async fn one<'e, E>(self, executor: E) -> Result<Row, StoreError>
    where
        E: Executor<'e, Database = Any>,
    {
        self.optional(executor).await?.ok_or_else(|| sqlx::Error::RowNotFound.into())
    }
}

/// A row whose columns are known by their place.
pub(crate) struct Row(AnyRow);

impl Row {
    pub(crate) fn text(&self, column: usize) -> Result<String, StoreError> {
        Ok(self.0.try_get(column)?)
    }

    pub(crate) fn maybe_text(&self, column: usize) -> Result<Option<String>, StoreError> {
        Ok(self.0.try_get(column)?)
    }

    pub(crate) fn number(&self, column: usize) -> Result<i64, StoreError> {
        Ok(self.0.try_get(column)?)
    }

    pub(crate) fn count(&self, column: usize) -> Result<u64, StoreError> {
        Ok(u64::try_from(self.number(column)?).unwrap_or(0))
    }

    pub(crate) fn maybe_number(&self, column: usize) -> Result<Option<i64>, StoreError> {
        Ok(self.0.try_get(column)?)
    }

    pub(crate) fn real(&self, column: usize) -> Result<f64, StoreError> {
        Ok(self.0.try_get(column)?)
    }

    pub(crate) fn time(&self, column: usize) -> Result<Time, StoreError> {
        Ok(Time::from_micros(self.number(column)?))
    }

    pub(crate) fn maybe_time(&self, column: usize) -> Result<Option<Time>, StoreError> {
        Ok(self.maybe_number(column)?.map(Time::from_micros))
    }

    pub(crate) fn bytes(&self, column: usize) -> Result<Vec<u8>, StoreError> {
        Ok(self.0.try_get(column)?)
    }
}

/// A new id: a UUID that sorts by the time it was made.
pub(crate) fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// What stands where one of a few words should.
pub(crate) fn damaged(what: &str, found: &str) -> StoreError {
    StoreError::Damaged { what: what.to_owned(), message: format!("`{found}` is unknown") }
}
