//! [`ProgramFiles`] lists the files that a program needs to start and to work, and nothing more.
//!
//! The root file system of a run starts empty, so a file that is not listed here does not exist for
//! the program. Nothing is executed to find the files, not even `ldd`, since `ldd` would start the
//! program: [`elf`] reads the headers, [`loader`] repeats the search of the dynamic loader,
//! [`shebang`] reads `#!` lines as the kernel does, [`path_resolver`] records the symbolic links that lead to
//! each file, and [`helpers`] knows which files git, Python, Node, Perl and Ruby open besides their
//! own. [`build`] combines these modules and [`cache`] caches the results in this process.
//!
//! The program may come from a skill and contain any bytes. It can name libraries of this machine
//! and, if it is a script, an interpreter. It cannot add a program by naming it as its library or
//! loader, nor a folder outside by a symbolic link.

mod build;
mod cache;
mod elf;
mod error;
mod file_reader;
mod find_program;
mod helpers;
mod ld_cache;
mod loader;
mod path_resolver;
mod permissions;
mod shebang;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde::Serialize;

use self::{build::Builder, cache::get_or_build};
pub use self::{
    error::ProgramFilesError,
    find_program::{TRUSTED_PATH, find_program},
};

/// How a file is used. Later variants include the rights of earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileUse {
    /// The file is read.
    Data,
    /// The file is mapped into memory: a library or the loader.
    Library,
    /// The file is executed because the first line of a script names it. The caller decides whether
    /// that is allowed.
    Interpreter,
    /// The file is executed because the caller asked for it.
    Program,
}

/// The kind of files in a folder that is included as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FolderContents {
    /// Only files that are read.
    Data,
    /// Also files that are mapped or executed, such as modules of an interpreter or programs of
    /// git.
    Code,
}

/// The files, folders and symbolic links that programs need in a new root. Each is mounted at the
/// path that it has on the host.
///
/// To build the root, mount the folders in path order, cover each hidden folder with an empty one,
/// then add files and links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProgramFiles {
    files: BTreeMap<PathBuf, FileUse>,
    folders: BTreeMap<PathBuf, FolderContents>,
    hidden: BTreeSet<PathBuf>,
    links: BTreeMap<PathBuf, PathBuf>,
}

impl ProgramFiles {
    /// Finds the files of these programs; each path must be absolute.
    pub fn of(programs: &[PathBuf]) -> Result<Self, ProgramFilesError> {
        if let [program] = programs {
            return get_or_build(program, || Builder::new(program).build());
        }
        let mut all = Self::default();
        for program in programs {
            all.merge(&get_or_build(program, || Builder::new(program).build())?);
        }
        all.remove_redundant();
        Ok(all)
    }

    /// Returns the regular files by their real paths.
    pub fn files(&self) -> impl Iterator<Item = (&Path, FileUse)> {
        self.files.iter().map(|(path, file_use)| (path.as_path(), *file_use))
    }

    /// Returns the folders that are included as a whole, by their real paths.
    pub fn folders(&self) -> impl Iterator<Item = (&Path, FolderContents)> {
        self.folders.iter().map(|(path, contents)| (path.as_path(), *contents))
    }

    /// Returns the subfolders of [`folders`](Self::folders) that stay empty: packages that were
    /// installed next to a standard library.
    pub fn hidden(&self) -> impl Iterator<Item = &Path> {
        self.hidden.iter().map(PathBuf::as_path)
    }

    /// Returns the symbolic links, each with its target as written in the link.
    pub fn links(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.links.iter().map(|(link, target)| (link.as_path(), target.as_path()))
    }

    /// Merges another list into this one. A path that is visible in either list is visible in
    /// the result.
    fn merge(&mut self, other: &Self) {
        self.hidden.retain(|path| !other.is_visible(path));
        let hidden: Vec<_> =
            other.hidden.iter().filter(|path| !self.is_visible(path)).cloned().collect();
        self.hidden.extend(hidden);
        for (path, file_use) in &other.files {
            self.add_file(path.clone(), *file_use);
        }
        for (path, contents) in &other.folders {
            self.add_folder(path.clone(), *contents);
        }
        self.links.extend(other.links.iter().map(|(link, target)| (link.clone(), target.clone())));
    }

    fn add_file(&mut self, path: PathBuf, file_use: FileUse) {
        let entry = self.files.entry(path).or_insert(file_use);
        *entry = file_use.max(*entry);
    }

    fn add_folder(&mut self, path: PathBuf, contents: FolderContents) {
        let entry = self.folders.entry(path).or_insert(contents);
        *entry = contents.max(*entry);
    }

    /// Returns the contents of the folder that includes a path, or `None` if no folder does or the
    /// path is hidden.
    fn covering_folder(&self, path: &Path) -> Option<FolderContents> {
        for above in path.ancestors() {
            if self.hidden.contains(above) {
                return None;
            }
            if above != path
                && let Some(contents) = self.folders.get(above)
            {
                return Some(*contents);
            }
        }
        None
    }

    fn is_visible(&self, path: &Path) -> bool {
        self.covering_folder(path).is_some()
    }

    /// Removes entries that an included folder already contains. Programs and interpreters stay
    /// listed, so that callers can tell which files they are.
    fn remove_redundant(&mut self) {
        let inner: Vec<_> = self
            .folders
            .iter()
            .filter(|(path, contents)| {
                self.covering_folder(path).is_some_and(|outer| outer >= **contents)
            })
            .map(|(path, _)| path.clone())
            .collect();
        for path in inner {
            self.folders.remove(&path);
        }
        let mut files = std::mem::take(&mut self.files);
        files.retain(|path, file_use| match (*file_use, self.covering_folder(path)) {
            (FileUse::Data, Some(_)) | (FileUse::Library, Some(FolderContents::Code)) => false,
            (FileUse::Data | FileUse::Library | FileUse::Interpreter | FileUse::Program, _) => true,
        });
        self.files = files;
        let mut links = std::mem::take(&mut self.links);
        links.retain(|path, _| !self.is_visible(path));
        self.links = links;
    }
}
