//! SQL statements with typed parameters, and typed access to rows.
//!
//! The same text works in both databases: `$1` placeholders, and only types that both support.

use std::time::Duration;

use sqlx::{
    Any, AnyConnection, AssertSqlSafe, Executor, Row as _,
    any::{AnyArguments, AnyRow},
    query::Query,
};

use crate::{
    StoreError, Timestamp,
    deadline::{STATEMENT_TIMEOUT, within},
};

/// A statement to which parameters are bound one by one.
pub(crate) struct Sql(Query<'static, Any, AnyArguments>);

/// Creates a statement from a constant text.
pub(crate) fn sql(text: &'static str) -> Sql {
    Sql(sqlx::query(text))
}

/// Creates a statement from a text that is composed at run time. It must never contain a value.
pub(crate) fn built(text: String) -> Sql {
    Sql(sqlx::query(AssertSqlSafe(text)))
}

/// Creates a statement that ends with a list of texts: `head` is `SELECT … WHERE column IN`.
pub(crate) fn among(head: &str, texts: impl ExactSizeIterator<Item = String>) -> Sql {
    let statement = built(format!("{head} {}", placeholders(1, texts.len())));
    texts.fold(statement, |statement, text| statement.text(&text))
}

/// Builds a statement with optional conditions.
pub(crate) struct SqlBuilder {
    text: String,
    values: Vec<Value>,
}

impl SqlBuilder {
    pub(crate) fn new(text: String) -> Self {
        Self { text, values: Vec::new() }
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a parameter and returns its placeholder.
    pub(crate) fn place(&mut self, value: Value) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    /// Adds a condition such as `column >` with its parameter.
    pub(crate) fn and(&mut self, condition: &str, value: Value) {
        let place = self.place(value);
        for text in [" AND ", condition, " ", &place] {
            self.push(text);
        }
    }

    pub(crate) fn into_statement(self) -> Sql {
        self.values.into_iter().fold(built(self.text), Sql::value)
    }
}

/// Maximum parameters per statement of [`insert_rows`]. PostgreSQL supports twice as many. In
/// SQLite, binding time grows with the number of parameters, and there is no network round trip to
/// save.
const MAX_VALUES_PER_STATEMENT: [(&str, usize); 2] = [("PostgreSQL", 32_000), ("SQLite", 200)];
const MAX_ROWS_PER_STATEMENT: usize = 500;

/// A parameter of [`insert_rows`].
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    MaybeText(Option<String>),
    Number(i64),
    MaybeNumber(Option<i64>),
    Bytes(Vec<u8>),
}

/// Inserts rows, many per statement: `head` is `INSERT INTO table (…)`, and `tail` may be an `ON
/// CONFLICT` clause. Returns how many rows changed.
pub(crate) async fn insert_rows(
    connection: &mut AnyConnection,
    head: &str,
    rows: Vec<Vec<Value>>,
    tail: &str,
) -> Result<u64, StoreError> {
    let backend = connection.backend_name();
    let most = MAX_VALUES_PER_STATEMENT
        .iter()
        .find(|(name, _)| *name == backend)
        .map_or(200, |(_, most)| *most);
    let mut rows = rows.into_iter().peekable();
    let mut changed = 0;
    while let Some(width) = rows.peek().map(|row| row.len().max(1)) {
        let some: Vec<_> =
            rows.by_ref().take(MAX_ROWS_PER_STATEMENT.min(most / width).max(1)).collect();
        let mut statement =
            built(format!("{head} VALUES {} {tail}", placeholders(some.len(), width)));
        for value in some.into_iter().flatten() {
            statement = statement.value(value);
        }
        changed += statement.run(&mut *connection).await?;
    }
    Ok(changed)
}

/// `($1,$2),($3,$4)`
fn placeholders(rows: usize, width: usize) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(rows * width * 7);
    for place in 1..=rows * width {
        let before = if place % width == 1 || width == 1 { "(" } else { "," };
        let between = if place > 1 && before == "(" { "," } else { "" };
        let after = if place.is_multiple_of(width) { ")" } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{between}{before}${place}{after}");
    }
    text
}

