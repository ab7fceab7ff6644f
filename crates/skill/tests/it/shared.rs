//! Access to test data outside the repository, which is absent on some machines.

use std::path::{Path, PathBuf};

/// A folder of the shared test data, or `None` with a note when it is not there.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("=== SKIPPED: {name} is not beside the repository ===");
    None
}

/// Runs `work` over `items` on all cores and gathers what it returns, in order.
pub(crate) fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let size = items.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let work = &work;
        let parts: Vec<_> = items
            .chunks(size)
            .map(|part| scope.spawn(move || part.iter().map(work).collect::<Vec<_>>()))
            .collect();
        parts.into_iter().flat_map(|part| part.join().expect("a worker panicked")).collect()
    })
}
