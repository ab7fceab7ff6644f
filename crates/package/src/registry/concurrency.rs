//! Runs a bounded number of tasks concurrently.

use std::{
    future::{Future, pending},
    panic::resume_unwind,
};

use tokio::task::{JoinSet, spawn_blocking};

/// Maximum concurrent requests: enough to use the bandwidth without overloading a server.
pub(super) const MAX_CONCURRENT: usize = 16;

/// Runs a task for each item, a limited number at a time, in any order. Stops at the first error.
pub(super) async fn run_concurrently<T, R, E, F>(
    things: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> F,
) -> Result<Vec<R>, E>
where
    R: Send + 'static,
    E: Send + 'static,
    F: Future<Output = Result<R, E>> + Send + 'static,
{
    let mut waiting = things.into_iter();
    let mut running = JoinSet::new();
    let mut done = Vec::new();
    for thing in waiting.by_ref().take(MAX_CONCURRENT) {
        running.spawn(work(thing));
    }
    while let Some(joined) = running.join_next().await {
        match joined {
            Ok(result) => done.push(result?),
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            Err(_) => {}
        }
        if let Some(thing) = waiting.next() {
            running.spawn(work(thing));
        }
    }
    Ok(done)
}

/// Runs CPU-bound work on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        // The runtime is shutting down, so nothing waits for the result.
        Err(_) => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use super::*;

    #[tokio::test]
    async fn concurrency_is_limited() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut done = run_concurrently(0..100, |number| {
            let (now, most) = (now.clone(), most.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(1)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, ()>(number)
            }
        })
        .await
        .unwrap();
        done.sort_unstable();
        assert_eq!(done, (0..100).collect::<Vec<_>>());
        let most = most.load(Ordering::SeqCst);
        assert!((2..=MAX_CONCURRENT).contains(&most), "{most}");
        let failed =
            run_concurrently(0..100, |n| async move { if n == 7 { Err(n) } else { Ok(n) } });
        assert_eq!(failed.await.unwrap_err(), 7);
    }
}
