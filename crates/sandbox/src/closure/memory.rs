//! Caches closures, ELF data and the library list in this process, for as long as the files are
//! unchanged.
//!
//! A tool is started many times, and different tools share libraries. Each cache is bounded and is
//! cleared when full: simple, and rarer than a restart.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
};

use super::{
    Closure, ClosureError,
    catalogue::Catalogue,
    elf::{Fault, Image},
    way::Stamp,
};
use crate::limits;

/// A closure and the state of all paths that it depends on, including missing ones.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) closure: Closure,
    /// The stamps of the paths when the closure was built.
    pub(super) stamps: Vec<(PathBuf, Option<Stamp>)>,
}

impl Finding {
    fn holds(&self) -> bool {
        self.stamps.iter().all(|(path, stamp)| Stamp::now(path) == *stamp)
    }
}

type Memory<V> = LazyLock<Mutex<HashMap<PathBuf, V>>>;

static CLOSURES: Memory<Arc<Finding>> = LazyLock::new(Mutex::default);
static IMAGES: Memory<(Stamp, Arc<Image>)> = LazyLock::new(Mutex::default);
static CATALOGUE: Mutex<Option<(Stamp, Arc<Catalogue>)>> = Mutex::new(None);

/// Returns the cached closure of a program if no file changed, and otherwise builds it with `find`.
pub(super) fn recall(
    program: &Path,
    find: impl FnOnce() -> Result<Finding, ClosureError>,
) -> Result<Closure, ClosureError> {
    let known = lock(&CLOSURES).get(program).cloned();
    // The comparison with the disk happens outside the lock.
    if let Some(finding) = known
        && finding.holds()
    {
        return Ok(finding.closure.clone());
    }
    let finding = Arc::new(find()?);
    put(&CLOSURES, limits::CLOSURES, program, Arc::clone(&finding));
    Ok(finding.closure.clone())
}

/// Returns the cached ELF data of a file if its stamp is the same, and otherwise reads it.
pub(super) fn image(
    path: &Path,
    stamp: Stamp,
    read: impl FnOnce() -> Result<Image, Fault>,
) -> Result<Arc<Image>, Fault> {
    if let Some((known, image)) = lock(&IMAGES).get(path)
        && *known == stamp
    {
        return Ok(Arc::clone(image));
    }
    let image = Arc::new(read()?);
    put(&IMAGES, limits::IMAGES, path, (stamp, Arc::clone(&image)));
    Ok(image)
}

/// Returns the system's list of libraries, cached by the stamp of its file.
pub(super) fn catalogue(stamp: Stamp) -> Arc<Catalogue> {
    let mut known = lock(&CATALOGUE);
    match known.as_ref() {
        Some((then, catalogue)) if *then == stamp => Arc::clone(catalogue),
        _ => {
            let catalogue = Arc::new(Catalogue::read());
            *known = Some((stamp, Arc::clone(&catalogue)));
            catalogue
        }
    }
}

fn put<V>(memory: &Mutex<HashMap<PathBuf, V>>, most: usize, path: &Path, value: V) {
    let mut memory = lock(memory);
    if memory.len() >= most {
        memory.clear();
    }
    memory.insert(path.to_path_buf(), value);
}

/// A panic cannot leave a half-written entry, so a poisoned lock is still usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Clears all caches, for benchmarks in tests.
#[cfg(test)]
pub(super) fn forget() {
    lock(&CLOSURES).clear();
    lock(&IMAGES).clear();
    *lock(&CATALOGUE) = None;
}
