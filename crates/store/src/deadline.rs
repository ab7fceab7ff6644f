//! Timeouts of database statements.
//!
//! A database that hangs is as bad as one that is down: nobody waits for it without an end.

use std::{future::Future, time::Duration};

use crate::StoreError;

/// One statement, with the wait for a connection. In SQLite that alone may take 40 seconds.
pub(crate) const STATEMENT_TIMEOUT: Duration = Duration::from_mins(1);

/// What a connection may take to show that it can be used again.
pub(crate) const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits for the database, but not longer than `limit`.
pub(crate) async fn within<T, E: Into<StoreError>>(
    limit: Duration,
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer.map_err(Into::into),
        Err(_) => Err(StoreError::Unavailable {
            what: "the database".to_owned(),
            message: format!("no answer within {limit:?}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn hanging_statement_times_out() {
        let hung = std::future::pending::<Result<(), StoreError>>();
        let error = within(Duration::from_millis(20), hung).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the database does not answer: no answer within 20ms; try again later"
        );
    }
}
