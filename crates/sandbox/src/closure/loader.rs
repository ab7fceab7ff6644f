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
    ClosureError, Kind,
    build::{Builder, image},
    catalogue,
    elf::Image,
    memory,
    way::{Lost, Way},
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
    image: Arc<Image>,
    /// The index of the object that loaded this one.
    parent: Option<usize>,
}

/// All objects that a process has loaded.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// The program first, then its loader. Empty for a static program, which loads nothing.
    objects: Vec<Object>,
    /// Library names that refer to an object that is already loaded.
    names: Vec<OsString>,
    musl: bool,
}

impl Space {
    fn knows(&self, name: &OsStr) -> bool {
        self.names.iter().any(|known| known == name)
    }

    fn put(&mut self, name: &OsStr, opened: &Path, way: &Way, image: &Arc<Image>, parent: usize) {
        self.names.push(name.to_os_string());
        self.names.extend(image.soname.clone());
        if self.objects.iter().any(|object| object.real == way.real) {
            return;
        }
        let origin = opened.parent().unwrap_or(opened).to_path_buf();
        let (real, image) = (way.real.clone(), Arc::clone(image));
        self.objects.push(Object { origin, real, image, parent: Some(parent) });
    }

    /// Returns the folders that are searched before the system's folders for a library of this
    /// object.
    fn own_folders(&self, index: usize) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        let Some(object) = self.objects.get(index) else { return folders };
        if object.image.runpath.is_none() {
            let mut next = Some(index);
            while let Some(ancestor) = next.and_then(|index| self.objects.get(index)) {
                if ancestor.image.runpath.is_none()
                    && let Some(list) = &ancestor.image.rpath
                {
                    folders.extend(expand(list, &ancestor.origin));
                }
                next = ancestor.parent;
            }
        }
        if let Some(list) = &object.image.runpath {
            folders.extend(expand(list, &object.origin));
        }
        folders
    }
}

/// What to do about a library that cannot be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// Fail, because the program would not start.
    Refused,
    /// Continue: one module does not work, but it does not work outside the sandbox either.
    Accepted,
}

