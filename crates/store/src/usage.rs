//! Token usage of model requests.

use std::collections::BTreeMap;

use crate::{
    Database, StoreError, Timestamp,
    sql::{new_id, sql},
};

/// Tokens that are noted of one request. A provider may tell any number, and the sum of millions of
/// requests must still be one that databases can hold.
const MAX_TOKENS: u64 = 1 << 40;

/// The usage notes of a database.
#[derive(Clone, Copy, Debug)]
pub struct Usage<'a>(pub(crate) &'a Database);

/// One request to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRequest<'a> {
    /// Who asked.
    pub user_id: Option<i64>,
    /// The provider.
    pub provider: &'a str,
    /// The model.
    pub model: &'a str,
    /// Tokens of the question.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
}

/// Sums of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct TokenSums {
    /// Tokens of the questions.
    pub input_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
    /// How many there were.
    pub requests: u64,
}

impl TokenSums {
    pub fn add(&mut self, more: Self) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.requests = self.requests.saturating_add(more.requests);
    }
}

/// Sums over a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageSummary {
    /// Of all.
    pub total: TokenSums,
    /// By provider.
    pub by_provider: BTreeMap<String, TokenSums>,
    /// By model.
    pub by_model: BTreeMap<String, TokenSums>,
}

/// The requests of one user to one model on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayUsage {
    /// Days since 1970, UTC.
    pub day: i64,
    pub user_id: Option<i64>,
    pub provider: String,
    pub model: String,
    pub tokens: TokenSums,
}

/// Microseconds of a day.
const DAY_MICROS: i64 = 86_400_000_000;

impl Usage<'_> {
    /// Notes a request.
    pub async fn record(&self, spent: ModelRequest<'_>) -> Result<(), StoreError> {
        sql("INSERT INTO model_requests
                (id, user_id, provider, model, input_tokens, output_tokens, asked_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)")
        .text(&new_id())
        .maybe_number(spent.user_id)
        .text(spent.provider)
        .text(spent.model)
        .count(spent.input_tokens.min(MAX_TOKENS))
        .count(spent.output_tokens.min(MAX_TOKENS))
        .time(Timestamp::now())
        .run(self.0.writer())
        .await
        .map(drop)
    }

    /// Sums of the requests since a day, for each day, user and model, oldest first.
    pub async fn by_day(&self, first_day: i64) -> Result<Vec<DayUsage>, StoreError> {
        let rows = sql("SELECT asked_at / $1, user_id, provider, model,
                CAST(SUM(input_tokens) AS BIGINT), CAST(SUM(output_tokens) AS BIGINT), COUNT(*)
             FROM model_requests WHERE asked_at >= $2
             GROUP BY 1, 2, 3, 4 ORDER BY 1, 3, 4")
        .number(DAY_MICROS)
        .number(first_day.saturating_mul(DAY_MICROS))
        .all(self.0.reader())
        .await?;
        let day = |row: &crate::sql::Row| {
            Ok(DayUsage {
                day: row.number(0)?,
                user_id: row.maybe_number(1)?,
                provider: row.text(2)?,
                model: row.text(3)?,
                tokens: TokenSums {
                    input_tokens: row.count(4)?,
                    output_tokens: row.count(5)?,
                    requests: row.count(6)?,
                },
            })
        };
        rows.iter().map(day).collect()
    }

    /// Sums of the requests since a time, of one person or of all.
    pub async fn summary(
        &self,
        since: Timestamp,
        user_id: Option<i64>,
    ) -> Result<UsageSummary, StoreError> {
        // A sum of BIGINT is NUMERIC in PostgreSQL, which is no type that both have.
        let rows = sql("SELECT provider, model, CAST(SUM(input_tokens) AS BIGINT),
                CAST(SUM(output_tokens) AS BIGINT), COUNT(*)
             FROM model_requests
             WHERE asked_at >= $1 AND (user_id = $2 OR $3 = 1)
             GROUP BY provider, model")
        .time(since)
        .number(user_id.unwrap_or_default())
        .number(i64::from(user_id.is_none()))
        .all(self.0.reader())
        .await?;
        let mut summary = UsageSummary::default();
        for row in rows {
            let tokens = TokenSums {
                input_tokens: row.count(2)?,
                output_tokens: row.count(3)?,
                requests: row.count(4)?,
            };
            summary.total.add(tokens);
            summary.by_provider.entry(row.text(0)?).or_default().add(tokens);
            summary.by_model.entry(row.text(1)?).or_default().add(tokens);
        }
        Ok(summary)
    }
}
