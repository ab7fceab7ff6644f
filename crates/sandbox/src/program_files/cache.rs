//! Caches program file lists, ELF data and the `ldconfig` cache in this process, for as long as the
//! files are unchanged.
//!
//! A tool is started many times, and different tools share libraries. Each cache is bounded and is
//! cleared when full: simple, and rarer than a restart.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
};

use super::{
    ProgramFiles, ProgramFilesError,
    elf::{ElfError, ElfFile},
    ld_cache::LdCache,
    path_resolver::FileStamp,
};
use crate::limits;

/// The files of a program and the state of all paths that it depends on, including missing ones.
#[derive(Debug)]
pub(super) struct CachedFiles {
    pub(super) program_files: ProgramFiles,
    /// The stamps of the paths when the list was built.
    pub(super) stamps: Vec<(PathBuf, Option<FileStamp>)>,
}

impl CachedFiles {
    fn is_current(&self) -> bool {
        self.stamps.iter().all(|(path, stamp)| FileStamp::now(path) == *stamp)
    }
}

type FileCache<V> = LazyLock<Mutex<HashMap<PathBuf, V>>>;

static PROGRAM_FILES: FileCache<Arc<CachedFiles>> = LazyLock::new(Mutex::default);
static ELF_FILES: FileCache<(FileStamp, Arc<ElfFile>)> = LazyLock::new(Mutex::default);
static LD_CACHE: Mutex<Option<(FileStamp, Arc<LdCache>)>> = Mutex::new(None);

/// Returns the cached files of a program if none changed, and otherwise finds them with `build`.
pub(super) fn get_or_build(
    program: &Path,
    build: impl FnOnce() -> Result<CachedFiles, ProgramFilesError>,
) -> Result<ProgramFiles, ProgramFilesError> {
    let cached_entry = lock(&PROGRAM_FILES).get(program).cloned();
    // The comparison with the disk happens outside the lock.
    if let Some(cached) = cached_entry
        && cached.is_current()
    {
        return Ok(cached.program_files.clone());
    }
    let cached = Arc::new(build()?);
    insert(&PROGRAM_FILES, limits::MAX_CACHED_PROGRAMS, program, Arc::clone(&cached));
    Ok(cached.program_files.clone())
}

/// Returns the cached ELF data of a file if its stamp is the same, and otherwise reads it.
pub(super) fn elf_file(
    path: &Path,
    stamp: FileStamp,
    read: impl FnOnce() -> Result<ElfFile, ElfError>,
) -> Result<Arc<ElfFile>, ElfError> {
    if let Some((cached_entry, elf_file)) = lock(&ELF_FILES).get(path)
        && *cached_entry == stamp
    {
        return Ok(Arc::clone(elf_file));
    }
    let elf_file = Arc::new(read()?);
    insert(&ELF_FILES, limits::MAX_CACHED_ELF_FILES, path, (stamp, Arc::clone(&elf_file)));
    Ok(elf_file)
}

/// Returns the system's list of libraries, cached by the stamp of its file.
pub(super) fn ld_cache(stamp: FileStamp) -> Arc<LdCache> {
    let mut cached_entry = lock(&LD_CACHE);
    match cached_entry.as_ref() {
        Some((then, ld_cache)) if *then == stamp => Arc::clone(ld_cache),
        _ => {
            let ld_cache = Arc::new(LdCache::read());
            *cached_entry = Some((stamp, Arc::clone(&ld_cache)));
            ld_cache
        }
    }
}

fn insert<V>(cache: &Mutex<HashMap<PathBuf, V>>, max_entries: usize, path: &Path, value: V) {
    let mut cache = lock(cache);
    if cache.len() >= max_entries {
        cache.clear();
    }
    cache.insert(path.to_path_buf(), value);
}

/// A panic cannot leave a half-written entry, so a poisoned lock is still usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Clears all caches, for benchmarks in tests.
#[cfg(test)]
pub(super) fn clear_all() {
    lock(&PROGRAM_FILES).clear();
    lock(&ELF_FILES).clear();
    *lock(&LD_CACHE) = None;
}
