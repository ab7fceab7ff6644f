//! Repeats the search of the dynamic loader to find the file of each needed library.
//!
//! glibc searches in this order: the `RPATH` of the library and of the objects that loaded it
//! (unless it has a `RUNPATH`), its `RUNPATH`, the `ldconfig` cache, the default folders.
//! `LD_LIBRARY_PATH` is not set in a sandbox.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    FileUse, ProgramFilesError,
    build::{Builder, read_elf},
    cache,
    elf::ElfFile,
    ld_cache,
    path_resolver::{ResolveError, ResolvedPath},
};

/// Debian's name for this architecture in paths.
pub(super) const TRIPLET: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-linux-gnu" } else { "x86_64-linux-gnu" };

const PLATFORM: &str = if cfg!(target_arch = "aarch64") { "aarch64" } else { "x86_64" };

/// One program or library that the process has loaded.
#[derive(Debug)]
struct Object {
    /// The folder of the path that opened the object, which is its `$ORIGIN`.
    origin: PathBuf,
    real: PathBuf,
    elf_file: Arc<ElfFile>,
    /// The index of the object that loaded this one.
    parent: Option<usize>,
}

/// All objects that a process has loaded.
#[derive(Debug, Default)]
pub(super) struct LoadedObjects {
    /// The program first, then its loader. Empty for a static program, which loads nothing.
    objects: Vec<Object>,
    /// Library names that refer to an object that is already loaded.
    names: Vec<OsString>,
    is_musl: bool,
}

impl LoadedObjects {
    fn has_name(&self, name: &OsStr) -> bool {
        self.names.iter().any(|known| known == name)
    }

    fn add(
        &mut self,
        name: &OsStr,
        opened: &Path,
        resolved: &ResolvedPath,
        elf_file: &Arc<ElfFile>,
        parent: usize,
    ) {
        self.names.push(name.to_os_string());
        self.names.extend(elf_file.soname.clone());
        if self.objects.iter().any(|object| object.real == resolved.real) {
            return;
        }
        let origin = opened.parent().unwrap_or(opened).to_path_buf();
        let (real, elf_file) = (resolved.real.clone(), Arc::clone(elf_file));
        self.objects.push(Object { origin, real, elf_file, parent: Some(parent) });
    }

    /// Returns the folders that are searched before the system's folders for a library of this
    /// object.
    fn search_folders(&self, index: usize) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        let Some(object) = self.objects.get(index) else { return folders };
        if object.elf_file.runpath.is_none() {
            let mut next = Some(index);
            while let Some(ancestor) = next.and_then(|index| self.objects.get(index)) {
                if ancestor.elf_file.runpath.is_none()
                    && let Some(list) = &ancestor.elf_file.rpath
                {
                    folders.extend(expand_search_path(list, &ancestor.origin));
                }
                next = ancestor.parent;
            }
        }
        if let Some(list) = &object.elf_file.runpath {
            folders.extend(expand_search_path(list, &object.origin));
        }
        folders
    }
}

/// What to do about a library that cannot be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissingLibrary {
    /// Fail, because the program would not start.
    Fail,
    /// Continue: one module does not work, but it does not work outside the sandbox either.
    Ignore,
}

