//! Counters of rate limits.

use std::time::Duration;

use sqlx::AnyConnection;

use crate::{Database, StoreError, Timestamp, sql::sql};

#[derive(Clone, Copy, Debug)]
pub struct RateLimits<'a>(pub(crate) &'a Database);

/// A counter in its current window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateCount {
    /// Number of requests in the window, this one included.
    pub count: u64,
    /// When the window ends.
    pub resets_at: Timestamp,
}

impl RateLimits<'_> {
    /// Counts a request. A window starts with its first request and ends after `window`. It is one
    /// statement, so that all processes share the count.
    pub async fn hit(&self, key: &str, window: Duration) -> Result<RateCount, StoreError> {
        hit(&mut *self.0.writer().acquire().await?, key, window).await
    }

    /// Deletes counters whose windows have ended.
    pub async fn sweep(&self) -> Result<u64, StoreError> {
        sql("DELETE FROM rate_limits WHERE resets_at <= $1")
            .time(Timestamp::now())
            .run(self.0.writer())
            .await
    }
}

/// Counts a request in a transaction. If it is rolled back, the request does not count.
pub(crate) async fn hit(
    connection: &mut AnyConnection,
    key: &str,
    window: Duration,
) -> Result<RateCount, StoreError> {
    let now = Timestamp::now();
    let row = sql("INSERT INTO rate_limits (name, hits, resets_at) VALUES ($1, 1, $2)
         ON CONFLICT (name) DO UPDATE SET
            hits = CASE WHEN rate_limits.resets_at <= $3 THEN 1 ELSE rate_limits.hits + 1 END,
            resets_at = CASE WHEN rate_limits.resets_at <= $3 THEN excluded.resets_at
                ELSE rate_limits.resets_at END
         RETURNING hits, resets_at")
    .text(key)
    .time(now.plus(window))
    .time(now)
    .one(connection)
    .await?;
    Ok(RateCount { count: row.count(0)?, resets_at: row.time(1)? })
}
