//! Token usage of model requests.

use std::collections::BTreeMap;

use crate::{
    Database, StoreError, Timestamp,
    sql::{new_id, sql},
};

/// Upper limit of recorded tokens per request. A provider may report any number, and the sum of
/// millions of requests must fit into a BIGINT.
const MAX_RECORDED_TOKENS: u64 = 1 << 40;

#[derive(Clone, Copy, Debug)]
pub struct Usage<'a>(pub(crate) &'a Database);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRequest<'a> {
    /// The user who made the request.
    pub user_id: Option<i64>,
    pub provider: &'a str,
    pub model: &'a str,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// Totals over several requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct TokenSums {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Number of requests.
    pub requests: u64,
}

impl TokenSums {
    pub fn add(&mut self, more: Self) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.requests = self.requests.saturating_add(more.requests);
    }
}

/// Totals over a period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageSummary {
    pub total: TokenSums,
    pub by_provider: BTreeMap<String, TokenSums>,
    pub by_model: BTreeMap<String, TokenSums>,
}

/// The usage of one model by one user on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayUsage {
    /// Days since 1970, UTC.
    pub day: i64,
    pub user_id: Option<i64>,
    pub provider: String,
    pub model: String,
    pub tokens: TokenSums,
}

const DAY_MICROS: i64 = 86_400_000_000;

impl Usage<'_> {
    /// Records a request.
    pub async fn record(&self, request: ModelRequest<'_>) -> Result<(), StoreError> {
        sql("INSERT INTO model_requests
                (id, user_id, provider, model, input_tokens, output_tokens, asked_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)")
        .text(&new_id())
        .maybe_number(request.user_id)
        .text(request.provider)
        .text(request.model)
        .count(request.input_tokens.min(MAX_RECORDED_TOKENS))
        .count(request.output_tokens.min(MAX_RECORDED_TOKENS))
        .time(Timestamp::now())
        .run(self.0.writer())
        .await
        .map(drop)
    }

    /// Returns totals since a day, for each day, user and model, oldest first.
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

    /// Returns totals since a time, of one user or of all.
    pub async fn summary(
        &self,
        since: Timestamp,
        user_id: Option<i64>,
    ) -> Result<UsageSummary, StoreError> {
        // PostgreSQL's SUM of BIGINT is NUMERIC, which SQLite does not have.
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