impl Builder<'_> {
    /// Adds the loader of a program and all libraries that the program is linked with.
    pub(super) fn load_program(
        &mut self,
        resolved: &ResolvedPath,
        program: &Arc<ElfFile>,
    ) -> Result<LoadedObjects, ProgramFilesError> {
        let mut objects = LoadedObjects::default();
        let Some(path) = &program.interpreter else { return Ok(objects) };
        let loader = self.resolver.resolve(path).map_err(|error| match error {
            ResolveError::Missing => ProgramFilesError::MissingInterpreter {
                script: resolved.real.clone(),
                interpreter: path.to_string_lossy().into_owned(),
            },
            ResolveError::Loop => ProgramFilesError::LinkLoop { path: path.clone() },
            ResolveError::Reserved => ProgramFilesError::Reserved { path: path.clone() },
        })?;
        // A loader needs no other loader or library. Without this check a program could add any
        // other program by naming it as its loader.
        let own = read_elf(&loader)
            .filter(|elf_file| {
                !elf_file.is_executable_only
                    && elf_file.interpreter.is_none()
                    && elf_file.needed.is_empty()
            })
            .ok_or_else(|| ProgramFilesError::NotALoader {
                program: resolved.real.clone(),
                loader: path.clone(),
            })?;
        self.add_file(&loader, FileUse::Library)?;
        let name = path.file_name().unwrap_or_default();
        objects.is_musl = name.as_bytes().starts_with(b"ld-musl");
        objects.objects.push(Object {
            // The kernel passes the real path to the program.
            origin: resolved.real.parent().unwrap_or(&resolved.real).to_path_buf(),
            real: resolved.real.clone(),
            elf_file: Arc::clone(program),
            parent: None,
        });
        objects.add(name, path, &loader, &own, 0);
        if objects.is_musl {
            // In musl, all of these libraries are the loader itself.
            objects.names.extend(
                ["c", "pthread", "rt", "m", "dl", "util", "xnet"]
                    .map(|part| format!("lib{part}.so").into()),
            );
        }
        self.load_libraries(&mut objects, 0, MissingLibrary::Fail)?;
        Ok(objects)
    }

    /// Adds the libraries of a module that a running program loads later. `loaded` is restored
    /// afterwards, since another run may load another module first.
    pub(super) fn load_module(
        &mut self,
        loaded: &mut LoadedObjects,
        resolved: &ResolvedPath,
        elf_file: &Arc<ElfFile>,
    ) -> Result<(), ProgramFilesError> {
        if loaded.objects.is_empty() || elf_file.is_executable_only {
            return Ok(());
        }
        let (objects, names) = (loaded.objects.len(), loaded.names.len());
        loaded.add(
            resolved.real.file_name().unwrap_or_default(),
            &resolved.real,
            resolved,
            elf_file,
            0,
        );
        let result = self.load_libraries(loaded, objects, MissingLibrary::Ignore);
        loaded.objects.truncate(objects);
        loaded.names.truncate(names);
        result
    }

    /// Adds a library that a program opens by name while it runs, if the library is installed.
    pub(super) fn add_library(
        &mut self,
        loaded: &LoadedObjects,
        name: &str,
    ) -> Result<(), ProgramFilesError> {
        if loaded.objects.is_empty() || loaded.is_musl || loaded.has_name(name.as_ref()) {
            return Ok(());
        }
        if let Some((_, resolved, _)) = self.find_library(loaded, 0, name.as_ref())? {
            self.add_file(&resolved, FileUse::Library)?;
        }
        Ok(())
    }

    /// Loads needed libraries breadth-first, as the loader does, so that each name resolves to the
    /// same file.
    fn load_libraries(
        &mut self,
        loaded: &mut LoadedObjects,
        from: usize,
        missing: MissingLibrary,
    ) -> Result<(), ProgramFilesError> {
        let mut index = from;
        while let Some(object) = loaded.objects.get(index) {
            let elf_file = Arc::clone(&object.elf_file);
            for name in &elf_file.needed {
                if loaded.has_name(name) {
                    continue;
                }
                if let Some((opened, resolved, elf_file)) =
                    self.find_library(loaded, index, name)?
                {
                    self.add_file(&resolved, FileUse::Library)?;
                    loaded.add(name, &opened, &resolved, &elf_file, index);
                } else if missing == MissingLibrary::Fail {
                    return Err(ProgramFilesError::MissingLibrary {
                        library: name.to_string_lossy().into_owned(),
                        needed_by: loaded
                            .objects
                            .get(index)
                            .map(|object| object.real.clone())
                            .unwrap_or_default(),
                    });
                }
            }
            index += 1;
        }
        Ok(())
    }

    fn find_library(
        &mut self,
        loaded: &LoadedObjects,
        index: usize,
        name: &OsStr,
    ) -> Result<Option<(PathBuf, ResolvedPath, Arc<ElfFile>)>, ProgramFilesError> {
        let Some(object) = loaded.objects.get(index) else { return Ok(None) };
        if name.as_bytes().contains(&b'/') {
            let found = expand_search_path(name, &object.origin)
                .into_iter()
                .find_map(|path| self.library_at(path));
            return Ok(found);
        }
        for folder in loaded.search_folders(index) {
            if let Some(found) = self.library_at(folder.join(name)) {
                return Ok(Some(found));
            }
        }
        if object.elf_file.skips_default_folders {
            return Ok(None);
        }
        if loaded.is_musl {
            let folders = ["/lib", "/usr/local/lib", "/usr/lib"];
            let found =
                folders.iter().find_map(|folder| self.library_at(Path::new(folder).join(name)));
            return Ok(found);
        }
        let list = Path::new(ld_cache::LD_CACHE_PATH);
        if let Some(stamp) = self.resolver.resolve(list).ok().and_then(|resolved| resolved.file())
            && let Some(path) = cache::ld_cache(stamp).find(name)
            && let Some(found) = self.library_at(path)
        {
            self.add_data(list, Path::new("/"))?;
            return Ok(Some(found));
        }
        let found =
            ["/lib/TRIPLET", "/usr/lib/TRIPLET", "/lib64", "/usr/lib64", "/lib", "/usr/lib"]
                .iter()
                .find_map(|folder| {
                    self.library_at(Path::new(&folder.replace("TRIPLET", TRIPLET)).join(name))
                });
        Ok(found)
    }

    /// Returns the library at a path. Programs are rejected, position-independent or not, because
    /// the loader rejects them too.
    fn library_at(&mut self, path: PathBuf) -> Option<(PathBuf, ResolvedPath, Arc<ElfFile>)> {
        let resolved = self.resolver.resolve(&path).ok()?;
        let elf_file = read_elf(&resolved).filter(|elf_file| !elf_file.is_executable_only)?;
        Some((path, resolved, elf_file))
    }
}