impl Sql {
    /// Binds a text. PostgreSQL does not allow NUL characters; they become U+FFFD.
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

    pub(crate) fn time(self, value: Timestamp) -> Self {
        self.number(value.micros())
    }

    /// Binds a duration in microseconds, to be added to [`crate::Database::clock`].
    pub(crate) fn duration(self, value: Duration) -> Self {
        self.number(i64::try_from(value.as_micros()).unwrap_or(i64::MAX / 4))
    }

    pub(crate) fn maybe_time(self, value: Option<Timestamp>) -> Self {
        self.maybe_number(value.map(Timestamp::micros))
    }

    pub(crate) fn bytes(self, value: &[u8]) -> Self {
        Self(self.0.bind(value.to_vec()))
    }

    pub(crate) fn value(self, value: Value) -> Self {
        match value {
            Value::Text(value) => self.text(&value),
            Value::MaybeText(value) => self.maybe_text(value.as_deref()),
            Value::Number(value) => self.number(value),
            Value::MaybeNumber(value) => self.maybe_number(value),
            Value::Bytes(value) => Self(self.0.bind(value)),
        }
    }

    /// Runs the statement, and returns how many rows changed.
    pub(crate) async fn run<'e, E>(self, executor: E) -> Result<u64, StoreError>
    where
        E: Executor<'e, Database = Any>,
    {
        Ok(within(STATEMENT_TIMEOUT, self.0.execute(executor)).await?.rows_affected())
    }

    pub(crate) async fn all<'e, E>(self, executor: E) -> Result<Vec<Row>, StoreError>
    where
        E: Executor<'e, Database = Any>,
    {
        let rows = within(STATEMENT_TIMEOUT, self.0.fetch_all(executor)).await?;
        Ok(rows.into_iter().map(Row).collect())
    }

    /// Returns the first row. The statement runs to its end nevertheless, because SQLite commits an
    /// `INSERT … RETURNING` only then.
    pub(crate) async fn optional<'e, E>(self, executor: E) -> Result<Option<Row>, StoreError>
    where
        E: Executor<'e, Database = Any>,
    {
        Ok(self.all(executor).await?.into_iter().next())
    }

    /// Like [`Self::run`], but without a timeout: migrating a large database may take long.
    pub(crate) async fn run_to_end<'e, E>(self, executor: E) -> Result<u64, StoreError>
    where
        E: Executor<'e, Database = Any>,
    {
        Ok(self.0.execute(executor).await?.rows_affected())
    }

    pub(crate) async fn one<'e, E>(self, executor: E) -> Result<Row, StoreError>
    where
        E: Executor<'e, Database = Any>,
    {
        self.optional(executor).await?.ok_or_else(|| sqlx::Error::RowNotFound.into())
    }
}

/// A row whose columns are read by index.
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

    pub(crate) fn time(&self, column: usize) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::from_micros(self.number(column)?))
    }

    pub(crate) fn maybe_time(&self, column: usize) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.maybe_number(column)?.map(Timestamp::from_micros))
    }

    pub(crate) fn bytes(&self, column: usize) -> Result<Vec<u8>, StoreError> {
        Ok(self.0.try_get(column)?)
    }
}

/// Creates a UUID that sorts by creation time.
pub(crate) fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// The error for a stored word that is not one of the expected ones.
pub(crate) fn damaged(what: &str, found: &str) -> StoreError {
    StoreError::Damaged { what: what.to_owned(), message: format!("`{found}` is unknown") }
}

#[cfg(test)]
mod tests {
    use super::placeholders;

    #[test]
    fn placeholders_of_many_rows() {
        assert_eq!(placeholders(2, 3), "($1,$2,$3),($4,$5,$6)");
        assert_eq!(placeholders(3, 1), "($1),($2),($3)");
    }
}
