//! Timeouts of database statements, so that a database that hangs cannot block requests forever.

use std::{future::Future, time::Duration};

use crate::StoreError;

/// Timeout of one statement, including the wait for a connection, which alone may take 40 seconds
/// in SQLite.
pub(crate) const STATEMENT_TIMEOUT: Duration = Duration::from_mins(1);

/// Timeout of the check whether a used connection can return to the pool.
pub(crate) const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs a database operation with a timeout.
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