/// Splits a list of folders (or one path) and replaces `$ORIGIN`, `$LIB` and `$PLATFORM` as the
/// loader does.
///
/// Relative paths are left out, since they depend on the working directory.
fn expand_search_path(list: &OsStr, origin: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for part in list.as_bytes().split(|byte| *byte == b':') {
        if part.contains(&b'$') {
            let part = replace_token(part, b"ORIGIN", origin.as_os_str().as_bytes());
            let part = replace_token(&part, b"PLATFORM", PLATFORM.as_bytes());
            // The meaning of `$LIB` was fixed when the loader was built, so both values are tried.
            for library in [format!("lib/{TRIPLET}"), "lib64".to_owned()] {
                paths.push(PathBuf::from(OsString::from_vec(replace_token(
                    &part,
                    b"LIB",
                    library.as_bytes(),
                ))));
            }
        } else {
            paths.push(PathBuf::from(OsStr::from_bytes(part)));
        }
    }
    paths.dedup();
    paths.retain(|path| path.is_absolute());
    paths
}

/// Replaces `$NAME` and `${NAME}`.
fn replace_token(text: &[u8], name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        let after = (*first == b'$')
            .then(|| {
                tail.strip_prefix(name)
                    .or_else(|| tail.strip_prefix(b"{")?.strip_prefix(name)?.strip_prefix(b"}"))
            })
            .flatten();
        if let Some(after) = after {
            result.extend(value);
            rest = after;
        } else {
            result.push(*first);
            rest = tail;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_tokens_as_the_loader_does() {
        let expand_search_path =
            |list: &str| expand_search_path(list.as_ref(), Path::new("/opt/x/bin"));
        assert_eq!(expand_search_path("$ORIGIN/../lib"), [PathBuf::from("/opt/x/bin/../lib")]);
        assert_eq!(
            expand_search_path("${ORIGIN}:/a:relative::"),
            [PathBuf::from("/opt/x/bin"), PathBuf::from("/a")]
        );
        assert_eq!(
            expand_search_path("/y/$LIB"),
            [PathBuf::from(format!("/y/lib/{TRIPLET}")), PathBuf::from("/y/lib64")]
        );
        assert_eq!(expand_search_path("/y/$PLATFORM"), [PathBuf::from(format!("/y/{PLATFORM}"))]);
        assert_eq!(expand_search_path("/y/$"), [PathBuf::from("/y/$")]);
    }
}
