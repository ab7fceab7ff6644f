//! Maps a function over many items on all processors.

use std::{
    io,
    num::NonZero,
    sync::{Mutex, PoisonError},
    thread::{self, Scope, ScopedJoinHandle},
};

/// For fewer items, starting threads is slower.
const MIN_PARALLEL: usize = 8;

/// Stack size of threads without special needs.
pub(crate) const DEFAULT_STACK_BYTES: usize = 2 * 1024 * 1024;

/// Maps a function over items in parallel; the results are in the order of the items.
pub(crate) fn map<T: Send, R: Send>(
    items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator + Send>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    map_with_stack(DEFAULT_STACK_BYTES, items, work)
}

/// Like [`map`], with threads of this stack size. If no thread can be started, the work is done on
/// the current thread.
pub(crate) fn map_with_stack<T: Send, R: Send>(
    stack: usize,
    items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator + Send>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let items = items.into_iter();
    let count = items.len();
    if count < MIN_PARALLEL && stack <= DEFAULT_STACK_BYTES {
        return items.map(work).collect();
    }
    let items = Mutex::new(items.enumerate());
    let work_off_rest = || work_off(&items, &work);
    let mut done = thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, NonZero::get).min(count);
        let started: Vec<_> =
            (0..workers).map_while(|_| start(scope, stack, &work_off_rest).ok()).collect();
        let mut done: Vec<(usize, R)> = Vec::with_capacity(count);
        for worker in started {
            match worker.join() {
                Ok(results) => done.extend(results),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    // No items are left, unless no thread could be started.
    done.extend(work_off_rest());
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

fn start<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    stack: usize,
    work_off_rest: &'scope (impl Fn() -> Vec<(usize, R)> + Sync),
) -> io::Result<ScopedJoinHandle<'scope, Vec<(usize, R)>>> {
    thread::Builder::new()
        .name("worker".into())
        .stack_size(stack)
        .spawn_scoped(scope, work_off_rest)
}

/// Takes items one after the other until none is left.
fn work_off<T, R>(
    items: &Mutex<impl Iterator<Item = (usize, T)>>,
    work: impl Fn(T) -> R,
) -> Vec<(usize, R)> {
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let mut done = Vec::new();
    while let Some((at, item)) = next() {
        done.push((at, work(item)));
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order() {
        for count in [0, 1, 7, 8, 1000] {
            let doubled = map(0..count, |number| number * 2);
            assert_eq!(doubled, (0..count).map(|number| number * 2).collect::<Vec<_>>());
            let deep = map_with_stack(8 * DEFAULT_STACK_BYTES, 0..count, |number| number + 1);
            assert_eq!(deep, (1..=count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn runs_on_this_thread_if_threads_fail() {
        // No system can allocate such a stack.
        let done = map_with_stack(1 << 60, 0..20, |number| (number, thread::current().id()));
        assert!(done.iter().all(|(_, thread)| *thread == thread::current().id()));
        assert_eq!(done.len(), 20);
    }

    #[test]
    fn panic_is_propagated() {
        let broken = std::panic::catch_unwind(|| map(0..20, |number| assert_ne!(number, 13)));
        assert!(broken.is_err());
    }
}
