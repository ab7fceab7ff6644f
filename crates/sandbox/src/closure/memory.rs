//! What this process found out already, as long as it is still so.
//!
//! A tool is started again and again, and its libraries are shared with the next one. Each memory is bounded and,
//! when full, forgets everything: simple, and rarer than a restart.

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

/// A closure and all that it depends on, what was there and what was not.
#[derive(Debug)]
pub(super) struct Finding {
    /// What was found.
    pub(super) closure: Closure,
    /// What lay where when it was found.
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

/// The closure of a program, computed unless nothing has changed since the last time.
pub(super) fn recall(
    program: &Path,
    find: impl FnOnce() -> Result<Finding, ClosureError>,
) -> Result<Closure, ClosureError> {
    let known = lock(&CLOSURES).get(program).cloned();
    // Held against the disk outside the lock.
    if let Some(finding) = known
        && finding.holds()
    {
        return Ok(finding.closure.clone());
    }
    let finding = Arc::new(find()?);
    put(&CLOSURES, limits::CLOSURES, program, Arc::clone(&finding));
    Ok(finding.closure.clone())
}

/// The image of a file, read unless the file is the one known.
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

/// The system's list of libraries.
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

/// A memory that a panic interrupted still holds whole entries only.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins anew, for measuring.
#[cfg(test)]
pub(super) fn forget() {
    lock(&CLOSURES).clear();
    lock(&IMAGES).clear();
    *lock(&CATALOGUE) = None;
}