impl Builder<'_> {
    /// Adds the loader of a program and all libraries that the program is linked with.
    pub(super) fn load_program(
        &mut self,
        way: &Way,
        program: &Arc<Image>,
    ) -> Result<Space, ClosureError> {
        let mut space = Space::default();
        let Some(path) = &program.interpreter else { return Ok(space) };
        let loader = self.ways.follow(path).map_err(|lost| match lost {
            Lost::Missing => ClosureError::MissingInterpreter {
                script: way.real.clone(),
                interpreter: path.to_string_lossy().into_owned(),
            },
            Lost::Loop => ClosureError::LinkLoop { path: path.clone() },
            Lost::Reserved => ClosureError::Reserved { path: path.clone() },
        })?;
        // A loader needs no other loader or library. Without this check a program could add any
        // other program by naming it as its loader.
        let own = image(&loader)
            .filter(|image| {
                !image.only_a_program && image.interpreter.is_none() && image.needed.is_empty()
            })
            .ok_or_else(|| ClosureError::NotALoader {
                program: way.real.clone(),
                loader: path.clone(),
            })?;
        self.add_file(&loader, Kind::Library)?;
        let name = path.file_name().unwrap_or_default();
        space.musl = name.as_bytes().starts_with(b"ld-musl");
        space.objects.push(Object {
            // The kernel passes the real path to the program.
            origin: way.real.parent().unwrap_or(&way.real).to_path_buf(),
            real: way.real.clone(),
            image: Arc::clone(program),
            parent: None,
        });
        space.put(name, path, &loader, &own, 0);
        if space.musl {
            // In musl, all of these libraries are the loader itself.
            space.names.extend(
                ["c", "pthread", "rt", "m", "dl", "util", "xnet"]
                    .map(|part| format!("lib{part}.so").into()),
            );
        }
        self.load(&mut space, 0, Missing::Refused)?;
        Ok(space)
    }

    /// Adds the libraries of a module that a running program loads later. `space` is restored
    /// afterwards, since another run may load another module first.
    pub(super) fn load_module(
        &mut self,
        space: &mut Space,
        way: &Way,
        image: &Arc<Image>,
    ) -> Result<(), ClosureError> {
        if space.objects.is_empty() || image.only_a_program {
            return Ok(());
        }
        let (objects, names) = (space.objects.len(), space.names.len());
        space.put(way.real.file_name().unwrap_or_default(), &way.real, way, image, 0);
        let result = self.load(space, objects, Missing::Accepted);
        space.objects.truncate(objects);
        space.names.truncate(names);
        result
    }

    /// Adds a library that a program opens by name while it runs, if the library is installed.
    pub(super) fn add_library(&mut self, space: &Space, name: &str) -> Result<(), ClosureError> {
        if space.objects.is_empty() || space.musl || space.knows(name.as_ref()) {
            return Ok(());
        }
        if let Some((_, way, _)) = self.search(space, 0, name.as_ref())? {
            self.add_file(&way, Kind::Library)?;
        }
        Ok(())
    }

    /// Loads needed libraries breadth-first, as the loader does, so that each name resolves to the
    /// same file.
    fn load(
        &mut self,
        space: &mut Space,
        from: usize,
        missing: Missing,
    ) -> Result<(), ClosureError> {
        let mut index = from;
        while let Some(object) = space.objects.get(index) {
            let image = Arc::clone(&object.image);
            for name in &image.needed {
                if space.knows(name) {
                    continue;
                }
                if let Some((opened, way, image)) = self.search(space, index, name)? {
                    self.add_file(&way, Kind::Library)?;
                    space.put(name, &opened, &way, &image, index);
                } else if missing == Missing::Refused {
                    return Err(ClosureError::MissingLibrary {
                        library: name.to_string_lossy().into_owned(),
                        needed_by: space
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

    fn search(
        &mut self,
        space: &Space,
        index: usize,
        name: &OsStr,
    ) -> Result<Option<(PathBuf, Way, Arc<Image>)>, ClosureError> {
        let Some(object) = space.objects.get(index) else { return Ok(None) };
        if name.as_bytes().contains(&b'/') {
            let found = expand(name, &object.origin).into_iter().find_map(|path| self.try_at(path));
            return Ok(found);
        }
        for folder in space.own_folders(index) {
            if let Some(found) = self.try_at(folder.join(name)) {
                return Ok(Some(found));
            }
        }
        if object.image.no_defaults {
            return Ok(None);
        }
        if space.musl {
            let folders = ["/lib", "/usr/local/lib", "/usr/lib"];
            let found = folders.iter().find_map(|folder| self.try_at(Path::new(folder).join(name)));
            return Ok(found);
        }
        let list = Path::new(catalogue::PATH);
        if let Some(stamp) = self.ways.follow(list).ok().and_then(|way| way.file())
            && let Some(path) = memory::catalogue(stamp).find(name)
            && let Some(found) = self.try_at(path)
        {
            self.add_data(list, Path::new("/"))?;
            return Ok(Some(found));
        }
        let found =
            ["/lib/TRIPLET", "/usr/lib/TRIPLET", "/lib64", "/usr/lib64", "/lib", "/usr/lib"]
                .iter()
                .find_map(|folder| {
                    self.try_at(Path::new(&folder.replace("TRIPLET", TRIPLET)).join(name))
                });
        Ok(found)
    }

    /// Returns the library at a path. Programs are rejected, position-independent or not, because
    /// the loader rejects them too.
    fn try_at(&mut self, path: PathBuf) -> Option<(PathBuf, Way, Arc<Image>)> {
        let way = self.ways.follow(&path).ok()?;
        let image = image(&way).filter(|image| !image.only_a_program)?;
        Some((path, way, image))
    }
}

/// Splits a list of folders (or one path) and replaces `$ORIGIN`, `$LIB` and `$PLATFORM` as the
/// loader does.
///
/// Relative paths are left out, since they depend on the working directory.
fn expand(list: &OsStr, origin: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for part in list.as_bytes().split(|byte| *byte == b':') {
        if part.contains(&b'$') {
            let part = replace(part, b"ORIGIN", origin.as_os_str().as_bytes());
            let part = replace(&part, b"PLATFORM", PLATFORM.as_bytes());
            // The meaning of `$LIB` was fixed when the loader was built, so both values are tried.
            for library in [format!("lib/{TRIPLET}"), "lib64".to_owned()] {
                paths.push(PathBuf::from(OsString::from_vec(replace(
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
fn replace(text: &[u8], name: &[u8], value: &[u8]) -> Vec<u8> {
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
    fn puts_in_what_the_loader_puts_in() {
        let expand = |list: &str| expand(list.as_ref(), Path::new("/opt/x/bin"));
        assert_eq!(expand("$ORIGIN/../lib"), [PathBuf::from("/opt/x/bin/../lib")]);
        assert_eq!(
            expand("${ORIGIN}:/a:relative::"),
            [PathBuf::from("/opt/x/bin"), PathBuf::from("/a")]
        );
        assert_eq!(
            expand("/y/$LIB"),
            [PathBuf::from(format!("/y/lib/{TRIPLET}")), PathBuf::from("/y/lib64")]
        );
        assert_eq!(expand("/y/$PLATFORM"), [PathBuf::from(format!("/y/{PLATFORM}"))]);
        assert_eq!(expand("/y/$"), [PathBuf::from("/y/$")]);
    }
}
